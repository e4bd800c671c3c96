/* anomaly.c - where the first number comes from that is not finite.
**
** A result that has one is the op's own, if all that it was made of is finite:
** made here.  Else it came in.  That may be meant for -inf, which masks are
** made of: it may come in and go out again, and may be filled in; but what is
** NaN because of it was made here.
**
** The kernels that look are no part of what is looked at. */

#include <stdio.h>
#include <string.h>

#include "core.h"
#include "ops.h"

/* How many of what there are, and the place of the first, or -1. */
typedef struct Faults {
  int64_t nan, high, low; /* high: inf, low: -inf */
  int64_t first;
} Faults;

typedef struct Text {
  char s[160];
} Text;

/* What there is to say of an input, which may be gone by then. */
typedef struct Input {
  Faults f;
  ShapeText shape;
  Text first;
} Input;

/* A tensor that an op was going to write, and what its operands were; and
** those that it noted after it. */
struct Written {
  Object o;
  Written *next;
  const char *op;
  Tensor *x;
  int n;
  Input in[2];
};

static int64_t faulty (Faults f) { return f.nan + f.high + f.low; }

static bool is_finite (const Tensor *x) {
  Tensor *is = tensor_like_as(x, FNN_BOOL);
  Tensor *all = tensor_scalar(0, FNN_BOOL, x->storage->device);
  kernel(x, map)(MAP_isfinite, is, x, 0, 0);
  kernel(is, reduce)(REDUCE_all, all, is, 1, is->numel, 1, 0);
  return fnn_item(all) != 0;
}

static Faults count (const Tensor *x) {
  Faults f = { 0, 0, 0, -1 };
  x = tensor_move(tensor_dense(x), device_cpu());
  const void *data = tensor_data(x);
  for (int64_t i = 0; i < x->numel; i++) {
    double v = dtype_get((fnn_Dtype)x->dtype, data, i);
    if (v - v == 0) continue;
    if (f.first < 0) f.first = i;
    if (v != v) f.nan++;
    else if (v > 0) f.high++;
    else f.low++;
  }
  return f;
}

/* Of a step that is being recorded nothing can be seen. */
static Faults faults_of (const Tensor *x) {
  fnn_Context *c = context_now;
  Faults f = { 0, 0, 0, -1 };
  if (!tensor_is_float(x) || x->numel == 0 || c->capture != NULL) return f;
  size_t m = fnn_mark();
  uint8_t watch = c->watch;
  c->watch = 0;
  fnn_Dtype t = (fnn_Dtype)x->dtype;
  bool computes = dtype_is_compute(t) || !x->storage->device->host;
  const Tensor *y = computes ? x : tensor_convert(x, FNN_F32);
  if (!is_finite(y)) f = count(y);
  c->watch = watch;
  fnn_escape(m, NULL);
  return f;
}

/*
** {======================================================
** Text
** =======================================================
*/

/* "2 nan and 1 inf" */
static const char *faults_text (Text *to, Faults f) {
  const struct {
    const char *name;
    int64_t n;
  } kinds[] = { { "nan", f.nan }, { "inf", f.high }, { "-inf", f.low } };
  size_t k = 0;
  to->s[0] = '\0';
  for (int i = 0; i < countof(kinds); i++)
    if (kinds[i].n > 0)
      k += (size_t)snprintf(to->s + k, sizeof to->s - k, "%s%lld %s",
                            k > 0 ? " and " : "", (long long)kinds[i].n,
                            kinds[i].name);
  return to->s;
}

/* "; first at [1][2]" of a tensor of this shape; "" of one element. */
static const char *first_text (Text *to, Faults f, const Tensor *x) {
  int64_t stride[FNN_MAXDIM], at = f.first;
  to->s[0] = '\0';
  if (x->ndim == 0) return to->s;
  shape_strides(x->ndim, x->shape, stride);
  size_t k = (size_t)snprintf(to->s, sizeof to->s, "; first at ");
  for (int i = 0; i < x->ndim; i++) {
    k += (size_t)snprintf(to->s + k, sizeof to->s - k, "[%lld]",
                          (long long)(at / stride[i] + 1));
    at %= stride[i];
  }
  return to->s;
}

#define FAULTS(f) (faults_text(&(Text){ "" }, f))
#define FIRST(f, x) (first_text(&(Text){ "" }, f, x))

/* "(3, 4) and (4)" of the n inputs. */
static const char *shapes_text (Text *to, int n, const Input *in) {
  size_t k = 0;
  to->s[0] = '\0';
  for (int i = 0; i < n && k < sizeof to->s - 1; i++)
    k += (size_t)snprintf(to->s + k, sizeof to->s - k, "%s%s",
                          i == 0       ? ""
                          : i == n - 1 ? " and "
                                       : ", ",
                          in[i].shape.s);
  return to->s;
}

/* }====================================================== */

/*
** {======================================================
** Results
** =======================================================
*/

static Input input_of (const Tensor *x) {
  Input in = { .f = faults_of(x) };
  shape_print(&in.shape, x->ndim, x->shape);
  if (in.f.first >= 0) first_text(&in.first, in.f, x);
  return in;
}

/* Ops that write what the script says, which is a mask's. */
static bool fills (const char *op) {
  static const char *const names[] = { "fill_",        "masked_fill",
                                       "masked_fill_", "assignment",
                                       "where",        "copy_" };
  for (int i = 0; i < countof(names); i++)
    if (strcmp(op, names[i]) == 0) return true;
  return false;
}

/* Throws for what y, which has faults, was made of. */
static void judge (const char *op, const char *how, const Tensor *y,
                   Faults out, int n, const Input *in) {
  int low = -1;
  for (int i = 0; i < n; i++) {
    Faults f = in[i].f;
    if (f.nan + f.high > 0)
      fnn_throw(FNN_EGRAPH, "anomaly: %s%s: input %d, %s, has %s%s", op, how,
                i + 1, in[i].shape.s, FAULTS(f), in[i].first.s);
    if (f.low > 0 && low < 0) low = i;
  }
  bool mask = out.nan + out.high == 0;
  if (out.nan == 0 && fills(op)) return;
  if (low >= 0 && mask) return;
  if (low >= 0)
    fnn_throw(FNN_EGRAPH,
              "anomaly: %s%s made %s in its result %s%s; input %d, %s, has %s",
              op, how, FAULTS(out), shape_text(y), FIRST(out, y), low + 1,
              in[low].shape.s, FAULTS(in[low].f));
  fnn_throw(FNN_EGRAPH,
            "anomaly: %s%s made %s in its result %s%s; what came in, %s, is "
            "finite",
            op, how, FAULTS(out), shape_text(y), FIRST(out, y),
            n > 0 ? shapes_text(&(Text){ "" }, n, in) : "a number");
}

enum { INPUTS_MAX = 8 };

void anomaly_op (const char *op, Tensor *y, int n, Tensor *const *x) {
  Faults out = faults_of(y);
  Input in[INPUTS_MAX];
  if (faulty(out) == 0) return;
  if (n > INPUTS_MAX) n = INPUTS_MAX;
  for (int i = 0; i < n; i++) in[i] = input_of(x[i]);
  judge(op, "", y, out, n, in);
}

static void written_destroy (void *o) {
  Written *w = o;
  fnn_release(w->x);
  fnn_release(w->next);
}

static const Type written_type = { "written", written_destroy };

void anomaly_write (Written **at, const char *op, const Tensor *x,
                    const Tensor *other) {
  for (; *at != NULL; at = &(*at)->next)
    if ((*at)->x->storage == x->storage) return; /* noted before */
  size_t m = fnn_mark();
  Written *w = object_new(&written_type, sizeof *w);
  w->op = op;
  w->x = fnn_retain(tensor_alias(x));
  w->in[w->n++] = input_of(x);
  if (other != NULL) w->in[w->n++] = input_of(other);
  *at = fnn_retain(w);
  fnn_escape(m, NULL);
}

void anomaly_drop (Written **at) {
  Written *w = *at;
  *at = NULL;
  fnn_release(w);
}

void anomaly_settle (Written **at) {
  Written *w = *at;
  if (w == NULL) return;
  frame_room(1);
  frame_adopt(w);
  *at = NULL;
  for (; w != NULL; w = w->next) {
    Faults out = faults_of(w->x);
    if (faulty(out) != 0) judge(w->op, " (in place)", w->x, out, w->n, w->in);
  }
}

/* }====================================================== */

/*
** {======================================================
** Gradients
** =======================================================
*/

void anomaly_visit (const Node *n, Tensor *gy) {
  Faults f = faults_of(gy);
  if (faulty(f) == 0) return;
  fnn_throw(FNN_EGRAPH,
            "anomaly: the gradient that reaches %s, %s, has %s%s: it comes "
            "from a hook, the script or a sum%s%s",
            n->rule->name, shape_text(gy), FAULTS(f), FIRST(f, gy),
            *watch_where(n) != '\0' ? "; the op was called" : "",
            watch_where(n));
}

void anomaly_gradient (const Node *n, int i, Tensor *g) {
  Faults f = faults_of(g);
  if (faulty(f) == 0) return;
  const char *kind = f.nan > 0 ? "nan" : "inf";
  fnn_throw(FNN_EGRAPH,
            "anomaly: %s produced %s in the gradient for input %d, %s: %s%s%s"
            "%s",
            n->rule->name, kind, i + 1, shape_text(g), FAULTS(f), FIRST(f, g),
            *watch_where(n) != '\0' ? "; the op was called" : "",
            watch_where(n));
}

/* }====================================================== */
