/* nodes.c - all the nodes that some tensors come from, as a list: to draw a
** graph, and to tell what it holds. */

#include "core.h"

/* A node in a list has it in the place of a walk, while the list is made. */
static struct Walk *mark_of (Nodes *list) { return (struct Walk *)list; }

static void unmark (Nodes *list) {
  for (size_t i = 0; i < list->n; i++)
    if (list->node[i]->walk == mark_of(list)) list->node[i]->walk = NULL;
}

static void nodes_destroy (void *o) {
  Nodes *list = o;
  unmark(list); /* a throw left them */
  for (size_t i = 0; i < list->n; i++) fnn_release(list->node[i]);
  mem_free(list->node, list->cap * sizeof *list->node);
}

static const Type nodes_type = { "nodes", nodes_destroy };

/* Those of a walk that is running are left out. */
static void add (Nodes *list, Object *source) {
  if (source == NULL || source->type != &node_type) return;
  Node *n = (Node *)source;
  if (n->walk != NULL) return;
  if (list->n == list->cap) {
    size_t cap = list->cap == 0 ? 64 : 2 * list->cap;
    list->node = mem_grow(list->node, list->cap * sizeof *list->node,
                          cap * sizeof *list->node);
    list->cap = cap;
  }
  list->node[list->n++] = fnn_retain(n);
  n->walk = mark_of(list);
}

Object *graph_source_of (const Tensor *x) { return graph_source(x); }

bool graph_is_param (const Object *source) {
  return source->type == &param_type;
}

Nodes *graph_nodes (int n, Tensor *const *x) {
  Nodes *list = object_new(&nodes_type, sizeof *list);
  for (int i = 0; i < n; i++) add(list, graph_source(x[i]));
  for (size_t k = 0; k < list->n; k++) {
    const Node *node = list->node[k];
    for (int i = 0; i < node->nin; i++) add(list, node->in[i]);
  }
  unmark(list);
  return list;
}
