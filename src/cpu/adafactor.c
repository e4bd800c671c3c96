/* adafactor.c - Adafactor's update (Shazeer and Stern 2018, arXiv:1804.04235).
**
** The second moments of a matrix are kept as the means over its rows and its
** columns; their product over the mean of the rows' is the estimate.  An
** update cannot begin before the whole of p and g was seen, so there are three
** passes: squares of p and g, squares of the update, the update.  A tensor of
** more dims is a batch of matrices, one without rows keeps an estimate for
** each element.  A task takes some rows of one matrix. */

#include <float.h>

#include "cpu.h"

#include "../core/vmath.h"

/* The most tasks of a matrix: each has a sum for each column. */
enum { PARTS = 64 };

typedef struct Matrices {
  real *p, *rows, *cols, *all; /* all: of a tensor without rows */
  const real *g;
  int64_t batch, r, c;
  int64_t grain, parts; /* rows a task, tasks a matrix */
  double *col_sums;     /* (batch, parts, c) of squares of g */
  double *sums;         /* (batch, parts): of squares, of p or the update */
  double *inverse;      /* (batch): 1 / the mean of the rows' means */
  double scale, take;
  real least, shrink, step;
} Matrices;

/* The rows of a task; its number among all, and its matrix. */
typedef struct Part {
  int64_t matrix, first, last;
} Part;

static Part part_of (const Matrices *m, int64_t task) {
  int64_t i = task / m->parts, first = task % m->parts * m->grain;
  return (Part){ i, first, min64(m->r, first + m->grain) };
}

static double row_squares (const real *x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
  return sum;
}

/* Squares of p, and of g by rows and columns. */
static void squares (void *ud, int64_t task, int worker) {
  const Matrices *m = ud;
  (void)worker;
  Part t = part_of(m, task);
  const int64_t c = m->c;
  double *restrict col = m->all == NULL ? m->col_sums + task * c : NULL;
  const double square = m->scale * m->scale;
  double sum = 0;
  if (m->all == NULL) memset(col, 0, (size_t)c * sizeof *col);
  for (int64_t i = t.first; i < t.last; i++) {
    int64_t row = t.matrix * m->r + i;
    const real *restrict g = m->g + row * c;
    sum += row_squares(m->p + row * c, c);
    if (m->all != NULL) {
      real v = m->all[row], d = (real)m->scale * g[0];
      m->all[row] = v + (real)m->take * (d * d - v);
      continue;
    }
    double mean = square * row_squares(g, c) / (double)c;
    m->rows[row] += (real)(m->take * (mean - (double)m->rows[row]));
    for (int64_t j = 0; j < c; j++) col[j] += (double)g[j] * (double)g[j];
  }
  m->sums[task] = sum;
}

/* The columns' means and the mean of the rows', by what the tasks found. */
static void finish_means (Matrices *m, double eps) {
  for (int64_t b = 0; m->all == NULL && b < m->batch; b++) {
    real *cols = m->cols + b * m->c;
    double *first = m->col_sums + b * m->parts * m->c, sum = 0;
    for (int64_t k = 1; k < m->parts; k++)
      for (int64_t j = 0; j < m->c; j++) first[j] += first[k * m->c + j];
    double mean = m->scale * m->scale / (double)m->r;
    for (int64_t j = 0; j < m->c; j++)
      cols[j] += (real)(m->take * (mean * first[j] - (double)cols[j]));
    for (int64_t i = 0; i < m->r; i++) sum += (double)m->rows[b * m->r + i];
    sum /= (double)m->r;
    m->inverse[b] = 1 / (sum > eps ? sum : eps);
  }
}

/* 1 / root of the estimate of a row is what turns g into the update.  Calls
** for each row of the task with its factor; see updates and apply. */
static inline real row_factor (const Matrices *m, int64_t matrix,
                               int64_t row) {
  return m->all != NULL ? m->all[row]
                        : (real)((double)m->rows[row] * m->inverse[matrix]);
}

static inline real update (real g, real estimate, real least) {
  return g / sqrt(select(estimate < least, least, estimate));
}

/* Squares of the update. */
static void updates (void *ud, int64_t task, int worker) {
  const Matrices *m = ud;
  (void)worker;
  Part t = part_of(m, task);
  const real least = m->least, scale = (real)m->scale, one = 1;
  const real *cols = m->all != NULL ? &one : m->cols + t.matrix * m->c;
  double sum = 0;
  for (int64_t i = t.first; i < t.last; i++) {
    int64_t row = t.matrix * m->r + i;
    const real *restrict g = m->g + row * m->c;
    const real f = row_factor(m, t.matrix, row);
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < m->c; j++) {
      double u = (double)update(scale * g[j], f * cols[j], least);
      sum += u * u;
    }
  }
  m->sums[task] = sum;
}

static void apply (void *ud, int64_t task, int worker) {
  const Matrices *m = ud;
  (void)worker;
  Part t = part_of(m, task);
  const real least = m->least, scale = (real)m->scale, one = 1;
  const real shrink = m->shrink, step = m->step;
  const real *cols = m->all != NULL ? &one : m->cols + t.matrix * m->c;
  for (int64_t i = t.first; i < t.last; i++) {
    int64_t row = t.matrix * m->r + i;
    real *restrict p = m->p + row * m->c;
    const real *restrict g = m->g + row * m->c;
    const real f = row_factor(m, t.matrix, row);
    for (int64_t j = 0; j < m->c; j++)
      p[j] = shrink * p[j] - step * update(scale * g[j], f * cols[j], least);
  }
}

static double total (const Matrices *m) {
  double sum = 0;
  for (int64_t i = 0; i < m->batch * m->parts; i++) sum += m->sums[i];
  return sum;
}

/* eps * eps, or the smallest number that has a finite inverse root. */
static real least_of (double eps) {
#ifdef CPU_DOUBLE
  const double smallest = DBL_MIN;
#else
  const double smallest = FLT_MIN;
#endif
  return (real)(eps * eps > smallest ? eps * eps : smallest);
}

void CPU (adafactor)(Tensor *p, const Tensor *g, Tensor *const *s,
                     const Update *u, double small, double most) {
  if (p->numel == 0) return;
  bool flat = p->ndim < 2;
  Matrices m = { .p = tensor_data(p),
                 .g = tensor_data(g),
                 .scale = u->scale,
                 .take = u->take2,
                 .least = least_of(u->eps),
                 .shrink = (real)u->shrink };
  m.c = flat ? 1 : p->shape[p->ndim - 1];
  m.r = flat ? p->numel : p->shape[p->ndim - 2];
  m.batch = p->numel / (m.r * m.c);
  m.grain = max64(grain_rows(m.c), (m.r + PARTS - 1) / PARTS);
  m.parts = (m.r + m.grain - 1) / m.grain;
  int64_t tasks = m.batch * m.parts;
  if (flat) m.all = tensor_data(s[2]);
  else m.rows = tensor_data(s[0]), m.cols = tensor_data(s[1]);
  m.sums = mem_scratch((size_t)tasks * sizeof *m.sums);
  m.inverse = mem_scratch((size_t)m.batch * sizeof *m.inverse);
  if (!flat)
    m.col_sums = mem_scratch((size_t)(tasks * m.c) * sizeof *m.col_sums);
  threads_run(tasks, squares, &m);
  finish_means(&m, u->eps);
  double n = (double)p->numel, size = sqrt(total(&m) / n);
  threads_run(tasks, updates, &m);
  double over = sqrt(total(&m) / n) / most;
  m.step =
      (real)((size > small ? size : small) * u->step / (over > 1 ? over : 1));
  threads_run(tasks, apply, &m);
}
