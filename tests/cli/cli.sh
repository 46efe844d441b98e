# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the tests of the command: `. "$(dirname "$0")/cli.sh"`. Moves into a scratch folder that
# is removed at exit.
set -eu

: "${UNICON:?set UNICON to the command under test}"
: "${UNICON_SOURCE_DIR:?set UNICON_SOURCE_DIR to the root of the source}"
UNICON_SOURCE_DIR=$(cd "$UNICON_SOURCE_DIR" && pwd)
if [ -x "$UNICON" ]; then UNICON=$(cd "$(dirname "$UNICON")" && pwd)/$(basename "$UNICON"); fi
tests=$UNICON_SOURCE_DIR/tests/cli
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
  echo "FAIL: $*" >&2
  echo "--- stdout" >&2; head -c 2000 out >&2 || true
  echo "--- stderr" >&2; head -c 2000 err >&2 || true
  exit 1
}

# run CODE ARGUMENTS...: runs the command and checks its exit status; output is in `out` and `err`.
run() {
  local want=$1 got=0
  shift
  last="unicon $*"
  $UNICON "$@" >out 2>err </dev/null || got=$?
  [ "$got" = "$want" ] || fail "$last: exit status $got instead of $want"
}

# The last run's stdout or stderr contains the text, or nothing at all.
prints() { grep -qF -- "$1" out || fail "$last: stdout lacks: $1"; }
says() { grep -qF -- "$1" err || fail "$last: stderr lacks: $1"; }
prints_nothing() { [ ! -s out ] || fail "$last: stdout is not empty"; }
# A busy machine shows progress, a line every ten seconds: "unicon fit: angular; 40 %; about 8 s left".
says_nothing() {
  if grep -qvE "^unicon [a-z]+: .*; [0-9]+ %(; about .* left)?\$" err; then fail "$last: stderr is not empty"; fi
}

# refused CODE SENTENCE ARGUMENTS...: exactly one line on stderr with that text, nothing on stdout.
refused() {
  local want=$1 sentence=$2
  shift 2
  run "$want" "$@"
  says "$sentence"
  prints_nothing
  [ "$(wc -l <err)" -eq 1 ] || fail "$last: more than one line on stderr"
  grep -q "^unicon $1: " err || fail "$last: stderr does not begin with the command's name"
}

# json EXPRESSION: the last run's stdout is one JSON object `j` (no NaN) for which it holds.
json() {
  python3 - "$1" <<'PYTHON' || fail "$last: json: $1"
import json, math, sys
def no_constant(name):
    raise ValueError(name)
j = json.load(open("out"), parse_constant=no_constant)
assert isinstance(j, dict)
assert eval(sys.argv[1]), j
PYTHON
}

# npy ARGUMENTS...: see npy.py.
npy() { python3 "$tests/npy.py" "$@"; }

absent() { for f in "$@"; do [ ! -e "$f" ] || fail "$f should not exist"; done; }

