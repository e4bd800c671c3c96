#!/bin/sh
# gpu-check.sh - rehearses scripts/gpu-check on the emulated card: its table is
# whole, and it fails when a part fails.  Prints TAP.

# shellcheck disable=SC2317  # functions are called by name
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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

rehearse () { # specs
  env GPU_CHECK_SPECS="$1" GPU_CHECK_EXAMPLES=simple_mlp \
    GPU_CHECK_ROWS='^one_numel' GPU_CHECK_NO_BUILD=1 FNN_BENCH_PYTHON=false \
    scripts/gpu-check --emulate --quick --output "$work/table"
}

says () { # pattern
  grep -E "$1" "$work/table" || { cat "$work/table"; false; }
}

cat >"$work/bad_spec.lua" <<'END'
describe("a kernel", function ()
  it("is wrong", function () assert.equal(1, 2) end)
end)
END

ok "the rehearsal succeeds" rehearse spec/cuda/device_spec.lua
ok "it says that it is one" says '^REHEARSAL.*no time here means anything'
ok "it has the date" says '^date +20[0-9-]+ [0-9:]+ UTC'
ok "it has the card" says '^card .*GiB, compute capability [0-9]+\.[0-9]'
ok "it has the driver" says '^driver .*CUDA [0-9]+\.[0-9]'
ok "it ran the parity suite" says '^parity suite +ok .*[1-9][0-9]* passed, 0'
ok "it ran an example" says '^examples/simple_mlp.lua +ok'
ok "it tells what it could not run" says '^compute-sanitizer +skipped'
ok "it measured, and says that it means nothing" says \
  '^\(emulated\) numel\(\), ns'
if rehearse "$work/bad_spec.lua" >"$work/out" 2>&1; then
  ok "a part that fails fails it" false
else
  ok "a part that fails fails it" says '^parity suite +FAILED'
fi

echo "1..$count"
exit $failed
