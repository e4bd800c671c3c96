/* attention.c - softmax(scale q k') v without the scores: blocks of them are
** made, and what the sums hold is brought to the largest score so far (Milakov
** and Gimelshein 2018; Dao et al. 2022).
**
** A task is a tile of a head's queries, PANELS panels or fewer, which share
** each block of keys and values while it is in the caches.  No number depends
** on which panels a task has. */

#include "attention.h"

enum {
  PANELS = 4,
  KEYS = 128,            /* of a block: its scores stay in the first cache */
  TASKS = 64,            /* that there should be, for many threads */
  WORK = VEC * 100000000 /* products of a task: it ends within 50 ms */
};

typedef struct Job {
  Tensor *y, *lse;
  const Tensor *q, *k, *v;
  const Attention *a;
  int64_t heads, each; /* each: heads of a group */
  int64_t m, n, d, e;
  int64_t keys, panels, tiles; /* panels of a tile, tiles of a head */
  int64_t out;                 /* reals of scratch per panel of results */
  real *scratch;
  int64_t scratch_each, k_size, v_size;
} Job;

/* A panel's queries and what it has summed so far. */
typedef struct Panel {
  int64_t i, rows;
  bool begun;
  real *q, *o; /* (d, WIDTH), (e, WIDTH) */
  _Alignas(64) real most[WIDTH], sum[WIDTH];
} Panel;

/*
** {======================================================
** A block of scores
** =======================================================
*/

/* A block of keys and values: rows ldk and ldv apart. */
typedef struct Keys {
  int64_t j, n;
  const real *k, *v;
  int64_t ldk, ldv;
} Keys;

/* x (n, WIDTH) becomes 2^(x - its maximum so far); p's sums follow.  Lanes are
** of `vecs` vectors.  False where no maximum has grown. */
VEC_INLINE bool soften (Panel *p, real *x, int64_t n, vec *fall,
                        const int vecs) {
  bool grown = false;
  for (int v = 0; v < vecs; v++) {
    vec was = vec_load(p->most + v * VEC), m = was;
    const real *at = x + v * VEC;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, at += 4 * WIDTH)
      m = vec_max(
          vec_max(vec_max(vec_load(at), vec_load(at + WIDTH)),
                  vec_max(vec_load(at + 2 * WIDTH), vec_load(at + 3 * WIDTH))),
          m);
    for (; i < n; i++, at += WIDTH) m = vec_max(vec_load(at), m);
    vec_store(p->most + v * VEC, m);
    m = vec_finite_floor(m);
    fall[v] = vec_exp2(was - m);
    for (int l = 0; l < VEC; l++) grown |= !(fall[v][l] == 1);
    vec sum = vec_load(p->sum + v * VEC) * fall[v];
    real *to = x + v * VEC;
    for (i = 0; i < n; i++, to += WIDTH) {
      vec w = vec_exp2(vec_load(to) - m);
      sum += w;
      vec_store(to, w);
    }
    vec_store(p->sum + v * VEC, sum);
  }
  return grown;
}

static void rescale (real *o, int64_t e, const vec *fall, int vecs) {
  for (int64_t c = 0; c < e; c++)
    for (int v = 0; v < vecs; v++) {
      real *at = o + c * WIDTH + v * VEC;
      vec_store(at, vec_load(at) * fall[v]);
    }
}

/* The panel meets the keys.  x: scratch for scores, and then for masks. */
static void panel_step (const Job *g, const Scores *s, Panel *p, const Keys *b,
                        real *x) {
  int64_t seen = attention_seen(s, p->i + p->rows - 1);
  int64_t n = min64(b->n, seen - b->j);
  real *buf = x + g->keys * WIDTH;
  bool wide = p->rows > VEC;
  vec fall[2];
  if (n <= 0) return;
  Block block = { .m = n,
                  .n = wide ? WIDTH : VEC,
                  .k = g->d,
                  .a = b->k,
                  .in_place = true,
                  .a_row = b->ldk,
                  .a_col = 1,
                  .b = p->q,
                  .ldb = WIDTH,
                  .c = x,
                  .ldc = WIDTH,
                  .alpha = 1 };
  CPU(gemm_block)(&block);
  CPU(attention_bias)(s, p->i, p->rows, b->j, n, x, WIDTH, buf);
  bool grown = wide ? soften(p, x, n, fall, 2) : soften(p, x, n, fall, 1);
  if (s->keep != 0) {
    CPU(attention_keep)(s, p->i, p->rows, b->j, n, buf);
    CPU(attention_drop)(p->rows, n, x, WIDTH, buf);
  }
  if (p->begun && grown) rescale(p->o, g->e, fall, wide ? 2 : 1);
  block.m = g->e;
  block.k = n;
  block.a = b->v;
  block.a_row = 1;
  block.a_col = b->ldv;
  block.b = x;
  block.c = p->o;
  block.flags = p->begun ? TILE_ADD : 0;
  p->begun = true;
  CPU(gemm_block)(&block);
}

/* }====================================================== */

/*
** {======================================================
** Tiles
** =======================================================
*/

static void panel_begin (const Job *g, Panel *p, const real *q, real *room) {
  double scale = g->a->scale * LOG2_E;
  p->q = room;
  p->o = room + g->d * WIDTH;
  p->begun = false;
  for (int l = 0; l < WIDTH; l++) p->most[l] = -(real)INFINITY;
  memset(p->sum, 0, sizeof p->sum);
  CPU(attention_pack)
  (q + p->i * g->q->stride[2], g->q->stride[2], p->rows, g->d, (real)scale,
   p->q);
}

static void panel_end (const Job *g, Panel *p, int64_t b, int64_t h) {
  const Tensor *y = g->y;
  real *to = (real *)tensor_data(y) + b * y->stride[0] + h * y->stride[1];
  real factor[WIDTH];
  for (int l = 0; l < WIDTH; l++)
    factor[l] = p->sum[l] == 0 ? 0 : 1 / p->sum[l];
  if (!p->begun) memset(p->o, 0, (size_t)(g->e * WIDTH) * sizeof(real));
  to += p->i * y->stride[2];
  CPU(attention_unpack)(p->o, p->rows, g->e, factor, to, y->stride[2]);
  if (g->lse == NULL) return;
  real *lse = (real *)tensor_data(g->lse) + (b * g->heads + h) * g->m + p->i;
  for (int64_t l = 0; l < p->rows; l++)
    lse[l] = (real)((double)p->most[l] * LOG_2 + log((double)p->sum[l]));
}

/* Heads of a group follow each other; a causal head's last tiles, which see
** most, come first. */
static void tile_task (void *ud, int64_t task, int worker) {
  const Job *g = ud;
  int64_t head = task / g->tiles, b = head / g->heads, h = head % g->heads;
  int64_t first = (g->tiles - 1 - task % g->tiles) * g->panels * WIDTH;
  const Tensor *q = g->q;
  const real *rows =
      (real *)tensor_data(q) + b * q->stride[0] + h * q->stride[1];
  Scores s = CPU(attention_scores)(q, g->k, g->a, b, h);
  Rows k = attention_head(g->k, b, h / g->each);
  Rows v = attention_head(g->v, b, h / g->each);
  real *room = g->scratch + worker * g->scratch_each;
  real *kbuf = room, *vbuf = kbuf + g->k_size, *x = vbuf + g->v_size;
  real *panels = x + g->keys * WIDTH + attention_buffer(g->keys);
  Panel p[PANELS];
  int count = 0;
  for (int64_t i = first; count < g->panels && i < g->m; i += WIDTH) {
    p[count].i = i;
    p[count].rows = min64(WIDTH, g->m - i);
    panel_begin(g, &p[count], rows, panels + count * g->out);
    count++;
  }
  int64_t seen = attention_seen(&s, p[count - 1].i + p[count - 1].rows - 1);
  for (int64_t j = 0; j < seen; j += g->keys) {
    Keys block = { .j = j, .n = min64(g->keys, seen - j) };
    if (CPU(attention_hidden)(&s, j, block.n)) continue;
    block.k = CPU(attention_rows)(&k, j, block.n, kbuf, &block.ldk);
    block.v = CPU(attention_rows)(&v, j, block.n, vbuf, &block.ldv);
    for (int i = 0; i < count; i++) panel_step(g, &s, &p[i], &block, x);
  }
  for (int i = 0; i < count; i++) panel_end(g, &p[i], b, h);
}

/* }====================================================== */

/* Panels of a task: fewer where tasks would be few, or long. */
static int64_t panels_of (const Job *g, int64_t heads) {
  double work = (double)WIDTH * (double)g->n * (double)(g->d + g->e);
  int64_t p = PANELS, all = divide_up(g->m, WIDTH);
  while (p > 1 && (heads * divide_up(all, p) < TASKS ||
                   work * (double)p > (double)WORK))
    p /= 2;
  return p;
}

void CPU (attention)(Tensor *y, Tensor *lse, const Tensor *q, const Tensor *k,
                     const Tensor *v, const Attention *a) {
  if (CPU(attention_few)(q)) {
    CPU(attention_row)(y, lse, q, k, v, a);
    return;
  }
  Job g = { .y = y,
            .lse = lse,
            .q = q,
            .k = k,
            .v = v,
            .a = a,
            .heads = q->shape[1],
            .each = q->shape[1] / k->shape[1],
            .m = q->shape[2],
            .n = k->shape[2],
            .d = q->shape[3],
            .e = v->shape[3] };
  size_t mark = fnn_mark();
  int64_t heads = q->shape[0] * q->shape[1];
  Rows ks = attention_head(k, 0, 0), vs = attention_head(v, 0, 0);
  g.keys = attention_keys(g.n, KEYS);
  g.panels = panels_of(&g, heads);
  g.tiles = divide_up(g.m, g.panels * WIDTH);
  g.out = (g.d + g.e) * WIDTH;
  g.k_size = divide_up(CPU(attention_rows_size)(&ks, g.keys), 16) * 16;
  g.v_size = divide_up(CPU(attention_rows_size)(&vs, g.keys), 16) * 16;
  g.scratch_each = g.k_size + g.v_size + g.keys * WIDTH +
                   attention_buffer(g.keys) + g.panels * g.out;
  g.scratch_each = divide_up(g.scratch_each, 16) * 16;
  g.scratch = mem_scratch((size_t)(threads_width() * g.scratch_each) *
                          sizeof *g.scratch);
  threads_run(heads * g.tiles, tile_task, &g);
  fnn_escape(mark, NULL);
}
