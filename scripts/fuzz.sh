#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes each target of tests/fuzz for SECONDS (60), starting from the stored inputs. New inputs
# stay in build-fuzz/corpus; an input that fails belongs into tests/fuzz/corpus once it is fixed.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}

scripts/setup.sh --ci
cmake -S . -B build-fuzz -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1" \
  -DCMAKE_C_COMPILER=clang -DUNICON_FUZZ=ON -DUNICON_PROGRAMS=OFF
cmake --build build-fuzz -j "$(nproc)"
for program in build-fuzz/fuzz/fuzz_*; do
  name=$(basename "$program")
  mkdir -p "build-fuzz/corpus/$name"
  echo "== $name, $seconds s"
  "$program" -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=20 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/$name-" "build-fuzz/corpus/$name" "tests/fuzz/corpus/$name"
done
