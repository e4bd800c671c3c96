/* kernels.cu - correct kernels of every kind: their results are right, and
** nothing is reported.  Each has one barrier or wait that another needs. */

#include "test.h"

/*
** {======================================================
** Reductions: by shuffles, by shared memory, by the last block to finish
** =======================================================
*/

static __device__ float warp_sum (float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}

template <int THREADS> static __device__ float block_sum (float v) {
  SHARED(float, part, [THREADS / 32]);
  v = warp_sum(v);
  __syncthreads(); /* the last use of part is over */
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < THREADS / 32; i++) sum += part[i];
  return sum;
}

/* y (rows, n) = x less its row's mean, over its deviation */
static __global__ void layer_norm (float *y, const float *x, int n) {
  const float *row = x + (size_t)blockIdx.x * n;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < n; i += 128) sum += row[i];
  float mean = block_sum<128>(sum) / n;
  for (int i = threadIdx.x; i < n; i += 128)
    squares += (row[i] - mean) * (row[i] - mean);
  float scale = rsqrtf(block_sum<128>(squares) / n + 1e-5f);
  for (int i = threadIdx.x; i < n; i += 128)
    y[(size_t)blockIdx.x * n + i] = (row[i] - mean) * scale;
}

static void test_layer_norm (int n) {
  enum { ROWS = 5 };
  size_t bytes = sizeof(float) * ROWS * n;
  float *x = (float *)malloc(bytes), *y = (float *)malloc(bytes);
  for (int i = 0; i < ROWS * n; i++) x[i] = noise();
  float *dx = (float *)device(x, bytes), *dy = (float *)device(NULL, bytes);
  LAUNCH(layer_norm, ROWS, 128, 0, 0, dy, dx, n);
  fetch(y, dy, bytes);
  double worst = 0;
  for (int r = 0; r < ROWS; r++) {
    double mean = 0, var = 0;
    for (int i = 0; i < n; i++) mean += (double)x[r * n + i] / n;
    for (int i = 0; i < n; i++) var += pow(x[r * n + i] - mean, 2) / n;
    for (int i = 0; i < n; i++)
      worst = fmax(worst, fabs((x[r * n + i] - mean) / sqrt(var + 1e-5) -
                               y[r * n + i]));
  }
  if (quiet("layer norm")) ok(worst < 1e-5, "layer norm of %d", n);
  cudaFree(dx);
  cudaFree(dy);
  free(x);
  free(y);
}

/* Sums blocks' parts in the block that finishes last. */
static __global__ void last_block (float *sum, float *parts, unsigned *count,
                                   const float *x) {
  SHARED(float, s, [64]);
  SHARED(int, last, [1]);
  s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if ((int)threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = s[0];
    __threadfence();
    last[0] = atomicAdd(count, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last[0] && threadIdx.x == 0) {
    float t = 0;
    for (unsigned i = 0; i < gridDim.x; i++) t += parts[i];
    *sum = t;
  }
}

static void test_last_block () {
  float x[512], sum;
  for (int i = 0; i < 512; i++) x[i] = (float)(i % 7);
  float *dx = (float *)device(x, sizeof x), *parts, *dsum;
  unsigned zero = 0, *count = (unsigned *)device(&zero, 4);
  cudaMalloc(&parts, 32);
  cudaMalloc(&dsum, 4);
  LAUNCH(last_block, 8, 64, 0, 0, dsum, parts, count, dx);
  fetch(&sum, dsum, 4);
  float want = 0;
  for (int i = 0; i < 512; i++) want += x[i];
  if (quiet("last block")) ok(sum == want, "the last block sums all");
}

/* The lanes of a warp talk through shared memory. */
static __global__ void warp_shared (float *y) {
  SHARED(float, s, [32]);
  s[threadIdx.x] = y[threadIdx.x];
  __syncwarp();
  for (int d = 16; d > 0; d /= 2) {
    float v = s[threadIdx.x] + s[threadIdx.x ^ d];
    __syncwarp();
    s[threadIdx.x] = v;
    __syncwarp();
  }
  y[threadIdx.x] = s[threadIdx.x];
}

static void test_warp_shared () {
  float x[32];
  for (int i = 0; i < 32; i++) x[i] = (float)i;
  float *d = (float *)device(x, sizeof x);
  LAUNCH(warp_shared, 1, 32, 0, 0, d);
  fetch(x, d, sizeof x);
  if (quiet("warp sum")) ok(x[0] == 496 && x[31] == 496, "a warp's sum");
}

/* }====================================================== */

/*
** {======================================================
** Histogram, primitives, votes
** =======================================================
*/

static __global__ void histogram (unsigned *bins, const unsigned char *x,
                                  int n) {
  SHARED(unsigned, local, [256]);
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
    atomicAdd(&local[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (local[i] != 0) atomicAdd(bins + i, local[i]);
}

static void test_histogram () {
  enum { N = 5000 };
  static unsigned char x[N];
  unsigned want[256] = {}, got[256];
  for (int i = 0; i < N; i++)
    want[x[i] = (unsigned char)((noise() + 1) * 99)]++;
  unsigned *bins = (unsigned *)device(NULL, sizeof got);
  cudaMemset(bins, 0, sizeof got);
  LAUNCH(histogram, 4, 100, 0, 0, bins, (unsigned char *)device(x, N), N);
  fetch(got, bins, sizeof got);
  if (quiet("histogram")) ok(memcmp(got, want, sizeof got) == 0, "histogram");
}

static __global__ void primitives (int *good) {
  int lane = threadIdx.x;
  unsigned even = __ballot_sync(~0u, lane % 2 == 0);
  bool all = even == 0x55555555 && __popc(even) == 16;
  all = all && __shfl_up_sync(~0u, lane, 1) == (lane > 0 ? lane - 1 : 0);
  int down = __shfl_down_sync(~0u, lane, 4, 8);
  all = all && down == (lane % 8 < 4 ? lane + 4 : lane);
  all = all && __shfl_sync(~0u, lane, 3, 8) == lane / 8 * 8 + 3;
  all = all && __any_sync(~0u, lane == 7) && !__all_sync(~0u, lane < 31);
  all = all && __reduce_add_sync(~0u, lane) == 496;
  all = all && __reduce_max_sync(~0u, lane) == 31;
  all = all && __reduce_xor_sync(~0u, lane) == 0;
  unsigned same = __match_any_sync(~0u, lane / 8);
  all = all && same == 0xffu << lane / 8 * 8;
  if (lane < 16) /* half a warp */
    all = all && __shfl_xor_sync(0xffffu, lane, 15) == 15 - lane;
  __syncwarp();
  good[lane] = all;
}

static __global__ void votes (int *y) {
  int i = threadIdx.x;
  int count = __syncthreads_count(i % 3 == 0);
  int any = __syncthreads_or(i == 99);
  int all = __syncthreads_and(i >= 0);
  int none = __syncthreads_and(i > 0);
  y[i] = count == 34 && any && all && !none;
}

static __global__ void number_bits (uint16_t *y) { /* neighbours, one word */
  y[threadIdx.x] = (uint16_t)(blockIdx.x + threadIdx.x);
}

static void test_primitives () {
  int good[100];
  int *d = (int *)device(NULL, sizeof good);
  LAUNCH(primitives, 1, 32, 0, 0, d);
  fetch(good, d, 128);
  int n = 0;
  for (int i = 0; i < 32; i++) n += good[i] == 1;
  if (quiet("primitives")) ok(n == 32, "primitives of a warp");
  LAUNCH(votes, 1, 100, 0, 0, d);
  fetch(good, d, sizeof good);
  n = 0;
  for (int i = 0; i < 100; i++) n += good[i] == 1;
  if (quiet("votes")) ok(n == 100, "votes at a barrier");
  LAUNCH(number_bits, 1, 64, 0, 0, (uint16_t *)d);
  if (quiet("halves")) ok(true, "threads write halves of one word");
}

struct Arguments {
  float *y;
  int n;
  float v[8];
};

static const float table[4] = { 1, 10, 100, 1000 };

static __global__ void by_value (Arguments a, const int *flag) {
  int i = threadIdx.x;
  if (i < a.n) a.y[i] = a.v[i % 8] * table[i % 4] + (float)*flag;
}

/* What of the host a kernel may read: arguments, constants, pinned memory. */
static void test_host_memory () {
  Arguments a = { NULL, 16, { 1, 2, 3, 4, 5, 6, 7, 8 } };
  float y[16];
  int *flag, *on_card;
  cudaHostAlloc((void **)&flag, sizeof *flag, cudaHostAllocMapped);
  cudaHostGetDevicePointer((void **)&on_card, flag, 0);
  *flag = 5;
  cudaMalloc(&a.y, sizeof y);
  LAUNCH(by_value, 1, 32, 0, 0, a, (const int *)on_card);
  fetch(y, a.y, sizeof y);
  if (quiet("arguments"))
    ok(y[9] == 25 && y[3] == 4005, "arguments, constants, pinned memory");
  cudaFreeHost(flag);
}

/* }====================================================== */

/*
** {======================================================
** Tensor cores, fed by copies that are a step ahead
** =======================================================
*/

/* c (16, 8) = a (16, k) b (8, k)^T, k a multiple of 16: by one warp, with two
** tiles of each, one of which is filled while the other is used. */
static __global__ void tile_product (float *c, const __half *a,
                                     const __half *b, int k) {
  SHARED(__half, sa, [2][16][24]);
  SHARED(__half, sb, [2][16][24]);
  int lane = threadIdx.x;
  float sum[4] = {};
  for (int s = 0; s <= k / 16; s++) {
    if (s < k / 16) {
      int row = lane / 2, column = lane % 2 * 8, at = s * 16 + column;
      cp_async16(&sa[s % 2][row][column], a + row * k + at);
      cp_async16_or_zero(&sb[s % 2][row][column], b + row * k + at, row < 8);
    }
    cp_async_commit();
    if (s == 0) continue;
    cp_async_wait<1>();
    __syncwarp();
    uint32_t ra[4], rb[4];
    ldmatrix_x4(ra, &sa[(s - 1) % 2][lane % 16][lane / 16 * 8]);
    ldmatrix_x4(rb, &sb[(s - 1) % 2][lane % 16][lane / 16 * 8]);
    uint32_t of_b[2] = { rb[0], rb[2] };
    mma16816(sum, ra, of_b, sum, __half());
    __syncwarp();
  }
  for (int i = 0; i < 4; i++)
    c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
}

static void test_tile_product (int k) {
  __half *a = (__half *)malloc(2 * 16 * k), *b = (__half *)malloc(2 * 8 * k);
  float c[128];
  for (int i = 0; i < 16 * k; i++) a[i] = __float2half(noise());
  for (int i = 0; i < 8 * k; i++) b[i] = __float2half(noise());
  float *dc = (float *)device(NULL, sizeof c);
  LAUNCH(tile_product, 1, 32, 0, 0, dc, (__half *)device(a, 2 * 16 * k),
         (__half *)device(b, 2 * 8 * k), k);
  fetch(c, dc, sizeof c);
  double worst = 0;
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) {
      double sum = 0;
      for (int l = 0; l < k; l++)
        sum += (double)(float)a[i * k + l] * (float)b[j * k + l];
      worst = fmax(worst, fabs(sum - c[i * 8 + j]));
    }
  if (quiet("tile product")) ok(worst < 1e-5, "a product of tiles, k = %d", k);
  free(a);
  free(b);
}

/* ldmatrix, plain and transposed, against loads of the same. */
static __global__ void matrices (int *good) {
  SHARED(uint16_t, s, [32][8]);
  int l = threadIdx.x, same = 1;
  uint32_t r[4];
  for (int j = 0; j < 8; j++) s[l][j] = (uint16_t)(l * 8 + j);
  __syncwarp();
  ldmatrix_x4(r, s[l]);
  for (int m = 0; m < 4; m++) {
    const uint16_t *row = s[m * 8 + l / 4];
    same &= r[m] == (row[l % 4 * 2] | (uint32_t)row[l % 4 * 2 + 1] << 16);
  }
  ldmatrix_x4_trans(r, s[l]);
  for (int m = 0; m < 4; m++) {
    int row = m * 8 + l % 4 * 2;
    same &= r[m] == (s[row][l / 4] | (uint32_t)s[row + 1][l / 4] << 16);
  }
  good[l] = same;
}

/* bf16 with sums in f32, half with sums in half. */
static __global__ void other_tiles (float *c, uint32_t *h) {
  uint32_t one = 0x3f803f80, half_one = 0x3c003c00; /* pairs of 1 */
  uint32_t a[4] = { one, one, one, one }, b[2] = { one, one };
  uint32_t ha[4] = { half_one, half_one, half_one, half_one };
  uint32_t hb[2] = { half_one, half_one }, sums[2] = { half_one, half_one };
  float sum[4] = { 1, 2, 3, 4 };
  mma16816(sum, a, b, sum, __nv_bfloat16());
  mma16816(sums, ha, hb, sums, __half());
  for (int i = 0; i < 4; i++) c[threadIdx.x * 4 + i] = sum[i];
  for (int i = 0; i < 2; i++) h[threadIdx.x * 2 + i] = sums[i];
}

static void test_matrices () {
  int good[32], n = 0;
  float c[128];
  uint32_t h[64];
  int *d = (int *)device(NULL, sizeof good);
  LAUNCH(matrices, 1, 32, 0, 0, d);
  fetch(good, d, sizeof good);
  for (int i = 0; i < 32; i++) n += good[i] == 1;
  if (quiet("ldmatrix")) ok(n == 32, "ldmatrix");
  float *dc = (float *)device(NULL, sizeof c);
  uint32_t *dh = (uint32_t *)device(NULL, sizeof h);
  LAUNCH(other_tiles, 1, 32, 0, 0, dc, dh);
  fetch(c, dc, sizeof c);
  fetch(h, dh, sizeof h);
  if (quiet("other tiles"))
    ok(c[0] == 17 && c[127] == 20 && h[0] == 0x4c404c40 && h[63] == h[0],
       "tiles of bf16, and with sums in half");
}

/* }====================================================== */

/* c (m, n) = a (m, k) b (k, n), by tiles in dynamic shared memory */
static __global__ void product (float *c, const float *a, const float *b,
                                int m, int n, int k, int tile) {
  DYNAMIC_SHARED(float, s);
  float *ta = s, *tb = s + tile * tile, sum = 0;
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * tile + y, column = blockIdx.x * tile + x;
  for (int p = 0; p < k; p += tile) {
    ta[y * tile + x] = row < m && p + x < k ? a[row * k + p + x] : 0;
    tb[y * tile + x] = column < n && p + y < k ? b[(p + y) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < tile; i++) sum += ta[y * tile + i] * tb[i * tile + x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

static void test_product () {
  enum { M = 37, N = 21, K = 45, T = 16 };
  float a[M * K], b[K * N], c[M * N];
  for (int i = 0; i < M * K; i++) a[i] = noise();
  for (int i = 0; i < K * N; i++) b[i] = noise();
  float *dc = (float *)device(NULL, sizeof c);
  LAUNCH(product, dim3((N + T - 1) / T, (M + T - 1) / T), dim3(T, T),
         2 * T * T * sizeof(float), 0, dc, (float *)device(a, sizeof a),
         (float *)device(b, sizeof b), M, N, K, T);
  fetch(c, dc, sizeof c);
  double worst = 0;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      double sum = 0;
      for (int l = 0; l < K; l++) sum += (double)a[i * K + l] * b[l * N + j];
      worst = fmax(worst, fabs(sum - c[i * N + j]));
    }
  if (quiet("product")) ok(worst < 1e-5, "a product by tiles");
}

void test_kernels () {
  const int widths[] = { 1, 10, 31, 32, 33, 127, 128, 129, 1000 };
  for (int n : widths) test_layer_norm(n);
  test_last_block();
  test_warp_shared();
  test_histogram();
  test_primitives();
  test_host_memory();
  test_tile_product(16);
  test_tile_product(80);
  test_matrices();
  test_product();
}
