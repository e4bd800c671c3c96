/* cublas.cu - cuBLAS, opened at the first product; one handle a card.
**
** The declarations and numbers below are those of the documentation of cuBLAS
** ("cuBLAS Datatypes Reference") and of library_types.h, which have not
** changed since CUDA 11. */

#include "cublas.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>

/*
** {======================================================
** The library
** =======================================================
*/

typedef struct Handle Handle; /* cublasHandle_t */

/* cublasOperation_t, cudaDataType, cublasComputeType_t, cublasMath_t */
enum { OP_N = 0, OP_T = 1 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32F_FAST_TF32 = 77 };
enum { MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16 };
enum { GEMM_DEFAULT = -1 };

/* The functions, as FUNCTION(field, name, arguments); all give a status, 0
** for success. */
#define FUNCTIONS \
  FUNCTION(create, "cublasCreate_v2", (Handle * *h)) \
  FUNCTION(destroy, "cublasDestroy_v2", (Handle * h)) \
  FUNCTION(set_stream, "cublasSetStream_v2", (Handle * h, cudaStream_t s)) \
  FUNCTION(set_workspace, "cublasSetWorkspace_v2", \
           (Handle * h, void *p, size_t bytes)) \
  FUNCTION(set_math, "cublasSetMathMode", (Handle * h, int mode)) \
  FUNCTION(gemm, "cublasGemmStridedBatchedEx", \
           (Handle * h, int opa, int opb, int m, int n, int k, \
            const void *alpha, const void *a, int ta, int lda, long long sa, \
            const void *b, int tb, int ldb, long long sb, const void *beta, \
            void *c, int tc, int ldc, long long sc, int batch, int compute, \
            int algorithm))

typedef struct Blas {
#define FUNCTION(field, name, args) int(*field) args;
  FUNCTIONS
#undef FUNCTION
} Blas;

enum { CARDS = 16, TEXT = 512 };

/* Written once, under the lock, and only read from then on. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Blas blas;
static bool opened;
static Handle *handles[CARDS];

/* Of a handle: the larger of the sizes that the documentation of
** cublasSetWorkspace recommends. */
static const size_t WORKSPACE = 32 << 20;

/* Fills b from the first library there is; else writes to why. */
static bool blas_find (Blas *b, char *why) {
  static const char *const names[] = { "libcublas.so.13", "libcublas.so.12",
                                       "libcublas.so.11", "libcublas.so" };
  void *library = NULL;
  int at = 0;
  for (; at < countof(names) && library == NULL; at++)
    library = library_open(names[at]);
  if (library == NULL) {
    snprintf(why, TEXT,
             "cuBLAS is not installed (tried %s, %s, %s and %s): it comes "
             "with the CUDA toolkit; LD_LIBRARY_PATH says where it is",
             names[0], names[1], names[2], names[3]);
    return false;
  }
#define FUNCTION(field, name, args) \
  if ((b->field = (int(*) args)library_symbol(library, name)) == NULL) { \
    snprintf(why, TEXT, "%s has no %s: it is older than CUDA 11.2", \
             names[at - 1], name); \
    return false; \
  }
  FUNCTIONS
#undef FUNCTION
  return true;
}

/* What cublasStatus_t says, in its own words. */
static const char *status_text (int status) {
  switch (status) {
    case 1: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3: return "CUBLAS_STATUS_ALLOC_FAILED";
    case 7: return "CUBLAS_STATUS_INVALID_VALUE";
    case 8: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case 11: return "CUBLAS_STATUS_MAPPING_ERROR";
    case 13: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case 15: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case 16: return "CUBLAS_STATUS_LICENSE_ERROR";
    default: return "an unknown status";
  }
}

/* A handle with memory of its own: what cuBLAS would allocate as it runs
** could not be recorded into a graph.  16-bit products add up in f32 even
** where their sums are split. */
static Handle *handle_new (const Blas *b, const Cuda *card, void *workspace,
                           char *why) {
  Handle *h = NULL;
  int status = b->create(&h);
  if (status == 0) status = b->set_stream(h, card->compute);
  if (status == 0) status = b->set_workspace(h, workspace, WORKSPACE);
  if (status == 0)
    status = b->set_math(h, MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  if (status == 0) return h;
  if (h != NULL) b->destroy(h);
  snprintf(why, TEXT, "cuBLAS does not start: %s", status_text(status));
  return NULL;
}

/* The card's handle, or NULL; the library is opened. */
static Handle *handle_there (const Cuda *card, char *why) {
  pthread_mutex_lock(&lock);
  if (!opened) opened = blas_find(&blas, why);
  Handle *h = handles[card->id];
  pthread_mutex_unlock(&lock);
  return h;
}

/* The card's handle, made at its first product.  The memory is taken outside
** the lock: that may throw, or collect. */
static Handle *handle_of (Cuda *card, const char *op) {
  char why[TEXT] = "";
  Handle *h = handle_there(card, why);
  if (h != NULL) return h;
  if (why[0] != '\0') fnn_throw(FNN_EDEVICE, "%s: %s", op, why);
  void *workspace = device_take(&card->device, WORKSPACE);
  if (workspace == NULL)
    fnn_throw(FNN_EMEMORY,
              "%s: no memory on %s for the workspace of cuBLAS (%d MB)", op,
              card->device.name, (int)(WORKSPACE >> 20));
  pthread_mutex_lock(&lock);
  bool mine = handles[card->id] == NULL; /* else another thread was sooner */
  if (mine) handles[card->id] = handle_new(&blas, card, workspace, why);
  h = handles[card->id];
  pthread_mutex_unlock(&lock);
  if (!mine || h == NULL) device_give(&card->device, workspace, WORKSPACE);
  if (h == NULL) fnn_throw(FNN_EDEVICE, "%s: %s", op, why);
  return h;
}

/* }====================================================== */

/*
** {======================================================
** Products
** =======================================================
*/

static int type_of (fnn_Dtype t) {
  switch (t) {
    case FNN_F64: return R_64F;
    case FNN_F16: return R_16F;
    case FNN_BF16: return R_16BF;
    default: return R_32F;
  }
}

bool cublas_takes (fnn_Dtype ab, fnn_Dtype c) {
  return ab == c || (ab != FNN_F64 && c == FNN_F32);
}

/* Its sizes are ints. */
static void check_sizes (const Product *p, const char *op) {
  int64_t most = max64(max64(p->m, p->n), p->k);
  most = max64(most, max64(max64(p->a.ld, p->b.ld), p->ldc));
  if (most > INT_MAX)
    fnn_throw(FNN_ESHAPE,
              "%s: cuBLAS takes no size over %d (m %lld, n %lld, k %lld)", op,
              INT_MAX, (long long)p->m, (long long)p->n, (long long)p->k);
}

/* The batch in parts, for it is an int too and becomes one dim of a grid. */
void cublas_product (Cuda *card, const Product *p, const char *op) {
  enum { MOST = 65535 };
  Handle *h = handle_of(card, op);
  float alpha = (float)p->alpha, beta = (float)p->beta;
  bool wide = p->ab == FNN_F64;
  int t = type_of(p->ab), tc = type_of(p->dtype);
  int64_t size = (int64_t)fnn_dtype_size(p->ab);
  int64_t csize = (int64_t)fnn_dtype_size(p->dtype);
  check_sizes(p, op);
  for (int64_t i = 0; i < p->batch; i += MOST) {
    int status = blas.gemm(
        h, p->b.transposed ? OP_T : OP_N, p->a.transposed ? OP_T : OP_N,
        (int)p->n, (int)p->m, (int)p->k,
        wide ? (const void *)&p->alpha : &alpha,
        (const char *)p->b.data + i * p->b.step * size, t, (int)p->b.ld,
        p->b.step, (const char *)p->a.data + i * p->a.step * size, t,
        (int)p->a.ld, p->a.step, wide ? (const void *)&p->beta : &beta,
        (char *)p->c + i * p->cstep * csize, tc, (int)p->ldc, p->cstep,
        (int)min64(MOST, p->batch - i), wide ? COMPUTE_64F : COMPUTE_32F,
        GEMM_DEFAULT);
    cuda_launched(card, "of cuBLAS");
    if (status != 0)
      fnn_throw(FNN_EDEVICE, "%s: cuBLAS: %s", op, status_text(status));
  }
}

/* }====================================================== */
