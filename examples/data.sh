#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes what the examples read into the current folder, which should be one of its own: image.npy (300 rows) and text.npy (1500
# rows, five for each image, in order). The images and texts are synthetic, two noisy views of one
# hidden vector; the five texts of an image are copies.
#   UNICON  the command (unicon)
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)

"${UNICON:-unicon}" synth linear -o synth --train 300 --test 1 --noise 0.1 --quiet >/dev/null
mv synth/x.train.npy image.npy
python3 "$source/tests/cli/npy.py" repeat text.npy synth/y.train.npy 5
rm -r synth
