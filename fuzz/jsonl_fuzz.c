/* jsonl_fuzz.c - any bytes are lines of JSON or an error; the short way to read
** a line gives what the long one gives, and takes no line that it refuses. */

#include <string.h>

#include "../src/data/data.h"
#include "fuzz.h"

typedef struct Job {
  JsonlRow row;
  double *v[2];
} Job;

static void read_any (void *ud) {
  const Job *j = ud;
  jsonl_read_any(&j->row, j->v);
}

static void check_line (const char *text, size_t n, int64_t line, int shape) {
  static char name[2][4] = { "x", "y" };
  char *names[] = { name[0], name[1] };
  double a[2][4], b[2][4];
  Field f[2] = { { FNN_F32, 1, { 2 } }, { FNN_I64, 0, { 0 } } };
  if (shape == 1) f[0] = (Field){ FNN_F64, 2, { 2, 2 } };
  if (shape == 2) f[0] = (Field){ FNN_U8, 0, { 0 } };
  Job j = { { "fuzz", line, text, n, 2, names, f }, { b[0], b[1] } };
  memset(a, 0, sizeof a);
  memset(b, 0, sizeof b);
  bool plain = jsonl_read_plain(&j.row, (double *[]){ a[0], a[1] });
  fnn_Status s = fnn_pcall(read_any, &j);
  if (plain && (s != FNN_OK || memcmp(a, b, sizeof a) != 0)) abort();
}

static void target (Reader *r, const Input *in) {
  const char *p = (const char *)in->bytes, *end = p + in->n;
  (void)r;
  for (int64_t line = 1; p < end; line++) {
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    if (stop == NULL) stop = end;
    check_line(p, (size_t)(stop - p), line, (int)(line % 3));
    p = stop + (stop < end);
  }
}
