#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on data that is here: the upper half of a handwritten digit finds its lower half.
#   UNICON      the command (build/unicon)
#   UNICON_RUN  what to run it under, for example valgrind
#   DEMO_DIR    where to write (build/demo)
#   DEMO_FIT    further options of fit
set -euo pipefail
cd "$(dirname "$0")/.."
unicon=${UNICON:-build/unicon}
out=${DEMO_DIR:-build/demo}
data=data/digits
model=$out/digits.safetensors
mkdir -p "$out"

run() {
  # shellcheck disable=SC2086
  ${UNICON_RUN:-} "$unicon" "$@"
}
# Prints a command as it is typed, then runs it.
show() {
  printf '\n$ %s %s\n' "$unicon" "$*"
  run "$@"
}

echo "1797 handwritten digits, each cut in two: x is the upper half, y the lower half (32 pixels)."
echo "A model is fitted on 1297 of them and asked, on the other 500, which halves belong together."
# shellcheck disable=SC2086
show fit $data/upper.train.npy $data/lower.train.npy -o "$model" ${DEMO_FIT:-}
show eval "$model" $data/upper.test.npy $data/lower.test.npy
show info "$model"

search="search $model --query-side x $data/upper.test.npy --base-side y $data/lower.test.npy -k 5"
printf '\n$ %s %s >%s\n' "$unicon" "$search" "$out/search.tsv"
# shellcheck disable=SC2086
run $search >"$out/search.tsv"
printf '$ head -n 11 %s\n' "$out/search.tsv"
head -n 11 "$out/search.tsv"

cat <<END

The model is $model. Next:
  $unicon fit YOUR_X.npy YOUR_Y.npy -o model.safetensors   your own embeddings, row i with row i
  $unicon fit --help                                       pairs, losses, presets and the formulas
END
