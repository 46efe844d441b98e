#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a fit says of itself. Chance is that of the pairs it held out, whatever the pairs are, and a score
# that is hardly above it is said to be so; steps that were asked for and not taken are said not to be.
. "$(dirname "$0")/cli.sh"

# Noise: rows of x and y that have nothing in common, and rows that have.
npy write nx.npy f4 1500 32 1
npy write ny.npy f4 1500 24 2
run 0 synth linear -o synth --train 600 --val 200 --test 200 --dim-x 24 --dim-y 20
seq 0 3 1499 | awk '{ print $1 "\t" $1 }' >third.tsv
seq 1500 | awk '{ print ($1 * 7919) % 1500 % 10 }' >label.x
seq 1500 | awk '{ print ($1 * 104729) % 1009 % 10 }' >label.y

# chance: what the metadata of the last fit say; between LOW VALUE HIGH.
chance() { python3 -c "import json; print(json.load(open('out'))['metadata']['auto_chance'])"; }
between() { python3 -c "import sys; a, b, c = map(float, sys.argv[1:]); assert a < b < c" "$@" || fail "$last: $*"; }

for pairs in "" "--pairs third.tsv" "--x-labels label.x --y-labels label.y"; do
  # shellcheck disable=SC2086
  run 0 fit nx.npy ny.npy $pairs --preset fast -o noise.safetensors
  prints "; chance 0."
  says "chance ("
  says "do rows belong together"
done
# labels: the same from rows and from statistics that keep all of them
run 0 fit nx.npy ny.npy --x-labels label.x --y-labels label.y --preset fast --json -o noise.safetensors
rows=$(chance)
run 0 stats nx.npy ny.npy --x-labels label.x --y-labels label.y -o noise.stats
run 0 fit --from noise.stats --preset fast --json -o noise.safetensors
between "$(chance)" "$rows" 0.6
between 0.3 "$rows" 0.6
run 0 fit --from noise.stats --preset fast -o noise.safetensors
says "chance ("

# What belongs together is not warned of.
for source in "synth/x.train.npy synth/y.train.npy" "synth/x.train.npy synth/y.train.npy --val-x synth/x.val.npy --val-y synth/y.val.npy"; do
  # shellcheck disable=SC2086
  run 0 fit $source --preset fast -o good.safetensors
  prints "; chance 0.0"
  says_nothing
done

# ---- steps ----------------------------------------------------------------------------------
near="synth/x.train.npy synth/y.train.npy --preset fast --rank 5"
# shellcheck disable=SC2086
{
  run 0 fit $near --loss spectral --iterations 2 -o steps.safetensors
  prints "iterations       2 of 2 steps, loss "
  prints "; the model is that of step 2"
  run 0 fit synth/y.train.npy synth/y.train.npy --preset fast --temperature 5 --iterations 3 -o steps.safetensors -vv
  prints "iterations       1 of 3 steps, loss "
  if grep -q "step 0: .*held-out" err; then fail "a held-out score where nothing was held out"; fi
  run 0 fit $near --refine 2 --refine-rate 0.05 -o steps.safetensors
  prints "refine           2 of 2 epochs, loss "
  # A model has the losses of 511 epochs at most: what came after them is not told.
  run 0 fit $near --refine 600 --refine-rate 0.001 -o steps.safetensors
  if grep -q "refine           511 of" out; then fail "$last: the epochs of a log that is cut: $(cat out)"; fi
  run 0 fit $near -o steps.safetensors
  if grep -q "iterations\|refine" out; then fail "steps that nobody asked for"; fi
}
