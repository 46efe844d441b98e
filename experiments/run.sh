#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every experiment and writes docs/results: one JSON file each, figures, and the tables of its README.
#   experiments/run.sh [--smoke] [NAME ...]     --smoke: small made-up data, results thrown away unless
#                                               UNICON_RESULTS names a folder for them
#   UNICON_DATA  folder of the features; experiments whose data are not there are skipped and said so
#   UNICON       the command (build/unicon)
set -euo pipefail
here=$(dirname "$0")

smoke=()
if [ "${1:-}" = --smoke ]; then
  smoke=(--smoke)
  shift
  if [ -z "${UNICON_RESULTS:-}" ]; then
    UNICON_RESULTS=$(mktemp -d)
    export UNICON_RESULTS
    trap 'rm -rf "$UNICON_RESULTS"' EXIT
  fi
fi
all=(synthetic kernels losses flickr8k balanced compare batch svd efficiency esc50 transfer unimodal warm_start landmarks migration)
names=("$@")
[ $# -gt 0 ] || names=("${all[@]}")

if ! python3 -c 'import numpy' 2>/dev/null; then
  echo "experiments: skipped: python3 has no numpy (scripts/setup.sh --experiments installs it)" >&2
  exit 0
fi
number=0
for name in "${names[@]}"; do
  number=$((number + 1))
  echo "[$number/${#names[@]}] $name, at ${SECONDS} s" >&2
  python3 "$here/$name.py" "${smoke[@]}"
done
[ ${#smoke[@]} -gt 0 ] || python3 "$here/collect.py"
echo "experiments: ${#names[@]} in ${SECONDS} s" >&2
