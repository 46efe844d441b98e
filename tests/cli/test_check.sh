#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# unicon check: the verdict, the numbers, the pairs that look wrong.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --train 300 --test 300
run 0 check d/x.train.npy d/y.train.npy
says_nothing
prints "The two sides align well: in new pairs a partner is closer than"
prints "(p < 0.001)"
prints "shuffled ones, p < 0.001"
prints "The worst of 300"
[ "$(awk '/^ *[0-9]+ +[0-9]+ / { n++ } END { print n }' out)" = 20 ] || fail "20 pairs are listed"
run 0 check d/x.train.npy d/y.train.npy --json --top 3 -o worst.tsv
says_nothing
json "j['p_value'] < .01 and 9 <= j['rank'] <= 11 and j['closer'] > .95 and j['pairs'] == j['graded'] == 300"
json "all(len(c) == 3 for c in j['suspects'].values()) and len(j['spectrum']) == 30 and j['spectrum'][8] > j['noise']"
json "j['verdict'].startswith('The two sides align well')"
[ "$(wc -l <worst.tsv)" -eq 4 ] && [ "$(head -1 worst.tsv)" = "$(printf 'x\ty\tcosine\tcloser')" ] || fail "worst.tsv"
absent worst.tsv.part
cp out first
run 0 check d/x.train.npy d/y.train.npy --json --top 3
cmp -s out first || fail "the same check twice differs"
run 0 check d/x.train.npy d/y.train.npy --json --top 3 --seed 5 --ridge 0.1
json "j['p_value'] < .01"
cmp -s out first && fail "--seed and --ridge have no effect"

# Rows that have nothing to do with each other.
run 0 check d/x.train.npy d/y.test.npy --top 0
prints "No alignment found"
prints "Are the rows of both sides in the same order"
grep -q "The worst" out && fail "--top 0 lists pairs"

# The pair options of fit hold; two swapped rows are the worst pairs.
npy repeat y2.npy d/y.train.npy 2
run 0 check d/x.train.npy y2.npy --y-per-x 2 --json
json "j['pairs'] == 600 and j['p_value'] < .01 and j['rows_y'] == 600"
python3 -c 'print("x\ty"); [print(i, {10: 90, 90: 10}.get(i, i), sep="\t") for i in range(300)]' >pairs.tsv
run 0 check d/x.train.npy d/y.train.npy --pairs pairs.tsv --json --top 2
json "sorted(zip(j['suspects']['x'], j['suspects']['y'])) == [(10, 90), (90, 10)]"
run 0 check d/x.train.npy d/y.train.npy --x-labels d/label.train.npy --y-labels d/label.train.npy --json
json "j['rank'] == 2 and j['graded'] == 600 and all((x == -1) != (y == -1) for x, y in zip(j['suspects']['x'], j['suspects']['y']))"
run 0 check d/x.train.npy d/y.train.npy --x-labels d/label.train.npy --y-labels d/label.train.npy
run 0 check d/x.train.npy d/y.train.npy --groups d/label.train.npy
says "shuffled one by one"

# Mistakes.
run 2 check d/x.train.npy
says "Y is missing"
refused 2 "-k is \`-1\`" check d/x.train.npy d/y.train.npy --top -1
refused 1 "did you mean --y-per-x 2?" check d/x.train.npy y2.npy
refused 1 "is an input" check d/x.train.npy d/y.train.npy -o d/x.train.npy
refused 1 "no/folder" check d/x.train.npy d/y.train.npy -o no/folder/worst.tsv
refused 2 "--rank is an option of the commands fit, plan and compare" check d/x.train.npy d/y.train.npy --rank 3
run 0 synth linear -o few --train 15 --test 10
refused 1 "at least 20 of each" check few/x.train.npy few/y.train.npy
echo "check: ok"
