#!/bin/bash
# Makes the virtual environment .venv/NAME, or does nothing when it is up to date.
#
#   tools/venv.sh flydsl-0.5.0|flydsl-0.1.8|triton|iree|wheel|rocm ...
#
# `wheel` builds and tests the Python package. `rocm` is no Python environment but the folder
# that ROCM_PATH must name: FlyDSL looks there for the linker and for the device libraries. The
# FlyDSL environments bring it along.
# VENV_ROOT names another place than .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
venv_root=${VENV_ROOT:-.venv}
python=/usr/bin/python3
llvm=/usr/lib/llvm-22
bitcode=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode

requirements() {
    case $1 in
    flydsl-0.5.0) echo flydsl==0.5.0 ;;
    flydsl-0.1.8) echo flydsl==0.1.8 ;;
    triton) echo triton==3.9.0 ;;
    iree) echo iree-base-compiler==3.13.0 ;;
    wheel) echo "maturin==1.16.0 pytest==9.2.0 pluggy==1.7.0 iniconfig==2.3.1 packaging==26.4 pygments==2.21.0" ;;
    *) echo "venv.sh: no environment is called '$1'" >&2; return 2 ;;
    esac
}

# Debian's torch serves FlyDSL, which only makes tensors with it; PyPI's is gigabytes.
apt_packages() {
    case $1 in
    flydsl-*) echo python3-venv python3-torch python3-numpy ;;
    rocm) echo rocm-device-libs lld-22 llvm-22 ;;
    *) echo python3-venv ;;
    esac
}

apt_install() {
    local missing=() package
    for package; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    local root=()
    [ "$(id -u)" -eq 0 ] || root=(sudo)
    DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get -qq update >&2
    DEBIAN_FRONTEND=noninteractive "${root[@]}" \
        apt-get -qq install -y --no-install-recommends "${missing[@]}" >&2
}

# Two processes may want the same environment at once: one makes it, the other waits.
locked() {
    mkdir -p "$venv_root"
    exec 9>"$venv_root/$1.lock"
    flock 9
}

make_venv() {
    local name=$1 pins folder=$venv_root/$1 stamp options=()
    pins=$(requirements "$name")
    stamp=$(echo "$name $pins $("$python" --version)" | sha256sum | cut -d' ' -f1)
    [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ] && return
    # shellcheck disable=SC2046
    apt_install $(apt_packages "$name")
    case $name in flydsl-*) options+=(--system-site-packages) ;; esac
    rm -rf "$folder"
    "$python" -m venv "${options[@]}" "$folder"
    # shellcheck disable=SC2086
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps $pins >&2
    echo "$stamp" > "$folder/stamp"
}

# A device library that holds one constant: Debian's package is older than these chips.
constant_library() {
    local file=$1 symbol=$2 value=$3
    [ -e "$file" ] && return
    printf 'target triple = "amdgcn-amd-amdhsa"\n@%s = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 %s, align 4\n' \
        "$symbol" "$value" | "$llvm/bin/llvm-as" -o "$file"
}

make_rocm() {
    local folder=$venv_root/rocm stamp library isa
    stamp=$(sed -n '/^constant_library/,/^}/p; /^make_rocm/,/^}/p' "$0" | sha256sum | cut -d' ' -f1)
    [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ] && return
    # shellcheck disable=SC2046
    apt_install $(apt_packages rocm)
    rm -rf "$folder"
    mkdir -p "$folder/llvm/bin" "$folder/amdgcn/bitcode"
    ln -s "$llvm/bin/ld.lld" "$folder/llvm/bin/ld.lld"
    for library in "$bitcode"/*.bc; do
        ln -s "$library" "$folder/amdgcn/bitcode/"
    done
    # The number is major * 1000 + minor * 100 + stepping.
    for isa in 942:9402 950:9500 1100:11000 1200:12000 1201:12001 1250:12500; do
        constant_library "$folder/amdgcn/bitcode/oclc_isa_version_${isa%:*}.bc" \
            __oclc_ISA_version "${isa#*:}"
    done
    constant_library "$folder/amdgcn/bitcode/oclc_abi_version_600.bc" __oclc_ABI_version 600
    echo "$stamp" > "$folder/stamp"
}

[ $# -gt 0 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
for name; do
    if [ "$name" = rocm ]; then
        (locked rocm; make_rocm)
        continue
    fi
    requirements "$name" > /dev/null
    (locked "$name"; make_venv "$name")
    case $name in flydsl-*) (locked rocm; make_rocm) ;; esac
done
