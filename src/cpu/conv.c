/* conv.c - which way a convolution and its gradients go. */

#include "conv.h"

#include "../core/ops.h"

static int64_t count (const int64_t size[3]) {
  return size[0] * size[1] * size[2];
}

static bool is_depthwise (const ConvShape *s) {
  return s->groups > 1 && s->groups == s->cin && s->cin == s->cout;
}

/* Patches of an image x (n, size, channels), places `step` apart. */
static Patches patches_of (const real *x, int64_t n, int64_t channels,
                           const int64_t *size, const int64_t *out,
                           const int64_t *step, const Taps *t) {
  Patches p = { .data = x,
                .end = x + n * count(size) * channels,
                .channels = channels,
                .ld = channels,
                .runs = t->count / t->across,
                .across = t->across,
                .offset = (const int64_t(*)[3])t->offset };
  for (int d = 0; d < 3; d++) {
    p.in[d] = size[d];
    p.out[d] = out[d];
    p.step[d] = step[d];
  }
  return p;
}

/* The patches of one group among `groups`. */
static Patches of_group (Patches p, int64_t group, int64_t groups) {
  p.channels = p.ld / groups;
  p.data += group * p.channels;
  return p;
}

static const real *bias_of (const Epilogue *e) {
  return e->bias != NULL ? tensor_data(e->bias) : NULL;
}

/* Taps that meet places of their own: a product of two matrices. */
static bool is_product (const ConvShape *s) {
  bool plain = s->groups == 1 && count(s->size) == 1;
  for (int d = 0; d < 3; d++)
    plain = plain && s->stride[d] == 1 && s->before[d] == 0 &&
            s->in[d] == s->out[d];
  return plain;
}

/* Whether a tile of a product would be mostly empty. */
static bool is_few (const ConvShape *s, int64_t outputs) {
  return s->groups == 1 && 2 * outputs < VEC && count(s->size) > 1;
}

static bool is_stride_one (const ConvShape *s) {
  return count(s->stride) == 1;
}

/*
** {======================================================
** The result
** =======================================================
*/

/* A product for each group, by packed weights that give n columns each. */
static void products (const Patches *patches, int64_t m, const Weights *w,
                      const real *packed, int64_t groups, real *c, int64_t ldc,
                      const Epilogue *e) {
  const real *bias = bias_of(e);
  int64_t size = CPU(weights_size)(w);
  for (int64_t g = 0; g < groups; g++) {
    Patches part = of_group(*patches, g, groups);
    CPU(patches_product)
    (&(PatchProduct){ .patches = &part,
                      .m = m,
                      .n = w->n,
                      .weights = packed + g * size,
                      .c = c + g * w->n,
                      .ldc = ldc,
                      .bias = bias != NULL ? bias + g * w->n : NULL,
                      .relu = e->act == MAP_relu });
  }
}

static void conv_depthwise (real *y, const Patches *p, const Taps *t,
                            const real *w, const Epilogue *e,
                            const ConvShape *s) {
  int64_t line = s->out[2] * s->cout;
  CPU(depthwise)
  (&(Depthwise){
      .patches = *p,
      .taps = t,
      .n = s->n,
      .weights = w,
      .size = count(s->size),
      .y = y,
      .place = { count(s->out) * s->cout, s->out[1] * line, line, s->cout },
      .bias = bias_of(e),
      .relu = e->act == MAP_relu });
}

static void result_few (real *y, const real *x, const real *w,
                        const Epilogue *e, const ConvShape *s) {
  int64_t taps = count(s->size);
  FewPart part = { .taps = CPU(conv_taps)(s) };
  Few f = { .x = x,
            .weights = w,
            .bias = bias_of(e),
            .y = y,
            .images = s->n,
            .channels = s->cin,
            .n = s->cout,
            .taps = taps,
            .ldo = s->cin * taps,
            .ldc = taps,
            .parts = 1,
            .part = &part,
            .relu = e->act == MAP_relu };
  for (int d = 0; d < 3; d++) {
    f.in[d] = s->in[d];
    f.out[d] = part.grid[d] = s->out[d];
    f.stride[d] = 1;
  }
  CPU(conv_few)(&f);
}

void CPU (conv)(Tensor *y, const Tensor *x, const Tensor *w, const Epilogue *e,
                const ConvShape *s) {
  if (CONV_WINOGRAD(y, x, w, e, s, false)) return;
  size_t mark = fnn_mark();
  int64_t size = count(s->size), m = s->n * count(s->out);
  int64_t cin = s->cin / s->groups, cout = s->cout / s->groups;
  if (is_product(s)) {
    CPU(gemm)
    (&(Gemm){ .m = m,
              .n = cout,
              .k = cin,
              .a = { .data = tensor_data(x), .row = cin, .col = 1 },
              .b = { .data = tensor_data(w), .row = 1, .col = cin },
              .c = tensor_data(y),
              .ldc = cout,
              .bias = bias_of(e),
              .alpha = 1,
              .relu = e->act == MAP_relu });
  } else if (is_few(s, cout) && is_stride_one(s)) {
    result_few(tensor_data(y), tensor_data(x), tensor_data(w), e, s);
  } else {
    Taps t = CPU(conv_taps)(s);
    Patches p =
        patches_of(tensor_data(x), s->n, s->cin, s->in, s->out, s->stride, &t);
    Weights weights = {
      tensor_data(w), &t, cin, size, cout, cin * size, size
    };
    if (is_depthwise(s))
      conv_depthwise(tensor_data(y), &p, &t, tensor_data(w), e, s);
    else
      products(&p, m, &weights,
               CPU(weights_packed)(w, &weights, cout * cin * size, s->groups,
                                   m, false),
               s->groups, tensor_data(y), s->cout, e);
  }
  fnn_escape(mark, NULL);
  if (e->act >= 0 && e->act != MAP_relu) kernel(y, map)(e->act, y, y, 0, 0);
}

/* }====================================================== */

/*
** {======================================================
** The gradient of the input
** =======================================================
*/

/* The most classes of input places whose taps are all kept at once. */
enum { CLASSES = 256 };

/* The i-th class of input places: its first one, and how many follow. */
static int64_t class_count (const ConvShape *s) {
  int64_t n = 1;
  for (int d = 0; d < 3; d++) n *= min64(s->stride[d], s->in[d]);
  return n;
}

static void class_at (const ConvShape *s, int64_t i, int64_t first[3],
                      int64_t grid[3]) {
  for (int d = 2; d >= 0; d--) {
    int64_t classes = min64(s->stride[d], s->in[d]);
    first[d] = i % classes;
    i /= classes;
    grid[d] = divide_up(s->in[d] - first[d], s->stride[d]);
  }
}

/* One class of input places: a grid of them, the first at `first`. */
typedef struct Class {
  int64_t first[3], grid[3];
  const ConvShape *s;
  const real *from; /* (n, grid, channels), or NULL: the bias */
  const Epilogue *e;
  real *to; /* (n, in, channels) */
} Class;

/* Lines of the grid to their places. */
static void place_lines (void *ud, int64_t lo, int64_t hi) {
  const Class *k = ud;
  const ConvShape *s = k->s;
  int64_t n = k->grid[2], c = s->cin;
  const real *bias = bias_of(k->e);
  for (int64_t i = lo; i < hi; i++) {
    int64_t y = i % k->grid[1], z = i / k->grid[1] % k->grid[0];
    int64_t image = i / (k->grid[0] * k->grid[1]);
    int64_t line = image * s->in[0] + k->first[0] + z * s->stride[0];
    line = line * s->in[1] + k->first[1] + y * s->stride[1];
    real *to = k->to + (line * s->in[2] + k->first[2]) * c;
    for (int64_t x = 0; x < n; x++, to += s->stride[2] * c) {
      const real *from = k->from != NULL ? k->from + (i * n + x) * c : bias;
      if (from != NULL) memcpy(to, from, (size_t)c * sizeof(real));
      else memset(to, 0, (size_t)c * sizeof(real));
      if (k->from == NULL && k->e->act == MAP_relu)
        for (int64_t j = 0; j < c; j++) to[j] = to[j] < 0 ? 0 : to[j];
    }
  }
}

static void place_class (Class *k) {
  int64_t lines = k->s->n * k->grid[0] * k->grid[1];
  threads_range(lines, grain_rows(k->grid[2] * k->s->cin), place_lines, k);
}

static void class_depthwise (const Class *k, const Patches *p, const Taps *t,
                             const real *w) {
  const ConvShape *s = k->s;
  int64_t place[4] = { count(s->in) * s->cin, s->in[1] * s->in[2] * s->cin,
                       s->in[2] * s->cin, s->cin };
  Depthwise d = { .patches = *p,
                  .taps = t,
                  .n = s->n,
                  .weights = w,
                  .size = count(s->size),
                  .y = k->to,
                  .place = { place[0] },
                  .bias = bias_of(k->e),
                  .relu = k->e->act == MAP_relu };
  for (int a = 0; a < 3; a++) {
    d.y += k->first[a] * place[a + 1];
    d.place[a + 1] = s->stride[a] * place[a + 1];
  }
  CPU(depthwise)(&d);
}

/* All places of the class, from the gradient gy of the result. */
static void class_run (Class *k, const real *gy, const Tensor *w) {
  static const int64_t one[3] = { 1, 1, 1 };
  const ConvShape *s = k->s;
  size_t mark = fnn_mark();
  int64_t size = count(s->size), m = s->n * count(k->grid);
  int64_t cin = s->cin / s->groups, cout = s->cout / s->groups;
  Taps t = CPU(conv_taps_back)(s, k->first);
  Patches p = patches_of(gy, s->n, s->cout, s->out, k->grid, one, &t);
  if (is_depthwise(s)) {
    class_depthwise(k, &p, &t, tensor_data(w));
  } else if (t.count == 0) {
    place_class(k);
  } else {
    Weights weights = {
      tensor_data(w), &t, cout, cin * size, cin, size, size
    };
    const real *packed =
        CPU(weights_packed)(t.count == size ? w : NULL, &weights,
                            cout * cin * size, s->groups, m, true);
    bool whole = count(k->grid) == count(s->in);
    real *to = k->to;
    if (!whole) to = mem_scratch((size_t)(m * s->cin) * sizeof(real));
    products(&p, m, &weights, packed, s->groups, to, s->cin, k->e);
    k->from = to;
    if (!whole) place_class(k);
  }
  fnn_escape(mark, NULL);
}

static void input_few (real *gx, const real *gy, const real *w,
                       const Epilogue *e, const ConvShape *s) {
  size_t mark = fnn_mark();
  int64_t taps = count(s->size), n = class_count(s);
  FewPart *part = mem_scratch((size_t)n * sizeof *part);
  for (int64_t i = 0; i < n; i++) {
    class_at(s, i, part[i].first, part[i].grid);
    part[i].taps = CPU(conv_taps_back)(s, part[i].first);
  }
  Few f = { .x = gy,
            .weights = w,
            .bias = bias_of(e),
            .y = gx,
            .images = s->n,
            .channels = s->cout,
            .n = s->cin,
            .taps = taps,
            .ldo = taps,
            .ldc = s->cin * taps,
            .parts = n,
            .part = part,
            .relu = e->act == MAP_relu };
  for (int d = 0; d < 3; d++) {
    f.in[d] = s->out[d];
    f.out[d] = s->in[d];
    f.stride[d] = s->stride[d];
  }
  CPU(conv_few)(&f);
  fnn_escape(mark, NULL);
}

void CPU (conv_back_input)(Tensor *gx, const Tensor *gy, const Tensor *w,
                           const Epilogue *e, const ConvShape *s) {
  int64_t m = s->n * count(s->in);
  if (CONV_WINOGRAD(gx, gy, w, e, s, true)) return;
  if (is_product(s)) {
    CPU(gemm)
    (&(Gemm){ .m = m,
              .n = s->cin,
              .k = s->cout,
              .a = { .data = tensor_data(gy), .row = s->cout, .col = 1 },
              .b = { .data = tensor_data(w), .row = s->cin, .col = 1 },
              .c = tensor_data(gx),
              .ldc = s->cin,
              .bias = bias_of(e),
              .alpha = 1,
              .relu = e->act == MAP_relu });
  } else if (is_few(s, s->cin) && class_count(s) <= CLASSES) {
    input_few(tensor_data(gx), tensor_data(gy), tensor_data(w), e, s);
  } else {
    Class k = { .s = s, .e = e, .to = tensor_data(gx) };
    for (int64_t i = 0; i < class_count(s); i++) {
      class_at(s, i, k.first, k.grid);
      k.from = NULL;
      class_run(&k, tensor_data(gy), w);
    }
  }
  if (e->act >= 0 && e->act != MAP_relu) kernel(gx, map)(e->act, gx, gx, 0, 0);
}

/* }====================================================== */

void CPU (conv_back_weight)(Tensor *gw, const Tensor *gy, const Tensor *x,
                            const ConvShape *s) {
  if (CONV_WINOGRAD_WEIGHT(gw, gy, x, s)) return;
  size_t mark = fnn_mark();
  Taps t = CPU(conv_taps)(s);
  Patches p =
      patches_of(tensor_data(x), s->n, s->cin, s->in, s->out, s->stride, &t);
  int64_t n = s->cout / s->groups, size = count(s->size);
  const real *from = tensor_data(gy);
  real *to = tensor_data(gw);
  if (is_depthwise(s)) {
    CPU(depthwise_gradient)(&p, s->n, from, to);
  } else {
    for (int64_t g = 0; g < s->groups; g++) {
      Patches part = of_group(p, g, s->groups);
      CPU(patches_gradient)
      (&part, s->n * count(s->out), from + g * n, s->cout, n,
       to + g * n * part.channels * size);
    }
  }
  fnn_escape(mark, NULL);
}
