#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A C compiler for wheels that run on an older glibc than that of this machine: gcc compiles, and zig,
# which knows the symbols of every glibc, links. A function that the older one does not have is an error
# of the linker. scripts/wheels.sh --glibc VERSION uses it.
#   UNICON_GLIBC=2.28 ZIG="python3 -m ziglang" CC=scripts/cc_glibc.sh ...
set -euo pipefail
for word in "$@"; do
  case $word in
    -c | -E | -S | -M | -MM | -v | --version | -dump* | -print-*) exec gcc "$@" ;;
  esac
done

# What zig's linker has no word for. The version script of the library hides the same symbols.
words=()
while [ $# -gt 0 ]; do
  if [ "$1" = -Xlinker ] && [ "${2:-}" = --exclude-libs ]; then
    shift 4
    continue
  fi
  case $1 in
    -Wl,--exclude-libs* | -Wl,*dependency-file*) ;;
    *) words+=("$1") ;;
  esac
  shift
done
# libgcc: what gcc's code calls (the shared one is part of every Linux, but that of this machine asks for
# a newer glibc than is linked for, which says nothing about the one that will be there).
read -ra zig <<<"${ZIG:-zig}"
exec "${zig[@]}" cc -target "$(uname -m)-linux-gnu.${UNICON_GLIBC:?say which glibc: UNICON_GLIBC=2.28}" \
  "${words[@]}" -Wl,--as-needed -Wl,--allow-shlib-undefined \
  "$(gcc -print-file-name=libgcc.a)" "$(gcc -print-file-name=libgcc_s.so.1)"
