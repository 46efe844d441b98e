#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Standard output and error, pipes, quietness, progress, signals.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --train 200 --test 100
run 0 fit d/x.train.npy d/y.train.npy -o m.safetensors
says_nothing

# A full disk behind stdout is a failure with one sentence; a reader that leaves is none.
for words in "--help" "fit --help" "--man" "--completion bash" "--version" "info" "info m.safetensors --json" \
  "eval m.safetensors d/x.test.npy d/y.test.npy" \
  "search m.safetensors --query-side x d/x.test.npy d/y.test.npy"; do
  got=0
  # shellcheck disable=SC2086
  $UNICON $words >/dev/full 2>err || got=$?
  [ "$got" = 1 ] || fail "$words to a full disk: exit status $got"
  grep -q "cannot write the result to standard output" err || fail "$words to a full disk: no sentence"
  [ "$(wc -l <err)" -eq 1 ] || fail "$words to a full disk: more than a sentence"
  # shellcheck disable=SC2086
  { $UNICON $words 2>err || echo "$?" >status; } | head -1 >/dev/null
  [ ! -s err ] || fail "$words | head: says something"
  absent status
done

# Warnings unless -q, more with -v, all on stderr.
run 0 fit d/x.train.npy d/y.train.npy -o w.safetensors --preset fast --loss clip --iterations 0
says "unicon fit: warning: "
run 0 fit d/x.train.npy d/y.train.npy -o w.safetensors --preset fast --loss clip --iterations 0 -q
says_nothing
run 0 fit d/x.train.npy d/y.train.npy -o w.safetensors --json -v
wc -l <err >lines
json "j['model'] == 'w.safetensors'"
run 0 fit d/x.train.npy d/y.train.npy -o w.safetensors --json -vv
[ "$(wc -l <err)" -ge "$(cat lines)" ] || fail "-vv says less than -v"
says "stage closed form"
awk '/: stage / { sum += $(NF - 1) } END { exit !(sum > 99 && sum < 101) }' err || fail "shares are no 100 %"
json "j['model'] == 'w.safetensors'"
run 0 fit d/x.train.npy d/y.train.npy -o w.safetensors --json -v -v
[ -s err ] || fail "-v -v says nothing"

# The progress line only when asked for here (stderr is no terminal), and wiped at the end.
run 0 embed m.safetensors --side x d/x.test.npy -o z.npy --progress
says "embed ["
says "100 %"
[ "$(tail -c 4 err | od -An -tx1 | tr -d ' ')" = 0d1b5b4b ] || fail "the progress line is not wiped"
run 0 fit d/x.train.npy d/y.train.npy -o w.safetensors --progress --json
says " %"
json "j['rank'] > 0"

# Without a terminal a line every ten seconds. Signals: status 130, no output, no temporary file; the
# older model stays.
run 0 synth linear -o big --train 6000 --test 10 --dim-x 64 --dim-y 64 --latent 32
for signal in INT TERM; do
  mkdir out_$signal
  $UNICON fit big/x.train.npy big/y.train.npy -o out_$signal/m.safetensors --loss clip --iterations 10000 \
    --damping plain >out 2>err &
  job=$!
  sleep 1
  for wait in $(seq 60); do
    [ $signal = TERM ] || grep -q '^unicon fit: iterations; [0-9]* %; about .* left$' err || sleep 1
  done
  kill -s $signal $job
  got=0
  wait $job || got=$?
  [ "$got" = 130 ] || fail "SIG$signal: exit status $got"
  last="fit and SIG$signal"
  says "unicon fit: interrupted"
  [ $signal = TERM ] || says "unicon fit: iterations; "
  prints_nothing
  [ -z "$(ls -A out_$signal)" ] || fail "SIG$signal: files are left"
done
echo "streams: ok"
