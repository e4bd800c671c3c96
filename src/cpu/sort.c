/* sort.c - the first k of each line in order, by value and then by place.
**
** An element becomes a pair: a key whose order as an unsigned integer is the
** order wanted, and its place.  Every step is stable, so that ties keep their
** order.  Blocks are sorted by radix (least significant byte first, bytes
** that all keys share skipped); a longer line is merged from sorted blocks.
** For a small k candidates are kept instead: an element that comes before the
** k-th best is added, and when 2k stand they are sorted and cut to k again.
** Long lines are split into tasks of one block, between which a set cancel
** token ends the work. */

#include "cpu.h"

#ifdef CPU_ANY

enum { BLOCK = 16384 }; /* pairs sorted at once: twice 256 KB */
enum { FEW = 48 };      /* pairs for which insertion beats radix */
enum { SCAN = 65536 };  /* elements searched at once for the first few */

typedef struct Pair {
  uint64_t key;
  int64_t id;
} Pair;

/*
** {======================================================
** Keys
** =======================================================
*/

/* IEEE numbers in order: all NaN as the largest, both zeros the same.  sign
** is the top bit, and inf the bits of infinity. */
static inline uint64_t float_key (uint64_t u, uint64_t sign, uint64_t inf) {
  uint64_t size = u & (sign - 1);
  if (size > inf) return sign | (sign - 1);
  if (size == 0) return sign;
  return u & sign ? sign - size : sign + size;
}

static inline uint64_t key_of (fnn_Dtype t, const void *p, int64_t i) {
  const uint64_t top = (uint64_t)1 << 63;
  switch (t) {
    case FNN_BOOL: return ((const uint8_t *)p)[i] != 0;
    case FNN_U8: return ((const uint8_t *)p)[i];
    case FNN_I32: return ((const uint32_t *)p)[i] ^ 0x80000000u;
    case FNN_I64: return ((const uint64_t *)p)[i] ^ top;
    case FNN_F16: return float_key(((const uint16_t *)p)[i], 0x8000, 0x7c00);
    case FNN_BF16: return float_key(((const uint16_t *)p)[i], 0x8000, 0x7f80);
    case FNN_F32:
      return float_key(((const uint32_t *)p)[i], 0x80000000u, 0x7f800000u);
    default: return float_key(((const uint64_t *)p)[i], top, 0x7ffull << 52);
  }
}

/* What a task sorts, and how: line l of x (outer, n, inner) into y and ids
** (outer, k, inner). */
typedef struct Job {
  void *y;
  const void *x;
  int64_t *ids;
  int64_t n, inner, k, lines;
  int64_t grain; /* lines a task */
  uint64_t flip; /* all ones where the largest comes first */
  fnn_Dtype dtype;
  Pair *scratch;
  int64_t room; /* pairs of scratch a worker has */
} Job;

/* With key and i of each place lo .. hi-1 of a line, does what follows. */
#define EACH_KEY(j, line, lo, hi, ...) \
  do { \
    int64_t at = line / j->inner * j->n * j->inner + line % j->inner; \
    switch (j->dtype) { \
      case FNN_BOOL: EACH_KEY_OF(FNN_BOOL, j, lo, hi, __VA_ARGS__); \
      case FNN_U8: EACH_KEY_OF(FNN_U8, j, lo, hi, __VA_ARGS__); \
      case FNN_I32: EACH_KEY_OF(FNN_I32, j, lo, hi, __VA_ARGS__); \
      case FNN_I64: EACH_KEY_OF(FNN_I64, j, lo, hi, __VA_ARGS__); \
      case FNN_F16: EACH_KEY_OF(FNN_F16, j, lo, hi, __VA_ARGS__); \
      case FNN_BF16: EACH_KEY_OF(FNN_BF16, j, lo, hi, __VA_ARGS__); \
      case FNN_F32: EACH_KEY_OF(FNN_F32, j, lo, hi, __VA_ARGS__); \
      case FNN_F64: EACH_KEY_OF(FNN_F64, j, lo, hi, __VA_ARGS__); \
    } \
  } while (0)
#define EACH_KEY_OF(t, j, lo, hi, ...) \
  for (int64_t i = lo; i < hi; i++) { \
    uint64_t key = key_of(t, j->x, at + i * j->inner) ^ j->flip; \
    __VA_ARGS__; \
  } \
  break

static void load (const Job *j, int64_t line, int64_t lo, int64_t hi,
                  Pair *to) {
  EACH_KEY(j, line, lo, hi, to[i - lo] = (Pair){ key, i });
}

/* Writes the line's places lo .. hi-1 of the result from sorted pairs. */
static void store (const Job *j, int64_t line, int64_t lo, int64_t hi,
                   const Pair *from) {
  int64_t outer = line / j->inner, i = line % j->inner;
  const char *x = j->x;
  char *y = j->y;
  int64_t size = (int64_t)fnn_dtype_size(j->dtype);
  for (int64_t p = lo; p < hi; p++) {
    int64_t to = (outer * j->k + p) * j->inner + i;
    int64_t at = (outer * j->n + from[p].id) * j->inner + i;
    j->ids[to] = from[p].id;
    memcpy(y + to * size, x + at * size, (size_t)size);
  }
}

/* }====================================================== */

/*
** {======================================================
** One block
** =======================================================
*/

static void insertion_sort (Pair *p, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    Pair x = p[i];
    int64_t k = i;
    for (; k > 0 && p[k - 1].key > x.key; k--) p[k] = p[k - 1];
    p[k] = x;
  }
}

/* Moves the n pairs of from to to, ordered by one byte of the key. */
static void radix_pass (const Pair *from, Pair *to, int64_t n, int shift,
                        const uint32_t *count) {
  uint32_t start[256], sum = 0;
  for (int d = 0; d < 256; d++) {
    start[d] = sum;
    sum += count[d];
  }
  for (int64_t i = 0; i < n; i++)
    to[start[from[i].key >> shift & 255]++] = from[i];
}

/* Sorts n <= UINT32_MAX pairs; other has room for as many. */
static void block_sort (Pair *p, Pair *other, int64_t n) {
  uint32_t count[8][256];
  Pair *from = p, *to = other;
  if (n <= FEW) {
    insertion_sort(p, n);
    return;
  }
  memset(count, 0, sizeof count);
  for (int64_t i = 0; i < n; i++)
    for (int b = 0; b < 8; b++) count[b][p[i].key >> (8 * b) & 255]++;
  for (int b = 0; b < 8; b++) {
    if (count[b][p[0].key >> (8 * b) & 255] == n) continue;
    radix_pass(from, to, n, 8 * b, count[b]);
    Pair *swap = from;
    from = to;
    to = swap;
  }
  if (from != p) memcpy(p, from, (size_t)n * sizeof *p);
}

/* }====================================================== */

/*
** {======================================================
** The first few
** =======================================================
*/

/* Candidates for the k first: at most 2k pairs of p, which has room for 2k
** more to sort with. */
typedef struct Best {
  Pair *p;
  int64_t k, have;
  bool full;      /* whether k of them have been sorted out */
  uint64_t worst; /* key of the last of those */
} Best;

static void best_sort (Best *b) {
  block_sort(b->p, b->p + 2 * b->k, b->have);
  b->have = min64(b->have, b->k);
}

static void best_add (Best *b, uint64_t key, int64_t id) {
  b->p[b->have++] = (Pair){ key, id };
  if (b->have < 2 * b->k) return;
  best_sort(b);
  b->full = true;
  b->worst = b->p[b->k - 1].key;
}

/* An equal key that comes later is no better. */
#define best_wants(b, key) (!(b).full || (key) < (b).worst)

/* The k first of the line's places lo .. hi-1, sorted, to the front of p;
** tells how many there are. */
static int64_t first_of_line (const Job *j, int64_t line, int64_t lo,
                              int64_t hi, Pair *p) {
  Best b = { .p = p, .k = j->k };
  EACH_KEY(j, line, lo, hi, if (best_wants(b, key)) best_add(&b, key, i));
  best_sort(&b);
  return b.have;
}

static int64_t first_of_pairs (const Pair *from, int64_t n, int64_t k,
                               Pair *p) {
  Best b = { .p = p, .k = k };
  for (int64_t i = 0; i < n; i++)
    if (best_wants(b, from[i].key)) best_add(&b, from[i].key, from[i].id);
  best_sort(&b);
  return b.have;
}

/* }====================================================== */

/*
** {======================================================
** Lines of at most a block: a task sorts several
** =======================================================
*/

static void sort_lines (void *ud, int64_t task, int worker) {
  const Job *j = ud;
  Pair *p = j->scratch + worker * j->room;
  int64_t end = min64(j->lines, (task + 1) * j->grain);
  for (int64_t line = task * j->grain; line < end; line++) {
    if (8 * j->k <= j->n) {
      first_of_line(j, line, 0, j->n, p);
    } else {
      load(j, line, 0, j->n, p);
      block_sort(p, p + j->n, j->n);
    }
    store(j, line, 0, j->k, p);
  }
}

static void sort_short (Job *j) {
  j->grain = grain_rows(8 * j->n);
  j->room = 2 * j->n;
  j->scratch =
      mem_scratch((size_t)(threads_width() * j->room) * sizeof *j->scratch);
  threads_run((j->lines + j->grain - 1) / j->grain, sort_lines, j);
}

/* }====================================================== */

/*
** {======================================================
** A long line: tasks of one block
** =======================================================
*/

typedef struct Long {
  const Job *j;
  int64_t line, n; /* pairs in from; NULL: what is in the line */
  int64_t run;     /* length of the sorted runs */
  Pair *from, *to;
} Long;

static void load_block (void *ud, int64_t lo, int64_t hi) {
  const Long *l = ud;
  load(l->j, l->line, lo, hi, l->from + lo);
}

static void sort_block (void *ud, int64_t lo, int64_t hi) {
  const Long *l = ud;
  block_sort(l->from + lo, l->to + lo, hi - lo);
}

static void store_block (void *ud, int64_t lo, int64_t hi) {
  const Long *l = ud;
  store(l->j, l->line, lo, hi, l->from);
}

/* How many of the first at of a and b merged come from a (na, nb: their
** lengths): equal keys come from a first. */
static int64_t split (const Pair *a, int64_t na, const Pair *b, int64_t nb,
                      int64_t at) {
  int64_t lo = max64(0, at - nb), hi = min64(at, na);
  while (lo < hi) {
    int64_t i = lo + (hi - lo) / 2;
    if (a[i].key <= b[at - i - 1].key) lo = i + 1;
    else hi = i;
  }
  return lo;
}

/* Writes lo .. hi-1 of the merge of the two runs in which they lie. */
static void merge_block (void *ud, int64_t lo, int64_t hi) {
  const Long *l = ud;
  int64_t start = lo / (2 * l->run) * 2 * l->run;
  int64_t na = min64(l->run, l->n - start);
  int64_t nb = min64(l->run, l->n - start - na);
  const Pair *a = l->from + start, *b = a + na;
  int64_t i = split(a, na, b, nb, lo - start), k = lo - start - i;
  for (Pair *to = l->to + lo, *end = l->to + hi; to < end; to++) {
    bool first = k >= nb || (i < na && a[i].key <= b[k].key);
    *to = first ? a[i] : b[k];
    i += first;
    k += !first;
  }
}

static void swap (Long *l) {
  Pair *p = l->from;
  l->from = l->to;
  l->to = p;
}

/* Each stretch's k first go to its place in to, k pairs apart: their order is
** that of the line, so ties stay in order. */
static void first_of_stretch (void *ud, int64_t task, int worker) {
  const Long *l = ud;
  int64_t lo = task * SCAN, hi = min64(lo + SCAN, l->n), k = l->j->k;
  Pair *p = l->j->scratch + worker * l->j->room;
  int64_t have = l->from == NULL ? first_of_line(l->j, l->line, lo, hi, p)
                                 : first_of_pairs(l->from + lo, hi - lo, k, p);
  memcpy(l->to + task * k, p, (size_t)have * sizeof *p);
}

/* The k first of each stretch, of the line at first, then of those, until one
** stretch holds all that are left; p and q are for them. */
static void narrow_down (Long *l, Pair *p, Pair *q) {
  int64_t k = l->j->k;
  *l = (Long){ .j = l->j, .line = l->line, .n = l->n, .to = p };
  do {
    int64_t count = (l->n + SCAN - 1) / SCAN, rest = l->n % SCAN;
    threads_run(count, first_of_stretch, l);
    l->n = rest == 0 ? count * k : (count - 1) * k + min64(rest, k);
    l->from = l->to;
    l->to = l->from == p ? q : p;
  } while (l->n > SCAN);
  block_sort(l->from, l->to, l->n);
}

static void merge_all (Long *l) {
  threads_range(l->n, BLOCK, sort_block, l);
  for (l->run = BLOCK; l->run < l->n; l->run *= 2) {
    threads_range(l->n, BLOCK, merge_block, l);
    swap(l);
  }
}

static void sort_long (Job *j) {
  bool few = 8 * j->k <= min64(j->n, SCAN);
  int64_t room = few ? (j->n / SCAN + 1) * j->k : j->n;
  Pair *p = mem_scratch((size_t)mem_mul(room, 2 * sizeof *p, "topk: bytes"));
  if (few) {
    j->room = 4 * j->k;
    j->scratch = mem_scratch((size_t)(threads_width() * j->room) * sizeof *p);
  }
  for (int64_t line = 0; line < j->lines; line++) {
    Long l = { .j = j, .line = line, .n = j->n, .from = p, .to = p + room };
    if (few) {
      narrow_down(&l, p, p + room);
    } else {
      threads_range(j->n, BLOCK, load_block, &l);
      merge_all(&l);
    }
    threads_range(j->k, BLOCK, store_block, &l);
  }
}

/* }====================================================== */

void CPU (topk)(Tensor *y, Tensor *ids, const Tensor *x, int64_t outer,
                int64_t n, int64_t inner, int64_t k, bool largest) {
  Job j = { .y = tensor_data(y),
            .x = tensor_data(x),
            .ids = tensor_data(ids),
            .n = n,
            .inner = inner,
            .k = k,
            .lines = outer * inner,
            .flip = largest ? UINT64_MAX : 0,
            .dtype = (fnn_Dtype)x->dtype };
  if (n <= BLOCK) sort_short(&j);
  else sort_long(&j);
}

#endif
