#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that are written: what counts as an input, names that cannot be meant.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --train 60 --test 30
x=d/x.train.npy y=d/y.train.npy
run 0 fit $x $y --preset fast -o m.safetensors

# Two outputs: each may be there already, and they must not be one file.
for k in 1 2; do
  run 0 weights m.safetensors d/x.test.npy d/y.test.npy -o S.npy --scores s.npy
done
[ -s S.npy ] && [ -s s.npy ] || fail "one of the matrices is missing"
refused 2 "--output and --scores are both ./S.npy" weights m.safetensors d/x.test.npy d/y.test.npy -o S.npy \
  --scores ./S.npy
run 0 stats $x $y -o all.stats
refused 2 "--output and --certificate are both c.stats" stats all.stats --remove $x $y -o c.stats --certificate c.stats
absent c.stats

# A folder stands for its .npy files, and for nothing else that is in it.
refused 1 "the folder . has no numbered .npy files" fit . $y --preset fast -o m.safetensors
run 1 fit $x $y --pairs . -o m.safetensors
grep -q "is an input" err && fail "$last: the output is no input"

# One set of rows is given as X and as Y.
seq 60 | sed 's/.*\(.\)/\1/' >labels.txt
refused 1 "--one-set takes the same rows as X and as Y, but $x has 40 numbers a row and $y 30" \
  fit $x $y --x-labels labels.txt --one-set -o no.safetensors
cp $x copy.npy
run 0 fit $x copy.npy --x-labels labels.txt --one-set --preset fast -o s.safetensors
says "as the same"
run 0 fit $x $x --x-labels labels.txt --one-set --preset fast -o s.safetensors
grep -q "same ones" err && fail "$last: they are the same"
says "not above chance" # the labels tell nothing

# Names that cannot be meant are refused before the work, as mistakes of the command line.
for command in "fit $x $y" "report m.safetensors d/x.test.npy d/y.test.npy" "check $x $y"; do
  # shellcheck disable=SC2086
  refused 2 '--output is `-`' $command -o -
done
absent -
refused 2 "S.txt: the name must end in .npy or .fbin" weights m.safetensors nope nope -o S.txt
refused 2 "z.txt: the name must end in .npy or .fbin" embed m.safetensors --side x nope -o z.txt
refused 2 "with pf they are pf.ids.npy and pf.scores.npy" search m.safetensors --query-side x $x $y -o pf.npy
# What is to be typed next can be pasted.
run 0 fit $x $y --preset fast -o "it's a model.safetensors"
prints "unicon eval 'it'\\''s a model.safetensors' X.test"

# synth: parts that are not asked for, and files of an earlier run.
run 0 synth linear -o parts --train 20 --test 0 --val 5
absent parts/x.test.npy
if grep -q "test" out; then fail "$last: names files that are not there: $(cat out)"; fi
run 0 synth linear -o parts --train 20 --test 5
says "parts/x.val.npy is left from an earlier run"
echo "outputs: ok"
