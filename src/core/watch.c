/* watch.c - what looks on while ops run: the profile, and what it shares with
** anomaly.c.
**
** The time of an op is that of its kernels.  These run before it is known
** which op it was: graph_record tells its name, or the end of the outermost
** frame tells that it has none, and then it goes by what it wrote, or by its
** first kernel.  In a walk back it is the node's.
**
** On a card each kernel is waited for, before and after, so that its time is
** its own: nothing overlaps while a profile is taken. */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core.h"

typedef struct Watch {
  Profile profile;
  /* The op that is running: */
  const char *op; /* its name, if it is known */
  const char *first;
  int64_t began, start, ns; /* of the first kernel, of this one, of all */
  int64_t kernels;
  uint64_t made; /* what the context had made when it began */
  bool running;  /* a kernel: those that it calls are part of it */
  bool is_step;  /* a kernel of optimizers is among them */
  /* The last op that was recorded: */
  double flops;
  int place;
  /* Two tensors that an op looked at, retained; and what it writes. */
  const char *pair_op;
  Tensor *pair[2];
  Written *written;
} Watch;

/* Where a node was made; in the profile the place is enough. */
typedef struct Origin {
  Object o;
  double flops;
  int place;
  char where[]; /* "" when nobody will ask */
} Origin;

static const Type origin_type = { "origin", NULL };

static Watch *watcher (void) {
  fnn_Context *c = context();
  if (c->watcher == NULL) {
    Watch *w = mem_new(sizeof *w);
    memset(w, 0, sizeof *w);
    c->watcher = w;
  }
  return c->watcher;
}

static bool profiles (void) { return context_now->watch & WATCH_PROFILE; }
static bool looks (void) { return context_now->watch & WATCH_ANOMALY; }

static int64_t now (void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What was there before belongs to no op. */
static void forget (Watch *w) {
  w->op = w->first = NULL;
  w->ns = w->kernels = 0;
  w->running = w->is_step = false;
  w->made = context_now->since_collect;
}

static void drop_pair (Watch *w) {
  for (int i = 0; i < 2; i++) {
    fnn_release(w->pair[i]);
    w->pair[i] = NULL;
  }
  w->pair_op = NULL;
}

void watch_mode (unsigned mode, bool on) {
  Watch *w = watcher();
  anomaly_drop(&w->written);
  drop_pair(w);
  forget(w);
  uint8_t *watch = &context_now->watch;
  *watch = (uint8_t)(on ? *watch | mode : *watch & ~mode);
}

void watch_free (fnn_Context *c) {
  Watch *w = c->watcher;
  if (w == NULL) return;
  watch_thrown();
  mem_free(w->profile.rows, w->profile.rowcap * sizeof *w->profile.rows);
  mem_free(w->profile.events, w->profile.eventcap * sizeof *w->profile.events);
  mem_free(w, sizeof *w);
  c->watcher = NULL;
}

void watch_thrown (void) {
  Watch *w = context_now->watcher;
  anomaly_drop(&w->written);
  drop_pair(w);
  forget(w);
}

/*
** {======================================================
** Kernels
** =======================================================
*/

static const char *const kernel_names[] = {
#define KERNEL(name, args) #name,
#define KERNEL_ANY(name, args) #name,
#include "kernels.def"
#undef KERNEL
#undef KERNEL_ANY
};

/* What is asked of a card is done later, unless it is waited for; a step that
** is written down is not done at all. */
static void settle_device (const fnn_Device *d) {
  if (!d->host && context_now->capture == NULL) fnn_synchronize(d);
}

int watch_begin (const fnn_Device *d, KernelId id) {
  Watch *w = context_now->watcher;
  if (!profiles() || w->running) return 1;
  w->running = true;
  settle_device(d);
  w->start = now();
  w->is_step = w->is_step || id == KERNEL_optimize || id == KERNEL_adafactor ||
               id == KERNEL_square_sum || id == KERNEL_norm_factor ||
               id == KERNEL_scale_all;
  if (w->kernels++ > 0) return 2;
  w->first = kernel_names[id];
  w->began = w->start;
  return 2;
}

/* The device is the first kernel's and the last's: ops do not mix them. */
void watch_end (void) {
  Watch *w = context_now->watcher;
  w->ns += now() - w->start;
  w->running = false;
}

/* }====================================================== */

/*
** {======================================================
** Rows
** =======================================================
*/

static uint32_t hash (const char *s, Phase phase, int place) {
  uint32_t h = 2166136261u ^ (uint32_t)phase ^ (uint32_t)place << 3;
  for (; *s != '\0'; s++) h = (h ^ (unsigned char)*s) * 16777619u;
  return h;
}

static size_t row_of (Profile *p, const char *op, Phase phase, int place) {
  uint32_t h = hash(op, phase, place);
  size_t i = 0;
  for (; i < p->nrows; i++) {
    const ProfileRow *r = &p->rows[i];
    if (r->hash == h && r->phase == phase && r->place == place &&
        strncmp(r->op, op, PROFILE_NAME - 1) == 0)
      return i;
  }
  if (i == p->rowcap) {
    size_t cap = i == 0 ? 32 : 2 * i;
    p->rows = mem_grow(p->rows, i * sizeof *p->rows, cap * sizeof *p->rows);
    p->rowcap = cap;
  }
  ProfileRow *r = &p->rows[p->nrows++];
  *r = (ProfileRow){ .hash = h, .phase = phase, .place = place };
  snprintf(r->op, sizeof r->op, "%s", op);
  return i;
}

static void note_event (Profile *p, size_t row, const Watch *w) {
  if (p->nevents == p->eventcap) {
    size_t n = p->nevents, cap = n == 0 ? 256 : 2 * n;
    p->events =
        mem_grow(p->events, n * sizeof *p->events, cap * sizeof *p->events);
    p->eventcap = cap;
  }
  int64_t start = w->began - p->opened;
  p->events[p->nevents++] = (ProfileEvent){ start, w->ns, (int)row };
}

/* The op that ran was this one.  What the context has made is counted anew now
** and then, between two ops: the first after that counts less. */
static void commit (Watch *w, const char *op, Phase phase, int place,
                    double bytes, double flops) {
  Profile *p = &w->profile;
  size_t row = row_of(p, op, phase, place);
  ProfileRow *r = &p->rows[row];
  uint64_t made = context_now->since_collect;
  r->calls++;
  r->kernels += w->kernels;
  r->ns += w->ns;
  if (made > w->made) r->made += (double)(made - w->made);
  if (w->kernels > 0) {
    r->bytes += bytes;
    r->flops += flops;
    if (p->traced) note_event(p, row, w);
  }
  forget(w);
}

static double bytes_of (const Tensor *x) {
  if (x == NULL) return 0;
  return (double)x->numel * (double)fnn_dtype_size((fnn_Dtype)x->dtype);
}

static const char attention[] = "scaled_dot_product_attention";

/* Multiplications and additions of a product; 0 of what is none. */
static double flops_of (const char *op, const Tensor *y, Tensor *const *x) {
  double n = (double)y->numel;
  if (strcmp(op, "matmul") == 0 || strcmp(op, "linear") == 0)
    return 2 * n * (double)x[0]->shape[x[0]->ndim - 1];
  if (strncmp(op, "conv", 4) == 0) {
    const Tensor *w = x[1];
    double each = w->shape[0] > 0 ? (double)(w->numel / w->shape[0]) : 0;
    bool transposed = strncmp(op, "conv_transpose", 14) == 0;
    return 2 * each * (transposed ? (double)x[0]->numel : n);
  }
  if (strcmp(op, attention) == 0) {
    const Tensor *q = x[0], *v = x[2];
    int64_t d = q->shape[q->ndim - 1];
    double rows = d > 0 ? (double)(q->numel / d) : 0;
    return 2 * rows * (double)v->shape[v->ndim - 2] *
           (double)(d + v->shape[v->ndim - 1]);
  }
  return 0;
}

/* A module that runs, told by the bindings. */
static int place_now (char *to, size_t n) {
  fnn_Context *c = context_now;
  if (n > 0) *to = '\0';
  return c->place != NULL ? c->place(c->library, to, n) : 0;
}

/* }====================================================== */

/*
** {======================================================
** Ops
** =======================================================
*/

static void profile_op (Watch *w, const char *op, const Tensor *y, int n,
                        Tensor *const *x) {
  int64_t t = now();
  double bytes = bytes_of(y);
  for (int i = 0; i < n; i++) bytes += bytes_of(x[i]);
  w->flops = flops_of(op, y, x);
  w->place = place_now(NULL, 0);
  commit(w, op, IN_FORWARD, w->place, bytes, w->flops);
  w->profile.own += now() - t;
}

/* What a derivative calls is part of it. */
void watch_op (const char *op, Tensor *y, int n, Tensor *const *x) {
  Watch *w = context_now->watcher;
  if (context_now->walk != NULL) return;
  if (looks()) {
    anomaly_settle(&w->written);
    anomaly_op(op, y, n, x);
  }
  drop_pair(w);
  if (profiles()) profile_op(w, op, y, n, x);
}

/* " at script.lua:12 (in 0: Linear)" of what runs. */
static void write_where (char *to, size_t n, int *place) {
  fnn_Context *c = context_now;
  char script[200] = "", module[200] = "";
  if (c->where != NULL) c->where(c->library, script, sizeof script);
  *place = place_now(module, sizeof module);
  snprintf(to, n, "%s%s%s", script[0] != '\0' ? " at " : "", script, module);
}

Object *watch_origin (void) {
  Watch *w = context_now->watcher;
  size_t m = fnn_mark();
  char where[420] = "";
  if (looks()) write_where(where, sizeof where, &w->place);
  Origin *o = object_new(&origin_type, sizeof *o + strlen(where) + 1);
  o->flops = w->flops;
  o->place = w->place;
  strcpy(o->where, where);
  fnn_retain(o);
  fnn_escape(m, NULL);
  return &o->o;
}

const char *watch_where (const Node *n) {
  return n->origin != NULL ? ((const Origin *)n->origin)->where : "";
}

void watch_operands (const char *op, const Tensor *a, const Tensor *b) {
  Watch *w = context_now->watcher;
  if (context_now->walk != NULL) return;
  if (profiles() && w->kernels == 0) w->op = op;
  if (!looks()) return;
  drop_pair(w);
  w->pair_op = op;
  w->pair[0] = fnn_retain((Tensor *)a);
  w->pair[1] = fnn_retain((Tensor *)b);
}

void watch_write (const char *op, const Tensor *x) {
  Watch *w = context_now->watcher;
  if (context_now->walk != NULL) return;
  if (profiles() && w->kernels == 0) w->op = op;
  if (!looks()) return;
  bool pair = w->pair[0] == x && strcmp(w->pair_op, op) == 0;
  anomaly_write(&w->written, op, x, pair ? w->pair[1] : NULL);
  drop_pair(w);
}

/* An optimizer looks at all weights and gradients before it writes the first;
** what it looked at last tells its name. */
void watch_written (const Tensor *x) {
  Watch *w = context_now->watcher;
  if (!looks() || context_now->walk != NULL) return;
  const char *op = w->pair_op != NULL ? w->pair_op : "a write";
  anomaly_write(&w->written, op, x, NULL);
}

void watch_leave (void) {
  Watch *w = context_now->watcher;
  if (looks()) anomaly_settle(&w->written);
  drop_pair(w);
  if (!profiles()) return;
  if (w->kernels == 0) {
    forget(w);
    return;
  }
  int64_t t = now();
  const char *op = w->op != NULL ? w->op : w->first;
  bool in_place = op[strlen(op) - 1] == '_'; /* lerp_ has such a kernel */
  Phase phase = w->is_step && !in_place ? IN_STEP : IN_FORWARD;
  commit(w, op, phase, phase == IN_STEP ? 0 : place_now(NULL, 0), 0, 0);
  w->profile.own += now() - t;
}

/* }====================================================== */

/*
** {======================================================
** Walks
** =======================================================
*/

void watch_visit (Node *n, Tensor *gy) {
  if (looks()) anomaly_visit(n, gy);
  if (profiles()) forget(context_now->watcher);
}

void watch_gradient (const Node *n, int i, Tensor *g) {
  if (looks()) anomaly_gradient(n, i, g);
}

/* A product has one for each operand that wants its gradient, attention five
** for two. */
static double back_flops (const Node *n, const Origin *o) {
  if (o == NULL || o->flops == 0) return 0;
  if (strcmp(n->rule->name, attention) == 0) return 2.5 * o->flops;
  return o->flops * (graph_wants(n, 0) + (n->nin > 1 && graph_wants(n, 1)));
}

/* What it reads, which is the gradient and what was saved, and what it
** gives. */
static double back_bytes (const Node *n) {
  double bytes = (double)shape_numel(n->ndim, n->shape) *
                 (double)fnn_dtype_size((fnn_Dtype)n->dtype);
  for (int i = 0; i < n->nsave; i++) bytes += bytes_of(n->save[i]);
  for (int i = 0; i < n->nin; i++) {
    const int64_t *shape;
    if (!graph_wants(n, i)) continue;
    int ndim = graph_shape(n, i, &shape);
    bytes += (double)shape_numel(ndim, shape) *
             (double)fnn_dtype_size(graph_dtype(n, i));
  }
  return bytes;
}

void watch_visited (const Node *n) {
  if (!profiles()) return;
  int64_t t = now();
  Watch *w = context_now->watcher;
  const Origin *o = (const Origin *)n->origin;
  commit(w, n->rule->name, IN_BACKWARD, o != NULL ? o->place : 0,
         back_bytes(n), back_flops(n, o));
  w->profile.own += now() - t;
}

/* }====================================================== */

void profile_begin (bool traced) {
  if (context()->watch & WATCH_PROFILE)
    fnn_throw(FNN_EARG, "profile: one is being taken already");
  if (context_now->walk != NULL)
    fnn_throw(FNN_EARG, "profile: begun within backward, where what a hook or "
                        "a derivative calls is a part of its operation");
  Profile *p = &watcher()->profile;
  p->nrows = p->nevents = 0;
  p->traced = traced;
  p->own = 0;
  watch_mode(WATCH_PROFILE, true);
  p->opened = now();
}

void profile_end (void) {
  Watch *w = watcher();
  w->profile.total = now() - w->profile.opened;
  watch_mode(WATCH_PROFILE, false);
}

const Profile *profile_last (void) {
  const Watch *w = context()->watcher;
  return w != NULL && w->profile.opened != 0 ? &w->profile : NULL;
}
