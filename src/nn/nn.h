/* nn.h - what the files of nn share.
**
** A class of modules is a constant Class and a struct that begins with
** fnn_Module.  Its constructor names each part once (module_param ...); the
** rest - destroying, moving, modes, saving - is done over these names.
**
**   typedef struct Scale { fnn_Module m; fnn_Param *weight; } Scale;
**
**   static fnn_Tensor *forward (fnn_Module *m, fnn_Tensor *x) {
**     return fnn_mul(x, fnn_value(((Scale *)m)->weight));
**   }
**   static const Class scale = { { "Scale", module_destroy }, forward, NULL };
*/

#ifndef nn_h
#define nn_h

#include <math.h>

#include "../core/core.h"
#include "../fnn_nn.h"

typedef struct Class {
  Type type;
  Tensor *(*forward)(fnn_Module *m, Tensor *x);
  /* What it was made with, as text; NULL: nothing to say. */
  void (*text)(const fnn_Module *m, char *to, size_t size);
} Class;

enum { MEMBER_NAME = 32 };

typedef enum MemberKind {
  MEMBER_PARAM,
  MEMBER_BUFFER,
  MEMBER_CHILD
} MemberKind;

/* A part: its name and the place in the module's struct that holds it. */
typedef struct Member {
  char name[MEMBER_NAME];
  MemberKind kind;
  union {
    fnn_Param **param;
    Tensor **buffer;
    fnn_Module **child;
  } at;
} Member;

struct fnn_Module {
  Object o; /* its type is a Class */
  bool training;
  int count, capacity;
  Member *members;
};

/* A module of size bytes, zeroed but for what fnn_Module needs. */
void *module_new (const Class *class, size_t size);
void module_destroy (void *o);

/* Throws unless eps, of a norm of this class, keeps roots finite. */
static inline void check_eps (const char *name, double eps) {
  if (!(eps >= 0 && eps < INFINITY))
    fnn_throw(FNN_EARG, "%s: expected an eps of 0 or more, got %g", name, eps);
}

/* Names a part and fills its place, which retains it; NULL: the part is left
** out. */
void module_param (fnn_Module *m, const char *name, fnn_Param **at, Tensor *x);
void module_buffer (fnn_Module *m, const char *name, Tensor **at, Tensor *x);
void module_child (fnn_Module *m, const char *name, fnn_Module **at,
                   fnn_Module *child);

/* A module without a function: what stands behind one written in Lua. */
fnn_Module *module_plain (void) LENT(module_plain);

/* Gives a BatchNorm that keeps statistics a momentum (negative: the mean of
** all batches), and returns what it had; NAN, and no change, for other
** modules. */
double batch_norm_momentum (fnn_Module *m, double momentum)
    LENT(batch_norm_momentum);

/*
** {======================================================
** Losses
** =======================================================
*/

/* Throws for a reduction that the loss does not know. */
void loss_check_reduction (const char *op, fnn_Reduction r);
/* Throws unless v is finite and more than least (or, with equal, as much). */
void loss_check_number (const char *op, const char *name, double v,
                        double least, bool equal);
/* The mean or sum of the losses each, or these themselves. */
Tensor *loss_reduce (Tensor *each, fnn_Reduction r);
/* x in the dtype of a computation with y too. */
Tensor *loss_promote (const char *op, Tensor *x, const Tensor *y);
/* Throws unless x and y have one shape: what they are, for the message. */
void loss_check_shapes (const char *op, const char *what_x, const Tensor *x,
                        const char *what_y, const Tensor *y);

/* }====================================================== */

#endif
