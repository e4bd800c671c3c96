/* program_progress_test.c - what the program shows of long work. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pty.h>

#include "../lua/progress.c" /* of the program, so in no library */

enum { COLUMNS = 60 };

static int kept = -1, master = -1; /* stderr as it was; the terminal */
static char text[1 << 16];

/* stderr becomes a terminal of COLUMNS columns. */
static int open_terminal (void **state) {
  int slave;
  struct winsize size = { .ws_row = 24, .ws_col = COLUMNS };
  (void)state;
  if (openpty(&master, &slave, NULL, NULL, &size) != 0) return -1;
  fcntl(master, F_SETFL, O_NONBLOCK);
  kept = dup(STDERR_FILENO);
  dup2(slave, STDERR_FILENO);
  close(slave);
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  return 0;
}

static int close_terminal (void **state) {
  (void)state;
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(master);
  return 0;
}

/* What the terminal was sent since the last call. */
static const char *shown (void) {
  size_t n = 0;
  ssize_t got;
  while (n < sizeof text - 1 &&
         (got = read(master, text + n, sizeof text - 1 - n)) > 0)
    n += (size_t)got;
  text[n] = '\0';
  return text;
}

/* Steps first to last of total, 20 ms each. */
static void work (const char *what, int first, int last, int total) {
  struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
  for (int i = first; i <= last; i++) {
    assert_false(progress_show(NULL, what, i, total));
    nanosleep(&pause, NULL);
  }
}

static void shows_nothing_of_short_work (void **state) {
  (void)state;
  work("short", 1, 5, 5);
  assert_string_equal(shown(), "");
  progress_end();
  assert_string_equal(shown(), "");
}

static void shows_share_rate_and_time (void **state) {
  (void)state;
  work("training", 1, 40, 40);
  const char *s = shown();
  assert_non_null(strstr(s, "\rtraining "));
  assert_non_null(strstr(s, "/40  "));
  assert_non_null(strstr(s, "/s  0:00 left"));
  assert_non_null(strstr(s, " 100% \033[32m[===="));
  assert_non_null(strstr(s, "40/40  "));
  assert_string_equal(s + strlen(s) - 1, "\n");
}

/* Between two \r, escapes aside, no picture is as wide as the terminal. */
static void fits_the_terminal (void **state) {
  (void)state;
  work("a name that is long, but not longer than all", 1, 30, 30);
  int width = 0;
  for (const char *s = shown(); *s; s++) {
    if (*s == '\r' || *s == '\n') width = 0;
    else if (*s == '\033') s += strcspn(s, "mK");
    else width++;
    assert_true(width < COLUMNS);
  }
}

static void counts_where_the_end_is_unknown (void **state) {
  (void)state;
  work("reading", 1, 30, 0);
  const char *s = shown();
  assert_non_null(strstr(s, "\rreading  "));
  assert_null(strchr(s, '%'));
  assert_null(strchr(s, '\n'));
  progress_end(); /* an error, a prompt: the line must end */
  assert_string_equal(shown(), "\r\n");
}

static void starts_again_with_other_work (void **state) {
  (void)state;
  work("first", 1, 25, 100);
  shown();
  progress_show(NULL, "second", 1, 100);
  assert_string_equal(shown(), "\r\n");
  progress_end();
  assert_string_equal(shown(), "");
}

static void has_no_colour_when_asked (void **state) {
  (void)state;
  setenv("NO_COLOR", "1", 1);
  work("plain", 1, 30, 30);
  assert_null(strstr(shown(), "\033[32m"));
  unsetenv("NO_COLOR");
}

static void is_silent_in_a_pipe_at_first (void **state) {
  int ends[2];
  (void)state;
  assert_int_equal(pipe(ends), 0);
  int terminal = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  work("piped", 1, 30, 30);
  dup2(terminal, STDERR_FILENO);
  close(terminal);
  close(ends[1]);
  assert_int_equal(read(ends[0], text, sizeof text), 0);
  close(ends[0]);
}

/* What is written of work that takes n times pause seconds, on a clock that
** the test sets. */
static const char *piped (int n, int64_t total, double pause) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  int terminal = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  progress_end();
  for (int i = 1; i <= n; i++) {
    progress_show(NULL, "piped", i, total);
    bar.start -= pause;
    bar.drawn -= pause;
  }
  progress_end();
  dup2(terminal, STDERR_FILENO);
  close(terminal);
  close(ends[1]);
  ssize_t got = read(ends[0], text, sizeof text - 1);
  text[got > 0 ? got : 0] = '\0';
  close(ends[0]);
  return text;
}

static int lines_of (const char *s) {
  int n = 0;
  for (; *s; s++) n += *s == '\n';
  return n;
}

static void writes_lines_elsewhere (void **state) {
  (void)state;
  /* 1000 steps of a second: one line each 5 %, the first not before. */
  const char *s = piped(1000, 1000, 1);
  assert_int_equal(lines_of(s), 20);
  assert_memory_equal(s, "piped:   5% 50/1000  ", 21);
  assert_non_null(strstr(s, "\npiped: 100% 1000/1000  "));
  assert_null(strchr(s, '\r'));
  assert_null(strchr(s, '\033'));
  /* Faster than a line in 10 s; slower than one in 10 minutes. */
  assert_int_equal(lines_of(piped(100, 100, 0.5)), 5);
  assert_int_equal(lines_of(piped(20, 1000, 300)), 9);
  /* No end in sight: fewer and fewer. */
  int n = lines_of(piped(3600, 0, 1));
  assert_true(n > 10 && n < 30);
}

/* A step past its end, numbers at their ends, names that steer or are cut. */
static void bears_odd_work (void **state) {
  (void)state;
  progress_show(NULL, "a\033[31mb\nc", INT64_MIN, 10);
  bar.start -= 1, bar.drawn -= 1;
  progress_show(NULL, "a\033[31mb\nc", 5, 100);
  const char *s = shown();
  assert_non_null(strstr(s, "\ra [31mb c "));
  assert_non_null(strstr(s, "  5/100  "));
  bar.drawn -= 1;
  progress_show(NULL, "a\033[31mb\nc", INT64_MAX, 1000000);
  assert_null(strstr(shown(), " -"));
  char name[101] = "x";
  for (int i = 1; i < 99; i += 2) memcpy(name + i, "\xc3\xa4", 3);
  work(name, 1, 20, 0);
  s = shown();
  const char *end = strrchr(s, '\xc3');
  assert_non_null(end);
  assert_int_equal((unsigned char)end[1], 0xa4);
  progress_end();
  shown();
}

static void ends_without_words (void **state) {
  (void)state;
  work("reading", 1, 30, 0);
  shown();
  progress_show(NULL, "", 0, 0);
  assert_string_equal(shown(), "\r\n");
  progress_show(NULL, "", 0, 0);
  assert_string_equal(shown(), "");
}

int main (void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(shows_nothing_of_short_work),
    cmocka_unit_test(shows_share_rate_and_time),
    cmocka_unit_test(fits_the_terminal),
    cmocka_unit_test(counts_where_the_end_is_unknown),
    cmocka_unit_test(starts_again_with_other_work),
    cmocka_unit_test(has_no_colour_when_asked),
    cmocka_unit_test(is_silent_in_a_pipe_at_first),
    cmocka_unit_test(writes_lines_elsewhere),
    cmocka_unit_test(bears_odd_work),
    cmocka_unit_test(ends_without_words),
  };
  return cmocka_run_group_tests_name("program_progress", tests, open_terminal,
                                     close_terminal);
}
