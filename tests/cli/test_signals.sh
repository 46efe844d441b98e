#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What ends a command from outside: signals in a fit, in a save and in a long output; files that grow
# no further; full disks and folders that cannot be written. The older file of the name stays whole,
# and no partial file ever has the name.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --train 200 --test 50
run 0 synth linear -o big --train 6000 --test 10 --dim-x 64 --dim-y 64 --latent 32
run 0 synth linear -o long --train 120000 --test 10
mkdir kept
run 0 fit d/x.train.npy d/y.train.npy --preset fast -o kept/m.safetensors
run 0 embed kept/m.safetensors --side x d/x.test.npy -o kept/z.npy

# renew: the target folder has the older files and nothing else.
renew() {
  rm -rf target
  cp -r kept target
}

# whole FILE: it is the older one.
whole() { cmp -s "kept/$1" "target/$1" || fail "$last: target/$1 was touched"; }

# clean: nothing else is in the folder, hidden files included.
clean() { [ "$(find target -mindepth 1 | wc -l)" -eq 2 ] || fail "$last: left in the folder: $(find target -mindepth 1 | tr "\n" " ")"; }

# begin ARGUMENTS...: the command in the background, as $job.
begin() {
  last="unicon $*"
  $UNICON "$@" >out 2>err </dev/null &
  job=$!
}

# end SIGNAL STATUS: sends it and waits.
end() {
  local got=0
  kill -s "$1" "$job" 2>/dev/null || true
  wait "$job" 2>/dev/null || got=$?
  last="$last and SIG$1"
  [ "$got" = "$2" ] || fail "$last: exit status $got instead of $2"
}

# until_written: waits until the job has begun a temporary file in `target`, or ended.
until_written() {
  while kill -0 "$job" 2>/dev/null; do
    for f in target/.*.tmp-*; do [ ! -e "$f" ] || return 0; done
  done
  return 1
}

# ---- a long fit ----------------------------------------------------------------------------------

long_fit=(fit big/x.train.npy big/y.train.npy -o target/m.safetensors --loss clip --iterations 10000
  --damping plain)
for signal in INT TERM; do
  renew
  begin "${long_fit[@]}"
  sleep 0.7
  end $signal 130
  says "unicon fit: interrupted"
  prints_nothing
  whole m.safetensors
  clean
done
renew
begin "${long_fit[@]}"
sleep 0.7
kill -s INT "$job" # the second one does not wait for the next step
end INT 130
whole m.safetensors
renew
begin "${long_fit[@]}"
sleep 0.7
end KILL 137
whole m.safetensors
clean # nothing is opened before there is something to write

# ---- a report ------------------------------------------------------------------------------------

run 0 fit big/x.train.npy big/y.train.npy --preset fast -o big.safetensors
renew
begin report big.safetensors big/x.train.npy big/y.train.npy --threads 1 -o target/r.html
sleep 0.7
end INT 130
says "unicon report: interrupted"
prints_nothing
absent target/r.html
clean

# ---- a save and a long output ----------------------------------------------------------------------

# Killed while it writes: a temporary file may stay, the older file is whole. Should the rename have
# come first, then the new one is.
for attempt in 1 2 3; do
  renew
  begin fit big/x.train.npy big/y.train.npy -o target/m.safetensors --preset fast --kernel angular \
    --map nystrom --landmarks 700
  if until_written; then
    kill -s KILL "$job" 2>/dev/null || true
  fi
  wait "$job" 2>/dev/null || true
  last="a save that is killed, attempt $attempt"
  cmp -s kept/m.safetensors target/m.safetensors || $UNICON info target/m.safetensors >out 2>err ||
    fail "$last: the model is neither the older nor the new one"
done
for signal in INT TERM KILL; do
  renew
  begin embed kept/m.safetensors --side x long/x.train.npy -o target/z.npy
  until_written || fail "embed ended without a temporary file"
  if [ $signal = KILL ]; then end KILL 137; else end $signal 130; fi
  whole z.npy
  if [ $signal != KILL ]; then clean; fi
done

# ---- files that grow no further --------------------------------------------------------------------

# 1 kB is the limit. Its signal does not end the process: the write fails with a sentence and the
# temporary file goes.
renew
for what in "fit d/x.train.npy d/y.train.npy -o target/m.safetensors" \
  "embed kept/m.safetensors --side x d/x.train.npy -o target/z.npy" \
  "search kept/m.safetensors --query-side x d/x.test.npy d/y.test.npy -o target/s" \
  "check d/x.train.npy d/y.train.npy -k 100 -o target/suspects.tsv" \
  "report kept/m.safetensors d/x.test.npy d/y.test.npy -o target/r.html"; do
  got=0
  # shellcheck disable=SC2086
  { (ulimit -c 0 -f 1 && exec $UNICON $what >/dev/null 2>err.pipe) || got=$?; } 2>/dev/null
  cp err.pipe err
  last="unicon $what with a file limit"
  [ "$got" = 1 ] || fail "$last: exit status $got"
  says "File too large"
  [ "$(wc -l <err)" -eq 1 ] || fail "$last: more than one line on stderr"
  whole m.safetensors
  whole z.npy
  clean
done
got=0
{ (ulimit -c 0 -f 1 && exec $UNICON --man >long.txt 2>err.pipe) || got=$?; } 2>/dev/null
cp err.pipe err
last="unicon --man with a file limit"
[ "$got" = 1 ] || fail "$last: exit status $got"
says "cannot write the result to standard output: File too large"

# ---- an address space that is limited --------------------------------------------------------------

# OpenBLAS would ask for memory for ever. (Instrumented programs do not start with so little.)
if (ulimit -v 200000 && $UNICON --version >/dev/null 2>&1); then
  got=0
  (ulimit -v 200000 && exec timeout 60 $UNICON fit d/x.train.npy d/y.train.npy --threads 2 -o target/m.safetensors) >out 2>err || got=$?
  last="unicon fit with 200 MB of address space"
  [ "$got" = 1 ] || fail "$last: exit status $got"
  says "the address space is limited to 195 MiB (ulimit -v), and too little is left: 2 threads of OpenBLAS need 290 MiB"
  whole m.safetensors
fi

# ---- a full disk, a folder that cannot be written --------------------------------------------------

renew
mkdir disk
if mount -t tmpfs -o size=64k tmpfs disk 2>/dev/null; then
  trap 'umount "$scratch/disk" 2>/dev/null; rm -rf "$scratch"' EXIT
  cp kept/m.safetensors disk/m.safetensors
  refused 1 "No space left" fit big/x.train.npy big/y.train.npy -o disk/m.safetensors --preset fast --balance softmax:10
  cmp -s kept/m.safetensors disk/m.safetensors || fail "$last: the older model was touched"
  refused 1 "No space left" embed kept/m.safetensors --side x long/x.train.npy -o disk/z.npy
  [ "$(ls -A disk)" = m.safetensors ] || fail "$last: files are left"
  mount -o remount,ro disk
  refused 1 "disk/m.safetensors" fit d/x.train.npy d/y.train.npy -o disk/m.safetensors
  refused 1 "disk/z.npy" embed kept/m.safetensors --side x d/x.test.npy -o disk/z.npy
  cmp -s kept/m.safetensors disk/m.safetensors || fail "$last: the older model was touched"
  umount disk
  trap 'rm -rf "$scratch"' EXIT
else
  echo "signals: no tmpfs here, the full disk is left out"
fi
if [ "$(id -u)" -ne 0 ]; then
  chmod 500 target
  refused 1 "target/m.safetensors" fit d/x.train.npy d/y.train.npy -o target/m.safetensors
  chmod 700 target
  whole m.safetensors
  clean
fi
echo "signals: ok"
