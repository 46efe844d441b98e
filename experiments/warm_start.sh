#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Epochs that SGD-CLIP needs from our closed form, against a random start, to reach the best held-out
# score of the random start. Same engine, same step lengths, plain metric, mean of three seeds.
# Synthetic linear and nonlinear sets, and Flickr8k where UNICON_DATA is set. Markdown table.
set -eu
cd "$(dirname "$0")/.."
unicon=${UNICON:-build/unicon}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# compare NAME X Y VAL_X VAL_Y BATCH EPOCHS PAIRS...
compare() {
  local name=$1 x=$2 y=$3 vx=$4 vy=$5 batch=$6 epochs=$7
  shift 7
  for seed in 0 1 2; do
    sgd="--preset fast --metric none --refine $epochs --refine-batch $batch --refine-rate .03"
    sgd="$sgd --refine-decay .01 --refine-patience 8 --seed $seed --val-x $vx --val-y $vy --json"
    # shellcheck disable=SC2086
    "$unicon" fit "$x" "$y" "$@" $sgd --start random -o "$out/r.safetensors" >"$out/random.$seed.json"
    "$unicon" fit "$x" "$y" "$@" --preset fast -q -o "$out/s.safetensors" >/dev/null
    # shellcheck disable=SC2086
    "$unicon" fit "$x" "$y" "$@" $sgd --start "$out/s.safetensors" -o "$out/w.safetensors" >"$out/warm.$seed.json"
  done
  python3 - "$name" "$out" <<'PYTHON'
import json, sys
name, out = sys.argv[1:]
need_random, need_warm = [], []
for seed in range(3):
    log = lambda kind: [float(v) for v in json.load(open(f"{out}/{kind}.{seed}.json"))["metadata"]["refine_score_log"].split()]
    random, warm = log("random"), log("warm")
    goal = max(random)
    need_random.append(random.index(goal))
    need_warm.append(next((e for e, v in enumerate(warm) if v >= goal), len(warm)))
r, w = sum(need_random) / 3, sum(need_warm) / 3
print(f"| {name} | {r:.1f} | {w:.1f} | {w / r:.2f} |")
PYTHON
}

echo "| data | epochs, random start | epochs, our start | ratio |"
echo "|---|---|---|---|"
for kind in linear nonlinear; do
  "$unicon" synth $kind -o "$out/$kind" >/dev/null
  d=$out/$kind
  compare "synthetic $kind" "$d/x.train.npy" "$d/y.train.npy" "$d/x.test.npy" "$d/y.test.npy" 200 100
done
data=${UNICON_DATA:-}/flickr8k-inceptionv3-use
if [ -e "$data/image.train.npy" ]; then
  compare Flickr8k "$data/image.train.npy" "$data/text.train.npy" "$data/image.dev.npy" \
    "$data/text.dev.npy" 1000 40 --y-per-x 5
else
  echo "<!-- Flickr8k skipped: set UNICON_DATA -->"
fi
