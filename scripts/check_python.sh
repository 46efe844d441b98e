#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel once, or takes the one that is given, then installs it in a fresh virtual environment
# of every CPython from 3.9 on that is here and runs the tests with it and with the command inside it; the
# last one also gets torch, onnx and vector indexes where pip finds them (UNICON_TORCH=no: without torch).
#   check_python.sh [FOLDER [WHEEL]]   FOLDER: where it all goes, build-python if not given
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build-python}
wheel=${2:-}
unset UNICON UNICON_LIBRARY PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1

# One interpreter for each version: on the path, or among those of pyenv.
interpreters=()
for minor in $(seq 9 30); do
  for python in "$(command -v "python3.$minor" || true)" \
    "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python "$(command -v python3 || true)"; do
    [ -x "$python" ] || continue
    version=$("$python" -c 'import sys; print(sys.implementation.name, sys.version_info[1])' 2>/dev/null || true)
    if [ "$version" = "cpython $minor" ] && "$python" -c 'import venv, ensurepip' 2>/dev/null; then
      interpreters+=("$python")
      break
    fi
  done
done
if [ ${#interpreters[@]} = 0 ]; then
  echo "check_python.sh: no CPython from 3.9 on is here" >&2
  exit 1
fi

rm -rf "$folder"
mkdir -p "$folder"
failed=0
for python in "${interpreters[@]}"; do
  version=$("$python" -c 'import platform; print(platform.python_version())')
  here=$folder/$version
  "$python" -m venv "$here"
  if [ -z "$wheel" ]; then
    "$here/bin/pip" wheel -q --no-deps -w "$folder/wheel" .
    wheel=$(echo "$folder"/wheel/*.whl)
  fi
  "$here/bin/pip" install -q pytest "$wheel"
  "$here/bin/pip" install -q --only-binary :all: scikit-build-core scipy scikit-learn safetensors tqdm pyarrow ||
    echo "$version: not all optional packages are here, their tests are skipped"
  if [ "$python" = "${interpreters[-1]}" ]; then
    more=(onnx onnxruntime faiss-cpu usearch hnswlib lancedb ml_dtypes polars pandas duckdb huggingface_hub
      langchain-core llama-index-core qdrant-client "psycopg[binary]" pgserver datasets pylance
      embedding-reader "dask[array,distributed]" ray mpi4py)
    if [ "${UNICON_TORCH:-yes}" = yes ]; then more+=(torch sentence-transformers); fi
    for package in "${more[@]}"; do
      "$here/bin/pip" install -q --only-binary :all: "$package" ||
        echo "$version: no $package here, its tests are skipped"
    done
    # It is Java and Python alone: its source is all there is.
    "$here/bin/pip" install -q pyspark || echo "$version: no pyspark here, its tests are skipped"
  fi
  echo "== CPython $version"
  "$here/bin/python" -m pytest -q -rs -p no:cacheprovider python/tests || failed=1
done
exit "$failed"
