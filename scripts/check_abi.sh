#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does the library still have the binary interface of cmake/abi? Functions of the stable headers must
# stay, with the same arguments, types and numbers; new ones are fine, and unicon/tools.h makes no
# promise. Needs abidw and abidiff of libabigail; without them it says so and is content.
#   check_abi.sh          compares
#   check_abi.sh --renew  writes cmake/abi anew
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  '' | --renew) ;;
  *) echo "check_abi.sh: unknown argument $1; accepted: --renew" >&2; exit 2 ;;
esac

if ! command -v abidw >/dev/null || ! command -v abidiff >/dev/null; then
  echo "abi: skipped: there is no abidw and abidiff (Debian's package abigail-tools)"
  exit 0
fi

# declared HEADER...: the functions they declare.
declared() {
  (cd include/unicon && cat "${@/%/.h}") | tr '\n' ' ' | tr ';' '\n' |
    sed -En 's/.*UNICON_(API|CALL) [^(]*[ *](unicon_[a-z0-9_]*)\(.*/\2/p'
}

# A plain build with debug information, in which no path of this machine is left.
build=build-abi
cmake -S . -B $build -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Debug -DUNICON_TESTS=OFF \
  -DUNICON_PROGRAMS=OFF -DCMAKE_C_FLAGS_DEBUG="-g -O0 -ffile-prefix-map=$PWD/=" >/dev/null
cmake --build $build -j "$(nproc)" --target unicon_shared >/dev/null

printf '[suppress_function]\n  symbol_name_regexp = ^(%s)$\n  drop = yes\n' \
  "$(declared tools | paste -sd'|')" >$build/tools.suppr
abidw --headers-dir include --suppressions $build/tools.suppr --drop-private-types \
  --drop-undefined-syms --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed \
  --no-write-default-sizes --exported-interfaces-only --type-id-style hash \
  --out-file $build/now.abi $build/lib/libunicon.so
count=$(grep -c "<elf-symbol .*type='func-type'" $build/now.abi)
stable=$(declared unicon migrate stats | wc -l)
if [ "$count" != "$stable" ]; then
  echo "abi: $count functions are exported beside those of unicon/tools.h, but the stable headers" \
    "declare $stable" >&2
  exit 1
fi

version=$(objdump -p $build/lib/libunicon.so | sed -n 's/.*SONAME *libunicon\.so\.//p')
known=cmake/abi/unicon-$version.abi
if [ "${1:-}" = --renew ]; then
  mkdir -p cmake/abi
  find cmake/abi -name '*.abi' -delete
  cp $build/now.abi "$known"
  echo "abi: wrote $known, $count functions"
  exit 0
fi
if [ ! -e "$known" ]; then
  echo "abi: there is no $known for this version: run scripts/check_abi.sh --renew and commit it" >&2
  exit 1
fi
if ! abidiff --no-added-syms --drop-private-types "$known" $build/now.abi; then
  cat >&2 <<'SENTENCE'
abi: the binary interface of the stable headers has changed (see above). Undo it if it was not meant.
If programs that are already linked still work (a member at the end of a sized struct, a number
behind those of an enumeration) or nothing of this version was released, run
    scripts/check_abi.sh --renew
and commit cmake/abi with the change; otherwise raise the minor version in unicon/unicon.h first.
SENTENCE
  exit 1
fi
echo "abi: ok, $count functions as in $known"
