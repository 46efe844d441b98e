#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# unicon eval --classes: zero-shot classification, by number and by name, from either side.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --noise 0.1 --train 300 --test 120
run 0 fit d/x.train.npy d/y.train.npy --preset fast -o m.safetensors

# A class vector is the mean of the training rows of its class, on the other side.
python3 - "$tests" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
import npy
labels = [int(row[0]) for row in npy.load("d/label.train.npy")[1]]
for side in "xy":
    rows = npy.load(f"d/{side}.train.npy")[1]
    means = []
    for c in range(3):
        own = [r for r, l in zip(rows, labels) if l == c]
        means.append([sum(v) / len(own) for v in zip(*own)])
    npy.save(f"{side}.npy", "f4", means)
    npy.save(f"{side}.turned.npy", "f4", means[1:] + means[:1])  # row 0 is class 1
PYTHON
npy show d/label.test.npy >test.txt
sed 's/^/kind-/' test.txt >named.txt
printf 'kind-1\nkind-2\nkind-0\n' >turned.txt

run 0 eval m.safetensors d/x.test.npy --classes y.npy --x-labels d/label.test.npy
says_nothing
prints "accuracy         1.000 on 120 rows; a random answer: 0.333"
prints "mean of classes  1.000"
prints "rows: true label, columns: answer"
run 0 eval m.safetensors d/x.test.npy --classes y.npy --x-labels test.txt --json
json "j['accuracy'] == 1 and j['top5'] == 1 and j['mean_class_accuracy'] == 1 and abs(j['chance'] - 1/3) < 1e-9"
json "j['classes'] == 3 and j['rows'] == 120 and j['names'] == ['0', '1', '2']"
json "sum(map(sum, j['confusion'])) == 120 and sum(j['confusion'][k][k] for k in range(3)) == 120"

# By name, in another order; numbers still count rows.
run 0 eval m.safetensors d/x.test.npy --classes y.turned.npy --class-names turned.txt --x-labels named.txt --json
json "j['accuracy'] == 1 and j['names'] == ['kind-1', 'kind-2', 'kind-0']"
run 0 eval m.safetensors d/x.test.npy --classes y.turned.npy --class-names turned.txt --x-labels test.txt --json
json "j['accuracy'] == 0"

# The mirror: rows of the y side, classes of the x side. And without a model.
run 0 eval m.safetensors d/y.test.npy --classes x.npy --y-labels test.txt --json
json "j['accuracy'] == 1"
run 0 eval --no-model d/x.test.npy --classes x.npy --x-labels test.txt --json
json "j['accuracy'] == 1"
cp out first
run 0 eval --no-model d/x.test.npy --classes x.npy --x-labels test.txt --json --threads 1
cmp -s out first || fail "the number of threads changes the result"

# Mistakes.
run 2 eval m.safetensors d/x.test.npy
says "Y is missing"
run 2 eval m.safetensors d/x.test.npy d/y.test.npy --classes y.npy --x-labels test.txt
says "--classes takes the place of Y"
refused 2 "--x-labels FILE" eval m.safetensors d/x.test.npy --classes y.npy
refused 2 "--pairs cannot be used with --classes" eval m.safetensors d/x.test.npy --classes y.npy \
  --x-labels test.txt --pairs test.txt
refused 2 "--class-names needs --classes" eval m.safetensors d/x.test.npy d/y.test.npy --class-names turned.txt
refused 1 'the label `kind-0` is not a row number from 0 to 2' eval m.safetensors d/x.test.npy --classes y.npy \
  --x-labels named.txt
sed '7s/.*/what/' named.txt >odd.txt
refused 1 'the label `what` is not in turned.txt, nor a row number' eval m.safetensors d/x.test.npy \
  --classes y.npy --class-names turned.txt --x-labels odd.txt
printf 'a\nb\na\n' >twice.txt
refused 1 "only 2 different names" eval m.safetensors d/x.test.npy --classes y.npy --class-names twice.txt \
  --x-labels test.txt
refused 1 "rows of 40 values, but side y of the model takes 30" eval m.safetensors d/x.test.npy --classes x.npy \
  --x-labels test.txt
refused 1 "but there are 300 rows" eval m.safetensors d/x.train.npy --classes y.npy --x-labels test.txt
refused 2 "--ci cannot be used with --classes" eval m.safetensors d/x.test.npy --classes y.npy --x-labels test.txt --ci
# Escape sequences of a label file do not reach the terminal.
printf 'a\033[2J\nb\303\251\nc\n' >escape.txt
sed 's/^0$/a\x1b[2J/; s/^1$/b\xc3\xa9/; s/^2$/c/' test.txt >escaped.txt
run 0 eval m.safetensors d/x.test.npy --classes y.npy --class-names escape.txt --x-labels escaped.txt
prints "a?[2J"
prints "bé"
if grep -q "$(printf '\033')" out; then fail "an escape sequence is printed"; fi
echo "classes: ok"
