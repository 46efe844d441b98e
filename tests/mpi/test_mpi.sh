#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# unicon-mpi ($UNICON_MPI, started by $MPIRUN) beside the command in one process.
#   test_mpi.sh same COUNT   COUNT processes: the same models to rounding, the same recalls and lists
#   test_mpi.sh fail         what goes wrong in one process: a sentence, all end, nothing is written
. "$UNICON_SOURCE_DIR/tests/cli/cli.sh"
: "${UNICON_MPI:?set UNICON_MPI to unicon-mpi}"
: "${MPIRUN:=mpirun}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_vader_backing_directory=$scratch
export OMPI_MCA_btl_vader_single_copy_mechanism=none # containers may forbid it
count=${2:-3}

# all CODE ARGUMENTS...: as `run`, in $count processes; their launcher adds lines of its own to err.
all() {
  local want=$1 got=0
  shift
  last="unicon-mpi $*"
  timeout 300 "$MPIRUN" --oversubscribe -n "$count" "$UNICON_MPI" "$@" >out 2>err </dev/null || got=$?
  [ "$got" = "$want" ] || fail "$last: exit status $got instead of $want"
}

# Enough work that stages are divided: 2e9 floating point operations each.
make_data() {
  run 0 synth nonlinear -o d --train 6000 --val 60 --test 2500 --dim-x 300 --dim-y 200 --noise 0.6
}

# same TOLERANCE OPTIONS...: fits by one process and by several.
same() {
  local tolerance=$1
  shift
  run 0 fit d/x.train.npy d/y.train.npy -o one.safetensors "$@"
  all 0 fit d/x.train.npy d/y.train.npy -o all.safetensors "$@"
  for model in one all; do
    run 0 embed $model.safetensors --side x d/x.val.npy -o $model.x.npy
    run 0 embed $model.safetensors --side y d/y.val.npy -o $model.y.npy
  done
  npy products one.x.npy one.y.npy all.x.npy all.y.npy "$tolerance" ||
    fail "$* in $count processes: another model"
}

check_same() {
  make_data
  same 1e-4 --preset fast --rank 64
  cp one.safetensors fast.safetensors
  same 1e-3 --preset fast --rank 32 --kernel angular --landmarks 300
  same 1e-4 --preset fast --rank 32 --val-x d/x.val.npy --val-y d/y.val.npy
  same 1e-3 --rank 48 --preset fast --iterations 2 --batch full --loss clip --temperature 0.2
  same 1e-3 --rank 48 --preset fast --iterations 1 --batch full --loss supcon \
    --x-labels d/label.train.npy --y-labels d/label.train.npy
  same 5e-3 --rank 64 --preset fast --refine 1 --refine-batch 3000
  # recalls, and lists, are equal to the last digit
  run 0 eval fast.safetensors d/x.test.npy d/y.test.npy --json
  cp out one.json
  all 0 eval fast.safetensors d/x.test.npy d/y.test.npy --json
  cmp -s out one.json || fail "eval in $count processes has other figures"
  run 0 search fast.safetensors --query-side y d/y.test.npy d/x.train.npy -k 5
  cp out one.tsv
  all 0 search fast.safetensors --query-side y d/y.test.npy d/x.train.npy -k 5
  cmp -s out one.tsv || fail "search in $count processes has other lists"
  all 0 search fast.safetensors --query-side y d/y.test.npy d/x.train.npy -k 5 -o found
  run 0 search fast.safetensors --query-side y d/y.test.npy d/x.train.npy -k 5 -o alone
  cmp -s found.ids.npy alone.ids.npy || fail "search -o in $count processes has other ids"
  cmp -s found.scores.npy alone.scores.npy || fail "search -o has other scores"
}

# refused_by_all CODE SENTENCE ARGUMENTS...: that sentence once, and no file.
refused_by_all() {
  local want=$1 sentence=$2
  shift 2
  all "$want" "$@"
  says "$sentence"
  prints_nothing
  [ "$(grep -v warning: err | grep -c '^unicon')" -eq 1 ] || fail "$last: not one sentence"
  absent m.safetensors .m.safetensors.tmp-*
}

# mixed SENTENCE FIRST -- SECOND: process 0 has the first arguments, two others the second.
mixed() {
  local sentence=$1 got=0 first=()
  shift
  while [ "$1" != -- ]; do first+=("$1"); shift; done
  shift
  last="unicon-mpi ${first[*]} : $*"
  timeout 300 "$MPIRUN" --oversubscribe -n 1 "$UNICON_MPI" "${first[@]}" : -n 2 "$UNICON_MPI" "$@" \
    >out 2>err </dev/null || got=$?
  [ "$got" -gt 0 ] && [ "$got" != 124 ] || fail "$last: exit status $got"
  says "$sentence"
  absent m.safetensors .m.safetensors.tmp-*
}

check_fail() {
  make_data
  mkdir x y nan.x
  for k in 0 1 2; do
    cp d/x.test.npy x/$k.npy
    cp d/y.test.npy y/$k.npy
  done
  cp x/*.npy nan.x
  npy write nan.x/1.npy f4 2500 300 3 7,5=nan
  all 0 fit x y -o m.safetensors --preset fast -v
  says "3 processes, of one thread each unless threads says otherwise"
  says "process 0 told the others"
  rm m.safetensors
  refused_by_all 1 "(row 7 of 1.npy), column 5 is not a finite number" \
    fit nan.x y -o m.safetensors --preset fast
  head -c 20000 x/1.npy >cut.npy
  cp -r x cut.x && cp cut.npy cut.x/1.npy
  refused_by_all 1 "1.npy" fit cut.x y -o m.safetensors --preset fast
  cp -r x gap.x && rm gap.x/1.npy
  mkdir x2 y2 && cp x/[01].npy x2 && cp y/[01].npy y2
  refused_by_all 1 "gap.x" fit gap.x y -o m.safetensors --preset fast
  refused_by_all 2 "--preset is \`fsat\`" fit x y -o m.safetensors --preset fsat
  refused_by_all 2 "runs fit, eval and search" stats x y -o m.stats
  refused_by_all 2 "--classes runs in one process" eval m x --classes x/0.npy --x-labels l
  # one process sees other files, or is told something else
  mixed "process 1: option ridge is 0.3 here, but on process 0 option ridge is 0.1" \
    fit x y -o m.safetensors --preset fast --ridge 0.1 -- \
    fit x y -o m.safetensors --preset fast --ridge 0.3
  mixed "process 1: the call is fit of 5000 by 300" \
    fit x y -o m.safetensors --preset fast -- fit x2 y2 -o m.safetensors --preset fast
  mixed "process 1: cannot open nowhere" \
    fit x y -o m.safetensors --preset fast -- fit nowhere y -o m.safetensors --preset fast
  mixed "process 1: " fit x y -o m.safetensors --preset fast -- fit x y -o m.safetensors --no-such
  check_killed
}

# A process that is killed takes the job with it, and the launcher says which one.
check_killed() {
  local got=0
  cat >killed.sh <<'SCRIPT'
if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
  "$@" &
  sleep 0.7
  kill -9 $!
  wait $! || true
  kill -9 $$
fi
exec "$@"
SCRIPT
  last="a killed process"
  timeout 120 "$MPIRUN" --oversubscribe -n 3 bash killed.sh "$UNICON_MPI" fit x y -o m.safetensors \
    --kernel angular --landmarks 1500 --iterations 3 --batch full >out 2>err </dev/null || got=$?
  [ "$got" -gt 0 ] && [ "$got" != 124 ] || fail "$last: exit status $got"
  says "rank 1"
  absent m.safetensors
}

case ${1:-} in
  same) check_same ;;
  fail) check_fail ;;
  *) echo "usage: test_mpi.sh same COUNT | fail" >&2; exit 2 ;;
esac
