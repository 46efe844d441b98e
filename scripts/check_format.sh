#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Are all C files laid out as .clang-format says?  --fix: lay them out so.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(--dry-run -Werror)
if [ "${1:-}" = --fix ]; then mode=(-i); fi

git ls-files -z --cached --others --exclude-standard -- '*.c' '*.h' |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  xargs -0 -r clang-format "${mode[@]}"
