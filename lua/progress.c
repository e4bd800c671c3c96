/* progress.c - long work on stderr: a bar at a terminal, elsewhere now and
** then a line, as what reads a file or a pipe keeps it all.  Work that is soon
** done shows nothing. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

/* Seconds: before the bar appears, between two of its pictures; where there is
** no terminal, at least and at most between two lines. */
#define PATIENCE 0.3
#define FRAME 0.1
#define LINE 10.0
#define SILENCE 600.0
#define SHARES 20 /* there, lines of work whose end is known: each 5 % */

static struct Bar {
  char what[64];
  double start;        /* when the work began */
  double drawn;        /* when it was last shown */
  int64_t first, last; /* steps: the one seen first, the one seen last */
  int share;           /* how many of the SHARES were done at the last line */
  bool shown;
} bar;

static double now (void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool progress_colour (int fd) {
  const char *none = getenv("NO_COLOR"), *kind = getenv("TERM");
  return isatty(fd) && (none == NULL || *none == '\0') && kind != NULL &&
         strcmp(kind, "dumb") != 0;
}

static int columns (void) {
  struct winsize w;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col
                                                                   : 80;
}

/* "1:02:03", "2:03" */
static void write_time (char *to, size_t size, double seconds) {
  long s = seconds < 1e9 ? (long)(seconds + 0.5) : 1000000000;
  if (s >= 3600)
    snprintf(to, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  else snprintf(to, size, "%ld:%02ld", s / 60, s % 60);
}

/* "123/456  12.3/s  1:20 left" */
static int write_facts (char *to, size_t size, int64_t step, int64_t total,
                        double t) {
  double rate = t > 0 ? ((double)step - (double)bar.first) / t : 0;
  char rest[32];
  int n = total > 0 ? snprintf(to, size, "%" PRId64 "/%" PRId64, step, total)
                    : snprintf(to, size, "%" PRId64, step);
  if (rate > 0)
    n += snprintf(to + n, size - (size_t)n, "  %.3g%s",
                  rate < 1 ? 1 / rate : rate, rate < 1 ? " s each" : "/s");
  if (step < total && rate <= 0) return n;
  write_time(rest, sizeof rest,
             step < total ? ((double)total - (double)step) / rate : t);
  return n + snprintf(to + n, size - (size_t)n, "  %s%s", rest,
                      step < total ? " left" : "");
}

/* How much is done, from 0 to 1. */
static double part (int64_t step, int64_t total) {
  if (step <= 0 || total <= 0) return 0;
  return step < total ? (double)step / (double)total : 1;
}

static bool begins (char c) { return ((unsigned char)c & 0xc0) != 0x80; }

/* The name in letters, at most so many, without what steers a terminal.
** Returns how many there are.  Of a name that was cut the last letter may be
** a part of one. */
static int name_of (char *to, int most) {
  size_t n = strlen(bar.what), i = 0;
  int letters = 0;
  if (n == sizeof bar.what - 1)
    while (n > 0 && !begins(bar.what[--n])) continue;
  for (; i < n && (!begins(bar.what[i]) || letters < most); i++) {
    letters += begins(bar.what[i]);
    bool steers = (unsigned char)bar.what[i] < ' ' || bar.what[i] == 127;
    to[i] = steers ? ' ' : bar.what[i];
  }
  to[i] = '\0';
  return letters;
}

static void draw_bar (int64_t step, int64_t total, double t) {
  char facts[128], name[sizeof bar.what];
  bool colour = progress_colour(STDERR_FILENO);
  int n = write_facts(facts, sizeof facts, step, total, t);
  int letters = name_of(name, columns() - 1 - n - 2);
  int room = columns() - 1 - letters - n - 12;
  fprintf(stderr, "\r%s", name);
  if (total > 0 && room >= 10) {
    int length = room > 40 ? 40 : room;
    int done = (int)(length * part(step, total));
    fprintf(stderr, " %3d%% %s[", (int)(100 * part(step, total)),
            colour ? "\033[32m" : "");
    for (int i = 0; i < length; i++)
      fputc(i < done ? '=' : i == done ? '>' : ' ', stderr);
    fprintf(stderr, "]%s", colour ? "\033[0m" : "");
  }
  fprintf(stderr, "  %s\033[K", facts);
}

static void draw_line (int64_t step, int64_t total, double t) {
  char facts[128], name[sizeof bar.what];
  write_facts(facts, sizeof facts, step, total, t);
  name_of(name, (int)sizeof name);
  fprintf(stderr, "%s:", name);
  if (total > 0) fprintf(stderr, " %3d%%", (int)(100 * part(step, total)));
  fprintf(stderr, " %s\n", facts);
}

static int share_of (int64_t step, int64_t total) {
  return (int)(SHARES * part(step, total));
}

/* Whether it is time for a line, since seconds after the last, t after the
** beginning: where the end is unknown the pauses grow with the work. */
static bool line_due (int64_t step, int64_t total, double since, double t) {
  if (since < LINE) return false;
  if (since >= SILENCE) return true;
  return total > 0 ? share_of(step, total) > bar.share : since >= t / 4;
}

static bool bar_due (double since) {
  return since >= (bar.shown ? FRAME : PATIENCE);
}

void progress_end (void) {
  if (bar.shown && isatty(STDERR_FILENO)) fputc('\n', stderr);
  memset(&bar, 0, sizeof bar);
}

static void begin (const char *what, int64_t step, double t) {
  progress_end();
  snprintf(bar.what, sizeof bar.what, "%s", what);
  bar.start = bar.drawn = t;
  bar.first = step;
}

/* Without words, what there is ends. */
bool progress_show (void *ud, const char *what, int64_t step, int64_t total) {
  (void)ud;
  if (*what == '\0') {
    progress_end();
    return false;
  }
  double t = now();
  bool terminal = isatty(STDERR_FILENO), last = total > 0 && step >= total;
  if (strncmp(bar.what, what, sizeof bar.what - 1) != 0 || step < bar.last)
    begin(what, step, t);
  bar.last = step;
  double since = t - bar.drawn;
  bool due =
      terminal ? bar_due(since) : line_due(step, total, since, t - bar.start);
  if (due || (last && bar.shown)) {
    if (terminal) draw_bar(step, total, t - bar.start);
    else draw_line(step, total, t - bar.start);
    fflush(stderr);
    bar.shown = true;
    bar.drawn = t;
    bar.share = share_of(step, total);
  }
  if (last) progress_end();
  return false;
}
