#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The slow checks, beyond .ci/run. With names as arguments, only those stages:
#   check_all.sh tidy cppcheck analyzer tsan valgrind faults coverage install python chromium
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
jobs=$(nproc)
log=build-check
mkdir -p "$log"
passed=0
failed=0

# Configures and builds FOLDER with the arguments.
build_in() {
  local folder=$1
  shift
  cmake -S . -B "$folder" "$@" && cmake --build "$folder" -j "$jobs"
}

# Data races. OpenBLAS is not instrumented: its own locks are unknown to the sanitizer. Left out are
# the many fits of test_stress, test_limits and test_plan and the tests that run again on the soft
# device, which take the paths that the others take, and the longest of the fused maps.
tsan() {
  local fixed=()
  if setarch -R true 2>/dev/null; then fixed=(setarch -R); fi # the sanitizer needs a plain layout
  build_in build-tsan -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-g -O1" \
    -DUNICON_SANITIZE=thread &&
    TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp halt_on_error=1 ignore_noninstrumented_modules=1" \
      "${fixed[@]}" ctest --test-dir build-tsan --output-on-failure --timeout 2000 -j "$jobs" -L unit \
      -E 'test_(stress|limits|plan|map_fused|fork|.*_soft)$' # threads after a fork are beyond the sanitizer
}

# Reads of memory that was never written, which the other sanitizers do not see.
valgrind_demo() {
  build_in build &&
    DEMO_DIR=$log/demo DEMO_FIT="--preset fast --kernel angular --landmarks 100 --refine 1" UNICON_RUN="valgrind -q --error-exitcode=99 --leak-check=full \
--errors-for-leak-kinds=definite" scripts/demo.sh
}

tidy() {
  build_in build &&
    find src programs -name '*.c' -print0 |
    xargs -0 -n 1 -P "$jobs" clang-tidy -p build --quiet
}

# Vectors of GNU C look to cppcheck like arrays without a value.
cppcheck_all() {
  cppcheck --std=c11 --enable=warning,performance,portability --error-exitcode=1 --inline-suppr \
    --suppress=missingIncludeSystem --suppress=uninitvar:src/linalg/vec_body.h --quiet -j "$jobs" -Iinclude -Isrc src programs
}

# A shift of a vector of integers by 23 bits is fine, but this analyzer knows no vectors.
analyzer() {
  build_in build-analyzer -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_FLAGS="-fanalyzer -Wno-analyzer-shift-count-overflow" -DUNICON_WERROR=ON -DUNICON_TESTS=OFF
}

# Every allocation, read, write, rename, thread start and progress call fails once, and no byte
# leaks; .ci/run tries a part of them.
faults() {
  build_in build-faults -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-g -O1" \
    -DUNICON_SANITIZE=address,undefined -DUNICON_PROGRAMS=OFF &&
    UNICON_FAULTS=full ASAN_OPTIONS=detect_leaks=1 ctest --test-dir build-faults \
      --output-on-failure --timeout 3000 -j "$jobs" \
      -R 'test_(faults|faults_fit|check|probe|files|model|rows|pairs|pairs_file|options)$'
}

# Lines of src that the tests run: at least 95 %. docs/testing.md explains the rest. The file limit of
# cli_signals would stop the files of gcov too.
coverage() {
  build_in build-coverage -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Debug -DUNICON_COVERAGE=ON &&
    lcov --quiet --zerocounters --directory build-coverage &&
    ctest --test-dir build-coverage --output-on-failure -j "$jobs" -E cli_signals &&
    lcov --quiet --capture --directory build-coverage --output-file "$log/all.info" &&
    lcov --quiet --extract "$log/all.info" "$PWD/src/*" --output-file "$log/src.info" &&
    lcov --list "$log/src.info" &&
    lcov --summary "$log/src.info" 2>&1 | awk '/lines/ { print "lines:", $2; bad = $2 + 0 < 95 } END { exit bad }'
}

install_test() {
  build_in build && tests/install/run.sh build
}

# The package on every Python that is here; torch and onnx on one.
python_test() {
  build_in build && scripts/check_python.sh
}

# The CUDA plugin without a GPU; without CUDA's headers there is nothing to check.
emulated() {
  command -v nvcc || { echo "CUDA's toolkit is not installed"; return 0; }
  scripts/check_emulated.sh --all
}

# Reports in a browser; pages and screenshots stay in build-check/report.
chromium_test() {
  build_in build && tests/report/run.sh build/unicon "$log/report"
}

# stage NAME FUNCTION: runs it with its output in a file, and shows that if it failed.
stage() {
  local name=$1 start=$SECONDS
  if "$2" >"$log/$name.log" 2>&1; then
    passed=$((passed + 1))
    echo "$name: ok ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    tail -n 60 "$log/$name.log"
    echo "$name: failed ($((SECONDS - start)) s), all of it in $log/$name.log"
  fi
}

scripts/setup.sh --all || exit 1
if [ $# -eq 0 ]; then
  set -- tidy cppcheck analyzer tsan valgrind faults coverage install emulated python chromium
fi
for name in "$@"; do
  case $name in
    tsan | tidy | analyzer | faults) stage "$name" "$name" ;;
    valgrind) stage valgrind valgrind_demo ;;
    cppcheck) stage cppcheck cppcheck_all ;;
    coverage)
      stage coverage coverage
      sed -n '$p' "$log/coverage.log"
      ;;
    install) stage install install_test ;;
    chromium) stage chromium chromium_test ;;
    emulated) stage emulated emulated ;;
    python)
      stage python python_test
      grep -E "^(==|[0-9]+ passed|.* skipped$)" "$log/python.log"
      ;;
    *) echo "check_all.sh: unknown stage $name" >&2; exit 2 ;;
  esac
done
echo "$passed passed, $failed failed, $SECONDS s"
[ "$failed" = 0 ]
