/* device.c - the CPU as a device: its memory, and which instruction set's
** kernels it uses.  FNN_ISA=baseline, avx2 or avx512 forces one. */

#include <stdlib.h>

#include "cpu.h"

/* Which are built is the Makefile's ISAS. */
#ifdef ISA_baseline
extern const Kernels cpu_kernels_baseline[2];

static bool always (void) { return true; }
#endif

#if defined(ISA_avx2) || defined(ISA_avx512)
#include <cpuid.h>

extern const Kernels cpu_kernels_avx2[2];

/* Not all compilers know this one by name: cpuid leaf 1, ecx, bit 29. */
static bool has_f16c (void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

static bool has_avx2 (void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         has_f16c();
}
#endif

#ifdef ISA_avx512
extern const Kernels cpu_kernels_avx512[2];

static bool has_avx512 (void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif

/* Best first. */
static const struct Isa {
  const char *name;
  const Kernels *kernels;
  bool (*has)(void);
} isas[] = {
#ifdef ISA_avx512
  { "avx512", cpu_kernels_avx512, has_avx512 },
#endif
#ifdef ISA_avx2
  { "avx2", cpu_kernels_avx2, has_avx2 },
#endif
#ifdef ISA_baseline
  { "baseline", cpu_kernels_baseline, always },
#endif
};

static const struct Isa *isa_chosen (void) {
  const char *want = getenv("FNN_ISA");
  for (int i = 0; i < countof(isas); i++)
    if (isas[i].has() && (want == NULL || strcmp(want, isas[i].name) == 0))
      return &isas[i];
  return &isas[countof(isas) - 1];
}

static void *cpu_alloc (const fnn_Device *d, size_t bytes) {
  (void)d;
  return mem_pages(bytes);
}

static void cpu_free (const fnn_Device *d, void *p, size_t bytes) {
  (void)d;
  mem_pages_free(p, bytes);
}

static void cpu_move (const fnn_Device *d, void *to, const void *from,
                      size_t n) {
  (void)d;
  memcpy(to, from, n);
}

static fnn_Device cpu;

/* Runs before main: the choice needs no lock afterwards, and no context. */
__attribute__((constructor)) static void choose (void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
#endif
  const Kernels *k = isa_chosen()->kernels;
  cpu = (fnn_Device){ .name = "cpu",
                      .host = true,
                      .kernels = { &k[0], &k[1] },
                      .alloc = cpu_alloc,
                      .free = cpu_free,
                      .upload = cpu_move,
                      .download = cpu_move };
}

const fnn_Device *device_cpu (void) { return &cpu; }

const char *fnn_isa (void) { return isa_chosen()->name; }
