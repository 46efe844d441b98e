#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --bad-rows drop where a model is used: what is left out, and what the rows are called then.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --train 200 --test 30
run 0 fit d/x.train.npy d/y.train.npy --preset fast -o m.safetensors
python3 - "$tests" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
import npy
for side, bad in ("x", {0: 0.0, 7: float("nan")}), ("y", {7: float("inf"), 29: 0.0, 12: 0.0}):
    kind, rows = npy.load("d/%s.test.npy" % side)
    left = [row for i, row in enumerate(rows) if i not in bad]
    npy.save("%s.left.npy" % side, kind, left)
    for i, value in bad.items():
        rows[i] = [value] * len(rows[i])
    npy.save("%s.bad.npy" % side, kind, rows)
    npy.save("%s.none.npy" % side, kind, [[0.0] * len(rows[0])] * 3)
both = [i for i in range(30) if i not in (0, 7, 12, 29)]
x_left = [i for i in range(30) if i not in (0, 7)]
y_left = [i for i in range(30) if i not in (7, 12, 29)]
with open("pairs.left.tsv", "w") as f:
    for i in both:
        print(x_left.index(i), y_left.index(i), sep="\t", file=f)
PYTHON

# Without the option each command names the row and goes no further.
refused 1 "x.bad.npy: row 0 is all zero and has no direction; 2 of 30 rows cannot be used: --bad-rows drop leaves" eval m.safetensors x.bad.npy y.bad.npy
refused 1 "2 of 30 rows cannot be used: --bad-rows drop leaves them out" embed m.safetensors --side x x.bad.npy -o z.npy
refused 1 "y.bad.npy: row 7, column 0" search m.safetensors --query-side x x.left.npy y.bad.npy --bad-rows error
says "3 of 30 rows cannot be used: --bad-rows drop leaves them out"
refused 1 "2 of 30 rows cannot be used: leave them out of the file" weights m.safetensors x.bad.npy y.bad.npy
refused 1 "2 of 30 rows cannot be used: leave them out of the file" probe m.safetensors --side x x.bad.npy \
  --train-labels d/label.test.npy --test d/x.test.npy --test-labels d/label.test.npy
absent z.npy

# eval: the bad rows and their pairs are left out, as if they had never been there.
run 0 eval m.safetensors x.bad.npy y.bad.npy --bad-rows drop --json
says "x.bad.npy: 2 of 30 rows dropped"
says "y.bad.npy: 3 of 30 rows dropped"
json "j['dropped'] == {'x': 2, 'y': 3} and j['pairs'] == 26"
cp out dropped.json
run 0 eval m.safetensors x.left.npy y.left.npy --pairs pairs.left.tsv --json
json "j['dropped'] == {'x': 0, 'y': 0}"
json "(lambda d: d.pop('dropped') and j.pop('dropped') and d == j)(json.load(open('dropped.json')))"
run 0 eval m.safetensors x.bad.npy y.bad.npy --bad-rows drop -q
says_nothing
prints "candidates"
run 0 eval m.safetensors x.left.npy y.left.npy --pairs pairs.left.tsv --bad-rows drop --json
says_nothing
json "j['dropped'] == {'x': 0, 'y': 0}"
refused 1 "x.none.npy: none of its 3 rows can be used" eval m.safetensors x.none.npy y.none.npy --bad-rows drop -q
run 0 eval --no-model x.bad.npy x.bad.npy --bad-rows drop --json
json "j['pairs'] == 28"

# Zero-shot: the labels of the bad rows go with them; a bad class is an error.
npy write classes.npy f4 3 30 5
python3 -c '[print(i % 3) for i in range(30)]' >labels.txt
python3 -c '[print(i % 3) for i in range(30) if i not in (0, 7)]' >labels.left.txt
run 0 eval m.safetensors x.bad.npy --classes classes.npy --x-labels labels.txt --bad-rows drop --json
says "x.bad.npy: 2 of 30 rows dropped"
json "j['dropped'] == {'x': 2}"
cp out dropped.json
run 0 eval m.safetensors x.left.npy --classes classes.npy --x-labels labels.left.txt --json
json "(lambda d: d.pop('dropped') and j.pop('dropped') and d == j)(json.load(open('dropped.json')))"
refused 1 "y.none.npy: row 0 is all zero" eval m.safetensors x.left.npy --classes y.none.npy --x-labels labels.left.txt --bad-rows drop

# embed: the usable rows alone, in their order; what is missing is said.
run 0 embed m.safetensors --side y y.bad.npy -o z.npy --bad-rows drop
says "y.bad.npy: 3 of 30 rows dropped"
says "rows 7, 12, 29 of y.bad.npy are not in z.npy"
prints "27 rows of"
run 0 embed m.safetensors --side y y.left.npy -o left.npy
cmp -s z.npy left.npy || fail "embed: the usable rows differ"
run 0 embed m.safetensors --side y y.bad.npy -o z.npy --bad-rows drop --json
json "j['rows'] == 27 and j['dropped'] == {'count': 3, 'first': [7, 12, 29]}"
run 0 embed m.safetensors --side y y.left.npy -o z.npy --bad-rows drop --json
says_nothing
json "j['rows'] == 27 and j['dropped'] == {'count': 0, 'first': []}"
refused 1 "y.none.npy: none of its 3 rows can be used" embed m.safetensors --side y y.none.npy -o none.npy --bad-rows drop -q
absent none.npy

# search: numbers are those of the files, whatever was left out.
run 0 search m.safetensors --query-side x x.bad.npy y.bad.npy -k 2 --bad-rows drop
says "x.bad.npy: 2 of 30 rows dropped"
says "y.bad.npy: 3 of 30 rows dropped"
cp out by_number
run 0 search m.safetensors --query-side x x.left.npy y.left.npy -k 2
python3 - <<'PYTHON' || fail "search: the numbers are not those of the files"
x_left = [i for i in range(30) if i not in (0, 7)]
y_left = [i for i in range(30) if i not in (7, 12, 29)]
left = [line.split("\t") for line in open("out").read().splitlines()[1:]]
want = [[str(x_left[int(q)]), rank, str(y_left[int(b)]), score] for q, rank, b, score in left]
assert [line.split("\t") for line in open("by_number").read().splitlines()[1:]] == want
PYTHON
run 0 search m.safetensors --query-side x x.bad.npy y.bad.npy -k 2 --bad-rows drop --json
json "j['queries'] == 28 and j['dropped'] == {'queries': 2, 'base': 3}"
json "[r['query'] for r in j['results']] == [i for i in range(30) if i not in (0, 7)]"
json "not {7, 12, 29} & {b for r in j['results'] for b in r['base']}"
# In the files every query keeps its row; one that was left out finds nothing.
run 0 search m.safetensors --query-side x x.bad.npy y.bad.npy -k 40 --bad-rows drop -o s --json
json "j['queries'] == 28 and j['rows'] == 30"
npy show s.ids.npy >ids
npy show s.scores.npy >scores
[ "$(wc -l <ids)" -eq 30 ] || fail "search: not a row for each query"
[ "$(sed -n 1p ids | tr ' ' '\n' | sort -u)" = -1 ] || fail "search: a dropped query found something"
[ "$(sed -n 8p scores | tr ' ' '\n' | sort -u)" = -inf ] || fail "search: a dropped query has a score"
[ "$(sed -n 2p ids | tr ' ' '\n' | grep -vc '^-1$')" -eq 27 ] || fail "search: not all usable rows are found"
refused 1 "y.none.npy: none of its 3 rows can be used" search m.safetensors --query-side x x.left.npy y.none.npy --bad-rows drop -q
run 0 embed m.safetensors --side y y.left.npy -o base.npy
run 0 search m.safetensors --query-side x x.bad.npy base.npy --base-embedded --bad-rows drop
says "x.bad.npy: 2 of 30 rows dropped"
echo "bad rows: ok"
