/* graph.c - nodes, and the walk back that turns them into gradients.
**
** A node is made after its inputs' nodes, so its sequence number is larger:
** taking nodes from a heap, the largest number first, meets every consumer of
** a node before the node.  A node enters the heap with the first gradient that
** reaches it; when it is taken, what it was given is complete.  Nothing is
** counted beforehand and nothing recurses: a chain of 200,000 nodes needs a
** heap of one. */

#include <string.h>

#include "core.h"
#include "ops.h"

/*
** {======================================================
** Nodes
** =======================================================
*/

/* Whether o is a derivative of the host's, which is let go of: what remains is
** the rule of its node, with its name. */
static bool custom_spend (Object *o);

/* Drops what a derivative reads; the node stays, marked spent. */
static void node_spend (Node *n) {
  for (int i = 0; i < n->nsave; i++) {
    fnn_release(n->save[i]);
    n->save[i] = NULL;
  }
  for (int i = 0; i < n->nin; i++) {
    fnn_release(n->in[i]);
    n->in[i] = NULL;
  }
  if (n->held != NULL && !custom_spend(n->held)) {
    fnn_release(n->held);
    n->held = NULL;
  }
  fnn_release(n->hooks); /* what they hold may hold the tensor */
  n->hooks = NULL;
  n->spent = true;
}

static void node_destroy (void *o) {
  Node *n = o;
  node_spend(n);
  fnn_release(n->held);
  fnn_release(n->gy);
  fnn_release(n->origin);
  context_now->nodes--;
}

const Type node_type = { "node", node_destroy };

/* A node and its arrays are one object: header, in, save, version. */
static Node *node_new (int nin, int nsave) {
  size_t in = (size_t)nin * sizeof(Object *);
  size_t save = (size_t)nsave * sizeof(Tensor *);
  size_t version = (size_t)nsave * sizeof(unsigned);
  Node *n = object_new(&node_type, sizeof *n + in + save + version);
  fnn_Context *c = context_now;
  c->nodes++;
  n->sequence = ++c->sequence;
  n->in = (Object **)(n + 1);
  n->save = (Tensor **)((char *)n->in + in);
  n->version = (unsigned *)((char *)n->save + save);
  n->nsave = (uint8_t)nsave;
  return n;
}

Node *graph_record (Tensor *y, const Rule *rule, int n, Tensor *const *x,
                    int nsave) {
  fnn_Context *c = context();
  if (c->watch != 0) watch_op(rule->name, y, n, x);
  if (!c->grad_mode) return NULL;
  bool any = false;
  for (int i = 0; i < n; i++) any = any || graph_source(x[i]) != NULL;
  if (!any) return NULL;
  Node *k = node_new(n, nsave);
  k->rule = rule;
  k->nin = n;
  for (int i = 0; i < n; i++) k->in[i] = fnn_retain(graph_source(x[i]));
  k->dtype = y->dtype;
  k->ndim = y->ndim;
  memcpy(k->shape, y->shape, sizeof k->shape);
  if (c->watch != 0) k->origin = watch_origin();
  y->source = fnn_retain(k);
  return k;
}

bool graph_is_on (const Tensor *x) {
  return context()->grad_mode && graph_source(x) != NULL;
}

void graph_save (Node *n, int k, const Tensor *x) {
  if (x == NULL) return;
  n->save[k] = fnn_retain(tensor_alias(x));
  n->version[k] = x->storage->version;
}

Tensor *graph_saved (Node *n, int k) {
  Tensor *x = n->save[k];
  if (x != NULL && x->storage->version != n->version[k])
    fnn_throw(FNN_EGRAPH,
              "backward: %s needs a tensor of shape %s that an "
              "in-place op has overwritten since",
              n->rule->name, shape_text(x));
  return x;
}

/* What input i's source says of the tensor that it was. */
int graph_shape (const Node *n, int i, const int64_t **shape) {
  const Object *s = n->in[i];
  if (s->type == &param_type) {
    const Param *p = (const Param *)s;
    *shape = p->value->shape;
    return p->value->ndim;
  }
  *shape = ((const Node *)s)->shape;
  return ((const Node *)s)->ndim;
}

fnn_Dtype graph_dtype (const Node *n, int i) {
  const Object *s = n->in[i];
  return (fnn_Dtype)(s->type == &param_type ? ((const Param *)s)->value->dtype
                                            : ((const Node *)s)->dtype);
}

bool fnn_has_graph (const Tensor *x) { return graph_source(x) != NULL; }

bool fnn_grad_mode (bool on) {
  fnn_Context *c = context();
  bool was = c->grad_mode;
  c->grad_mode = on;
  return was;
}

bool fnn_anomaly_mode (bool on) {
  fnn_Context *c = context();
  bool was = c->watch & WATCH_ANOMALY;
  watch_mode(WATCH_ANOMALY, on);
  return was;
}

bool fnn_is_grad_mode (void) { return context()->grad_mode; }

/* }====================================================== */

/*
** {======================================================
** Hooks and ops of the host's own
** =======================================================
*/

typedef struct Hook {
  Object o;
  Object *next;
  fnn_Hook f;
  void (*release)(void *ud);
  void *ud;
} Hook;

static void hook_destroy (void *o) {
  Hook *h = o;
  if (h->release != NULL) h->release(h->ud);
  fnn_release(h->next);
}

static const Type hook_type = { "hook", hook_destroy };

FNN_NORETURN static void throw_spent (const Node *n) {
  fnn_throw(FNN_EGRAPH,
            "backward: the graph of %s was used already and is "
            "freed (keep it with { retain_graph = true })",
            n->rule->name);
}

void fnn_hook (Tensor *x, fnn_Hook f, void (*release)(void *ud), void *ud) {
  Object *s = graph_source(x);
  if (s == NULL)
    fnn_throw(FNN_EGRAPH,
              "hook: no gradient reaches this tensor of shape %s "
              "(it is plain data)",
              shape_text(x));
  if (s->type == &node_type && ((Node *)s)->spent) throw_spent((Node *)s);
  Object **at =
      s->type == &param_type ? &((Param *)s)->hooks : &((Node *)s)->hooks;
  Hook *h = object_new(&hook_type, sizeof *h);
  h->f = f;
  h->release = release;
  h->ud = ud;
  while (*at != NULL) at = &((Hook *)*at)->next;
  *at = fnn_retain(h);
}

/* Passes g through the hooks, first added first. */
static Tensor *through_hooks (Object *hooks, Tensor *g) {
  for (Hook *h = (Hook *)hooks; h != NULL; h = (Hook *)h->next) {
    Tensor *r = h->f(h->ud, g);
    if (r == NULL) continue;
    if (!tensor_same_shape(r, g))
      fnn_throw(FNN_ESHAPE,
                "hook: the gradient has shape %s, what the hook "
                "returned %s",
                shape_text(g), shape_text(r));
    tensor_check_device("hook", g, r);
    g = tensor_alias(tensor_convert(r, (fnn_Dtype)g->dtype));
  }
  return g;
}

/* A derivative that a host or a script wrote. */
typedef struct Custom {
  Object o;
  Rule rule;
  char name[64];
  fnn_Back back;
  void (*release)(void *ud);
  void *ud;
  const fnn_Device *device[]; /* of each input */
} Custom;

static void custom_destroy (void *o) {
  Custom *c = o;
  if (c->release != NULL) c->release(c->ud);
  c->release = NULL;
}

static const Type custom_type = { "function", custom_destroy };

static bool custom_spend (Object *o) {
  if (o->type != &custom_type) return false;
  custom_destroy(o);
  return true;
}

/* Throws if gx, which n made for input i, is not where that is. */
static void check_place (const Node *n, int i, const Tensor *gx,
                         const fnn_Device *d) {
  if (gx->storage->device != d)
    fnn_throw(FNN_EDEVICE,
              "backward: %s gave input %d a gradient on %s (expected %s)",
              n->rule->name, i + 1, gx->storage->device->name, d->name);
}

static void custom_back (Node *n, Tensor *gy) {
  Custom *c = (Custom *)n->held;
  Tensor **gx = mem_scratch((size_t)(n->nin + 1) * sizeof *gx);
  memset(gx, 0, (size_t)n->nin * sizeof *gx);
  c->back(c->ud, gy, gx);
  for (int i = 0; i < n->nin; i++) {
    if (gx[i] == NULL || !graph_wants(n, i)) continue;
    check_place(n, i, gx[i], c->device[i]);
    graph_give(n, i, gx[i]);
  }
}

void fnn_record (Tensor *y, const char *name, int n, Tensor *const *x,
                 fnn_Back back, void (*release)(void *ud), void *ud) {
  if (y->source != NULL)
    fnn_throw(FNN_EGRAPH,
              "record: the result of %s is in a graph already "
              "(detach it)",
              name);
  Custom *c =
      object_new(&custom_type, sizeof *c + (size_t)n * sizeof c->device[0]);
  for (int i = 0; i < n; i++)
    if (x[i] != NULL) c->device[i] = x[i]->storage->device;
  strncpy(c->name, name, sizeof c->name - 1);
  c->rule = (Rule){ c->name, custom_back };
  c->back = back;
  Node *k = graph_record(y, &c->rule, n, x, 0);
  c->release = release; /* not before: a throw leaves ud to the caller */
  c->ud = ud;
  if (k != NULL) k->held = fnn_retain(c);
}

/* }====================================================== */

/*
** {======================================================
** The walk
** =======================================================
*/

/* A Param with hooks, and what the walk has for it so far. */
typedef struct Leaf {
  Param *p;
  Tensor *g;
} Leaf;

/* The nodes that hold a gradient and wait, and the Params whose hooks do.
** Owns a reference to each. */
typedef struct Walk {
  Object o;
  struct Walk *outer; /* of the walk that this one runs inside */
  Node **heap;
  size_t n, cap;
  Node *now; /* being visited */
  Leaf *leaves;
  size_t nleaves, leafcap;
  bool collects; /* for fnn_grad: else every Param takes its own */
  fnn_Param *const *want;
  Tensor **got; /* their gradients so far: nwant references */
  int nwant;
} Walk;

static void walk_destroy (void *o) {
  Walk *w = o;
  for (size_t i = 0; i < w->n; i++) { /* a throw left these behind */
    Node *n = w->heap[i];
    fnn_release(n->gy);
    n->gy = NULL;
    n->walk = NULL;
    fnn_release(n);
  }
  for (size_t i = 0; i < w->nleaves; i++) {
    fnn_release(w->leaves[i].p);
    fnn_release(w->leaves[i].g);
  }
  mem_free(w->leaves, w->leafcap * sizeof *w->leaves);
  mem_free(w->heap, w->cap * sizeof *w->heap);
  for (int i = 0; i < w->nwant; i++) fnn_release(w->got[i]);
  mem_free(w->got, (size_t)w->nwant * sizeof *w->got);
  if (w->now != NULL) {
    fnn_release(w->now->gy);
    w->now->gy = NULL;
    w->now->walk = NULL;
  }
  fnn_release(w->now);
  if (context_now->walk == w) context_now->walk = w->outer;
}

static const Type walk_type = { "walk", walk_destroy };

/* A walk keeps what it knows of a node in the node: a hook or a derivative may
** start another walk, but not through nodes that this one has not left. */
static void check_free (const Walk *w, const Node *n) {
  if (n->walk != NULL && n->walk != w)
    fnn_throw(FNN_EGRAPH,
              "backward: %s is part of a backward that is running: a hook or "
              "derivative cannot go through its own graph",
              n->rule->name);
}

/* Comes before n gets its gradient: what is in the heap is emptied when a
** throw ends the walk, and no later one finds a part of a gradient in n. */
static void push (Walk *w, Node *n) {
  if (n->walk != NULL) return;
  if (w->n == w->cap) {
    size_t cap = w->cap == 0 ? 64 : 2 * w->cap;
    w->heap =
        mem_grow(w->heap, w->cap * sizeof *w->heap, cap * sizeof *w->heap);
    w->cap = cap;
  }
  size_t i = w->n++;
  for (; i > 0 && w->heap[(i - 1) / 2]->sequence < n->sequence;
       i = (i - 1) / 2)
    w->heap[i] = w->heap[(i - 1) / 2];
  w->heap[i] = fnn_retain(n);
  n->walk = w;
}

/* The latest node; its reference becomes the caller's. */
static Node *pop (Walk *w) {
  Node *top = w->heap[0], *last = w->heap[--w->n];
  size_t i = 0;
  for (size_t k; (k = 2 * i + 1) < w->n; i = k) {
    if (k + 1 < w->n && w->heap[k + 1]->sequence > w->heap[k]->sequence) k++;
    if (w->heap[k]->sequence <= last->sequence) break;
    w->heap[i] = w->heap[k];
  }
  w->heap[i] = last;
  return top;
}

/* a + b for two gradients of one shape.  a is written when nobody else can
** see it. */
static Tensor *sum (Tensor *a, Tensor *b) {
  bool mine = a->o.refs == 1 && a->storage->refs == 1 &&
              (tensor_is_dense(a) || tensor_is_channels_last(a)) &&
              !a->storage->wrapped;
  Tensor *y = mine ? a : like_in_order(a, (fnn_Dtype)a->dtype);
  kernel(y, zip)(ZIP_add, y, a, b);
  return y;
}

/* g in the dtype and place of x: a hook may have moved the Param that both
** are of. */
static Tensor *beside (const Tensor *x, Tensor *g) {
  return tensor_move(tensor_convert(g, (fnn_Dtype)x->dtype),
                     x->storage->device);
}

/* Adds g to the gradient at *to. */
static void accumulate (Tensor **to, Tensor *g) {
  Tensor *y = *to == NULL ? g : sum(*to, beside(*to, g));
  if (y == *to) return;
  fnn_retain(y);
  fnn_release(*to);
  *to = y;
}

/* Sums x over its dims in places first .. last, which go. */
static Tensor *sum_run (Tensor *x, int first, int last) {
  x = tensor_dense(x);
  int64_t outer = 1, n = 1, inner = 1, shape[FNN_MAXDIM];
  int ndim = 0;
  for (int i = 0; i < x->ndim; i++) {
    if (i < first) outer *= x->shape[i];
    else if (i <= last) n *= x->shape[i];
    else inner *= x->shape[i];
    if (i < first || i > last) shape[ndim++] = x->shape[i];
  }
  Tensor *y = tensor_new(ndim, shape, (fnn_Dtype)x->dtype, x->storage->device);
  kernel(y, reduce)(REDUCE_sum, y, x, outer, n, inner, 0);
  return y;
}

/* Whether each channel of g, in channels-last order, is one number of the
** shape: a bias, or a slope. */
static bool sums_channels (const Tensor *g, int ndim, const int64_t *shape) {
  int lead = g->ndim - ndim;
  if (lead > 1 || !tensor_is_channels_last(g)) return false;
  for (int i = lead; i < g->ndim; i++)
    if (shape[i - lead] != (i == 1 ? g->shape[1] : 1)) return false;
  return true;
}

/* g summed over the dims along which an input of this shape was stretched;
** runs of them at a time, the last run first. */
static Tensor *sum_to_shape (Tensor *g, int ndim, const int64_t *shape) {
  int lead = g->ndim - ndim;
  if (sums_channels(g, ndim, shape)) {
    int64_t n = g->shape[1], rows = n > 0 ? g->numel / n : 0;
    Tensor *y =
        tensor_new(ndim, shape, (fnn_Dtype)g->dtype, g->storage->device);
    kernel(y, reduce)(REDUCE_sum, y, g, 1, rows, n, 0);
    return y;
  }
  for (int i = g->ndim - 1; i >= 0; i--) {
    if (i >= lead && (shape[i - lead] != 1 || g->shape[i] == 1)) continue;
    int last = i;
    while (i > 0 && (i - 1 < lead ||
                     (shape[i - 1 - lead] == 1 && g->shape[i - 1] != 1)))
      i--;
    g = sum_run(g, i, last);
  }
  if (g->ndim == ndim && memcmp(g->shape, shape, (size_t)ndim * 8) == 0)
    return g;
  int64_t stride[FNN_MAXDIM]; /* the summed dims come back with size 1 */
  g = tensor_dense(g);
  shape_strides(ndim, shape, stride);
  return tensor_view(g, ndim, shape, stride, g->offset);
}

static bool stretches (const Tensor *g, int ndim, const int64_t *shape) {
  int lead = g->ndim - ndim;
  if (lead < 0) return false;
  for (int i = 0; i < ndim; i++)
    if (shape[i] != 1 && shape[i] != g->shape[lead + i]) return false;
  return true;
}

/* Adds g to the gradient of a Param at *to.  The first is a copy if others
** see it, for it will be written in place. */
static void collect (Tensor **to, Tensor *g) {
  bool shared = g->o.refs > 1 || g->storage->refs > 1;
  if (*to == NULL && (shared || !tensor_is_dense(g))) {
    Tensor *copy = tensor_like(g);
    kernel(copy, copy)(copy, g);
    g = copy;
  }
  accumulate(to, g);
}

/* The gradient g of a leaf. */
static void give_leaf (Walk *w, Param *p, Tensor *g) {
  g = beside(p->value, g);
  if (!w->collects) collect(&p->grad, g);
  for (int i = 0; i < w->nwant; i++)
    if (w->want[i] == p) collect(&w->got[i], g);
}

/* Keeps g for a Param with hooks: they see the sum of what reaches it. */
static void defer (Walk *w, Param *p, Tensor *g) {
  size_t i = 0;
  while (i < w->nleaves && w->leaves[i].p != p) i++;
  if (i == w->nleaves) {
    if (i == w->leafcap) {
      size_t cap = i == 0 ? 8 : 2 * i;
      w->leaves =
          mem_grow(w->leaves, i * sizeof *w->leaves, cap * sizeof *w->leaves);
      w->leafcap = cap;
    }
    w->leaves[w->nleaves++] = (Leaf){ fnn_retain(p), NULL };
  }
  accumulate(&w->leaves[i].g, g);
}

/* A Param frozen since takes none. */
static void give_param (Walk *w, Param *p, Tensor *g) {
  if (p->frozen) return;
  if (p->hooks != NULL) defer(w, p, g);
  else give_leaf(w, p, g);
}

static void give_leaves (Walk *w) {
  for (size_t i = 0; i < w->nleaves; i++) {
    size_t m = fnn_mark();
    Param *p = w->leaves[i].p;
    frame_room(1);
    Tensor *g = frame_adopt(w->leaves[i].g);
    w->leaves[i].g = NULL; /* before a hook may throw */
    give_leaf(w, p, through_hooks(p->hooks, g));
    fnn_escape(m, NULL);
  }
}

void graph_give (Node *n, int i, Tensor *gx) {
  Object *s = n->in[i];
  if (s == NULL) return;
  size_t m = fnn_mark();
  const int64_t *shape;
  int ndim = graph_shape(n, i, &shape);
  if (!stretches(gx, ndim, shape))
    fnn_throw(FNN_ESHAPE,
              "backward: %s gave input %d a gradient of shape %s "
              "(expected %s)",
              n->rule->name, i + 1, shape_text(gx),
              shape_print(&(ShapeText){ "" }, ndim, shape));
  Tensor *g = sum_to_shape(gx, ndim, shape);
  g = tensor_convert(g, graph_dtype(n, i));
  if (context_now->watch != 0) watch_gradient(n, i, g);
  Walk *w = context_now->walk;
  if (s->type == &param_type) {
    Param *p = (Param *)s;
    check_place(n, i, g, p->value->storage->device); /* or it moved since */
    give_param(w, p, g);
  } else {
    check_free(w, (Node *)s);
    push(w, (Node *)s);
    accumulate(&((Node *)s)->gy, g);
  }
  fnn_escape(m, NULL);
}

static void visit (Node *n, bool keep) {
  if (n->spent) throw_spent(n);
  if (n->rule->back == NULL)
    fnn_throw(FNN_EGRAPH, "backward: %s has no derivative", n->rule->name);
  frame_room(1);
  Tensor *gy = frame_adopt(n->gy);
  n->gy = NULL;
  if (n->hooks != NULL) gy = through_hooks(n->hooks, gy);
  if (context_now->watch != 0) watch_visit(n, gy);
  n->rule->back(n, gy);
  if (context_now->watch != 0) watch_visited(n);
  if (!keep) node_spend(n);
}

/* A walk that gives each Param its own gradient, or one that collects those
** of the n in want. */
static Walk *walk_new (bool collects, int n, fnn_Param *const *want) {
  fnn_Context *c = context();
  Walk *w = object_new(&walk_type, sizeof *w);
  w->outer = c->walk;
  c->walk = w;
  if (n > 0) {
    w->got = mem_new((size_t)n * sizeof *w->got);
    memset(w->got, 0, (size_t)n * sizeof *w->got);
    w->nwant = n;
  }
  w->collects = collects;
  w->want = want;
  return w;
}

static void walk (Walk *w, Tensor *x, Tensor *gy, bool keep) {
  Object *s = graph_source(x);
  if (s == NULL)
    fnn_throw(FNN_EGRAPH,
              "backward: nothing to differentiate: the tensor of "
              "shape %s depends on no trainable parameter (gradients are "
              "plain data: there are no second derivatives)",
              shape_text(x));
  if (gy == NULL) {
    if (x->numel != 1)
      fnn_throw(FNN_ESHAPE,
                "backward: without a gradient the tensor must "
                "have one element (got shape %s)",
                shape_text(x));
    gy = tensor_like(x);
    kernel(gy, fill)(gy, 1);
  } else if (!tensor_same_shape(x, gy))
    fnn_throw(FNN_ESHAPE,
              "backward: the tensor has shape %s, the gradient "
              "%s",
              shape_text(x), shape_text(gy));
  tensor_check_device("backward", x, gy);
  gy = tensor_alias(tensor_convert(gy, (fnn_Dtype)x->dtype));
  bool mode = fnn_grad_mode(false);
  fnn_Dtype products = fnn_autocast(FNN_F32); /* derivatives know theirs */
  if (s->type == &param_type) give_param(w, (Param *)s, gy);
  else {
    check_free(w, (Node *)s);
    push(w, (Node *)s);
    accumulate(&((Node *)s)->gy, gy);
  }
  while (w->n > 0) {
    size_t m = fnn_mark();
    w->now = pop(w);
    visit(w->now, keep);
    w->now->walk = NULL;
    fnn_release(w->now);
    w->now = NULL;
    fnn_escape(m, NULL);
    fnn_poll();
  }
  give_leaves(w);
  context_now->walk = w->outer;
  fnn_grad_mode(mode);
  fnn_autocast(products);
}

void fnn_backward (Tensor *x, Tensor *gy, bool keep) {
  size_t m = fnn_mark();
  walk(walk_new(false, 0, NULL), x, gy, keep);
  fnn_escape(m, NULL);
}

/* The walk stays in the frame and owns what it returns. */
void fnn_grad (Tensor *x, Tensor *gy, int n, fnn_Param *const *p, Tensor **g,
               bool keep) {
  Walk *w = walk_new(true, n, p);
  walk(w, x, gy, keep);
  for (int i = 0; i < n; i++) g[i] = w->got[i];
}

/* }====================================================== */
