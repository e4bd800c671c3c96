/* object.c - headers of objects: their memory, and counts of references.
**
** Small objects are recycled through lists by size, so that a tensor's header
** costs a few nanoseconds; up to SPARE_MAX bytes wait there.  Destruction is
** iterative: what an object releases while it is destroyed waits in a list, so
** that freeing a chain of 200,000 nodes takes no stack. */

#include <string.h>

#include "core.h"

enum { SMALL_STEP = 32 };

static size_t small_class (size_t size) {
  return (size + SMALL_STEP - 1) / SMALL_STEP;
}

void *object_alloc (fnn_Context *c, size_t size) {
  size_t k = small_class(size);
  Object *o = k < SMALL_CLASSES ? c->small[k] : NULL;
  if (o != NULL) {
    c->small[k] = o->next;
    c->spare -= k * SMALL_STEP;
  } else o = mem_new(k * SMALL_STEP);
  memset(o, 0, size);
  o->size = (unsigned)size;
  c->objects++;
  c->object_bytes += k * SMALL_STEP;
  return o;
}

static void object_free (fnn_Context *c, Object *o) {
  size_t k = small_class(o->size);
  c->objects--;
  c->object_bytes -= k * SMALL_STEP;
  if (k < SMALL_CLASSES && c->spare < SPARE_MAX && !mem_checking()) {
    o->next = c->small[k];
    c->small[k] = o;
    c->spare += k * SMALL_STEP;
  } else mem_free(o, k * SMALL_STEP);
}

void object_free_lists (fnn_Context *c) {
  for (size_t k = 0; k < SMALL_CLASSES; k++)
    while (c->small[k] != NULL) {
      Object *o = c->small[k];
      c->small[k] = o->next;
      mem_free(o, k * SMALL_STEP);
    }
  c->spare = 0;
}

void *fnn_retain (void *p) {
  Object *o = p;
  if (o != NULL) o->refs++;
  return o;
}

void fnn_release (void *p) {
  Object *o = p;
  if (o == NULL || --o->refs > 0) return;
  fnn_Context *c = context();
  if (c->destroying) {
    o->next = c->dead;
    c->dead = o;
    return;
  }
  c->destroying = true;
  while (o != NULL) {
    if (o->type->destroy != NULL) o->type->destroy(o);
    object_free(c, o);
    o = c->dead;
    if (o != NULL) c->dead = o->next;
  }
  c->destroying = false;
}
