#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every experiment runs, on small made-up data, and what it writes is what docs/results has a place for.
. "$(dirname "$0")/cli.sh"

if ! python3 -c 'import numpy' 2>/dev/null; then
  echo "experiments: skipped: python3 has no numpy"
  exit 0
fi
export UNICON PYTHONDONTWRITEBYTECODE=1
experiments=$UNICON_SOURCE_DIR/experiments
for script in "$experiments"/*.py; do
  name=$(basename "$script" .py)
  case $name in common | data | figure | reference | collect | cifar_features | migration_features | beside | torch_*) continue ;; esac
  grep -q "\b$name\b" "$experiments/run.sh" || { echo "FAIL: run.sh does not run $name"; exit 1; }
done

mkdir results
cp "$UNICON_SOURCE_DIR/docs/results/README.md" results
cp "$UNICON_SOURCE_DIR/docs/migration.md" . # tables of its own
UNICON_RESULTS=$PWD/results "$experiments/run.sh" --smoke 2>err || { cat err; exit 1; }
UNICON_RESULTS=$PWD/results python3 "$experiments/collect.py"
for table in results/*.json; do
  python3 - "$table" results/README.md migration.md <<'PYTHON'
import json, sys
found, text = json.load(open(sys.argv[1])), "".join(open(page).read() for page in sys.argv[2:])
assert found["tables"], sys.argv[1]
for name, table in found["tables"].items():
    here = text.split(f"<!-- begin {name} -->\n")[1].split(f"<!-- end {name} -->")[0]
    assert len(here.splitlines()) == len(table["rows"]) + 2, name
    assert all(len(row) == len(table["columns"]) for row in table["rows"]), name
PYTHON
done
# The text around the tables stays, and a second run changes nothing.
for page in results/README.md migration.md; do
  python3 - $page "$UNICON_SOURCE_DIR/docs/$page" <<'PYTHON'
import re, sys
bare = [re.sub(r"(<!-- begin (\S+) -->\n).*?(<!-- end \2 -->)", r"\1\3", open(p).read(), flags=re.S) for p in sys.argv[1:]]
assert bare[0] == bare[1], "collect.py changed prose"
PYTHON
done
UNICON_RESULTS=$PWD/results python3 "$experiments/collect.py" --check
# The tracked tables are those of the tracked numbers.
python3 "$experiments/collect.py" --check

# Without data an experiment is skipped with a sentence.
UNICON_DATA='' UNICON_RESULTS=$PWD/results python3 "$experiments/svd.py" 2>err || { cat err; exit 1; }
grep -q "^svd: skipped: no flickr8k" err || { cat err; exit 1; }
echo "experiments: ok"
