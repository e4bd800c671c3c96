/* recurrent.c - recurrent networks: one layer over all steps.
**
** A step is a product of the states with the weights, which were packed once
** for all steps, and a pass over the gates.  Sequences do not know of each
** other: each thread takes some of them through all steps, and waits for no
** other.  Where there are far fewer sequences than threads, each takes some
** columns of the states, and all meet after each step.
**
** An element is summed in the order of k however the work is split (gemm.h):
** results do not depend on the number of threads. */

#include "gemm.h"

#include "../core/vmath.h"

enum {
  TASK = VEC * 20000000, /* multiplications of one: it ends within 50 ms */
  SHARED = 400000        /* of a step that threads share */
};

/* Of these rows and columns of the states. */
typedef struct Part {
  int64_t row, rows, col, cols;
} Part;

typedef struct Job {
  const Recurrence *r;
  int gates;
  int64_t steps, batch, n, wide; /* n: hidden; wide: of all gates */
  real *gate, *inner, *z;
  const real *bias, *h, *c;
  const int64_t *length;
  const real *zero; /* (hidden) of them */
  char *packed;     /* weights: of each gate, or of each summand of gh */
  size_t each;      /* bytes of one */
  real *scratch;
  int64_t room; /* reals of one thread's */
  /* backward */
  real *dgate, *dinner, *dh, *dc;
  const real *dz;
  /* the split */
  bool by_columns;
  int64_t size;        /* rows or columns of a task */
  int64_t first, last; /* steps of this run, first .. last - 1 */
  void (*step)(const struct Job *k, int64_t s, Part p, real *scratch);
} Job;

/* Where step s is in time; and the row of its states. */
static int64_t time_of (const Job *k, int64_t s) {
  return k->r->reverse ? k->steps - 1 - s : s;
}

static int64_t row_of (const Job *k, int64_t s, int64_t b) {
  return time_of(k, s) * k->batch + b;
}

static bool is_done (const Job *k, int64_t s, int64_t b) {
  return k->length != NULL && time_of(k, s) >= k->length[b];
}

/* The state that step s of sequence b starts from. */
static const real *before (const Job *k, const real *states, const real *start,
                           int64_t s, int64_t b) {
  bool waits = s == 0 || (k->r->reverse && is_done(k, s - 1, b));
  if (!waits) return states + row_of(k, s - 1, b) * k->n;
  return start != NULL ? start + b * k->n : k->zero;
}

/* c (rows, cols) += a w, the part p of it; a (batch, depth) with rows lda
** apart, w the packed one at place i. */
static void multiply (const Job *k, const real *a, int64_t lda, int64_t depth,
                      int i, real *c, int64_t ldc, Part p, const real *bias,
                      real *scratch) {
  Gemm g = { .m = p.rows,
             .n = k->n,
             .k = depth,
             .a = { a + p.row * lda, lda, 1, SOURCE_REAL },
             .c = c + p.row * ldc,
             .ldc = ldc,
             .bias = bias,
             .alpha = 1,
             .accumulate = bias == NULL };
  CPU(gemm_packed_serial)
  (&g, k->packed + i * k->each, p.col, p.cols, scratch);
}

/*
** {======================================================
** Forward
** =======================================================
*/

/* With c the state before and to what follows: i, f, g, o become gates. */
static void lstm (real *restrict gate, real *restrict to, real *restrict h,
                  const real *restrict c, int64_t n, int64_t from,
                  int64_t end) {
  LANES for (int64_t j = from; j < end; j++) {
    real i = sigmoid(gate[j]), f = sigmoid(gate[n + j]);
    real g = tanh(gate[2 * n + j]), o = sigmoid(gate[3 * n + j]);
    real s = f * c[j] + i * g;
    gate[j] = i;
    gate[n + j] = f;
    gate[2 * n + j] = g;
    gate[3 * n + j] = o;
    to[j] = s;
    h[j] = o * tanh(s);
  }
}

static void gru (real *restrict gate, const real *restrict u, real *restrict h,
                 const real *restrict old, int64_t n, int64_t from,
                 int64_t end) {
  LANES for (int64_t j = from; j < end; j++) {
    real r = sigmoid(gate[j]), z = sigmoid(gate[n + j]);
    real v = tanh(gate[2 * n + j] + r * u[j]);
    gate[j] = r;
    gate[n + j] = z;
    gate[2 * n + j] = v;
    h[j] = (1 - z) * v + z * old[j];
  }
}

static void plain (real *restrict gate, real *restrict h, bool relu, int64_t j,
                   int64_t end) {
  if (relu)
    LANES for (int64_t i = j; i < end; i++) h[i] = gate[i] =
        gate[i] < 0 ? 0 : gate[i];
  else LANES for (int64_t i = j; i < end; i++) h[i] = gate[i] = tanh(gate[i]);
}

static void forward_row (const Job *k, int64_t s, int64_t b, int64_t j,
                         int64_t end) {
  int64_t n = k->n, at = row_of(k, s, b);
  real *gate = k->gate + at * k->wide, *h = k->z + at * n;
  real *inner = k->inner != NULL ? k->inner + at * n : NULL;
  size_t bytes = (size_t)(end - j) * sizeof(real);
  bool is_lstm = k->r->cell == FNN_LSTM;
  const real *c = is_lstm ? before(k, k->inner, k->c, s, b) : NULL;
  if (is_done(k, s, b)) { /* zeros come later: the next step needs these */
    memcpy(h + j, before(k, k->z, k->h, s, b) + j, bytes);
    if (is_lstm) memcpy(inner + j, c + j, bytes);
    return;
  }
  switch (k->r->cell) {
    case FNN_LSTM: lstm(gate, inner, h, c, n, j, end); break;
    case FNN_GRU:
      gru(gate, inner, h, before(k, k->z, k->h, s, b), n, j, end);
      break;
    default: plain(gate, h, k->r->cell == FNN_RNN_RELU, j, end);
  }
}

/* What h gives to a GRU's n where it is zero. */
static void forward_bias (const Job *k, int64_t s, Part p) {
  for (int64_t b = p.row; b < p.row + p.rows; b++)
    memcpy(k->inner + row_of(k, s, b) * k->n + p.col, k->bias + p.col,
           (size_t)p.cols * sizeof(real));
}

static void forward_step (const Job *k, int64_t s, Part p, real *scratch) {
  int64_t n = k->n, at = row_of(k, s, 0);
  const real *h = s > 0 ? k->z + row_of(k, s - 1, 0) * n : k->h;
  bool is_gru = k->r->cell == FNN_GRU;
  for (int i = 0; h != NULL && k->packed != NULL && i < k->gates; i++) {
    if (is_gru && i == 2)
      multiply(k, h, n, n, i, k->inner + at * n, n, p, k->bias, scratch);
    else
      multiply(k, h, n, n, i, k->gate + at * k->wide + i * n, k->wide, p, NULL,
               scratch);
  }
  if (is_gru && h == NULL) forward_bias(k, s, p);
  for (int64_t b = p.row; b < p.row + p.rows; b++)
    forward_row(k, s, b, p.col, p.col + p.cols);
}

/* c (batch, cols) += h w of gates from the first on; or, for what a GRU's reset
** scales, = h w + bias. */
static void multiply_gates (const Job *k, int first, int64_t cols, real *c,
                            int64_t ldc, const real *bias) {
  int64_t n = k->n;
  const real *w = (const real *)tensor_data(k->r->w) + first * n * n;
  Gemm g = { .m = k->batch,
             .n = cols,
             .k = n,
             .a = { k->h, n, 1, SOURCE_REAL },
             .b = { w, 1, n, SOURCE_REAL },
             .c = c,
             .ldc = ldc,
             .bias = bias,
             .alpha = 1,
             .accumulate = bias == NULL };
  CPU(gemm)(&g);
}

/* The product of a sequence of one step, for which nothing is packed. */
static void forward_once (const Job *k) {
  bool is_gru = k->r->cell == FNN_GRU;
  if (k->h == NULL) return;
  multiply_gates(k, 0, is_gru ? 2 * k->n : k->wide, k->gate, k->wide, NULL);
  if (is_gru) multiply_gates(k, 2, k->n, k->inner, k->n, k->bias);
}

/* }====================================================== */

/*
** {======================================================
** Backward.  dh and dc are what reaches a state from the steps after it; each
** step leaves there what does not go through the weights.
** =======================================================
*/

static void lstm_back (real *restrict d, real *restrict dh, real *restrict dc,
                       const real *restrict dz, const real *restrict gate,
                       const real *restrict to, const real *restrict c,
                       int64_t n, int64_t from, int64_t end) {
  LANES for (int64_t j = from; j < end; j++) {
    real i = gate[j], f = gate[n + j];
    real g = gate[2 * n + j], o = gate[3 * n + j];
    real t = tanh(to[j]), e = dh[j] + dz[j];
    real s = dc[j] + e * o * (1 - t * t);
    d[j] = s * g * (i * (1 - i));
    d[n + j] = s * c[j] * (f * (1 - f));
    d[2 * n + j] = s * i * (1 - g * g);
    d[3 * n + j] = e * t * (o * (1 - o));
    dc[j] = s * f;
    dh[j] = 0;
  }
}

static void gru_back (real *restrict d, real *restrict du, real *restrict dh,
                      const real *restrict dz, const real *restrict gate,
                      const real *restrict u, const real *restrict old,
                      int64_t n, int64_t from, int64_t end) {
  LANES for (int64_t j = from; j < end; j++) {
    real r = gate[j], z = gate[n + j], v = gate[2 * n + j];
    real e = dh[j] + dz[j], dv = e * (1 - z) * (1 - v * v);
    d[j] = dv * u[j] * (r * (1 - r));
    d[n + j] = e * (old[j] - v) * (z * (1 - z));
    d[2 * n + j] = dv;
    du[j] = dv * r;
    dh[j] = e * z;
  }
}

static void plain_back (real *restrict d, real *restrict dh,
                        const real *restrict dz, const real *restrict h,
                        bool relu, int64_t j, int64_t end) {
  LANES for (int64_t i = j; i < end; i++) {
    real slope = relu ? (h[i] > 0 ? (real)1 : (real)0) : 1 - h[i] * h[i];
    d[i] = (dh[i] + dz[i]) * slope;
    dh[i] = 0;
  }
}

static void backward_row (const Job *k, int64_t s, int64_t b, int64_t j,
                          int64_t end) {
  int64_t n = k->n, at = row_of(k, s, b);
  real *d = k->dgate + at * k->wide, *dh = k->dh + b * n;
  real *du = k->dinner != NULL ? k->dinner + at * n : NULL;
  const real *gate = k->gate + at * k->wide, *dz = k->dz + at * n;
  size_t bytes = (size_t)(end - j) * sizeof(real);
  if (is_done(k, s, b)) {
    for (int i = 0; i < k->gates; i++) memset(d + i * n + j, 0, bytes);
    if (du != NULL) memset(du + j, 0, bytes);
    return;
  }
  switch (k->r->cell) {
    case FNN_LSTM:
      lstm_back(d, dh, k->dc + b * n, dz, gate, k->inner + at * n,
                before(k, k->inner, k->c, s, b), n, j, end);
      break;
    case FNN_GRU:
      gru_back(d, du, dh, dz, gate, k->inner + at * n,
               before(k, k->z, k->h, s, b), n, j, end);
      break;
    default: plain_back(d, dh, dz, gate, k->r->cell == FNN_RNN_RELU, j, end);
  }
}

/* dh += what step s was given, through the weights. */
static void backward_product (const Job *k, int64_t s, Part p, real *scratch) {
  int64_t n = k->n, at = row_of(k, s, 0);
  bool is_gru = k->r->cell == FNN_GRU;
  multiply(k, k->dgate + at * k->wide, k->wide, is_gru ? 2 * n : k->wide, 0,
           k->dh, n, p, NULL, scratch);
  if (is_gru)
    multiply(k, k->dinner + at * n, n, n, 1, k->dh, n, p, NULL, scratch);
}

/* Counted from the last step back. */
static void backward_step (const Job *k, int64_t i, Part p, real *scratch) {
  int64_t s = k->steps - 1 - i;
  if (i > 0) backward_product(k, s + 1, p, scratch);
  if (s < 0) return;
  for (int64_t b = p.row; b < p.row + p.rows; b++)
    backward_row(k, s, b, p.col, p.col + p.cols);
}

/* }====================================================== */

/*
** {======================================================
** All steps, by all threads
** =======================================================
*/

static void run_task (void *ud, int64_t task, int worker) {
  const Job *k = ud;
  int64_t lo = task * k->size;
  Part p = { 0, k->batch, 0, k->n };
  if (k->by_columns) {
    p.col = lo;
    p.cols = min64(k->size, k->n - lo);
  } else {
    p.row = lo;
    p.rows = min64(k->size, k->batch - lo);
  }
  for (int64_t s = k->first; s < k->last; s++)
    k->step(k, s, p, k->scratch + worker * k->room);
}

/* Runs k->step for 0 .. steps - 1. */
static void run_steps (Job *k, int64_t steps) {
  int64_t width = threads_width(), each = k->wide * k->n;
  int64_t pieces = min64(width, divide_up(k->n, TILE_COLS));
  k->by_columns = pieces >= 2 * k->batch && k->batch * each >= SHARED;
  int64_t most = 1, all = k->by_columns ? k->n : k->batch;
  k->size = divide_up(all, width);
  if (k->by_columns) k->size = divide_up(k->size, TILE_COLS) * TILE_COLS;
  else most = max64(1, TASK / (k->size * each));
  for (k->first = 0; k->first < steps; k->first = k->last) {
    k->last = min64(steps, k->first + most);
    threads_run(divide_up(all, k->size), run_task, k);
  }
}

static Job job_of (const Recurrence *r) {
  Job k = { .r = r,
            .gates = cell_gates(r->cell),
            .steps = r->steps,
            .batch = r->batch,
            .n = r->hidden };
  k.wide = k.gates * k.n;
  k.gate = tensor_data(r->gates);
  k.z = tensor_data(r->z);
  if (r->inner != NULL) k.inner = tensor_data(r->inner);
  if (r->h != NULL) k.h = tensor_data(r->h);
  if (r->c != NULL) k.c = tensor_data(r->c);
  if (r->lengths != NULL) k.length = tensor_data(r->lengths);
  real *zero = mem_scratch((size_t)k.n * sizeof(real));
  memset(zero, 0, (size_t)k.n * sizeof(real));
  k.zero = zero;
  k.bias = r->bias != NULL ? tensor_data(r->bias) : zero;
  return k;
}

/* Room for weights of these depths, and each thread's for products. */
static void make_room (Job *k, int count, int64_t depth) {
  Gemm g = { .m = k->batch, .n = k->n, .k = depth };
  g.a = (Operand){ NULL, 2, 2, SOURCE_REAL }; /* one that is packed */
  k->each = (CPU(gemm_packed_size)(depth, k->n) + 63) / 64 * 64;
  k->packed = mem_scratch((size_t)count * k->each);
  k->room = (CPU(gemm_packed_scratch)(&g) + 15) / 16 * 16;
  k->scratch = mem_scratch((size_t)(k->room * threads_width()) * sizeof(real));
}

static void pack_gates (Job *k) {
  make_room(k, k->gates, k->n);
  for (int i = 0; i < k->gates; i++) {
    const real *w = (const real *)tensor_data(k->r->w) + i * k->n * k->n;
    CPU(gemm_prepack)
    (k->n, k->n, (Operand){ w, 1, k->n, SOURCE_REAL },
     k->packed + i * k->each);
  }
}

/* The final states, and zeros after the end of each sequence. */
static void finish (const Job *k) {
  int64_t size = k->batch * k->n, last = row_of(k, k->steps - 1, 0) * k->n;
  size_t bytes = (size_t)size * sizeof(real);
  memcpy(k->z + k->steps * size, k->z + last, bytes);
  if (k->r->cell == FNN_LSTM)
    memcpy(k->z + (k->steps + 1) * size, k->inner + last, bytes);
  if (k->length == NULL) return;
  for (int64_t b = 0; b < k->batch; b++)
    for (int64_t t = k->length[b]; t < k->steps; t++)
      memset(k->z + (t * k->batch + b) * k->n, 0, (size_t)k->n * sizeof(real));
}

void CPU (recurrent)(const Recurrence *r) {
  size_t mark = fnn_mark();
  Job k = job_of(r);
  if (k.steps > 1) pack_gates(&k);
  else forward_once(&k);
  k.step = forward_step;
  run_steps(&k, k.steps);
  finish(&k);
  fnn_escape(mark, NULL);
}

static void pack_back (Job *k) {
  int64_t n = k->n, first = k->r->cell == FNN_GRU ? 2 * n : k->wide;
  const real *w = tensor_data(k->r->w);
  make_room(k, first < k->wide ? 2 : 1, first);
  CPU(gemm_prepack)
  (first, n, (Operand){ w, n, 1, SOURCE_REAL }, k->packed);
  if (first < k->wide) CPU(gemm_prepack)
  (n, n, (Operand){ w + first * n, n, 1, SOURCE_REAL }, k->packed + k->each);
}

void CPU (recurrent_back)(Tensor *ggates, Tensor *ginner, Tensor *gh,
                          Tensor *gc, const Tensor *gz, const Recurrence *r) {
  size_t mark = fnn_mark();
  Job k = job_of(r);
  size_t bytes = (size_t)(k.batch * k.n) * sizeof(real);
  k.dz = tensor_data(gz);
  k.dgate = tensor_data(ggates);
  if (ginner != NULL) k.dinner = tensor_data(ginner);
  k.dh = gh != NULL ? tensor_data(gh) : mem_scratch(bytes);
  k.dc = gc != NULL ? tensor_data(gc) : mem_scratch(bytes);
  memcpy(k.dh, k.dz + k.steps * k.batch * k.n, bytes);
  if (r->cell == FNN_LSTM)
    memcpy(k.dc, k.dz + (k.steps + 1) * k.batch * k.n, bytes);
  if (k.steps > 1 || gh != NULL) pack_back(&k);
  k.step = backward_step;
  run_steps(&k, k.steps + (gh != NULL ? 1 : 0));
  fnn_escape(mark, NULL);
}

/* }====================================================== */
