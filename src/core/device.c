/* device.c - the devices there are, by name. */

#include <stdlib.h>
#include <string.h>

#include "core.h"

enum { DEVICE_MAX = 16 };

/* Written by constructors before main, then only read. */
static const fnn_Device *devices[DEVICE_MAX];
static int ndevices;

void device_register (const fnn_Device *d) {
  if (ndevices < DEVICE_MAX) devices[ndevices++] = d;
}

static bool same (const char *a, const char *b) { return strcmp(a, b) == 0; }

const fnn_Device *fnn_device (const char *name) {
  if (same(name, "cpu")) return device_cpu();
  const char *full = same(name, "cuda") ? "cuda:0" : name;
  for (int i = 0; i < ndevices; i++)
    if (same(devices[i]->name, full)) return devices[i];
  if (strncmp(name, "cuda", 4) != 0)
    fnn_throw(FNN_EDEVICE, "unknown device '%s' (expected cpu or cuda:N)",
              name);
  if (ndevices == 0)
    fnn_throw(FNN_EDEVICE,
              "device '%s': this build of fnn has no CUDA "
              "(make CUDA=1 builds it in)",
              name);
  fnn_throw(FNN_EDEVICE, "device '%s': there are only %d CUDA devices", name,
            ndevices);
}

const char *fnn_device_name (const fnn_Device *d) { return d->name; }

const fnn_Device *fnn_best_device (void) {
  return ndevices > 0 ? devices[0] : device_cpu();
}
