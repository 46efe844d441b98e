#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_device times every stage on the CPU and on the soft device, and beside.py joins its table with
# another one by the names of the stages.
. "$(dirname "$0")/cli.sh"

bench=$UNICON_SOFT_FOLDER/../bench/bench_device
UNICON_DEVICES=$UNICON_SOFT_FOLDER "$bench" --repeat 1 --x 60 --y 180 --d 12 --r 6 --landmarks 20 \
  --bank 30 --queries 20 --base 300 --width 8 --eigen 16 >bench.txt 2>err || { cat err; exit 1; }
python3 - "$UNICON_SOURCE_DIR/experiments" bench.txt <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import beside

columns, stages = beside.read(open(sys.argv[2]).read())
assert columns[:1] == ["cpu"] and "soft" in columns, columns
assert len(stages) == 10, stages
for name, cells in stages.items():
    found = dict(zip(columns, cells))
    assert float(found["soft"]) >= 0, (name, found)
    assert found["cpu"] == "-" if name.endswith("reduced") else float(found["cpu"]) >= 0, (name, found)

other = ["torch", {"products": ["1.50"], "svd 16 f64": ["2.00"], "an epoch": ["3.00"]}]
table = beside.join([(columns, stages), ([other[0]], other[1])])
assert len(table) == 12 and table[0][-1] == "torch"
rows = {row[0]: row for row in table}
assert rows["products"][1:-1] == stages["products"] and rows["products"][-1] == "1.50"
assert rows["exact clip pass"][-1] == "-" and rows["an epoch"][1:] == ["-"] * len(columns) + ["3.00"]
PYTHON
# The names of torch_device.py are these names.
for name in products 'fast: statistics to embeddings' 'landmarks, covariances and eigenvectors' \
  'exact clip pass' 'exact clip pass, reduced' 'rows, softmax 10' 'top 10 of' 'f64'; do
  grep -q "$name" bench.txt || fail "bench_device has no $name"
  grep -q "line(f\?\".*$name" "$UNICON_SOURCE_DIR/experiments/torch_device.py" || fail "torch_device.py has no $name"
done
echo "bench_device: ok"
