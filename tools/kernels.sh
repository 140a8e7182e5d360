#!/bin/bash
# Compiles the FlyDSL and Triton examples into target/kernels, leaving alone what is up to date:
#
#   target/kernels/flydsl-VERSION/NAME_CHIP.hsaco   code object, with debug info
#   target/kernels/flydsl-VERSION/NAME_CHIP.mlir    frontend IR, generic form
#   target/kernels/triton/NAME_CHIP.hsaco
#
# An argument names one of these folders (flydsl-0.5.0, flydsl-0.1.8, triton); without, all.
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/kernels
venv_root=${VENV_ROOT:-.venv}

# Runs a command unless its output was made from the same sources, compiler and tools.
compile() {
    local output=$1 environment=$2 source=$3
    shift 3
    local stamp
    stamp=$({ cat "$source" tools/frontend_dump.py "$venv_root/$environment/stamp"
        cat examples/triton/build.py; } | sha256sum | cut -d' ' -f1)
    if [ -e "$output.hsaco" ] && [ "$(cat "$output.stamp" 2>/dev/null)" = "$stamp" ]; then
        return
    fi
    mkdir -p "$(dirname "$output")"
    echo "kernels.sh: $output" >&2
    if ! "$@" > "$output.log" 2>&1; then
        cat "$output.log" >&2
        return 1
    fi
    rm "$output.log"
    echo "$stamp" > "$output.stamp"
}

flydsl() {
    local version=$1 example chip output
    tools/venv.sh "flydsl-$version"
    for example in examples/flydsl/*.py; do
        for chip in gfx942 gfx950; do
            output=$out/flydsl-$version/$(basename "$example" .py)_$chip
            compile "$output" "flydsl-$version" "$example" tools/frontend_dump.py "$example" \
                --flydsl "$version" --chip "$chip" --ir "$output.mlir" --hsaco "$output.hsaco"
        done
    done
}

triton() {
    local example name chips chip
    tools/venv.sh triton
    export TRITON_CACHE_DIR=$PWD/$out/triton/cache
    for example in examples/triton/*.py; do
        name=$(basename "$example" .py)
        case $name in
        build) continue ;;
        wmma_*) chips=gfx1201 ;;
        matmul | attention) chips="gfx942 gfx950" ;;
        *) chips=gfx942 ;;
        esac
        for chip in $chips; do
            compile "$out/triton/${name}_$chip" triton "$example" \
                "$venv_root/triton/bin/python" "$example" --chip "$chip" -o "$out/triton"
        done
    done
}

[ $# -gt 0 ] || set -- flydsl-0.5.0 flydsl-0.1.8 triton
for folder; do
    case $folder in
    flydsl-*) flydsl "${folder#flydsl-}" ;;
    triton) triton ;;
    *) echo "kernels.sh: nothing is made into '$folder'" >&2; exit 2 ;;
    esac
done
