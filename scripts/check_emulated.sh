#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The CUDA plugin on the CPU (tests/emulated/emulated.h), where CUDA's headers are.
#   check_emulated.sh         the checks of its kernels
#   check_emulated.sh --all   and the threads of a block in reverse order, the tests of the library
#                             with it, and both under the address sanitizer
set -euo pipefail
cd "$(dirname "$0")/.."
all=${1:-}
jobs=$(nproc)

build_in() {
  local folder=$1
  shift
  cmake -S . -B "$folder" -DUNICON_WERROR=ON -DUNICON_CUDA_EMULATED=ON "$@" >/dev/null
  cmake --build "$folder" -j "$jobs" --target unicon_emulated cuda_check_emulated "${tests[@]/#/test_}"
}

# Tests of the library on the device; what they print is shown where one fails.
run_tests() {
  local folder=$1 failed=0
  for test in "${tests[@]}"; do
    UNICON_TEST_DEVICE=cuda UNICON_SOFT_FOLDER=$PWD/$folder/tests/emulated/lib \
      UNICON_SOURCE_DIR=$PWD "$folder/tests/test_$test" >"$folder/emulated.log" 2>&1 ||
      { cat "$folder/emulated.log"; failed=1; }
    echo "$folder: test_$test on the emulated GPU: $(tail -1 "$folder/emulated.log")"
  done
  return $failed
}

# The checks of the kernels; failures and the summary are shown.
run_checks() {
  "$1/cuda_check_emulated" --quick >"$1/checks.log" || { cat "$1/checks.log"; return 1; }
  echo "$1: $(grep -c '^ok' "$1/checks.log") checks of the kernels, $(tail -1 "$1/checks.log")"
}

tests=()
if [ "$all" != --all ]; then
  build_in build-emulated -DUNICON_TESTS=OFF -DUNICON_PROGRAMS=OFF
  run_checks build-emulated
  exit 0
fi
tests=(device bias search stats map fit model metrics solve refine loss check)
build_in build-emulated -DUNICON_TESTS=ON
run_checks build-emulated
EMULATED_ORDER=reverse run_checks build-emulated
run_tests build-emulated
tests=(device bias search stats map)
build_in build-emulated-asan -DCMAKE_BUILD_TYPE=Debug -DUNICON_SANITIZE=address,undefined
run_checks build-emulated-asan
run_tests build-emulated-asan
