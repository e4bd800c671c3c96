/* recurrent.c - recurrent layers: RNN, LSTM (Hochreiter and Schmidhuber 1997)
** and GRU (Cho et al. 2014, the reset after the product), one node a layer and
** direction.
**
** What the input gives to all gates of all steps is one product; the kernel
** then goes through the steps.  So does its derivative, and what is left are
** products over all steps again.  Steps are the first dim of all that is kept:
** x and the result are views of such, so layers over each other copy nothing.
**
** The node's result z holds h of each step, then the final h and, for an LSTM,
** c: what the caller gets are parts of it. */

#include <string.h>

#include "ops.h"

/* What a layer is made of: the inputs of its node. */
enum { X, W_IH, W_HH, B_IH, B_HH, H, C, PARTS };

/* What its node keeps: x by steps first, the weights, and of the kernel. */
enum { SAVE_X, SAVE_W_IH, SAVE_W_HH, SAVE_GATES, SAVE_INNER, SAVE_Z };
enum { SAVE_H = SAVE_Z + 1, SAVE_C, SAVE_LENGTHS, SAVES };

/* The arguments of its node; from PLACE on where each part stands among its
** inputs, -1 where there is none. */
enum { CELL, REVERSE, PLACE };

static const Epilogue add = { NULL, -1, true, 1 };
static const Epilogue set = { NULL, -1, false, 1 };

/* rows first .. first + rows - 1 of x (n, ...), any number of dims, as a
** matrix of dense rows, and of that some columns. */
static Tensor *block (const Tensor *x, int64_t first, int64_t rows,
                      int64_t col, int64_t cols) {
  int64_t n = x->shape[x->ndim - 1];
  return tensor_view(x, 2, (int64_t[]){ rows, cols }, (int64_t[]){ n, 1 },
                     x->offset + first * n + col);
}

/* All of x as such a matrix. */
static Tensor *rows_of (const Tensor *x) {
  int64_t n = x->shape[x->ndim - 1];
  return block(x, 0, x->numel / n, 0, n);
}

static Tensor *transposed (const Tensor *x) { return view_swap(x, 0, 1); }

/* Places first .. first + n - 1 of a vector. */
static Tensor *piece (const Tensor *x, int64_t first, int64_t n) {
  return view_part(x, 0, first, n, 1);
}

static Tensor *product (const Tensor *a, const Tensor *b, fnn_Dtype t) {
  Tensor *c = tensor_new(2, (int64_t[]){ a->shape[0], b->shape[1] }, t,
                         a->storage->device);
  if (c->numel > 0) kernel(c, matmul)(c, a, b, &set);
  return c;
}

/*
** {======================================================
** Gradients
** =======================================================
*/

/* What the derivative has at hand. */
typedef struct Back {
  Node *n;
  Recurrence r;
  Tensor *x;               /* (steps, batch, in) */
  Tensor *ggates, *ginner; /* ginner: of a GRU, else NULL */
  fnn_Dtype t;
} Back;

static int place_of (const Node *n, int part) {
  return (int)n->i[PLACE + part];
}

static bool wants (const Back *k, int part) {
  int i = place_of(k->n, part);
  return i >= 0 && graph_wants(k->n, i);
}

static void give (const Back *k, int part, Tensor *g) {
  if (wants(k, part)) graph_give(k->n, place_of(k->n, part), g);
}

static fnn_Dtype gradient_dtype (const Back *k, int part) {
  Tensor like = { .dtype = (uint8_t)k->t };
  return autocast_gradient(k->n, place_of(k->n, part), &like);
}

/* Which row of a (steps * batch, ...) matrix is the first step of each
** sequence: for lengths, in reverse. */
static Tensor *first_rows (const Recurrence *r) {
  Tensor *last = fnn_zip_integer(ZIP_sub, (Tensor *)r->lengths, 1, false);
  last = fnn_zip_integer(ZIP_maximum, last, 0, false);
  Tensor *row = fnn_zip_integer(ZIP_mul, last, r->batch, false);
  Tensor *b = tensor_new(1, &r->batch, FNN_I64, r->lengths->storage->device);
  kernel(b, arange)(b, 0, 1);
  return fnn_zip(ZIP_add, row, b);
}

/* The gradients of all first steps, of some columns of g. */
static Tensor *at_start (const Recurrence *r, const Tensor *g, int64_t cols) {
  int64_t rows = r->steps * r->batch, n = g->shape[2];
  if (r->reverse && r->lengths != NULL) {
    Tensor *y = tensor_new(2, (int64_t[]){ r->batch, n }, (fnn_Dtype)g->dtype,
                           g->storage->device);
    kernel(y, index_select)(y, g, first_rows(r), 1, rows, n);
    return block(y, 0, r->batch, 0, cols);
  }
  return block(g, r->reverse ? rows - r->batch : 0, r->batch, 0, cols);
}

/* gw = the sum over steps of g' h, of the first cols columns of g, with h the
** state that the step started from: that of the step before, which z has
** (zeros where a sequence had not started), and of the first what was given. */
static void state_gradient (const Recurrence *r, Tensor *gw, const Tensor *g,
                            int64_t cols) {
  int64_t b = r->batch, rows = (r->steps - 1) * b;
  int64_t from = r->reverse ? 0 : b, state = r->reverse ? b : 0;
  if (rows > 0)
    kernel(gw, matmul)(gw, transposed(block(g, from, rows, 0, cols)),
                       block(r->z, state, rows, 0, r->hidden), &set);
  else kernel(gw, fill)(gw, 0);
  if (r->h != NULL && b > 0)
    kernel(gw, matmul)(gw, transposed(at_start(r, g, cols)), r->h, &add);
}

static Tensor *weight_gradient (const Back *k) {
  const Recurrence *r = &k->r;
  int64_t n = r->hidden, wide = r->w->shape[0], own = wide;
  Tensor *gw = tensor_new(2, r->w->shape, gradient_dtype(k, W_HH),
                          r->w->storage->device);
  if (k->ginner != NULL) own -= n;
  state_gradient(r, view_part(gw, 0, 0, own, 1), k->ggates, own);
  if (k->ginner != NULL)
    state_gradient(r, view_part(gw, 0, own, n, 1), k->ginner, n);
  return gw;
}

static Tensor *sum_rows (const Tensor *g) {
  int64_t n = g->shape[2];
  Tensor *y = tensor_new(1, &n, (fnn_Dtype)g->dtype, g->storage->device);
  kernel(y, reduce)(REDUCE_sum, y, g, 1, g->numel / n, n, 0);
  return y;
}

/* Both biases have one gradient, but where a GRU's reset is between. */
static void give_biases (const Back *k) {
  if (!wants(k, B_IH) && !wants(k, B_HH)) return;
  Tensor *gb = sum_rows(k->ggates);
  give(k, B_IH, gb);
  if (k->ginner == NULL || !wants(k, B_HH)) {
    give(k, B_HH, gb);
    return;
  }
  int64_t n = k->r.hidden;
  Tensor *gu = tensor_like(gb);
  kernel(gu, copy)(piece(gu, 0, 2 * n), piece(gb, 0, 2 * n));
  kernel(gu, copy)(piece(gu, 2 * n, n), sum_rows(k->ginner));
  give(k, B_HH, gu);
}

static void give_input (const Back *k) {
  Tensor *g = rows_of(k->ggates);
  if (wants(k, X)) {
    Tensor *w = graph_saved(k->n, SAVE_W_IH);
    int64_t shape[3] = { k->r.steps, k->r.batch, w->shape[1] };
    Tensor *gx = product(g, w, gradient_dtype(k, X));
    give(k, X, view_swap(view_fold(gx, 3, shape), 0, 1));
  }
  if (wants(k, W_IH))
    give(k, W_IH,
         product(transposed(g), rows_of(k->x), gradient_dtype(k, W_IH)));
}

static Recurrence recurrence_of (Node *n) {
  Tensor *z = graph_saved(n, SAVE_Z);
  Recurrence r = { .cell = (fnn_Cell)n->i[CELL],
                   .reverse = n->i[REVERSE] != 0,
                   .batch = z->shape[1],
                   .hidden = z->shape[2],
                   .w = graph_saved(n, SAVE_W_HH),
                   .h = graph_saved(n, SAVE_H),
                   .c = graph_saved(n, SAVE_C),
                   .lengths = graph_saved(n, SAVE_LENGTHS),
                   .gates = graph_saved(n, SAVE_GATES),
                   .inner = graph_saved(n, SAVE_INNER),
                   .z = z };
  r.steps = r.gates->shape[0];
  return r;
}

static void recurrent_back (Node *n, Tensor *gz) {
  Back k = { .n = n, .r = recurrence_of(n), .x = graph_saved(n, SAVE_X) };
  const Recurrence *r = &k.r;
  const fnn_Device *d = gz->storage->device;
  k.t = (fnn_Dtype)r->gates->dtype;
  k.ggates = tensor_like(r->gates);
  if (r->cell == FNN_GRU) k.ginner = tensor_like(r->inner);
  int64_t shape[2] = { r->batch, r->hidden };
  Tensor *gh = NULL, *gc = NULL;
  if (wants(&k, H)) gh = tensor_new(2, shape, dtype_wide(k.t), d);
  if (wants(&k, C)) gc = tensor_new(2, shape, dtype_wide(k.t), d);
  if (gz->numel > 0)
    kernel(gz, recurrent_back)(k.ggates, k.ginner, gh, gc, tensor_dense(gz),
                               r);
  give(&k, H, gh);
  give(&k, C, gc);
  give_input(&k);
  if (wants(&k, W_HH)) give(&k, W_HH, weight_gradient(&k));
  give_biases(&k);
}

static const Rule lstm_rule = { "lstm", recurrent_back };
static const Rule gru_rule = { "gru", recurrent_back };
static const Rule rnn_rule = { "rnn", recurrent_back };

static const Rule *rule_of (fnn_Cell c) {
  return c == FNN_LSTM ? &lstm_rule : c == FNN_GRU ? &gru_rule : &rnn_rule;
}

/* }====================================================== */

/*
** {======================================================
** Checks
** =======================================================
*/

static void check_shape (const char *op, const char *what, const Tensor *y,
                         int ndim, int64_t a, int64_t b, const Tensor *x,
                         const Tensor *w) {
  if (y == NULL) return;
  if (!tensor_is_float(y)) tensor_check_float(op, y);
  tensor_check_device(op, x, y);
  if (y->ndim == ndim && y->shape[0] == a && (ndim == 1 || y->shape[1] == b))
    return;
  ShapeText want;
  fnn_throw(FNN_ESHAPE, "%s: %s %s for x %s and w_hh %s (expected %s)", op,
            what, shape_text(y), shape_text(x), shape_text(w),
            shape_print(&want, ndim, (int64_t[]){ a, b }));
}

static void check (const char *op, const Tensor *x, const fnn_Recurrent *r) {
  const Tensor *w = r->w_hh;
  int gates = cell_gates(r->cell);
  if (!tensor_is_float(x)) tensor_check_float(op, x);
  if (x->ndim != 3 || x->shape[1] == 0 || x->shape[2] == 0)
    fnn_throw(FNN_ESHAPE,
              "%s: x %s (expected (batch, steps, inputs), of 1 step and 1 "
              "input or more)",
              op, shape_text(x));
  if (w->ndim != 2 || w->shape[1] == 0 || w->shape[0] != gates * w->shape[1])
    fnn_throw(FNN_ESHAPE,
              "%s: w_hh %s (expected (%s hidden, hidden), for %d gate%s)", op,
              shape_text(w),
              gates == 4   ? "4"
              : gates == 3 ? "3"
                           : "1",
              gates, gates == 1 ? "" : "s");
  int64_t b = x->shape[0], n = w->shape[1], wide = w->shape[0];
  check_shape(op, "w_hh", w, 2, wide, n, x, w);
  check_shape(op, "w_ih", r->w_ih, 2, wide, x->shape[2], x, w);
  check_shape(op, "b_ih", r->b_ih, 1, wide, 0, x, w);
  check_shape(op, "b_hh", r->b_hh, 1, wide, 0, x, w);
  check_shape(op, "the state h", r->h, 2, b, n, x, w);
  check_shape(op, "the state c", r->c, 2, b, n, x, w);
  if ((r->b_ih == NULL) != (r->b_hh == NULL))
    fnn_throw(FNN_EARG, "%s: one bias of two (expected both, or none)", op);
  if (r->c != NULL && r->cell != FNN_LSTM)
    fnn_throw(FNN_EARG, "%s: has no state c: an LSTM has", op);
  if (r->cell == FNN_LSTM && (r->h == NULL) != (r->c == NULL))
    fnn_throw(FNN_EARG, "%s: one state of two (expected h and c)", op);
}

/* The lengths as dense i64, or NULL; on the host all of them are looked at
** here, elsewhere later. */
static Tensor *lengths_of (const char *op, const Tensor *x, Tensor *lengths) {
  if (lengths == NULL) return NULL;
  tensor_check_ids(op, lengths);
  tensor_check_device(op, x, lengths);
  if (lengths->ndim != 1 || lengths->shape[0] != x->shape[0])
    fnn_throw(FNN_ESHAPE, "%s: lengths %s for x %s (expected (%lld))", op,
              shape_text(lengths), shape_text(x), (long long)x->shape[0]);
  if (!x->storage->device->host)
    return ids_checked(op, x, lengths, x->shape[1] + 1, "lengths");
  lengths = tensor_dense(tensor_convert(lengths, FNN_I64));
  const int64_t *n = tensor_data(lengths);
  for (int64_t b = 0; b < lengths->numel; b++)
    if (n[b] < 0 || n[b] > x->shape[1])
      fnn_throw(FNN_EARG,
                "%s: length %lld of sequence %lld (expected 0 to %lld, the "
                "steps of x %s)",
                op, (long long)n[b], (long long)b + 1, (long long)x->shape[1],
                shape_text(x));
  return lengths;
}

/* }====================================================== */

/*
** {======================================================
** Forward
** =======================================================
*/

/* The dtype to compute in: f32 where that of promotion only stores. */
static fnn_Dtype compute_dtype (const Tensor *x, const fnn_Recurrent *r) {
  fnn_Dtype t = fnn_promote((fnn_Dtype)x->dtype, (fnn_Dtype)r->w_ih->dtype);
  t = fnn_promote(t, (fnn_Dtype)r->w_hh->dtype);
  return dtype_is_compute(t) || !x->storage->device->host ? t : FNN_F32;
}

/* Both biases as one, but for what a GRU's reset scales: *rest. */
static Tensor *bias_of (fnn_Cell cell, const Tensor *a, const Tensor *b,
                        int64_t n, const Tensor **rest) {
  *rest = NULL;
  if (a == NULL) return NULL;
  Tensor *y = tensor_like(a);
  if (cell != FNN_GRU) {
    kernel(y, zip)(ZIP_add, y, a, b);
    return y;
  }
  kernel(y, copy)(y, a);
  kernel(y, zip)(ZIP_add, piece(y, 0, 2 * n), piece(a, 0, 2 * n),
                 piece(b, 0, 2 * n));
  *rest = piece(b, 2 * n, n);
  return y;
}

/* Fills r for what is read of the parts, and runs it. */
static void run (Recurrence *r, Tensor *const *read, fnn_Dtype t) {
  const fnn_Device *d = read[X]->storage->device;
  int64_t wide = read[W_IH]->shape[0], n = r->hidden;
  int64_t shape[3] = { r->steps, r->batch, wide };
  Epilogue e = { bias_of(r->cell, read[B_IH], read[B_HH], n, &r->bias), -1,
                 false, 1 };
  r->w = read[W_HH];
  r->h = read[H];
  r->c = read[C];
  r->gates = tensor_new(3, shape, t, d);
  shape[2] = n;
  if (r->cell == FNN_LSTM) r->inner = tensor_new(3, shape, dtype_wide(t), d);
  if (r->cell == FNN_GRU) r->inner = tensor_new(3, shape, t, d);
  shape[0] += r->cell == FNN_LSTM ? 2 : 1;
  r->z = tensor_new(3, shape, t, d);
  if (r->batch == 0) return;
  kernel(r->z, matmul)(rows_of(r->gates), rows_of(read[X]),
                       transposed(read[W_IH]), &e);
  kernel(r->z, recurrent)(r);
}

static void record (const Recurrence *r, Tensor *const *parts,
                    Tensor *const *read) {
  Tensor *in[PARTS];
  int64_t place[PARTS];
  int n = 0;
  for (int i = 0; i < PARTS; i++) {
    place[i] = parts[i] != NULL ? n : -1;
    if (parts[i] != NULL) in[n++] = parts[i];
  }
  Node *k = graph_record(r->z, rule_of(r->cell), n, in, SAVES);
  if (k == NULL) return;
  k->i[CELL] = r->cell;
  k->i[REVERSE] = r->reverse;
  memcpy(&k->i[PLACE], place, sizeof place);
  bool of_x = graph_wants(k, (int)place[X]);
  bool of_w = graph_wants(k, (int)place[W_IH]);
  graph_save(k, SAVE_X, of_w ? read[X] : NULL);
  graph_save(k, SAVE_W_IH, of_x ? read[W_IH] : NULL);
  graph_save(k, SAVE_W_HH, read[W_HH]);
  graph_save(k, SAVE_GATES, r->gates);
  graph_save(k, SAVE_INNER, r->inner);
  graph_save(k, SAVE_Z, r->z);
  graph_save(k, SAVE_H, r->h);
  graph_save(k, SAVE_C, r->c);
  graph_save(k, SAVE_LENGTHS, r->lengths);
}

/* A part as it is read: rounded where autocast asks for it, which the CPU does
** before it computes in f32; dense, x by steps first, c in the dtype of
** sums. */
static void read_parts (Tensor **parts, Tensor **read, fnn_Dtype *t) {
  bool rounds = autocast_is_on(*t);
  fnn_Dtype as = *t;
  if (rounds && !parts[X]->storage->device->host)
    as = (fnn_Dtype)context()->autocast;
  for (int i = 0; i < PARTS; i++) {
    read[i] = NULL;
    if (parts[i] == NULL) continue;
    if (!rounds) parts[i] = fnn_cast(parts[i], *t);
    Tensor *y = parts[i];
    if (rounds && i <= W_HH) y = autocast_data(y);
    y = tensor_convert(y, i == C ? dtype_wide(as) : as);
    read[i] = tensor_dense(i == X ? view_swap(y, 0, 1) : y);
  }
  *t = as;
}

Tensor *fnn_recurrent (Tensor *x, const fnn_Recurrent *o, Tensor **h,
                       Tensor **c) {
  const char *op = rule_of(o->cell)->name;
  check(op, x, o);
  Tensor *parts[PARTS] = { x, o->w_ih, o->w_hh, o->b_ih, o->b_hh, o->h, o->c };
  Tensor *read[PARTS];
  fnn_Dtype t = compute_dtype(x, o);
  Recurrence r = { .cell = o->cell,
                   .reverse = o->reverse,
                   .batch = x->shape[0],
                   .steps = x->shape[1],
                   .hidden = o->w_hh->shape[1],
                   .lengths = lengths_of(op, x, o->lengths) };
  read_parts(parts, read, &t);
  run(&r, read, t);
  record(&r, parts, read);
  if (h != NULL) *h = fnn_select(r.z, 0, r.steps);
  if (c != NULL)
    *c = r.cell == FNN_LSTM ? fnn_select(r.z, 0, r.steps + 1) : NULL;
  return fnn_transpose(fnn_narrow(r.z, 0, 0, r.steps), 0, 1);
}

/* }====================================================== */
