/* blas.cc - cuBLAS's products of matrices, by plain loops.
**
** It is stricter than the real one: each matrix must lie inside one
** allocation.  Types, sums and statuses are as its documentation says; inputs
** are rounded to TF32 where the card may do that. */

#include "machine.h"

#include <cublas_v2.h>

struct cublasContext {
  cudaStream_t stream;
  cublasMath_t math;
};

namespace emu {

struct Matrix {
  const void *p;
  cudaDataType type;
  int ld;
  bool transposed;
};

struct Product {
  int m, n, k;
  double alpha, beta;
  Matrix a, b, c;
  bool tf32; /* a and b are rounded */
  bool wide; /* sums in double */
};

static size_t size_of (cudaDataType t) {
  return t == CUDA_R_64F ? 8 : t == CUDA_R_32F ? 4 : 2;
}

/* Element i of p. */
static double load (const void *p, size_t i, cudaDataType t) {
  switch (t) {
    case CUDA_R_64F: return ((const double *)p)[i];
    case CUDA_R_16F: return ((const __half *)p)[i];
    case CUDA_R_16BF: return ((const __nv_bfloat16 *)p)[i];
    default: return ((const float *)p)[i];
  }
}

static void store (void *p, size_t i, cudaDataType t, double v) {
  switch (t) {
    case CUDA_R_64F: ((double *)p)[i] = v; break;
    case CUDA_R_16F: ((__half *)p)[i] = __half((float)v); break;
    case CUDA_R_16BF: ((__nv_bfloat16 *)p)[i] = __nv_bfloat16((float)v); break;
    default: ((float *)p)[i] = (float)v; break;
  }
}

static double round_tf32 (double v) {
  return shim_float((shim_bits((float)v) + 0x1000) & ~0x1fffu);
}

/* Columns of a matrix one after another, as T. */
template <class T>
static std::vector<T> packed (const Matrix *x, int rows, int columns,
                              bool tf32) {
  std::vector<T> r((size_t)rows * (size_t)columns);
  for (size_t j = 0; j < (size_t)columns; j++)
    for (size_t i = 0; i < (size_t)rows; i++) {
      size_t at =
          x->transposed ? j + i * (size_t)x->ld : i + j * (size_t)x->ld;
      double v = load(x->p, at, x->type);
      r[i + j * (size_t)rows] = (T)(tf32 ? round_tf32(v) : v);
    }
  return r;
}

template <class T> static void multiply (const Product *p) {
  size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
  std::vector<T> a = packed<T>(&p->a, p->m, p->k, p->tf32);
  std::vector<T> b = packed<T>(&p->b, p->k, p->n, p->tf32);
  std::vector<T> sums(m);
  void *c = (void *)p->c.p;
  for (size_t j = 0; j < n; j++) {
    for (T &s : sums) s = 0;
    for (size_t l = 0; l < k; l++)
      for (size_t i = 0; i < m; i++) sums[i] += b[j * k + l] * a[l * m + i];
    for (size_t i = 0; i < m; i++) {
      size_t at = i + j * (size_t)p->c.ld;
      double old = p->beta != 0 ? p->beta * load(c, at, p->c.type) : 0;
      store(c, at, p->c.type, (double)(T)(p->alpha * sums[i] + old));
    }
    mark((uint8_t *)c + j * (size_t)p->c.ld * size_of(p->c.type),
         m * size_of(p->c.type), true);
  }
}

static void run_product (const Product *p) {
  memory_unlock(p->a.p);
  memory_unlock(p->b.p);
  memory_unlock(p->c.p);
  if (p->wide) multiply<double>(p);
  else multiply<float>(p);
}

/*
** {======================================================
** Checks
** =======================================================
*/

/* Rows of a matrix as it lies in memory. */
static int rows_of (const Matrix *x, int rows, int columns) {
  return x->transposed ? columns : rows;
}

static bool lies_inside (const Matrix *x, int rows, int columns,
                         const char *name) {
  int r = rows_of(x, rows, columns), c = rows_of(x, columns, rows);
  if (r == 0 || c == 0) return true;
  size_t n = (size_t)(c - 1) * (size_t)x->ld + (size_t)r;
  return inside(x->p, n * size_of(x->type), true, name);
}

static bool known (cudaDataType t) {
  return t == CUDA_R_32F || t == CUDA_R_64F || t == CUDA_R_16F ||
         t == CUDA_R_16BF;
}

/* The table of cublasGemmEx, as far as real numbers go. */
static bool types_fit (const Product *p, cublasComputeType_t compute) {
  cudaDataType ab = p->a.type, c = p->c.type;
  if (ab != p->b.type || !known(ab) || !known(c)) return false;
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return ab == CUDA_R_16F && c == CUDA_R_16F;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      return ab != CUDA_R_64F && (c == ab || c == CUDA_R_32F);
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return ab == CUDA_R_32F && c == CUDA_R_32F;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return ab == CUDA_R_64F && c == CUDA_R_64F;
    default: return false;
  }
}

static bool leads (const Matrix *x, int rows, int columns) {
  int r = rows_of(x, rows, columns);
  return x->ld >= (r > 1 ? r : 1);
}

/* What is wrong with a product whatever its addresses, or NULL. */
static const char *shape_fault (const Product *p) {
  if (p->m < 0 || p->n < 0 || p->k < 0) return "a negative size";
  if (!leads(&p->a, p->m, p->k)) return "lda is less than the rows of A";
  if (!leads(&p->b, p->k, p->n)) return "ldb is less than the rows of B";
  if (!leads(&p->c, p->m, p->n)) return "ldc is less than m";
  return NULL;
}

static cublasStatus_t refuse (const Product *p, const char *why,
                              cublasStatus_t status) {
  report("cublas", NULL,
         "gemm m %d n %d k %d lda %d ldb %d ldc %d transposed %d %d: %s", p->m,
         p->n, p->k, p->a.ld, p->b.ld, p->c.ld, p->a.transposed,
         p->b.transposed, why);
  return status;
}

static cublasStatus_t check (const Product *p, int batch,
                             cublasComputeType_t compute) {
  const char *fault = batch < 0 ? "a negative size" : shape_fault(p);
  if (fault != NULL) return refuse(p, fault, CUBLAS_STATUS_INVALID_VALUE);
  if (!types_fit(p, compute))
    return refuse(p, "an unsupported combination of types",
                  CUBLAS_STATUS_NOT_SUPPORTED);
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_places (const Product *p) {
  if (p->m == 0 || p->n == 0) return CUBLAS_STATUS_SUCCESS;
  if (!lies_inside(&p->a, p->m, p->k, "A") ||
      !lies_inside(&p->b, p->k, p->n, "B") ||
      !lies_inside(&p->c, p->m, p->n, "C"))
    return refuse(p, "a matrix outside its allocation",
                  CUBLAS_STATUS_EXECUTION_FAILED);
  return CUBLAS_STATUS_SUCCESS;
}

/* }====================================================== */

/* A scale factor, in the type that the sums have. */
static double scale_of (const void *p, cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC: return *(const __half *)p;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC: return *(const double *)p;
    default: return *(const float *)p;
  }
}

static Product product_of (cublasHandle_t h, cublasOperation_t ta,
                           cublasOperation_t tb, int m, int n, int k,
                           const void *alpha, cudaDataType at, int lda,
                           cudaDataType bt, int ldb, const void *beta,
                           cudaDataType ct, int ldc,
                           cublasComputeType_t compute) {
  Product p;
  memset(&p, 0, sizeof p);
  p.m = m;
  p.n = n;
  p.k = k;
  p.alpha = scale_of(alpha, compute);
  p.beta = scale_of(beta, compute);
  p.a = { NULL, at, lda, ta != CUBLAS_OP_N };
  p.b = { NULL, bt, ldb, tb != CUBLAS_OP_N };
  p.c = { NULL, ct, ldc, false };
  p.wide = at == CUDA_R_64F;
  p.tf32 = at == CUDA_R_32F && (h->math == CUBLAS_TF32_TENSOR_OP_MATH ||
                                compute == CUBLAS_COMPUTE_32F_FAST_TF32);
  return p;
}

static cublasStatus_t run_all (cublasHandle_t h, std::vector<Product> all) {
  for (const Product &p : all) {
    cublasStatus_t s = check_places(&p);
    if (s != CUBLAS_STATUS_SUCCESS) return s;
  }
  cudaError_t e = enqueue(h->stream, [=] {
    for (const Product &p : all) run_product(&p);
    memory_lock();
  });
  return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                          : CUBLAS_STATUS_EXECUTION_FAILED;
}

static const void *step (const void *p, long long stride, int i,
                         cudaDataType t) {
  return (const uint8_t *)p + stride * i * (long long)size_of(t);
}

} // namespace emu

using namespace emu;

extern "C" {

/*
** {======================================================
** Handles
** =======================================================
*/

cublasStatus_t cublasCreate (cublasHandle_t *h) {
  *h = new cublasContext();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy (cublasHandle_t h) {
  if (h == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete h;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion (cublasHandle_t h, int *v) {
  (void)h;
  *v = 130000;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream (cublasHandle_t h, cudaStream_t s) {
  if (h == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  h->stream = s;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream (cublasHandle_t h, cudaStream_t *s) {
  if (h == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  *s = h->stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace (cublasHandle_t h, void *p, size_t n) {
  if (h == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  return inside(p, n, true, "workspace") && (uintptr_t)p % 256 == 0
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasSetPointerMode (cublasHandle_t h, cublasPointerMode_t m) {
  if (h == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  return m == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS
                                       : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasSetMathMode (cublasHandle_t h, cublasMath_t m) {
  if (h == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  h->math = m;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode (cublasHandle_t h, cublasMath_t *m) {
  if (h == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  *m = h->math;
  return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusName (cublasStatus_t s) {
  switch (s) {
#define NAME(s) \
  case s: return #s;
    NAME(CUBLAS_STATUS_SUCCESS)
    NAME(CUBLAS_STATUS_NOT_INITIALIZED)
    NAME(CUBLAS_STATUS_ALLOC_FAILED)
    NAME(CUBLAS_STATUS_INVALID_VALUE)
    NAME(CUBLAS_STATUS_ARCH_MISMATCH)
    NAME(CUBLAS_STATUS_MAPPING_ERROR)
    NAME(CUBLAS_STATUS_EXECUTION_FAILED)
    NAME(CUBLAS_STATUS_INTERNAL_ERROR)
    NAME(CUBLAS_STATUS_NOT_SUPPORTED)
#undef NAME
  }
  return "<unknown>";
}

const char *cublasGetStatusString (cublasStatus_t s) {
  return cublasGetStatusName(s);
}

/* }====================================================== */

/*
** {======================================================
** Products
** =======================================================
*/

cublasStatus_t cublasGemmStridedBatchedEx (
    cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
    int k, const void *alpha, const void *a, cudaDataType at, int lda,
    long long sa, const void *b, cudaDataType bt, int ldb, long long sb,
    const void *beta, void *c, cudaDataType ct, int ldc, long long sc,
    int batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
  Locked locked;
  if (h == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  Product p = product_of(h, ta, tb, m, n, k, alpha, at, lda, bt, ldb, beta, ct,
                         ldc, compute);
  cublasStatus_t s = check(&p, batch, compute);
  if (s != CUBLAS_STATUS_SUCCESS) return s;
  std::vector<Product> all;
  for (int i = 0; i < batch; i++) {
    p.a.p = step(a, sa, i, at);
    p.b.p = step(b, sb, i, bt);
    p.c.p = step(c, sc, i, ct);
    all.push_back(p);
  }
  return run_all(h, std::move(all));
}

/* The lists of addresses are on the card: they are read in their turn. */
cublasStatus_t cublasGemmBatchedEx (
    cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
    int k, const void *alpha, const void *const a[], cudaDataType at, int lda,
    const void *const b[], cudaDataType bt, int ldb, const void *beta,
    void *const c[], cudaDataType ct, int ldc, int batch,
    cublasComputeType_t compute, cublasGemmAlgo_t) {
  Locked locked;
  if (h == NULL) return CUBLAS_STATUS_NOT_INITIALIZED;
  Product p = product_of(h, ta, tb, m, n, k, alpha, at, lda, bt, ldb, beta, ct,
                         ldc, compute);
  cublasStatus_t s = check(&p, batch, compute);
  if (s != CUBLAS_STATUS_SUCCESS) return s;
  size_t bytes = (size_t)batch * sizeof *a;
  if (!inside(a, bytes, true, "the addresses of A") ||
      !inside(b, bytes, true, "the addresses of B") ||
      !inside(c, bytes, true, "the addresses of C"))
    return CUBLAS_STATUS_INVALID_VALUE;
  cudaError_t e = enqueue(h->stream, [=] () mutable {
    for (int i = 0; i < batch; i++) {
      memory_unlock(a);
      memory_unlock(b);
      memory_unlock(c);
      p.a.p = a[i];
      p.b.p = b[i];
      p.c.p = c[i];
      if (check_places(&p) != CUBLAS_STATUS_SUCCESS)
        set_error(cudaErrorIllegalAddress, true);
      else run_product(&p);
    }
    memory_lock();
  });
  return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                          : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t cublasGemmEx (cublasHandle_t h, cublasOperation_t ta,
                             cublasOperation_t tb, int m, int n, int k,
                             const void *alpha, const void *a, cudaDataType at,
                             int lda, const void *b, cudaDataType bt, int ldb,
                             const void *beta, void *c, cudaDataType ct,
                             int ldc, cublasComputeType_t compute,
                             cublasGemmAlgo_t algo) {
  return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, at, lda, 0,
                                    b, bt, ldb, 0, beta, c, ct, ldc, 0, 1,
                                    compute, algo);
}

cublasStatus_t cublasSgemm (cublasHandle_t h, cublasOperation_t ta,
                            cublasOperation_t tb, int m, int n, int k,
                            const float *alpha, const float *a, int lda,
                            const float *b, int ldb, const float *beta,
                            float *c, int ldc) {
  return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, CUDA_R_32F, lda, b,
                      CUDA_R_32F, ldb, beta, c, CUDA_R_32F, ldc,
                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasDgemm (cublasHandle_t h, cublasOperation_t ta,
                            cublasOperation_t tb, int m, int n, int k,
                            const double *alpha, const double *a, int lda,
                            const double *b, int ldb, const double *beta,
                            double *c, int ldc) {
  return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, CUDA_R_64F, lda, b,
                      CUDA_R_64F, ldb, beta, c, CUDA_R_64F, ldc,
                      CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT);
}

/* }====================================================== */
}
