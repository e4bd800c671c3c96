/* lcanvas.c - the canvas of plots, for fnn/plot/, and what a terminal can
** show.  Names and numbers come from there: they have been checked. */

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../src/io/io.h"
#include "lbox.h"

/* Arguments from i on: x0, y0, x1, y1. */
static Box checkbox (lua_State *L, int i) {
  Box b;
  b.x0 = luaL_checknumber(L, i);
  b.y0 = luaL_checknumber(L, i + 1);
  b.x1 = luaL_checknumber(L, i + 2);
  b.y1 = luaL_checknumber(L, i + 3);
  return b;
}

/* From i on: color, alpha, width and, where there is one, dash. */
static Pen checkpen (lua_State *L, int i, bool dash) {
  Pen p;
  p.color = (uint32_t)luaL_checkinteger(L, i);
  p.alpha = luaL_checknumber(L, i + 1);
  p.width = luaL_checknumber(L, i + 2);
  p.dash = dash ? luaL_checknumber(L, i + 3) : 0;
  return p;
}

static const Canvas *body (lua_State *L, int i) {
  return canvas_choose(lua_toboolean(L, i));
}

/* body(plain): the name of what draws */
static int canvas_body (lua_State *L) {
  lua_pushstring(L, body(L, 1)->name);
  return 1;
}

/* lines(canvas, mask, plain, x, y, color, alpha, width, dash, clip (4)) */
static int lines (lua_State *L) {
  fnn_Tensor *to = checktensor(L, 1), *mask = checktensor(L, 2);
  const Canvas *c = body(L, 3);
  fnn_Tensor *x = checktensor(L, 4), *y = checktensor(L, 5);
  Pen p = checkpen(L, 6, true);
  Box clip = checkbox(L, 10);
  guard(L, canvas_lines(c, to, mask, &clip, &p, x, y));
  return 0;
}

static const char *const mark_names[] = { "circle",  "square", "triangle",
                                          "diamond", "cross",  "plus",
                                          NULL };

/* marks(canvas, mask, plain, x, y, color, alpha, radius, shape, clip (4)) */
static int marks (lua_State *L) {
  fnn_Tensor *to = checktensor(L, 1), *mask = checktensor(L, 2);
  const Canvas *c = body(L, 3);
  fnn_Tensor *x = checktensor(L, 4), *y = checktensor(L, 5);
  Pen p = checkpen(L, 6, false);
  Mark m = (Mark)luaL_checkoption(L, 9, NULL, mark_names);
  Box clip = checkbox(L, 10);
  guard(L, canvas_marks(c, to, mask, &clip, &p, m, x, y));
  return 0;
}

/* rect(canvas, plain, x0, y0, x1, y1, color, alpha) */
static int rect (lua_State *L) {
  fnn_Tensor *to = checktensor(L, 1);
  const Canvas *c = body(L, 2);
  Box b = checkbox(L, 3);
  Pen p = { (uint32_t)luaL_checkinteger(L, 7), luaL_checknumber(L, 8), 0, 0 };
  guard(L, canvas_rect(c, to, NULL, &p, &b));
  return 0;
}

/* text(canvas, mask, plain, x, y, text, color, alpha, size, upward, bold) */
static int text (lua_State *L) {
  fnn_Tensor *to = checktensor(L, 1), *mask = checktensor(L, 2);
  const Canvas *c = body(L, 3);
  double x = luaL_checknumber(L, 4), y = luaL_checknumber(L, 5);
  const char *words = luaL_checkstring(L, 6);
  Pen p = checkpen(L, 7, false);
  bool upward = lua_toboolean(L, 10), bold = lua_toboolean(L, 11);
  guard(L, canvas_text(c, to, mask, &p, x, y, upward, bold, words));
  return 0;
}

/* text_width(plain, size, bold, text) */
static int text_width (lua_State *L) {
  const Canvas *c = body(L, 1);
  double size = luaL_checknumber(L, 2), w = 0;
  bool bold = lua_toboolean(L, 3);
  const char *words = luaL_checkstring(L, 4);
  guard(L, w = canvas_text_width(c, size, bold, words));
  lua_pushnumber(L, w);
  return 1;
}

/* image(canvas, x0, y0, x1, y1, image, clip (4)) */
static int image (lua_State *L) {
  fnn_Tensor *to = checktensor(L, 1);
  Box b = checkbox(L, 2);
  fnn_Tensor *x = checktensor(L, 6);
  Box clip = checkbox(L, 7);
  guard(L, canvas_image(to, &clip, &b, x));
  return 0;
}

/* dots(cells, join, x, y) */
static int dots (lua_State *L) {
  fnn_Tensor *to = checktensor(L, 1);
  bool join = lua_toboolean(L, 2);
  fnn_Tensor *x = checktensor(L, 3), *y = checktensor(L, 4);
  guard(L, canvas_dots(to, join, x, y));
  return 0;
}

/* terminal([file]): whether it (stdout) is one; its columns, if known */
static int terminal (lua_State *L) {
  luaL_Stream *f = luaL_testudata(L, 1, LUA_FILEHANDLE);
  if (f == NULL && !lua_isnoneornil(L, 1)) return 0;
  if (f != NULL && f->closef == NULL) return 0;
  int fd = fileno(f != NULL ? f->f : stdout);
  struct winsize size = { 0 };
  if (fd < 0 || !isatty(fd)) return 0;
  lua_pushboolean(L, true);
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 1;
  lua_pushinteger(L, size.ws_col);
  return 2;
}

/* write(text): to stdout, as Lua's print */
static int write_out (lua_State *L) {
  size_t n;
  const char *s = luaL_checklstring(L, 1, &n);
  fwrite(s, 1, n, stdout);
  fflush(stdout);
  return 0;
}

static const luaL_Reg functions[] = {
  { "body", canvas_body }, { "lines", lines }, { "marks", marks },
  { "rect", rect },        { "text", text },   { "text_width", text_width },
  { "image", image },      { "dots", dots },   { "terminal", terminal },
  { "write", write_out },  { NULL, NULL },
};

void push_canvas (lua_State *L) {
  lua_newtable(L);
  addfunctions(L, functions);
}
