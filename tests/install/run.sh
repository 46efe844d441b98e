#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build into a temporary prefix and uses it from outside, in C and C++, by CMake and by
# pkg-config; then compares what the library exports with what the header declares.
#   run.sh BUILD_FOLDER
set -euo pipefail
build=$(realpath "${1:?usage: run.sh BUILD_FOLDER}")
here=$(realpath "$(dirname "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
strict=(-Wall -Wextra -Wpedantic -Werror)

cmake --install "$build" --prefix "$prefix" >"$scratch/install.log"
library=$(find "$prefix" -name 'libunicon.so')
libdir=$(dirname "$library")

# expect NAME COMMAND...: runs a consumer; it prints the version of the library.
version=$(sed -n 's/^#define UNICON_VERSION_[A-Z]* //p' "$prefix/include/unicon/unicon.h" | paste -sd.)
expect() {
  local name=$1 answer
  shift
  answer=$("$@")
  if [ "$answer" != "$version" ]; then
    echo "$name: printed '$answer' instead of the version $version" >&2
    exit 1
  fi
  echo "$name: ok"
}

cmake -S "$here/consumer" -B "$scratch/cmake" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_C_FLAGS="${strict[*]}" -DCMAKE_CXX_FLAGS="${strict[*]}" >"$scratch/cmake.log"
cmake --build "$scratch/cmake" >>"$scratch/cmake.log" || { cat "$scratch/cmake.log" >&2; exit 1; }
for program in "$scratch"/cmake/consumer_*; do
  expect "cmake, $(basename "$program")" "$program"
done

export PKG_CONFIG_PATH=$libdir/pkgconfig
read -ra flags < <(pkg-config --cflags --libs unicon)
read -ra static_flags < <(pkg-config --static --libs unicon | sed 's/-lunicon//')
cp "$here/consumer/consumer.c" "$scratch/consumer.cpp"
gcc -std=c11 "${strict[@]}" "$here/consumer/consumer.c" -o "$scratch/c" "${flags[@]}"
g++ -std=c++11 "${strict[@]}" "$scratch/consumer.cpp" -o "$scratch/cpp" "${flags[@]}"
gcc -std=c11 "${strict[@]}" -I"$prefix/include" "$here/consumer/consumer.c" -o "$scratch/static" \
  "$libdir/libunicon.a" "${static_flags[@]}"
expect "pkg-config, C" env LD_LIBRARY_PATH="$libdir" "$scratch/c"
expect "pkg-config, C++" env LD_LIBRARY_PATH="$libdir" "$scratch/cpp"
expect "pkg-config, static" "$scratch/static"

# Each header can be the only one, in C and in C++.
for header in unicon migrate stats tools; do
  for language in c++ c; do
    echo "#include <unicon/$header.h>" |
      gcc -x "$language" "${strict[@]}" -I"$prefix/include" -fsyntax-only -
  done
  echo "$header.h alone: ok"
done

# The exported functions are the declared ones, no more and no fewer.
cat "$prefix"/include/unicon/*.h | tr '\n' ' ' | tr ';' '\n' |
  sed -En 's/.*UNICON_(API|CALL) [^(]*[ *](unicon_[a-z0-9_]*)\(.*/\2/p' | sort >"$scratch/declared"
soname=$(basename "$(readlink -f "$library")" | cut -d. -f1-4)
nm -D --defined-only "$library" | awk '$2 ~ /[A-Z]/ && $2 != "A" {print $3}' | sort >"$scratch/versioned"
sed "s/@@UNICON_${soname#libunicon.so.}\$//" "$scratch/versioned" >"$scratch/exported"
if ! diff -u "$scratch/declared" "$scratch/exported"; then
  echo "exported symbols (+) differ from the functions the headers declare (-)" >&2
  exit 1
fi
echo "exported symbols: ok, $(wc -l <"$scratch/exported")"

# Inside the static library, too, every global name carries our prefix.
foreign=$(nm --defined-only "$libdir/libunicon.a" 2>/dev/null |
  awk 'NF == 3 && $2 ~ /[A-Z]/ && $3 !~ /^unicon_/ {print $3}' | sort -u)
if [ -n "$foreign" ]; then
  echo "global names without the prefix unicon_ in libunicon.a:" "$foreign" >&2
  exit 1
fi
echo "names in the static library: ok"

if [ -x "$prefix/bin/unicon" ]; then
  "$prefix/bin/unicon" --version >/dev/null
  for file in man/man1/unicon.1 bash-completion/completions/unicon zsh/site-functions/_unicon \
    fish/vendor_completions.d/unicon.fish; do
    if [ -s "$prefix/share/$file" ]; then echo "$file: ok"; else echo "$file: not there" >&2; exit 1; fi
  done
  bash -n "$prefix/share/bash-completion/completions/unicon"
fi
