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
python3 "$UNICON_SOURCE_DIR/tests/report/colours.py" "$UNICON_SOURCE_DIR/programs/report.css" >/dev/null ||
  fail "colours that cannot be told apart"
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

# Class by class: what the ranks say, worst first; the hubs are no matches.
report worst m.safetensors d/x.test.npy d/y.test.npy --labels label.txt
python3 - <<'PYTHON' || fail "classes of the report"
import json
j, label = json.load(open("worst.json")), [line.strip() for line in open("label.txt")]
rank = {side: {c["number"]: c["rank"] for c in j["cards"][side]} for side in "xy"}
rows = j["by_class"]["rows"]
assert j["by_class"]["count"] == 3 == len(rows) and [r["high"] for r in rows] == sorted(r["high"] for r in rows)
for row in rows:
    own = [rank[side][i] for side in "xy" for i in range(90) if label[i] == row["name"]]  # row i of y belongs to i of x
    assert row["queries"] == len(own) and abs(row["hit@1"] - own.count(1) / len(own)) < 1e-9, row
    assert abs(row["hit@10"] - sum(r <= 10 for r in own) / len(own)) < 1e-9, row
    n, p, z = len(own), own.count(1) / len(own), 1.959964
    middle, half = (p + z * z / 2 / n) / (1 + z * z / n), z * (p * (1 - p) / n + z * z / 4 / n / n) ** 0.5 / (1 + z * z / n)
    assert abs(row["low"] - max(0, middle - half)) < 1e-5 and abs(row["high"] - min(1, middle + half)) < 1e-5, row
    for hub in row["hubs"]:
        other = "y" if hub["side"] == "x" else "x"
        count = sum(e[0] == hub["number"] and not e[2] for c in j["cards"][other] if label[c["number"]] == row["name"]
                    for e in c["near"])
        assert count == hub["count"] >= 2, (hub, count)
PYTHON

# Cards: what is found first is what search finds, with its scores; partners are those of the pairs.
run 0 search m.safetensors --query-side x d/x.test.npy d/y.test.npy -k 5 -o found
python3 - "$tests" <<'PYTHON' || fail "cards and search differ"
import json, sys
sys.path.insert(0, sys.argv[1])
import npy
ids, scores = npy.load("found.ids.npy")[1], npy.load("found.scores.npy")[1]
for card in json.load(open("plain.json"))["cards"]["x"]:
    i = card["number"]
    assert [e[0] for e in card["near"]] == [int(v) for v in ids[i]], i
    assert all(abs(e[1] - s) < 1e-4 for e, s in zip(card["near"], scores[i])), i
    assert [e[2] for e in card["near"]] == [int(v == i) for v in ids[i]] and [e[0] for e in card["pairs"]] == [i], i
PYTHON

# Texts and images: images inside the page, everything else as a path from its folder; markup stays text.
mkdir -p pictures/deep
printf '\x89PNG\r\n\x1a\nnot much of one' >"pictures/deep/a b.png"
printf 'RIFF....WAVE' >'pictures/x"><script>.wav'
echo '<b>no image</b>' | tee pictures/deep/page.html >pictures/text.png
head -c 600000 /dev/zero | sed '1s/^/GIF89a/' >pictures/large.gif
for i in $(seq 90); do
  case $i in
  1) echo "deep/a b.png" ;;
  2) echo 'x"><script>.wav' ;;
  3) echo large.gif ;;
  4) echo nowhere.png ;;
  5) echo deep ;;
  6) echo deep/page.html ;;
  7) echo text.png ;;
  *) echo ;;
  esac
done >pictures/list.txt
python3 -c 'for i in range(90): print("" if i == 7 else "<img src=x onerror=alert(1)>" + "\u20ac" * 300 if i == 1 else f"text {i}")' >texts.txt
mkdir page
run 0 report m.safetensors d/x.test.npy d/y.test.npy --x-media pictures/list.txt --y-text texts.txt -o page/media.html --json
says "4 files of --x-media and --y-media are left out; the first is "
cp out media.json
page page/media.html media.json
python3 - <<'PYTHON' || fail "texts and images"
import base64, json
cards = json.load(open("media.json"))["cards"]
x, y = ({c["number"]: c for c in cards[s]} for s in "xy")
image = x[0]["media"]
assert image.startswith("data:image/png;base64,"), image
assert base64.b64decode(image.split(",")[1]) == open("pictures/deep/a b.png", "rb").read()
assert x[1]["media"] == "../pictures/x%22%3E%3Cscript%3E.wav" and x[2]["media"] == "../pictures/large.gif"
assert not any("media" in x[i] for i in range(3, 90)) and not any("text" in c for c in cards["x"])
assert "text" not in y[7] and y[8]["text"] == "text 8"
assert y[1]["text"].startswith("<img src=x onerror=alert(1)>\u20ac") and y[1]["text"].endswith("\u20ac\u2026")
assert len(y[1]["text"].encode()) <= 604
PYTHON
grep -q "<img" page/media.html && fail "an image of a text"
printf 'one\r\ntwo\n' >two.txt
refused 1 "two.txt: 2 lines, but there are 90 rows" report m.safetensors d/x.test.npy d/y.test.npy --x-text two.txt -o r.html
refused 1 "nope.txt: No such file" report m.safetensors d/x.test.npy d/y.test.npy --y-media nope.txt -o r.html
refused 2 "--beside cannot be used with --from" report --from plain.json --beside m.safetensors -o r.html

# Two models: the second is what its own report says; a model beside itself does not differ.
report versus m.safetensors d/x.test.npy d/y.test.npy --labels label.txt --beside balanced.safetensors
run 0 report balanced.safetensors d/x.test.npy d/y.test.npy --labels label.txt --json
python3 - <<'PYTHON' || fail "two models"
import json, math
a, b = json.load(open("versus.json")), json.load(open("out"))
for part in ("x_to_y", "y_to_x", "ranks", "balance", "view", "by_class"):
    assert a["beside"][part] == b[part], part
there = {(s, c["number"]): c for s in "xy" for c in b["cards"][s]}
here = {(s, c["number"]): c for s in "xy" for c in a["cards"][s]}
assert all(c["beside_rank"] == there[k]["rank"] and c["beside_near"] == there[k]["near"] for k, c in here.items())
for way, side in (("x_to_y", "x"), ("y_to_x", "y")):
    differ = a["beside"]["differ"][way]
    pairs = [(here[k]["rank"], there[k]["rank"]) for k in here if k[0] == side]
    band = lambda r: 0 if r <= 1 else 1 if r <= 5 else 2 if r <= 10 else 3
    assert differ["bands"] == [[sum(band(p) == i and band(q) == j for p, q in pairs) for j in range(4)] for i in range(4)]
    n1, n2 = sum(p == 1 < q for p, q in pairs), sum(q == 1 < p for p, q in pairs)
    assert (differ["here_alone"], differ["there_alone"]) == (n1, n2)
    p = min(1, 2 * sum(math.comb(n1 + n2, k) for k in range(min(n1, n2) + 1)) / 2 ** (n1 + n2))
    assert abs(differ["p"] - p) < 1e-9, (differ["p"], p)
    ratios = [m["rank"] / m["beside_rank"] for m in differ["moved"]]
    better = [r for r in ratios if r > 1]
    assert better == sorted(better, reverse=True) and ratios[len(better):] == sorted(ratios[len(better):])
PYTHON
report itself m.safetensors d/x.test.npy d/y.test.npy --beside m.safetensors
cp itself.json out
json "all(d['here_alone'] == d['there_alone'] == 0 and d['p'] == 1 and d['moved'] == [] for d in j['beside']['differ'].values())"

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
grep -q '<text class="tick"[^>]*>angular ridge [0-9.,]* power [0-9.]* exponent [0-9.]* rank [0-9]* \(softmax:[0-9.]*\|balance off\)<' auto.html ||
  fail "auto: a candidate is not shown as it is"
grep -q '<title>angular ridge [^:]*balance softmax:[0-9.]*: [0-9.]*\(, far behind\)\?</title>' auto.html || fail "auto: a score is not read"
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
refused 2 "--perplexity cannot be used with --from" report --from plain.json --perplexity 5 -o r.html
refused 2 "--x-ids cannot be used with --from" report --from plain.json --x-ids ids.txt -o r.html
refused 2 "--classes needs the right answers" report m.safetensors d/x.test.npy d/y.test.npy --classes classes.npy \
  -o r.html
refused 2 "--class-names needs --classes" report m.safetensors d/x.test.npy d/y.test.npy --class-names names.txt \
  -o r.html
refused 1 "90 lines, but there are 450 rows" report m.safetensors d/x.test.npy y5.npy --y-per-x 5 \
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
unicon, whole = os.environ["UNICON"].split(), json.load(open("versus.json"))
whole["zero_shot"] = json.load(open("classes.json"))["zero_shot"]
whole["cards"]["x"][0]["media"], whole["cards"]["x"][0]["text"] = "./a.png", "text"
for side in "xy":
    whole["cards"][side] = whole["cards"][side][:2]
beside = whole["beside"]
beside["view"]["points"], beside["view"]["lines"] = beside["view"]["points"][:3], [[0, 1]]
for way in ("x_to_y", "y_to_x"):
    beside["differ"][way]["moved"] = beside["differ"][way]["moved"][:2]
for part in ("balance", "ranks", "by_class"):  # the page does not read them
    del beside[part]
# One metric is like another.
kept = {"hit@1", "hit@5", "hit@10", "mrr", "median_rank", "mean_rank", "candidates", "queries", "chance", "ci"}
for way in ("x_to_y", "y_to_x"):
    for figures in (whole[way], beside[way], whole["balance"][way]["plain"]):
        for key in set(figures) - kept:
            del figures[key]
        for key in ("chance", "ci"):
            for metric in set(figures.get(key, ())) - {"hit@1", "hit@5", "hit@10"}:
                del figures[key][metric]
whole["model"]["metadata"] = dict(list(whole["model"]["metadata"].items())[:3])
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
# What the script would take for an image or a link must be nothing else.
for media in ("javascript:alert(1)", "https://example.org/a.png", "//example.org/a.png", "/etc/passwd", "data:text/html,x",
              "data:image/svg+xml;base64,AAAA", "data:image/png;base64,A\"A", "./a b.png", "./a?b", "./a#b", "./a:b", ".\\a"):
    broken = copy.deepcopy(whole)
    broken["cards"]["x"][0]["media"] = media
    assert attempt(broken) == 1, media
for media in ("./a%20b.png", "../../a/b.wav", "data:image/webp;base64,AAAA"):
    whole["cards"]["x"][0]["media"] = media
    assert attempt(whole) == 0, media
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
refused 2 "--pairs cannot be used with --from" report --from other.json -o page.html --pairs p.tsv
echo "report: ok"
