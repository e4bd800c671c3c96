/* row.h - what a sampler does with one row of logits: included by row_f32.c and
** row_f64.c, each of which says what `real` is, its bits a `word`.
**
** Nothing is sorted.  The order is by logit, the largest first, and by id where
** logits are equal.  Where a prefix of it is wanted, of so many ids or of so
** much probability, its end is found by radix: the bits of a real, a digit at a
** time from the top, tell in which bin the end lies, and only what is in that
** bin is looked at again.  So the time is linear in the row, whatever is in it.
** What surely is behind the end is left out before, and mostly is nearly all:
** the k-th largest maximum of blocks is no more than the k-th largest logit,
** and what has less than (1 - p)/n of the probability is beyond p of it.  What
** is cut off by its probability stays where it is, and weighs 0. */

#include <math.h>
#include <string.h>

#include "text.h"

enum {
  WORD_BITS = 8 * sizeof(word),
  BLOCK = 64, /* logits whose largest is kept */
  SPAN = 256, /* weights whose sum is kept */
  DIGIT = 11, /* bits that are told apart at a time, */
  FEW = 512,  /* or among fewer keys than these */
  SHORT_DIGIT = 6
};

#define PRAGMA_(x) _Pragma(#x)
#define VECTOR(clauses) PRAGMA_(omp simd clauses)

/* What is in the running, in the order of ids. */
typedef struct Row {
  const real *x;     /* logits */
  const int32_t *id; /* theirs; NULL: 0 .. n-1 */
  real *w;           /* e^((x - largest) / temperature), so at most 1 */
  int64_t n;
} Row;

/* The memory that it is worked in: each as long as the row but for the first
** two. */
typedef struct Room {
  real *peak;  /* of each BLOCK of logits, the largest */
  double *sum; /* of each SPAN of weights */
  real *penalized, *x;
  int32_t *id; /* of x */
  word *key;   /* among these the end of a prefix is searched, */
  real *part;  /* where each has this weight */
} Room;

static Room room_of (fnn_Sampler *s, int64_t n) {
  size_t each = (size_t)n + 1, bytes = 0;
  const size_t parts[] = {
    (each / BLOCK + 1) * sizeof(real),
    (each / SPAN + 1) * sizeof(double),
    each * sizeof(real),
    each * sizeof(real),
    each * sizeof(int32_t),
    each * sizeof(word),
    each * sizeof(real),
  };
  void *at[countof(parts)];
  for (int i = 0; i < countof(parts); i++) bytes += (parts[i] + 63) / 64 * 64;
  char *p = sampler_scratch(s, bytes);
  for (int i = 0; i < countof(parts); i++) {
    at[i] = p;
    p += (parts[i] + 63) / 64 * 64;
  }
  return (Room){ at[0], at[1], at[2], at[3], at[4], at[5], at[6] };
}

/*
** {======================================================
** The largest
** =======================================================
*/

/* The largest of x, and of each block of it; *nan: whether there is one. */
static real scan (const real *x, int64_t n, real *peak, bool *nan) {
  real most = -INFINITY;
  int odd = 0;
  for (int64_t b = 0; b * BLOCK < n; b++) {
    const real *p = x + b * BLOCK;
    int64_t len = min64(BLOCK, n - b * BLOCK);
    real m = -INFINITY;
    if (len == BLOCK) {
      VECTOR(reduction(max : m) reduction(| : odd))
      for (int i = 0; i < BLOCK; i++) {
        m = p[i] > m ? p[i] : m;
        odd |= p[i] != p[i];
      }
    } else
      for (int i = 0; i < len; i++) {
        m = p[i] > m ? p[i] : m;
        odd |= p[i] != p[i];
      }
    peak[b] = m;
    most = m > most ? m : most;
  }
  *nan = odd != 0;
  return most;
}

/* The lowest id of the largest logit. */
static int64_t first_of (const real *x, const real *peak, real most) {
  int64_t b = 0;
  while (peak[b] != most) b++;
  for (b *= BLOCK; x[b] != most;) b++;
  return b;
}

static FNN_NORETURN void complain (const real *x, int64_t n, Place at) {
  char row[64];
  sampler_place(row, sizeof row, at);
  for (int64_t i = 0; i < n; i++)
    if (!(x[i] < (real)INFINITY))
      fnn_throw(FNN_EARG,
                "Sampler: the logit of id %lld%s is %s (expected finite "
                "numbers, or -inf for what may not be chosen)",
                (long long)i, row, x[i] != x[i] ? "nan" : "inf");
  fnn_throw(FNN_EARG,
            "Sampler: all %lld logits%s are -inf: no id is left to choose",
            (long long)n, row);
}

/* }====================================================== */

/*
** {======================================================
** The end of a prefix
** =======================================================
*/

/* Larger reals have larger keys, and both zeros the same. */
static inline word key_of (real v) {
  union {
    real v;
    word bits;
  } u = { v + 0 };
  word top = (word)1 << (WORD_BITS - 1);
  return u.bits & top ? ~u.bits : u.bits | top;
}

static inline real real_of (word key) {
  union {
    word bits;
    real v;
  } u = { key >> (WORD_BITS - 1) ? key ^ (word)1 << (WORD_BITS - 1) : ~key };
  return u.v;
}

/* The bin, of n from the last down, with which a sum passes target; *sum, so
** far, gets what comes before it.  The last that has anything where rounding
** leaves it short. */
static int bin_of (const double *bin, int n, double *sum, double target) {
  int last = 0;
  double before = *sum;
  for (int i = n - 1; i >= 0; i--) {
    if (bin[i] == 0) continue;
    last = i;
    before = *sum;
    if (*sum + bin[i] >= target) return i;
    *sum += bin[i];
  }
  *sum = before;
  return last;
}

/* Where the shortest prefix ends whose weights have a sum of target: with so
** many (kept) of those that have this key, and all that have a larger one. */
typedef struct End {
  word key;
  int64_t kept, ties; /* ties: how many have it */
} End;

/* The digit of width bits from shift on whose keys have the end among them;
** *above gets the weight of what comes before all of these.  Two tables take
** turns, so that equal digits in a row do not wait for each other. */
static word find_digit (const Room *m, int64_t n, int shift, int width,
                        double *above, double target) {
  double bin[2][1 << DIGIT];
  word mask = ((word)1 << width) - 1;
  int64_t i = 0;
  memset(bin[0], 0, sizeof(double) << width);
  memset(bin[1], 0, sizeof(double) << width);
  for (; i + 1 < n; i += 2) {
    bin[0][m->key[i] >> shift & mask] += (double)m->part[i];
    bin[1][m->key[i + 1] >> shift & mask] += (double)m->part[i + 1];
  }
  if (i < n) bin[0][m->key[i] >> shift & mask] += (double)m->part[i];
  for (i = 0; i < 1 << width; i++) bin[0][i] += bin[1][i];
  return (word)bin_of(bin[0], 1 << width, above, target);
}

/* Among the n > 0 keys of m, which are lost. */
static End end_of (Room *m, int64_t n, double target) {
  double above = 0;
  for (int shift = WORD_BITS; shift > 0 && n > 1;) {
    int digit_bits = n < FEW ? SHORT_DIGIT : DIGIT;
    int width = shift < digit_bits ? shift : digit_bits;
    word mask = ((word)1 << width) - 1;
    shift -= width;
    word digit = find_digit(m, n, shift, width, &above, target);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
      m->key[kept] = m->key[i];
      m->part[kept] = m->part[i];
      kept += (m->key[i] >> shift & mask) == digit;
    }
    n = kept;
  }
  End end = { m->key[0], 0, n };
  while (end.kept < n && (end.kept == 0 || above < target))
    above += (double)m->part[end.kept++];
  return end;
}

/* Makes keys of n logits, for end_of. */
static int64_t all_keys (Room *m, const real *x, const real *w, int64_t n) {
  VECTOR()
  for (int64_t i = 0; i < n; i++) m->key[i] = key_of(x[i]);
  if (w != NULL) memcpy(m->part, w, (size_t)n * sizeof *w);
  else
    for (int64_t i = 0; i < n; i++) m->part[i] = 1;
  return n;
}

/* }====================================================== */

/*
** {======================================================
** The k largest
** =======================================================
*/

/* Of a whole row, the logits from least on. */
static Row from_least (const Room *m, Row r, real least) {
  int64_t n = 0;
  for (int64_t b = 0; b * BLOCK < r.n; b++) {
    if (m->peak[b] < least) continue;
    for (int64_t i = b * BLOCK; i < min64(r.n, (b + 1) * BLOCK); i++) {
      m->x[n] = r.x[i];
      m->id[n] = (int32_t)i;
      n += r.x[i] >= least;
    }
  }
  return (Row){ m->x, m->id, NULL, n };
}

/* The prefix of r that has this end. */
static Row until (const Room *m, Row r, End end) {
  int64_t n = 0;
  for (int64_t i = 0; i < r.n; i++) {
    word key = key_of(r.x[i]);
    bool keep = key > end.key || (key == end.key && end.kept-- > 0);
    m->x[n] = r.x[i];
    m->id[n] = r.id != NULL ? r.id[i] : (int32_t)i;
    n += keep;
  }
  return (Row){ m->x, m->id, NULL, n };
}

/* The k < n largest of a whole row. */
static Row largest (Room *m, Row r, int64_t k) {
  int64_t blocks = (r.n + BLOCK - 1) / BLOCK;
  if (k < blocks) {
    all_keys(m, m->peak, NULL, blocks);
    End end = end_of(m, blocks, (double)k);
    r = from_least(m, r, real_of(end.key));
  }
  all_keys(m, r.x, NULL, r.n);
  return until(m, r, end_of(m, r.n, (double)k));
}

/* }====================================================== */

/*
** {======================================================
** Weights
** =======================================================
*/

/* The weights of r into s's tensor: the largest logit's is 1. */
static real *weigh (fnn_Sampler *s, Row r, real most, real scale) {
  Tensor *t = s->weights;
  real *w = tensor_data(t);
  VECTOR()
  for (int64_t i = 0; i < r.n; i++) w[i] = (r.x[i] - most) * scale;
  t->shape[0] = t->numel = r.n;
  kernel(t, map)(MAP_exp, t, t, 0, 0);
  return w;
}

/* The sum of n weights, and of each span of them. */
static double add_weights (const real *w, int64_t n, double *sum) {
  double total = 0;
  for (int64_t b = 0; b * SPAN < n; b++) {
    const real *p = w + b * SPAN;
    int64_t len = min64(SPAN, n - b * SPAN);
    double part = 0;
    VECTOR(reduction(+ : part))
    for (int64_t i = 0; i < len; i++) part += (double)p[i];
    total += sum[b] = part;
  }
  return total;
}

/* The place where a sum of weights passes a share in [0, 1) of the total: its
** span first.  Rounding may leave no such place; then it is the last that
** weighs anything. */
static int64_t place_at (const real *w, int64_t n, const double *sum,
                         double at) {
  int64_t b = 0, last = 0;
  for (; (b + 1) * SPAN < n && at >= sum[b]; b++) at -= sum[b];
  for (int64_t i = b * SPAN; i < n; i++) {
    at -= (double)w[i];
    if (at < 0) return i;
  }
  for (int64_t i = 0; i < n; i++)
    if (w[i] > 0) last = i;
  return last;
}

/* Makes keys of what weighs least or more, for end_of.  In a whole row the
** maxima of blocks tell where there is any: a block is left out only when what
** it lacks is more than what rounding could make of it. */
static int64_t keys_from (Room *m, Row r, double least, real most,
                          real scale) {
  real z = (real)(log(least) - 0.01), light = (real)least, *to = m->part;
  word *key = m->key;
  int64_t n = 0;
  for (int64_t lo = 0; lo < r.n; lo += BLOCK) {
    if (r.id == NULL && (m->peak[lo / BLOCK] - most) * scale < z) continue;
    const real *x = r.x + lo, *w = r.w + lo;
    int64_t count = min64(BLOCK, r.n - lo);
    for (int64_t i = 0; i < count; i++) { /* no branch that is not foreseen */
      memcpy(&key[n], &x[i], sizeof *x);
      to[n] = w[i];
      n += w[i] >= light;
    }
  }
  for (int64_t i = 0; i < n; i++) {
    real v;
    memcpy(&v, &key[i], sizeof v);
    key[i] = key_of(v);
  }
  return n;
}

/* Cuts off what is behind the prefix with a share p of the total. */
static void cut_tail (Room *m, Row r, double p, double total, real most,
                      real scale) {
  double least = 0.5 * (1 - p) / (double)r.n * total;
  End end = end_of(m, keys_from(m, r, least, most, scale), p * total);
  real last = real_of(end.key);
  VECTOR()
  for (int64_t i = 0; i < r.n; i++) r.w[i] = r.x[i] >= last ? r.w[i] : 0;
  for (int64_t i = r.n; end.ties > end.kept;)
    if (r.x[--i] == last) {
      r.w[i] = 0;
      end.ties--;
    }
}

/* Cuts off what weighs less than least. */
static void cut_light (Row r, real least) {
  VECTOR()
  for (int64_t i = 0; i < r.n; i++) r.w[i] = r.w[i] >= least ? r.w[i] : 0;
}

/* }====================================================== */

/* Changes the logits of the ids in the history, each once: x is a copy. */
static void penalize (const fnn_Sampler *s, real *x, const int64_t *history,
                      int64_t count) {
  const fnn_SamplerOptions *o = &s->options;
  for (int64_t i = 0; i < count; i++) s->counts[history[i]]++;
  for (int64_t i = 0; i < count; i++) {
    int64_t id = history[i];
    int32_t times = s->counts[id];
    if (times == 0) continue; /* done */
    double v = (double)x[id];
    v = v > 0 ? v / o->repetition_penalty : v * o->repetition_penalty;
    v -= o->frequency_penalty * times + o->presence_penalty;
    x[id] = (real)v;
    s->counts[id] = 0;
  }
}

/* The id for a row of n logits. */
int64_t CHOOSE (fnn_Sampler *s, const real *x, int64_t n,
                const int64_t *history, int64_t count, Place at) {
  const fnn_SamplerOptions *o = &s->options;
  Room m = room_of(s, n);
  bool nan;
  if (count > 0) {
    memcpy(m.penalized, x, (size_t)n * sizeof *x);
    penalize(s, m.penalized, history, count);
    x = m.penalized;
  }
  real most = scan(x, n, m.peak, &nan);
  if (nan || isinf(most)) complain(x, n, at);
  if (sampler_is_greedy(s)) return first_of(x, m.peak, most);
  real scale = (real)fmin(fmax(1 / o->temperature, 1e-37), 1e38);
  Row r = { x, NULL, NULL, n };
  if (o->top_k < n) r = largest(&m, r, o->top_k);
  r.w = weigh(s, r, most, scale);
  double total = add_weights(r.w, r.n, m.sum);
  if (o->top_p < 1) cut_tail(&m, r, o->top_p, total, most, scale);
  if (o->min_p > 0) cut_light(r, (real)o->min_p);
  if (o->top_p < 1 || o->min_p > 0) total = add_weights(r.w, r.n, m.sum);
  int64_t place = place_at(r.w, r.n, m.sum, sampler_uniform(s) * total);
  return r.id != NULL ? r.id[place] : place;
}
