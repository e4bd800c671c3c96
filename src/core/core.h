/* core.h - what the folders above core share and hosts do not see.
**
** state.c     frames, the pool of temporaries, throw
** context.c   contexts and hosts
** memory.c    counted memory, the cache of freed storage; arena.c what a
**             recorded step has of it
** object.c    headers, retain and release, small blocks
** tensor.c    storage and tensors; shape.c their geometry; dtype.c dtypes
** param.c     parameters; graph.c nodes and the walk back
** device.c    the table of kernels of each device
** capture.c   steps that are recorded once and replayed
** watch.c     what looks on while ops run: anomalies, the profile
** threads.c   the pool of threads; cancel.c the token
** random.c    generators; torch.c the one of PyTorch */

#ifndef core_h
#define core_h

#include <setjmp.h>

/* The kernels of cuda/ are C++, where these have the same layout. */
#ifdef __cplusplus
#include <atomic>
using std::atomic_int;
using std::atomic_uint;
using std::atomic_ullong;
#define _Thread_local thread_local
extern "C" {
#else
#include <stdatomic.h>
#endif

#include "../fnn.h"

/* Marks what the bindings, which live in a library of their own, borrow from
** the engine: exported under the name fnn__NAME, and no part of the API. */
#define LENT(name) \
  __asm__("fnn__" #name) __attribute__((visibility("default")))

#define countof(a) ((int)(sizeof(a) / sizeof(*(a))))

/* Kernels of another device call them too: its header says how. */
#ifndef CORE_INLINE
#define CORE_INLINE static inline
#endif
CORE_INLINE int64_t min64 (int64_t a, int64_t b) { return a < b ? a : b; }
CORE_INLINE int64_t max64 (int64_t a, int64_t b) { return a > b ? a : b; }

/*
** {======================================================
** Objects
** =======================================================
*/

/* What the objects of one kind have in common. */
typedef struct Type {
  const char *name;
  void (*destroy)(void *o); /* releases what o holds, not o; must not throw */
} Type;

/* The header of every engine object. */
typedef struct Object {
  const Type *type;
  struct Object *next; /* among the objects that wait for destruction */
  int refs;
  unsigned size; /* bytes of the whole object */
} Object;

/* A zeroed object of the current frame. */
void *object_new (const Type *type, size_t size) LENT(object_new);

/* Its memory alone, for state.c; and all that is kept for such. */
void *object_alloc (fnn_Context *c, size_t size);
void object_free_lists (fnn_Context *c);

/* }====================================================== */

/*
** {======================================================
** Frames and contexts
** =======================================================
*/

/* A landing for errors and the owner of the temporaries above mark. */
typedef struct Frame {
  jmp_buf jump;
  struct Frame *prev;
  size_t mark;
  bool grad_mode; /* as it was, and will be again after a throw */
  uint8_t watch;
  uint8_t autocast;
} Frame;

/* Opens f; then `if (setjmp(f->jump) == 0)`.  frame_leave after success only:
** a throw has left the frame before it jumps. */
void frame_enter (Frame *f) LENT(frame_enter);
void frame_leave (Frame *f) LENT(frame_leave);

/* Gives the frame a reference that the caller holds.  frame_room first makes
** room for n of them where a throw would lose the references. */
void *frame_adopt (void *o) LENT(frame_adopt);
void frame_room (size_t n) LENT(frame_room);
/* The same without allocating; false: no room. */
bool frame_try_adopt (void *o) LENT(frame_try_adopt);

typedef struct Account Account;
typedef struct Arena Arena;
typedef struct Node Node;

enum {
  MESSAGE_MAX = 1024,
  SMALL_CLASSES = 17,
  TINY_CLASSES = 33,
  SPARE_MAX = 8 << 20
};

/* All that one lua_State, or one C host, can set.  Its address is the only
** thread-local word of the engine. */
struct fnn_Context {
  Frame *frame;
  Object **pool; /* temporaries of the open frames */
  size_t npool, poolcap;
  fnn_Status status; /* of the throw in flight */
  char message[MESSAGE_MAX];
  fnn_Host host;
  Account *account;
  fnn_Cancel *cancel; /* one of its references */
  bool child;         /* made by context_child: shares account and token */
  bool grad_mode;
  uint8_t watch;          /* what looks on while ops run (watch.h) */
  uint8_t autocast;       /* fnn_Dtype of products; FNN_F32: their operands' */
  bool exact_convolution; /* by its definition alone */
  bool destroying;        /* an object's destroy runs: others wait in dead */
  bool finalizing;        /* a collector runs us: no reclaim, no poll */
  bool reclaiming;
  void (*reclaim_library)(void *ud); /* the bindings' collector, if any */
  /* Writes where the script is ("script.lua:12") to `to`, of n bytes. */
  void (*where)(void *library, char *to, size_t n);
  int (*place)(void *library, char *to, size_t n); /* see watch.h */
  void *library;
  uint64_t since_collect; /* bytes of storage made since the last collection */
  uint64_t nodes;
  uint64_t sequence;   /* of the next node */
  uint64_t recordings; /* begun so far */
  uint64_t steps;      /* of optimizers, so far */
  struct Walk *walk;   /* the running walk back through a graph */
  struct Watch *watcher;
  fnn_Generator *generator;
  Object *dead;
  Object *small[SMALL_CLASSES]; /* freed objects, by 32 bytes */
  uint64_t spare;               /* bytes of these: up to SPARE_MAX */
  uint64_t objects, object_bytes;
  fnn_Storage *tiny[TINY_CLASSES]; /* freed tiny storages (memory.c) */
  uint64_t tiny_bytes;
  uint64_t conversions; /* copies from one memory order to the other */
  Arena *arena;         /* of the step that is being recorded, or NULL */
  fnn_Capture *capture; /* the step itself */
  const fnn_Device *capture_device;
};

/* The calling thread's context. */
extern _Thread_local fnn_Context *context_now;
fnn_Context *context (void); /* the same; panics when there is none */
FNN_NORETURN void context_panic (fnn_Context *c, const char *text);

/* A context for a thread of c's own (a loader): its own frames and random
** numbers, the same account, host and token. */
fnn_Context *context_child (fnn_Context *c);

/* }====================================================== */

/*
** {======================================================
** Memory
** =======================================================
*/

/* Counted engine memory for anything that is not storage.  mem_new throws;
** mem_try returns NULL instead. */
void *mem_new (size_t bytes) LENT(mem_new);
void *mem_try (size_t bytes);
void mem_free (void *p, size_t bytes) LENT(mem_free);
void *mem_grow (void *p, size_t old, size_t bytes);

/* Accounts: what memory.c counts by. */
Account *account_new (const fnn_Host *host);
Account *account_retain (Account *a);
void account_release (Account *a);
void account_memory (Account *a, const fnn_Device *d, fnn_Memory *m);
void account_limit (Account *a, const fnn_Device *d, uint64_t bytes);
void account_peak_reset (Account *a, const fnn_Device *d);
void account_trim (Account *a, const fnn_Device *d); /* NULL: all */
uint64_t account_live (Account *a);                  /* on all devices */
void *account_alloc (Account *a, size_t bytes); /* uncounted; NULL: none */
void account_free (Account *a, void *p, size_t bytes);

void memory_free_tiny (fnn_Context *c); /* what c keeps for itself */

/* Bytes that c's account has live, on whatever device. */
uint64_t memory_live (fnn_Context *c) LENT(memory_live);

/* The storage of a step that is recorded in c on d, from now to arena_close;
** arena_free when it will not be replayed any more. */
Arena *arena_open (fnn_Context *c, const fnn_Device *d); /* NULL: no memory */
void arena_close (fnn_Context *c);
void arena_free (Arena *a);

bool mem_checking (void); /* the build, or FNN_CACHE=0, recycles nothing */

/* 64-byte aligned scratch that lives until the frame's mark is passed. */
void *mem_scratch (size_t bytes);

/* a * b, or a throw that says what when it does not fit an int64. */
int64_t mem_mul (int64_t a, int64_t b, const char *what);

/* }====================================================== */

/*
** {======================================================
** Tensors
** =======================================================
*/

/* Bytes on a device.  Counted from every context that holds it.  A freed one
** keeps its bytes in the account's cache: the links are of its two lists. */
struct fnn_Storage {
  fnn_Storage *next, *prev;   /* of its size class */
  fnn_Storage *newer, *older; /* of all that are idle */
  atomic_int refs;
  atomic_uint version; /* in-place writes so far */
  bool readonly;
  bool wrapped; /* the bytes are the host's */
  const fnn_Device *device;
  Account *account;
  void *data;
  size_t bytes;
  size_t capacity;                       /* what the allocator gave */
  uint64_t birth;                        /* on a card: which it was */
  struct Arena *arena;                   /* the recording that it is of */
  void (*release)(void *ud, void *data); /* the host's, for wrapped memory */
  void *ud;
};

typedef enum Order { ROWMAJOR, CHANNELSLAST } Order;

/* A view of a storage.  source: what made it: a Node, the Param whose value
** it is, or NULL (plain data); graph_source tells what of it takes part in
** the graph. */
struct fnn_Tensor {
  Object o;
  fnn_Storage *storage;
  Object *source;
  int64_t offset; /* in elements */
  int64_t numel;
  uint8_t dtype; /* fnn_Dtype */
  uint8_t ndim;
  uint8_t order; /* Order; with CHANNELSLAST shape is still (n, c, ...) */
  int64_t shape[FNN_MAXDIM];
  int64_t stride[FNN_MAXDIM];
};

typedef fnn_Tensor Tensor;

/* Tensors.  All results are dense row-major, uninitialised and plain. */
Tensor *tensor_new (int ndim, const int64_t *shape, fnn_Dtype t,
                    const fnn_Device *d);
Tensor *tensor_like (const Tensor *x); /* shape, dtype, device */
Tensor *tensor_like_as (const Tensor *x, fnn_Dtype t);
Tensor *tensor_scalar (double v, fnn_Dtype t, const fnn_Device *d)
    LENT(tensor_scalar);
/* A view of x's storage with other geometry; plain, no bounds checked. */
Tensor *tensor_view (const Tensor *x, int ndim, const int64_t *shape,
                     const int64_t *stride, int64_t offset);
Tensor *tensor_alias (const Tensor *x); /* the same view, plain */
/* A dense tensor over s. */
Tensor *tensor_over (fnn_Storage *s, int ndim, const int64_t *shape,
                     fnn_Dtype t);

/* Copies in another dtype, or on another device; x itself if it fits. */
Tensor *tensor_convert (const Tensor *x, fnn_Dtype t);
Tensor *tensor_move (const Tensor *x, const fnn_Device *d) LENT(tensor_move);

/* Storage of at least bytes, with one reference that is the caller's. */
fnn_Storage *storage_new (const fnn_Device *d, size_t bytes);
/* The same for what is written before a recorded step is replayed: no other
** part of the recording has used the block. */
fnn_Storage *storage_new_apart (const fnn_Device *d, size_t bytes);
fnn_Storage *storage_retain (fnn_Storage *s);
fnn_Storage *storage_wrap (void *data, size_t bytes,
                           void (*release)(void *ud, void *data), void *ud,
                           bool readonly);
void storage_release (fnn_Storage *s);

/* x itself if dense row-major, else a dense copy; plain data either way. */
Tensor *tensor_dense (const Tensor *x);
bool tensor_is_dense (const Tensor *x) LENT(tensor_is_dense);

/* Channels-last: x is (n, c, ...) of 3 dims or more and dense in the order
** (n, ..., c), as its field says.  A new tensor so; x itself if it is so, else
** a view or a copy that is (plain data); a new tensor of x's shape and order,
** whichever that is. */
bool tensor_is_channels_last (const Tensor *x) LENT(tensor_is_channels_last);
Tensor *tensor_new_channels_last (int ndim, const int64_t *shape, fnn_Dtype t,
                                  const fnn_Device *d);
Tensor *tensor_channels_last (const Tensor *x);
Tensor *like_in_order (const Tensor *x, fnn_Dtype t);
bool tensor_same_shape (const Tensor *a, const Tensor *b)
    LENT(tensor_same_shape);
bool tensor_overlaps (const Tensor *a, const Tensor *b);

/* The address of the first element; only kernels may follow it. */
static inline void *tensor_data (const Tensor *x) {
  size_t size = fnn_dtype_size((fnn_Dtype)x->dtype);
  return (char *)x->storage->data + x->offset * (int64_t)size;
}

/* Checks for ops; op is the op's name in messages. */
int tensor_dim (const Tensor *x, int dim, const char *op); /* wraps, throws */
unsigned tensor_dims (const Tensor *x, int n, const int *dims,
                      const char *op); /* a bit a dim; all when n is 0 */
void tensor_check_device (const char *op, const Tensor *a, const Tensor *b);
void tensor_check_float (const char *op, const Tensor *x); /* f32, f64 */
void tensor_check_ids (const char *op, const Tensor *ids); /* i32, i64 */
/* Throws unless x may be written: not read-only, expanded or in a graph. */
void tensor_check_write (const char *op, const Tensor *x)
    LENT(tensor_check_write);
/* Throws unless its memory may be written: not read-only or expanded. */
void tensor_check_memory (const char *op, const Tensor *x);
/* Counts one write: before the kernel, which may be cancelled half-way. */
void tensor_written (Tensor *x);
static inline bool tensor_is_float (const Tensor *x) {
  return x->dtype >= FNN_F16;
}

/* Shapes.  shape_text writes "(2, 3)" into a buffer that lasts a few calls
** on this thread. */
enum { SHAPE_TEXT = 160 };
typedef struct ShapeText {
  char s[SHAPE_TEXT];
} ShapeText;
const char *shape_print (ShapeText *to, int ndim, const int64_t *shape)
    LENT(shape_print);
#define shape_text(x) (shape_print(&(ShapeText){ "" }, (x)->ndim, (x)->shape))
int64_t shape_numel (int ndim, const int64_t *shape); /* throws on overflow */
void shape_strides (int ndim, const int64_t *shape, int64_t *stride);
/* The broadcast shape of a and b; throws naming op and both. */
int shape_broadcast (const char *op, const Tensor *a, const Tensor *b,
                     int64_t *shape);

/* Elements of storage dtypes, one at a time (printing, reading, tests). */
double dtype_get (fnn_Dtype t, const void *p, int64_t i) LENT(dtype_get);
void dtype_set (fnn_Dtype t, void *p, int64_t i, double v) LENT(dtype_set);
static inline bool dtype_is_float (fnn_Dtype t) { return t >= FNN_F16; }
/* Whether the CPU computes in t. */
static inline bool dtype_is_compute (fnn_Dtype t) { return t >= FNN_F32; }
/* Of what is kept to be added to: an optimizer's state of a weight of t. */
static inline fnn_Dtype dtype_of_state (fnn_Dtype t) {
  return dtype_is_compute(t) ? t : FNN_F32;
}
float f16_to_f32 (uint16_t h);
uint16_t f16_from_f32 (float f); /* to nearest even */
static inline float bf16_to_f32 (uint16_t h) {
  union {
    uint32_t u;
    float f;
  } v = { (uint32_t)h << 16 };
  return v.f;
}
uint16_t bf16_from_f32 (float f);

/* }====================================================== */

/*
** {======================================================
** Graph
** =======================================================
*/

/* The derivative of one op: gives each input that wants one its gradient.  A
** float op that has none records a rule whose back is NULL: asking throws. */
typedef struct Rule {
  const char *name; /* the op's; lasts as long as the engine */
  void (*back)(Node *n, Tensor *gy);
} Rule;

enum { NODE_ARGS = 10 };

/* What an output remembers of the op that made it. */
struct Node {
  Object o;
  const Rule *rule;
  uint64_t sequence; /* later nodes have larger ones */
  int nin;
  uint8_t nsave;
  bool spent;          /* passed by a walk that did not keep the graph */
  uint8_t dtype, ndim; /* of the output */
  struct Walk *walk;   /* that it waits in, or is visited by */
  Object *origin;      /* while something looks on: where it was made */
  Tensor *gy;          /* in a walk: what they gave so far */
  Object *hooks;       /* a chain of Hook objects */
  int64_t shape[FNN_MAXDIM];
  int64_t i[NODE_ARGS]; /* the op's own arguments */
  double a[4];
  Object *held;  /* any one object the rule needs: retained */
  Object **in;   /* sources of the inputs: Node, Param or NULL */
  Tensor **save; /* plain aliases, with the versions they had */
  unsigned *version;
};

/* Makes y's node when the graph is on and one of the n inputs has a source;
** else returns NULL and leaves y plain.  nsave places for graph_save. */
Node *graph_record (Tensor *y, const Rule *rule, int n, Tensor *const *x,
                    int nsave);
static inline Node *graph_record1 (Tensor *y, const Rule *rule, Tensor *x,
                                   int nsave) {
  return graph_record(y, rule, 1, &x, nsave);
}
static inline Node *graph_record2 (Tensor *y, const Rule *rule, Tensor *a,
                                   Tensor *b, int nsave) {
  Tensor *x[2] = { a, b };
  return graph_record(y, rule, 2, x, nsave);
}
/* Keeps a plain alias of x (which may be NULL) for the derivative. */
void graph_save (Node *n, int k, const Tensor *x);
/* The k-th saved tensor; throws if it was written since. */
Tensor *graph_saved (Node *n, int k);
/* Whether input i wants a gradient. */
static inline bool graph_wants (const Node *n, int i) {
  return n->in[i] != NULL;
}
/* Gives input i its gradient; sums it to the input's shape first, where the
** input was broadcast, and casts it to its dtype. */
void graph_give (Node *n, int i, Tensor *gx);
/* Shape and dtype of input i, for derivatives that need no more of it. */
int graph_shape (const Node *n, int i, const int64_t **shape);
fnn_Dtype graph_dtype (const Node *n, int i);
/* Whether recording an op on x would make a node. */
bool graph_is_on (const Tensor *x);

/* Mixed precision (ops/autocast.c).  Whether a product of dtype t is to be made
** in 16 bits; what it then reads of x, which is plain data: x's node or Param
** is still the input that is recorded.  And x as an op takes it that needs the
** range of f32. */
bool autocast_is_on (fnn_Dtype t);
Tensor *autocast_data (Tensor *x);
Tensor *autocast_wide (Tensor *x);
/* The dtype of the gradient that a product makes for input i: of gy's, or f32
** where that was rounded for it. */
fnn_Dtype autocast_gradient (const Node *n, int i, const Tensor *gy);

/* }====================================================== */

/*
** {======================================================
** Parameters
** =======================================================
*/

/* State that one owner (an optimizer) keeps for a Param. */
typedef struct Slot {
  struct Slot *next;
  const void *owner;
  int64_t step;
  double product; /* of what was another factor at each step */
  Tensor *t[3];   /* retained; NULL where unused */
} Slot;

/* What was made from a weight: a packed or transformed copy. */
typedef struct Derived {
  struct Derived *next;
  const void *key;
  uint64_t recording; /* that it was made in, or 0 */
  Object *o;          /* retained */
} Derived;

struct fnn_Param {
  Object o;
  Tensor *value; /* its source is this Param, not counted */
  Tensor *grad;  /* plain, or NULL */
  bool frozen;
  Slot *slots;
  Object *hooks;
  Derived *derived;
  unsigned derived_version; /* of the storage that they were made from */
};

typedef fnn_Param Param;
extern const Type param_type, node_type, tensor_type, generator_type;

/* The slot of owner, made zeroed when make is set; else NULL. */
Slot *param_slot (Param *p, const void *owner, bool make);
void param_drop_slot (Param *p, const void *owner);
/* The Param that x is the value of, frozen or not; or NULL. */
static inline Param *param_of (const Tensor *x) {
  Object *s = x->source;
  return s != NULL && s->type == &param_type ? (Param *)s : NULL;
}
/* What a gradient of x flows back to: a Node, a trainable Param or NULL. */
static inline Object *graph_source (const Tensor *x) {
  const Param *p = param_of(x);
  return p != NULL && p->frozen ? NULL : x->source;
}

/* The object that param_derive kept for key, borrowed; NULL when there is
** none or the weight was written, replaced or moved since.  A key is the
** address of something constant: it says what is derived, and how. */
void *param_derived (Param *p, const void *key);
/* Keeps o for key in the place of what was there; what o's Type destroys goes
** with it.  Keeps nothing over a host's writable memory, which changes
** unseen. */
void param_derive (Param *p, const void *key, void *o);

/* }====================================================== */

/*
** {======================================================
** Devices and kernels
** =======================================================
*/

/* What a matrix product does to its result while it is in registers:
** c = act(alpha a b + bias) or, accumulating, c += alpha a b. */
typedef struct Epilogue {
  const Tensor *bias; /* (n) dense, or NULL */
  int act;            /* a row of map.def, or -1 */
  bool accumulate;
  double alpha;
} Epilogue;

/* A convolution of 1, 2 or 3 dims, the missing ones first and of size 1. */
typedef struct ConvShape {
  int64_t n, cin, cout, groups;
  int64_t in[3], out[3], size[3]; /* of the input, the result, the kernel */
  int64_t stride[3], dilation[3];
  int64_t before[3]; /* zeros ahead of each dim; those behind follow */
} ConvShape;

/* The constants of one step of a formula of optim.def: what there is to know
** before the first element is seen.  A row reads those it names. */
#define UPDATE(T) \
  T scale;         /* times the gradient: its sign, a share of a sum */ \
  T couple;        /* times the weight, added to the gradient: decay */ \
  T shrink;        /* times the weight itself: decoupled decay */ \
  T step;          /* the learning rate, corrected for what it is early */ \
  T keep1, take1;  /* of a first mean: what stays and what comes in */ \
  T keep2, take2;  /* of a second mean */ \
  T ahead, follow; /* the shares of the gradient and of its mean */ \
  T root, eps      /* times the root below the line, and added to it */

typedef struct Update {
  UPDATE(double);
} Update;

/* One parameter's share of a step: p and its state s (dense, NULL where there
** is none) change in place by g, which is dense and of p's dtype.  factor, if
** not NULL, is one f64 element on p's device that g is multiplied with too. */
typedef struct Pass {
  Tensor *p;
  const Tensor *g;
  Tensor *s[3];
  const Tensor *factor;
  Update u;
  bool
      refreshed; /* of a recorded step: the list stays, u is kept up to date */
} Pass;

/* Statistics of x (batch, channels, space) or, last, (batch, space, channels):
** a group of channels of one image has its own; pooled, each channel over the
** batch; given, they are known. */
typedef struct Norm {
  int64_t batch, channels, space, groups;
  bool last, pooled, given;
  double eps, momentum; /* momentum: what a running mean takes of a new one */
} Norm;

/* Windows along one axis; the adaptive ones divide it as evenly as they can. */
typedef struct PoolAxis {
  int64_t in, out, kernel, stride, pad, dilation;
} PoolAxis;

/* Of planes (h, w, channels): in row-major order each channel is a plane, and
** channels is 1. */
typedef struct Pooling {
  int64_t planes, channels;
  PoolAxis h, w;
  bool max, adaptive, count_pad;
} Pooling;

/* scale: inputs per output. */
typedef struct ResizeAxis {
  int64_t in, out;
  double scale;
} ResizeAxis;

/* Of planes as in Pooling.  back: y and x are gradients, of in and out. */
typedef struct Resize {
  int64_t planes, channels;
  ResizeAxis h, w;
  fnn_Interpolation mode;
  bool align_corners, antialias, back;
} Resize;

/* The rows of optim.def by number: FORMULA_adam. */
typedef enum Formula {
#define FORMULA(name, ...) FORMULA_##name,
#include "optim.def"
#undef FORMULA
  FORMULA_COUNT
} Formula;

/* Where a draw of random numbers starts.  A kernel on a card begins at block
** counter + (ahead != NULL ? *ahead : 0): ahead points to a word of the card
** that each replay of a captured step moves on.  NULL everywhere else; the CPU
** does not look at it. */
typedef struct Draw {
  uint64_t seed, counter;
  const uint64_t *ahead;
} Draw;

#include "sequences.h"

/* Everything one device can do.  Each line of kernels.def is a field. */
typedef struct Kernels {
#define KERNEL(name, args) void(*name) args;
#define KERNEL_ANY(name, args) void(*name) args;
#include "kernels.def"
#undef KERNEL
#undef KERNEL_ANY
} Kernels;

#include "queues.h"

struct fnn_Device {
  char name[16];
  int index;                 /* among all devices; the CPU is 0 */
  bool host;                 /* its memory is the process's */
  const Kernels *kernels[2]; /* for f64, and for all other dtypes */
  /* Raw memory, and copies between it and the host's. */
  void *(*alloc)(const fnn_Device *d, size_t bytes); /* NULL: none left */
  void (*free)(const fnn_Device *d, void *p, size_t bytes);
  void (*upload)(const fnn_Device *d, void *to, const void *from, size_t n);
  void (*download)(const fnn_Device *d, void *to, const void *from, size_t n);
  const Queues *queues;    /* NULL where host is set */
  atomic_ullong workspace; /* bytes of device_take */
};

/* Memory for a library of the device's: of no account, but told as the device's
** workspace.  NULL: none left, not even after the host has reclaimed and the
** cache is trimmed. */
void *device_take (fnn_Device *d, size_t bytes);
void device_give (fnn_Device *d, void *p, size_t bytes);

/* The step that this context records, if it is one of x's device. */
static inline fnn_Capture *capture_of (const Tensor *x) {
  fnn_Context *c = context_now;
  return c->capture != NULL && c->capture_device == x->storage->device
             ? c->capture
             : NULL;
}

/* What brings a recorded step up to date before it is done: first for the
** first time, when all that the recording did on the host is still true. */
typedef struct Refresh {
  bool (*holds)(void *ud); /* whether it can; changes nothing.  NULL: always */
  void (*update)(void *ud, bool first);
  /* At the end, or when capture_before throws; recorded: whether the step was
  ** ever done.  It must not throw. */
  void (*done)(void *ud, bool recorded);
  void *ud;
} Refresh;
void capture_before (fnn_Capture *c, const Refresh *r);
/* A number that no other recording has, from 1. */
uint64_t capture_number (const fnn_Capture *c);
/* Replays write s. */
void capture_written (fnn_Capture *c, fnn_Storage *s);
/* Where the card finds how far g is ahead of the recording; g draws. */
const uint64_t *capture_draw (fnn_Capture *c, fnn_Generator *g);
/* The object that has this word, for a node that reads it later. */
void *capture_ahead (const fnn_Capture *c, const uint64_t *ahead);

/* Raw pages of the system, aligned to 64 bytes; zeroed or not.  NULL: none. */
void *mem_pages (size_t bytes);
void mem_pages_free (void *p, size_t bytes);

/* Defined by cpu/device.c. */
const fnn_Device *device_cpu (void) LENT(device_cpu);
#include "watch.h"

/* A second kind of device.  Its file tells, before main, how they are found:
** find is called once, when one is asked for, since asking a driver takes
** long.  It registers them in order, or says why there is none; one that is
** there and cannot be used it refuses, and says why. */
void device_finder (void (*find)(void));
void device_register (fnn_Device *d);
void device_refuse (const char *name, const char *why);
void device_missing (const char *why);

/* }====================================================== */

/*
** {======================================================
** Cancelling, threads and random numbers
** =======================================================
*/

#include "cancel.h"

/* Runs f(ud, task, worker) for task 0 .. n-1 on the pool; worker < the
** count that threads_width tells.  Returns when all are done.  f must not
** throw or allocate.  Which worker runs a task is not determined: results
** must not depend on it.  A set cancel token skips the tasks left, and then
** the caller throws.  Inside a task, or while another thread's job has the
** pool, all tasks run on the caller. */
typedef void (*Task)(void *ud, int64_t task, int worker);
void threads_run (int64_t n, Task f, void *ud);
int threads_width (void);

/* Splits 0 .. n-1 into ranges of grain (the last shorter), a task each; one
** range runs on the caller.  The split depends on n and grain alone. */
typedef void (*Range)(void *ud, int64_t lo, int64_t hi);
void threads_range (int64_t n, int64_t grain, Range f, void *ud);

/* mt19937, and the number that PyTorch's normal law has left over. */
typedef struct Mersenne {
  uint32_t state[624];
  int used, has_normal;
  double normal;
} Mersenne;

struct fnn_Generator {
  Object o;
  bool is_torch;
  uint64_t seed, counter; /* counter: of the next block of Philox */
  Mersenne torch[];       /* one, or none */
};

/* The largest value of dtype t below b, which is a value of it, or a if that
** is not less: what rounding must not take a uniform number of [a, b) past. */
double random_most (fnn_Dtype t, double a, double b);

/* The generator's next blocks of 128 bits.  A torch one gives a seed. */
Draw generator_take (fnn_Generator *g, uint64_t blocks);
uint64_t generator_next (fnn_Generator *g); /* 64 bits, on the host */
/* A seed that no other run has. */
uint64_t generator_entropy (void) LENT(generator_entropy);
fnn_Generator *generator_or_default (fnn_Generator *g);

/* What PyTorch's CPU generator gives (torch.c).  y: dense on the CPU, f32 or
** f64; i64 for the last two.  as: the dtype that y will be converted to. */
void torch_seed (Mersenne *t, uint64_t seed);
uint64_t torch_next (Mersenne *t);
void torch_uniform (Mersenne *t, Tensor *y, double lo, double hi);
void torch_normal (Mersenne *t, Tensor *y, double mean, double std,
                   fnn_Dtype as);
void torch_randint (Mersenne *t, Tensor *y, int64_t lo, uint64_t span);
void torch_randperm (Mersenne *t, Tensor *y);

/* Philox4x32-10 (Salmon et al. 2011): makes a block of the counter c. */
static inline void philox_block (const uint32_t key[2], uint32_t c[4]) {
  uint32_t k0 = key[0], k1 = key[1];
  for (int i = 0; i < 10; i++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    uint64_t a = (uint64_t)c[0] * 0xD2511F53;
    uint64_t b = (uint64_t)c[2] * 0xCD9E8D57;
    c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
    c[1] = (uint32_t)b;
    c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
    c[3] = (uint32_t)a;
  }
}

/* The block of a 64-bit counter under a seed. */
void philox (uint64_t seed, uint64_t counter, uint32_t out[4]);

/* }====================================================== */

/* A handle that crosses contexts: a storage and the geometry of a tensor. */
struct fnn_Share {
  fnn_Storage *storage;
  int64_t offset;
  int64_t shape[FNN_MAXDIM];
  uint8_t ndim, dtype;
};

/* The name nearest to s among n names, or NULL when none is near: for "did
** you mean".  names + i * step is the address of the i-th name. */
const char *nearest_name (const char *s, const void *names, int n, size_t step)
    LENT(nearest_name);
/* How many letters must be inserted, dropped, replaced or swapped to make b
** of a, case aside. */
int name_distance (const char *a, const char *b) LENT(name_distance);

#ifdef __cplusplus
}
#endif

#endif
