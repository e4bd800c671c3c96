/* fill.cu - one value everywhere, and arithmetic progressions. */

#include "sweep.h"
#include "words.h"

template <class T, int V>
static __global__ void fill_groups (Sweep<1> s, T value) {
  EACH_GROUP(i, s) {
    int32_t at[1];
    T v[V];
    uint32_t left = sweep_find(s, i, V, at);
    for (int j = 0; j < V; j++) v[j] = value;
    group_store<V>((T *)s.data[0] + at[0], v, left);
  }
}

template <class T>
static void fill_with (const Tensor *on, Geometry g, T value) {
  enum { V = 16 / sizeof(T) };
  Geometry rest;
  while (geometry_halve(&g, &rest)) fill_with<T>(on, rest, value);
  Sweep<1> s;
  bool runs = geometry_runs(&g, V);
  sweep_of(&s, &g, runs ? V : 1);
  if (s.groups == 0) return;
  unsigned blocks = blocks_for(s.groups, SWEEP_THREADS);
  if (runs) RUN(on, (fill_groups<T, V>), blocks, SWEEP_THREADS, 0, s, value);
  else RUN(on, (fill_groups<T, 1>), blocks, SWEEP_THREADS, 0, s, value);
}

extern "C" void cuda_fill (Tensor *y, double value) {
  Geometry g;
  const Tensor *t[] = { y };
  uint64_t bits = 0;
  float f = (float)value;
  geometry_open(&g, 1, t);
  switch ((fnn_Dtype)y->dtype) {
    case FNN_BOOL: bits = value != 0; break;
    case FNN_F16: bits = f16_from_f32(f); break;
    case FNN_BF16: bits = bf16_from_f32(f); break;
    case FNN_F32: memcpy(&bits, &f, sizeof f); break;
    case FNN_F64: memcpy(&bits, &value, sizeof value); break;
    default: bits = (uint64_t)integer_of(value);
  }
  switch (g.size[0]) {
    case 1: fill_with<uint8_t>(y, g, (uint8_t)bits); break;
    case 2: fill_with<uint16_t>(y, g, (uint16_t)bits); break;
    case 4: fill_with<uint32_t>(y, g, (uint32_t)bits); break;
    default: fill_with<uint64_t>(y, g, bits);
  }
}

/* Each element from its place, so that errors do not add up; integers wrap. */
static __device__ inline double term (double start, double step, int64_t i) {
  return start + (double)i * step;
}

static __device__ inline int64_t term (int64_t start, int64_t step,
                                       int64_t i) {
  return WRAP(start, +, WRAP(i, *, step));
}

template <class L>
static __global__ void arange_kernel (char *y, fnn_Dtype t, int64_t n, L start,
                                      L step) {
  int64_t stride = (int64_t)gridDim.x * blockDim.x;
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < n; i += stride) {
    L v[1] = { term(start, step, i) };
    group_store_any<1>(y, t, i, v, 1);
  }
}

extern "C" void cuda_arange (Tensor *y, double start, double step) {
  fnn_Dtype t = (fnn_Dtype)y->dtype;
  char *to = data_of<char>(y);
  unsigned blocks = blocks_for(y->numel, SWEEP_THREADS);
  if (lane_of(t) == FNN_I64)
    RUN(y, (arange_kernel<int64_t>), blocks, SWEEP_THREADS, 0, to, t, y->numel,
        (int64_t)start, (int64_t)step);
  else
    RUN(y, (arange_kernel<double>), blocks, SWEEP_THREADS, 0, to, t, y->numel,
        start, step);
}
