#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# unicon report: one page for every kind of model and pairs, the same page from its JSON, and
# sentences for what is no report. tests/report/chromium.py looks at a page with a browser.
. "$(dirname "$0")/cli.sh"
page() { python3 "$UNICON_SOURCE_DIR/tests/report/page.py" "$@" || fail "$last: page.py $*"; }

# report NAME ARGUMENTS...: makes NAME.html and NAME.json, checks both, and makes the page again.
report() {
  local name=$1
  shift
  run 0 report "$@" -o "$name.html" --json
  says_nothing
  json "j['format'] == 'unicon report' and j['version'] == 1"
  cp out "$name.json"
  page "$name.html" "$name.json"
  run 0 report --from "$name.json" -o again.html
  prints "again.html"
  cmp -s "$name.html" again.html || fail "$name: --from makes another page"
  run 0 report --from "$name.html" --json
  cmp -s out "$name.json" || fail "$name: the page holds another report"
  absent "$name.html.part"
}

run 0 synth linear -o d --noise 0.1 --train 200 --test 90
run 0 fit d/x.train.npy d/y.train.npy --preset fast --iterations 2 --refine 2 -o m.safetensors
npy show d/label.test.npy >label.txt

# One-to-one, coloured by rank; threads do not matter.
report plain m.safetensors d/x.test.npy d/y.test.npy
cp plain.json out
json "len(j['view']['points']) == 180 and len(j['view']['lines']) == 90 and j['view']['method'] == 't-SNE'"
json "j['x_to_y']['queries'] == 90 and 'hit@1' in j['x_to_y']['ci'] and len(j['weights']['weights']) == 40"
json "len(j['model']['metadata']['refine_loss_log'].split()) == 2 and 'labels' not in j['view']"
json "sum(b['count'] for b in j['ranks']['x_to_y']) == 90 and j['ranks']['y_to_x'][0]['from'] == 1"
json "all(p['rank'] >= 1 for p in j['view']['points'])"
json "{o['name']: o['default'] for o in j['model']['options']}['ridge'] == 'chosen by auto'"
json "{o['name']: o['default'] for o in j['model']['options']}['split'] == '0.5'"
run 0 report m.safetensors d/x.test.npy d/y.test.npy --json --threads 1
cmp -s out plain.json || fail "the number of threads changes the report"
run 0 report m.safetensors d/x.test.npy d/y.test.npy -o plain2.html
prints "plain2.html"
says_nothing

# What is in the JSON is what eval says.
run 0 eval m.safetensors d/x.test.npy d/y.test.npy --ci --json
python3 - <<'PYTHON' || fail "eval and report differ"
import json
a, b = json.load(open("out")), json.load(open("plain.json"))
assert a["x_to_y"] == b["x_to_y"] and a["y_to_x"] == b["y_to_x"]
PYTHON

# Balanced scores beside plain ones, and the hubs of both sides; it agrees with eval, and the counts
# add up: ten for each query.
run 0 fit d/x.train.npy d/y.train.npy --preset fast --balance softmax:10 -o balanced.safetensors
report balanced balanced.safetensors d/x.test.npy d/y.test.npy
grep -q "Hubs and balance" balanced.html || fail "no section on hubs"
grep -q "without balance" balanced.html || fail "no plain marks"
run 0 eval balanced.safetensors d/x.test.npy d/y.test.npy --balance off --json
python3 - <<'PYTHON' || fail "the plain scores of report are not those of eval --balance off"
import json
a, b = json.load(open("out")), json.load(open("balanced.json"))
assert b["balance"]["how"] == "softmax:10"
for way in ("x_to_y", "y_to_x"):
    part, hubs = b["balance"][way], b["balance"][way]["hubs"]
    assert all(part["plain"][k] == a[way][k] for k in ("hit@1", "hit@10", "mrr", "mean_rank")), way
    assert len(hubs) == 15 and [h["plain"] for h in hubs] == sorted((h["plain"] for h in hubs), reverse=True)
    assert 0 <= part["never"] <= 1 and 0 <= part["plain_never"] <= 1
    assert all(h["match_score"] <= h["found_score"] + 1e-3 for h in b["hardest"][way])
PYTHON
run 0 fit d/x.train.npy d/y.train.npy --preset fast --balance off -o unbalanced.safetensors
report unbalanced unbalanced.safetensors d/x.test.npy d/y.test.npy
cp unbalanced.json out
json "j['balance']['how'] == 'off' and all(h['plain'] == h['found'] for h in j['balance']['x_to_y']['hubs'])"
json "all(h['match_score'] == h['match_cosine'] for h in j['hardest']['y_to_x'])"
grep -q "are not balanced" unbalanced.html || fail "balance off is not said"
# Fewer rows than ten: all are found by everything.
npy write x3.npy f4 3 40 1
npy write y3.npy f4 3 30 2
report three balanced.safetensors x3.npy y3.npy -q
cp three.json out
json "[h['found'] for h in j['balance']['y_to_x']['hubs']] == [3, 3, 3] and j['balance']['x_to_y']['never'] == 0"
# A report of an earlier version has no such part.
python3 - <<'PYTHON'
import json
whole = json.load(open("balanced.json"))
del whole["balance"]
for way in ("x_to_y", "y_to_x"):
    for h in whole["hardest"][way]:
        del h["match_score"], h["found_score"]
json.dump(whole, open("older.json", "w"))
PYTHON
run 0 report --from older.json -o older.html
grep -q "Hubs and balance" older.html && fail "hubs out of nothing"
page older.html older.json

# Ids and labels are text of any kind: markup, quotes, bytes that are no UTF-8.
python3 - <<'PYTHON'
with open("ids.txt", "wb") as f:
    for i in range(90):
        f.write(b"<script>alert(%d)</script> \"&'\xff\xc3( \xed\xa0\x80 \xe2\x82\xac\n" % i)
with open("odd.txt", "wb") as f:
    for i in range(90):
        f.write(b"</svg>%d\xfe\n" % (i % 14))
PYTHON
python3 - "$tests" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
import npy
labels = [int(row[0]) for row in npy.load("d/label.train.npy")[1]]
rows = npy.load("d/y.train.npy")[1]
means = []
for c in range(3):
    own = [r for r, l in zip(rows, labels) if l == c]
    means.append([sum(v) / len(own) for v in zip(*own)])
npy.save("classes.npy", "f4", means)
PYTHON
printf 'red\n<b>green</b>\nblue\xff\n' >names.txt
report odd m.safetensors d/x.test.npy d/y.test.npy --x-ids ids.txt --y-ids ids.txt --labels odd.txt
grep -q "&lt;script&gt;alert(3)&lt;/script&gt; &quot;&amp;&#39;" odd.html || fail "ids are not shown, escaped"
report classes m.safetensors d/x.test.npy d/y.test.npy --labels label.txt --classes classes.npy \
  --class-names names.txt
cp classes.json out
json "j['zero_shot']['accuracy'] == 1 and len(j['zero_shot']['confusion']) == 3 and len(j['view']['labels']) == 3"
grep -q "Zero-shot classification" classes.html || fail "no zero-shot section"

# Several captions per row, class labels as pairs, a list with rows that have no partner.
npy repeat y5.npy d/y.test.npy 5
report five m.safetensors d/x.test.npy y5.npy --y-per-x 5
cp five.json out
json "len(j['view']['lines']) == 450 and len(j['weights']['x']) == 13 and len(j['weights']['y']) == 65"
report labels m.safetensors d/x.test.npy d/y.test.npy --x-labels label.txt --y-labels label.txt
cp labels.json out
json "j['view']['lines'] == [] and len(j['view']['labels']) == 3 and len(j['weights']['pairs']) > 100"
printf '0\t3\n5\t3\n7\t1\n' >few.tsv
report few m.safetensors d/x.test.npy d/y.test.npy --pairs few.tsv
cp few.json out
json "len(j['view']['points']) == 5 and len(j['view']['lines']) == 3 and len(j['suspects']['rows']) == 3"

# Models of every kind, and next to no data.
run 0 fit d/x.train.npy d/y.train.npy --preset fast -o closed.safetensors
report closed closed.safetensors d/x.test.npy d/y.test.npy --layout pca
grep -q "there were no iterations" closed.html || fail "the closed form has no curves"
grep -q "placed by PCA" closed.html || fail "--layout pca"
run 0 fit d/x.train.npy d/y.train.npy --preset fast --kernel rbf --batch 60 -o fused.safetensors
report fused fused.safetensors d/x.test.npy d/y.test.npy
run 0 fit d/x.train.npy d/y.train.npy --preset fast --loss spectral --iterations 1 -o spectral.safetensors
report spectral spectral.safetensors d/x.test.npy d/y.test.npy --perplexity 5
run 0 fit d/x.train.npy d/y.train.npy --val-x d/x.test.npy --val-y d/y.test.npy -o auto.safetensors
report auto auto.safetensors d/x.test.npy d/y.test.npy
grep -q "What auto tried" auto.html || fail "auto: nothing tried"
grep -q '<text class="tick"[^>]*>linear ridge [0-9.]* power [0-9.]* exponent [0-9.]* rank [0-9]* \(softmax:[0-9.]*\|balance off\)<' auto.html ||
  fail "auto: a candidate is not shown as it is"
grep -q '<title>linear ridge [^:]*balance softmax:[0-9.]*: [0-9.]*</title>' auto.html || fail "auto: a score is not read"
npy write x2.npy f4 2 40 1
npy write y2.npy f4 2 30 2
report two closed.safetensors x2.npy y2.npy
npy write x1.npy f4 1 40 1
npy write y1.npy f4 1 30 2
report one closed.safetensors x1.npy y1.npy

# Many small classes: rows that are spread evenly have hardly a pair between them.
npy write xc.npy f4 1800 40 1
npy write yc.npy f4 1800 30 2
python3 -c 'print(*(i % 300 for i in range(1800)), sep="\n")' >lx.txt
python3 -c 'print(*((i * 7 + 3) % 300 for i in range(1800)), sep="\n")' >ly.txt
report many closed.safetensors xc.npy yc.npy --x-labels lx.txt --y-labels ly.txt -q
cp many.json out
json "len(j['weights']['pairs']) >= 10"
# Rows that are unlike the banks: said once for each side.
run 0 report closed.safetensors xc.npy yc.npy --x-labels lx.txt --y-labels ly.txt -o many.html
[ "$(grep -c "looks unlike the rows that balance its scores" err)" = 2 ] || fail "$last: not said once for each side"

# Mistakes.
run 2 report m.safetensors d/x.test.npy d/y.test.npy
says "-o report.html"
run 2 report m.safetensors d/x.test.npy -o r.html
says "Y is missing"
run 2 report m.safetensors --from plain.json -o r.html
says "--from takes the place of"
refused 2 "--perplexity has no meaning with --from" report --from plain.json --perplexity 5 -o r.html
refused 2 "--x-ids has no meaning with --from" report --from plain.json --x-ids ids.txt -o r.html
refused 2 "--classes needs the right answers" report m.safetensors d/x.test.npy d/y.test.npy --classes classes.npy \
  -o r.html
refused 2 "--class-names needs --classes" report m.safetensors d/x.test.npy d/y.test.npy --class-names names.txt \
  -o r.html
refused 1 "90 labels, but there are 450 rows" report m.safetensors d/x.test.npy y5.npy --y-per-x 5 \
  --y-ids ids.txt -o r.html
refused 1 "is an input" report m.safetensors d/x.test.npy d/y.test.npy -o m.safetensors
refused 1 "nowhere" report m.safetensors d/x.test.npy d/y.test.npy -o nowhere/r.html
refused 1 "nope.json" report --from nope.json -o r.html
refused 1 "is not JSON: line 1" report --from label.txt -o r.html
echo '<p>a page, but not of a report</p>' >other.html
refused 1 "is not JSON" report --from other.html -o r.html
absent r.html

# A report that is not what it should be: every part missing, every value of another kind.
python3 - <<'PYTHON' || fail "hostile reports"
import copy, json, os, subprocess
unicon, whole = os.environ["UNICON"].split(), json.load(open("classes.json"))
whole["view"]["points"], whole["view"]["lines"] = whole["view"]["points"][:3], [[0, 1]]
for key in ("scores", "weights"):
    whole["weights"][key] = [row[:2] for row in whole["weights"][key][:2]]
whole["weights"].update(x=[0, 1], y=["a", "b"], pairs=[[0, 0]])
whole["model"]["spectrum"] = whole["model"]["spectrum"][:2]
whole["model"]["options"] = whole["model"]["options"][:2]
for part in ("hardest", "ranks"):
    whole[part] = {k: v[:2] for k, v in whole[part].items()}
whole["suspects"]["rows"] = whole["suspects"]["rows"][:2]
for way in ("x_to_y", "y_to_x"):
    whole["balance"][way]["hubs"] = whole["balance"][way]["hubs"][:2]


def places(value, path=()):
    """Every place in the report, but for further entries of a list."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], path + (key,))
    if isinstance(value, list) and value:
        yield from places(value[0], path + (0,))


def attempt(report):
    with open("hostile.json", "w") as f:
        json.dump(report, f)
    if os.path.exists("hostile.html"):
        os.remove("hostile.html")
    done = subprocess.run(unicon + ["report", "--from", "hostile.json", "-o", "hostile.html"], capture_output=True,
                          text=True)
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    assert os.path.exists("hostile.html") == (done.returncode == 0)
    if done.returncode == 1:
        assert done.stderr.count("\n") == 1 and done.stderr.startswith("unicon report: hostile.json"), done.stderr
    return done.returncode


assert attempt(whole) == 0
tried = refused = 0
for path in list(places(whole))[1:]:
    for other in (None, "text", -1e308, "drop"):
        broken = copy.deepcopy(whole)
        holder = broken
        for key in path[:-1]:
            holder = holder[key]
        if other == "drop":
            del holder[path[-1]]
        else:
            holder[path[-1]] = other
        refused += attempt(broken)
        tried += 1
for other in ([], 3, "x", {}, {"format": "unicon report"}, {"format": "unicon report", "version": 2}):
    assert attempt(other) == 1, other
assert tried > 300 and refused > tried // 3, (tried, refused)
PYTHON
# Files that are read are not written over, whatever option names them; a stranger's file of the
# temporary name is left alone; JSON that is no report is not passed on.
cp hostile.json ids.json
refused 1 "ids.json is an input" report --from ids.json -o ids.json
echo '{"format": "other"}' >other.json
refused 1 "other.json: not a report" report --from other.json --json
refused 2 "--pairs has no meaning with --from" report --from other.json -o page.html --pairs p.tsv
echo "report: ok"
