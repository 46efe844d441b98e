#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The main job from end to end: synth, fit, eval, embed, search, info; human text and JSON.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o demo --noise 0.05
prints "600 training and 400 test pairs in demo"
prints "unicon fit demo/x.train.npy demo/y.train.npy"
says_nothing
for part in train test; do for name in x y label; do [ -s demo/$name.$part.npy ] || fail "$name.$part"; done; done
[ "$(npy head demo/x.train.npy)" = "f4 600 40" ] || fail "x.train"
[ "$(npy head demo/y.test.npy)" = "f4 400 30" ] || fail "y.test"
[ "$(npy head demo/label.test.npy)" = "i8 400 1" ] || fail "label.test"
[ "$(npy show demo/label.train.npy | sort -u | wc -l)" -eq 3 ] || fail "three clusters"
[ "$(ls -A demo | wc -l)" -eq 6 ] || fail "files beside the six"
run 0 synth nonlinear -o other --train 20 --test 10 --dim-x 17 --seed 3 --json
json "j['train'] == 20 and j['test'] == 10 and j['x_width'] == 17 and j['kind'] == 'nonlinear'"
run 0 synth linear-released -o sorted --train 30 --val 10 --test 9 --json
json "j['val'] == 10 and j['y_width'] == 30"
[ "$(npy show sorted/label.val.npy | tr '\n' ' ')" = "0 0 0 0 1 1 1 1 2 2 " ] || fail "clusters are not in order"
run 0 synth nonlinear-released -o deep --train 20 --test 10
[ "$(npy head deep/y.train.npy)" = "f4 20 39" ] || fail "y of nonlinear-released"
refused 2 "linear, nonlinear" synth cubic -o third
absent third
refused 1 "no/folder" synth linear -o no/folder

# fit
run 0 fit demo/x.train.npy demo/y.train.npy -o model.safetensors
says_nothing
prints "600 rows of 40 numbers"
prints "pairs            600"
prints "model            model.safetensors"
prints "unicon eval model.safetensors"
[ "$(echo *model* .*model*)" = "model.safetensors .*model*" ] || fail "temporary files of the model are left"
run 0 fit demo/x.train.npy demo/y.train.npy --output=again.safetensors --json
says_nothing
json "j['model'] == 'again.safetensors' and j['pairs'] == 600 and j['x'] == {'rows': 600, 'width': 40}"
json "j['seconds'] >= 0 and j['memory_peak'] > 0 and len(j['spectrum']) == j['rank'] <= 256"
json "sorted(j['spectrum'], reverse=True) == j['spectrum']"
json "j['metadata'] and all(isinstance(v, str) for v in j['metadata'].values())"
cmp -s model.safetensors again.safetensors || fail "the same fit gave other bytes"

# eval
run 0 eval model.safetensors demo/x.test.npy demo/y.test.npy
says_nothing
for name in hit@1 hit@5 hit@10 recall@1 recall@5 recall@10 mrr map ndcg@10 median_rank mean_rank queries candidates; do
  grep -q "^$name " out || fail "eval lacks $name"
done
prints "chance"
run 0 eval model.safetensors demo/x.test.npy demo/y.test.npy --json
cp out eval.json
json "set(j) >= {'x_to_y', 'y_to_x'}"
json "all(0.9 < j[d]['hit@1'] <= j[d]['hit@5'] <= j[d]['hit@10'] <= 1 for d in ('x_to_y', 'y_to_x'))"
json "all(j[d]['queries'] == j[d]['candidates'] == 400 for d in ('x_to_y', 'y_to_x'))"
json "abs(j['x_to_y']['chance']['hit@10'] - 10 / 400) < 1e-9 and 'mrr' not in j['x_to_y']['chance']"
json "'ci' not in j['x_to_y']"
run 0 eval model.safetensors demo/x.test.npy demo/y.test.npy --json --ci
json "all(lo <= j['x_to_y'][n] <= hi for n, (lo, hi) in j['x_to_y']['ci'].items()) and 'hit@1' in j['y_to_x']['ci']"
run 0 eval model.safetensors demo/x.test.npy demo/y.test.npy --ci
grep -qE '^hit@1 .*\[[0-9.]+, [0-9.]+\]' out || fail "no interval in the table"

# embed, and evaluation of what it wrote
run 0 embed model.safetensors --side x demo/x.test.npy -o zx.npy
prints "zx.npy"
run 0 embed model.safetensors demo/y.test.npy --side=y -o zy.npy --json
json "j['rows'] == 400 and j['output'] == 'zy.npy' and j['unit'] is True and j['dtype'] == 'f4'"
python3 - "$tests" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
import npy
kind, rows = npy.load("zx.npy")
assert kind == "f4" and len(rows) == 400
assert all(abs(sum(v * v for v in row) - 1) < 1e-5 for row in rows)
PYTHON
run 0 eval --no-model zx.npy zy.npy --json
json "abs(j['x_to_y']['hit@1'] - json.load(open('eval.json'))['x_to_y']['hit@1']) < 0.006"
run 0 embed model.safetensors --side x demo/x.test.npy -o half.npy --dtype f2
npy close half.npy zx.npy 1e-3
run 0 embed model.safetensors --side x demo/x.test.npy -o long.npy --no-unit
npy close long.npy zx.npy 1e-6 2>/dev/null && fail "--no-unit has no effect"
run 0 embed model.safetensors --side x demo/x.test.npy -o zx.fbin
run 0 eval --no-model zx.fbin zy.npy --json
run 1 embed model.safetensors --side x demo/y.test.npy -o wrong.npy
says "40"
absent wrong.npy
run 2 embed model.safetensors --side x demo/x.test.npy -o z.txt
absent z.txt

# Rows that the model has seen.
run 0 eval model.safetensors demo/x.train.npy demo/y.train.npy
says "the model was fitted on these rows"
run 0 eval model.safetensors demo/x.test.npy demo/y.test.npy
says_nothing

# search
run 0 search model.safetensors --query-side y demo/y.test.npy --base-side x demo/x.test.npy -k 3
says_nothing
[ "$(head -1 out)" = "$(printf 'query\trank\tbase\tscore')" ] || fail "header of the table"
[ "$(wc -l <out)" -eq 1201 ] || fail "400 queries with 3 rows each"
python3 - <<'PYTHON'
rows = [line.rstrip("\n").split("\t") for line in open("out")][1:]
right = sum(r[0] == r[2] for r in rows if r[1] == "1")
assert right > 360, right
for a, b in zip(rows, rows[1:]):
    assert a[0] != b[0] or (int(b[1]) == int(a[1]) + 1 and float(b[3]) <= float(a[3]))
PYTHON
cp out table
run 0 search model.safetensors --query-side y demo/y.test.npy demo/x.test.npy -k3
cmp -s out table || fail "the other side is not the default of --base-side"
run 0 search model.safetensors --base-side x demo/y.test.npy zx.npy -k 3 --base-embedded
cut -f1-3 out | cmp -s - <(cut -f1-3 table) || fail "--base-embedded finds other rows"
run 0 search model.safetensors --query-side y demo/y.test.npy demo/x.test.npy -k 3 -o near
prints "near.ids.npy"
[ "$(npy head near.ids.npy)" = "i8 400 3" ] || fail "ids"
[ "$(npy head near.scores.npy)" = "f4 400 3" ] || fail "scores"
cmp -s <(npy show near.ids.npy | tr ' ' '\n') <(tail -n +2 table | cut -f3) || fail "ids differ from the table"
run 0 search model.safetensors --query-side y demo/y.test.npy demo/x.test.npy -k 2 --json
json "j['k'] == 2 and len(j['results']) == 400 and len(j['results'][7]['base']) == 2"

# one row works in embed, search and eval; k larger than the base lists what there is
npy write one_x.npy f4 1 40 1
npy write one_y.npy f4 1 30 2
run 0 embed model.safetensors --side x one_x.npy -o one.npy
run 0 search model.safetensors --query-side x one_x.npy one_y.npy
[ "$(wc -l <out)" -eq 2 ] || fail "one query, one row"
run 0 eval model.safetensors one_x.npy one_y.npy --json
json "j['x_to_y']['hit@1'] == 1"

# info
run 0 info model.safetensors
says_nothing
prints "x: 40 numbers to"
prints "whiten"
run 0 info model.safetensors --json
json "j['x_width'] == 40 and j['y_width'] == 30 and j['rank'] == len(j['spectrum']) and j['metadata']"
run 0 info
prints "presets"
prints "paper"
prints ".safetensors:TENSOR"
run 0 info --json
json "set(j['presets']) >= {'fast', 'paper', 'paper-synthetic'} and j['presets']['paper']['nu'] == '2' and j['version']"
json "j['presets']['paper-printed']['split'] == '0'"
refused 1 "nothing.safetensors" info nothing.safetensors

# options reach the library
run 0 fit demo/x.train.npy demo/y.train.npy -o small.safetensors --rank 5 --metric none --threads 1 --max-mem 1G --json
json "j['rank'] == 5"
run 0 fit demo/x.train.npy demo/y.train.npy -o paper.safetensors --preset paper --rank=8 --seed 4 --json
json "j['rank'] == 8 and j['metadata'].get('option.loss') == 'general' and j['metadata'].get('option.nu') == '2'"
echo "tour: ok"
