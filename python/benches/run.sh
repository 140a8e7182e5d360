#!/bin/bash
# Runs the benches in an environment of each FlyDSL, with the wheel that `make wheel` made.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$(realpath "${VENV_ROOT:-.venv}")
export ROCM_PATH=$root/rocm
for version in 0.1.8 0.5.0; do
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    /usr/bin/python3 -m venv --without-pip --system-site-packages "$folder"
    "$root/flydsl-$version/bin/python" -m pip --python "$folder/bin/python" --quiet \
        --disable-pip-version-check install --no-deps python/target/wheels/siteline-*.whl
    packages=$(echo "$folder"/lib/python*/site-packages)
    echo "$root/flydsl-$version"/lib/python*/site-packages > "$packages/front_end.pth"
    "$folder/bin/python" python/benches/compile_time.py
    rm -rf "$folder"
done
