#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Image-text retrieval on Flickr8k features, official split: fitted on train, chosen on dev, test
# read once per row. Needs UNICON_DATA; prints a Markdown table.
#
#     UNICON_DATA=DIR experiments/flickr8k.sh [row ...]      rows: fast paper paper2 angular auto best sgd
set -eu
cd "$(dirname "$0")/.."
unicon=${UNICON:-build/unicon}
data=${UNICON_DATA:-}/flickr8k-inceptionv3-use
[ -e "$data/image.train.npy" ] || { echo "skipped: set UNICON_DATA to the folder of the features"; exit 0; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
train="$data/image.train.npy $data/text.train.npy --y-per-x 5"
dev="--val-x $data/image.dev.npy --val-y $data/text.dev.npy"

# row NAME MODEL SECONDS: evaluates on test and prints the row.
row() {
  "$unicon" eval "$2" "$data/image.test.npy" "$data/text.test.npy" --y-per-x 5 --json >"$out/eval.json"
  python3 - "$1" "$3" "$out/eval.json" <<'PYTHON'
import json, sys
name, seconds, path = sys.argv[1:]
j = json.load(open(path))
x, y = j["x_to_y"], j["y_to_x"]
mean = [(x[k] + y[k]) / 2 for k in ("hit@1", "hit@10")]
print(f"| {name} | {x['hit@1']:.3f} | {y['hit@1']:.3f} | {x['hit@10']:.3f} | {y['hit@10']:.3f} "
      f"| {mean[0]:.3f} | {mean[1]:.3f} | {float(seconds):.1f} |")
PYTHON
}

# fit NAME OPTIONS...: sets `seconds`, leaves $out/NAME.safetensors and $out/NAME.json.
fit() {
  local name=$1
  shift
  # shellcheck disable=SC2086
  "$unicon" fit $train -o "$out/$name.safetensors" --json "$@" >"$out/$name.json"
  seconds=$(python3 -c "import json,sys; print(json.load(open(sys.argv[1]))['seconds'])" "$out/$name.json")
}

meta() { # meta NAME KEY
  python3 -c "import json,sys; print(json.load(open(sys.argv[1]))['metadata'].get(sys.argv[2], ''))" "$out/$1.json" "$2"
}

# Dev score of a model: mean over both directions of (mrr + hit@10) / 2.
score() {
  "$unicon" eval "$1" "$data/image.dev.npy" "$data/text.dev.npy" --y-per-x 5 --json | python3 -c "
import json, sys
j = json.load(sys.stdin)
print(sum(j[d][k] for d in ('x_to_y', 'y_to_x') for k in ('mrr', 'hit@10')) / 4)"
}

run_fast() { fit fast --preset fast; row "\`fast\`" "$out/fast.safetensors" "$seconds"; }
run_paper() { fit paper --preset paper; row "\`paper\`" "$out/paper.safetensors" "$seconds"; }
run_paper2() {
  fit paper2 --preset paper --center on --split .5 --iterations 0 --batch full
  row "\`paper\`, centred, split .5, moment weights" "$out/paper2.safetensors" "$seconds"
}
run_angular() {
  local best=0 chosen=0
  for ridge in .001 .003 .01 .03; do
    fit "a$ridge" --preset fast --kernel angular --map nystrom --landmarks 2000 --rank 256 --ridge $ridge
    [ $ridge != .01 ] || row "angular, 2000 landmarks, ridge .01" "$out/a$ridge.safetensors" "$seconds"
    local now
    now=$(score "$out/a$ridge.safetensors")
    if python3 -c "import sys; sys.exit(not $now > $best)"; then best=$now chosen=$ridge; fi
  done
  row "angular, 2000 landmarks, ridge $chosen by dev" "$out/a$chosen.safetensors" "$seconds"
}
run_auto() {
  for seed in 0 1 2; do
    # shellcheck disable=SC2086
    fit "auto$seed" --preset auto --seed $seed $dev
    row "\`auto\`, seed $seed: $(meta "auto$seed" auto_chosen)" "$out/auto$seed.safetensors" "$seconds"
  done
}
run_best() {
  # shellcheck disable=SC2086
  fit best --preset best $dev
  row "\`best\`: $(meta best auto_chosen)" "$out/best.safetensors" "$seconds"
}
# The SGD-CLIP linear head: AdamW from a random start, three step lengths, early stop on dev.
run_sgd() {
  local best=0 chosen=0 total=0
  for rate in .01 .03 .1; do
    # shellcheck disable=SC2086
    fit "sgd$rate" --preset fast --start random --metric none --refine 40 --refine-batch 1000 \
      --refine-rate $rate --refine-decay .01 --refine-patience 5 $dev
    local now
    now=$(score "$out/sgd$rate.safetensors")
    echo "<!-- rate $rate: dev score $now, $seconds s, best epoch $(meta "sgd$rate" refine_best_epoch) -->"
    total=$(python3 -c "print($total + $seconds)")
    if python3 -c "import sys; sys.exit(not $now > $best)"; then best=$now chosen=$rate; fi
  done
  row "SGD-CLIP linear, rate $chosen of three by dev" "$out/sgd$chosen.safetensors" "$total"
}

echo "| method | i→t @1 | t→i @1 | i→t @10 | t→i @10 | mean @1 | mean @10 | fit, tuning included, s |"
echo "|---|---|---|---|---|---|---|---|"
for name in ${*:-fast paper paper2 angular auto best sgd}; do "run_$name"; done
