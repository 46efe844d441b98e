#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What messages say: options as they are typed, what is accepted, what to do.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --train 200 --test 60
x=d/x.train.npy y=d/y.train.npy
run 0 fit $x $y --preset fast -o m.safetensors

# Errors and warnings of the library name options as the command line does, values in one kind of
# quotes.
npy write zero.npy f4 200 40 1 '4,*=0' '9,*=0'
refused 1 "(--bad-rows drop leaves" fit zero.npy $y -o no.safetensors
refused 2 "--max-mem is \`1\`; accepted: a size from 1M on" fit $x $y -o no.safetensors --max-mem 1
refused 2 "--latent is 50, more than --dim-x 40 or --dim-y 30" synth linear -o no --latent 50
run 0 fit $x $y --preset fast --psi hinge -o b.safetensors
says "warning: --psi has no effect without --loss general"
# The names of files stay, whatever they are called, and so does what is quoted.
refused 1 "bad_rows: No such file" fit bad_rows $y -o no.safetensors
mkdir bad_rows && cp zero.npy bad_rows/max_mem.npy
refused 1 "bad_rows/max_mem.npy: row 4 is all zero" fit bad_rows/max_mem.npy $y -o no.safetensors
refused 2 "--preset is \`normalize on\`" fit $x $y --preset 'normalize on' -o no.safetensors

# Too little memory: what all of it takes, and what this command can change.
run 1 fit $x $y --preset fast --max-mem 1M -o no.safetensors
grep -qE "that --max-mem allows are in use; the whole fit may take [0-9.]+ MiB: .unicon plan. says" err || fail "$last: $(cat err)"
refused 1 "in use; raise --max-mem or use fewer --threads" weights m.safetensors $x $y --max-mem 1M
# A plan measures outside of the limit, and does not take what the fit refuses.
run 0 plan $x $y --preset fast --max-mem 1M
prints "--max-mem is 1.0 MiB, but up to"
run 0 plan $x $y --max-mem 1M
prints "lower rank"
refused 1 "--rank is 300, but 200 rows of x and 200 of y allow at most 199" plan $x $y --rank 300
run 0 plan $x $y --val-x d/x.test.npy --val-y d/y.test.npy -o m.safetensors
prints "fits into this machine"

# Files of another shape, and labels that are not there.
npy write line.npy f4 40 1 1
python3 - <<'PYTHON'
data = open("line.npy", "rb").read()
open("line.npy", "wb").write(data.replace(b"(40, 1), ", b"(40,),   "))
PYTHON
refused 1 "1 dimension, but needs 2 dimensions; in NumPy a.reshape(1, -1)" fit line.npy $y -o no.safetensors
{ for k in $(seq 150); do echo $((k % 5)); done; yes '' | head -50; } >blank.txt
run 0 fit $x $y --x-labels blank.txt --y-labels blank.txt --preset fast -o l.safetensors
says "blank.txt: 50 of 200 lines are empty; an empty line counts as a label"
[ "$(grep -c "lines are empty" err)" -eq 1 ] || fail "$last: $(cat err)"

# Rows that are alike, and files given twice.
python3 - "$tests" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
import npy
npy.save("up.npy", "f4", [[1.0 + i] for i in range(200)])
PYTHON
refused 1 "once their length is 1, so there is nothing to align; --normalize off leaves" fit up.npy $y -o no.safetensors
refused 1 "; a smaller width tells more rows apart" fit $x $y --kernel rbf --width 1e6 --preset fast -o no.safetensors
run 0 fit $x $x --preset fast -o l.safetensors
says "X and Y are one file"
run 0 fit $x $y --val-x $x --val-y ./$y --preset fast -o l.safetensors
says "the validation rows are the training rows"

# A model of classes that is measured one to one.
run 0 fit $x $y --x-labels d/label.train.npy --y-labels d/label.train.npy --preset fast -o l.safetensors
run 0 eval l.safetensors d/x.test.npy d/y.test.npy
says "pairs of 200 x 200 rows, but here each row has one partner: --x-labels"
run 0 eval l.safetensors d/x.test.npy d/y.test.npy --y-per-x 1
says_nothing
run 0 eval l.safetensors d/x.test.npy d/y.test.npy --x-labels d/label.test.npy --y-labels d/label.test.npy
says_nothing

# Options without effect: of no use to a command, or not as things are.
refused 2 "--precision is an option of the commands fit, plan, compare and weights" eval m.safetensors $x $y \
  --precision reduced

run 0 fit $x $y --preset fast --balance softmax:5 -o bank.safetensors
run 0 embed bank.safetensors --side x $x -o b.npy
run 0 search bank.safetensors --query-side x d/x.test.npy d/y.test.npy -k 1 --bank-y b.npy --trust
says "warning: --bank-y has no effect here: only the bank of the query side is used"
says "warning: --trust has no effect with a model that \`unicon migrate\` did not make"
run 0 embed bank.safetensors --side x $x -o c.npy --bank-y b.npy --trust
says "warning: --bank-y has no effect without --index"
says "warning: --trust has no effect"
run 0 eval m.safetensors d/x.test.npy d/y.test.npy --seed 3
says "warning: --seed has no effect without --ci"
run 0 probe --no-model --side x $x --train-labels d/label.train.npy --test d/x.test.npy --test-labels d/label.test.npy
says "warning: --side has no effect without a MODEL"
refused 2 "--drop-landmarks needs --remove as well" stats $x $y --drop-landmarks -o s.stats
run 0 stats $x $y -o s.stats
refused 2 "--sample-rows has no effect with ALL.stats" stats s.stats --add $x $y --sample-rows 5 -o t.stats

# A start that is none, and one whose metric alone is wrong.
refused 2 "--start is \`nope\`; accepted: moment, random, zero, or the file of a model" fit $x $y --start nope -o no.safetensors
refused 2 "the weights of m.safetensors are a start with --metric none only" fit $x $y --preset fast --refine 1 \
  --start m.safetensors -o no.safetensors
refused 2 "--loss custom takes its psi and phi from a program in C" fit $x $y --loss custom -o no.safetensors
# Few rows tell little.
run 0 synth linear -o few --train 60 --test 10
run 0 compare few/x.train.npy few/y.train.npy --only ' fast , fast'
says "12 x 12 test rows are few"
run 0 fit few/x.test.npy few/y.test.npy --preset fast -o l.safetensors
says "no pairs can be held out (10 pairs are too few, 40 are needed)"
run 0 fit $x $y --preset fast --budget 1 -o l.safetensors
says "warning: --budget has no effect"
echo "words: ok"
