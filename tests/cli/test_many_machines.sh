#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The commands of docs/many-machines.md, and the Slurm example without Slurm.
. "$(dirname "$0")/cli.sh"
root=$UNICON_SOURCE_DIR
document=$root/docs/many-machines.md

mkdir bin image text
printf '#!/bin/sh\nexec %s "$@"\n' "$UNICON" >bin/unicon
chmod +x bin/unicon
export PATH=$PWD/bin:$PATH
run 0 synth linear -o synth --train 300 --val 150 --test 90 --noise 0.1
k=0
for name in train val test; do
  cp synth/x.$name.npy image/$k.npy
  npy repeat text/$k.npy synth/y.$name.npy 5
  k=$((k + 1))
done
cp image/2.npy image.val.npy
cp text/2.npy text.val.npy

awk '/^<!-- test: many machines -->/ { armed = 1; next }
     armed && /^```/ { inside = !inside; if (!inside) armed = 0; next }
     inside' "$document" >commands.sh
[ "$(grep -c '^unicon' commands.sh)" -ge 12 ] || fail "docs/many-machines.md has no commands"
bash -eu commands.sh >out 2>err </dev/null || fail "docs/many-machines.md: $(cat commands.sh)"
prints "pairs            2250"
prints "removed          150 rows of x, 750 rows of y, 750 pairs"
python3 -c "import json; assert json.load(open('forgotten.json'))['left']['rows_y'] == 1950"
grep -oE '\]\([^)# ]+' "$document" | cut -c3- | grep -v '^https:' | while read -r target; do
  [ -e "$root/docs/$target" ] || fail "$document links to $target, which is not there"
done

# Slurm: the same script, task by task; one task fails, and nothing is fitted from what is left of it.
mkdir slurm
cp -r image slurm/image
mkdir slurm/text
for k in 0 1 2; do cp synth/y.$(echo train val test | cut -d' ' -f$((k + 1))).npy slurm/text/$k.npy; done
cd slurm
for k in 0 1 2; do
  SLURM_ARRAY_TASK_ID=$k SLURM_CPUS_PER_TASK=1 bash "$root/examples/slurm.sh" sum >../out 2>../err ||
    fail "slurm.sh sum $k"
done
bash "$root/examples/slurm.sh" fit >../out 2>../err || fail "slurm.sh fit"
cd ..
prints "540 rows of 40 numbers, summed before"
cd slurm
rm model.safetensors
head -c 3000 parts/1.stats >cut && mv cut parts/1.stats
if bash "$root/examples/slurm.sh" fit >../out 2>../err; then cd .. && fail "a cut part was merged"; fi
cd ..
says "parts/1.stats"
absent slurm/model.safetensors
echo "many machines: ok"
