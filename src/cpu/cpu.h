/* cpu.h - how one source becomes the kernels of every instruction set.
**
** Each file here is compiled for each set in ISAS (see the Makefile) and, in
** each, for real = float and real = double.  CPU(name) is the kernel's symbol
** in the compilation at hand.  A kernel that looks at dtypes itself
** (KERNEL_ANY in kernels.def) stands between #ifdef CPU_ANY and #endif: the
** double pass leaves it out. */

#ifndef cpu_h
#define cpu_h

#include <math.h>
#include <string.h>

#include "../core/core.h"

#ifndef CPU_ISA
#define CPU_ISA baseline
#endif

#define CPU_PASTE_(name, isa, real) cpu_##name##_##isa##_##real
#define CPU_PASTE(name, isa, real) CPU_PASTE_(name, isa, real)

#ifdef CPU_DOUBLE
typedef double real;
#define CPU(name) CPU_PASTE(name, CPU_ISA, f64)
#else
typedef float real;
#define CPU_ANY
#define CPU(name) CPU_PASTE(name, CPU_ISA, f32)
#endif

#define KERNEL(name, args) void CPU(name) args;
#ifdef CPU_ANY
#define KERNEL_ANY(name, args) void CPU(name) args;
#else
#define KERNEL_ANY(name, args)
#endif
#include "../core/kernels.def"
#undef KERNEL
#undef KERNEL_ANY

/* The elements of vectors a and b at constant places.  gcc before 12 wants the
** places as a vector, of the integers T as wide as the elements. */
#if __has_builtin(__builtin_shufflevector)
#define PICK(T, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(T, a, b, ...) __builtin_shuffle(a, b, (T){ __VA_ARGS__ })
#endif

/* The next loop has no dependence between its turns but the reductions named:
** vector code needs no check that pointers are apart. */
#define LANES _Pragma("omp simd")

/* Elements a task of a cheap elementwise loop should have: about 10 us. */
enum { GRAIN = 32768 };

static inline int64_t divide_up (int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/* The grain for rows of n elements each. */
static inline int64_t grain_rows (int64_t n) {
  return n >= GRAIN ? 1 : GRAIN / (n > 0 ? n : 1);
}

#endif
