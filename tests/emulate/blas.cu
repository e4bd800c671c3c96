/* blas.cu - products by the emulated cuBLAS against plain sums, and what it
** refuses. */

#include <cublas_v2.h>

#include "test.h"

static cublasHandle_t handle;

template <class T> struct Type;
template <> struct Type<float> { static const cudaDataType id = CUDA_R_32F; };
template <> struct Type<double> { static const cudaDataType id = CUDA_R_64F; };
template <> struct Type<__half> { static const cudaDataType id = CUDA_R_16F; };
template <> struct Type<__nv_bfloat16> {
  static const cudaDataType id = CUDA_R_16BF;
};

static cublasOperation_t operation (bool transposed) {
  return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

template <class T> static T *some (int n) {
  T *p = (T *)malloc(sizeof(T) * n);
  for (int i = 0; i < n; i++) p[i] = (T)noise();
  return p;
}

enum { M = 9, N = 7, K = 11, BATCH = 3 };

/* The scale factors, in the type of the sums. */
struct Scale {
  float f;
  double d;
  __half h;
  const void *in (cublasComputeType_t c) const {
    return c == CUBLAS_COMPUTE_64F   ? (const void *)&d
           : c == CUBLAS_COMPUTE_16F ? (const void *)&h
                                     : (const void *)&f;
  }
};

static Scale scale (double v) { return { (float)v, v, (__half)(float)v }; }

/* How the matrices lie: padded, one after another. */
template <class T, class C> struct Case {
  bool ta, tb;
  int lda, ldb, ldc, sa, sb, sc;
  T *a, *b, *da, *db;
  C *c, *old, *dc;
};

template <class T, class C> static Case<T, C> make (bool ta, bool tb) {
  Case<T, C> x;
  x.ta = ta;
  x.tb = tb;
  x.lda = (ta ? K : M) + 3;
  x.ldb = (tb ? N : K) + 1;
  x.ldc = M + 2;
  x.sa = x.lda * (ta ? M : K) + 5;
  x.sb = x.ldb * (tb ? K : N);
  x.sc = x.ldc * N + 1;
  x.a = some<T>(x.sa * BATCH);
  x.b = some<T>(x.sb * BATCH);
  x.old = some<C>(x.sc * BATCH);
  x.c = (C *)malloc(sizeof(C) * x.sc * BATCH);
  x.da = (T *)device(x.a, sizeof(T) * x.sa * BATCH);
  x.db = (T *)device(x.b, sizeof(T) * x.sb * BATCH);
  x.dc = (C *)device(x.old, sizeof(C) * x.sc * BATCH);
  return x;
}

template <class T, class C> static void drop (Case<T, C> *x) {
  free(x->a);
  free(x->b);
  free(x->c);
  free(x->old);
  cudaFree(x->da);
  cudaFree(x->db);
  cudaFree(x->dc);
}

/* The largest error of c; huge if the padding was touched. */
template <class T, class C>
static double worst (const Case<T, C> *x, double alpha, double beta,
                     int batch) {
  double w = 0;
  for (int z = 0; z < batch; z++)
    for (int j = 0; j < N; j++)
      for (int i = 0; i < x->ldc; i++) {
        int o = z * x->sc + i + j * x->ldc;
        double sum = 0;
        if (i >= M) {
          if ((double)x->c[o] != (double)x->old[o]) return 1e9;
          continue;
        }
        for (int l = 0; l < K; l++)
          sum +=
              (double)
                  x->a[z * x->sa + (x->ta ? l + i * x->lda : i + l * x->lda)] *
              (double)
                  x->b[z * x->sb + (x->tb ? j + l * x->ldb : l + j * x->ldb)];
        sum = alpha * sum + beta * (double)x->old[o];
        w = fmax(w, fabs(sum - (double)x->c[o]));
      }
  return w;
}

template <class T, class C>
static void test_types (const char *name, cublasComputeType_t compute,
                        double alpha, double beta, double most) {
  double w = 0;
  for (int i = 0; i < 8; i++) {
    Case<T, C> x = make<T, C>(i & 1, i & 2);
    Scale sa = scale(alpha), sb = scale(beta);
    int batch = i & 4 ? BATCH : 1;
    cublasStatus_t s = cublasGemmStridedBatchedEx(
        handle, operation(x.ta), operation(x.tb), M, N, K, sa.in(compute),
        x.da, Type<T>::id, x.lda, x.sa, x.db, Type<T>::id, x.ldb, x.sb,
        sb.in(compute), x.dc, Type<C>::id, x.ldc, x.sc, batch, compute,
        CUBLAS_GEMM_DEFAULT);
    fetch(x.c, x.dc, sizeof(C) * x.sc * BATCH);
    w = s == CUBLAS_STATUS_SUCCESS ? fmax(w, worst(&x, alpha, beta, batch))
                                   : 1e9;
    drop(&x);
  }
  ok(w <= most, "products in %s (%.1e)", name, w);
}

/* By a list of addresses. */
static void test_addresses () {
  Case<float, float> x = make<float, float>(false, true);
  const void *a[BATCH], *b[BATCH];
  void *c[BATCH];
  float one = 1, zero = 0;
  for (int z = 0; z < BATCH; z++) {
    a[z] = x.da + z * x.sa;
    b[z] = x.db + z * x.sb;
    c[z] = x.dc + z * x.sc;
  }
  cublasGemmBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, M, N, K, &one,
                      (const void *const *)device(a, sizeof a), CUDA_R_32F,
                      x.lda, (const void *const *)device(b, sizeof b),
                      CUDA_R_32F, x.ldb, &zero,
                      (void *const *)device(c, sizeof c), CUDA_R_32F, x.ldc,
                      BATCH, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  fetch(x.c, x.dc, sizeof(float) * x.sc * BATCH);
  if (quiet("addresses"))
    ok(worst(&x, 1, 0, BATCH) < 1e-5, "products by a list of addresses");
  drop(&x);
}

/* TF32 has 10 bits: the error must be of their size, not smaller. */
static void test_tf32 () {
  Case<float, float> x = make<float, float>(true, false);
  float one = 1, zero = 0;
  cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH);
  cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, M, N, K, &one, x.da, x.lda,
              x.db, x.ldb, &zero, x.dc, x.ldc);
  cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH);
  fetch(x.c, x.dc, sizeof(float) * x.sc * BATCH);
  double w = worst(&x, 1, 0, 1);
  ok(w > 1e-5 && w < 5e-3, "TF32 rounds its inputs (%.1e)", w);
  drop(&x);
}

static cublasStatus_t product (bool ta, int m, int n, int k, int lda,
                               void *p) {
  float one = 1, zero = 0;
  return cublasSgemm(handle, operation(ta), CUBLAS_OP_N, m, n, k, &one,
                     (float *)p, lda, (float *)p, k, &zero, (float *)p,
                     m > 0 ? m : 1);
}

static void test_refusals () {
  void *p = device(NULL, 4096);
  float one = 1;
  cudaMemset(p, 0, 4096);
  ok(product(false, 8, 8, 16, 7, p) == CUBLAS_STATUS_INVALID_VALUE,
     "lda less than m");
  ok(product(true, 8, 8, 16, 8, p) == CUBLAS_STATUS_INVALID_VALUE,
     "lda less than k, transposed");
  ok(product(false, -1, 8, 16, 8, p) == CUBLAS_STATUS_INVALID_VALUE,
     "a negative size");
  ok(product(false, 64, 64, 16, 64, p) == CUBLAS_STATUS_EXECUTION_FAILED,
     "a matrix past its allocation");
  ok(product(false, 0, 8, 16, 1, p) == CUBLAS_STATUS_SUCCESS,
     "an empty product");
  ok(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, p,
                  CUDA_R_64F, 4, p, CUDA_R_64F, 4, &one, p, CUDA_R_32F, 4,
                  CUBLAS_COMPUTE_32F,
                  CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED,
     "types that do not go together");
  cudaFree(p);
  quiet("refusals");
}

void test_blas () {
  cublasCreate(&handle);
  test_types<float, float>("f32", CUBLAS_COMPUTE_32F, 1.5, 0.5, 1e-5);
  test_types<double, double>("f64", CUBLAS_COMPUTE_64F, 1.5, 0.5, 1e-14);
  test_types<__half, __half>("f16", CUBLAS_COMPUTE_32F, 1, 0.5, 4e-3);
  test_types<__half, float>("f16 to f32", CUBLAS_COMPUTE_32F, 1, 0.5, 1e-5);
  test_types<__nv_bfloat16, __nv_bfloat16>("bf16", CUBLAS_COMPUTE_32F, 1, 0,
                                           3e-2);
  test_types<__nv_bfloat16, float>("bf16 to f32", CUBLAS_COMPUTE_32F, 2, 1,
                                   1e-5);
  test_types<__half, __half>("f16 with sums in f16", CUBLAS_COMPUTE_16F, 1, 1,
                             1e-2);
  test_addresses();
  test_tf32();
  test_refusals();
  cublasDestroy(handle);
}
