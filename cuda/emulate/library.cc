/* library.cc - what dlopen and dlsym find of cuBLAS, emulated.
**
** The environment takes things away, for tests of what is said then:
** EMU_CUBLAS names the one library that is there (libcublas.so.13 if it is
** not set, none if empty), EMU_CUBLAS_LACKS a function that it has not. */

#include <cublas_v2.h>
#include <stdlib.h>
#include <string.h>

void *emu_library (const char *name);
void *emu_symbol (void *library, const char *name);

static const struct Symbol {
  const char *name;
  void *address;
} symbols[] = {
#define SYMBOL(name) #name, (void *)name
  { SYMBOL(cublasCreate_v2) },    { SYMBOL(cublasDestroy_v2) },
  { SYMBOL(cublasSetStream_v2) }, { SYMBOL(cublasSetWorkspace_v2) },
  { SYMBOL(cublasSetMathMode) },  { SYMBOL(cublasGemmStridedBatchedEx) },
#undef SYMBOL
};

void *emu_library (const char *name) {
  const char *there = getenv("EMU_CUBLAS");
  bool is = strcmp(name, there != NULL ? there : "libcublas.so.13") == 0;
  return is ? (void *)symbols : NULL;
}

void *emu_symbol (void *library, const char *name) {
  const char *lacks = getenv("EMU_CUBLAS_LACKS");
  (void)library;
  if (lacks != NULL && strcmp(lacks, name) == 0) return NULL;
  for (const Symbol &s : symbols)
    if (strcmp(s.name, name) == 0) return s.address;
  return NULL;
}
