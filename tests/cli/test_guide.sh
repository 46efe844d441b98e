#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The guide: every command of docs/guide runs, every link of docs leads somewhere, the guide's pages can be
# reached from its first, and where MkDocs is installed it builds a site that has every page.
. "$(dirname "$0")/cli.sh"
root=$UNICON_SOURCE_DIR
mkdir bin
printf '#!/bin/sh\nexec %s "$@"\n' "$UNICON" >bin/unicon
chmod +x bin/unicon
export PATH=$PWD/bin:$PATH

# The blocks of a page under <!-- test -->, in their order, in a folder of their own.
for page in "$root"/docs/guide/*.md; do
  name=$(basename "$page" .md)
  mkdir "$name"
  ln -s "$root/data" "$name/data"
  awk '/^```/ { if (inside) print "echo"; inside = 0 }
       inside { print }
       armed && /^```sh$/ { inside = 1 }
       { armed = ($0 == "<!-- test -->") || (armed && $0 == "") }' "$page" >"$name/run.sh"
  blocks=$(grep -cx '<!-- test -->' "$page" || true)
  [ "$(grep -cx echo "$name/run.sh" || true)" = "$blocks" ] || fail "$page: a block under <!-- test --> is no sh"
  (cd "$name" && bash -euo pipefail run.sh) >out 2>err </dev/null || fail "a command of $page"
  grep -q "warning" err && fail "$page: $(grep -m1 warning err)"
done
[ "$(cat ./*/run.sh | grep -c '^ *unicon ')" -ge 20 ] || fail "the guide has hardly a command"

# What the page on few pairs says of its own commands is so, to .03.
python3 - "$root" few-pairs <<'PYTHON' || fail "the figures of docs/guide/few-pairs.md"
import json, os, re, subprocess, sys
text = open(sys.argv[1] + "/docs/guide/few-pairs.md").read().split("<!-- figures: few pairs -->")[1]
rows = {int(a): float(b) for a, b in re.findall(r"^\| (\d+) \| [.\d]+ \| ([.\d]+) \|", text, re.M)}
data = sys.argv[1] + "/data/digits/"
for pairs in (50, 100, 200, 400):
    out = subprocess.run(["unicon", "eval", f"{sys.argv[2]}/few.{pairs}.safetensors", data + "upper.test.npy",
                          data + "lower.test.npy", "--json"], capture_output=True, check=True)
    hit = json.loads(out.stdout)["x_to_y"]["hit@10"]
    assert abs(hit - rows[pairs]) < 0.03, (pairs, hit, rows[pairs])
PYTHON

# Links: files, and headings of the pages themselves. From the first page one gets to every other.
python3 - "$root" <<'PYTHON' || fail "links of the guide"
import pathlib, re, sys
root = pathlib.Path(sys.argv[1])
docs = root / "docs"
pages = [p for p in docs.rglob("*.md")]


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def prose(page):
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


leads = {}
for page in pages:
    for target, heading in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", prose(page)):
        if re.match(r"https?:", target):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page}: a link to {target}, which is not there"
        leads.setdefault(page, set()).add(file)
        if heading:
            there = {anchor(h) for h in re.findall(r"^#+ (.*)$", prose(file), re.M)}
            assert heading[1:] in there, f"{page}: {target}{heading}, but there is no such heading"
reached, left = set(), [docs / "index.md"]
while left:
    page = left.pop()
    if page not in reached:
        reached.add(page)
        left += [p for p in leads.get(page, ()) if p.suffix == ".md" and docs in p.parents]
lost = {p for p in pages if (docs / "guide") in p.parents or p.name in ("report.md", "which-tool.md", "migration.md")} - reached
assert not lost, f"not reached from docs/index.md: {lost}"
site = re.findall(r": (\S+\.md)$", (root / "mkdocs.yml").read_text(), re.M)
assert len(site) == len(set(site)), "a page twice on the site"
PYTHON

# The site, with no warning; it loads nothing from elsewhere.
if command -v mkdocs >/dev/null; then
  cp "$root/mkdocs.yml" .
  ln -s "$root/docs" docs
  ln -s "$root/scripts" scripts
  mkdocs build --strict -q -d site >out 2>err || fail "mkdocs build"
  (cd "$root/docs" && find . -name '*.md') | sed 's/\.md$/.html/; s|README.html$|index.html|' | while read -r page; do
    [ -s "site/$page" ] || fail "mkdocs: $page is missing"
    [ "$page" = ./index.html ] || grep -qF "${page#./}\"" site/index.html || fail "mkdocs: no way to $page"
  done
  grep -rlE '<(script|link|img)[^>]*(src|href)="https?:' site --include='*.html' >out && fail "the site loads something from elsewhere"
  python3 - <<'PYTHON' || fail "links of the site"
import pathlib, re
for page in pathlib.Path("site").rglob("*.html"):
    for target in re.findall(r'href="([^"#:]+\.html)(?:#[^"]*)?"', page.read_text(encoding="utf-8")):
        assert (page.parent / target).resolve().exists() or page.name == "404.html", (page, target)
PYTHON
else
  echo "guide: the site is not built, there is no mkdocs"
fi
echo "guide: ok"
