/* cublas.h - products of dense matrices by cuBLAS, which is opened at run
** time: neither its headers nor the library are needed to build.
**
** cuBLAS thinks in columns.  A row-major matrix is, read in columns, its
** transpose; so c = a b is asked for as c' = b' a': the operands change
** places, and c comes out row-major.  Nobody outside cublas.cu sees that. */

#ifndef cuda_cublas_h
#define cuda_cublas_h

#include "cuda.h"

/* How a shared library is opened, and an address in it found. */
#ifdef __CUDACC__
#include <dlfcn.h>
#define library_open(name) dlopen(name, RTLD_NOW | RTLD_LOCAL)
#define library_symbol(library, name) dlsym(library, name)
#else
void *emu_library (const char *name);
void *emu_symbol (void *library, const char *name);
#define library_open(name) emu_library(name)
#define library_symbol(library, name) emu_symbol(library, name)
#endif

/* A matrix in memory: rows of its own ld elements apart; transposed, it is
** the columns that are.  step: elements to the next one of the batch, 0 where
** all use the same. */
typedef struct Operand {
  const void *data;
  int64_t ld, step;
  bool transposed;
} Operand;

/* c (m, n) = alpha a (m, k) b (k, n) + beta c, for each of a batch; nothing
** is 0 but beta.  a and b are of one dtype, c is of the same or f32. */
typedef struct Product {
  int64_t m, n, k, batch;
  Operand a, b;
  void *c;
  int64_t ldc, cstep;
  fnn_Dtype ab, dtype; /* of a and b, of c */
  double alpha, beta;
} Product;

/* Makes p on the compute stream; throws, naming op, where there is no cuBLAS.
** And whether it makes products of dtype ab into dtype c. */
void cublas_product (Cuda *card, const Product *p, const char *op);
bool cublas_takes (fnn_Dtype ab, fnn_Dtype c);

/* c (..., n), dense, becomes act(c + bias): the rest of e (matmul.cu). */
void product_finish (Tensor *c, const Epilogue *e);

#endif
