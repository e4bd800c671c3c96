/* edit.c - reads a line: with libedit at a terminal, plainly elsewhere.
**
** libedit wants the terminal's character set; only the thread's locale is
** switched, and only inside, since Lua scripts expect "C".  Ctrl-C is a key
** here: it drops the line instead of the session. */

#include <dirent.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

static bool is_terminal (void) {
  return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* The names in a folder, folders with a slash; none if it cannot be read. */
int edit_files (lua_State *L) {
  const char *folder = luaL_checkstring(L, 1);
  lua_newtable(L);
  DIR *d = opendir(folder[0] ? folder : ".");
  if (d == NULL) return 1;
  for (struct dirent *f; (f = readdir(d)) != NULL;) {
    struct stat s;
    if (strcmp(f->d_name, ".") == 0 || strcmp(f->d_name, "..") == 0) continue;
    bool is_folder =
        fstatat(dirfd(d), f->d_name, &s, 0) == 0 && S_ISDIR(s.st_mode);
    lua_pushfstring(L, "%s%s", f->d_name, is_folder ? "/" : "");
    lua_rawseti(L, -2, luaL_len(L, -2) + 1);
  }
  closedir(d);
  return 1;
}

/*
** {======================================================
** Without an editor
** =======================================================
*/

static volatile sig_atomic_t pressed;

static void press (int signal_number) {
  (void)signal_number;
  pressed = 1;
}

/* What a terminal would not have shown is printed, so that the output of a
** session read from a file tells its whole story. */
static char *plain_line (const char *prompt, bool *interrupted) {
  char *line = NULL;
  size_t capacity = 0;
  bool terminal = is_terminal();
  struct sigaction action, old;
  fputs(prompt, stdout);
  fflush(stdout);
  pressed = 0;
  memset(&action, 0, sizeof action);
  action.sa_handler = press;
  if (terminal) sigaction(SIGINT, &action, &old);
  ssize_t n = getline(&line, &capacity, stdin);
  if (terminal) sigaction(SIGINT, &old, NULL);
  *interrupted = n < 0 && pressed;
  if (n < 0) {
    if (pressed) clearerr(stdin);
    free(line);
    return NULL;
  }
  if (n > 0 && line[n - 1] == '\n') line[n - 1] = '\0';
  if (!isatty(STDIN_FILENO)) {
    printf("%s\n", line);
    fflush(stdout);
  }
  return line;
}

/* }====================================================== */

#ifdef FNN_EDIT

#include <histedit.h>

enum { HISTORY_MAX = 2000 };

struct Edit {
  EditLine *el;
  History *history;
  locale_t locale;
  lua_State *L;
  int complete; /* reference of the completing function */
  const char *prompt;
  bool interrupted;
  char file[1024]; /* of the history; empty for none */
};

static char *get_prompt (EditLine *el) {
  Edit *e;
  el_get(el, EL_CLIENTDATA, &e);
  return (char *)e->prompt;
}

static unsigned char key_interrupt (EditLine *el, int key) {
  (void)key;
  Edit *e;
  el_get(el, EL_CLIENTDATA, &e);
  e->interrupted = true;
  return CC_NEWLINE;
}

static unsigned char key_suspend (EditLine *el, int key) {
  (void)key;
  el_set(el, EL_PREP_TERM, 0);
  raise(SIGTSTP);
  el_set(el, EL_PREP_TERM, 1);
  return CC_REDISPLAY;
}

static int columns (void) {
  struct winsize w;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col
                                                                   : 80;
}

/* Inserts what all completions share, or lists them below the line. */
static unsigned char key_complete (EditLine *el, int key) {
  (void)key;
  Edit *e;
  el_get(el, EL_CLIENTDATA, &e);
  lua_State *L = e->L;
  const LineInfo *line = el_line(el);
  int top = lua_gettop(L);
  unsigned char action = CC_ERROR;
  lua_rawgeti(L, LUA_REGISTRYINDEX, e->complete);
  lua_pushlstring(L, line->buffer, (size_t)(line->cursor - line->buffer));
  lua_pushinteger(L, columns());
  if (lua_pcall(L, 2, 2, 0) == LUA_OK) {
    const char *more = lua_tostring(L, -2), *list = lua_tostring(L, -1);
    if (more != NULL && *more != '\0') {
      if (el_insertstr(el, more) == 0) action = CC_REFRESH;
    } else if (list != NULL) {
      printf("\n%s\n", list);
      fflush(stdout);
      action = CC_REDISPLAY;
    }
  }
  lua_settop(L, top);
  return action;
}

/* Makes every folder of path but its last part. */
static void make_folders (char *path) {
  for (char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
    *p = '\0';
    mkdir(path, 0700);
    *p = '/';
  }
}

/* $XDG_STATE_HOME/fnn/history; empty where there is no place for it. */
static void find_history (char *path, size_t size) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  int n = 0;
  if (state != NULL && state[0] == '/')
    n = snprintf(path, size, "%s/fnn/history", state);
  else if (home != NULL && home[0] == '/')
    n = snprintf(path, size, "%s/.local/state/fnn/history", home);
  if (n <= 0 || (size_t)n >= size) path[0] = '\0';
  else make_folders(path);
}

static void open_history (Edit *e) {
  HistEvent event;
  e->history = history_init();
  if (e->history == NULL) return;
  history(e->history, &event, H_SETSIZE, HISTORY_MAX);
  history(e->history, &event, H_SETUNIQUE, 1);
  el_set(e->el, EL_HIST, history, e->history);
  find_history(e->file, sizeof e->file);
  if (e->file[0] != '\0') history(e->history, &event, H_LOAD, e->file);
}

/* The file is written at once, beside the old one: a session may be killed. */
void edit_remember (Edit *e, const char *chunk) {
  HistEvent event;
  if (e == NULL || e->history == NULL || *chunk == '\0') return;
  history(e->history, &event, H_ENTER, chunk);
  if (e->file[0] == '\0') return;
  char beside[sizeof e->file + 24];
  snprintf(beside, sizeof beside, "%s.%ld", e->file, (long)getpid());
  mode_t mask = umask(077);
  if (history(e->history, &event, H_SAVE, beside) >= 0)
    rename(beside, e->file);
  umask(mask);
}

static void bind_keys (EditLine *el) {
  el_set(el, EL_EDITOR, "emacs");
  el_source(el, NULL); /* ~/.editrc, which may choose vi's keys */
  el_set(el, EL_ADDFN, "fnn-interrupt", "Drop the line", key_interrupt);
  el_set(el, EL_ADDFN, "fnn-complete", "Complete a name", key_complete);
  el_set(el, EL_ADDFN, "fnn-suspend", "Suspend the session", key_suspend);
  el_set(el, EL_SETTY, "-d", "-isig", NULL); /* signals become keys */
  el_set(el, EL_BIND, "^C", "fnn-interrupt", NULL);
  el_set(el, EL_BIND, "^Z", "fnn-suspend", NULL);
  el_set(el, EL_BIND, "^I", "fnn-complete", NULL);
  el_set(el, EL_BIND, "^R", "em-inc-search-prev", NULL);
}

void edit_close (Edit *e) {
  if (e == NULL || e->el == NULL) return;
  el_end(e->el);
  if (e->history != NULL) history_end(e->history);
  if (e->locale != (locale_t)0) freelocale(e->locale);
  e->el = NULL;
}

static int collect (lua_State *L) {
  edit_close(lua_touserdata(L, 1));
  return 0;
}

Edit *edit_open (lua_State *L, int complete) {
  const char *kind = getenv("TERM");
  Edit *e = lua_newuserdatauv(L, sizeof *e, 0);
  memset(e, 0, sizeof *e);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, collect);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  if (!is_terminal() || kind == NULL || strcmp(kind, "dumb") == 0) return NULL;
  e->L = L;
  e->complete = complete;
  e->locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
  locale_t old = uselocale(e->locale);
  e->el = el_init("fnn", stdin, stdout, stderr);
  if (e->el != NULL) {
    el_set(e->el, EL_CLIENTDATA, e);
    el_set(e->el, EL_SIGNAL, 1);
    el_set(e->el, EL_PROMPT, get_prompt);
    bind_keys(e->el);
    open_history(e);
  }
  uselocale(old);
  return e->el != NULL ? e : NULL;
}

char *edit_line (Edit *e, const char *prompt, bool *interrupted) {
  if (e == NULL) return plain_line(prompt, interrupted);
  int n = 0;
  e->prompt = prompt;
  e->interrupted = false;
  fflush(stdout);
  locale_t old = uselocale(e->locale);
  const char *text = el_gets(e->el, &n);
  uselocale(old);
  *interrupted = e->interrupted;
  if (e->interrupted || text == NULL || n <= 0) return NULL;
  char *line = strdup(text);
  size_t length = line ? strlen(line) : 0;
  if (length > 0 && line[length - 1] == '\n') line[length - 1] = '\0';
  return line;
}

#else

Edit *edit_open (lua_State *L, int complete) {
  (void)complete;
  lua_pushnil(L);
  return NULL;
}

void edit_close (Edit *e) { (void)e; }

void edit_remember (Edit *e, const char *chunk) {
  (void)e;
  (void)chunk;
}

char *edit_line (Edit *e, const char *prompt, bool *interrupted) {
  (void)e;
  return plain_line(prompt, interrupted);
}

#endif
