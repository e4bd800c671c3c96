/* fnn.h - the public C API of fnn: errors, contexts, tensors, ops, graph.
**
** Words.  dim: a place in a shape; here they count from 0 (Lua counts from
** 1), negative ones from the end.  dtype: element type.  numel: number of
** elements.  eps: a small number that keeps a division finite.  lr: learning
** rate.  std: standard deviation.
**
** Errors.  A function never returns NULL and its caller never checks: a
** mistake throws (fnn_throw) to the innermost frame.  C hosts open one with
** fnn_pcall; a binding opens one per call.
**
** Ownership.  Every new object belongs to the current frame and is released
** when the frame is left: results are borrowed.  fnn_retain to keep one,
** fnn_release to give it back.  A setter retains what it stores.
**
** Threads.  A context, and every object made in it, belongs to one thread at
** a time.  Storage may be shared between contexts (fnn_share). */

#ifndef fnn_h
#define fnn_h

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FNN_VERSION_MAJOR 0
#define FNN_VERSION_MINOR 1
#define FNN_VERSION_PATCH 0
#define FNN_VERSION "0.1.0"

#define FNN_API __attribute__((visibility("default")))
#define FNN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#ifdef __cplusplus
#define FNN_NORETURN [[noreturn]]
#else
#define FNN_NORETURN _Noreturn
#endif

/* The most dimensions a tensor has. */
#define FNN_MAXDIM 8

/*
** {======================================================
** Errors and frames
** =======================================================
*/

typedef enum fnn_Status {
  FNN_OK,
  FNN_EARG,    /* an argument out of its range */
  FNN_ESHAPE,  /* shapes that do not fit */
  FNN_EDTYPE,  /* a dtype the function does not take */
  FNN_EDEVICE, /* no such device, or operands on two */
  FNN_EGRAPH,  /* a misuse of gradients */
  FNN_EMEMORY, /* out of memory, or over the limit */
  FNN_EFILE,   /* the system refused a file */
  FNN_EFORMAT, /* a file's content is not what it should be */
  FNN_ECANCEL, /* the cancel token was set */
  FNN_EHOST    /* an error of the host's own, passed through */
} fnn_Status;

/* Throws: releases the frame's temporaries and jumps to its landing.  The
** message reads 'op: what is wrong (expected A, got B)'. */
FNN_API FNN_NORETURN void fnn_throw (fnn_Status code, const char *fmt, ...)
    FNN_PRINTF(2, 3);

/* Runs f(ud) in a frame of the current context and returns FNN_OK, or what
** was thrown; then fnn_message is its text.  Frames nest. */
FNN_API fnn_Status fnn_pcall (void (*f)(void *ud), void *ud);

/* The text of the last error caught in the current context. */
FNN_API const char *fnn_message (void);

/* A place in the frame's pool of temporaries. */
FNN_API size_t fnn_mark (void);

/* Releases all temporaries since mark but o, and returns o (which may be
** NULL).  o then belongs to the frame as if made just now. */
FNN_API void *fnn_escape (size_t mark, void *o);

/* One reference more, and one less.  Both take NULL. */
FNN_API void *fnn_retain (void *o);
FNN_API void fnn_release (void *o);

/* }====================================================== */

/*
** {======================================================
** Contexts and hosts
** =======================================================
*/

typedef struct fnn_Context fnn_Context;
typedef struct fnn_Cancel fnn_Cancel;

typedef enum fnn_Level { FNN_DEBUG, FNN_INFO, FNN_WARNING } fnn_Level;

/* What a host provides.  Start from FNN_HOST_INIT; a NULL member means the
** default.  Only alloc is called from threads that are not the caller's. */
typedef struct fnn_Host {
  size_t size; /* sizeof (fnn_Host), for later versions */
  void *ud;    /* passed to each function */
  /* As lua_Alloc: nsize 0 frees, osize is what was asked for before. */
  void *(*alloc)(void *ud, void *p, size_t osize, size_t nsize);
  void (*log)(void *ud, fnn_Level level, const char *text);
  /* Long work reports step of total (0: unknown); true stops it. */
  bool (*progress)(void *ud, const char *what, int64_t step, int64_t total);
  /* Last words before abort when something throws outside any frame. */
  void (*panic)(void *ud, const char *text);
  /* Asked to drop what it can before an allocation fails; must not throw. */
  void (*reclaim)(void *ud);
  /* Whether a file may be opened ("r" or "w"); NULL allows every file. */
  bool (*open)(void *ud, const char *path, const char *mode);
  uint64_t memory_limit; /* bytes, 0: none */
  int threads;           /* 0: as many as the process may use */
  fnn_Cancel *cancel;    /* NULL: the context makes its own */
} fnn_Host;

#define FNN_HOST_INIT \
  { sizeof(fnn_Host), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* A new context, or NULL when there is no memory for one.  host is copied. */
FNN_API fnn_Context *fnn_open (const fnn_Host *host);
FNN_API void fnn_close (fnn_Context *c);

/* Makes c the calling thread's context and returns the one before. */
FNN_API fnn_Context *fnn_use (fnn_Context *c);
FNN_API fnn_Context *fnn_current (void);

/* Bytes held on the CPU: by live storage and objects, idle in the cache, and
** the highest live ever. */
typedef struct fnn_Memory {
  uint64_t live, idle, peak, limit;
  uint64_t objects, nodes; /* engine objects and graph nodes alive */
  uint64_t conversions;    /* of tensors to another memory order, so far */
  uint64_t allocations;    /* blocks that were asked of the system, so far */
  uint64_t workspace; /* a device's own, whoever uses it: that of cuBLAS */
} fnn_Memory;

FNN_API fnn_Memory fnn_memory (void);
FNN_API void fnn_memory_limit (uint64_t bytes);
FNN_API void fnn_memory_peak_reset (void);
FNN_API void fnn_trim (void); /* gives idle memory back to the system */

/* The same of one device, each of which has its own limit; d NULL: the CPU. */
typedef struct fnn_Device fnn_Device;
FNN_API fnn_Memory fnn_device_memory (const fnn_Device *d);
FNN_API void fnn_device_memory_limit (const fnn_Device *d, uint64_t bytes);
FNN_API void fnn_device_memory_peak_reset (const fnn_Device *d);
FNN_API void fnn_device_trim (const fnn_Device *d);

FNN_API void fnn_report (fnn_Level level, const char *fmt, ...)
    FNN_PRINTF(2, 3); /* to the host's log */
/* Reports progress to the host; throws FNN_ECANCEL when it says stop. */
FNN_API void fnn_progress (const char *what, int64_t step, int64_t total);

/* How many threads of the process's one pool work for the current context,
** the caller included.  n 0: as many as the process has CPUs to run on. */
FNN_API void fnn_threads (int n);
FNN_API int fnn_thread_count (void);

/* A cancel token, or NULL when there is no memory for one.  fnn_cancel may be
** called from any thread or a signal handler; the running op stops within
** about 50 ms and throws FNN_ECANCEL, which clears the token.  While a script
** waits for it (fnn.on_interrupt), the first fnn_cancel only tells the script.
** Tokens are counted: a context keeps the one it was opened with alive. */
FNN_API fnn_Cancel *fnn_cancel_new (void);
FNN_API void fnn_cancel_free (fnn_Cancel *t);
FNN_API void fnn_cancel (fnn_Cancel *t);
FNN_API fnn_Cancel *fnn_cancel_token (fnn_Context *c);
/* Throws FNN_ECANCEL if the current context's token is set. */
FNN_API void fnn_poll (void);

/* The instruction set of the CPU kernels in use: "baseline", "avx2" ... */
FNN_API const char *fnn_isa (void);

/* }====================================================== */

/*
** {======================================================
** Dtypes, devices, generators
** =======================================================
*/

/* In the order in which promotion goes up (ORDER DTYPE). */
typedef enum fnn_Dtype {
  FNN_BOOL,
  FNN_U8,
  FNN_I32,
  FNN_I64,
  FNN_F16,
  FNN_BF16,
  FNN_F32,
  FNN_F64
} fnn_Dtype;

FNN_API const char *fnn_dtype_name (fnn_Dtype t);
FNN_API fnn_Dtype fnn_dtype (const char *name);
FNN_API size_t fnn_dtype_size (fnn_Dtype t);
/* The dtype of a result with operands of dtypes a and b. */
FNN_API fnn_Dtype fnn_promote (fnn_Dtype a, fnn_Dtype b);

/* "cpu", "cuda", "cuda:1".  Throws FNN_EDEVICE, and says why, if there is
** none. */
FNN_API const fnn_Device *fnn_device (const char *name);
FNN_API const char *fnn_device_name (const fnn_Device *d);
/* The first card, or the CPU where there is none. */
FNN_API const fnn_Device *fnn_best_device (void);

/* The devices there are: the CPU is the first. */
FNN_API int fnn_device_count (void);
FNN_API const fnn_Device *fnn_device_at (int i);

/* What a device says of itself. */
typedef struct fnn_DeviceInfo {
  char model[256];      /* "NVIDIA H200"; of the CPU, the kernels in use */
  uint64_t total, free; /* bytes of its memory; free for all who use it */
  int major, minor;     /* the compute capability of a card, 9.0 */
  int driver;           /* the CUDA version that its driver knows: 13000 */
} fnn_DeviceInfo;

FNN_API fnn_DeviceInfo fnn_device_info (const fnn_Device *d);

/* Waits until a device has done all that it was asked for. */
FNN_API void fnn_synchronize (const fnn_Device *d);

/* Random numbers are counter-based: a generator is a seed and a counter.
** "philox" is the engine's own; "torch" is mt19937 with PyTorch's sampling,
** so that a seed gives the noise that PyTorch's CPU generator gives (uniform,
** normal, randint, randperm; dropout takes but its seed from it).  A context
** opens with a philox one of a random seed: it is meant where g is NULL. */
typedef struct fnn_Generator fnn_Generator;

FNN_API fnn_Generator *fnn_generator (const char *kind, uint64_t seed);
FNN_API fnn_Generator *fnn_default_generator (void);
FNN_API void fnn_manual_seed (fnn_Generator *g, uint64_t seed);
FNN_API uint64_t fnn_generator_seed (const fnn_Generator *g);
FNN_API const char *fnn_generator_kind (const fnn_Generator *g);
/* The state as a u8 tensor, and back into a generator of the same kind. */
typedef struct fnn_Tensor fnn_Tensor;
FNN_API fnn_Tensor *fnn_generator_state (const fnn_Generator *g);
FNN_API void fnn_generator_restore (fnn_Generator *g, fnn_Tensor *state);

/* }====================================================== */

/*
** {======================================================
** Steps that are recorded once and replayed
** =======================================================
*/

/* What is asked of a card from fnn_capture_begin to fnn_capture_end, on the
** current context, is written down and not done; fnn_capture_end does it, and
** each fnn_capture_replay again, as one piece of work: from the same tensors
** into the same tensors, with the next random numbers, and in an optimizer's
** step with the options and counts of then.  Meanwhile reading a value,
** copying from or to the host and waiting throw FNN_EGRAPH.  After a throw
** fnn_capture_stop gives up what was being recorded.
**
** fnn_capture_replay returns false, and does nothing, when the recording does
** not hold any more (a generator has another seed, an optimizer other
** parameters or another state): record the step anew. */
typedef struct fnn_Capture fnn_Capture;

FNN_API fnn_Capture *fnn_capture_begin (const fnn_Device *d);
FNN_API void fnn_capture_end (fnn_Capture *c);
FNN_API void fnn_capture_stop (void);
FNN_API bool fnn_capture_replay (fnn_Capture *c);

/* }====================================================== */

/*
** {======================================================
** Tensors
** =======================================================
*/

typedef struct fnn_Storage fnn_Storage;

FNN_API int fnn_ndim (const fnn_Tensor *x);
FNN_API int64_t fnn_size (const fnn_Tensor *x, int dim);
FNN_API const int64_t *fnn_shape (const fnn_Tensor *x);
FNN_API const int64_t *fnn_strides (const fnn_Tensor *x); /* in elements */
FNN_API int64_t fnn_numel (const fnn_Tensor *x);
FNN_API fnn_Dtype fnn_dtype_of (const fnn_Tensor *x);
FNN_API const fnn_Device *fnn_device_of (const fnn_Tensor *x);
FNN_API bool fnn_is_contiguous (const fnn_Tensor *x);
FNN_API bool fnn_is_channels_last (const fnn_Tensor *x);

/* A new tensor on the CPU with a copy of data (row-major). */
FNN_API fnn_Tensor *fnn_tensor (fnn_Dtype t, int ndim, const int64_t *shape,
                                const void *data);

/* A tensor over the host's own memory, without a copy.  release(ud, data) is
** called once, when the last reference to the storage goes. */
FNN_API fnn_Tensor *fnn_wrap (fnn_Dtype t, int ndim, const int64_t *shape,
                              void *data,
                              void (*release)(void *ud, void *data), void *ud,
                              bool readonly);

/* The first element of a contiguous CPU tensor; throws for any other.
** fnn_mutable_data counts a write: derivatives and copies made from the tensor
** before are refused after.  Call it again for each later write. */
FNN_API const void *fnn_data (const fnn_Tensor *x);
FNN_API void *fnn_mutable_data (fnn_Tensor *x);

/* Copies numel elements, in row-major order, out of x on any device. */
FNN_API void fnn_read (const fnn_Tensor *x, void *to);

/* The value of a tensor of one element. */
FNN_API double fnn_item (const fnn_Tensor *x);

/* A counted handle on x's storage for another context, and a tensor made
** there of it; x must be contiguous.  fnn_share_free drops the handle. */
typedef struct fnn_Share fnn_Share;
FNN_API fnn_Share *fnn_share (fnn_Tensor *x);
FNN_API fnn_Tensor *fnn_shared (const fnn_Share *h);
FNN_API void fnn_share_free (fnn_Share *h);

/* Creation.  t is any dtype, d NULL for the CPU. */
FNN_API fnn_Tensor *fnn_empty (int ndim, const int64_t *shape, fnn_Dtype t,
                               const fnn_Device *d);
FNN_API fnn_Tensor *fnn_zeros (int ndim, const int64_t *shape, fnn_Dtype t,
                               const fnn_Device *d);
FNN_API fnn_Tensor *fnn_full (int ndim, const int64_t *shape, double value,
                              fnn_Dtype t, const fnn_Device *d);
FNN_API fnn_Tensor *fnn_arange (double start, double stop, double step,
                                fnn_Dtype t, const fnn_Device *d);
FNN_API fnn_Tensor *fnn_linspace (double start, double stop, int64_t n,
                                  fnn_Dtype t, const fnn_Device *d);
FNN_API fnn_Tensor *fnn_eye (int64_t n, int64_t m, fnn_Dtype t,
                             const fnn_Device *d);
/* Random, of a float dtype: uniform in [lo, hi); randint in [lo, hi), of any
** dtype that holds these integers; randperm: 0 .. n-1 in i64. */
FNN_API fnn_Tensor *fnn_uniform (int ndim, const int64_t *shape, double lo,
                                 double hi, fnn_Dtype t, const fnn_Device *d,
                                 fnn_Generator *g);
FNN_API fnn_Tensor *fnn_normal (int ndim, const int64_t *shape, double mean,
                                double std, fnn_Dtype t, const fnn_Device *d,
                                fnn_Generator *g);
FNN_API fnn_Tensor *fnn_randint (int ndim, const int64_t *shape, int64_t lo,
                                 int64_t hi, fnn_Dtype t, const fnn_Device *d,
                                 fnn_Generator *g);
FNN_API fnn_Tensor *fnn_randperm (int64_t n, const fnn_Device *d,
                                  fnn_Generator *g);

/* Conversion.  x itself when there is nothing to convert. */
FNN_API fnn_Tensor *fnn_cast (fnn_Tensor *x, fnn_Dtype t);
FNN_API fnn_Tensor *fnn_to_device (fnn_Tensor *x, const fnn_Device *d);
FNN_API fnn_Tensor *fnn_contiguous (fnn_Tensor *x);
/* x (n, channels, ...) laid out in memory as (n, ..., channels), which is how
** convolution computes.  Shape and values are the same. */
FNN_API fnn_Tensor *fnn_channels_last (fnn_Tensor *x);
FNN_API fnn_Tensor *fnn_clone (fnn_Tensor *x);

/* }====================================================== */

/*
** {======================================================
** Ops.  Float ops are differentiable unless said otherwise.
** =======================================================
*/

/* Views: they share x's storage (view and reshape copy when they must). */
FNN_API fnn_Tensor *fnn_reshape (fnn_Tensor *x, int ndim,
                                 const int64_t *shape); /* one -1 inferred */
FNN_API fnn_Tensor *fnn_flatten (fnn_Tensor *x, int first, int last);
/* dim as the n dims of sizes, one of which may be -1. */
FNN_API fnn_Tensor *fnn_unflatten (fnn_Tensor *x, int dim, int n,
                                   const int64_t *sizes);
FNN_API fnn_Tensor *fnn_narrow (fnn_Tensor *x, int dim, int64_t start,
                                int64_t length);
FNN_API fnn_Tensor *fnn_slice (fnn_Tensor *x, int dim, int64_t start,
                               int64_t length, int64_t step);
FNN_API fnn_Tensor *fnn_select (fnn_Tensor *x, int dim, int64_t i);
FNN_API fnn_Tensor *fnn_transpose (fnn_Tensor *x, int a, int b);
FNN_API fnn_Tensor *fnn_permute (fnn_Tensor *x, int n, const int *dims);
FNN_API fnn_Tensor *fnn_expand (fnn_Tensor *x, int ndim,
                                const int64_t *shape); /* -1 keeps a size */
FNN_API fnn_Tensor *fnn_squeeze (fnn_Tensor *x, int dim);
FNN_API fnn_Tensor *fnn_squeeze_all (fnn_Tensor *x);
FNN_API fnn_Tensor *fnn_unsqueeze (fnn_Tensor *x, int dim);
FNN_API fnn_Tensor *fnn_diagonal (fnn_Tensor *x, int64_t offset, int a, int b);

/* Joining and repeating. */
FNN_API fnn_Tensor *fnn_cat (int n, fnn_Tensor *const *x, int dim);
FNN_API fnn_Tensor *fnn_stack (int n, fnn_Tensor *const *x, int dim);
FNN_API fnn_Tensor *fnn_repeat (fnn_Tensor *x, int n, const int64_t *times);
FNN_API fnn_Tensor *fnn_flip (fnn_Tensor *x, int n, const int *dims);
FNN_API fnn_Tensor *fnn_roll (fnn_Tensor *x, int64_t shift, int dim);
FNN_API fnn_Tensor *fnn_tril (fnn_Tensor *x, int64_t diagonal);
FNN_API fnn_Tensor *fnn_triu (fnn_Tensor *x, int64_t diagonal);

/* Unary functions: the rows of map.def, by name (fnn_map_find).  a and b are
** a row's parameters. */
FNN_API int fnn_map_find (const char *name); /* -1: none */
FNN_API fnn_Tensor *fnn_map (int op, fnn_Tensor *x, double a, double b);
FNN_API void fnn_map_ (int op, fnn_Tensor *x, double a, double b);

/* Binary functions: the rows of zip.def.  Operands broadcast. */
FNN_API int fnn_zip_find (const char *name);
FNN_API fnn_Tensor *fnn_zip (int op, fnn_Tensor *x, fnn_Tensor *y);
FNN_API void fnn_zip_ (int op, fnn_Tensor *x, fnn_Tensor *y);
/* With a number for y, or, when left, for x; it never widens a float x. */
FNN_API fnn_Tensor *fnn_zip_number (int op, fnn_Tensor *x, double y,
                                    bool left);
FNN_API void fnn_zip_number_ (int op, fnn_Tensor *x, double y);
/* With an integer, exact where x holds integers: a double has 53 bits. */
FNN_API fnn_Tensor *fnn_zip_integer (int op, fnn_Tensor *x, int64_t y,
                                     bool left);
FNN_API void fnn_zip_integer_ (int op, fnn_Tensor *x, int64_t y);

FNN_API fnn_Tensor *fnn_add (fnn_Tensor *x, fnn_Tensor *y);
FNN_API fnn_Tensor *fnn_sub (fnn_Tensor *x, fnn_Tensor *y);
FNN_API fnn_Tensor *fnn_mul (fnn_Tensor *x, fnn_Tensor *y);
FNN_API fnn_Tensor *fnn_div (fnn_Tensor *x, fnn_Tensor *y);
FNN_API fnn_Tensor *fnn_scale (fnn_Tensor *x, double a); /* a x */
FNN_API fnn_Tensor *fnn_relu (fnn_Tensor *x);
FNN_API fnn_Tensor *fnn_exp (fnn_Tensor *x);
FNN_API fnn_Tensor *fnn_log (fnn_Tensor *x);
FNN_API fnn_Tensor *fnn_sqrt (fnn_Tensor *x);
FNN_API fnn_Tensor *fnn_tanh (fnn_Tensor *x);
FNN_API fnn_Tensor *fnn_sigmoid (fnn_Tensor *x);

/* y[i] = c[i] ? a[i] : b[i]; all three broadcast, c is bool. */
FNN_API fnn_Tensor *fnn_where (fnn_Tensor *c, fnn_Tensor *a, fnn_Tensor *b);
FNN_API fnn_Tensor *fnn_masked_fill (fnn_Tensor *x, fnn_Tensor *mask,
                                     double value);
FNN_API void fnn_fill_ (fnn_Tensor *x, double value);
FNN_API void fnn_fill_integer_ (fnn_Tensor *x, int64_t value); /* exact */
FNN_API void fnn_copy_ (fnn_Tensor *x, fnn_Tensor *y); /* y broadcasts */
/* x += share (y - x), for two of one shape. */
FNN_API void fnn_lerp_ (fnn_Tensor *x, fnn_Tensor *y, double share);

/* Reductions: the rows of reduce.def (sum, mean, prod, max, min, any, all,
** argmax, argmin, var, std, norm, logsumexp ...) over the n dims given, over
** all when n is 0.  a is a row's parameter: the correction of var and std, the
** p of norm. */
FNN_API int fnn_reduce_find (const char *name);
FNN_API fnn_Tensor *fnn_reduce (int op, fnn_Tensor *x, int n, const int *dims,
                                bool keepdim, double a);
FNN_API fnn_Tensor *fnn_sum (fnn_Tensor *x, int n, const int *dims,
                             bool keepdim);
FNN_API fnn_Tensor *fnn_mean (fnn_Tensor *x, int n, const int *dims,
                              bool keepdim);
FNN_API fnn_Tensor *fnn_argmax (fnn_Tensor *x, int dim, bool keepdim);
FNN_API fnn_Tensor *fnn_cumsum (fnn_Tensor *x, int dim);
/* The cross product of the vectors along dim, of the shape that x and y
** broadcast to.  Float; throws FNN_ESHAPE unless that size is 3. */
FNN_API fnn_Tensor *fnn_cross (fnn_Tensor *x, fnn_Tensor *y, int dim);
FNN_API fnn_Tensor *fnn_softmax (fnn_Tensor *x, int dim);
FNN_API fnn_Tensor *fnn_log_softmax (fnn_Tensor *x, int dim);

/* x (..., m, k) by y (..., k, n); leading dims broadcast; a vector as in
** PyTorch.  A transposed operand is not copied.  Integers wrap, bools throw. */
FNN_API fnn_Tensor *fnn_matmul (fnn_Tensor *x, fnn_Tensor *y);
/* act(x W' + b): x (..., in), w (out, in), b (out) or NULL; act a row of
** map.def or -1.  One pass for acts whose derivative reads the output. */
FNN_API fnn_Tensor *fnn_linear (fnn_Tensor *x, fnn_Tensor *w, fnn_Tensor *b,
                                int act);
/* "ij,jk->ik", as in numpy, by products of matrices. */
FNN_API fnn_Tensor *fnn_einsum (const char *spec, int n, fnn_Tensor *const *x);

/* Of a convolution over 1, 2 or 3 dims: a place for each, in their order. */
typedef struct fnn_ConvOptions {
  int64_t stride[3], dilation[3];
  int64_t before[3], after[3]; /* zeros at both ends of the input */
  int64_t output_padding[3];   /* of conv_transpose: places at the end */
  int64_t groups;              /* of channels, each convolved by itself */
  int act;                     /* of the result: a row of map.def, or -1 */
} fnn_ConvOptions;

#define FNN_CONV_INIT \
  { { 1, 1, 1 }, { 1, 1, 1 }, { 0 }, { 0 }, { 0 }, 1, -1 }

/* act(x * w + b), * being correlation over the last 1, 2 or 3 dims (what
** deep learning calls convolution): x (n, cin, d...), or one such without n;
** w (cout, cin / groups, k...); b (cout) or NULL; result (n, cout, e...) with
** e = (d + before + after - dilation (k - 1) - 1) / stride + 1, channels-last
** in memory.  f32 and f64; f16 and bf16 are widened.  o NULL: the options of
** FNN_CONV_INIT.  conv_transpose is the gradient of the input as a layer:
** w (cin, cout / groups, k...), e = (d - 1) stride - before - after + dilation
** (k - 1) + output_padding + 1. */
FNN_API fnn_Tensor *fnn_conv (fnn_Tensor *x, fnn_Tensor *w, fnn_Tensor *b,
                              const fnn_ConvOptions *o);
FNN_API fnn_Tensor *fnn_conv_transpose (fnn_Tensor *x, fnn_Tensor *w,
                                        fnn_Tensor *b,
                                        const fnn_ConvOptions *o);

/* Whether convolutions of the current context are computed by their definition
** alone; returns what it was.  Else those in f32 of 3 by 3 and stride 1 may go
** by way of transformed tiles (Lavin and Gray 2016, arXiv:1509.09308), several
** times faster: an error is then about 4e-6 of the largest result, or 5e-7
** with smaller tiles, where the definition's is 2e-7. */
FNN_API bool fnn_exact_convolution (bool on);

/* Ids are integer tensors that count from 0.  The dims of index_select's take
** dim's place.  classes -1: one more than the largest id. */
FNN_API fnn_Tensor *fnn_index_select (fnn_Tensor *x, int dim, fnn_Tensor *ids);
FNN_API fnn_Tensor *fnn_gather (fnn_Tensor *x, int dim, fnn_Tensor *ids);
FNN_API fnn_Tensor *fnn_scatter_add (fnn_Tensor *x, int dim, fnn_Tensor *ids,
                                     fnn_Tensor *src);
FNN_API fnn_Tensor *fnn_masked_select (fnn_Tensor *x, fnn_Tensor *mask);
FNN_API fnn_Tensor *fnn_nonzero (fnn_Tensor *x); /* (count, ndim) i64 */
FNN_API fnn_Tensor *fnn_one_hot (fnn_Tensor *ids, int64_t classes);
/* Values, and through *ids their places (i64, from 0). */
FNN_API fnn_Tensor *fnn_topk (fnn_Tensor *x, int64_t k, int dim, bool largest,
                              fnn_Tensor **ids);
FNN_API fnn_Tensor *fnn_sort (fnn_Tensor *x, int dim, bool descending,
                              fnn_Tensor **ids);

/* Zeroes each element with probability p and scales the rest by 1/(1-p);
** x itself when p is 0. */
FNN_API fnn_Tensor *fnn_dropout (fnn_Tensor *x, double p, fnn_Generator *g);
/* The same for whole channels: what the first n dims of x choose. */
FNN_API fnn_Tensor *fnn_dropout_channels (fnn_Tensor *x, int n, double p,
                                          fnn_Generator *g);

/* Normalization: (x - mean) / sqrt(var + eps) weight + bias, both of x's
** dtype or NULL.  layer_norm: over the last n dims of x, whose shape weight and
** bias have; rms_norm: the same with mean 0 (Zhang and Sennrich 2019).  The
** others take x (n, channels, ...), of 2 dims or more, weight and bias
** (channels), and keep the order in memory. */
FNN_API fnn_Tensor *fnn_layer_norm (fnn_Tensor *x, int n, fnn_Tensor *weight,
                                    fnn_Tensor *bias, double eps);
FNN_API fnn_Tensor *fnn_rms_norm (fnn_Tensor *x, int n, fnn_Tensor *weight,
                                  double eps);
/* Over each channel of the batch (Ioffe and Szegedy 2015).  training: by the
** batch's own statistics, towards which mean and var (channels), or NULL, move
** by momentum, var with Bessel's correction; it needs two values a channel.
** Else by mean and var. */
FNN_API fnn_Tensor *fnn_batch_norm (fnn_Tensor *x, fnn_Tensor *mean,
                                    fnn_Tensor *var, fnn_Tensor *weight,
                                    fnn_Tensor *bias, bool training,
                                    double momentum, double eps);
/* Over groups of channels of each image (Wu and He 2018), which divide the
** channels; or over each channel of each image. */
FNN_API fnn_Tensor *fnn_group_norm (fnn_Tensor *x, int64_t groups,
                                    fnn_Tensor *weight, fnn_Tensor *bias,
                                    double eps);
FNN_API fnn_Tensor *fnn_instance_norm (fnn_Tensor *x, fnn_Tensor *weight,
                                       fnn_Tensor *bias, double eps);

/* Pooling over the last 1 or 2 dims of x: (n, channels, l), (n, channels, h,
** w), or without n; the order in memory is kept. */
typedef struct fnn_PoolOptions {
  int dims;                     /* 1 or 2 */
  int64_t kernel[2], stride[2]; /* stride 0: the kernel */
  int64_t padding[2];           /* at most half the kernel */
  int64_t dilation[2];          /* of maxima alone; 0: 1 */
  bool ceil_mode;               /* sizes are rounded up */
  bool count_include_pad;       /* averages count padding as 0 */
} fnn_PoolOptions;

/* ids: NULL, or where the places of the maxima go (i64: h w + w in their
** plane).  Of equal ones the first wins; NaN over all. */
FNN_API fnn_Tensor *fnn_max_pool (fnn_Tensor *x, const fnn_PoolOptions *o,
                                  fnn_Tensor **ids);
FNN_API fnn_Tensor *fnn_avg_pool (fnn_Tensor *x, const fnn_PoolOptions *o);
/* Windows floor(i in / size) .. ceil((i + 1) in / size); a size of -1 keeps
** the dim. */
FNN_API fnn_Tensor *fnn_adaptive_max_pool (fnn_Tensor *x, int dims,
                                           const int64_t *size,
                                           fnn_Tensor **ids);
FNN_API fnn_Tensor *fnn_adaptive_avg_pool (fnn_Tensor *x, int dims,
                                           const int64_t *size);

/* x (n, channels, l) or (n, channels, h, w) in another size: size, or what
** scale times the old comes to (the other NULL).  Linear is bilinear in 2-D;
** cubic (Keys 1981, a = -3/4) is for 2-D alone.  align_corners: the outermost
** pixels' centres meet, else their edges do. */
typedef enum fnn_Interpolation {
  FNN_NEAREST,
  FNN_LINEAR,
  FNN_CUBIC
} fnn_Interpolation;
FNN_API fnn_Tensor *fnn_interpolate (fnn_Tensor *x, const int64_t *size,
                                     const double *scale,
                                     fnn_Interpolation mode,
                                     bool align_corners);
/* (..., c r^2, h, w) to (..., c, h r, w r) and back (Shi et al. 2016). */
FNN_API fnn_Tensor *fnn_pixel_shuffle (fnn_Tensor *x, int64_t r);
FNN_API fnn_Tensor *fnn_pixel_unshuffle (fnn_Tensor *x, int64_t r);

/* The halves a, b of x along dim: a sigmoid(b); silu(a) b; a gelu(b). */
FNN_API fnn_Tensor *fnn_glu (fnn_Tensor *x, int dim);
FNN_API fnn_Tensor *fnn_swiglu (fnn_Tensor *x, int dim);
FNN_API fnn_Tensor *fnn_geglu (fnn_Tensor *x, int dim);
/* x where positive, else weight x: weight has 1 element, or one a channel
** (dim 1 of x). */
FNN_API fnn_Tensor *fnn_prelu (fnn_Tensor *x, fnn_Tensor *weight);
/* x' A y + bias of vectors: x (..., n), y (..., m), weight A (out, n, m), bias
** (out) or NULL; result (..., out). */
FNN_API fnn_Tensor *fnn_bilinear (fnn_Tensor *x, fnn_Tensor *y,
                                  fnn_Tensor *weight, fnn_Tensor *bias);

/* }====================================================== */

/*
** {======================================================
** Graph and parameters
** =======================================================
*/

/* A handle on one weight, its gradient and the optimizer's state for it. */
typedef struct fnn_Param fnn_Param;

FNN_API fnn_Param *fnn_param (fnn_Tensor *x); /* retains x, detached */
/* The weight as a tensor for ops: a leaf of the graph unless frozen. */
FNN_API fnn_Tensor *fnn_value (fnn_Param *p);
FNN_API fnn_Tensor *fnn_gradient (fnn_Param *p); /* NULL when absent */
FNN_API void fnn_set_gradient (fnn_Param *p, fnn_Tensor *g); /* or NULL */
FNN_API void fnn_set_value (fnn_Param *p, fnn_Tensor *x);    /* same shape */
FNN_API void fnn_freeze (fnn_Param *p, bool frozen);
FNN_API bool fnn_is_frozen (const fnn_Param *p);
/* Moves weight, gradient and optimizer state. */
FNN_API void fnn_param_to (fnn_Param *p, const fnn_Device *d, fnn_Dtype t);

/* Whether a gradient would flow back from x. */
FNN_API bool fnn_has_graph (const fnn_Tensor *x);
/* x's data without its graph. */
FNN_API fnn_Tensor *fnn_detach (fnn_Tensor *x);
/* Gradients of x, weighted by gy (NULL: 1, and x of one element), added to
** each Param below.  The graph is spent unless kept. */
FNN_API void fnn_backward (fnn_Tensor *x, fnn_Tensor *gy, bool keep);
/* The same into g[i] (NULL where x does not depend on p[i]); the Params'
** own gradients stay as they are. */
FNN_API void fnn_grad (fnn_Tensor *x, fnn_Tensor *gy, int n,
                       fnn_Param *const *p, fnn_Tensor **g, bool keep);
/* Whether ops are recorded; returns what it was. */
FNN_API bool fnn_grad_mode (bool on);
FNN_API bool fnn_is_grad_mode (void);
/* From now on products (matmul, linear, convolution) round f32 operands to t,
** f16 or bf16, and what needs the range of f32 takes 16-bit operands as f32;
** FNN_F32: nothing of that.  Returns what it was; a throw restores it. */
FNN_API fnn_Dtype fnn_autocast (fnn_Dtype t);
/* Whether the first op whose result is not finite throws, and the first
** derivative, naming it; returns what it was. */
FNN_API bool fnn_anomaly_mode (bool on);

/* An op of the host's own.  forward has been done: y is its result from the
** n inputs x.  back(ud, gy, gx) fills gx[i] with the gradient of x[i], or
** leaves NULL for zero; release(ud) is called once, when it cannot be called
** any more, but not if fnn_record throws. */
typedef void (*fnn_Back)(void *ud, fnn_Tensor *gy, fnn_Tensor **gx);
FNN_API void fnn_record (fnn_Tensor *y, const char *name, int n,
                         fnn_Tensor *const *x, fnn_Back back,
                         void (*release)(void *ud), void *ud);
/* f(ud, g) sees each gradient that reaches x and returns the one to use;
** release as above. */
typedef fnn_Tensor *(*fnn_Hook)(void *ud, fnn_Tensor *g);
FNN_API void fnn_hook (fnn_Tensor *x, fnn_Hook f, void (*release)(void *ud),
                       void *ud);

/* }====================================================== */

/*
** {======================================================
** Files.  Paths go through the host's open.  A bad file throws FNN_EFORMAT,
** one that the system refuses FNN_EFILE; the message begins with the path.
** Writers leave the old file or the whole new one.
** =======================================================
*/

/* A safetensors file; its tensors are read one at a time, on the CPU.  Dtypes
** that the engine lacks widen: I8 I16 U16 to i32, U32 U64 to i64, F8 to f32.
** Strings and shapes last as long as f. */
typedef struct fnn_Safetensors fnn_Safetensors;
FNN_API fnn_Safetensors *fnn_safetensors_open (const char *path);
FNN_API int64_t fnn_safetensors_count (const fnn_Safetensors *f);
FNN_API int64_t fnn_safetensors_find (const fnn_Safetensors *f,
                                      const char *name); /* -1: none */
FNN_API const char *fnn_safetensors_name (const fnn_Safetensors *f, int64_t i);
FNN_API const char *fnn_safetensors_dtype (const fnn_Safetensors *f,
                                           int64_t i); /* "BF16" */
/* Returns the number of dims. */
FNN_API int fnn_safetensors_shape (const fnn_Safetensors *f, int64_t i,
                                   const int64_t **shape);
FNN_API fnn_Tensor *fnn_safetensors_read (fnn_Safetensors *f, int64_t i);
/* The metadata: NULL when there is no such key. */
FNN_API const char *fnn_safetensors_meta (const fnn_Safetensors *f,
                                          const char *key);
FNN_API int64_t fnn_safetensors_meta_count (const fnn_Safetensors *f);
FNN_API const char *fnn_safetensors_meta_key (const fnn_Safetensors *f,
                                              int64_t i);
/* Writes n tensors in the order given, and nmeta pairs of metadata. */
FNN_API void fnn_safetensors_write (const char *path, int n,
                                    const char *const *names,
                                    fnn_Tensor *const *x, int nmeta,
                                    const char *const *keys,
                                    const char *const *values);

/* numpy's .npy: one array of numbers or bools. */
FNN_API fnn_Tensor *fnn_npy_read (const char *path);
FNN_API void fnn_npy_write (const char *path, fnn_Tensor *x); /* not bf16 */

/* IDX, the format of MNIST, plain or in gzip. */
FNN_API fnn_Tensor *fnn_idx_read (const char *path);

/* Whether there is a file that may be read. */
FNN_API bool fnn_is_file (const char *path);
/* Fetches url (http or https) into path, whose folders are made.  Unless size
** is negative, the content, unzipped if it is in gzip, must have that many
** bytes and that CRC-32.  Reports progress.  The host's open is asked for url
** too.  Throws FNN_EFILE where there is no network. */
FNN_API void fnn_download (const char *url, const char *path, int64_t size,
                           uint32_t crc);

/* A table of numbers in CSV, plain or in gzip, perhaps with a column of class
** names: class ids count from 0 in the sorted order of the names (numbers by
** value, before others by bytes). */
enum { FNN_CSV_NOLABEL = INT32_MIN };
typedef struct fnn_CsvOptions {
  char separator;
  int header;      /* 1: the first row has names; 0: it has not; -1: it has
                      if none of its fields is a number */
  int label;       /* the column of class names; negative from the end */
  fnn_Dtype dtype; /* of the values: FNN_F32 or FNN_F64 */
} fnn_CsvOptions;
#define FNN_CSV_INIT \
  { ',', -1, FNN_CSV_NOLABEL, FNN_F32 }

typedef struct fnn_Csv fnn_Csv;
FNN_API fnn_Csv *fnn_csv_read (const char *path, const fnn_CsvOptions *o);
FNN_API fnn_Tensor *fnn_csv_values (const fnn_Csv *c); /* (rows, columns) */
FNN_API fnn_Tensor *fnn_csv_labels (const fnn_Csv *c); /* (rows) i64, NULL */
FNN_API int fnn_csv_class_count (const fnn_Csv *c);
FNN_API const char *fnn_csv_class (const fnn_Csv *c, int i);
/* The name of a column of values; NULL without a header. */
FNN_API const char *fnn_csv_column (const fnn_Csv *c, int i);

/* A PNG image, decoded, and its texts (UTF-8). */
typedef struct fnn_Png fnn_Png;
FNN_API fnn_Png *fnn_png_read (const char *path);
/* u8 (h, w, channels); channels 0: as in the file, 1: grey, 2: grey and
** alpha, 3: RGB, 4: RGBA.  16 bits are rounded to 8; alpha that is not asked
** for is dropped, a missing one is 255; grey is ITU-R 601's luma. */
FNN_API fnn_Tensor *fnn_png_image (fnn_Png *p, int channels);
FNN_API int fnn_png_text_count (const fnn_Png *p);
FNN_API const char *fnn_png_text (const fnn_Png *p, int i, const char **key);
/* x: u8 (h, w) or (h, w, 1 .. 4). */
FNN_API void fnn_png_write (const char *path, fnn_Tensor *x, int ntext,
                            const char *const *keys, const char *const *texts);
/* The same file as u8 (bytes). */
FNN_API fnn_Tensor *fnn_png_encode (fnn_Tensor *x, int ntext,
                                    const char *const *keys,
                                    const char *const *texts);

/* Drawing into an image, u8 (h, w, 3) on the CPU; what is outside is cut
** off.  color is 0xRRGGBB.  A letter takes 6 by 9 dots of scale pixels, a
** line 10; line 0 fills the rectangle, else it is the frame's width. */
FNN_API void fnn_draw_rect (fnn_Tensor *image, int64_t x, int64_t y, int64_t w,
                            int64_t h, int64_t line, uint32_t color);
FNN_API void fnn_draw_text (fnn_Tensor *image, int64_t x, int64_t y, int scale,
                            uint32_t color, const char *text);

/* }====================================================== */

#ifdef __cplusplus
}
#endif

#include "fnn_sequence.h"

#endif
