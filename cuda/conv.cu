/* conv.cu - convolutions as products of patches and weights.
**
** A row of patches is copied by a group of threads, each of which moves as
** many bytes at a time as divide the channels (Chetlur et al. 2014, with the
** patches in memory). */

#include "conv.h"

/*
** {======================================================
** Geometry and memory
** =======================================================
*/

static unsigned narrow (int64_t v) {
  if (v < 0 || v > INT32_MAX)
    fnn_throw(FNN_ESHAPE,
              "conv: a dim, with its padding, has more than 2^31 - 1 places");
  return (unsigned)v;
}

Places conv_places (const ConvShape *s) {
  Places p;
  for (int d = 0; d < 3; d++) {
    int64_t reach = (s->size[d] - 1) * s->dilation[d];
    narrow((s->out[d] - 1) * s->stride[d] + reach);
    narrow(s->in[d] + s->before[d] + reach);
    p.in[d] = narrow(s->in[d]);
    p.out[d] = narrow(s->out[d]);
    p.size[d] = narrow(s->size[d]);
    p.stride[d] = narrow(s->stride[d]);
    p.dilation[d] = narrow(s->dilation[d]);
    p.before[d] = (int)narrow(s->before[d]);
  }
  p.taps = narrow(conv_count(s->size));
  p.cin = narrow(s->cin);
  p.cout = narrow(s->cout);
  p.groups = narrow(s->groups);
  return p;
}

void *conv_room (const Tensor *like, int64_t bytes) {
  return tensor_data(tensor_new(1, &bytes, FNN_U8, like->storage->device));
}

/* Chunks of about one size. */
int64_t conv_chunk (int64_t m, int64_t bytes) {
  int64_t most = max64(CONV_ROOM / bytes, 1), chunks = (m + most - 1) / most;
  return (m + chunks - 1) / chunks;
}

/* }====================================================== */

/*
** {======================================================
** Patches
** =======================================================
*/

/* The place of a first row. */
typedef struct Start {
  unsigned image, at[3];
} Start;

/* A word of one of the sizes that are moved at a time. */
template <class V> static __device__ inline V nothing () { return V(); }

/* rows * taps items; width, part: words of all channels, of a group's. */
template <class V>
static __global__ void lower (V *to, const V *x, Places s, Start from,
                              unsigned items, unsigned width, unsigned part) {
  unsigned step = gridDim.x * blockDim.y;
  for (unsigned i = blockIdx.x * blockDim.y + threadIdx.y; i < items;
       i += step) {
    unsigned row = i / s.taps, tap = i % s.taps, image = row;
    unsigned at[3], k = tap;
    bool inside = true;
    for (int d = 2; d >= 0; d--) {
      unsigned o = image + from.at[d];
      image = o / s.out[d];
      at[d] = o % s.out[d] * s.stride[d] + k % s.size[d] * s.dilation[d] -
              (unsigned)s.before[d];
      k /= s.size[d];
      inside = inside && at[d] < s.in[d]; /* also where it is negative */
    }
    int64_t place = image + from.image;
    for (int d = 0; d < 3; d++) place = place * s.in[d] + at[d];
    const V *p = x + place * width;
    V *y = to + (int64_t)row * s.taps * width + tap * part;
    for (unsigned c = threadIdx.x; c < width; c += blockDim.x) {
      unsigned g = part == width ? 0 : c / part;
      y[(int64_t)g * (s.taps - 1) * part + c] = inside ? p[c] : nothing<V>();
    }
  }
}

/* The widest word, in bytes, that the channels of a group are a multiple of,
** and addresses too. */
static int64_t word_of (const Tensor *x, int64_t channels, const void *to) {
  int64_t size = (int64_t)fnn_dtype_size((fnn_Dtype)x->dtype);
  uintptr_t all =
      (uintptr_t)tensor_data(x) | (uintptr_t)to | (uintptr_t)(channels * size);
  int64_t word = 16;
  while (all % (uintptr_t)word != 0) word /= 2;
  return word;
}

template <class V>
static void lower_words (void *to, const Tensor *x, const Places *s,
                         Start from, unsigned items) {
  int64_t size = (int64_t)fnn_dtype_size((fnn_Dtype)x->dtype);
  unsigned width = (unsigned)(s->cin * size / (int64_t)sizeof(V));
  dim3 block = conv_block(width);
  RUN(x, lower<V>, blocks_for(items, block.y), block, 0, (V *)to,
      (const V *)tensor_data(x), *s, from, items, width, width / s->groups);
}

void conv_lower (void *to, const Tensor *x, const Places *s, int64_t first,
                 int64_t rows) {
  Start from;
  for (int d = 2; d >= 0; d--) {
    from.at[d] = (unsigned)(first % s->out[d]);
    first /= s->out[d];
  }
  from.image = (unsigned)first;
  unsigned items = narrow(rows * s->taps);
  switch (word_of(x, s->cin / s->groups, to)) {
    case 16: lower_words<int4>(to, x, s, from, items); break;
    case 8: lower_words<int2>(to, x, s, from, items); break;
    case 4: lower_words<uint32_t>(to, x, s, from, items); break;
    default: lower_words<uint16_t>(to, x, s, from, items); break;
  }
}

/* }====================================================== */

/*
** {======================================================
** Weights
** =======================================================
*/

enum { SIDE = 32, SIDE_ROWS = 8 };

/* Tiles go through shared memory, so that both sides are read in runs. */
template <class Y, class X>
static __global__ void turn (Y *y, const X *x, int64_t rows, int64_t cols,
                             int64_t tiles, int64_t across) {
  SHARED(X, tile, [SIDE][SIDE + 1]);
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    int64_t down = (rows + SIDE - 1) / SIDE;
    int64_t c0 = t % across * SIDE, r0 = t / across % down * SIDE;
    const X *from = x + t / (across * down) * rows * cols;
    Y *to = y + t / (across * down) * rows * cols;
    for (int i = threadIdx.y; i < SIDE; i += SIDE_ROWS) {
      int64_t r = r0 + i, c = c0 + threadIdx.x;
      if (r < rows && c < cols) tile[i][threadIdx.x] = from[r * cols + c];
    }
    __syncthreads();
    for (int i = threadIdx.y; i < SIDE; i += SIDE_ROWS) {
      int64_t c = c0 + i, r = r0 + threadIdx.x;
      if (r < rows && c < cols) to[c * rows + r] = (Y)tile[threadIdx.x][i];
    }
    __syncthreads(); /* not needed by a block's last tile */
  }
}

void conv_turn (void *y, fnn_Dtype t, const Tensor *x, int64_t outer,
                int64_t rows, int64_t cols) {
  int64_t across = (cols + SIDE - 1) / SIDE;
  int64_t tiles = across * ((rows + SIDE - 1) / SIDE) * outer;
  dim3 block(SIDE, SIDE_ROWS);
  unsigned grid = blocks_for(tiles, 1);
  WITH_FLOAT(t, {
    if (x->dtype == t)
      RUN(x, (turn<T, T>), grid, block, 0, (T *)y, data_of<const T>(x), rows,
          cols, tiles, across);
    else
      RUN(x, (turn<T, float>), grid, block, 0, (T *)y, data_of<const float>(x),
          rows, cols, tiles, across);
  })
}

static Tensor *turned (const Tensor *w, const ConvShape *s) {
  Tensor *y =
      tensor_new(1, &w->numel, (fnn_Dtype)w->dtype, w->storage->device);
  int64_t taps = conv_count(s->size);
  if (conv_is_depthwise(s))
    conv_turn(tensor_data(y), (fnn_Dtype)w->dtype, w, 1, s->cout, taps);
  else
    conv_turn(tensor_data(y), (fnn_Dtype)w->dtype, w, s->cout,
              s->cin / s->groups, taps);
  return y;
}

/* They are kept while nothing is learnt, or not by them.  A recorded step turns
** them each time, for it may be replayed after they were written. */
const void *conv_weights (const Tensor *w, const ConvShape *s) {
  static const char keys[2] = {};
  const void *key = &keys[conv_is_depthwise(s)];
  bool same = !conv_is_depthwise(s) && s->cin == s->groups;
  if (same || conv_count(s->size) == 1) return tensor_data(w);
  Param *p = param_of(w);
  bool stays = p != NULL && (p->frozen || !context()->grad_mode);
  if (!stays || capture_of(w) != NULL) return tensor_data(turned(w, s));
  Tensor *kept = (Tensor *)param_derived(p, key);
  if (kept == NULL) {
    kept = turned(w, s);
    param_derive(p, key, kept);
  }
  return tensor_data(kept);
}

/* }====================================================== */

/* y is channels-last: rows of channels. */
void conv_finish (Tensor *y, const Epilogue *e, int64_t channels) {
  int64_t shape[2] = { y->numel / channels, channels };
  int64_t stride[2] = { channels, 1 };
  product_finish(tensor_view(y, 2, shape, stride, y->offset), e);
}

/* A product for each group: c (m, n) = a (m, k) w (n, k)'. */
static Product product_of (const Tensor *x, const void *w, const ConvShape *s,
                           int64_t k) {
  Product p = {};
  p.n = s->cout / s->groups;
  p.k = k;
  p.batch = s->groups;
  p.a.ld = k * s->groups;
  p.a.step = p.b.ld = k;
  p.b.data = w;
  p.b.step = p.n * k;
  p.b.transposed = true;
  p.ldc = s->cout;
  p.cstep = p.n;
  p.ab = p.dtype = (fnn_Dtype)x->dtype;
  p.alpha = 1;
  return p;
}

static void patch_products (Tensor *y, const Tensor *x, const void *w,
                            const ConvShape *s) {
  Places places = conv_places(s);
  Product p = product_of(x, w, s, s->cin / s->groups * places.taps);
  int64_t size = (int64_t)fnn_dtype_size(p.ab);
  int64_t m = s->n * conv_count(s->out), width = p.a.ld * size;
  int64_t rows = conv_chunk(m, width);
  void *patches = conv_room(x, rows * width);
  p.a.data = patches;
  for (int64_t i = 0; i < m; i += rows) {
    p.m = min64(rows, m - i);
    p.c = (char *)tensor_data(y) + i * s->cout * size;
    conv_lower(patches, x, &places, i, p.m);
    cublas_product(cuda_of(x), &p, "conv");
  }
}

/* Rows of x as they are. */
static void plain_product (Tensor *y, const Tensor *x, const void *w,
                           const ConvShape *s) {
  Product p = product_of(x, w, s, s->cin / s->groups);
  p.m = s->n * conv_count(s->out);
  p.a.data = tensor_data(x);
  p.c = tensor_data(y);
  cublas_product(cuda_of(x), &p, "conv");
}

extern "C" void cuda_conv (Tensor *y, const Tensor *x, const Tensor *w,
                           const Epilogue *e, const ConvShape *s) {
  size_t mark = fnn_mark();
  if (conv_is_depthwise(s)) conv_depthwise(y, x, w, e, s);
  else {
    const void *turned_w = conv_weights(w, s);
    if (conv_is_product(s)) plain_product(y, x, turned_w, s);
    else patch_products(y, x, turned_w, s);
    conv_finish(y, e, s->cout);
  }
  fnn_escape(mark, NULL);
}
