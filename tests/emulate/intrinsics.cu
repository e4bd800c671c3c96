/* intrinsics.cu - what cuda_fp16.h, cuda_bf16.h and intrinsics.h give. */

#include "test.h"

/* Every half to float and back, and numbers between two halves. */
static void test_half () {
  bool same = true, rounded = true;
  for (int i = 0; i < 1 << 16; i++) {
    __half h = __ushort_as_half((unsigned short)i);
    float f = __half2float(h);
    if (__hisnan(h)) same = same && f != f;
    else same = same && __half_as_ushort(__float2half(f)) == i;
  }
  for (int i = 1; i < 0x7c00; i++) { /* halfway goes to the even one */
    float a = __half2float(__ushort_as_half((unsigned short)(i - 1)));
    float b = __half2float(__ushort_as_half((unsigned short)i));
    if (isinf(b)) b = 65536;
    float middle = a / 2 + b / 2;
    int even = i % 2 == 0 ? i : i - 1;
    rounded = rounded && __half_as_ushort(__float2half(middle)) == even &&
              __half_as_ushort(__float2half(nextafterf(middle, 0))) == i - 1 &&
              __half_as_ushort(__float2half(nextafterf(middle, 1e9f))) == i;
  }
  ok(same, "every half is its float");
  ok(rounded, "floats round to the nearest half, ties to even");
  double d = 1 + 0x1p-11 + 0x1p-50; /* as a float it is a tie */
  ok(__half_as_ushort(__double2half(d)) == 0x3c01 &&
         __half_as_ushort(__float2half((float)d)) == 0x3c00 &&
         __half_as_ushort(__double2half(-d)) == 0xbc01,
     "a double is rounded to half once");
}

static void test_bfloat () {
  bool same = true;
  for (int i = 0; i < 1 << 16; i++) {
    __nv_bfloat16 h = __ushort_as_bfloat16((unsigned short)i);
    float f = __bfloat162float(h);
    if (__hisnan(h)) same = same && f != f;
    else same = same && __bfloat16_as_ushort(__float2bfloat16(f)) == i;
  }
  ok(same, "every bfloat16 is its float");
  ok(__bfloat16_as_ushort(__float2bfloat16(1 + 0x1p-8f)) == 0x3f80 &&
         __bfloat16_as_ushort(__float2bfloat16(1 + 3 * 0x1p-8f)) == 0x3f82 &&
         __bfloat16_as_ushort(__float2bfloat16(3.4e38f)) == 0x7f80,
     "floats round to bfloat16, ties to even");
}

static void test_integers () {
  ok(__umulhi(0xffffffffu, 0xffffffffu) == 0xfffffffeu &&
         __mulhi(-1, 1) == -1 && __mul64hi(-5, 3) == -1 &&
         __umul64hi(~0ull, ~0ull) == ~0ull - 1,
     "upper halves of products");
  ok(__clz(1) == 31 && __clz(0) == 32 && __clzll(1) == 63 && __ffs(8) == 4 &&
         __popcll(~0ull) == 64 && __brev(1) == 0x80000000u &&
         __brevll(1) == 1ull << 63,
     "counts of bits");
  ok(__byte_perm(0x33221100, 0x77665544, 0x7531) == 0x77553311 &&
         __funnelshift_l(0x80000000u, 1, 1) == 3 &&
         __funnelshift_r(0, 1, 1) == 0x80000000u,
     "bytes and bits of two words");
  ok(__float2int_rn(2.5f) == 2 && __float2int_rz(-2.9f) == -2 &&
         __float2int_rd(-2.1f) == -3 && __float2int_ru(2.1f) == 3 &&
         __float2int_rz(1e30f) == 2147483647 && __float2int_rz(NAN) == 0 &&
         __float2uint_rz(-1) == 0 && __double2ll_rn(1e300) == INT64_MAX,
     "floats to integers, to the nearest of the type");
  static unsigned counter; /* of the host, in a file that is instrumented */
  __atomic_fetch_add(&counter, 3u, __ATOMIC_RELAXED);
  ok(__atomic_exchange_n(&counter, 5u, __ATOMIC_ACQUIRE) == 3 &&
         __atomic_load_n(&counter, __ATOMIC_SEQ_CST) == 5,
     "atomics of C");
  ok(min(3u, -1) == 3 && max(-1, 3) == 3 && min(2.0f, NAN) == 2 &&
         max(1.5, 2.0f) == 2 && max((long long)1, (long long)2) == 2,
     "min and max by type");
}

static void test_floats () {
  ok(__float_as_int(1) == 0x3f800000 && __int_as_float(0x40000000) == 2 &&
         __double_as_longlong(1) == 0x3ff0000000000000 &&
         __double2hiint(1) == 0x3ff00000 &&
         __hiloint2double(0x40000000, 0) == 2,
     "bits of floats");
  ok(rsqrt(4.0) == 0.5 && rsqrtf(4) == 0.5f && __saturatef(NAN) == 0 &&
         __saturatef(2) == 1 && __fmaf_rn(2, 3, 4) == 10 &&
         fabs(normcdf(0.0) - 0.5) < 1e-15 &&
         fabsf(__expf(1) - 2.7182818f) < 1e-6,
     "functions of floats");
}

/* Atomics give what was there. */
static __global__ void atomics (unsigned long long *y, double *d, int *i) {
  if (threadIdx.x == 0) {
    unsigned long long old = atomicAdd(y, 5ull), want = 15;
    i[0] = old == 10 && atomicCAS(y, want, 7ull) == 15 && *y == 7;
    i[1] = atomicMax(y, 9ull) == 7 && atomicMin(y, 3ull) == 9 && *y == 3;
    i[2] = atomicAdd(d, 1) == 2.5 && *d == 3.5;
    unsigned *u = (unsigned *)y;
    i[3] = atomicInc(u, 3u) == 3 && *u == 0 && atomicDec(u, 4u) == 0 &&
           *u == 4 && atomicAnd(u, 6u) == 4 && atomicXor(u, 1u) == 4 &&
           atomicExch(u, 8u) == 5 && atomicOr(u, 1u) == 8 && *u == 9;
  }
}

static void test_atomics () {
  unsigned long long y = 10;
  double d = 2.5;
  int i[4];
  int *di = (int *)device(NULL, sizeof i);
  LAUNCH(atomics, 1, 32, 0, 0, (unsigned long long *)device(&y, 8),
         (double *)device(&d, 8), di);
  fetch(i, di, sizeof i);
  if (quiet("atomics"))
    ok(i[0] == 1 && i[1] == 1 && i[2] == 1 && i[3] == 1, "atomics");
}

void test_intrinsics () {
  test_half();
  test_bfloat();
  test_integers();
  test_floats();
  test_atomics();
}
