/* device.c - the devices there are, by name. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core.h"

enum { DEVICE_MAX = 15 };

/* What a second kind of device has told of itself; written once. */
static struct Devices {
  void (*find)(void);
  pthread_once_t once;
  fnn_Device *list[DEVICE_MAX]; /* without the CPU */
  int count;
  struct {
    char name[16], why[256];
  } refused[DEVICE_MAX]; /* there, but of no use */
  int nrefused;
  char why[256]; /* why there are none */
} devices = { .once = PTHREAD_ONCE_INIT };

void device_finder (void (*find)(void)) { devices.find = find; }

void device_register (fnn_Device *d) {
  if (devices.count == DEVICE_MAX) return;
  devices.list[devices.count++] = d;
  d->index = devices.count;
}

void device_refuse (const char *name, const char *why) {
  if (devices.nrefused == DEVICE_MAX) return;
  int i = devices.nrefused++;
  snprintf(devices.refused[i].name, sizeof devices.refused[i].name, "%s",
           name);
  snprintf(devices.refused[i].why, sizeof devices.refused[i].why, "%s", why);
}

void device_missing (const char *why) {
  snprintf(devices.why, sizeof devices.why, "%s", why);
}

static void find (void) {
  if (devices.find != NULL) devices.find();
}

static int count (void) {
  pthread_once(&devices.once, find);
  return devices.count;
}

static bool same (const char *a, const char *b) { return strcmp(a, b) == 0; }

/* The full name of what may be short for the first. */
static const char *full_name (const char *name) {
  return same(name, "cuda") ? "cuda:0" : name;
}

FNN_NORETURN static void no_device (const char *name) {
  const char *number = name + strlen("cuda");
  if (strncmp(name, "cuda", 4) != 0 ||
      (*number != '\0' &&
       (*number != ':' ||
        strspn(number + 1, "0123456789") != strlen(number + 1) ||
        number[1] == '\0')))
    fnn_throw(FNN_EDEVICE, "unknown device '%s' (expected cpu or cuda:N)",
              name);
  if (devices.find == NULL)
    fnn_throw(FNN_EDEVICE,
              "device '%s': this build of fnn has no CUDA "
              "(make CUDA=1 builds it in)",
              name);
  for (int i = 0; i < devices.nrefused; i++)
    if (same(devices.refused[i].name, full_name(name)))
      fnn_throw(FNN_EDEVICE, "device '%s': %s", name, devices.refused[i].why);
  if (devices.count == 0 && devices.nrefused == 0)
    fnn_throw(FNN_EDEVICE, "device '%s': %s", name, devices.why);
  int n = devices.count + devices.nrefused;
  fnn_throw(FNN_EDEVICE, "device '%s': there %s only %d CUDA device%s", name,
            n == 1 ? "is" : "are", n, n == 1 ? "" : "s");
}

const fnn_Device *fnn_device (const char *name) {
  if (same(name, "cpu")) return device_cpu();
  const char *full = full_name(name);
  int n = count();
  for (int i = 0; i < n; i++)
    if (same(devices.list[i]->name, full)) return devices.list[i];
  no_device(name);
}

const char *fnn_device_name (const fnn_Device *d) { return d->name; }

const fnn_Device *fnn_best_device (void) {
  return count() > 0 ? devices.list[0] : device_cpu();
}

int fnn_device_count (void) { return count() + 1; }

const fnn_Device *fnn_device_at (int i) {
  if (i < 0 || i > count())
    fnn_throw(FNN_EARG, "device_at: there are %d devices (got %d)",
              count() + 1, i);
  return i == 0 ? device_cpu() : devices.list[i - 1];
}

static void describe_cpu (fnn_DeviceInfo *info) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  snprintf(info->model, sizeof info->model, "CPU (%s kernels)", fnn_isa());
  info->total = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
  info->free = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * page;
}

fnn_DeviceInfo fnn_device_info (const fnn_Device *d) {
  fnn_DeviceInfo info = { .major = 0 };
  if (d->host) describe_cpu(&info);
  else d->queues->describe(d, &info);
  return info;
}

void fnn_synchronize (const fnn_Device *d) {
  if (!d->host) d->queues->synchronize(d);
}
