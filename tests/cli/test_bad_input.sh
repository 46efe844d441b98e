#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Bad data: one clear sentence, exit status 1, nothing written.
. "$(dirname "$0")/cli.sh"

run 0 synth linear -o d --train 40 --test 20
run 0 fit d/x.train.npy d/y.train.npy -o good.safetensors
cp good.safetensors kept.safetensors
npy write x.npy f4 20 8 1
npy write y.npy f4 20 6 2

# bad SENTENCE X Y OPTIONS...: the fit fails and an older model of that name stays whole.
bad() {
  local sentence=$1
  shift
  refused 1 "$sentence" fit "$@" -o good.safetensors
  cmp -s good.safetensors kept.safetensors || fail "$last: the older model was touched"
}

# Not finite: file, row and column are named.
npy write nan.npy f4 20 8 1 7,3=nan
bad "nan.npy" nan.npy y.npy
grep -qE 'row 7\b' err && grep -qE 'column 3\b' err || fail "row 7, column 3 are not named"
npy write inf.npy f8 20 6 1 19,5=inf
bad "inf.npy" x.npy inf.npy
grep -qE 'row 19\b' err && grep -qE 'column 5\b' err || fail "row 19, column 5 are not named"
npy write nan40.npy f4 20 40 1 7,3=nan
refused 1 "nan40.npy" embed good.safetensors --side x nan40.npy -o z.npy
refused 1 "nan40.npy" search good.safetensors --query-side x nan40.npy d/y.test.npy
refused 1 "nan40.npy" eval good.safetensors nan40.npy d/y.test.npy
absent z.npy

# All-zero rows: counted, the first named, with the way out; and the way out works.
npy write zero.npy f4 20 8 1 '4,*=0' '9,*=0'
bad "--bad-rows drop" zero.npy y.npy
says "zero.npy"
says "2"
grep -qE 'row 4\b' err || fail "row 4 is not named"
run 0 fit zero.npy y.npy -o dropped.safetensors --bad-rows drop --rank 2
run 0 fit nan.npy y.npy -o dropped.safetensors --bad-rows=drop --rank 2
npy write zero40.npy f4 20 40 1 '4,*=0'
refused 1 "zero40.npy" embed good.safetensors --side x zero40.npy -o z.npy
absent z.npy

# Shapes: rows against rows, rows against the model.
npy write y19.npy f4 19 6 2
bad "19" x.npy y19.npy
refused 1 "8" eval good.safetensors x.npy d/y.test.npy
refused 1 "8" search good.safetensors --query-side x x.npy d/y.test.npy
refused 1 "" eval --no-model x.npy y.npy

# Empty matrices and too few rows.
npy write empty.npy f4 0 4 1
bad "empty.npy" empty.npy empty.npy
npy write one.npy f4 1 8 1
npy write uno.npy f4 1 6 1
bad "row" one.npy uno.npy
: >void.npy
bad "void.npy" void.npy y.npy

# Pairs: out of range, twice, not a number.
printf '0\t0\n20\t1\n' >range.tsv
bad "20" x.npy y.npy --pairs range.tsv
printf '0\t0\n0\t-1\n' >negative.tsv
bad "" x.npy y.npy --pairs negative.tsv
printf '0\t0\n1\t1\n0\t0\n' >twice.tsv
bad "twice" x.npy y.npy --pairs twice.tsv
printf '0\t0\n1\tone\n' >words.tsv
bad "words.tsv" x.npy y.npy --pairs words.tsv
: >none.tsv
bad "none.tsv" x.npy y.npy --pairs none.tsv
bad "absent.tsv" x.npy y.npy --pairs absent.tsv

# Truncated and lying files, wrong types, formats that we do not read.
head -c 300 x.npy >cut.npy
bad "cut.npy" cut.npy y.npy
head -c 40 x.npy >head.npy
bad "head.npy" head.npy y.npy
sed 's/(20, 8)/(90, 8)/' x.npy >lie.npy
bad "lie.npy" lie.npy y.npy
printf 'not numpy at all, but long enough to look at\n' >text.npy
bad "text.npy" text.npy y.npy
npy write int.npy i8 20 8 1
bad "int.npy" int.npy y.npy
head -c 100 good.safetensors >cut.safetensors
refused 1 "cut.safetensors is cut off: its header takes" eval cut.safetensors d/x.test.npy d/y.test.npy
run 0 info x.npy
prints "20 rows of 8 numbers"
run 0 info x.npy --json
json "j == {'rows_of': 'x.npy', 'rows': 20, 'width': 8}"
refused 1 "cut.npy" info cut.npy
bad "" good.safetensors:no_such_tensor y.npy
for kind in h5 csv parquet pt; do
  printf 'PK and so on\n' >table.$kind
  bad "table.$kind" table.$kind y.npy
  says ".npy"
done
bad "absent.npy" absent.npy y.npy
mkdir hollow
bad "hollow" hollow y.npy

# Rank larger than the data allow, said with the most they allow; the default adapts.
bad "30" d/x.train.npy d/y.train.npy --preset fast --rank 31
run 0 fit d/x.train.npy d/y.train.npy -o fits.safetensors --preset fast --rank 30

# Memory that does not suffice.
npy write wide.npy f4 30 600 1
npy write wide2.npy f4 30 600 2
bad "--max-mem allows are in use; the whole fit may take" wide.npy wide2.npy --max-mem 1M

refused 1 "x.npy is an .npy file, not a .safetensors file" eval x.npy d/x.test.npy d/y.test.npy

# A number that is missing among the files of a folder.
mkdir gap && cp d/x.test.npy gap/x_0.npy && cp d/x.test.npy gap/x_2.npy
run 0 embed good.safetensors --side x gap -o gap.npy
says "no number between x_0.npy and x_2.npy: is a file missing?"
for k in 4 6 8; do cp d/x.test.npy gap/x_$k.npy; done
run 0 embed good.safetensors --side x gap -o gap.npy
says "no number between x_0.npy and x_2.npy, nor in other places: is a file missing?"
[ "$(grep -c "is a file missing" err)" -eq 1 ] || fail "a warning for each gap"

# Output that cannot be written, said before the work; outputs never destroy an input.
refused 1 "no/where" fit d/x.train.npy d/y.train.npy -o no/where/m.safetensors
refused 1 "is not a folder" fit d/x.train.npy d/y.train.npy -o x.npy/m.safetensors
mkdir folder
refused 1 "it is a folder" fit d/x.train.npy d/y.train.npy -o folder
mkfifo queue
refused 1 "not a regular file" fit d/x.train.npy d/y.train.npy -o queue
cp x.npy x.copy
refused 1 "x.npy is an input" fit x.npy y.npy -o ./x.npy
printf '0\t0\n1\t1\n' >marks.tsv
refused 1 "marks.tsv is an input" fit d/x.train.npy d/y.train.npy --kernel rbf --landmark-method marks.tsv -o marks.tsv
mkdir shards && cp d/x.test.npy shards/x_0.npy && cp d/x.test.npy shards/x_1.npy
refused 1 "x_1.npy is an input" embed good.safetensors --side x shards -o shards/x_1.npy
refused 2 "good.safetensors: the name must end in .npy or .fbin" embed good.safetensors --side x d/x.test.npy -o good.safetensors
cmp -s x.npy x.copy || fail "the input was touched"
refused 1 "no/where" embed good.safetensors --side x d/x.test.npy -o no/where/z.npy
refused 1 "no/where" search good.safetensors --query-side x d/missing.npy d/y.test.npy -o no/where/z
if [ "$(id -u)" -ne 0 ]; then
  mkdir locked && chmod 500 locked
  refused 1 "locked" fit d/x.train.npy d/y.train.npy -o locked/m.safetensors
fi

# A model is a .safetensors file: other formats are refused by their names, a name that says nothing
# is taken with a warning.
for suffix in pt pth bin npy npz pkl onnx; do
  refused 2 "m.$suffix: a model is written in the format safetensors; call it m.safetensors" \
    fit d/x.train.npy d/y.train.npy -o m.$suffix
  absent m.$suffix
done
for name in model m.model .hidden; do
  run 0 fit d/x.train.npy d/y.train.npy --preset fast -o $name
  says "warning: $name is written in the format safetensors, which its name does not say"
  [ "$(wc -l <err)" -eq 1 ] || fail "$last: more than one line on stderr"
  run 0 info $name
  rm $name
done
run 0 fit d/x.train.npy d/y.train.npy --preset fast -o m.safetensors
says_nothing

# Metadata of a stranger's model do not speak to the terminal.
python3 - <<'PYTHON'
import json
data = open("m.safetensors", "rb").read()
size = int.from_bytes(data[:8], "little")
header = json.loads(data[8:8 + size])
for name, changes in (("loud", {"library_version": "\x1b[2Jx\u009b"}), ("bad", {"rank": "\x1b[2Jx"})):
    header["__metadata__"].update(changes)
    text = json.dumps(header).encode()
    open(name + ".safetensors", "wb").write(len(text).to_bytes(8, "little") + text + data[8 + size:])
PYTHON
run 0 info loud.safetensors
prints "library_version        ?[2Jx?"
refused 1 'metadata rank is "?[2Jx"' info bad.safetensors

# Nothing but what was asked for is left in the folder.
for f in .[!.]* *.tmp* *~ *.part*; do absent "$f"; done
echo "bad input: ok"
