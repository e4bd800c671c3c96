#!/bin/sh
# install.sh - installs into an empty folder and uses what is there as others
# will: through pkg-config from C and C++, from stock Lua, as a program; looks
# at what the libraries export and need; uninstalls.  Prints TAP.  With CUDA=1
# in the environment it installs that build.

# shellcheck disable=SC2317  # functions are called by name
cd "$(dirname "$0")/.." || exit 2
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/usr
count=0
failed=0

ok () { # name command ...
  what=$1
  shift
  count=$((count + 1))
  if "$@" >"$work/said" 2>&1; then
    echo "ok $count - $what"
  else
    echo "not ok $count - $what"
    sed 's/^/# /' "$work/said" | tail -n 20
    failed=1
  fi
}

flags () { # pkg-config's answer for what is installed
  env PKG_CONFIG_PATH="$prefix/lib/pkgconfig" pkg-config "$@"
}

# Symbols of a library that are for others, but for fnn_* and luaopen_fnn.
foreign () {
  nm -D --defined-only "$1" | awk '$3 !~ /^(fnn_|luaopen_fnn)/ { print $3 }' |
    grep -vE '^(_init|_fini|_edata|_end|__bss_start)$'
}

exports_only_ours () {
  ! foreign "$1"
}

needs () {
  readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

lacks_liblua () {
  ! needs "$1" | grep -i lua
}

# What a library must not do: end the process, print, catch signals, change
# the locale.  abort has one use, at the end of a panic.
does_not_call () { # archive pattern
  ! nm -u "$1" | awk '{ print $2 }' | grep -E "^($2)\$"
}

only_the_panic_aborts () { # archive
  ! nm -A -u "$1" | awk '$NF == "abort" || $NF == "__assert_fail"' |
    grep -v ':context.o:'
}

# The variables of an archive that may be written, but for the pool of
# threads, the devices, what the environment said at the start, and the
# functions of cairo once they are found.
globals () {
  objdump -t "$1" | awk '$0 ~ / O / && $0 ~ /[ \t]\.(bss|data)/ &&
    $0 !~ /\.rel\.ro/ { print $NF }' |
    grep -vE '^(pool|cpu|devices|cache_off|cairo)$'
}

holds_no_state () {
  ! globals "$1"
}

compile_host () { # compiler, pkg-config's options, more
  compiler=$1
  how=$2
  shift 2
  # shellcheck disable=SC2046,SC2086  # flags are words
  $compiler "$@" $(flags --cflags fnn) "$work/host.c" -x none -o "$work/host" \
    $(flags --libs $how fnn) -Wl,-rpath,"$prefix/lib"
}

host_works () {
  compile_host "$@" && [ "$("$work/host")" = "6 of 0.1.0" ]
}

# There is one, or none on this machine, but it is no build without.
static_host_knows_cards () {
  compile_host "${CC:-cc}" --static && "$work/host" cuda |
    grep -v 'this build of fnn has no CUDA'
}

# An example of a host, compiled as its first lines say, and run.
example_works () { # compiler, package, file, more
  compiler=$1 package=$2 file=$3
  shift 3
  # shellcheck disable=SC2046  # flags are words
  $compiler "$@" "examples/embed/$file" -x none -o "$work/example" \
    $(flags --cflags --libs "$package") -lpthread \
    -Wl,-rpath,"$prefix/lib" && timeout 100 "$work/example"
}

cat >"$work/host.c" <<'END'
#include <fnn.h>
#include <stdio.h>

static void work (void *ud) {
  float three[3] = { 1, 2, 3 };
  int64_t shape[1] = { 3 };
  fnn_Tensor *x = fnn_tensor(FNN_F32, 1, shape, three);
  *(double *)ud = fnn_item(fnn_sum(x, 0, NULL, false));
}

static void ask (void *ud) { *(const fnn_Device **)ud = fnn_device("cuda"); }

int main (int argc, char **argv) {
  fnn_Context *c = fnn_open(NULL);
  const fnn_Device *d;
  double sum = 0;
  if (c == NULL) return 1;
  fnn_use(c);
  (void)argv;
  if (argc > 1) /* what it says of a card */
    return puts(fnn_pcall(ask, &d) == FNN_OK ? "there" : fnn_message()), 0;
  if (fnn_pcall(work, &sum) != FNN_OK) {
    fprintf(stderr, "%s\n", fnn_message());
    return 1;
  }
  fnn_close(c);
  printf("%g of %s\n", sum, FNN_VERSION);
  return 0;
}
END

# A host that links libfnn.so, with states that require fnn.so: in a callback
# from the engine of the one, the other knows the context, so they are one.
cat >"$work/guest.c" <<'END'
#include <fnn.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

static fnn_Context *seen;

static int see (lua_State *L) {
  seen = fnn_current();
  lua_pushnil(L);
  return 1;
}

static lua_State *open_state (void) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "see", see);
  return L;
}

static const char *run (lua_State *L, const char *script) {
  if (luaL_dostring(L, script) == LUA_OK) return "";
  return lua_tostring(L, -1);
}

static const char script[] =
  "local fnn = require 'fnn'\n"
  "local y = fnn.Param(fnn.ones(1000)) * 2\n"
  "y:register_hook(see)\n"
  "y:sum():backward()\n"
  "kept = fnn.ones(1000)\n"
  "return fnn.memory().live\n";

int main (void) {
  lua_State *a = open_state(), *b = open_state(), *c = open_state();
  fnn_Context *of_a, *mine = fnn_open(NULL);
  const char *said;
  if (mine == NULL || *(said = run(a, script)) != 0) return puts(said), 1;
  of_a = seen;
  if (of_a == NULL || of_a == mine) return puts("two engines"), 1;
  if (fnn_current() != NULL) return puts("a context is left"), 1;
  if (*(said = run(b, script)) != 0) return puts(said), 1;
  if (seen == of_a) return puts("two states share a context"), 1;
  lua_close(a);
  if (*(said = run(b, "kept:add_(1)")) != 0) return puts(said), 1;
  lua_pushliteral(c, "9.9.9");
  lua_setfield(c, LUA_REGISTRYINDEX, "fnn.version");
  said = run(c, "require 'fnn'");
  puts(said);
  if (strstr(said, "9.9.9") == NULL || strstr(said, FNN_VERSION) == NULL)
    return 1;
  lua_close(c);
  lua_close(b);
  fnn_close(mine);
  return 0;
}
END

guest_works () {
  lua=$(sed -n 's/^Requires:.*\(lua[^ ]*\).*/\1/p' \
    "$prefix/lib/pkgconfig/fnn-lua.pc")
  # shellcheck disable=SC2046  # flags are words
  ${CC:-cc} "$work/guest.c" -o "$work/guest" $(flags --cflags --libs fnn) \
    $(pkg-config --cflags --libs "${lua:-lua5.4}") \
    -Wl,-rpath,"$prefix/lib" &&
    env LUA_CPATH="$prefix/lib/lua/5.4/?.so" "$work/guest"
}

ok "make install" make install PREFIX="$prefix"
for f in bin/fnn lib/libfnn.a lib/libfnn.so lib/libfnn.so.0 include/fnn.h \
  lib/lua/5.4/fnn.so lib/pkgconfig/fnn.pc \
  lib/pkgconfig/fnn-lua.pc share/doc/fnn/LICENSE; do
  ok "installs $f" test -e "$prefix/$f"
done
ok "the soname is libfnn.so.0" sh -c \
  "readelf -d '$prefix/lib/libfnn.so' | grep -F '[libfnn.so.0]'"
ok "libfnn.so exports fnn_* only" exports_only_ours "$prefix/lib/libfnn.so"
ok "fnn.so exports luaopen_fnn only" exports_only_ours \
  "$prefix/lib/lua/5.4/fnn.so"
ok "fnn.so does not link liblua" lacks_liblua "$prefix/lib/lua/5.4/fnn.so"
ok "libfnn.so does not link liblua" lacks_liblua "$prefix/lib/libfnn.so"
ok "the library never exits" does_not_call "$prefix/lib/libfnn.a" \
  'exit|_exit|_Exit|quick_exit'
ok "only a panic aborts" only_the_panic_aborts "$prefix/lib/libfnn.a"
[ "${CUDA:-0}" != 0 ] || ok "the library has no other global state" \
  holds_no_state "$prefix/lib/libfnn.a"
ok "the library moves no thread of its host" does_not_call \
  "$prefix/lib/libfnn.a" 'sched_setaffinity'
ok "the library never prints" does_not_call "$prefix/lib/libfnn.a" \
  'printf|puts|putchar|perror|vprintf|stdout|__printf_chk'
ok "the library catches no signals" does_not_call "$prefix/lib/libfnn.a" \
  'signal|sigaction|setlocale'

for header in "$prefix"/include/*.h; do
  name=$(basename "$header")
  case $name in
    fnnlib.h) more=$(pkg-config --cflags lua5.4) ;;
    *) more= ;;
  esac
  # shellcheck disable=SC2086  # words
  ok "$name compiles alone as C11" ${CC:-cc} -std=c11 -pedantic -Wall -Wextra \
    -Werror -fsyntax-only $more -x c "$header"
  # shellcheck disable=SC2086  # words
  ok "$name compiles alone as C++" ${CXX:-c++} -std=c++11 -Wall -Wextra \
    -Werror -fsyntax-only $more -x c++ "$header"
done
ok "a C host links by pkg-config" host_works "${CC:-cc}" ""
ok "a C++ host links by pkg-config" host_works "${CXX:-c++}" "" -x c++
for compiler in "${CC:-cc}" "${CXX:-c++} -x c++"; do
  ok "examples/embed/engine.c by $compiler" example_works "$compiler" fnn \
    engine.c
  ok "examples/embed/host.c by $compiler" example_works "$compiler" fnn-lua \
    host.c
done
ok "a host of libfnn.so and its states' fnn.so are one engine" guest_works
mkdir "$work/hidden"
mv "$prefix"/lib/libfnn.so* "$work/hidden"
ok "a static host links by pkg-config --static" host_works "${CC:-cc}" \
  --static
[ "${CUDA:-0}" = 0 ] || ok "a static host knows of cards" \
  static_host_knows_cards
mv "$work/hidden"/* "$prefix/lib"

cd / || exit 2
ok "stock Lua requires it" env LUA_CPATH="$prefix/lib/lua/5.4/?.so" lua5.4 -e \
  'local fnn = require "fnn"; assert(fnn.ones{2, 3}:sum():item() == 6)'
ok "the program runs alone, from any folder" env -i "$prefix/bin/fnn" -e \
  'local fnn = require "fnn"; assert(fnn.ones{2, 3}:sum():item() == 6)'
ok "the program takes fnn.so for the engine it has" env \
  MODULE="$prefix/lib/lua/5.4/fnn.so" "$prefix/bin/fnn" -e '
    local fnn = require "fnn"
    local open = assert(package.loadlib(os.getenv "MODULE", "luaopen_fnn"))
    assert(open "fnn" == fnn)'

cd "$here" || exit 2
ok "stages under DESTDIR" make install-strip PREFIX=/usr DESTDIR="$work/stage"
ok "a staged fnn.pc speaks of the prefix" grep -qx 'prefix=/usr' \
  "$work/stage/usr/lib/pkgconfig/fnn.pc"
for f in bin/fnn lib/libfnn.a lib/libfnn.so lib/lua/5.4/fnn.so; do
  ok "install-strip leaves nothing for debuggers in $f" sh -c \
    "! readelf -SW '$work/stage/usr/$f' | grep -F .debug_"
done
ok "a stripped program runs" "$work/stage/usr/bin/fnn" -e \
  'local fnn = require "fnn"; assert(fnn.ones{2, 3}:sum():item() == 6)'
ok "stock Lua requires a stripped module" env \
  LUA_CPATH="$work/stage/usr/lib/lua/5.4/?.so" lua5.4 -e \
  'local fnn = require "fnn"; assert(fnn.ones{2, 3}:sum():item() == 6)'
ok "make uninstall" make uninstall PREFIX="$prefix"
ok "uninstalling leaves no file" sh -c "! find '$prefix' -type f | grep ."

echo "1..$count"
exit $failed
