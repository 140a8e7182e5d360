#!/bin/bash
# Makes test/fixtures/frontend anew; with --check only says whether it is what the tools make now.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=test/fixtures/frontend
if [ "${1:-}" = --check ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
for version in 0.5.0 0.1.8; do
    tools/frontend_dump.py examples/flydsl/flash_attention.py --chip gfx942 \
        --flydsl "$version" --ir "$folder/flydsl_${version//./_}.mlir"
done
(cd "$folder" && sha256sum flydsl_*.mlir) > "$folder/SHA256SUMS"
[ "$folder" = test/fixtures/frontend ] || diff -rq "$folder" test/fixtures/frontend
