#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build needs and says so. Nothing missing: no output.
#   setup.sh                what `make` and `make test` need
#   setup.sh --experiments  and what `make experiments` needs
#   setup.sh --ci           and what .ci/run needs
#   setup.sh --all          and what scripts/check_all.sh and the reports need
set -euo pipefail

level=${1:-}
case $level in
  '' | --experiments | --ci | --all) ;;
  *) echo "setup.sh: unknown argument $level; accepted: --experiments, --ci, --all" >&2; exit 2 ;;
esac

missing=()
optional=() # one check does without

# want PACKAGE TEST...: the package is missing if the test fails.
want() {
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
# wish PACKAGE TEST...: the same, but nothing fails where it cannot be installed.
wish() {
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || optional+=("$package")
}
command_exists() { command -v "$1"; }
library_exists() { pkg-config --exists "$1"; }
header_exists() { echo "#include <$1>" | cc -E -x c -; }
sanitizers_exist() { echo 'int main(void) { return 0; }' | clang -fsanitize=address -x c -o /dev/null -; }
venv_exists() { python3 -c 'import venv, ensurepip'; }

want gcc command_exists gcc
want libc6-dev header_exists stdlib.h
want make command_exists make
want cmake command_exists cmake
want pkg-config command_exists pkg-config
want libopenblas-pthread-dev library_exists openblas
want liblapacke-dev library_exists lapacke
want libjansson-dev library_exists jansson
want librandom123-dev header_exists Random123/philox.h
want liblbfgs-dev header_exists lbfgs.h
want libcmocka-dev library_exists cmocka
want scdoc command_exists scdoc
if [ "$level" = --experiments ]; then
  want python3 command_exists python3
  want python3-numpy python3 -c 'import numpy'
  want dataset-fashion-mnist test -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
fi
if [ "$level" = --ci ] || [ "$level" = --all ]; then
  want ninja-build command_exists ninja
  want g++ command_exists g++
  want binutils command_exists nm
  want git command_exists git
  want clang command_exists clang
  want clang-format command_exists clang-format
  want libclang-rt-dev sanitizers_exist
  want python3 command_exists python3
  want python3-venv venv_exists
  want locales test -e /usr/share/i18n/locales/de_DE
  wish libopenmpi-dev command_exists mpicc
  wish openmpi-bin command_exists mpirun
  wish abigail-tools command_exists abidiff
fi
if [ "$level" = --all ]; then
  want valgrind command_exists valgrind
  want clang-tidy command_exists clang-tidy
  want cppcheck command_exists cppcheck
  want lcov command_exists lcov
  want chromium command_exists chromium
  wish zsh command_exists zsh
  wish fish command_exists fish
  wish mkdocs command_exists mkdocs
fi

[ $((${#missing[@]} + ${#optional[@]})) -gt 0 ] || exit 0

# without: a check is skipped, and says so itself.
without() {
  echo "Not installed, so what needs it is skipped: ${optional[*]}"
  exit 0
}

if ! command -v apt-get >/dev/null; then
  [ ${#missing[@]} -gt 0 ] || without
  echo "Missing (Debian's names): ${missing[*]}. Please install them and run this again." >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then
  as_root=()
elif sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  [ ${#missing[@]} -gt 0 ] || without
  echo "Some packages are missing. Please run this line, then the command again:" >&2
  echo "  sudo apt-get install -y ${missing[*]}" >&2
  exit 1
fi

echo "Installing with apt-get: ${missing[*]} ${optional[*]}"
"${as_root[@]}" apt-get update -qq
# Some releases have the sanitizers only under a name with a version.
for i in "${!missing[@]}"; do
  if [ "${missing[i]}" = libclang-rt-dev ] && ! apt-cache show libclang-rt-dev >/dev/null 2>&1; then
    missing[i]=libclang-rt-14-dev
  fi
done
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" </dev/null
}
if [ ${#missing[@]} -gt 0 ]; then install "${missing[@]}"; fi
if [ ${#optional[@]} -gt 0 ]; then install "${optional[@]}" || without; fi
