/* einsum.c - sums of products written in index notation: "ij,jk->ik".
**
** Operands are contracted from left to right, two at a time.  The indices of
** a pair fall into four groups: those of both that are still needed (batch),
** those of both that are not (summed), and those of one operand only.  Moved
** into this order and each group made one dim, the pair is a batch of matrix
** products.  Everything is composed of ops that have their derivatives. */

#include <string.h>

#include "ops.h"

/* Indices are numbers: letters, then the dims that "..." stands for, counted
** so that the last dim is the last index. */
enum { LETTERS = 52, INDICES = LETTERS + FNN_MAXDIM };

typedef uint64_t Set; /* of indices: bit i is index i */

static inline Set one (int index) { return (Set)1 << index; }

/* An operand, and the index of each of its dims. */
typedef struct Term {
  Tensor *x;
  int index[FNN_MAXDIM];
} Term;

typedef struct Parser {
  const char *spec, *at;
  int count[INDICES];    /* how often each index stands in the operands */
  int64_t size[INDICES]; /* 1 until a larger size is seen */
  int dots;              /* the dims that "..." stands for, at most */
  bool ellipsis;         /* whether any operand has one */
} Parser;

/*
** {======================================================
** Parsing
** =======================================================
*/

FNN_NORETURN static void throw_spec (const Parser *p, const char *what) {
  fnn_throw(FNN_EARG, "einsum: %s in \"%s\"", what, p->spec);
}

static int letter (char c) {
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= 'A' && c <= 'Z') return c - 'A';
  return -1;
}

/* Reads one operand's indices up to a comma, an arrow or the end.  "..."
** becomes as many indices as dots tells; *gap is its place, or -1. */
static int read_indices (Parser *p, int *index, int *gap) {
  int n = 0;
  *gap = -1;
  for (; *p->at != '\0' && *p->at != ',' && *p->at != '-'; p->at++) {
    if (*p->at == ' ') continue;
    if (strncmp(p->at, "...", 3) == 0 && *gap < 0) {
      *gap = n;
      p->at += 2;
      continue;
    }
    if (letter(*p->at) < 0) throw_spec(p, "a character that is no index");
    if (n == FNN_MAXDIM) throw_spec(p, "too many indices of one tensor");
    index[n++] = letter(*p->at);
  }
  return n;
}

/* Puts dots indices into the gap. */
static int fill_gap (Parser *p, int *index, int n, int gap, int dots) {
  if (gap < 0) return n;
  if (n + dots > FNN_MAXDIM) throw_spec(p, "too many dims in the result");
  memmove(index + gap + dots, index + gap, (size_t)(n - gap) * sizeof *index);
  for (int i = 0; i < dots; i++) index[gap + i] = INDICES - dots + i;
  return n + dots;
}

/* Notes that x has this size along index; sizes of 1 stretch. */
static void note_size (Parser *p, const Term *t, int d) {
  int index = t->index[d];
  int64_t have = p->size[index], size = t->x->shape[d];
  if (have != 1 && size != 1 && have != size)
    fnn_throw(FNN_ESHAPE,
              "einsum: an index of \"%s\" has size %lld in one "
              "place and %lld in shape %s",
              p->spec, (long long)have, (long long)size, shape_text(t->x));
  if (size != 1) p->size[index] = size;
}

static void read_operand (Parser *p, Term *t, Tensor *x) {
  int gap, n = read_indices(p, t->index, &gap), dots = x->ndim - n;
  if (dots < 0 || (dots > 0 && gap < 0))
    fnn_throw(FNN_ESHAPE, "einsum: %d indices in \"%s\" for shape %s", n,
              p->spec, shape_text(x));
  t->x = x;
  fill_gap(p, t->index, n, gap, dots);
  if (gap >= 0) p->ellipsis = true;
  if (dots > p->dots) p->dots = dots;
  for (int d = 0; d < x->ndim; d++) {
    p->count[t->index[d]]++;
    note_size(p, t, d);
  }
}

/* The result's indices: after an arrow, or else "..." and every letter that
** stands once, in the order of the alphabet. */
static int read_result (Parser *p, int *index) {
  int n = 0, gap = 0;
  if (*p->at == '\0') {
    for (int i = 0; i < LETTERS; i++)
      if (p->count[i] == 1) {
        if (n == FNN_MAXDIM) throw_spec(p, "too many dims in the result");
        index[n++] = i;
      }
    return fill_gap(p, index, n, gap, p->dots);
  }
  if (strncmp(p->at, "->", 2) != 0) throw_spec(p, "a '-' without '>'");
  p->at += 2;
  n = read_indices(p, index, &gap);
  if (*p->at != '\0') throw_spec(p, "more than one result");
  if (gap >= 0 && !p->ellipsis) throw_spec(p, "no operand has the '...'");
  n = fill_gap(p, index, n, gap, p->dots);
  Set seen = 0;
  for (int i = 0; i < n; i++) {
    if (p->count[index[i]] == 0 && index[i] < LETTERS)
      throw_spec(p, "no operand has an index of the result");
    if (seen & one(index[i])) throw_spec(p, "an index twice in the result");
    seen |= one(index[i]);
  }
  return n;
}

/* }====================================================== */

/*
** {======================================================
** One operand
** =======================================================
*/

static Set indices (const Term *t) {
  Set s = 0;
  for (int d = 0; d < t->x->ndim; d++) s |= one(t->index[d]);
  return s;
}

static int find (const Term *t, int index) {
  for (int d = 0; d < t->x->ndim; d++)
    if (t->index[d] == index) return d;
  return -1;
}

static void remove_index (Term *t, int d, int ndim) {
  for (; d < ndim - 1; d++) t->index[d] = t->index[d + 1];
}

/* Replaces dims with the same index by their diagonal. */
static void take_diagonals (Parser *p, Term *t) {
  for (int a = 0; a < t->x->ndim; a++)
    for (int b = a + 1; b < t->x->ndim; b++) {
      if (t->index[a] != t->index[b]) continue;
      int index = t->index[a], n = t->x->ndim;
      if (t->x->shape[a] != t->x->shape[b])
        throw_spec(p, "two sizes of a repeated index");
      t->x = fnn_diagonal(t->x, 0, a, b);
      remove_index(t, b, n);
      remove_index(t, a, n - 1);
      t->index[n - 2] = index;
      a = -1; /* the dims have moved: from the start */
      break;
    }
}

/* Sums over the dims whose index is not in keep. */
static void sum_out (Term *t, Set keep) {
  int dims[FNN_MAXDIM], n = 0, left = 0, ndim = t->x->ndim;
  for (int d = 0; d < ndim; d++)
    if (keep & one(t->index[d])) t->index[left++] = t->index[d];
    else dims[n++] = d;
  if (n > 0) t->x = fnn_sum(t->x, n, dims, false);
}

/* The dims of t with an index in set, in the order in which like has them. */
static int group (const Term *t, const Term *like, Set set, int *dims) {
  int n = 0;
  for (int d = 0; d < like->x->ndim; d++)
    if (set & one(like->index[d])) dims[n++] = find(t, like->index[d]);
  return n;
}

/* }====================================================== */

/*
** {======================================================
** Two operands
** =======================================================
*/

/* t's dims in the order given; the first n[0] as one dim, the next n[1] as
** one and the next n[2] as one. */
static Tensor *three_dims (const Term *t, const int *dims, const int *n) {
  int64_t shape[3] = { 1, 1, 1 };
  Tensor *x = fnn_permute(t->x, t->x->ndim, dims);
  for (int g = 0, d = 0; g < 3; g++)
    for (int i = 0; i < n[g]; i++) shape[g] *= x->shape[d++];
  return fnn_reshape(x, 3, shape);
}

/* An index that one of the two has with size 1 and the other with more is
** the other's alone. */
static void drop_stretched (Term *a, Term *b) {
  for (int d = 0; d < a->x->ndim; d++) {
    int e = find(b, a->index[d]);
    if (e < 0 || a->x->shape[d] != 1 || b->x->shape[e] == 1) continue;
    int n = a->x->ndim;
    a->x = fnn_squeeze(a->x, d);
    remove_index(a, d--, n);
  }
}

/* a times b by products of matrices: (batch, a's, summed) by (batch, summed,
** b's).  Where nothing is summed broadcasting does; integers, which have no
** product of matrices, are multiplied and summed. */
static Tensor *contract (const Term *a, const Term *b, Set batch, Set summed,
                         Set as, Set bs) {
  int da[FNN_MAXDIM], db[FNN_MAXDIM], na[3], nb[3];
  na[0] = group(a, a, batch, da);
  na[1] = group(a, a, as, da + na[0]);
  na[2] = group(a, a, summed, da + na[0] + na[1]);
  nb[0] = group(b, a, batch, db);
  nb[1] = group(b, a, summed, db + nb[0]);
  nb[2] = group(b, b, bs, db + nb[0] + nb[1]);
  Tensor *x = three_dims(a, da, na), *y = three_dims(b, db, nb);
  if (summed == 0) return fnn_mul(x, y);
  if (tensor_is_float(x) && tensor_is_float(y)) {
    if (na[0] > 0) return fnn_matmul(x, y);
    return fnn_matmul(fnn_squeeze(x, 0), fnn_squeeze(y, 0));
  }
  x = fnn_unsqueeze(x, 3);
  y = fnn_unsqueeze(y, 1);
  return fnn_sum(fnn_mul(x, y), 1, (int[]){ 2 }, false);
}

/* a becomes the product of both, summed over what is not in keep. */
static void multiply (Parser *p, Term *a, Term *b, Set keep) {
  int64_t shape[FNN_MAXDIM];
  Term y = { 0 };
  int n = 0;
  drop_stretched(a, b);
  drop_stretched(b, a);
  Set ia = indices(a), ib = indices(b), both = ia & ib;
  sum_out(a, keep | both);
  sum_out(b, keep | both);
  for (int pass = 0; pass < 3; pass++) { /* batch, a's own, b's own */
    const Term *t = pass < 2 ? a : b;
    for (int d = 0; d < t->x->ndim; d++) {
      bool shared = (both & one(t->index[d])) != 0;
      if (!(keep & one(t->index[d])) || shared != (pass == 0)) continue;
      if (n == FNN_MAXDIM) throw_spec(p, "too many dims between operands");
      shape[n] = t->x->shape[d];
      y.index[n++] = t->index[d];
    }
  }
  Tensor *x = contract(a, b, both & keep, both & ~keep, ia & keep & ~ib,
                       ib & keep & ~ia);
  y.x = fnn_reshape(x, n, shape);
  *a = y;
}

/* }====================================================== */

/* t's dims in the order of index. */
static Tensor *arrange (const Term *t, int n, const int *index) {
  int dims[FNN_MAXDIM];
  for (int d = 0; d < n; d++) dims[d] = find(t, index[d]);
  return fnn_permute(t->x, n, dims);
}

Tensor *fnn_einsum (const char *spec, int n, Tensor *const *x) {
  Parser p = { .spec = spec, .at = spec };
  int index[FNN_MAXDIM];
  if (n < 1) fnn_throw(FNN_EARG, "einsum: needs at least one tensor");
  for (int i = 0; i < INDICES; i++) p.size[i] = 1;
  Term *t = mem_scratch((size_t)n * sizeof *t);
  for (int i = 0; i < n; i++) {
    if (i > 0 && *p.at++ != ',') throw_spec(&p, "fewer operands than given");
    read_operand(&p, &t[i], x[i]);
  }
  if (*p.at == ',') throw_spec(&p, "more operands than given");
  int nindex = read_result(&p, index);
  for (int i = 0; i < n; i++) take_diagonals(&p, &t[i]);
  for (int i = 1; i < n; i++) {
    Set keep = 0;
    for (int d = 0; d < nindex; d++) keep |= one(index[d]);
    for (int k = i + 1; k < n; k++) keep |= indices(&t[k]);
    multiply(&p, &t[0], &t[i], keep);
  }
  Set keep = 0;
  for (int d = 0; d < nindex; d++) keep |= one(index[d]);
  sum_out(&t[0], keep);
  return arrange(&t[0], nindex, index);
}
