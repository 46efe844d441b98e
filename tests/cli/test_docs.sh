#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the documents say runs: blocks of README.md under <!-- test -->, the reader of
# docs/model-format.md, and the programs that are printed in more than one place agree.
. "$(dirname "$0")/cli.sh"
root=$UNICON_SOURCE_DIR

# block MARK FILE NUMBER: the NUMBER-th fenced block that follows a line equal to MARK.
block() {
  awk -v mark="$1" -v wanted="$3" '
    inside && /^```/ { exit }
    inside { print; next }
    armed && /^```/ { if (++found == wanted) inside = 1; armed = 0; next }
    { armed = ($0 == mark) || (armed && $0 == "") }' "$2"
}
blocks() { grep -cxF -- "$1" "$2" || true; }

# Five captions per image, as the README has them.
mkdir bin
printf '#!/bin/sh\nexec %s "$@"\n' "$UNICON" >bin/unicon
chmod +x bin/unicon
export PATH=$PWD/bin:$PATH
run 0 synth linear -o synth --train 300 --test 60 --noise 0.1
for part in train test; do
  cp synth/x.$part.npy image.$part.npy
  npy repeat text.$part.npy synth/y.$part.npy 5
done

count=$(blocks '<!-- test -->' "$root/README.md")
[ "$count" -gt 0 ] || fail "README.md has no block under <!-- test -->"
for k in $(seq "$count"); do
  block '<!-- test -->' "$root/README.md" "$k" >block.sh
  [ -s block.sh ] || fail "block $k of README.md is empty"
  bash -eu block.sh >out 2>err </dev/null || fail "block $k of README.md: $(cat block.sh)"
done

# The command of docs/report.md, with the model of the README.
block '<!-- test: report -->' "$root/docs/report.md" 1 >block.sh
[ -s block.sh ] || fail "docs/report.md has no command"
bash -eu block.sh >out 2>err </dev/null || fail "docs/report.md: $(cat block.sh)"

# The commands of docs/migration.md, on the same items by two models.
run 0 synth nonlinear -o two --train 700 --test 100 --dim-x 24 --dim-y 32 --latent 10 --noise 0.2
cp two/x.train.npy old.npy; cp two/y.train.npy new.npy; cp two/x.test.npy index.npy; cp two/y.test.npy queries.new.npy
block '<!-- test: migration -->' "$root/docs/migration.md" 1 | sed 's/-o moved/--into new -o moved/' >block.sh
[ -s block.sh ] || fail "docs/migration.md has no commands"
bash -eu block.sh >out 2>err </dev/null || fail "docs/migration.md: $(cat block.sh)"

# The C text of the README and of the public header is that of examples/quickstart.c, blanks aside.
squeeze() { tr -d ' \n'; }
squeeze <"$root/examples/quickstart.c" >quickstart
block '<!-- from examples/quickstart.c -->' "$root/README.md" 1 | squeeze >from_readme
sed -n '/^ \*     unicon_ctx \*ctx = NULL;/,/^ \*     unicon_result_destroy/p' \
  "$root/include/unicon/unicon.h" | sed -e '$d' -e 's/^ \*//' | squeeze >from_header
for text in from_readme from_header; do
  [ -s $text ] || fail "$text is empty"
  grep -qF -- "$(cat $text)" quickstart || fail "$text is not in examples/quickstart.c"
done

# The README keeps to its length, and every file it and the documents link to is there.
[ "$(wc -l <"$root/README.md")" -lt 200 ] || fail "README.md has 200 lines or more"
for file in README.md SECURITY.md docs/method.md docs/architecture.md docs/model-format.md docs/numerics.md \
  docs/testing.md docs/migration.md docs/many-machines.md docs/report.md tests/README.md bench/README.md; do
  grep -oE '\]\([^)# ]+' "$root/$file" | cut -c3- | grep -v '^https:' | while read -r target; do
    [ -e "$root/$(dirname "$file")/$target" ] || fail "$file links to $target, which is not there"
  done
done

# The README shows both first commands and the way to Python and the examples.
for text in 'make demo' 'make test' '(python/README.md)' '(examples/)' '(examples/python/README.md)'; do
  grep -qF -- "$text" "$root/README.md" || fail "README.md lacks $text"
done

# What is run on the source's own data, by the README or by make demo, writes into a folder of its
# own; the demo builds the command alone and prints what fits on a screen or two.
grep -oE 'build/unicon .* -o [^ ]+' "$root/README.md" | sed 's/.* -o //' >targets
[ -s targets ] || fail "README.md runs nothing on the digits"
grep -qv '^\$out/' targets && fail "README.md writes to $(grep -v '^\$out/' targets | head -1)"
make -s -n -C "$root" BUILD="$PWD/build" demo >plan.txt 2>err || fail "make -n demo"
grep -qF -- '--target unicon_command' plan.txt || fail "make demo builds more than the command"
listing() { find "$root" -maxdepth 2 -not -path '*/.*' -not -path "$root/build*" | sort; }
listing >before
mkdir tmp
last="scripts/demo.sh"
TMPDIR=$PWD/tmp DEMO_FIT="--preset fast" bash "$root/scripts/demo.sh" >out 2>err || fail "$last"
listing >after
cmp -s before after || fail "$last leaves $(comm -13 before after | tr '\n' ' ')"
[ "$(find tmp -name digits.safetensors | wc -l)" -eq 1 ] || fail "$last: no model in the temporary folder"
[ "$(wc -l <out)" -lt 60 ] || fail "$last prints $(wc -l <out) lines"
prints "hit@1"

# Functions that docs/method.md names as file:function exist.
grep -oE '`[a-z_]+\.[ch]:[a-z_0-9]+`' "$root/docs/method.md" | tr -d '`' | sort -u |
  while IFS=: read -r file name; do
    path=$(find "$root/src" -name "$file")
    [ -n "$path" ] || fail "docs/method.md: there is no file $file"
    grep -qw -- "$name" "$path" || fail "docs/method.md: $file has no $name"
  done

# The reader of docs/model-format.md embeds and scores as the library does, to float32 rounding.
block '<!-- test: reader -->' "$root/docs/model-format.md" 1 >reader.py
[ -s reader.py ] || fail "docs/model-format.md has no reader"
if python3 -c 'import numpy' 2>/dev/null; then
  for how in "linear softmax:10" "linear quadratic:10" "linear off" "angular csls:10" "angular softmax:20"; do
    set -- $how
    run 0 fit image.train.npy text.train.npy --y-per-x 5 --preset fast --kernel "$1" --balance "$2" \
      -o read.safetensors
    run 0 embed read.safetensors --side x image.test.npy -o x.npy
    run 0 embed read.safetensors --side y text.test.npy -o y.npy
    run 0 search read.safetensors --query-side x image.test.npy text.test.npy -k 300 -o to_y
    run 0 search read.safetensors --query-side y text.test.npy image.test.npy -k 60 -o to_x
    python3 - "$1" <<'PYTHON' || fail "the reader of docs/model-format.md, $how"
import sys
import numpy as np
import reader
model, limit = reader.load("read.safetensors"), 1e-5 if sys.argv[1] == "linear" else 1e-4
z = {side: reader.embed(model, side, np.load(rows))
     for side, rows in (("x", "image.test.npy"), ("y", "text.test.npy"))}
for query, base in ("xy", "yx"):
    difference = np.abs(z[base] - np.load(base + ".npy")).max()
    assert difference < limit, difference
    scores = z[query] @ z[base].T - reader.bias(model, base, z[base])
    ids, found = np.load(f"to_{base}.ids.npy"), np.load(f"to_{base}.scores.npy")
    difference = np.abs(np.take_along_axis(scores, ids, 1) - found).max()
    assert difference < limit, difference
PYTHON
  done
  # A model of a migration: one side has no weight.
  python3 -c '
import numpy as np
random = np.random.default_rng(1)
x = random.normal(size=(200, 12))
np.save("x.old.npy", x.astype("f4"))
np.save("y.new.npy", (x @ np.linalg.qr(random.normal(size=(12, 12)))[0]).astype("f4"))'
  run 0 migrate x.old.npy y.new.npy -o moved --into new
  run 0 embed moved/model.safetensors --side x x.old.npy -o x.npy
  run 0 embed moved/model.safetensors --side y y.new.npy -o y.npy
  python3 - <<'PYTHON' || fail "the reader of docs/model-format.md, a model of a migration"
import numpy as np
import reader
model = reader.load("moved/model.safetensors")
assert "x.weight" in model[0] and "y.weight" not in model[0]
for side, rows in (("x", "x.old.npy"), ("y", "y.new.npy")):
    difference = np.abs(reader.embed(model, side, np.load(rows)) - np.load(side + ".npy")).max()
    assert difference < 1e-5, difference
PYTHON
else
  echo "docs: the reader is skipped, there is no numpy"
fi
echo "docs: ok"
