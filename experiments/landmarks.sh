#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Landmarks drawn uniformly against landmarks by randomly pivoted Cholesky, at equal number: what they
# leave of the kernel's trace on the training rows, and retrieval on Flickr8k dev (test is not read),
# as a Markdown table on stdout.
#   UNICON_DATA  folder with flickr8k-inceptionv3-use/{image,text}.{train,dev}.npy; needed
#   UNICON       the command (build/unicon)
#   SEEDS        how many seeds (5)
#   LANDMARKS    how many landmarks (500)
set -euo pipefail
cd "$(dirname "$0")/.."
unicon=${UNICON:-build/unicon}
seeds=${SEEDS:-5}
landmarks=${LANDMARKS:-500}
data=${UNICON_DATA:-}/flickr8k-inceptionv3-use
if [ ! -e "$data/image.train.npy" ]; then
  echo "landmarks.sh: skipped: UNICON_DATA names no folder with flickr8k-inceptionv3-use" >&2
  exit 0
fi
if ! python3 -c 'import numpy' 2>/dev/null; then
  echo "landmarks.sh: skipped: python3 has no numpy" >&2
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for method in uniform pivot; do
  for ((seed = 0; seed < seeds; seed++)); do
    model=$folder/$method.$seed.safetensors
    "$unicon" fit "$data/image.train.npy" "$data/text.train.npy" --y-per-x 5 -o "$model" -q \
      --preset fast --kernel angular --map nystrom --landmarks "$landmarks" \
      --landmark-method $method --seed "$seed" >/dev/null
    "$unicon" eval "$model" "$data/image.dev.npy" "$data/text.dev.npy" --y-per-x 5 -q --json \
      >"$folder/$method.$seed.json"
  done
done
echo "Flickr8k dev, angular kernel, $landmarks landmarks, whitened, mean ± standard deviation of"
echo "$seeds seeds (\`experiments/landmarks.sh\`, $("$unicon" --version | head -n 1))."
echo
python3 experiments/landmarks.py "$folder" "$data"
