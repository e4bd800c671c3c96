/* winograd_conv.c - the convolutions that transformed tiles compute faster, and
** the packed weights kept for them. */

#include "conv.h"
#include "winograd.h"

#ifdef CPU_ANY

/* Rows and columns of one image, 3 by 3, each place by itself. */
static bool is_ours (const ConvShape *s) {
  bool flat = s->in[0] == 1 && s->out[0] == 1 && s->size[0] == 1 &&
              s->before[0] == 0 && s->groups == 1;
  for (int d = 1; d < 3; d++)
    flat = flat && s->size[d] == 3 && s->stride[d] == 1 && s->dilation[d] == 1;
  return flat && !context()->exact_convolution;
}

/* back: the convolution that makes the gradient of the input. */
static Winograd shape_of (const ConvShape *s, bool back) {
  Winograd g = { .n = s->n, .alpha = 1, .act = -1 };
  const int64_t *in = back ? s->out : s->in, *out = back ? s->in : s->out;
  g.c = back ? s->cout : s->cin;
  g.k = back ? s->cin : s->cout;
  g.h = in[1];
  g.w = in[2];
  g.oh = out[1];
  g.ow = out[2];
  g.top = back ? 2 - s->before[1] : s->before[1];
  g.left = back ? 2 - s->before[2] : s->before[2];
  return g;
}

/* A weight and what its packed copy is for. */
typedef struct Pack {
  const Winograd *g;
  const real *w;
  bool back;
  Param *of;
  Tensor *blob; /* what pack_kept makes */
} Pack;

/* What tells the copies of a weight apart. */
static const void *key_of (const Pack *p) {
  static const char keys[2][2];
  return &keys[p->back][p->g->side == 4];
}

static void pack_kept (void *ud) {
  Pack *p = ud;
  int64_t size = (int64_t)CPU(winograd_size)(p->g->side, p->g->c, p->g->k);
  p->blob = tensor_new(1, &size, FNN_U8, p->of->value->storage->device);
  CPU(winograd_pack)
  (p->g->side, p->g->c, p->g->k, p->w, p->back, tensor_data(p->blob));
  param_derive(p->of, key_of(p), p->blob);
  fnn_retain(p->blob);
}

/* The weights packed and kept, made where they are not there.  NULL: no memory
** to keep them. */
static const void *kept (Pack *p) {
  p->blob = param_derived(p->of, key_of(p));
  if (p->blob == NULL) {
    frame_room(1);
    fnn_Status status = fnn_pcall(pack_kept, p);
    if (status == FNN_EMEMORY) return NULL;
    if (status != FNN_OK) fnn_throw(status, "%s", fnn_message());
    frame_adopt(p->blob);
  }
  return tensor_data(p->blob);
}

/* The Param of a weight that stays as it is for a while: nothing is learnt
** now, or not by it. */
static Param *keeper (const Tensor *w) {
  Param *p = param_of(w);
  return p != NULL && (p->frozen || !context()->grad_mode) ? p : NULL;
}

bool CPU (conv_winograd)(Tensor *y, const Tensor *x, const Tensor *w,
                         const Epilogue *e, const ConvShape *s, bool back) {
  if (!is_ours(s)) return false;
  size_t mark = fnn_mark();
  Winograd g = shape_of(s, back);
  Pack p = { .g = &g, .w = tensor_data(w), .back = back, .of = keeper(w) };
  g.side = CPU(winograd_choice)(&g, p.of != NULL);
  if (g.side == 0) return false;
  g.x = tensor_data(x);
  g.y = tensor_data(y);
  g.bias = e->bias != NULL ? tensor_data(e->bias) : NULL;
  g.add = e->accumulate ? g.y : NULL;
  g.alpha = (real)e->alpha;
  g.act = e->act;
  const void *weights = p.of != NULL ? kept(&p) : NULL;
  if (weights != NULL) CPU(winograd)(&g, weights);
  else CPU(winograd_once)(&g, p.w, back);
  fnn_escape(mark, NULL);
  return true;
}

bool CPU (conv_winograd_weight)(Tensor *gw, const Tensor *gy, const Tensor *x,
                                const ConvShape *s) {
  if (!is_ours(s)) return false;
  Winograd g = shape_of(s, false);
  g.side = CPU(winograd_weight_choice)(&g);
  if (g.side == 0) return false;
  g.x = tensor_data(x);
  CPU(winograd_weight)(&g, tensor_data(gy), tensor_data(gw));
  return true;
}

#endif
