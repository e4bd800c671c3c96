/* env.c - the module fnn.env: how this program was built and what it runs on.
** The tool of that name prints it. */

#include <jansson.h>
#include <png.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include "program.h"

#ifndef FNN_FLAGS
#define FNN_FLAGS "unknown"
#endif

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void set (lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

/* Name and version, the one in use. */
static void set_libraries (lua_State *L) {
  lua_newtable(L);
  set(L, "libpng", png_get_libpng_ver(NULL));
  set(L, "zlib", zlibVersion());
  set(L, "jansson", jansson_version_str());
#ifdef FNN_EDIT
  set(L, "libedit", FNN_EDIT);
#endif
#ifdef FNN_JPEG
  set(L, "libjpeg", FNN_JPEG);
#endif
  lua_setfield(L, -2, "libraries");
}

static void set_system (lua_State *L) {
  struct utsname u;
  if (uname(&u) == 0) {
    lua_pushfstring(L, "%s %s %s", u.sysname, u.release, u.machine);
    lua_setfield(L, -2, "system");
  }
  lua_pushinteger(L, sysconf(_SC_NPROCESSORS_ONLN));
  lua_setfield(L, -2, "cores");
  lua_pushinteger(L, (lua_Integer)sysconf(_SC_PHYS_PAGES) *
                         sysconf(_SC_PAGESIZE));
  lua_setfield(L, -2, "memory");
}

/* The instruction sets that the kernels are built for, and whether this
** processor has each. */
static void set_isas (lua_State *L) {
  lua_newtable(L);
  lua_pushboolean(L, 1);
  lua_setfield(L, -2, "baseline");
#if defined(__x86_64__)
  lua_pushboolean(L, __builtin_cpu_supports("avx2") &&
                         __builtin_cpu_supports("fma"));
  lua_setfield(L, -2, "avx2");
  lua_pushboolean(L, __builtin_cpu_supports("avx512f") &&
                         __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512dq") &&
                         __builtin_cpu_supports("avx512vl"));
  lua_setfield(L, -2, "avx512");
#endif
  lua_setfield(L, -2, "isas");
  set(L, "isa", fnn_isa());
}

int env_open (lua_State *L) {
  lua_newtable(L);
  set(L, "version", FNN_VERSION);
  set(L, "lua", LUA_RELEASE);
  set(L, "compiler", COMPILER);
  set(L, "flags", FNN_FLAGS);
  lua_pushinteger(L, fnn_thread_count());
  lua_setfield(L, -2, "threads");
  set_libraries(L);
  set_system(L);
  set_isas(L);
  return 1;
}
