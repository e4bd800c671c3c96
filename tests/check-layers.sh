#!/bin/sh
# check-layers.sh - plants a violation of each rule that scripts/check-layers
# holds and looks whether it is reported, with its file and line.

here=$(cd "$(dirname "$0")/.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
count=0
failed=0

report () { # status name
  count=$((count + 1))
  if [ "$1" = 0 ]; then
    echo "ok $count - $2"
  else
    echo "not ok $count - $2"
    failed=1
  fi
}

# A small tree without fault.
plain () {
  rm -rf "$tree/src" "$tree/lua" "$tree/examples" "$tree/cuda"
  mkdir -p "$tree/src/core" "$tree/src/cpu" "$tree/src/ops" "$tree/src/io" \
    "$tree/src/nn" "$tree/src/optim" "$tree/src/data" "$tree/lua" \
    "$tree/examples/embed"
  echo '/* public */' >"$tree/src/fnn.h"
  echo '#include "fnn.h"' >"$tree/src/fnn_nn.h"
  echo '#include "../fnn.h"' >"$tree/src/core/core.h"
  for f in cpu ops io nn; do
    printf '#include <math.h>\n#include "../core/core.h"\n' \
      >"$tree/src/$f/$f.h"
  done
  printf '#include "nn.h"\n#include "../fnn_nn.h"\n' >"$tree/src/nn/linear.c"
  printf '#include "../fnn_nn.h"\n' >"$tree/src/optim/sgd.c"
  printf '#include <lua.h>\n#include "../src/io/io.h"\n' >"$tree/lua/lbox.h"
  echo '/* for io alone */' >"$tree/src/io/inner.h"
  echo '#include "inner.h"' >"$tree/src/io/file.c"
  echo '#include <fnn.h>' >"$tree/examples/embed/host.c"
}

# planted FILE LINE TEXT WHAT: an include at the end of FILE must be found.
planted () {
  plain
  printf '/* a line */\n#include %s\n' "$2" >"$tree/$1"
  said=$("$here/scripts/check-layers" "$tree")
  status=$?
  [ $status != 0 ] && case $said in "$1:2: "*"$3"*) true ;; *) false ;; esac
  found=$?
  [ $found = 0 ] || echo "# said: $said"
  report $found "$4"
}

plain
said=$("$here/scripts/check-layers" "$tree")
status=$?
[ $status = 0 ] && [ -z "$said" ] || echo "# said: $said"
report $status "a tree without fault passes"

planted src/core/bad.c '"../ops/ops.h"' "not up from core to ops" \
  "core does not include ops"
planted src/ops/bad.c '"../nn/nn.h"' "not up" "ops does not include nn"
planted src/io/bad.c '"../fnn_nn.h"' "not up" \
  "io does not include the modules' public header"
planted src/optim/bad.c '"../nn/nn.h"' "do not know each other" \
  "optim does not include nn"
planted src/ops/bad.c '"../cpu/cpu.h"' "its own alone" \
  "ops knows no device"
planted src/core/bad.c '"../../lua/lbox.h"' "not up" "core knows no binding"
planted src/nn/bad.c '"../io/inner.h"' "only io/io.h is for other" \
  "a folder shows one header"
planted src/nn/bad.c '<lua.h>' "knows no Lua" "src/ knows no lua.h"
planted src/nn/bad.c '"lauxlib.h"' "knows no Lua" \
  "src/ knows no lauxlib.h in quotes"
planted src/core/bad.c '<cuda_runtime.h>' "only cuda/" "src/ knows no CUDA"
planted lua/bad.c '<cublas_v2.h>' "only cuda/" "lua/ knows no CUDA"
planted src/nn/bad.c '"../nn/../core/gone.h"' "no such file" \
  "an include of nothing is found"
planted examples/embed/bad.c '"../../src/core/core.h"' "installed headers" \
  "examples include what is installed"
planted src/nn/bad.c '<fnn.h>' "by path" "the tree includes itself by path"

plain
mkdir "$tree/src/misc"
echo '/* new */' >"$tree/src/misc/thing.c"
said=$("$here/scripts/check-layers" "$tree")
case $said in
  "src/misc/thing.c:1: a folder without a rank"*) report 0 "a new folder" ;;
  *) echo "# said: $said"; report 1 "a new folder" ;;
esac

echo "1..$count"
exit $failed
