#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on data that is here: the upper half of a handwritten digit finds its lower half.
#   UNICON      the command (build/unicon)
#   UNICON_RUN  what to run it under, for example valgrind
#   DEMO_DIR    where to write (a temporary folder)
#   DEMO_FIT    further options of fit
set -euo pipefail
cd "$(dirname "$0")/.."
unicon=${UNICON:-build/unicon}
out=${DEMO_DIR:-$(mktemp -d "${TMPDIR:-/tmp}/unicon-demo.XXXXXX")}
data=data/digits
mkdir -p "$out"

# Prints a command as it is typed, then runs it.
show() {
  printf '\n$ %s %s\n' "$unicon" "${*//"$out"/\$out}"
  # shellcheck disable=SC2086
  ${UNICON_RUN:-} "$unicon" "$@"
}

echo "1797 handwritten digits, each cut in two: x is the upper half, y the lower half (32 pixels)."
echo "A model is fitted on 1297 of them and asked, on the other 500, which halves belong together."
printf '\n$ out=%s\n' "$out"
# shellcheck disable=SC2086
show fit $data/upper.train.npy $data/lower.train.npy -o "$out/digits.safetensors" ${DEMO_FIT:-}
show eval "$out/digits.safetensors" $data/upper.test.npy $data/lower.test.npy
show search "$out/digits.safetensors" --query-side x $data/upper.test.npy $data/lower.test.npy -k 3 >"$out/search.txt"
head -n 9 "$out/search.txt"
echo "... the three best lower halves of each upper half; base = query is the right one"

cat <<END

The model is in the temporary folder $out. Next:
  $unicon fit YOUR_X.npy YOUR_Y.npy -o model.safetensors   your own embeddings, row i with row i
  $unicon fit --help-all                                   pairs, losses, presets and the formulas
END
