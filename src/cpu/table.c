/* table.c - the two tables of kernels of one instruction set. */

#include "cpu.h"

#ifdef CPU_ANY

#define NAME_(isa) cpu_kernels_##isa
#define NAME(isa) NAME_(isa)
#define F64(name) CPU_PASTE(name, CPU_ISA, f64)

/* The float pass compiles this file; the double kernels are declared here. */
#define KERNEL(name, args) void F64(name) args;
#define KERNEL_ANY(name, args)
#include "../core/kernels.def"
#undef KERNEL
#undef KERNEL_ANY

extern const Kernels NAME(CPU_ISA)[2];

/* clang-format off */
const Kernels NAME(CPU_ISA)[2] = {
  { /* f64 */
#define KERNEL(name, args) .name = F64(name),
#define KERNEL_ANY(name, args) .name = CPU(name),
#include "../core/kernels.def"
#undef KERNEL
#undef KERNEL_ANY
  },
  { /* every other dtype */
#define KERNEL(name, args) .name = CPU(name),
#define KERNEL_ANY(name, args) .name = CPU(name),
#include "../core/kernels.def"
#undef KERNEL
#undef KERNEL_ANY
  },
};
/* clang-format on */

#endif
