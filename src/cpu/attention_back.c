/* attention_back.c - the gradients of attention.
**
** The weights p of a block are made again from the logarithms that forward
** kept.  With g the gradient of y, keep what dropout multiplies by, delta =
** sum(g y) over a query's result and ds = p (keep (g v') - delta) scale:
** gv = (p keep)' g, gk = ds' q, gq = ds k.  Those that are NULL are not made.
**
** A task is a part of the keys of a group of heads: no other one adds to its
** gk and gv.  Where there are several parts each sums a gq of its own, which
** are then added in order.  Parts depend on shapes alone, and are at most
** PARTS, so that memory stays linear.  Queries go by rounds of tiles: between
** them a set cancel token is seen. */

#include <float.h>

#include "attention.h"

#ifdef CPU_DOUBLE
#define MOST DBL_MAX
#else
#define MOST FLT_MAX
#endif

enum {
  SPAN = 4 * WIDTH, /* queries of a tile */
  KEYS = 64,        /* of a block */
  PARTS = 8,
  PART_LEAST = 256,     /* keys */
  TASKS = 32,           /* that there should be, for many threads */
  WORK = VEC * 50000000 /* products of a task: it ends within 50 ms */
};

typedef struct Job {
  Tensor *gq, *gk, *gv;
  const Tensor *gy, *y, *lse, *q, *k, *v;
  const Attention *a;
  int64_t heads, groups, each;
  int64_t m, n, d, e;
  int64_t keys, parts, part; /* of a block; parts, and the keys of one */
  int64_t lo, hi;            /* the queries of this round */
  real *sums;                /* (parts, b, heads, queries of a round, d) */
  int64_t round;
  real *scratch;
  int64_t scratch_each, k_size, v_size;
} Job;

/* A tile's queries, as panels for products with keys and values (q, g) and for
** those with weights (qb, gb), and what it works at. */
typedef struct Tile {
  int64_t i, rows; /* of queries */
  bool begun;
  real *q, *g, *gq; /* (panels, d or e, WIDTH) */
  real *qb, *gb;
  real *p, *ds; /* (keys, SPAN) */
  real *buf, *kbuf, *vbuf;
  _Alignas(64) real log[SPAN], delta[SPAN];
} Tile;

static real *at (const Tensor *x, int64_t b, int64_t h, int64_t i) {
  return (real *)tensor_data(x) + b * x->stride[0] + h * x->stride[1] +
         i * x->stride[2];
}

static int64_t packed (int64_t d) {
  return divide_up(d, TILE_COLS) * gemm_panel(SPAN);
}

/*
** {======================================================
** Tiles
** =======================================================
*/

/* Gives a tile its parts of a worker's scratch, whole cache lines each; without
** one tells only how many reals it takes. */
static int64_t tile_place (const Job *g, Tile *t, real *room) {
  struct {
    real **at;
    int64_t size;
  } list[] = {
    { &t->q, g->d * SPAN },     { &t->g, g->e * SPAN },
    { &t->gq, g->d * SPAN },    { &t->qb, packed(g->d) },
    { &t->gb, packed(g->e) },   { &t->p, g->keys * SPAN },
    { &t->ds, g->keys * SPAN }, { &t->buf, attention_buffer(g->keys) },
    { &t->kbuf, g->k_size },    { &t->vbuf, g->v_size }
  };
  int64_t used = 0;
  for (int i = 0; i < countof(list); i++) {
    if (room != NULL) *list[i].at = room + used;
    used += divide_up(list[i].size, 16) * 16;
  }
  return used;
}

static real dot (const real *x, const real *y, int64_t n) {
  real s = 0;
  _Pragma("omp simd reduction(+:s)") for (int64_t i = 0; i < n; i++) s +=
      x[i] * y[i];
  return s;
}

/* Queries that see nothing have weights 0: 2^(x - infinity). */
static real log_of (real lse) {
  if (lse == -(real)INFINITY) return (real)INFINITY;
  real l = lse * (real)LOG2_E;
  return l < -MOST ? -MOST : l;
}

static void tile_begin (const Job *g, Tile *t, int64_t b, int64_t h,
                        int64_t i) {
  int64_t rows = min64(SPAN, g->m - i);
  int64_t sq = g->q->stride[2], sg = g->gy->stride[2];
  const real *q = at(g->q, b, h, i), *gy = at(g->gy, b, h, i);
  const real *lse =
      (const real *)tensor_data(g->lse) + (b * g->heads + h) * g->m + i;
  real scale = (real)g->a->scale;
  t->i = i;
  t->rows = rows;
  t->begun = false;
  for (int64_t r = 0; r < rows; r += WIDTH) {
    int64_t some = min64(WIDTH, rows - r);
    CPU(attention_pack)
    (q + r * sq, sq, some, g->d, (real)(g->a->scale * LOG2_E),
     t->q + r * g->d);
    CPU(attention_pack)(gy + r * sg, sg, some, g->e, scale, t->g + r * g->e);
  }
  if (g->gk != NULL)
    CPU(gemm_pack_b)(g->d, rows, (Operand){ q, sq, 1, SOURCE_REAL }, t->qb);
  if (g->gv != NULL)
    CPU(gemm_pack_b)(g->e, rows, (Operand){ gy, sg, 1, SOURCE_REAL }, t->gb);
  for (int64_t r = 0; r < SPAN; r++) {
    t->log[r] = r < rows ? log_of(lse[r]) : (real)INFINITY;
    t->delta[r] =
        r < rows ? scale * dot(gy + r * sg, at(g->y, b, h, i + r), g->e) : 0;
  }
}

/* The tile's part of gq, to where it is summed up. */
static void tile_end (const Job *g, Tile *t, int64_t b, int64_t h,
                      int64_t part) {
  real *to = at(g->gq, b, h, t->i), one[WIDTH];
  int64_t stride = g->gq->stride[2];
  if (g->parts > 1) {
    int64_t head = (part * g->q->shape[0] + b) * g->heads + h;
    to = g->sums + (head * g->round + t->i - g->lo) * g->d;
    stride = g->d;
  }
  for (int l = 0; l < WIDTH; l++) one[l] = 1;
  if (!t->begun) memset(t->gq, 0, (size_t)(g->d * SPAN) * sizeof(real));
  for (int64_t r = 0; r < t->rows; r += WIDTH) {
    int64_t some = min64(WIDTH, t->rows - r);
    CPU(attention_unpack)
    (t->gq + r * g->d, some, g->d, one, to + r * stride, stride);
  }
}

/* }====================================================== */

/*
** {======================================================
** A tile and a block of keys
** =======================================================
*/

typedef struct Keys {
  int64_t j, n;
  const real *k, *v;
  int64_t ldk, ldv;
} Keys;

/* p = 2^(p - log), which rounding must not make more than 1. */
VEC_INLINE vec weight (vec p, vec log) {
  return vec_exp2(-vec_max((vec){ 0 }, log - p));
}

/* p (n, lanes) from scores, and ds = p (ds - delta).  Dropout comes between,
** which keep holds. */
static void weigh (real *p, real *ds, int64_t n, const Tile *t, int64_t r,
                   int64_t lanes, const real *keep) {
  for (int64_t l = 0; l < lanes; l += VEC) {
    vec log = vec_load(t->log + r + l), delta = vec_load(t->delta + r + l);
    for (int64_t o = l; o < n * SPAN; o += SPAN) {
      vec w = weight(vec_load(p + o), log);
      if (keep == NULL) vec_store(ds + o, w * (vec_load(ds + o) - delta));
      vec_store(p + o, w);
    }
  }
  if (keep == NULL) return;
  CPU(attention_drop)(lanes, n, ds, SPAN, keep);
  for (int64_t l = 0; l < lanes; l += VEC) {
    vec delta = vec_load(t->delta + r + l);
    for (int64_t o = l; o < n * SPAN; o += SPAN)
      vec_store(ds + o, vec_load(p + o) * (vec_load(ds + o) - delta));
  }
  CPU(attention_drop)(lanes, n, p, SPAN, keep);
}

/* What the queries of a panel do not see. */
static void clear (real *x, int64_t n) {
  for (int64_t j = 0; j < n; j++) memset(x + j * SPAN, 0, WIDTH * sizeof *x);
}

/* The weights and slopes of the panel at query r of the tile, and its gq. */
static void panel (const Job *g, const Scores *s, Tile *t, const Keys *b,
                   int64_t r) {
  int64_t i = t->i + r, rows = min64(WIDTH, t->rows - r);
  int64_t n = min64(b->n, attention_seen(s, i + rows - 1) - b->j);
  int64_t lanes = rows > VEC ? WIDTH : VEC;
  real *p = t->p + r, *ds = t->ds + r;
  n = max64(n, 0);
  clear(p + n * SPAN, b->n - n);
  clear(ds + n * SPAN, b->n - n);
  if (n > 0) {
    Block c = { .m = n,
                .n = lanes,
                .k = g->d,
                .a = b->k,
                .in_place = true,
                .a_row = b->ldk,
                .a_col = 1,
                .b = t->q + r * g->d,
                .ldb = WIDTH,
                .c = p,
                .ldc = SPAN,
                .alpha = 1 };
    CPU(gemm_block)(&c);
    CPU(attention_bias)(s, i, rows, b->j, n, p, SPAN, t->buf);
    c.k = g->e;
    c.a = b->v;
    c.a_row = b->ldv;
    c.b = t->g + r * g->e;
    c.c = ds;
    CPU(gemm_block)(&c);
    if (s->keep != 0) CPU(attention_keep)(s, i, rows, b->j, n, t->buf);
    weigh(p, ds, n, t, r, lanes, s->keep != 0 ? t->buf : NULL);
  }
}

/* gq' += k' ds' of one panel, over all keys of the block. */
static void panel_gq (const Job *g, Tile *t, const Keys *b, int64_t r) {
  Block c = { .m = g->d,
              .n = t->rows - r > VEC ? WIDTH : VEC,
              .k = b->n,
              .a = b->k,
              .in_place = true,
              .a_row = 1,
              .a_col = b->ldk,
              .b = t->ds + r,
              .ldb = SPAN,
              .c = t->gq + r * g->d,
              .ldc = WIDTH,
              .alpha = 1,
              .flags = t->begun ? TILE_ADD : 0 };
  CPU(gemm_block)(&c);
}

/* c (n, d), rows ldc apart, += x (n, rows) b (rows, d) */
static void add_rows (const Tile *t, int64_t n, int64_t d, const real *x,
                      const real *b, real *c, int64_t ldc) {
  Block s = { .m = n,
              .n = d,
              .k = t->rows,
              .a = x,
              .in_place = true,
              .a_row = SPAN,
              .a_col = 1,
              .b = b,
              .ldb = TILE_COLS,
              .panel = gemm_panel(t->rows),
              .c = c,
              .ldc = ldc,
              .alpha = 1,
              .flags = TILE_ADD };
  CPU(gemm_block)(&s);
}

static void meet (const Job *g, const Scores *s, Tile *t, const Keys *k,
                  int64_t b, int64_t group) {
  for (int64_t r = 0; r < t->rows; r += WIDTH) panel(g, s, t, k, r);
  if (g->gq != NULL)
    for (int64_t r = 0; r < t->rows; r += WIDTH) panel_gq(g, t, k, r);
  t->begun = true;
  if (g->gv != NULL)
    add_rows(t, k->n, g->e, t->p, t->gb, at(g->gv, b, group, k->j),
             g->gv->stride[2]);
  if (g->gk != NULL)
    add_rows(t, k->n, g->d, t->ds, t->qb, at(g->gk, b, group, k->j),
             g->gk->stride[2]);
}

/* }====================================================== */

/*
** {======================================================
** Tasks
** =======================================================
*/

/* All queries of the round, of all heads of a group, and a part of its keys. */
static void part_task (void *ud, int64_t task, int worker) {
  const Job *g = ud;
  int64_t part = task % g->parts, group = task / g->parts % g->groups;
  int64_t b = task / g->parts / g->groups;
  int64_t from = part * g->part, end = min64(g->n, from + g->part);
  Rows k = attention_head(g->k, b, group), v = attention_head(g->v, b, group);
  Tile t;
  tile_place(g, &t, g->scratch + worker * g->scratch_each);
  for (int64_t h = group * g->each; h < (group + 1) * g->each; h++) {
    Scores s = CPU(attention_scores)(g->q, g->k, g->a, b, h);
    for (int64_t i = g->lo; i < g->hi; i += SPAN) {
      int64_t seen = attention_seen(&s, min64(i + SPAN, g->m) - 1);
      tile_begin(g, &t, b, h, i);
      for (int64_t j = from; j < min64(end, seen); j += g->keys) {
        Keys c = { .j = j, .n = min64(g->keys, min64(end, seen) - j) };
        if (CPU(attention_hidden)(&s, j, c.n)) continue;
        c.k = CPU(attention_rows)(&k, j, c.n, t.kbuf, &c.ldk);
        c.v = CPU(attention_rows)(&v, j, c.n, t.vbuf, &c.ldv);
        meet(g, &s, &t, &c, b, group);
      }
      if (g->gq != NULL) tile_end(g, &t, b, h, part);
    }
  }
}

/* gq of rows lo .. hi of the round, (b, heads, queries). */
static void join (void *ud, int64_t lo, int64_t hi) {
  const Job *g = ud;
  int64_t count = g->hi - g->lo;
  int64_t step = g->q->shape[0] * g->heads * g->round * g->d;
  for (int64_t r = lo; r < hi; r++) {
    int64_t head = r / count, i = r % count;
    real *to = at(g->gq, head / g->heads, head % g->heads, g->lo + i);
    const real *from = g->sums + (head * g->round + i) * g->d;
    memcpy(to, from, (size_t)g->d * sizeof *to);
    for (int64_t part = 1; part < g->parts; part++)
      for (int64_t c = 0; c < g->d; c++) to[c] += from[part * step + c];
  }
}

/* x: dense in any order of its dims */
static void zero (Tensor *x) {
  memset(tensor_data(x), 0, (size_t)x->numel * sizeof(real));
}

/* How keys are cut into parts and queries into rounds. */
static void plan (Job *g) {
  int64_t groups = g->q->shape[0] * g->groups;
  int64_t parts = min64(PARTS, divide_up(TASKS, groups));
  parts = max64(1, min64(parts, g->n / PART_LEAST));
  g->keys = attention_keys(g->n, KEYS);
  g->part = max64(1, divide_up(divide_up(g->n, parts), g->keys)) * g->keys;
  g->parts = max64(1, divide_up(g->n, g->part));
  double tile = (double)SPAN * (double)(g->part * g->each) *
                (double)(3 * g->d + 2 * g->e);
  double tiles = fmax(1, floor((double)WORK / tile));
  g->round = g->m;
  if (tiles * SPAN < (double)g->m) g->round = (int64_t)tiles * SPAN;
}

static void take_scratch (Job *g) {
  Rows k = attention_head(g->k, 0, 0), v = attention_head(g->v, 0, 0);
  g->k_size = CPU(attention_rows_size)(&k, g->keys);
  g->v_size = CPU(attention_rows_size)(&v, g->keys);
  g->scratch_each = tile_place(g, &(Tile){ .begun = false }, NULL);
  g->scratch =
      mem_scratch((size_t)(threads_width() * g->scratch_each) * sizeof(real));
  if (g->parts > 1 && g->gq != NULL)
    g->sums = mem_scratch(
        (size_t)(g->parts * g->q->shape[0] * g->heads * g->round * g->d) *
        sizeof(real));
}

void CPU (attention_back)(Tensor *gq, Tensor *gk, Tensor *gv, const Tensor *gy,
                          const Tensor *y, const Tensor *lse, const Tensor *q,
                          const Tensor *k, const Tensor *v,
                          const Attention *a) {
  Job g = { .gq = gq,
            .gk = gk,
            .gv = gv,
            .gy = gy,
            .y = y,
            .lse = lse,
            .q = q,
            .k = k,
            .v = v,
            .a = a,
            .heads = q->shape[1],
            .groups = k->shape[1],
            .each = q->shape[1] / k->shape[1],
            .m = q->shape[2],
            .n = k->shape[2],
            .d = q->shape[3],
            .e = v->shape[3] };
  size_t mark = fnn_mark();
  plan(&g);
  take_scratch(&g);
  if (gk != NULL) zero(gk);
  if (gv != NULL) zero(gv);
  for (; g.lo < g.m; g.lo += g.round) {
    g.hi = min64(g.m, g.lo + g.round);
    threads_run(q->shape[0] * g.groups * g.parts, part_task, &g);
    if (g.parts > 1 && gq != NULL)
      threads_range(q->shape[0] * g.heads * (g.hi - g.lo),
                    grain_rows(g.parts * g.d), join, &g);
  }
  fnn_escape(mark, NULL);
}

/* }====================================================== */
