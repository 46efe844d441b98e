#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# unicon probe: accuracy and confusion matrix, through a model and without one.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --noise 0.1 --train 300 --test 120
run 0 fit d/x.train.npy d/y.train.npy --preset fast -o m.safetensors
probe="--train-labels d/label.train.npy --test-labels d/label.test.npy"

run 0 probe m.safetensors --side x d/x.train.npy --test d/x.test.npy $probe
says_nothing
prints "accuracy         1.000 on 120 rows"
prints "rows: true label, columns: answer"
[ "$(awk '/^rows:/ { table = 1; next } table { print NF }' out | tr '\n' ' ')" = "5 6 6 6 " ] || fail "matrix"
awk '/^rows:/ { table = 1; next } table { print length }' out | sort -u | wc -l | grep -qx 1 || fail "not aligned"
run 0 probe m.safetensors --side y d/y.train.npy --test d/y.test.npy $probe --json
says_nothing
json "j['accuracy'] > .99 and j['train_rows'] == 300 and j['test_rows'] == 120 and j['unseen'] == 0"
json "len(j['confusion']) == 3 and sum(map(sum, j['confusion'])) == 120 and j['labels'] == ['0', '1', '2']"
json "abs(sum(j['confusion'][k][k] for k in range(3)) / 120 - j['accuracy']) < 1e-9"
cp out first
run 0 probe m.safetensors --side y d/y.train.npy --test d/y.test.npy $probe --json --threads 1
cmp -s out first || fail "the number of threads changes the result"

# Without a model; text labels, one of which only the test rows have.
npy show d/label.train.npy | sed 's/^/kind-/' >train.txt
npy show d/label.test.npy | sed 's/^/kind-/; 1s/.*/what/' >test.txt
run 0 probe --no-model d/x.train.npy --test d/x.test.npy --train-labels train.txt --test-labels test.txt
prints "kind-2"
prints "1 test row has a label that no training row has"
run 0 probe --no-model d/x.train.npy --test d/x.test.npy --train-labels train.txt --test-labels test.txt --json \
  --probe-ridge 1e-3
json "j['labels'] == ['kind-0', 'kind-1', 'kind-2', 'what'] and j['unseen'] == 1"
json "[row[3] for row in j['confusion']] == [0, 0, 0, 0] and j['accuracy'] < 1"

# Many classes: the most common errors instead of a matrix.
python3 -c '[print(i % 25) for i in range(300)]' >many.train
python3 -c '[print(i % 25) for i in range(120)]' >many.test
run 0 probe --no-model d/x.train.npy --test d/x.test.npy --train-labels many.train --test-labels many.test
prints "25 classes: the most common errors"

# Mistakes.
run 2 probe m.safetensors d/x.train.npy --test d/x.test.npy $probe
says "--side x or --side y"
run 2 probe m.safetensors --side x d/x.train.npy --test d/x.test.npy --train-labels train.txt
says "--test-labels FILE is missing"
run 2 probe --no-model m.safetensors d/x.train.npy --test d/x.test.npy $probe
says 'with --no-model only TRAIN is given, without MODEL; is `m.safetensors` a model?'
refused 1 "300 lines, but there are 120 rows" probe --no-model d/x.train.npy --test d/x.test.npy \
  --train-labels train.txt --test-labels train.txt
refused 1 "one kind" probe --no-model d/x.train.npy --test d/x.test.npy --train-labels train.txt \
  --test-labels d/label.test.npy
sed 's/.*/same/' train.txt >one.txt
refused 1 'have the label `same`; a probe needs at least 2' probe --no-model d/x.train.npy \
  --test d/x.test.npy --train-labels one.txt --test-labels test.txt
refused 1 "rows of 30 values, but side x of the model takes 40" probe m.safetensors --side x d/y.train.npy \
  --test d/y.test.npy $probe
refused 1 "d/nope.npy" probe m.safetensors --side x d/nope.npy --test d/x.test.npy $probe
refused 2 "--probe-ridge is" probe --no-model d/x.train.npy --test d/x.test.npy $probe --probe-ridge -1
echo "probe: ok"
