#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Statistics: parts made apart and merged are the whole; rows are added, removed, refused; a fit from
# statistics is the fit of the rows; what is broken names its part and leaves nothing behind.
. "$(dirname "$0")/cli.sh"

# Three shards, and all of them as folders.
run 0 synth linear -o synth --train 600 --val 350 --test 250 --dim-x 24 --dim-y 20
mkdir x y
part=0
for name in train val test; do
  cp synth/x.$name.npy x/$part.npy
  cp synth/y.$name.npy y/$part.npy
  part=$((part + 1))
done

# ---- parts ----------------------------------------------------------------------------------
run 0 stats x y -o whole.stats
prints "1200 rows of 24 numbers, kernel linear"
for k in 0 1 2; do run 0 stats x/$k.npy y/$k.npy -o part$k.stats --quiet; done
run 0 merge part2.stats part0.stats part1.stats -o all.stats
prints "pairs            1200"
run 0 fit --from whole.stats --preset fast -o whole.safetensors
prints "1200 rows of 24 numbers, summed before"
run 0 fit --from all.stats --preset fast -o all.safetensors
run 0 fit x y --preset fast --exponent 1.5 --balance softmax:5 -o rows.safetensors --quiet
run 0 fit --from all.stats --preset fast --exponent 1.5 --balance softmax:5 -o same.safetensors --quiet
for m in whole all rows same; do
  run 0 embed $m.safetensors --side x synth/x.test.npy -o $m.npy --quiet
  run 0 embed $m.safetensors --side y synth/y.test.npy -o $m.y.npy --quiet
  run 0 eval $m.safetensors synth/x.test.npy synth/y.test.npy --json
  cp out $m.json
done
npy close whole.npy all.npy 1e-6 || fail "merged parts give another model"
# Directions of nearly equal singular values turn among themselves; what is promised are the cosines.
npy products rows.npy rows.y.npy same.npy same.y.npy 1e-4 || fail "statistics give another model than the rows"
python3 - <<'PYTHON' || fail "recalls differ"
import json
read = lambda m: json.load(open(m + ".json"))
for a, b in ("whole", "all"), ("rows", "same"):
    for way in "x_to_y", "y_to_x":
        for k in "hit@1", "hit@5", "hit@10":
            assert read(a)[way]["plain"][k] == read(b)[way]["plain"][k], (a, b, way, k)
PYTHON
run 0 info all.stats
prints "kernel linear, 24 features"
run 0 info all.stats --json
json "j['rows_x'] == 1200 and j['sample']['rows_y'] == 1200 and j['updates'] == 3"

for threads in 1 3; do run 0 stats x y --threads $threads -o threads$threads.stats --quiet; done
cmp -s threads1.stats threads3.stats || fail "the bytes depend on the threads"

# ---- adding and removing --------------------------------------------------------------------
run 0 merge part0.stats part2.stats -o never.stats --quiet
run 0 stats never.stats --add x/1.npy y/1.npy -o added.stats --json
json "j['rows_x'] == 1200"
run 0 stats added.stats --remove x/1.npy y/1.npy -o removed.stats --certificate proof.json
prints "removed          350 rows of x"
prints "checked by       sample of every row"
python3 -c "
import json
c = json.load(open('proof.json'))
assert c['removed']['rows_y'] == 350 and c['left']['pairs'] == 850 and c['statistics'] == 'removed.stats'
assert 0 < c['trace']['bound'] < 1e-10 and len(c['removed']['hash']) == 16" || fail "the certificate"
for m in never removed; do
  run 0 fit --from $m.stats -o $m.safetensors --quiet
  run 0 embed $m.safetensors --side y synth/y.test.npy -o $m.npy --quiet
done
npy close never.npy removed.npy 1e-6 || fail "removed rows left a trace"
run 0 stats x/0.npy y/0.npy --ledger -o kept.stats --quiet
run 0 stats kept.stats --add x/2.npy y/2.npy -o kept2.stats --quiet
refused 1 "the ledger of kept2.stats has every row of kept.stats already" merge kept2.stats kept.stats -o no.stats
run 0 merge part0.stats part0.stats -o double.stats
says "part0.stats seems to be in part0.stats already (600 of its 600 samples are)"
refused 1 "has every row, but not 350 of the rows and their partners" stats never.stats --remove x/1.npy y/1.npy -o no.stats
absent no.stats
refused 1 "350 of the 350 rows of x were never added" stats kept2.stats --remove x/1.npy y/1.npy -o no.stats
run 0 merge kept.stats part1.stats -o mixed.stats
says "the sum has no ledger, because part1.stats has none"
run 0 stats kept2.stats --remove x/2.npy y/2.npy -o kept3.stats
prints "checked by       ledger"
run 0 stats all.stats --add x/0.npy y/0.npy --decay 0.5 -o drift.stats
prints "1200 rows of 24"
prints "nothing can be removed"
refused 1 "drift.stats was decayed" stats drift.stats --remove x/0.npy y/0.npy -o no.stats
refused 1 "1200 rows of x cannot be removed" stats part0.stats --remove x y -o no.stats
absent no.stats

# ---- labels ---------------------------------------------------------------------------------
# Any split of rows with labels adds up, the sides cut in different places.
seq 600 | awk '{ print "name " ($1 * $1) % 7 }' >labels.x
seq 600 | awk '{ print "name " int($1 / 100) }' >labels.y
head -350 labels.x >head.x; tail -250 labels.x >tail.x
head -350 labels.y >head.y; tail -250 labels.y >tail.y
npy rows x/0.npy 0 350 hx.npy; npy rows x/0.npy 350 600 tx.npy
npy rows y/0.npy 0 350 hy.npy; npy rows y/0.npy 350 600 ty.npy
run 0 stats x/0.npy y/0.npy --x-labels labels.x --y-labels labels.y -o named.stats
prints "of 7 labels"
run 0 stats hx.npy ty.npy --x-labels head.x --y-labels tail.y -o named0.stats --quiet
run 0 stats tx.npy hy.npy --x-labels tail.x --y-labels head.y -o named1.stats --quiet
run 0 merge named1.stats named0.stats -o named2.stats --quiet
for m in named named2; do
  run 0 fit --from $m.stats --preset fast -o $m.safetensors --quiet
  run 0 embed $m.safetensors --side x x/1.npy -o $m.npy --quiet
done
npy close named.npy named2.npy 1e-6 || fail "parts with labels give another model"
run 0 stats named.stats --remove hx.npy ty.npy --x-labels head.x --y-labels tail.y -o named3.stats --json
json "j['classes'] == 5 and j['rows_x'] == 250 and j['certificate']['removed']['rows_y'] == 250"
refused 1 "class labels" merge part0.stats named.stats -o no.stats
awk "{ print \"name 1\" }" tail.x >ones.x
refused 1 "with label" stats named1.stats --remove tx.npy hy.npy --x-labels ones.x --y-labels head.y -o no.stats
absent no.stats

# ---- fits -----------------------------------------------------------------------------------
run 0 fit --from part0.stats --val-x x/1.npy --val-y y/1.npy -o judged.safetensors
prints "among 350 x 350 rows"
run 0 fit --from drift.stats -o drift.safetensors
says "no rows can be held out of these statistics (they were decayed)"
run 0 stats x/0.npy y/0.npy --sample-rows 0 -o bare.stats
prints "sample           0 x 0 rows"
run 0 fit --from bare.stats -o bare.safetensors
says "they keep no sample"
prints "balance          off"
refused 2 "keeps no rows to make banks of" fit --from bare.stats --balance softmax:5 -o no.safetensors
refused 2 "which needs the rows" fit --from all.stats --refine 3 -o no.safetensors
refused 2 "kernel of x is rbf, but all.stats was made with linear" fit --from all.stats --kernel rbf -o no.safetensors
refused 2 "normalize is off" fit --from all.stats --normalize off -o no.safetensors
refused 2 "--pairs is about the rows" fit --from all.stats --pairs p.tsv -o no.safetensors
refused 1 "holds statistics, not a model" eval all.stats x/0.npy y/0.npy
refused 1 "is a model, not statistics" fit --from all.safetensors -o no.safetensors
run 2 fit --from all.stats x/0.npy y/0.npy -o no.safetensors
says "with --from X and Y are not given, but"
absent no.safetensors

# ---- kernels --------------------------------------------------------------------------------
run 0 landmarks x y --kernel rbf --landmarks 100 -o maps.stats
prints "0 rows of 24 numbers, kernel rbf, 100 features"
for k in 0 1 2; do run 0 stats x/$k.npy y/$k.npy --map-from maps.stats -o rbf$k.stats --quiet; done
run 0 merge rbf0.stats rbf1.stats rbf2.stats -o rbf.stats --quiet
run 0 fit --from rbf.stats --preset fast -o rbf.safetensors
run 0 stats x/0.npy y/0.npy --map-from rbf.safetensors -o again.stats
prints "kernel rbf, 100 features"
run 0 stats x/0.npy y/0.npy --kernel angular --map random --features 64 -o random.stats
prints "kernel arccos1, 64 features"
refused 1 "landmarks of the kernel" stats rbf.stats --remove x/0.npy y/0.npy -o no.stats
run 0 stats rbf.stats --remove x/0.npy y/0.npy --drop-landmarks -o less.stats --json
json "j['certificate']['landmarks']['dropped'] > 10 and j['features_x'] < 100"
refused 2 "map is exact" stats x/0.npy y/0.npy --kernel rbf --map exact -o no.stats
refused 2 "--kernel has no effect" stats x/0.npy y/0.npy --map-from maps.stats --kernel rbf -o no.stats
refused 2 "--kernel has no effect" stats x/0.npy y/0.npy --map-from rbf.safetensors --kernel rbf -o no.stats
refused 2 "--normalize has no effect with the maps of a model" stats x/0.npy y/0.npy --map-from rbf.safetensors --normalize off -o no.stats
refused 2 "--kernel has no effect" landmarks x/0.npy y/0.npy --map-from maps.stats --kernel rbf -o no.stats
run 0 stats x/0.npy y/0.npy --map-from rbf.safetensors --sample-rows 20 --ledger --kernel-ridge 1e-6 -o some.stats

# ---- plan -----------------------------------------------------------------------------------
run 0 plan x y --preset fast
prints "read 2 times"
run 0 plan x y --preset fast --ridge 0.01 --exponent 1 --balance off
prints "read 1 time"
prints '`unicon stats` would take about'
run 0 plan x y --preset fast --json
json "j['statistics']['bytes'] > 0 and j['machine_memory'] > j['memory'] and j['device'] == 'cpu'"
run 0 plan --from all.stats
prints "it fits into this machine"
run 0 plan --from all.stats --max-mem 40M --preset fast --json
json "j['memory'] < 40e6 and 'stays within' in j['advice']"
refused 2 "--pairs is about the rows" plan --from all.stats --pairs p.tsv
run 2 plan x
says "Y is missing"
run 2 plan --from all.stats x y
says "with --from X and Y are not given, but"

# ---- what is broken -------------------------------------------------------------------------
head -c 20000 part1.stats >cut.stats
refused 1 "cut.stats: the tensor" merge part0.stats cut.stats part2.stats -o no.stats
printf 'no statistics' >text.stats
refused 1 "text.stats is not a .safetensors file" merge part0.stats text.stats -o no.stats
refused 1 "missing.stats" merge part0.stats missing.stats -o no.stats
run 0 stats x/1.npy y/1.npy --normalize off -o other.stats --quiet
refused 1 "other.stats was made with normalize off, but part0.stats with normalize on" \
  merge part0.stats part2.stats other.stats -o no.stats
refused 1 "with kernel rbf" merge part0.stats rbf1.stats -o no.stats
npy write bad.npy f4 350 24 3 7,5=nan
cp x/1.npy good.npy
cp bad.npy x/1.npy
refused 1 "x: row 607 (row 7 of 1.npy), column 5" stats x y -o no.stats
refused 1 "x/1.npy: row 7, column 5" stats part0.stats --add x/1.npy y/1.npy -o no.stats
run 0 stats part0.stats --add x/1.npy y/1.npy --bad-rows drop -o dropped.stats --json
json "j['rows_x'] == 949 and j['pairs'] == 949"
cp good.npy x/1.npy
head -c 9000 good.npy >x/1.npy
refused 1 "x/1.npy" stats x y -o no.stats
refused 1 "x/1.npy" fit x y --preset fast -o no.safetensors
cp good.npy x/1.npy
mv x/1.npy x1 && mv y/1.npy y1
run 0 stats x y -o gap.stats --json
says "is a file missing?"
json "j['rows_x'] == 850"
mv y1 y/1.npy
run 1 stats x y -o no.stats
says "x has 850 rows and y has 1200"
mv x1 x/1.npy
refused 1 "rows of 20 values" stats part0.stats --add y/1.npy x/1.npy -o no.stats
absent no.stats
ls -A | grep -q '\.tmp-' && fail "a temporary file was left"

# ---- the command line -----------------------------------------------------------------------
run 2 stats x y
says "say where the statistics go"
refused 2 "--certificate needs --remove" stats x y --certificate c.json -o no.stats
refused 2 "no.npy: a file of statistics is called NAME.stats" stats x y -o no.npy
refused 2 "--decay needs --add" stats x y --decay 0.5 -o no.stats
refused 2 '--decay is `1.5`' stats all.stats --add x y --decay 1.5 -o no.stats
refused 2 "give one of --add and --remove" stats all.stats --add --remove x y -o no.stats
run 2 stats all.stats --add x -o no.stats
says "Y is missing"
run 2 stats all.stats x y -o no.stats
says "one argument too many"
run 2 merge -o no.stats
says "PART... is missing"
refused 1 "is an input" merge part0.stats part1.stats -o part1.stats

# ---- memory ---------------------------------------------------------------------------------
# Folders of shards, several times as large as the limit: they are read in pieces. Anonymous memory
# stays below the limit and 64 MB for BLAS and code; file pages are the system's. On the CPU: the
# library of a driver, where there is a plugin, has memory of its own as soon as it is loaded.
run 0 synth linear -o big --train 50000 --val 40000 --test 10 --dim-x 128 --dim-y 64
mkdir big.x big.y
for side in x y; do
  mv big/$side.train.npy big.$side/0.npy
  mv big/$side.val.npy big.$side/1.npy
done
[ "$(du -sm big.x big.y | awk '{ n += $1 } END { print n }')" -gt 60 ] || fail "the rows are not large"
within() { # LIMIT ARGUMENTS...
  python3 - "$@" <<'PYTHON' || fail "unicon $*: status or memory"
import os, subprocess, sys, time
limit, arguments = int(sys.argv[1]), sys.argv[2:]
words = os.environ["UNICON"].split()
with open(words[-1], "rb") as program:  # a sanitizer has memory of its own
    plain = len(words) == 1 and not {b"__asan_init", b"__tsan_init"} & set(program.read().split(b"\0"))
run = subprocess.Popen([*words, *arguments, "--max-mem", f"{limit}M", "--threads", "1", "--device", "cpu",
                        "--quiet"],
                       stdout=subprocess.DEVNULL)
peak = 0
while run.poll() is None:
    try:
        with open(f"/proc/{run.pid}/status") as status:
            peak = max([peak] + [int(line.split()[1]) // 1024 for line in status if line.startswith("RssAnon")])
    except OSError:
        pass
    time.sleep(0.002)
assert run.returncode == 0, run.returncode
assert not plain or peak <= limit + 64, peak
PYTHON
}
export UNICON
within 24 stats big.x big.y --sample-rows 2000 -o big.stats
within 24 fit --from big.stats -o big.safetensors
within 24 fit big.x big.y --preset fast --exponent 1 --balance off -o rows.safetensors
refused 1 "raise --max-mem or use fewer --threads" stats big.x big.y --max-mem 3M -o no.stats
absent no.stats

# A process that is killed leaves no part, or a whole one.
for signal in KILL TERM INT; do
  rm -f killed.stats
  "$UNICON" stats big.x big.y --threads 1 -o killed.stats >out 2>err </dev/null &
  pid=$!
  sleep 0.05
  kill -$signal $pid 2>/dev/null || true
  got=0
  wait $pid || got=$?
  if [ $got -eq 0 ]; then
    run 0 info killed.stats
  else
    absent killed.stats
    [ $signal = KILL ] || [ $got -ge 128 ] || fail "SIG$signal: exit status $got"
  fi
done
echo "stats: ok"
