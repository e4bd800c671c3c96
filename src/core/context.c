/* context.c - contexts: all that one lua_State or one C host can set. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

_Thread_local fnn_Context *context_now;

fnn_Context *context (void) {
  fnn_Context *c = context_now;
  if (c == NULL) context_panic(NULL, "fnn: no context on this thread");
  return c;
}

FNN_NORETURN void context_panic (fnn_Context *c, const char *text) {
  if (c != NULL && c->host.panic != NULL) c->host.panic(c->host.ud, text);
  abort();
}

static fnn_Context *context_new (const fnn_Host *host, Account *a) {
  fnn_Context *c = account_alloc(a, sizeof *c);
  if (c == NULL) return NULL;
  memset(c, 0, sizeof *c);
  c->host = *host;
  c->account = a;
  c->grad_mode = true;
  c->autocast = FNN_F32;
  return c;
}

/* What allocates and may throw when a context is made. */
static void fill (void *ud) {
  fnn_Context *c = ud;
  if (c->cancel == NULL) c->cancel = fnn_cancel_new();
  if (c->cancel == NULL) fnn_throw(FNN_EMEMORY, "open: no memory");
  uint64_t seed = generator_entropy();
  c->generator = fnn_retain(fnn_generator("philox", seed));
}

/* Completes c, or frees it and returns NULL. */
static fnn_Context *context_fill (fnn_Context *c) {
  fnn_Context *before = fnn_use(c);
  fnn_Status s = fnn_pcall(fill, c);
  fnn_use(before);
  if (s == FNN_OK) return c;
  fnn_close(c);
  return NULL;
}

fnn_Context *fnn_open (const fnn_Host *host) {
  fnn_Host h = FNN_HOST_INIT;
  if (host != NULL)
    memcpy(&h, host, host->size < sizeof h ? host->size : sizeof h);
  Account *a = account_new(&h);
  if (a == NULL) return NULL;
  fnn_Context *c = context_new(&h, a);
  if (c == NULL) {
    account_release(a);
    return NULL;
  }
  if (h.cancel != NULL) c->cancel = cancel_retain(h.cancel);
  return context_fill(c);
}

fnn_Context *context_child (fnn_Context *parent) {
  fnn_Context *c = context_new(&parent->host, account_retain(parent->account));
  if (c == NULL) {
    account_release(parent->account);
    return NULL;
  }
  c->cancel = cancel_retain(parent->cancel);
  c->child = true;
  c->exact_convolution = parent->exact_convolution;
  c->host.reclaim = NULL; /* belongs to the parent's thread */
  return context_fill(c);
}

void fnn_close (fnn_Context *c) {
  if (c == NULL) return;
  fnn_Context *before = fnn_use(c);
  c->finalizing = true;
  while (c->npool > 0) fnn_release(c->pool[--c->npool]);
  fnn_release(c->generator);
  watch_free(c);
  fnn_cancel_free(c->cancel);
  mem_free(c->pool, c->poolcap * sizeof *c->pool);
  object_free_lists(c);
  memory_free_tiny(c);
  fnn_use(before == c ? NULL : before);
  Account *a = c->account;
  account_free(a, c, sizeof *c);
  account_release(a);
}

fnn_Context *fnn_use (fnn_Context *c) {
  fnn_Context *before = context_now;
  context_now = c;
  return before;
}

fnn_Context *fnn_current (void) { return context_now; }

uint64_t memory_live (fnn_Context *c) {
  return account_live(c->account) - c->tiny_bytes - c->spare;
}

static const fnn_Device *device_or_cpu (const fnn_Device *d) {
  return d != NULL ? d : device_cpu();
}

fnn_Memory fnn_device_memory (const fnn_Device *d) {
  fnn_Context *c = context();
  fnn_Memory m;
  d = device_or_cpu(d);
  account_memory(c->account, d, &m);
  if (d->host) {
    m.live -= c->tiny_bytes + c->spare;
    m.idle += c->tiny_bytes + c->spare;
  }
  m.objects = c->objects;
  m.nodes = c->nodes;
  m.conversions = c->conversions;
  return m;
}

fnn_Memory fnn_memory (void) { return fnn_device_memory(NULL); }

void fnn_device_memory_limit (const fnn_Device *d, uint64_t bytes) {
  account_limit(context()->account, device_or_cpu(d), bytes);
}

void fnn_memory_limit (uint64_t bytes) {
  fnn_device_memory_limit(NULL, bytes);
}

bool fnn_exact_convolution (bool on) {
  fnn_Context *c = context();
  bool was = c->exact_convolution;
  c->exact_convolution = on;
  return was;
}

void fnn_device_memory_peak_reset (const fnn_Device *d) {
  account_peak_reset(context()->account, device_or_cpu(d));
}

void fnn_memory_peak_reset (void) { fnn_device_memory_peak_reset(NULL); }

void fnn_device_trim (const fnn_Device *d) {
  fnn_Context *c = context();
  d = device_or_cpu(d);
  if (d->host) {
    object_free_lists(c);
    memory_free_tiny(c);
  }
  account_trim(c->account, d);
}

void fnn_trim (void) { fnn_device_trim(NULL); }

void fnn_report (fnn_Level level, const char *fmt, ...) {
  fnn_Context *c = context();
  if (c->host.log == NULL) return;
  char text[MESSAGE_MAX];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  c->host.log(c->host.ud, level, text);
}

void fnn_progress (const char *what, int64_t step, int64_t total) {
  fnn_Context *c = context();
  if (c->host.progress == NULL) return;
  if (c->host.progress(c->host.ud, what, step, total))
    fnn_throw(FNN_ECANCEL, "%s: stopped at %lld of %lld", what,
              (long long)step, (long long)total);
}
