/* watch.h - what looks on while ops run; a part of core.h.
**
** Anomaly mode finds where the first number comes from that is not finite, and
** the profile where the time goes.  Both see the ops from the same places:
** where a kernel is called, where a result is recorded or a tensor is to be
** written, where the outermost frame ends, and where a walk back visits a
** node.  While the context's watch is 0, each of these costs a look at it. */

#ifndef core_watch_h
#define core_watch_h

#include "../fnn.h"

enum { WATCH_ANOMALY = 1, WATCH_PROFILE = 2 };

/* The lines of kernels.def by number: KERNEL_softmax. */
typedef enum KernelId {
#define KERNEL(name, args) KERNEL_##name,
#define KERNEL_ANY(name, args) KERNEL_##name,
#include "kernels.def"
#undef KERNEL
#undef KERNEL_ANY
  KERNEL_COUNT
} KernelId;

/* Begins a kernel: 2 if watch_end is wanted after it, else 1. */
int watch_begin (const fnn_Device *d, KernelId id);
void watch_end (void);

static inline int watch_enter (const fnn_Device *d, KernelId id) {
  return context_now->watch == 0 ? 1 : watch_begin(d, id);
}

static inline int watch_exit (int entered) {
  if (entered == 2) watch_end();
  return 0;
}

/* The kernel of x's device itself. */
#define kernel_of(x, name) \
  ((x)->storage->device->kernels[(x)->dtype != FNN_F64]->name)

/* kernel(x, softmax)(y, x, ...) as a statement: the one of x's device.  What
** looks on sees it begin and end; a loop of one turn leaves room for both. */
#define kernel(x, name) \
  for (int entered_ = watch_enter((x)->storage->device, KERNEL_##name); \
       entered_ != 0; entered_ = watch_exit(entered_)) \
  kernel_of(x, name)

/* Turns one of the modes on or off. */
void watch_mode (unsigned mode, bool on);
/* y was made of the n tensors x; and where that was, for its node, with a
** reference that is the caller's. */
void watch_op (const char *op, Tensor *y, int n, Tensor *const *x);
Object *watch_origin (void);
/* An op looks at two tensors; it is going to write x in place. */
void watch_operands (const char *op, const Tensor *a, const Tensor *b);
void watch_write (const char *op, const Tensor *x);
void watch_written (const Tensor *x); /* now, whether it said so or not */
/* A walk with gy goes to a node, has given its input i a gradient, leaves. */
void watch_visit (Node *n, Tensor *gy);
void watch_gradient (const Node *n, int i, Tensor *g);
void watch_visited (const Node *n);
/* The outermost frame ends; a throw; the context ends. */
void watch_leave (void);
void watch_thrown (void);
void watch_free (fnn_Context *c);

/* The half of it that is anomaly mode (anomaly.c). */
typedef struct Written Written;
void anomaly_op (const char *op, Tensor *y, int n, Tensor *const *x);
void anomaly_write (Written **at, const char *op, const Tensor *x,
                    const Tensor *other);
void anomaly_settle (Written **at); /* all of it is written by now */
void anomaly_drop (Written **at);
void anomaly_visit (const Node *n, Tensor *gy);
void anomaly_gradient (const Node *n, int i, Tensor *g);
/* "; called at script.lua:12 (in 0: Linear)", as far as n remembers. */
const char *watch_where (const Node *n);

/*
** The profile
*/

typedef enum Phase { IN_FORWARD, IN_BACKWARD, IN_STEP } Phase;

enum { PROFILE_NAME = 40 };

/* What the calls of one op by one module took.  place: what the context's
** place says of the module, 0 for none. */
typedef struct ProfileRow {
  char op[PROFILE_NAME];
  uint32_t hash;
  Phase phase;
  int place;
  int64_t calls, kernels, ns;
  double bytes; /* of operands and results; 0 for views */
  double made;  /* bytes of storage */
  double flops;
} ProfileRow;

/* One op: nanoseconds from the beginning, of a row. */
typedef struct ProfileEvent {
  int64_t start, ns;
  int row;
} ProfileEvent;

typedef struct Profile {
  ProfileRow *rows;
  size_t nrows, rowcap;
  ProfileEvent *events;
  size_t nevents, eventcap;
  bool traced;
  int64_t opened, total; /* ns */
  int64_t own;           /* that looking on took */
} Profile;

/* From now on until profile_end, of this context; traced: with events. */
void profile_begin (bool traced) LENT(profile_begin);
void profile_end (void) LENT(profile_end);
/* What the last one found, until the next begins; NULL: there was none. */
const Profile *profile_last (void) LENT(profile_last);

/*
** Graphs
*/

/* All nodes that the n tensors come from; each is retained. */
typedef struct Nodes {
  Object o;
  Node **node;
  size_t n, cap;
} Nodes;

Nodes *graph_nodes (int n, Tensor *const *x) LENT(graph_nodes);
/* Where a gradient of x goes: a Node, a Param or NULL; which of the two. */
Object *graph_source_of (const Tensor *x) LENT(graph_source_of);
bool graph_is_param (const Object *source) LENT(graph_is_param);

#endif
