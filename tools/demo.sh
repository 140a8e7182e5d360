#!/usr/bin/env bash
# The main job on a real kernel: compiled as it is and with sites, before and after side by side,
# and the proof that no machine code changed.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
siteline=$target/debug/siteline
kernel=examples/flash_attention.mlir
out=$target/demo
mkdir -p "$out"

"$siteline" compile "$kernel" --chip gfx942 -g --no-sites -o "$out/before.hsaco"
"$siteline" compile "$kernel" --chip gfx942 -g -o "$out/after.hsaco"

echo "$kernel for gfx942: A without sites, B with sites"
"$siteline" diff "$out/before.hsaco" "$out/after.hsaco"
echo
echo "and the machine code:"
"$siteline" verify "$kernel" --chip gfx942
