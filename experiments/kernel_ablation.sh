#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The paper's kernel ablation (appendix, "Kernel Selection Study") on its nonlinear synthetic model
# (C.2: d 40 and 30, r 10, 3 clusters, noise .3, 600 training pairs; 400 test pairs here), as a
# Markdown table on stdout. The paper defines neither its accuracy nor its kernel widths: hit@1 and
# the share of queries whose top match is of the same cluster stand beside its numbers, each the mean
# of both directions and of SEEDS data sets; widths are the median distance.
#   UNICON  the command (build/unicon)
#   SEEDS   how many data sets (5)
set -euo pipefail
cd "$(dirname "$0")/.."
unicon=${UNICON:-build/unicon}
seeds=${SEEDS:-5}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# name in the table, kernel, the paper's value
kernels=(
  "RBF|rbf|.56"
  "Matérn 1/2 (Laplace)|matern12|.73"
  "Matérn 3/2|matern32|.73"
  "Matérn 5/2|matern52|.73"
  "Cosine|cosine|.81"
  "Exponential cosine|expcos|.73"
  "Arc-cosine 0|arccos0|.85"
  "Arc-cosine 2|arccos2|.85"
  "Angular = arc-cosine 1|angular|.86"
  "Linear (= cosine on unit rows)|linear|"
)
paper="--preset paper --batch full"
whitened="--preset fast"

# hit@1 and the same-cluster rate of the top matches (TSV: query, rank, base, score) on stdin.
score='
import ast, struct, sys
with open(sys.argv[1], "rb") as f:
    head = f.read(10)
    about = ast.literal_eval(f.read(struct.unpack("<H", head[8:])[0]).decode())
    label = struct.unpack("<%dq" % about["shape"][0], f.read())
assert about["descr"] == "<i8", about
top = [tuple(map(int, line.split("\t")[0:3:2])) for line in sys.stdin if line[0].isdigit()]
print(sum(q == b for q, b in top) / len(top), sum(label[q] == label[b] for q, b in top) / len(top))
'

# Mean hit@1 and same-cluster rate of a kernel in a setting, as two table cells.
cells() {
  local kernel=$1 seed data from to
  shift
  for ((seed = 0; seed < seeds; seed++)); do
    data=$folder/$seed
    "$unicon" fit "$data/x.train.npy" "$data/y.train.npy" -o "$folder/model.safetensors" -q \
      "$@" --kernel "$kernel" >/dev/null
    for from in x y; do
      to=$([ $from = x ] && echo y || echo x)
      "$unicon" search "$folder/model.safetensors" -q -k 1 --query-side $from \
        "$data/$from.test.npy" --base-side "$to" "$data/$to.test.npy" |
        python3 -c "$score" "$data/label.test.npy"
    done
  done | awk '{ hit += $1; same += $2 } END { printf "%.3f | %.3f", hit / NR, same / NR }'
}

for ((seed = 0; seed < seeds; seed++)); do
  "$unicon" synth nonlinear -o "$folder/$seed" --seed "$seed" -q >/dev/null
done
echo "Nonlinear synthetic model, 600 training and 400 test pairs, mean of $seeds data sets and both"
echo "directions (\`experiments/kernel_ablation.sh\`, $("$unicon" --version | head -n 1))."
echo "Paper's setting: \`$paper\`; whitened: \`$whitened\`."
echo
echo "| kernel | paper, accuracy | paper's setting, hit@1 | same cluster | whitened, hit@1 | same cluster |"
echo "|---|---|---|---|---|---|"
for row in "${kernels[@]}"; do
  IFS='|' read -r name kernel value <<<"$row"
  # shellcheck disable=SC2086
  echo "| $name | $value | $(cells "$kernel" $paper) | $(cells "$kernel" $whitened) |"
done
