#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The ways to say which rows belong together.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --train 60 --test 30 --noise 0.05
npy repeat y3.npy d/y.train.npy 3
npy repeat x3.npy d/x.train.npy 3
npy repeat ytest3.npy d/y.test.npy 3
npy repeat ytest7.npy d/y.test.npy 7

# Unequal counts without a pair option: a sentence with the option that would fit.
refused 1 "did you mean --y-per-x 3?" fit d/x.train.npy y3.npy -o m.safetensors
refused 1 "did you mean --x-per-y 3?" fit x3.npy d/y.train.npy -o m.safetensors
refused 1 "--pairs FILE" fit y3.npy ytest7.npy -o m.safetensors
absent m.safetensors

run 0 fit d/x.train.npy y3.npy --y-per-x 3 -o k.safetensors --json
json "j['pairs'] == 180 and j['y']['rows'] == 180"
run 0 fit d/x.train.npy y3.npy --y-per-x 3 -o k.safetensors
prints "unicon eval k.safetensors X.test Y.test --y-per-x 3"
run 0 fit x3.npy d/y.train.npy --x-per-y 3 -o kx.safetensors --json
json "j['pairs'] == 180"
refused 1 "" fit d/x.train.npy y3.npy --y-per-x 2 -o no.safetensors
absent no.safetensors

# The same pairs from a file give the same model.
python3 -c 'print("x\ty"); [print(i // 3, i, sep="\t") for i in range(180)]' >pairs.tsv
run 0 fit d/x.train.npy y3.npy --pairs pairs.tsv -o p.safetensors --json
json "j['pairs'] == 180"
run 0 embed k.safetensors --side x d/x.test.npy -o a.npy
run 0 embed p.safetensors --side x d/x.test.npy -o b.npy
npy close a.npy b.npy 1e-5
run 0 eval k.safetensors d/x.test.npy ytest3.npy --y-per-x 3 --json
json "j['x_to_y']['queries'] == 30 and j['y_to_x']['queries'] == 90 and j['x_to_y']['hit@1'] > 0.5"

# Labels, as text and as an integer npy.
python3 -c 'print(*["class %d" % (i % 3) for i in range(60)], sep="\n")' >lx.txt
cp lx.txt ly.txt
run 0 fit d/x.train.npy d/y.train.npy --x-labels lx.txt --y-labels ly.txt -o l.safetensors --json
json "j['pairs'] == 3 * 20 * 20"
run 0 eval l.safetensors d/x.test.npy d/y.test.npy --x-labels d/label.test.npy --y-labels d/label.test.npy --json
json "j['x_to_y']['queries'] == 30"
head -59 lx.txt >short.txt
refused 1 "59" fit d/x.train.npy d/y.train.npy --x-labels short.txt --y-labels ly.txt -o no.safetensors

# Ignored pairs and explicit negatives.
printf '0\t1\n1\t0\n' >ignore.tsv
run 0 fit d/x.train.npy d/y.train.npy --ignore ignore.tsv -o i.safetensors
run 0 fit d/x.train.npy d/y.train.npy --negatives ignore.tsv --iterations 1 -o n.safetensors
run 0 eval i.safetensors d/x.test.npy d/y.test.npy --ignore ignore.tsv
: >none.tsv
run 0 fit d/x.train.npy d/y.train.npy --ignore none.tsv -o i0.safetensors
run 0 fit d/x.train.npy d/y.train.npy -o without.safetensors
cmp -s i0.safetensors without.safetensors || fail "an empty list of ignored pairs is not none"
run 0 eval i.safetensors d/x.test.npy d/y.test.npy --ignore none.tsv
refused 1 "none.tsv: the list of negative pairs is empty" fit d/x.train.npy d/y.train.npy --negatives none.tsv -o no.safetensors
printf '0\t0\t1\n1\t1\t1e308\n' >heavy.tsv
refused 1 "has weight 1e+308; weights are float32 numbers from 0 to 3.4e38" fit d/x.train.npy d/y.train.npy --pairs heavy.tsv -o no.safetensors
printf '0\t0\n' >both.tsv
refused 1 "" fit d/x.train.npy d/y.train.npy --ignore both.tsv -o no.safetensors
refused 1 "nowhere.tsv" fit d/x.train.npy d/y.train.npy --ignore nowhere.tsv -o no.safetensors
absent no.safetensors

# Negatives may count in part: 1 is as without a column, 0 as if it were not there.
printf '0\t1\t1\n1\t0\t1\n' >whole.tsv
printf '0\t1\t1\n1\t0\t1\n2\t5\t0\n' >none.tsv
printf '0\t1\t.5\n1\t0\t1\n' >part.tsv
for list in ignore whole none part; do
  run 0 weights i.safetensors d/x.train.npy d/y.train.npy --negatives $list.tsv -o $list.npy --json
  json "j['loss'] == 'clip' and j['x_rows'] == 60 and j['pairs'] == 60 and j['value'] > 0"
done
npy close ignore.npy whole.npy 1e-7
npy close ignore.npy none.npy 1e-7
cmp -s ignore.npy part.npy && fail "half a negative is a whole one"
printf '0\t1\t1\n1\t0\t1.5\n' >much.tsv
refused 1 "much.tsv line 2 has weight 1.5; it counts as a negative from 0 to 1 times" fit d/x.train.npy d/y.train.npy --ignore much.tsv -o no.safetensors

# One set of rows: no row is its own partner.
run 0 fit d/x.train.npy d/x.train.npy --x-labels lx.txt --one-set --loss supcon --iterations 1 --shared-encoder -o s.safetensors --json
json "j['pairs'] == 3 * 20 * 19"
run 0 eval s.safetensors d/x.test.npy d/x.test.npy --x-labels d/label.test.npy --one-set --json
json "j['pairs'] < 30 * 29 and j['x_to_y']['hit@1'] == j['y_to_x']['hit@1']"
run 0 eval --no-model d/x.test.npy d/x.test.npy --x-labels d/label.test.npy --y-labels d/label.test.npy --json
json "j['x_to_y']['hit@1'] == 1" # each finds itself
run 0 fit d/x.train.npy d/x.train.npy --x-labels lx.txt --one-set --val-x d/x.test.npy --val-y d/x.test.npy --val-x-labels d/label.test.npy -o s.safetensors
refused 2 "--one-set needs --x-labels" fit d/x.train.npy d/x.train.npy --one-set -o no.safetensors
refused 2 "leave --y-labels out" fit d/x.train.npy d/x.train.npy --one-set --x-labels lx.txt --y-labels lx.txt -o no.safetensors
refused 1 "has 60 lines, but there are 30 rows" fit d/x.train.npy d/x.test.npy --one-set --x-labels lx.txt -o no.safetensors

# The weights are minus the slope of the loss, and follow the loss of the model unless told otherwise.
run 0 fit d/x.train.npy d/y.train.npy --preset fast --rank 5 --loss triplet --margin .4 --iterations 1 -o t.safetensors
run 0 weights t.safetensors d/x.test.npy d/y.test.npy --json
json "j['loss'] == 'triplet'"
cp out triplet.json
run 0 weights t.safetensors d/x.test.npy d/y.test.npy --margin .8 --direction x --json
json "j['value'] > json.load(open('triplet.json'))['value']"
run 0 weights t.safetensors d/x.test.npy d/y.test.npy --loss clip --temperature 1 -o S.npy --scores s.npy
prints "(clip) of 30 by 30 rows, 30 pairs"
PYTHONPATH=$tests python3 - <<'PYTHON' || fail "S is not that of clip at these scores"
from math import exp
from npy import load
s, S = load("s.npy")[1], load("S.npy")[1]
n = len(s)
rows = [sum(map(exp, row)) for row in s]
columns = [sum(exp(row[j]) for row in s) for j in range(n)]
for i in range(n):
    for j in range(n):
        want = ((i == j) - exp(s[i][j]) * (1 / rows[i] + 1 / columns[j]) / 2) / n
        assert abs(S[i][j] - want) < 1e-7, (i, j)
PYTHON
run 0 weights --no-model d/x.test.npy d/x.test.npy
refused 2 "loss custom takes its psi and phi from a program" weights t.safetensors d/x.test.npy d/y.test.npy --loss custom
refused 1 "is an input" weights t.safetensors d/x.test.npy d/y.test.npy -o d/x.test.npy

# Validation sets and groups.
run 0 fit d/x.train.npy d/y.train.npy --val-x d/x.test.npy --val-y d/y.test.npy -o v.safetensors
run 0 fit d/x.train.npy y3.npy --y-per-x 3 --val-x d/x.test.npy --val-y ytest3.npy -o v.safetensors
python3 -c '[print(i // 3, i, sep="\t") for i in range(90)]' >valpairs.tsv
run 0 fit d/x.train.npy y3.npy --pairs pairs.tsv --val-x d/x.test.npy --val-y ytest3.npy --val-pairs valpairs.tsv -o v.safetensors
refused 1 "d/nope.npy" fit d/x.train.npy d/y.train.npy --val-x d/nope.npy --val-y d/y.test.npy -o no.safetensors
refused 1 "did you mean --y-per-x 3?" fit d/x.train.npy d/y.train.npy --val-x d/x.test.npy --val-y ytest3.npy -o no.safetensors
run 0 fit d/x.train.npy d/y.train.npy --groups lx.txt -o g.safetensors
refused 1 "59 lines, but there are 60 rows" fit d/x.train.npy d/y.train.npy --groups short.txt -o no.safetensors
refused 1 "nowhere.txt" fit d/x.train.npy d/y.train.npy --groups nowhere.txt -o no.safetensors
absent no.safetensors
echo "pairs: ok"
