/* module.c - what all modules do, over the parts that each has named. */

#include <stdio.h>
#include <string.h>

#include "nn.h"

static const Class *class_of (const fnn_Module *m) {
  return (const Class *)m->o.type;
}

/*
** {======================================================
** Making and destroying
** =======================================================
*/

void *module_new (const Class *class, size_t size) {
  fnn_Module *m = object_new(&class->type, size);
  m->training = true;
  return m;
}

void module_destroy (void *o) {
  fnn_Module *m = o;
  for (int i = 0; i < m->count; i++) switch (m->members[i].kind) {
      case MEMBER_PARAM: fnn_release(*m->members[i].at.param); break;
      case MEMBER_BUFFER: fnn_release(*m->members[i].at.buffer); break;
      case MEMBER_CHILD: fnn_release(*m->members[i].at.child); break;
    }
  mem_free(m->members, (size_t)m->capacity * sizeof *m->members);
}

/* A new member, whose place is not known yet; counted once it is. */
static Member *member_new (fnn_Module *m, MemberKind kind, const char *name) {
  if (m->count == m->capacity) {
    int capacity = m->capacity == 0 ? 2 : 2 * m->capacity;
    m->members = mem_grow(m->members, (size_t)m->capacity * sizeof *m->members,
                          (size_t)capacity * sizeof *m->members);
    m->capacity = capacity;
  }
  Member *e = &m->members[m->count];
  e->kind = kind;
  snprintf(e->name, sizeof e->name, "%s", name);
  return e;
}

void module_param (fnn_Module *m, const char *name, fnn_Param **at,
                   Tensor *x) {
  member_new(m, MEMBER_PARAM, name)->at.param = at;
  m->count++;
  if (x != NULL) *at = fnn_retain(fnn_param(x));
}

void module_buffer (fnn_Module *m, const char *name, Tensor **at, Tensor *x) {
  member_new(m, MEMBER_BUFFER, name)->at.buffer = at;
  m->count++;
  *at = fnn_retain(x);
}

void module_child (fnn_Module *m, const char *name, fnn_Module **at,
                   fnn_Module *child) {
  member_new(m, MEMBER_CHILD, name)->at.child = at;
  m->count++;
  *at = fnn_retain(child);
}

static const Class plain = { { "Module", module_destroy }, NULL, NULL };

fnn_Module *module_plain (void) {
  return module_new(&plain, sizeof(fnn_Module));
}

/* }====================================================== */

Tensor *fnn_forward (fnn_Module *m, Tensor *x) {
  if (class_of(m)->forward == NULL)
    fnn_throw(FNN_EARG,
              "%s: a module without a function (was the init of its parent "
              "called?)",
              fnn_module_class(m));
  return class_of(m)->forward(m, x);
}

const char *fnn_module_class (const fnn_Module *m) { return m->o.type->name; }

void fnn_module_text (const fnn_Module *m, char *to, size_t size) {
  if (size > 0) *to = '\0';
  if (class_of(m)->text != NULL) class_of(m)->text(m, to, size);
}

void fnn_train (fnn_Module *m, bool on) {
  m->training = on;
  for (int i = 0; i < m->count; i++) {
    const Member *e = &m->members[i];
    if (e->kind == MEMBER_CHILD && *e->at.child != NULL)
      fnn_train(*e->at.child, on);
  }
}

bool fnn_is_training (const fnn_Module *m) { return m->training; }

/*
** {======================================================
** Parts
** =======================================================
*/

bool fnn_member (const fnn_Module *m, int i, fnn_Member *to) {
  if (i < 0 || i >= m->count) return false;
  const Member *e = &m->members[i];
  *to = (fnn_Member){ .name = e->name };
  switch (e->kind) {
    case MEMBER_PARAM: to->param = *e->at.param; break;
    case MEMBER_BUFFER: to->buffer = *e->at.buffer; break;
    case MEMBER_CHILD: to->child = *e->at.child; break;
  }
  return true;
}

static Member *member_find (fnn_Module *m, const char *name, MemberKind kind,
                            const char *what) {
  for (int i = 0; i < m->count; i++) {
    Member *e = &m->members[i];
    if (strcmp(e->name, name) != 0) continue;
    if (e->kind != kind)
      fnn_throw(FNN_EARG, "%s.%s is no %s", fnn_module_class(m), name, what);
    return e;
  }
  fnn_throw(FNN_EARG, "%s has no part '%s'", fnn_module_class(m), name);
}

static void check_shape (const fnn_Module *m, const char *name,
                         const Tensor *is, const Tensor *x) {
  if (is != NULL && x != NULL && !tensor_same_shape(is, x))
    fnn_throw(FNN_ESHAPE, "%s.%s: expected shape %s, got %s",
              fnn_module_class(m), name, shape_text(is), shape_text(x));
}

void fnn_member_param (fnn_Module *m, const char *name, fnn_Param *p) {
  fnn_Param **at = member_find(m, name, MEMBER_PARAM, "Param")->at.param;
  if (*at != NULL && p != NULL)
    check_shape(m, name, fnn_value(*at), fnn_value(p));
  fnn_retain(p);
  fnn_release(*at);
  *at = p;
}

void fnn_member_buffer (fnn_Module *m, const char *name, Tensor *x) {
  Tensor **at = member_find(m, name, MEMBER_BUFFER, "buffer")->at.buffer;
  check_shape(m, name, *at, x);
  fnn_retain(x);
  fnn_release(*at);
  *at = x;
}

static void add_parameter (fnn_Param *p, fnn_Param **to, int max, int *n) {
  for (int i = 0; i < *n && i < max; i++)
    if (to[i] == p) return;
  if (*n < max) to[*n] = p;
  ++*n;
}

static void add_parameters (const fnn_Module *m, fnn_Param **to, int max,
                            int *n) {
  for (int i = 0; i < m->count; i++) {
    const Member *e = &m->members[i];
    if (e->kind == MEMBER_PARAM && *e->at.param != NULL)
      add_parameter(*e->at.param, to, max, n);
    else if (e->kind == MEMBER_CHILD && *e->at.child != NULL)
      add_parameters(*e->at.child, to, max, n);
  }
}

int fnn_parameters (const fnn_Module *m, fnn_Param **to, int max) {
  int n = 0;
  add_parameters(m, to, max, &n);
  return n;
}

static Tensor *moved (Tensor *x, const fnn_Device *d, fnn_Dtype t) {
  return fnn_to_device(tensor_is_float(x) ? fnn_cast(x, t) : x, d);
}

void fnn_module_to (fnn_Module *m, const fnn_Device *d, fnn_Dtype t) {
  for (int i = 0; i < m->count; i++) {
    Member *e = &m->members[i];
    if (e->kind == MEMBER_PARAM && *e->at.param != NULL)
      fnn_param_to(*e->at.param, d, t);
    else if (e->kind == MEMBER_BUFFER && *e->at.buffer != NULL)
      fnn_member_buffer(m, e->name, moved(*e->at.buffer, d, t));
    else if (e->kind == MEMBER_CHILD && *e->at.child != NULL)
      fnn_module_to(*e->at.child, d, t);
  }
}

/* }====================================================== */
