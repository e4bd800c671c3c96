/* lbox.h - how Lua holds engine objects and calls the engine.
**
** A box is a userdata of one pointer.  A binding always does three things in
** this order: check its arguments, push an empty box for its result, guard
** one engine statement that fills the box.
**
**   static int tensor_softmax (lua_State *L) {
**     fnn_Tensor *x = checktensor(L, 1);
**     int dim = optdim(L, 2, x, -1);
**     void **y = newbox(L, TENSOR);
**     guard(L, *y = fnn_retain(fnn_softmax(x, dim)));
**     return 1;
**   }
**
** Inside guard nothing may raise a Lua error.  Between a check and its guard
** Lua's code may run only as a finalizer: arguments that are tables are read
** raw.  Places (dims, positions) count
** from 1 in Lua and are converted here and nowhere else. */

#ifndef lbox_h
#define lbox_h

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "../src/core/core.h"
#include "../src/fnn_nn.h"
#include "fnnlib.h"

/* The classes of boxes (ORDER KIND). */
typedef enum Kind {
  TENSOR,
  PARAM,
  GENERATOR,
  MODULE,
  OPTIMIZER,
  DATASET,
  LOADER,
  READER, /* a safetensors file */
  JSONL,
  CAPTURE,
  SAMPLER,
  KINDS
} Kind;

/* What the library keeps for one lua_State: the first upvalue of each of its
** functions, and a value of the registry.  Its user values are the metatables
** of the kinds. */
typedef struct Lib {
  fnn_Context *context;
  lua_State *main;
  lua_State *guarded;       /* of the innermost guard */
  const void *meta[KINDS];  /* the metatables' addresses */
  const fnn_Device *device; /* where new tensors go */
  fnn_Dtype dtype;          /* of new float tensors */
  uint64_t collected_live;  /* bytes alive after the last collection */
  uint64_t stepped;         /* since_collect at the collector's last step */
  int places;               /* numbers of module_place given so far */
  struct {
    uint64_t nodes, steps; /* alive, and made, when they were counted last */
    uint64_t wait;         /* steps until they are counted again */
    int grown;             /* times that each step left some, in a row */
    bool told;
  } growth; /* of graphs */
  bool collecting;
  bool generational;     /* a step of the collector finds what died young */
  bool scoped;           /* an fnn.scope is open */
  fnn_Status status;     /* of the last error raised */
  bool raised;           /* a callback's error value is on the stack */
  bool listens;          /* a script's handler waits for an interrupt */
  struct Slot_ *dropped; /* slots whose values can go */
} Lib;

#define getlib(L) ((Lib *)lua_touserdata(L, lua_upvalueindex(1)))
/* For code that is not one of the library's functions. */
Lib *findlib (lua_State *L);

/*
** {======================================================
** Guards
** =======================================================
*/

typedef struct Guard {
  Frame frame;
  fnn_Context *context_before;
  lua_State *guarded_before;
} Guard;

void guard_enter (lua_State *L, Lib *lib, Guard *g);
void guard_leave (lua_State *L, Lib *lib, Guard *g);
FNN_NORETURN void guard_error (lua_State *L, Lib *lib, Guard *g);

/* Runs one statement of engine calls; an engine error becomes a Lua error on
** this L.  What the statement assigns must not be a local read after an
** error, and none is: guard_error does not return. */
#define guard(L, ...) \
  do { \
    Guard guard_; \
    Lib *lib_ = getlib(L); \
    guard_enter(L, lib_, &guard_); \
    if (setjmp(guard_.frame.jump) == 0) { \
      __VA_ARGS__; \
      guard_leave(L, lib_, &guard_); \
    } else guard_error(L, lib_, &guard_); \
  } while (0)

/* Raises message at the first caller outside the library; in a module's
** forward the message ends with where in the model that is. */
int raise_error (lua_State *L, const char *fmt, ...);
/* The first caller outside the library; and pushes "script.lua:12: ", or "".
** Finding calls nothing that raises. */
bool find_where (lua_State *L, lua_Debug *ar);
void push_where (lua_State *L);

/* }====================================================== */

/*
** {======================================================
** Boxes
** =======================================================
*/

/* Pushes an empty box. */
void **newbox (lua_State *L, Kind k);
/* Empties the box at i: as its release.  Nothing happens in a finalizer. */
void box_empty (lua_State *L, int i);
/* Inside fnn.scope: notes the new box at i, and takes what is kept out of all
** scopes again. */
void scope_note (lua_State *L, int i);
void scope_keep (lua_State *L, int i);
/* Pushes the box of o: the one it has, or a new one with a reference of its
** own.  nil for NULL.  Not inside guard. */
void pushobject (lua_State *L, Kind k, void *o);
/* Makes the full box on the top the one that pushobject finds. */
void enter_box (lua_State *L);
/* The object in a box of this kind; raises for another or a released one. */
void *checkobject (lua_State *L, int i, Kind k);
void *testobject (lua_State *L, int i, Kind k); /* NULL if it is not one */

/* Makes the metatable of k with the methods given (NULL-ended), its
** metamethods and __index, and leaves nothing on the stack.  try_ forms of all
** methods exist through __index. */
void newclass (lua_State *L, Kind k, const char *name,
               const luaL_Reg *metamethods);
/* Adds methods to a class, or functions to the table on the top. */
void addmethods (lua_State *L, Kind k, const luaL_Reg *methods);
void addfunctions (lua_State *L, const luaL_Reg *functions);
/* Operators of tensors are added to PARAM as well as to TENSOR. */
void addmetamethods (lua_State *L, Kind k, const luaL_Reg *metamethods);
/* Pushes the table of methods of k. */
void pushmethods (lua_State *L, Kind k);
/* Gives the table on the top __index: try_ forms, and the nearest name in
** the error for a name that is not there.  what: "fnn.nn". */
void setnamespace (lua_State *L, const char *what);
/* Makes of the function on the top its try_ form. */
void make_try (lua_State *L);
/* The string among the keys of t nearest to s, or NULL. */
const char *nearest_key (lua_State *L, int t, const char *s);

/* }====================================================== */

/*
** {======================================================
** Arguments
** =======================================================
*/

/* A tensor, or a Param's value. */
fnn_Tensor *checktensor (lua_State *L, int i);
fnn_Tensor *testtensor (lua_State *L, int i);
fnn_Tensor *opttensor (lua_State *L, int i); /* NULL for none or nil */
fnn_Param *checkparam (lua_State *L, int i);

/* A number, true (1) or false (0).  i is its integer, if it is one. */
typedef struct Number {
  double d;
  int64_t i;
  bool is_integer;
} Number;
Number checknumber (lua_State *L, int i);
Number as_number (double v); /* one that is no integer of Lua's */
/* Inside guard: what the engine has for either kind. */
fnn_Tensor *number_full (int ndim, const int64_t *shape, Number v, fnn_Dtype t,
                         const fnn_Device *d);
void number_fill (fnn_Tensor *x, Number v);
fnn_Tensor *number_masked_fill (fnn_Tensor *x, fnn_Tensor *mask, Number v);

/* A dim of x from a place: 1 .. ndim, or negative from the end; 0-based. */
int checkdim (lua_State *L, int i, const fnn_Tensor *x);
int optdim (lua_State *L, int i, const fnn_Tensor *x, int place);
/* The same where a tensor without dims counts as a line of one. */
int optline (lua_State *L, int i, const fnn_Tensor *x, int place);
/* A place among n (positions along a dim), as 0-based. */
int64_t checkplace (lua_State *L, int i, int64_t n, const char *what);
/* The same for a number that has been read already. */
int64_t place (lua_State *L, int64_t p, int64_t n, const char *what);
/* Where a new dim goes among ndim: 1 .. ndim + 1, the default 1; 0-based. */
int checknewdim (lua_State *L, int i, int ndim);
/* Where a range starts: a place, or the one just behind the last. */
int64_t checkstart (lua_State *L, int i, int64_t n, const char *what);
/* The range first, last, step at i, i + 1, i + 2 along a dim of n, inclusive
** as string.sub reads it: returns its length. */
int64_t checkrange (lua_State *L, int i, int64_t n, int64_t *start,
                    int64_t *step);
/* Dims from place i on: numbers, or one table of them; all when absent.
** Returns how many; *next is the first argument after them. */
int checkdims (lua_State *L, int i, const fnn_Tensor *x, int *dims, int *next);
/* Sizes from i on: numbers, or one table of them. */
int checkshape (lua_State *L, int i, int64_t *shape, int *next);
fnn_Dtype checkdtype (lua_State *L, int i);
const fnn_Device *checkdevice (lua_State *L, int i);

/* raise_error about an argument or option, led by the class of the module at
** 1 that is being made, or by the name of the function: "Linear: option ..." */
int raise_option (lua_State *L, const char *fmt, ...);

/* An options table: the last argument, of string keys; 0 when absent.  Raises
** for a key that is not among names (NULL-ended), naming the nearest. */
int options (lua_State *L, int i, const char *const *names);
/* The same, or the string keys of the list at i when there is nothing at next:
** fnn.zeros{ 2, 3, device = "cuda" }.  May push a table. */
int list_options (lua_State *L, int i, int next, const char *const *names);
/* Its fields; o is what options returned. */
bool opt_boolean (lua_State *L, int o, const char *name, bool d);
double opt_number (lua_State *L, int o, const char *name, double d);
int64_t opt_integer (lua_State *L, int o, const char *name, int64_t d);
const char *opt_string (lua_State *L, int o, const char *name, const char *d);
/* NULL when absent; else it is left on the stack. */
fnn_Tensor *opt_tensor (lua_State *L, int o, const char *name);
fnn_Dtype opt_dtype (lua_State *L, int o, fnn_Dtype d);
const fnn_Device *opt_device (lua_State *L, int o);
fnn_Generator *opt_generator (lua_State *L, int o); /* NULL: the default */

/* A number for all dims, or a list of one for each, at i: fills and returns v.
** name: in messages, "option 'stride'". */
int64_t *sizes_at (lua_State *L, int i, const char *name, int dims,
                   int64_t least, int64_t *v);
/* stride, padding, dilation, groups and output_padding of a convolution with
** a kernel of this size. */
void conv_options (lua_State *L, int o, int dims, const int64_t *size,
                   fnn_ConvOptions *to);

/* A list of tensors in a table, as an array inside a userdata that is pushed.
** *n is how many. */
fnn_Tensor **checktensors (lua_State *L, int i, int *n);
/* Ids: an integer tensor, or a table of integers, which becomes one on d.
** Pushes the box of that tensor. */
fnn_Tensor *checkids (lua_State *L, int i, const fnn_Device *d);

/* }====================================================== */

/*
** {======================================================
** Values of Lua that the engine holds
** =======================================================
*/

typedef struct Slot_ Slot_;

/* Keeps the value at i in Lua: a reference for slot_new. */
int slot_ref (lua_State *L, int i);
/* Inside guard: a slot of that value, which goes with the frame until
** slot_keep gives it to the engine.  name: of the op whose derivative it is,
** which must give n results; NULL for a hook. */
Slot_ *slot_new (Lib *lib, int ref, const char *name, int n);
void slot_keep (Slot_ *s);
int slot_count (const Slot_ *s);
/* Drops it: from anywhere, also inside the engine. */
void slot_drop (void *slot);
void slots_flush (lua_State *L, Lib *lib);
/* The tensor at i, or NULL; and a box of x: without upvalues at hand. */
fnn_Tensor *lib_totensor (lua_State *L, const Lib *lib, int i);
void lib_pushtensor (lua_State *L, const Lib *lib, fnn_Tensor *x);
/* Calls the function in the slot from inside the engine (under guard) with
** n tensors and takes back up to nr tensors (NULL for nil), each a temporary
** of the frame.  An error in it is raised again, unchanged, by the guard. */
void slot_call (Slot_ *s, int n, fnn_Tensor *const *args, int nr,
                fnn_Tensor **results);

/* A call that must be ended, as fnn.no_grad.  With a closer at 1, a function
** at 2 and its arguments above, closer_set readies; then begin what the closer
** ends; then closer_call makes the call and returns how many results are on
** the top.  closer(value, error) is called whether the function returned or
** raised; an error goes on.  kept, if any, sees the results, from place first
** on, before. */
bool closer_set (lua_State *L);
int closer_call (lua_State *L, bool set,
                 void (*kept)(lua_State *L, int first));

/* }====================================================== */

/*
** {======================================================
** Optimizers
** =======================================================
*/

/* The Params in the table (or the one Param) at i, and all of an optimizer,
** as an array in a userdata that is pushed; *n is how many. */
fnn_Param **checkparams (lua_State *L, int i, int *n);
fnn_Param **push_params (lua_State *L, fnn_Optimizer *o, int *n);
/* Pushes the number in the norm that the box on the top has, if that is on the
** host; else the box stays the top. */
void push_norm (lua_State *L, void **box);

/* }====================================================== */

/*
** {======================================================
** Modules
** =======================================================
*/

fnn_Module *checkmodule (lua_State *L, int i);
/* Push the name of the class of the module at i, and what kind of value is at
** i ("fnn.Tensor", "number"), for messages. */
const char *push_class_name (lua_State *L, int i);
const char *push_type_name (lua_State *L, int i);
/* Adds a name to the list in a module's table of fields, once. */
void add_field_name (lua_State *L, int fields, const char *name);
/* Pushes a table of what fnn/nn/ is written with; the others add to it. */
void push_nn (lua_State *L);
void add_layers (lua_State *L);
void add_losses (lua_State *L);
/* Pushes " (in 0.inner: Linear)", the place of the module that is running
** among those it is part of, or "" when none is. */
void push_module_place (lua_State *L);
/* The same for a context's place, ud being the Lib: a number for the module,
** from 1, and to errors' text; 0 when none is.  The name that the profile has
** for it, or nil; and these are found anew. */
int module_place (void *ud, char *to, size_t n);
void push_place_name (lua_State *L, int place);
void forget_places (lua_State *L);

/* }====================================================== */

/*
** {======================================================
** Interrupts (linterrupt.c)
** =======================================================
*/

/* Lets L call the handler before its next instruction, if the token was
** asked. */
void interrupt_notice (lua_State *L, Lib *lib);
/* Calls it now; whether there was one to call.  May raise. */
bool interrupt_call (lua_State *L, Lib *lib);
/* Forgets that the token was asked: the handler waits on. */
void interrupt_forget (Lib *lib);

/* }====================================================== */

/* Whether the script's code that called is part of a finalizer (__gc). */
bool in_finalizer (lua_State *L);
/* Runs a full collection, unless the host has stopped the collector or a
** finalizer runs; false if it did not.  Raises nothing. */
bool collect (lua_State *L, Lib *lib);
/* The same when enough has been made since the last one. */
void collect_if_due (lua_State *L, Lib *lib);

/* Parts of the library: each adds to the table `fnn` on the top. */
void open_tensor (lua_State *L);
void open_graph (lua_State *L);
void open_memory (lua_State *L);
void open_device (lua_State *L);
void open_random (lua_State *L);
void open_math (lua_State *L);
void open_norm (lua_State *L);
void open_attention (lua_State *L);
void open_recurrent (lua_State *L);
void open_pool (lua_State *L);
void open_conv (lua_State *L);
void open_loss (lua_State *L);
void open_view (lua_State *L);
void open_index (lua_State *L);
void open_nn (lua_State *L);
void open_optim (lua_State *L);
void open_clip (lua_State *L);
void open_data (lua_State *L);
void open_io (lua_State *L);
void open_text (lua_State *L);
void open_interrupt (lua_State *L);
void open_file (lua_State *L);
void open_sources (lua_State *L);

/* Adds what fnn/log.lua needs to the table on the top. */
void add_log (lua_State *L);

/* Push what parts of the library in Lua need of the engine: graph_step.lua,
** checkpoints.lua, plot.lua, fnn/seeing/. */
void push_capture (lua_State *L);
void push_folder (lua_State *L);
void push_canvas (lua_State *L);
void push_watch (lua_State *L);

/* The values of a tensor as text. */
int tensor_tostring (lua_State *L);

#endif
