/* options.c - the command line of the fnn program.
**
** Lua's options are single letters that do not join; fnn's own are long ones,
** --name value or --name=value.  Two passes read them: one for what must be
** known before there is a state, one that runs -e, -l and -W in order. */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embed.h"
#include "program.h"

static const char usage[] =
    "usage: %s [options] [script [args]]\n"
    "       %s TOOL [args]\n"
    "Options of Lua:\n"
    "  -e stat   execute string 'stat'\n"
    "  -i        enter interactive mode after executing 'script'\n"
    "  -l mod    require library 'mod' into global 'mod'\n"
    "  -l g=mod  require library 'mod' into global 'g'\n"
    "  -v        show version information\n"
    "  -E        ignore environment variables\n"
    "  -W        turn warnings on\n"
    "  --        stop handling options\n"
    "  -         stop handling options and execute stdin\n"
    "Options of fnn:\n"
    "  --threads N          compute with N threads\n"
    "  --device NAME        make tensors on NAME: cpu, cuda, cuda:1\n"
    "  --seed N             seed the random numbers\n"
    "  --memory-limit SIZE  hold at most SIZE bytes of tensors (512M, 2G)\n"
    "  --version            show version information and exit\n"
    "  --help               show this text and exit\n"
    "Tools (more by fnn TOOL --help):";

/* The usage, and the tools that the binary holds. */
static void print_usage (FILE *f, const char *program) {
  const char *folder = "fnn/tools/";
  size_t n = strlen(folder);
  fprintf(f, usage, program, program);
  for (const Embedded *e = embedded; e->name != NULL; e++)
    if (strncmp(e->name, folder, n) == 0)
      fprintf(f, " %.*s", (int)(strlen(e->name + n) - strlen(".lua")),
              e->name + n);
  fprintf(f, "\n");
}

static const struct Long {
  const char *name;
  int kind;
  bool valued;
} longs[] = {
  { "threads", THREADS, true }, { "device", DEVICE, true },
  { "seed", SEED, true },       { "memory-limit", MEMORY, true },
  { "help", HELP, false },      { "version", VERSION, false },
};

static int long_option (char **argv, int *i, const char **value) {
  const char *name = argv[*i] + 2;
  size_t n = strcspn(name, "=");
  for (size_t k = 0; k < sizeof longs / sizeof *longs; k++) {
    if (strlen(longs[k].name) != n || strncmp(longs[k].name, name, n) != 0)
      continue;
    if (!longs[k].valued) return name[n] == '=' ? BAD : longs[k].kind;
    *value = name[n] == '=' ? name + n + 1 : argv[++*i];
    return *value != NULL && **value != '\0' ? longs[k].kind : NOVALUE;
  }
  return BAD;
}

int options_next (char **argv, int *i, const char **value) {
  const char *word = argv[*i];
  if (word == NULL || word[0] != '-' || word[1] == '\0') return END;
  switch (word[1]) {
    case '-':
      if (word[2] != '\0') return long_option(argv, i, value);
      ++*i;
      return END;
    case 'e':
    case 'l':
      *value = word + 2;
      if (word[2] == '\0') {
        *value = argv[*i + 1];
        if (*value == NULL || **value == '-') return NOVALUE;
        ++*i;
      }
      return word[1];
    case 'i':
    case 'v':
    case 'E':
    case 'W': return word[2] == '\0' ? word[1] : BAD;
    default: return BAD;
  }
}

/* Reads all of text as a count that may end in a unit of 1024. */
static bool read_size (const char *text, uint64_t *size) {
  char *end;
  if (!isdigit((unsigned char)*text)) return false;
  errno = 0;
  *size = strtoull(text, &end, 10);
  if (errno != 0) return false;
  const char *units = "KMGT", *u = strchr(units, toupper((unsigned char)*end));
  if (*end != '\0' && u != NULL) {
    int shift = 10 * (int)(u - units + 1);
    if (*size > UINT64_MAX >> shift) return false;
    *size <<= shift;
    end++;
    if (*end == 'i') end++;
    if (*end == 'B') end++;
  }
  return *end == '\0' && *size > 0;
}

/* A seed is any 64 bits, written signed or unsigned. */
static bool read_seed (const char *text, lua_Integer *seed) {
  char *end;
  bool minus = *text == '-';
  if (!isdigit((unsigned char)text[minus])) return false;
  errno = 0;
  *seed = minus ? (lua_Integer)strtoll(text, &end, 10)
                : (lua_Integer)strtoull(text, &end, 10);
  return errno == 0 && *end == '\0';
}

static bool read_threads (const char *text, int *threads) {
  char *end;
  long n = strtol(text, &end, 10);
  if (!isdigit((unsigned char)*text) || *end != '\0') return false;
  *threads = (int)n;
  return n >= 1 && n <= 4096;
}

static bool set_option (Options *o, int kind, const char *value) {
  Settings *s = &o->settings;
  switch (kind) {
    case 'e': o->executes = true; return true;
    case 'i': o->interactive = o->version = true; return true;
    case 'v': o->version = true; return true;
    case 'E': o->noenv = true; return true;
    case 'l':
    case 'W': return true;
    case HELP:
    case VERSION: o->exits = true; return true;
    case THREADS: s->any = true; return read_threads(value, &s->threads);
    case MEMORY: s->any = true; return read_size(value, &s->memory);
    case SEED: s->any = s->seeded = true; return read_seed(value, &s->seed);
    case DEVICE:
      s->any = true;
      s->device = value;
      return true;
    default: return false;
  }
}

void options_collect (char **argv, Options *o) {
  int i = argv[0] != NULL;
  for (;; i++) {
    const char *value = NULL;
    o->option = argv[i];
    int kind = options_next(argv, &i, &value);
    if (kind == END) break;
    if (kind == BAD || kind == NOVALUE) {
      o->wrong =
          kind == BAD ? "unrecognized option '%s'" : "'%s' needs argument";
      return;
    }
    if (!set_option(o, kind, value)) {
      o->wrong =
          kind == THREADS  ? "bad value of option '%s' (expected 1 to 4096)"
          : kind == MEMORY ? "bad value of option '%s' (expected 512M, 2G ...)"
                           : "bad value of option '%s' (expected an integer)";
      return;
    }
  }
  o->script = i;
}

void options_complain (const Options *o, const char *program) {
  fprintf(stderr, "%s: ", program);
  fprintf(stderr, o->wrong, o->option);
  fprintf(stderr, "\n");
  print_usage(stderr, program);
}

void options_version (void) {
  printf("fnn " FNN_VERSION ", " LUA_COPYRIGHT "\n");
  fflush(stdout);
}

void options_inform (char **argv, const char *program) {
  const char *value;
  int kind, i = 1;
  do {
    kind = options_next(argv, &i, &value);
    i++;
  } while (kind != HELP && kind != VERSION);
  if (kind == HELP) print_usage(stdout, program);
  else options_version();
}
