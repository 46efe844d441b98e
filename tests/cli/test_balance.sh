#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Balanced scores: rows for an index rank as search does, banks come and go, `unicon balance`.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --train 300 --test 90 --noise 0.4
run 0 fit d/x.train.npy d/y.train.npy --preset fast --rank 12 --balance softmax:10 -o m.safetensors
says_nothing
grep -qE '^balance +softmax:10 by 300 rows of x and 300 of y$' out || fail "fit: the line of the balance"
run 0 fit d/x.train.npy d/y.train.npy --preset fast --rank 12 --balance softmax:10 -o m.safetensors --json
json "j['balance'] == 'softmax:10' and j['bank_x'] == j['bank_y'] == 300"
run 0 info m.safetensors
prints "  balance: softmax:10 by 300 rows of x and 300 of y"
run 0 info m.safetensors --json
json "j['balance'] == 'softmax:10' and j['bank_y'] == 300 and j['metadata']['balance'] == 'softmax:10'"

# What held-out pairs chose is said to be chosen; what was given is not.
run 0 fit d/x.train.npy d/y.train.npy --preset fast -o chosen.safetensors
grep -qE '^balance .*, chosen on held-out pairs$' out || fail "fit: chosen on held-out pairs"
run 0 fit d/x.train.npy d/y.train.npy --preset paper --rank 12 -o paper.safetensors
grep -qE '^balance +off: scores are plain cosines$' out || fail "fit: balance off"

# The score of a fit with validation files is that of the finished model on them.
run 0 fit d/x.train.npy d/y.train.npy --preset fast --val-x d/x.test.npy --val-y d/y.test.npy -o v.safetensors --json
cp out fit.json
run 0 eval v.safetensors d/x.test.npy d/y.test.npy --json
json "abs(float(json.load(open('fit.json'))['metadata']['auto_score']) - sum(j[k]['mrr'] + j[k]['hit@10'] for k in ('x_to_y', 'y_to_x')) / 4) < 2e-6"

# ---- rows for an index ----------------------------------------------------------------------------

# check_index QUERY-SIDE BASE-SIDE OPTIONS...: the products of embed --query and embed --index rank as
# search does; cosine rows too.
check_index() {
  local from=$1 to=$2
  shift 2
  run 0 search m.safetensors --query-side $from d/$from.test.npy d/$to.test.npy -k 90 -o near "$@"
  run 0 embed m.safetensors --side $from d/$from.test.npy --query -o q.npy "$@"
  says_nothing
  run 0 embed m.safetensors --side $to d/$to.test.npy --index -o b.npy "$@"
  says_nothing
  prints "90 rows of 13 numbers in b.npy"
  run 0 embed m.safetensors --side $from d/$from.test.npy --query cosine -o qc.npy "$@"
  run 0 embed m.safetensors --side $to d/$to.test.npy --index=cosine -o bc.npy "$@"
  prints "90 rows of 14 numbers in bc.npy"
  python3 - "$tests" <<'PYTHON' || fail "index rows of side $to: other ranks than search $*"
import math, sys
sys.path.insert(0, sys.argv[1])
import npy
load = lambda path: npy.load(path)[1]
q, b, qc, bc, ids, scores = map(load, ("q.npy", "b.npy", "qc.npy", "bc.npy", "near.ids.npy", "near.scores.npy"))
dot = lambda u, v: math.fsum(s * t for s, t in zip(u, v))
for i in range(90):
    s = [dot(q[i], v) for v in b]
    order = sorted(range(90), key=lambda j: (-s[j], j))
    assert order == ids[i], (i, order[:5], ids[i][:5])
    assert max(abs(s[j] - t) for j, t in zip(order, scores[i])) < 1e-6
    # lengths are sqrt 2 on both sides, so the cosine is half the score
    for j in (0, i):
        length = math.sqrt(dot(qc[i], qc[i]) * dot(bc[j], bc[j]))
        assert abs(length - 2) < 1e-5 and abs(dot(qc[i], bc[j]) / length - s[j] / 2) < 1e-6
assert all(row[12] == 1 for row in q)
PYTHON
}
check_index x y
check_index y x
check_index x y --balance csls:10
check_index y x --balance off
[ "$(npy show b.npy | awk '{ print $13 }' | sort -u)" = 0.0 ] || fail "biases with --balance off"
run 0 embed m.safetensors --side y d/y.test.npy --index -o b.npy --json
json "j['width'] == 13 and j['form'] == 'index' and j['balance'] == 'softmax:10' and j['rows'] == 90"
run 0 embed m.safetensors --side y d/y.test.npy --query -o q.npy --balance csls:5 --json
json "j['form'] == 'query' and j['balance'] == 'csls:5'"

# Plain rows are those of before; what they leave out is said once, and not where nothing is.
run 0 embed m.safetensors --side y d/y.test.npy -o z.npy
prints "90 rows of 12 numbers in z.npy"
says "--index"
says "--query"
[ "$(wc -l <err)" -eq 1 ] || fail "$last: more than a sentence"
run 0 embed m.safetensors --side y d/y.test.npy -o plain.npy --balance off
says_nothing
cmp -s z.npy plain.npy || fail "plain rows depend on the balance"
run 0 embed m.safetensors --side y d/y.test.npy -o plain.npy -q
says_nothing
run 0 embed m.safetensors --side y d/y.test.npy -o plain.npy --no-unit
says_nothing
run 0 embed paper.safetensors --side y d/y.test.npy -o plain.npy
says_nothing

# A base embedded before: biases from the model's bank, or those that the rows bring along.
run 0 search m.safetensors --query-side x d/x.test.npy d/y.test.npy -k 9
cp out table
for file in z.npy b.npy; do
  run 0 search m.safetensors --query-side x d/x.test.npy $file --base-embedded -k 9
  says_nothing
  cut -f1-3 out | cmp -s - <(cut -f1-3 table) || fail "$file: --base-embedded finds other rows"
done
run 0 search m.safetensors --query-side x d/x.test.npy b.npy --base-embedded -k 9 --bad-rows drop
cmp -s out table || fail "--bad-rows drop changes something"
run 0 search m.safetensors --query-side x d/x.test.npy b.npy --base-embedded -k 9 --balance off
says "warning: --balance and banks have no effect"
cmp -s out table || fail "the rows of --index lost their biases"
run 0 search m.safetensors --query-side x d/x.test.npy b.npy --base-embedded -k 9 --json
json "j['balance'] == 'base'"
run 0 search m.safetensors --query-side x d/x.test.npy z.npy --base-embedded -k 9 --balance csls:5 --json
json "j['balance'] == 'csls:5'"
run 0 search m.safetensors --query-side x d/x.test.npy d/y.test.npy -k 9 -o near --json
json "j['balance'] == 'softmax:10'"
run 0 search m.safetensors --query-side x d/x.test.npy z.npy --base-embedded -k 9 --balance off
cp out off
run 0 search m.safetensors --query-side x d/x.test.npy d/y.test.npy -k 9 --balance off
cut -f1-3 out | cmp -s - <(cut -f1-3 off) || fail "--balance off with rows embedded before"
cut -f1-3 out | cmp -s - <(cut -f1-3 table) && fail "--balance off changes nothing"
npy write z14.npy f4 20 14 1
refused 1 "z14.npy has rows of 14 numbers; vectors of this model have 12, or 13" search m.safetensors \
  --query-side x d/x.test.npy z14.npy --base-embedded

# ---- eval -----------------------------------------------------------------------------------------

run 0 eval m.safetensors d/x.test.npy d/y.test.npy
says_nothing
for name in hit@1 hit@5 hit@10 mrr hub_skew never_found; do
  [ "$(grep -E "^$name " out | wc -w)" -ge 5 ] || fail "eval: $name balanced and plain, both directions"
done
prints "balanced: softmax:10"
run 0 eval m.safetensors d/x.test.npy d/y.test.npy --ci
awk 'length > 90 { exit 1 }' out || fail "eval --ci has a line over 90 columns"
run 0 eval m.safetensors d/x.test.npy d/y.test.npy --json
cp out balanced.json
run 0 eval m.safetensors d/x.test.npy d/y.test.npy --balance off --json
json "j['balance'] == 'off' and all(j[d]['plain'][n] == j[d][n] for d in ('x_to_y', 'y_to_x') for n in j[d]['plain'])"
python3 - <<'PYTHON' || fail "eval --json: plain is not what --balance off gives"
import json
a, b = json.load(open("balanced.json")), json.load(open("out"))
assert a["balance"] == "softmax:10"
moved = 0
for d in ("x_to_y", "y_to_x"):
    for name, value in a[d]["plain"].items():
        assert abs(value - b[d][name]) < 1e-12, (d, name)
        moved += value != a[d][name]
    hubs = a[d]["hubs"]
    assert set(hubs) == {"skewness", "never_found", "plain_skewness", "plain_never_found"}
    assert hubs["plain_skewness"] == b[d]["hubs"]["skewness"] == b[d]["hubs"]["plain_skewness"]
    assert 0 <= hubs["never_found"] <= 1
assert moved > 4
PYTHON
run 0 eval m.safetensors d/x.test.npy d/y.test.npy --balance off
grep -q "plain" out && fail "eval --balance off shows a plain column"
run 0 eval m.safetensors d/x.test.npy d/y.test.npy --balance softmax:2.5 --json
json "j['balance'] == 'softmax:2.5' and j['x_to_y']['mrr'] != json.load(open('balanced.json'))['x_to_y']['mrr']"

# Banks from files: those of the training rows are the model's own; vectors without a model have banks too.
for side in x y; do
  run 0 embed m.safetensors --side $side d/$side.train.npy -o bank_$side.npy -q
  run 0 embed m.safetensors --side $side d/$side.train.npy --query -o wide_$side.npy
  run 0 embed m.safetensors --side $side d/$side.test.npy -o z$side.npy -q
done
for bank in bank wide; do
  run 0 eval m.safetensors d/x.test.npy d/y.test.npy --bank-x ${bank}_x.npy --bank-y ${bank}_y.npy --json
  json "all(abs(j[d][n] - v) < 1e-9 for d in ('x_to_y', 'y_to_x') for n, v in json.load(open('balanced.json'))[d].items() if isinstance(v, float))"
  json "j['bank_x'] == 300"
done
run 0 eval --no-model zx.npy zy.npy --bank-x bank_x.npy --bank-y bank_y.npy --json
json "j['balance'] == 'softmax:10'"
json "all(abs(j[d][n] - v) < 1e-9 for d in ('x_to_y', 'y_to_x') for n, v in json.load(open('balanced.json'))[d].items() if isinstance(v, float))"
run 0 eval --no-model zx.npy zy.npy --bank-x bank_x.npy --bank-y bank_y.npy --balance csls:10 --json
json "j['balance'] == 'csls:10'"
refused 1 "bank_x.npy has rows of 12 numbers and wide_y.npy of 13" eval --no-model zx.npy zy.npy --bank-x bank_x.npy --bank-y wide_y.npy
run 0 eval --no-model zx.npy zy.npy --json
json "j['balance'] == 'off' and j['x_to_y']['plain']['mrr'] == j['x_to_y']['mrr']"
run 0 search m.safetensors --query-side x d/x.test.npy d/y.test.npy -k 9 --bank-x bank_x.npy
cut -f1-3 out | cmp -s - <(cut -f1-3 table) || fail "search with the same bank finds other rows"

# Classes: the bias is that of the class vectors.
for k in $(seq 90); do echo $((k % 20)); done >labels.txt
npy write classes.npy f4 20 30 3
run 0 eval m.safetensors d/x.test.npy --classes classes.npy --x-labels labels.txt --json
json "j['balance'] == 'softmax:10'"
cp out classes.json
run 0 eval m.safetensors d/x.test.npy --classes classes.npy --x-labels labels.txt --balance off --json
json "j['balance'] == 'off' and j['confusion'] != json.load(open('classes.json'))['confusion']"

# ---- unicon balance -------------------------------------------------------------------------------

run 0 balance m.safetensors d/x.test.npy d/y.train.npy -o new.safetensors
says_nothing
prints "softmax:10 by 90 rows of x and 300 of y"
prints "unicon eval new.safetensors"
run 0 embed new.safetensors --side y d/y.test.npy -o again.npy -q
cmp -s again.npy z.npy || fail "unicon balance moved the vectors"
run 0 balance m.safetensors d/x.train.npy d/y.train.npy -o same.safetensors --json
json "j == {'model': 'same.safetensors', 'balance': 'softmax:10', 'bank_x': 300, 'bank_y': 300}"
run 0 search same.safetensors --query-side x d/x.test.npy d/y.test.npy -k 9
cmp -s out table || fail "banks from the training rows are not those of the fit"
run 0 balance m.safetensors d/x.train.npy d/y.train.npy --balance csls:7 --balance-bank 50 --seed 3 -o few.safetensors --json
json "j['balance'] == 'csls:7' and j['bank_x'] == j['bank_y'] == 50"
printf '0\t0\n' >pairs.tsv
for k in $(seq 1 24); do printf '%d\t%d\n' "$k" $((2 * k)) >>pairs.tsv; done
run 0 balance m.safetensors d/x.train.npy d/y.train.npy --pairs pairs.tsv -o few.safetensors --json
json "j['bank_x'] == j['bank_y'] == 25"
# What held-out pairs said about the old balance is not said of the new one.
run 0 info chosen.safetensors --json
json "'balance' in j['metadata']['auto_chosen'] and 'auto_score' in j['metadata']"
run 0 balance chosen.safetensors d/x.train.npy d/y.train.npy --balance csls:7 -o moved.safetensors
run 0 info moved.safetensors --json
json "j['metadata']['auto_chosen'].startswith('kernel linear, ') and 'balance' not in j['metadata']['auto_chosen']"
json "'auto_score' not in j['metadata'] and j['metadata']['auto_folds'] == '3'"
run 0 report moved.safetensors d/x.test.npy d/y.test.npy -o moved.html
grep -q "Chosen on held-out pairs" moved.html || fail "report of a balanced model: what was chosen"
grep -q "; held-out score" moved.html && fail "report of a balanced model: the score of another balance"
# A model that keeps no rows, and one that gets banks for the first time.
run 0 balance m.safetensors d/x.train.npy d/y.train.npy --balance quadratic:10 -o bare.safetensors
prints "quadratic:10, without a bank of rows"
grep -aq '"x.bank"' m.safetensors || fail "m.safetensors has no bank"
grep -aq '"x.bank"' bare.safetensors && fail "bare.safetensors has a bank"
run 0 eval bare.safetensors d/x.test.npy d/y.test.npy
prints "balanced: quadratic:10"
run 0 balance paper.safetensors d/x.train.npy d/y.train.npy -o first.safetensors --json
json "j['balance'].startswith('softmax:') and j['bank_x'] == 300"
npy write zero.npy f4 40 40 1 '4,*=0'
refused 1 "zero.npy" balance m.safetensors zero.npy d/y.train.npy -o no.safetensors
run 0 balance m.safetensors zero.npy d/y.train.npy -o few.safetensors --bad-rows drop --json
json "j['bank_x'] == 39"

# ---- mistakes -------------------------------------------------------------------------------------

refused 2 "it cannot go with --no-unit" embed m.safetensors --side x d/x.test.npy -o e.npy --index --no-unit
refused 2 "it cannot go with --no-unit" embed m.safetensors --side x d/x.test.npy -o e.npy --query --no-unit
refused 2 "give --index or --query, not both" embed m.safetensors --side x d/x.test.npy -o e.npy --index --query
refused 2 '--index is `dot`; accepted: cosine' embed m.safetensors --side x d/x.test.npy -o e.npy --index=dot
for how in softmax:0 softmax:1001 softmax softmax:ten csls:0 csls:2.5 half ""; do
  refused 2 "balance is" eval m.safetensors d/x.test.npy d/y.test.npy --balance "$how"
  says "softmax:BETA"
done
refused 2 "balance quadratic is made with a model" search m.safetensors --query-side x d/x.test.npy d/y.test.npy \
  --balance quadratic:10
npy write b10.npy f4 30 10 1
npy write nan.npy f4 30 12 1 7,3=nan
npy write null.npy f4 30 12 1 '5,*=0'
npy write few.npy f4 15 12 1
npy write empty.npy f4 0 12 1
npy write good.npy f4 30 12 1
# bad_bank SENTENCE FILE: in every command that takes banks.
bad_bank() {
  refused 1 "$1" eval m.safetensors d/x.test.npy d/y.test.npy --bank-x "$2"
  refused 1 "$1" search m.safetensors --query-side x d/x.test.npy d/y.test.npy --bank-y "$2"
  refused 1 "$1" embed m.safetensors --side y d/y.test.npy --index -o e.npy --bank-x "$2"
  refused 1 "$1" eval m.safetensors d/x.test.npy --classes classes.npy --x-labels labels.txt --bank-x "$2"
}
bad_bank "b10.npy has rows of 10 numbers; a bank needs embedded rows of 12" b10.npy
bad_bank "nan.npy: row 7, column 3" nan.npy
bad_bank "null.npy: row 5 is all zero" null.npy
bad_bank "few.npy has 15 rows; a bank needs at least 16" few.npy
bad_bank "empty.npy" empty.npy
bad_bank "absent.npy" absent.npy
refused 1 "there is no bank of y rows" eval --no-model zx.npy zy.npy --bank-x bank_x.npy
refused 1 "there is no model" eval --no-model zx.npy zy.npy --balance softmax:5
refused 1 "the banks have rows of 10 numbers, but the shared space has 12" eval --no-model zx.npy zy.npy \
  --bank-x b10.npy --bank-y b10.npy
refused 1 "the model keeps none" eval paper.safetensors d/x.test.npy d/y.test.npy --balance softmax:5
refused 1 "is an input" embed m.safetensors --side y d/y.test.npy --index --bank-x good.npy -o good.npy
run 2 balance m.safetensors d/x.train.npy d/y.train.npy
says "-o NEW.safetensors"
run 2 balance m.safetensors d/x.train.npy
says "Y is missing"
refused 1 "side x of the model takes 40" balance m.safetensors d/y.train.npy d/x.train.npy -o no.safetensors
npy write short.npy f4 15 40 1
refused 1 "short.npy has 15 rows that can be used; a bank needs at least 16" balance m.safetensors short.npy d/y.train.npy -o no.safetensors
refused 1 "m.safetensors is an input" balance m.safetensors d/x.train.npy d/y.train.npy -o m.safetensors
refused 2 "call it no.safetensors" balance m.safetensors d/x.train.npy d/y.train.npy -o no.npy
refused 2 "balance-bank" balance m.safetensors d/x.train.npy d/y.train.npy -o no.safetensors --balance-bank 3
absent no.safetensors e.npy no.npy
echo "balance: ok"
