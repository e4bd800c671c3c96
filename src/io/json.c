/* json.c - JSON, by jansson: strict, its trees owned by objects.
**
** jansson recurses as deep as its input nests; depth is counted before, so
** that a small stack (a host's thread) is enough. */

#include "io.h"

#include <stdlib.h>

enum { DEPTH_MAX = 200, FILE_MAX = 256 << 20 };

static void json_destroy (void *o) {
  Json *j = o;
  json_decref(j->root);
  free(j->text);
}

static const Type tree_type = { "Json", json_destroy };

static FNN_NORETURN void no_memory (const char *name) {
  fnn_throw(FNN_EMEMORY, "%s: out of memory for its JSON", name);
}

static void check_depth (const char *name, int64_t line, const char *s,
                         size_t n) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < n; i++) {
    char c = s[i];
    if (c == '\n') line++;
    if (c == '"') quoted = !quoted;
    else if (quoted && c == '\\') i++;
    else if (!quoted && (c == '[' || c == '{')) depth++;
    else if (!quoted && (c == ']' || c == '}')) depth--;
    if (depth > DEPTH_MAX)
      fnn_throw(FNN_EFORMAT, "%s:%lld: nested deeper than %d", name,
                (long long)line, DEPTH_MAX);
  }
}

Json *json_parse (const char *name, const char *text, size_t n) {
  return json_parse_line(name, 1, text, n);
}

Json *json_parse_line (const char *name, int64_t line, const char *text,
                       size_t n) {
  json_error_t e;
  check_depth(name, line, text, n);
  Json *j = object_new(&tree_type, sizeof(Json));
  j->root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
  if (j->root == NULL && json_error_code(&e) == json_error_out_of_memory)
    no_memory(name);
  if (j->root == NULL)
    fnn_throw(FNN_EFORMAT, "%s:%lld:%d: %s", name,
              (long long)(line - 1 + e.line), e.column, e.text);
  return j;
}

Json *json_read (const char *path) {
  size_t m = fnn_mark();
  Reader *r = reader_open(path);
  if (r->size > FILE_MAX)
    fnn_throw(FNN_EFORMAT,
              "%s: has %lld bytes, more than the %d that are "
              "read as JSON",
              path, (long long)r->size, FILE_MAX);
  char *text = mem_scratch((size_t)r->size + 1);
  reader_read(r, text, r->size);
  return fnn_escape(m, json_parse(path, text, (size_t)r->size));
}

Json *json_new (void) {
  Json *j = object_new(&tree_type, sizeof(Json));
  j->root = json_object();
  if (j->root == NULL) no_memory("json");
  return j;
}

const char *json_text (Json *j) {
  free(j->text);
  j->text = json_dumps(j->root, JSON_COMPACT | JSON_ENCODE_ANY);
  if (j->text == NULL) no_memory("json");
  return j->text;
}

bool json_utf8 (const char *s, size_t n) {
  json_t *j = json_stringn(s, n);
  json_decref(j);
  return j != NULL;
}
