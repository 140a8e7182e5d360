#!/usr/bin/env bash
# Installs what building and testing siteline needs and is missing: Debian packages, and a Rust
# that is new enough. Does nothing, quickly, when all is there.
#
# Usage: tools/setup.sh [build|test]
set -euo pipefail
cd "$(dirname "$0")/.."

want=${1:-build}
packages=(
  gcc g++ libc6-dev python3 ca-certificates
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools lld-22
  clang-22 libclang1-22 libclang-22-dev libzstd-dev zlib1g-dev libxml2-dev
)
# Another major of mlir-opt, which the plugin must refuse; it needs no libMLIR.
[ "$want" = test ] && packages+=(mlir-19-tools)

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo > /dev/null; then sudo "$@"
  else
    echo "siteline: error: '$*' must run as root: run 'make' as root, or install sudo" >&2
    exit 2
  fi
}

install() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' \
      || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  echo "installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
}

# The oldest Rust that siteline builds with; the same as in Cargo.toml.
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

new_enough() {
  local version
  version=$("$1" --version 2> /dev/null | awk '{print $2}') || return 1
  [ -n "$version" ] && [ "$(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1)" = "$oldest" ]
}

install "${packages[@]}"
# A user's own rustup is found even where its folder is not in PATH.
PATH=$PATH:$HOME/.cargo/bin
new_enough rustc && command -v cargo > /dev/null || install rustc-web cargo-web
new_enough rustc || {
  echo "siteline: error: no Rust of $oldest or newer: install one from your distribution or by rustup" >&2
  exit 2
}
