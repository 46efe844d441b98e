#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# unicon compare: every row, the split, the choice on validation rows, the times.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --train 300 --test 120
train="d/x.train.npy d/y.train.npy" test="--test-x d/x.test.npy --test-y d/y.test.npy"

# All rows, in their order, on the given test rows.
# shellcheck disable=SC2086
run 0 compare $train $test --budget 60 --json
says_nothing
json "[r['name'] for r in j['rows']] == 'fast auto best paper sgd_linear cca pls procrustes ridge none'.split()"
json "j['test'] == {'x': 120, 'y': 120, 'pairs': 120, 'held_out': False}"
json "j['validation']['held_out'] and j['train']['pairs'] + j['validation']['pairs'] == 300"
json "all('skipped' in r for r in j['rows'] if r['name'] == 'none') and 'no cosine' in j['rows'][-1]['skipped']"
json "all(r[k]['x_to_y']['queries'] == 120 and r['memory_bytes'] > 0 for k in ('plain', 'balanced') for r in j['rows'][:-1])"
json "[r['candidates'] for r in j['rows'][:-1]] == [1, 1, 1, 1, 6, 3, 1, 1, 8]"
# What is known of this data: whitening finds the pairs.
json "{r['name']: r['plain']['x_to_y']['hit@1'] for r in j['rows'][:-1]}['fast'] > .8"
json "{r['name']: r['plain']['x_to_y']['hit@1'] for r in j['rows'][:-1]}['sgd_linear'] > .5"
json "{r['name']: r['plain']['x_to_y']['hit@1'] for r in j['rows'][:-1]}['ridge'] > .3"
json "{r['name']: r['plain']['x_to_y']['hit@1'] for r in j['rows'][:-1]}['paper'] < {r['name']: r['plain']['x_to_y']['hit@1'] for r in j['rows'][:-1]}['fast']"
# Every row both ways, with how it is balanced: never worse on the rows that chose, and where that
# is off the two are one.
json "all(r['plain']['balance'] == 'off' and r['balanced']['balance'].split(':')[0] in ('off', 'softmax', 'csls') for r in j['rows'][:-1])"
json "all(r['balanced']['held_out_score'] >= r['plain']['held_out_score'] - 1e-9 for r in j['rows'][:-1] if r['name'] not in ('fast', 'auto', 'best') and not r['name'].startswith('sgd'))"
json "all(r['balanced'][d]['mrr'] == r['plain'][d]['mrr'] for r in j['rows'][:-1] for d in ('x_to_y', 'y_to_x') if r['balanced']['balance'] == 'off' and r['candidates'] == 1)"
# Times to another's quality: there exactly where the held-out score is.
json "all((t is not None) == (r['balanced']['held_out_score'] >= {q['name']: q for q in j['rows']}[n]['balanced']['held_out_score'] - 1e-9) for r in j['rows'][:-1] if not r['name'].startswith('sgd') for n, t in r['seconds_to_quality_of'].items())"
json "all(t <= r['fit_seconds'] for r in j['rows'][:-1] for t in r['seconds_to_quality_of'].values() if t is not None)"

# One row agrees with fit and eval by hand, balanced and plain.
val="--val-x d/x.test.npy --val-y d/y.test.npy"
# shellcheck disable=SC2086
run 0 fit d/x.train.npy d/y.train.npy $val --preset fast -o fast.safetensors
says_nothing
run 0 eval fast.safetensors d/x.test.npy d/y.test.npy --json
cp out eval.json
run 0 eval fast.safetensors d/x.test.npy d/y.test.npy --json --balance off
cp out plain.json
# shellcheck disable=SC2086
run 0 compare $train $test $val --only fast --json
says_nothing
json "j['rows'][0]['balanced']['x_to_y']['mrr'] == json.load(open('eval.json'))['x_to_y']['mrr']"
json "j['rows'][0]['plain']['x_to_y']['mrr'] == json.load(open('plain.json'))['x_to_y']['mrr']"
json "len(j['rows']) == 1 and j['train']['pairs'] == 300 and not j['validation']['held_out']"

# The table; test rows held out of the training rows, which it says.
# shellcheck disable=SC2086
run 0 compare $train --only fast,ridge,pls
says_nothing
prints "held out: no --test-x and --test-y were given"
prints "as good as ridge, balanced ("
prints ", after: fast "
grep -q "^chance  *0\.0[0-9]* " out || fail "no line of chance"
grep -q "^fast  *plain  *[01]\.[0-9]* " out || fail "no plain line"
grep -q "^  *balanced  *[01]\.[0-9]* .*  \(off\|softmax:[0-9.]*\|csls:[0-9]*\) " out || fail "no balanced line"
awk 'length > 100 && !/^[a-z_]*(, (plain|balanced))?: /' out | grep -q . && fail "the table is too wide"
prints "test        60 x 60 rows, 60 pairs"
prints "ridge: metric "
# shellcheck disable=SC2086
run 0 compare $train --only fast,fast,auto --budget 1
prints "auto: kernel"
grep -c "^fast " out | grep -qx 1 || fail "a row named twice is run twice"

# The baselines are balanced as our presets are, the best SGD head is the one to beat, and rows as
# they are get banks of training rows.
digits=$UNICON_SOURCE_DIR/data/digits
run 0 compare "$digits/upper.train.npy" "$digits/lower.train.npy" --only fast,sgd_linear,cca,ridge,none --json
json "all(r['balanced']['balance'].startswith('softmax:') for r in j['rows'][:-1])"
json "all(r['balanced']['held_out_score'] > r['plain']['held_out_score'] for r in j['rows'][:-1])"
json "all(r['balanced']['x_to_y'] != r['plain']['x_to_y'] for r in j['rows'][:-1])"
run 0 compare "$digits/upper.train.npy" "$digits/lower.train.npy" --only fast,sgd_linear,cca
prints "as good as sgd_linear, balanced (0."
prints "; sgd_linear, balanced too, "
# All rows of x lean one way, and every eighth row of y leans there more: it is near everything.
python3 - "$tests" <<'PYTHON'
import random, sys
sys.path.insert(0, sys.argv[1])
import npy
random.seed(1)
rows = [[random.gauss(0, 1) for _ in range(8)] for _ in range(400)]
npy.save("same.npy", "f4", [[v + .7 for v in r] for r in rows])
npy.save("other.npy", "f4", [[v + random.gauss(0, .5) + 1.5 * (i % 8 == 0) for v in r] for i, r in enumerate(rows)])
PYTHON
run 0 compare same.npy other.npy --only none --json
json "j['rows'][0]['balanced']['balance'] != 'off' and j['rows'][0]['balanced']['held_out_score'] > j['rows'][0]['plain']['held_out_score']"

# Five captions per image stay together; one space needs no alignment to be compared.
npy repeat y5.npy d/y.train.npy 5
run 0 compare d/x.train.npy y5.npy --y-per-x 5 --only fast --json --seed 3
json "j['test']['y'] == 5 * j['test']['x'] and j['test']['pairs'] == j['test']['y']"
run 0 compare d/x.train.npy d/x.train.npy --only none,procrustes --json
json "all(r[k]['x_to_y']['hit@1'] == 1 for r in j['rows'] for k in ('plain', 'balanced'))"
run 0 compare d/x.train.npy d/y.train.npy --x-labels d/label.train.npy --y-labels d/label.train.npy --only fast,cca --rank 4 --json
json "j['rows'][0]['balanced']['x_to_y']['hit@1'] > .9"

# A row appears when it is finished, and stays when the rest is interrupted. sgd_linear has many seconds
# to go here; the signal comes as soon as the row before it is there.
run 0 synth linear -o big --train 6000 --test 10 --dim-x 64 --dim-y 64 --latent 32 --noise 2
for form in table json; do
  options=(--only "fast,sgd_linear,cca" --threads 1)
  if [ $form = json ]; then options+=(--json); fi
  : >out
  $UNICON compare big/x.train.npy big/y.train.npy "${options[@]}" --verbose >out 2>err </dev/null &
  job=$!
  last="unicon compare, $form, and SIGINT"
  for _ in $(seq 1200); do
    if [ $form = table ] && grep -q "^fast " out; then break; fi
    if [ $form = json ] && grep -q "unicon compare: fast: " err; then break; fi
    kill -0 $job 2>/dev/null || fail "$last: it ended by itself"
    sleep 0.1
  done
  grep -q "^cca " out && fail "$last: too late"
  kill -s INT $job
  got=0
  wait $job || got=$?
  [ "$got" = 130 ] || fail "$last: exit status $got"
  says "unicon compare: interrupted after 1 of 3 methods"
  if [ $form = table ]; then
    grep -q "^fast  *plain  *0\.[0-9]* " out || fail "$last: the finished row is gone"
    prints "interrupted: sgd_linear and cca were not run"
  else
    json "[r['name'] for r in j['rows']] == ['fast'] and j['interrupted'] and j['not_run'] == ['sgd_linear', 'cca']"
  fi
done
# Interrupted before any row: no table, but still one JSON object.
$UNICON compare big/x.train.npy big/y.train.npy --only sgd_linear,cca --threads 1 --json --progress >out 2>err </dev/null &
job=$!
for _ in $(seq 1200); do
  if grep -q "sgd_linear, fit" err; then break; fi
  sleep 0.1
done
kill -s INT $job
got=0
wait $job || got=$?
last="unicon compare --json and SIGINT in the first method"
[ "$got" = 130 ] || fail "$last: exit status $got"
json "j['rows'] == [] and j['interrupted'] and j['not_run'] == ['sgd_linear', 'cca']"

# Mistakes.
# shellcheck disable=SC2086
refused 2 "--only \`sgd\`: the rows are fast, auto" compare $train --only fast,sgd
# shellcheck disable=SC2086
refused 2 "--only names no row" compare $train --only ""
# shellcheck disable=SC2086
refused 2 "--test-x needs --test-y as well" compare $train --test-x d/x.test.npy
# shellcheck disable=SC2086
refused 2 "give --test-pairs for the test rows" compare $train --pairs p.tsv $test
# shellcheck disable=SC2086
refused 2 "--kernel is an option of the commands fit, plan" compare $train --kernel rbf
others="$test --val-x d/x.test.npy --val-y d/y.test.npy"
# shellcheck disable=SC2086
refused 2 "--val-fraction cannot be used with --val-x" compare $train $others --val-fraction .2
# shellcheck disable=SC2086
refused 2 "--groups cannot be used with both --val-x and --test-x" compare $train $others --groups g.txt
# Rows that cannot be used, in every set.
python3 - <<'PYTHON'
for name in ("x.train", "x.test"):
    data = bytearray(open(f"d/{name}.npy", "rb").read())
    start = data.index(b"\n") + 1
    data[start + 160:start + 320] = bytes(160)  # row 1, 40 numbers
    open(f"zero.{name}.npy", "wb").write(data)
PYTHON
bad="zero.x.train.npy d/y.train.npy --test-x zero.x.test.npy --test-y d/y.test.npy --val-x zero.x.test.npy --val-y d/y.test.npy"
# shellcheck disable=SC2086
refused 1 "row 1" compare $bad --only fast
# shellcheck disable=SC2086
run 0 compare $bad --only fast,auto --bad-rows drop --json
json "j['test']['pairs'] == 119 and j['validation']['pairs'] == 119 and all(r['balanced']['x_to_y']['queries'] == 119 for r in j['rows'])"
# Rows of another width are noticed before anything is fitted; where no method works, it failed.
# shellcheck disable=SC2086
refused 1 "the test rows of x have 30 numbers, the training rows 40" compare $train --test-x d/y.test.npy --test-y d/y.test.npy
# shellcheck disable=SC2086
refused 1 "no method gave a result; none: rows of 40 and 30 numbers" compare $train --only none
# A rank that the user gives is what the row says, and is tried once.
# shellcheck disable=SC2086
run 0 compare $train --only cca --rank 4 --json
json "j['rows'][0]['balanced']['chosen'].endswith('rank 4') and j['rows'][0]['candidates'] == 3"
run 0 synth linear -o few --train 4 --test 4
run 1 compare few/x.train.npy few/y.train.npy
says "too few independent pairs to hold some out"
echo "compare: ok"
