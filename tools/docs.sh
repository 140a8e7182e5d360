#!/usr/bin/env bash
# Writes docs/passes.md from passes/Passes.td; with --check, compares it.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${MLIR_SYS_220_PREFIX:-/usr/lib/llvm-22}
made=$(mktemp)
trap 'rm -f "$made"' EXIT
{
  echo '# Passes'
  echo
  echo 'Made from passes/Passes.td by tools/docs.sh. The pipeline `siteline` runs `siteline-propagate`'
  echo 'with the same options: `--pass-pipeline='"'"'builtin.module(siteline)'"'"'`.'
  echo
  "$prefix/bin/mlir-tblgen" -gen-pass-doc passes/Passes.td -I "$prefix/include" | sed 1d
} > "$made"

if [ "${1:-}" = --check ]; then
  diff -u docs/passes.md "$made" || {
    echo 'docs/passes.md is not what passes/Passes.td makes: run tools/docs.sh' >&2
    exit 1
  }
else
  cp "$made" docs/passes.md
fi
