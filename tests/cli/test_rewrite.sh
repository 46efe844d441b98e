#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Rewritten indexes: what --check looks at, and folders of shards that are written again.
. "$(dirname "$0")/cli.sh"

run 0 synth nonlinear -o d --train 400 --test 300 --dim-x 24 --dim-y 24 --latent 8 --noise 0.2
old=d/x.train.npy new=d/y.train.npy index=d/x.test.npy
run 0 migrate $old $new --into new -o moved
model=moved/model.safetensors

# ---- one file -------------------------------------------------------------------------------------

run 0 rewrite $model $index -o one.npy
run 0 rewrite $model $index -o one.npy --check
prints "300 rows of 24 numbers in one.npy are what was written"
# Of another index, or by another model, it is something else.
refused 1 "made with another source, 300 rows from row 0 on" rewrite $model $old -o one.npy --check
python3 - "$tests" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
import npy
for name in "x", "y":
    npy.save(name + ".npy", "f4", npy.load(f"d/{name}.train.npy")[1][:300])
PYTHON
run 0 migrate x.npy y.npy --into new -o less
refused 1 "made with another model" rewrite less/model.safetensors $index -o one.npy --check
printf x | dd of=one.npy bs=1 seek=5000 conv=notrunc 2>/dev/null
refused 1 "remove it and rewrite again" rewrite $model $index -o one.npy --check
refused 1 "remove it and rewrite again" rewrite $model $index -o one.npy

# ---- a folder -------------------------------------------------------------------------------------

check() { refused 1 "$1" rewrite $model $index -o shards --check; }
fresh() { rm -rf shards; run 0 rewrite $model $index -o shards --shard-rows 70; }
fresh
[ "$(ls shards | grep -c 'npy$')" = 5 ] || fail "five shards"
run 0 rewrite $model $index -o shards --check
prints "300 rows of 24 numbers in shards are what was written"
run 0 rewrite $model $index -o shards --shard-rows 70 --check --json
json "j['rows'] == 300 and j['files'] == 5 and j['checked']"
refused 1 "shards has shards of 70 rows, not of 60: give --shard-rows 70" \
  rewrite $model $index -o shards --shard-rows 60 --check
refused 1 "another source" rewrite $model $old -o shards --check
refused 1 "another model" rewrite less/model.safetensors $index -o shards --check
printf x | dd of=shards/3.npy bs=1 seek=5000 conv=notrunc 2>/dev/null
check "shards/3.npy does not hold what was written"
fresh
rm shards/4.npy shards/4.npy.json
check "shards/4.npy, which begins with row 280, is not there"
run 0 rewrite $model $index -o shards --shard-rows 70
prints "280 of them were there already"
run 0 rewrite $model $index -o shards --check
rm shards/2.npy.json
check "shards/2.npy has no sidecar"
fresh
rm shards/2.npy shards/2.npy.json
mv shards/3.npy shards/2.npy
mv shards/3.npy.json shards/2.npy.json
check "shards/2.npy is not $index by this model: it was made with other rows, 70 rows from row 210 on"
fresh
cp shards/4.npy shards/5.npy
check "5.npy in the folder shards does not belong to this rewrite, which ends with 4.npy"
mv shards/5.npy shards/extra.npy
check "extra.npy in the folder shards does not belong"
rm -r shards
check "shards/0.npy, which begins with row 0, is not there"

# Shards of another size would stay beside those that are written.
fresh
before=$(cat shards/* | md5sum)
refused 1 "shards has shards of 70 rows, not of 140: give --shard-rows 70, or name another folder" \
  rewrite $model $index -o shards --shard-rows 140
refused 1 "give --shard-rows 70" rewrite $model $index -o shards --shard-rows 50
refused 1 "give --shard-rows 70" rewrite $model $index -o shards
[ "$(cat shards/* | md5sum)" = "$before" ] || fail "a refused rewrite wrote something"
mv shards/0.npy.json shards/0.npy.part.json # as when the first shard was stopped
refused 1 "give --shard-rows 70" rewrite $model $index -o shards
# An index that has grown replaces all of them, one that has shrunk would not.
fresh
run 0 rewrite $model $old -o shards --shard-rows 70
run 0 rewrite $model $old -o shards --check
refused 1 "5.npy in the folder shards does not belong to this rewrite, which ends with 4.npy: remove it" \
  rewrite $model $index -o shards --shard-rows 70
rm -r shards
run 0 rewrite $model $index -o shards # one shard that is not full
run 0 rewrite $model $old -o shards

# ---- names ----------------------------------------------------------------------------------------

for name in index.fbin index.npyy a.folder/index.v2; do
  refused 2 "$name is neither an .npy file nor a folder" rewrite $model $index -o $name
  absent $name
done
run 0 rewrite $model $index -o index.v2/
[ -s index.v2/0.npy ] || fail "a name that ends in / is a folder"
run 0 rewrite $model $index -o index.v2 --check
