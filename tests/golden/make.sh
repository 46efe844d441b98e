#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the golden files of a version, once: UNICON=build/unicon tests/golden/make.sh. Files that are
# there stay as they are.
set -eu
: "${UNICON:?set UNICON to the command}"
UNICON=$(cd "$(dirname "$UNICON")" && pwd)/$(basename "$UNICON")
cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$UNICON" synth linear -o "$scratch" --train 24 --test 5 --dim-x 4 --dim-y 3 --latent 2 --seed 1 >/dev/null
for side in x y; do [ -e $side.npy ] || cp "$scratch/$side.test.npy" $side.npy; done

# golden NAME OPTIONS...: the model and what it makes of x.npy and y.npy.
golden() {
  local name=$1
  shift
  [ ! -e "$name.safetensors" ] || return 0
  "$UNICON" fit "$scratch/x.train.npy" "$scratch/y.train.npy" -o "$name.safetensors" --preset fast --exponent 1 --balance off "$@" >/dev/null
  for side in x y; do
    "$UNICON" embed "$name.safetensors" --side $side $side.npy -o "$name.$side.npy" >/dev/null 2>&1
  done
}

golden linear --rank 2
golden plain --rank 2 --center off --normalize off --metric none
golden nystrom --rank 3 --kernel rbf --map nystrom --landmarks 6
golden poly --rank 3 --kernel poly --width 2 --map nystrom --landmarks 6
golden random --rank 3 --kernel matern32 --map random --features 8
golden arccos --rank 3 --kernel arccos1 --map random --features 8
golden fused --rank 2 --kernel angular --batch 12
golden softmax --rank 2 --balance softmax:5
golden csls --rank 3 --kernel angular --balance csls:4 --batch 12
golden quadratic --rank 2 --balance quadratic:5
