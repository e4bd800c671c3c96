/* conv_back.cu - the gradients of a convolution.
**
** That of the input: a product gives what each output has for each tap and
** channel, and each input gathers what lies for it there.  That happens a slab
** of inputs at a time, images or lines of one image, with the outputs that
** reach it.  That of the weights: patches times gradients, a chunk of places
** after the other. */

#include "conv.h"

/*
** {======================================================
** The gradient of the input
** =======================================================
*/

/* Places first .. first + count - 1 of each axis, of some images. */
typedef struct Box {
  unsigned first[3], count[3];
} Box;

/* An axis of one input place: the outputs that its taps come from. */
static __device__ inline bool meets (const Places *s, const Box *out, int d,
                                     unsigned at, unsigned tap, unsigned *o) {
  unsigned from = at + (unsigned)s->before[d] - tap * s->dilation[d];
  if ((int)from < 0 || from % s->stride[d] != 0) return false;
  *o = from / s->stride[d] - out->first[d];
  return *o < out->count[d];
}

/* gx (places of the box, width packs) of columns (places of the outputs' box,
** groups, taps, part packs). */
template <class T, int N>
static __global__ void gather (T *gx, const T *columns, Places s, Box in,
                               Box out, unsigned places, unsigned width,
                               unsigned part) {
  unsigned step = gridDim.x * blockDim.y, o[3];
  unsigned c = blockIdx.y * blockDim.x + threadIdx.x;
  if (c >= width) return;
  const Pack<T, N> *from = (const Pack<T, N> *)columns;
  from += (int64_t)(c / part) * (s.taps - 1) * part + c;
  for (unsigned i = blockIdx.x * blockDim.y + threadIdx.y; i < places;
       i += step) {
    unsigned x = i % in.count[2] + in.first[2], line = i / in.count[2];
    unsigned y = line % in.count[1] + in.first[1], image = line / in.count[1];
    unsigned z = image % in.count[0] + in.first[0];
    Real<T> sum[N] = {};
    image /= in.count[0];
    for (unsigned a = 0; a < s.size[0]; a++) {
      if (!meets(&s, &out, 0, z, a, &o[0])) continue;
      for (unsigned b = 0; b < s.size[1]; b++) {
        if (!meets(&s, &out, 1, y, b, &o[1])) continue;
        for (unsigned k = 0; k < s.size[2]; k++) {
          if (!meets(&s, &out, 2, x, k, &o[2])) continue;
          int64_t row = (int64_t)image * out.count[0] + o[0];
          row = (row * out.count[1] + o[1]) * out.count[2] + o[2];
          unsigned tap = (a * s.size[1] + b) * s.size[2] + k;
          Pack<T, N> v = from[row * s.taps * width + (int64_t)tap * part];
          for (int e = 0; e < N; e++) sum[e] += (Real<T>)v.v[e];
        }
      }
    }
    Pack<T, N> v;
    for (int e = 0; e < N; e++) v.v[e] = number<T>(sum[e]);
    ((Pack<T, N> *)gx)[(int64_t)i * width + c] = v;
  }
}

/* What one slab after the other needs. */
typedef struct Slabs {
  Places places;
  Product product;
  Tensor *gx;
  const Tensor *gy;
  void *columns;
  int64_t size;  /* bytes of an element */
  int64_t width; /* elements of a row of columns */
} Slabs;

template <class T, int N>
static void gather_slab (const Slabs *s, T *to, const Box *in, const Box *out,
                         int64_t images) {
  const Places *p = &s->places;
  int64_t count = images * in->count[0] * in->count[1] * in->count[2];
  unsigned width = p->cin / N;
  dim3 block = conv_block(width);
  dim3 grid(blocks_for(count, block.y), blocks_for(width, block.x));
  RUN(s->gx, (gather<T, N>), grid, block, 0, to, (const T *)s->columns, *p,
      *in, *out, (unsigned)count, width, width / p->groups);
}

/* Inputs from place x0 of all, whose outputs begin at place y0. */
static void run_slab (Slabs *s, int64_t x0, int64_t y0, const Box *in,
                      const Box *out, int64_t images) {
  const Places *p = &s->places;
  Product *g = &s->product;
  char *to = (char *)tensor_data(s->gx) + x0 * p->cin * s->size;
  g->m = images * out->count[0] * out->count[1] * out->count[2];
  g->a.data = (const char *)tensor_data(s->gy) + y0 * p->cout * s->size;
  if (g->m > 0) cublas_product(cuda_of(s->gy), g, "conv");
  bool packs = pack_fits((fnn_Dtype)s->gx->dtype, p->cin / p->groups, to,
                         s->columns, NULL);
  WITH_FLOAT(s->gx->dtype, {
    if (packs) gather_slab<T, 4>(s, (T *)to, in, out, images);
    else gather_slab<T, 1>(s, (T *)to, in, out, images);
  })
}

static Box whole (const unsigned size[3]) {
  Box b;
  for (int d = 0; d < 3; d++) {
    b.first[d] = 0;
    b.count[d] = size[d];
  }
  return b;
}

static void slabs_of_images (Slabs *s, int64_t n, const ConvShape *shape) {
  Box in = whole(s->places.in), out = whole(s->places.out);
  int64_t x = conv_count(shape->in), y = conv_count(shape->out);
  int64_t each = conv_chunk(n, y * s->width * s->size);
  /* A kernel counts places of a slab in 32 bits. */
  each = min64(each, max64(INT32_MAX / x, 1));
  s->columns = conv_room(s->gx, each * y * s->width * s->size);
  s->product.c = s->columns;
  for (int64_t i = 0; i < n; i += each)
    run_slab(s, i * x, i * y, &in, &out, min64(each, n - i));
}

/* The outputs of axis d that reach input places lo .. hi - 1. */
static void reached (const ConvShape *s, int d, int64_t lo, int64_t hi,
                     Box *out) {
  int64_t reach = (s->size[d] - 1) * s->dilation[d], stride = s->stride[d];
  int64_t first = max64(lo + s->before[d] - reach, 0);
  first = (first + stride - 1) / stride;
  int64_t end = min64((hi - 1 + s->before[d]) / stride + 1, s->out[d]);
  out->first[d] = (unsigned)first;
  out->count[d] = (unsigned)max64(end - first, 0);
}

/* Images larger than the room, by lines of their first axis. */
static void slabs_of_lines (Slabs *s, int64_t n, const ConvShape *shape) {
  Box in = whole(s->places.in), out = whole(s->places.out);
  int d = 0;
  while (d < 2 && shape->in[d] == 1 && shape->out[d] == 1) d++;
  int64_t x = conv_count(shape->in) / shape->in[d];
  int64_t y = conv_count(shape->out) / shape->out[d];
  int64_t line = y * s->width * s->size, stride = shape->stride[d];
  int64_t reach = (shape->size[d] - 1) * shape->dilation[d];
  int64_t most = CONV_ROOM / line;
  /* A slab computes what reaches beyond it again: at most as much as it has. */
  int64_t lines = max64((most - 1) * stride - reach, reach + stride);
  lines = min64(lines, shape->in[d]);
  most = min64((lines - 1 + reach) / stride + 1, shape->out[d]);
  s->columns = conv_room(s->gx, most * line);
  s->product.c = s->columns;
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < shape->in[d]; k += lines) {
      int64_t count = min64(lines, shape->in[d] - k);
      in.first[d] = (unsigned)k;
      in.count[d] = (unsigned)count;
      reached(shape, d, k, k + count, &out);
      run_slab(s, (i * shape->in[d] + k) * x,
               (i * shape->out[d] + out.first[d]) * y, &in, &out, 1);
    }
}

static void input_products (Tensor *gx, const Tensor *gy, const void *w,
                            const ConvShape *s) {
  Slabs slabs = {};
  int64_t cout = s->cout / s->groups;
  int64_t k = s->cin / s->groups * conv_count(s->size);
  slabs.gx = gx;
  slabs.gy = gy;
  slabs.size = (int64_t)fnn_dtype_size((fnn_Dtype)gy->dtype);
  slabs.width = k * s->groups;
  Product *g = &slabs.product;
  g->n = k;
  g->k = cout;
  g->batch = s->groups;
  g->a.ld = s->cout;
  g->a.step = cout;
  g->b.data = w;
  g->b.ld = g->cstep = k;
  g->b.step = cout * k;
  g->ldc = slabs.width;
  g->ab = g->dtype = (fnn_Dtype)gy->dtype;
  g->alpha = 1;
  if (conv_is_product(s)) {
    g->m = s->n * conv_count(s->in);
    g->a.data = tensor_data(gy);
    g->c = tensor_data(gx);
    cublas_product(cuda_of(gy), g, "conv");
    return;
  }
  slabs.places = conv_places(s);
  if (conv_count(s->out) * slabs.width * slabs.size <= CONV_ROOM)
    slabs_of_images(&slabs, s->n, s);
  else slabs_of_lines(&slabs, s->n, s);
}

extern "C" void cuda_conv_back_input (Tensor *gx, const Tensor *gy,
                                      const Tensor *w, const Epilogue *e,
                                      const ConvShape *s) {
  size_t mark = fnn_mark();
  if (conv_is_depthwise(s)) conv_depthwise_input(gx, gy, w, e, s);
  else {
    input_products(gx, gy, conv_weights(w, s), s);
    conv_finish(gx, e, s->cin);
  }
  fnn_escape(mark, NULL);
}

/* }====================================================== */

/*
** {======================================================
** The gradient of the weights
** =======================================================
*/

/* c (groups, cout / groups, taps, cin / groups) = gy' patches.  c is f32 where
** chunks of a 16-bit dtype are added up. */
static void weight_products (Tensor *c, const Tensor *gy, const Tensor *x,
                             const ConvShape *s, int64_t rows) {
  int64_t m = s->n * conv_count(s->out), width = s->cin * conv_count(s->size);
  int64_t size = (int64_t)fnn_dtype_size((fnn_Dtype)x->dtype);
  bool plain = conv_is_product(s);
  Places places = conv_places(s);
  void *patches = plain ? tensor_data(x) : conv_room(x, rows * width * size);
  Product p = {};
  p.m = s->cout / s->groups;
  p.n = width / s->groups;
  p.batch = s->groups;
  p.a.ld = s->cout;
  p.a.step = p.m;
  p.a.transposed = true;
  p.b.data = patches;
  p.b.ld = width;
  p.b.step = p.ldc = p.n;
  p.c = tensor_data(c);
  p.cstep = p.m * p.n;
  p.ab = (fnn_Dtype)x->dtype;
  p.dtype = (fnn_Dtype)c->dtype;
  p.alpha = 1;
  for (int64_t i = 0; i < m; i += rows) {
    p.k = min64(rows, m - i);
    p.a.data = (const char *)tensor_data(gy) + i * s->cout * size;
    p.beta = i > 0;
    if (!plain) conv_lower(patches, x, &places, i, p.k);
    cublas_product(cuda_of(x), &p, "conv");
  }
}

extern "C" void cuda_conv_back_weight (Tensor *gw, const Tensor *gy,
                                       const Tensor *x, const ConvShape *s) {
  size_t mark = fnn_mark();
  if (conv_is_depthwise(s)) {
    conv_depthwise_weight(gw, gy, x, s);
    fnn_escape(mark, NULL);
    return;
  }
  int64_t taps = conv_count(s->size), cin = s->cin / s->groups;
  int64_t m = s->n * conv_count(s->out), rows = m;
  int64_t size = (int64_t)fnn_dtype_size((fnn_Dtype)x->dtype);
  if (!conv_is_product(s)) rows = conv_chunk(m, s->cin * taps * size);
  bool added = rows < m && size == 2;
  Tensor *c = gw;
  if (added || (taps > 1 && cin > 1))
    c = tensor_like_as(gw, added ? FNN_F32 : (fnn_Dtype)gw->dtype);
  weight_products(c, gy, x, s, rows);
  if (taps > 1 && cin > 1)
    conv_turn(tensor_data(gw), (fnn_Dtype)gw->dtype, c, s->cout, taps, cin);
  else if (c != gw) kernel(gw, copy)(gw, c);
  fnn_escape(mark, NULL);
}

/* }====================================================== */
