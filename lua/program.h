/* program.h - what the files of the fnn program share.
**
** fnn.c       the arg table, scripts, tools; options.c the command line
** call.c      protected calls: messages, tracebacks, interrupts
** library.c   opens the library for scripts, with the program as its host
** repl.c      reads, evaluates and prints; edit.c reads a line at a terminal
** progress.c  the bar on stderr
** env.c       the facts that a bug report needs */

#ifndef program_h
#define program_h

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include <lauxlib.h>

#include "fnn.h"

/*
** {======================================================
** call.c
** =======================================================
*/

/* Puts name before the messages of errors; NULL for none. */
const char *call_name (const char *name);

/* Calls the function under its n arguments, with a traceback in the message
** of an error; SIGINT raises one.  Returns a status of lua_pcall. */
int call_run (lua_State *L, int n, int results);

/* Whether an interrupt was the error of the last call_run. */
bool call_interrupted (void);

/* Prints the error on the stack's top, and pops it, unless status is LUA_OK.
** Returns status. */
int call_report (lua_State *L, int status);
void call_message (const char *text);

/* The token that SIGINT sets, made at first use; NULL without memory. */
fnn_Cancel *call_token (void);

/* }====================================================== */

/*
** {======================================================
** library.c
** =======================================================
*/

/* The options of the command line that the library takes. */
typedef struct Settings {
  bool any; /* whether one was given */
  bool seeded;
  int threads;
  uint64_t memory; /* bytes, 0: no limit */
  lua_Integer seed;
  const char *device; /* NULL: the library's default */
} Settings;

/* Makes require "fnn" find the library, which opens then, and require
** "fnn.help" the texts of the reference.  s must live as long as L. */
void library_preload (lua_State *L, const Settings *s);

/* Pushes the chunk of an embedded file, or returns false when there is none of
** that name ("fnn/repl.lua"); raises when it does not compile. */
bool library_embedded (lua_State *L, const char *name);
bool library_has (const char *name);

/* Takes back what fnn_cancel asked of the library in L.  Whether it was still
** to be done; true also when the library is not open. */
bool library_uncancel (lua_State *L);

/* Calls the script's handler, if one waits and fnn_cancel asked for it; false
** if not.  May raise. */
bool library_interrupt (lua_State *L);

/* }====================================================== */

/*
** {======================================================
** options.c
** =======================================================
*/

typedef struct Options {
  Settings settings;
  bool interactive, version, noenv, executes, exits;
  int script;        /* index of the script in argv; argc when there is none */
  const char *wrong; /* what is wrong, and the option that is */
  const char *option;
} Options;

/* Kinds of options that have no letter; END is no option. */
enum { THREADS = 1, DEVICE, SEED, MEMORY, HELP, VERSION, BAD, NOVALUE, END };

/* The kind of the option at argv[*i]; *i moves on to its last word.  END at
** the first word that is none: "-" is a script, "--" stands before one. */
int options_next (char **argv, int *i, const char **value);

/* Reads them all up to the script. */
void options_collect (char **argv, Options *o);

/* What is wrong with them, and the usage, on stderr. */
void options_complain (const Options *o, const char *program);

/* --help or --version, whichever comes first. */
void options_inform (char **argv, const char *program);
void options_version (void);

/* }====================================================== */

/* repl.c: a session until the end of input.  Takes an optional table for the
** chunks' globals.  Returns nothing. */
int repl_run (lua_State *L);

/*
** {======================================================
** edit.c
** =======================================================
*/

/* Opens the line editor, when there is one and a terminal; complete is the
** registry's reference of a function (text) -> insertion, list. */
typedef struct Edit Edit;
Edit *edit_open (lua_State *L, int complete);
void edit_close (Edit *e);
/* A line without its newline in memory to be freed; NULL at the end of input.
** *interrupted: Ctrl-C, and the line is to be forgotten.  e may be NULL. */
char *edit_line (Edit *e, const char *prompt, bool *interrupted);
void edit_remember (Edit *e, const char *chunk);
/* Lua: (folder) -> list of its names, folders with a slash at their end. */
int edit_files (lua_State *L);

/* }====================================================== */

/* progress.c: a fnn_Host's progress function, and the end of its line. */
bool progress_show (void *ud, const char *what, int64_t step, int64_t total);
void progress_end (void);

/* Whether colours belong on a stream (a FILE's number). */
bool progress_colour (int fd);

/* env.c: the module fnn.env. */
int env_open (lua_State *L);

#endif
