/* sweep.h - elementwise loops over tensors of any strides.
**
** A loop maps runs of dense elements: it reads n of each in[k] and writes n
** to z, which may be one of them.  A sweep takes it over tensors of one shape:
** it merges dims, splits the work among threads, and where a run is not dense
** or not of the type that the loop computes in brings it through a small
** buffer, so that a loop is written once. */

#ifndef sweep_h
#define sweep_h

#include "cpu.h"

/* The name of what serves both passes: the float pass compiles it. */
#define ONCE(name) CPU_PASTE(name, CPU_ISA, f32)

enum { SWEEP_MAX = 6 };

typedef void (*Loop)(void *z, const void *const *in, int64_t n, double a,
                     double b);

/* One operand, the result first.  lane: the dtype that the loop sees. */
typedef struct Operand {
  char *data;
  uint8_t dtype, lane;
  int64_t stride[FNN_MAXDIM]; /* of the merged dims, in elements */
} Operand;

typedef struct Sweep {
  Loop loop;
  double a, b; /* the loop's own */
  int count;   /* operands */
  int ndim;    /* of the merged geometry */
  int64_t numel;
  int64_t shape[FNN_MAXDIM];
  bool stream; /* the result goes past the caches */
  /* NULL, or where each GRAIN of elements leaves the sum of its results, which
  ** are then stored nowhere; the result's operand only gives the geometry. */
  double *sums;
  Operand at[SWEEP_MAX];
} Sweep;

/* Sets up s for operands t, the result first. */
void ONCE(sweep_open)(Sweep *s, int count, const Tensor *const *t);
/* Runs s->loop over all. */
void ONCE(sweep_run)(Sweep *s);

/* n elements of dtype t at p, stride apart, as a dense run of dtype lane: p
** itself or buf. */
const void *ONCE(run_load)(void *buf, const void *p, fnn_Dtype t,
                           fnn_Dtype lane, int64_t stride, int64_t n);
/* The way back. */
void ONCE(run_store)(void *p, fnn_Dtype t, int64_t stride, const void *buf,
                     fnn_Dtype lane, int64_t n);

/* Copies a run of bytes past the caches where it can; run_fence after the
** last of a task. */
void ONCE(run_stream)(void *to, const void *from, size_t bytes);
void ONCE(run_fence)(void);

/* Asks for bytes that will be read soon.  Streamed stores between the loads
** keep the hardware from running ahead of them by itself. */
static inline void run_prefetch (const void *from, size_t bytes) {
  enum { LINE = 64 };
  for (size_t i = 0; i < bytes; i += LINE)
    __builtin_prefetch((const char *)from + i);
}

/* Bytes of a result that no cache would still hold when it is next read. */
enum { STREAM = 16 << 20 };

/* What stands for an operand that is one number. */
typedef union Number {
  float f;
  double d;
  int64_t i;
} Number;

/* Makes operand k a repeated number of a real dtype; n must last. */
void ONCE(sweep_number)(Sweep *s, int k, Number *n, double v);

/* The dtype that elements of t are computed in: f32, f64 or i64. */
static inline fnn_Dtype lane_of (fnn_Dtype t) {
  return t == FNN_F64 ? FNN_F64 : t >= FNN_F16 ? FNN_F32 : FNN_I64;
}

#endif
