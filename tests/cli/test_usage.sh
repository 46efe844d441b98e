#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command line itself: exit status 2 and one clear sentence for each mistake.
. "$(dirname "$0")/cli.sh"

# `unicon` alone: an overview on stderr, status 2; asked for: on stdout, status 0.
run 2
prints_nothing
says "unicon fit image.train.npy"
for how in --help -h help "--help --json" "-h -v"; do
  # shellcheck disable=SC2086
  run 0 $how
  prints "unicon fit image.train.npy"
  says_nothing
done
for command in fit check eval embed search balance probe info synth; do
  grep -q "^  $command " out || fail "overview lacks $command"
  run 0 $command --help
  prints "Usage: unicon $command "
  says_nothing
  cp out asked
  run 0 help $command
  cmp -s out asked || fail "help $command differs from $command --help"
  run 0 $command -h and more --nonsense
  cmp -s out asked || fail "$command -h does not win over what follows"
  run 0 help
done

run 0 --version
grep -q '^unicon [0-9]*\.[0-9]*\.[0-9]*$' out || fail "version line"
[ "$(wc -l <out)" -eq 2 ] || fail "version has two lines"
prints "SIMD"
# An OpenBLAS that does not know the processor takes slow kernels: the command starts with faster
# ones, unless it was told which to take; then the line says so.
env -u OPENBLAS_CORETYPE "$UNICON" --version >out
grep -q "is faster" out && fail "slow products: $(cat out)"
OPENBLAS_CORETYPE=Prescott "$UNICON" --version >out
grep -q '(Prescott' out && grep -q 'SIMD: avx' out && { prints " is faster"; }
run 0 --version

# Commands.
run 2 fti
says 'unicon: unknown command `fti`; did you mean `fit`?'
run 2 frobnicate
says 'unicon --help'
run 2 help frobnicate
says 'unknown command `frobnicate`'
run 2 --verison
says "did you mean --version?"
run 2 --rank 5
says "--rank follows a command: unicon fit ... --rank"
run 2 -v
says "-v follows a command: unicon fit ... -v"
run 2 --threads=1 info
says "unicon: --threads follows a command: unicon info ... --threads"
run 2 -z
says "unicon: unknown option -z; \`unicon --help\` lists the commands"
run 0 -V
prints "SIMD"
run 0 --help fit
prints "Usage: unicon fit "
run 0 check --help-all
prints "Usage: unicon check "
for pair in version:--version train:fit FIT:fit evaluate:eval; do
  run 2 ${pair%:*}
  says "unknown command \`${pair%:*}\`; did you mean \`${pair#*:}\`?"
done
run 2 --completion tcsh
says "bash or zsh or fish"
run 2 --completion
says "needs a value"

# Positionals: which is missing, with the usage line; which is too many.
run 2 fit
says "unicon fit: X is missing"
says "usage: unicon fit X Y -o MODEL"
run 2 fit x.npy -o m.safetensors
says "unicon fit: Y is missing"
run 2 fit x.npy y.npy z.npy -o m.safetensors
says '`z.npy` is one argument too many'
run 2 fit x.npy y.npy
says "-o MODEL.safetensors"
run 2 eval
says "MODEL is missing"
run 2 eval m.safetensors x.npy
says "Y is missing"
run 2 eval --no-model x.npy
says "Y is missing"
run 2 eval --no-model m.safetensors x.npy y.npy
says 'with --no-model only X and Y are given, without MODEL; is `m.safetensors` a model?'
run 2 embed m.safetensors x.npy --side x
says "-o OUT.npy"
run 2 embed m.safetensors x.npy -o z.npy
says "--side x or --side y"
run 2 search m.safetensors q.npy b.npy
says "--query-side x or --query-side y"
run 2 synth -o d
says "KIND is missing"
run 2 synth linear
says "-o DIR"
run 2 info a b
says '`b` is one argument too many'

# Options: unknown ones with the nearest name from both tables.
refused 2 "unknown option --rnak; did you mean --rank?" fit x y -o m --rnak 3
refused 2 "did you mean --y-per-x?" fit x y -o m --y-per 5
refused 2 "did you mean --temperature?" fit x y -o m --temp 5
refused 2 "unknown option --frobnicate; \`unicon fit --help\` lists them" fit x y --frobnicate
refused 2 "unknown option -z" fit x y -z
refused 2 "--rank is an option of the commands fit, plan and compare, not of \`unicon eval\`" eval m x y --rank 3
refused 2 "--side is an option of the commands embed and probe, not of \`unicon fit\`" fit x y -o m --side x
refused 2 "--queries-new is an option of \`unicon migrate\`, not of" fit x y -o m --queries-new x

# Values: missing, wrong, out of bounds; both spellings.
refused 2 "--rank needs a value" fit x y -o m --rank
refused 2 "--rank needs a value" fit x y --rank --json -o m
refused 2 "--output needs a value" fit x y -o
refused 2 "--json takes no value" fit x y --json=yes
refused 2 "rank" fit x y -o m --rank many
refused 2 "rank" fit x y -o m --rank=0
refused 2 "rank" fit x y -o m --rank -3
refused 2 "temperature" fit x y -o m --temperature 0
refused 2 "temperature" fit x y -o m --temperature nan
refused 2 "clip" fit x y -o m --loss clpi
refused 2 "threads" fit x y -o m --threads none
refused 2 "--max-mem is \`lots\`; accepted: a size from 1M on" fit x y -o m --max-mem lots
refused 2 "accepted: x or y" embed m x --side z -o z.npy
refused 2 "accepted: f4 or f2" embed m x --side x -o z.npy --dtype f8
refused 2 "-k is \`0\`" search m q b --query-side x -k 0
refused 2 "-k is \`1.5\`" search m q b --query-side x -k1.5
refused 2 "--y-per-x is \`0\`" fit x y -o m --y-per-x 0
refused 2 "--y-per-x is \`five\`" fit x y -o m --y-per-x five
refused 2 "--train is \`0\`" synth linear -o d --train 0
refused 2 "--seed is \`99999999999999999999\`; accepted: a whole number from 0 to 9007199254740992" fit x y -o m \
  --seed 99999999999999999999
refused 2 "--ridge is \`0x1p-3\`" fit x y -o m --ridge 0x1p-3
refused 2 "--ridge is \`1e-400\`" fit x y -o m --ridge 1e-400
refused 2 "--balance is \`on\`; accepted: auto, off, softmax:BETA" eval m x y --balance on
refused 2 "--only \`nope\`: the rows are fast" compare x y --only 'fast, nope'
run 0 synth linear -o many --train 1e2
prints "100 training"
refused 2 "--train is \`0x10\`" synth linear -o d --train 0x10
refused 1 "m: No such file" search m q b --query-side x -k=5
refused 2 "the output name is empty" fit x y -o ""

# At most one way to say which rows belong together.
refused 2 "--y-per-x and --pairs both say" fit x y -o m --pairs p --y-per-x 5
refused 2 "--y-per-x and --x-per-y both say" eval m x y --x-per-y 2 --y-per-x 5
refused 2 "--pairs and --x-labels both say" eval m x y --pairs p --x-labels a --y-labels b
refused 2 "--x-labels needs --y-labels" fit x y -o m --x-labels a
refused 2 "--y-labels needs --x-labels" fit x y -o m --y-labels a
refused 2 "--val-x needs --val-y" fit x y -o m --val-x a
refused 2 "--val-pairs needs --val-x and --val-y" fit x y -o m --val-pairs a
refused 2 "--val-pairs and --val-x-labels both say" fit x y -o m --val-x a --val-y b --val-pairs p \
  --val-x-labels a --val-y-labels b
refused 2 "give --val-pairs" fit x y -o m --pairs p --val-x a --val-y b
refused 2 "give --val-x-labels" fit x y -o m --x-labels p --y-labels p --val-x a --val-y b

# `--` ends the options; a file may be called --rank.
refused 1 "./--rank" fit -o m -- ./--rank y
run 2 fit -o m -- --rank
says "Y is missing"
echo "usage: ok"
