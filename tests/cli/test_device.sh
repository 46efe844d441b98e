#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Devices: listed with a reason, taken by name, refused in a sentence; the soft one gives what the
# CPU gives.
. "$(dirname "$0")/cli.sh"

run 0 synth nonlinear -o d --train 300 --test 120
run 0 info
grep -q '^\* cpu ' out || fail "the CPU is not the one in force"
[ "$(grep -c soft out)" = 0 ] || fail "the soft device is there without its folder"
run 1 fit d/x.train.npy d/y.train.npy -o m.safetensors --device soft
says 'device soft cannot be used: there is no libunicon_soft.so'
run 2 info --device cuda:4
says 'cuda:4G'

export UNICON_DEVICES="$UNICON_SOFT_FOLDER"
run 0 info
grep -q '^\* cpu ' out || fail "the CPU is not the one in force"
grep -q '^  soft  *plain C, for tests' out || fail "soft is not listed"
UNICON_SOFT=unusable run 0 info
grep -q '^  soft  *not usable: the test says that it is not' out || fail "no reason"
UNICON_SOFT=unusable run 1 fit d/x.train.npy d/y.train.npy -o m.safetensors --device soft
says 'the test says that it is not'
[ ! -e m.safetensors ] || fail "a model was written"
run 0 info --json --device soft
json '[d["name"] for d in j["devices"] if d["chosen"]] == ["soft"]'

for device in cpu soft soft:4M; do
  run 0 fit d/x.train.npy d/y.train.npy --preset fast --iterations 1 --balance softmax:5 \
    -o "$device.safetensors" --device "$device"
  run 0 embed "$device.safetensors" --side x d/x.test.npy -o z.npy --device "$device"
  run 0 search "$device.safetensors" --query-side x d/x.test.npy --base-side y d/y.test.npy -k 2 \
    --device "$device"
  run 0 eval "$device.safetensors" d/x.test.npy d/y.test.npy --json --device "$device"
  cp out "eval.$device"
  run 0 info "$device.safetensors"
  grep -q "^  device  *${device%%:*}\$" out || fail "$last: the model does not say where it was fitted"
done
run 0 fit d/x.train.npy d/y.train.npy --preset fast --iterations 1 --balance softmax:5 \
  -o reduced.safetensors --device soft --precision reduced
run 0 info reduced.safetensors
grep -q '^  precision  *reduced$' out || fail "the model does not say its precision"
cmp -s reduced.safetensors soft.safetensors && fail "reduced is full"
run 0 fit d/x.train.npy d/y.train.npy --preset fast -o m.safetensors --device cpu --precision reduced
says 'precision reduced has no effect: the fit ran on the CPU'
run 2 fit d/x.train.npy d/y.train.npy -o m.safetensors --precision half
says 'full|reduced'

python3 - eval.cpu eval.soft eval.soft:4M <<'PYTHON' || fail "devices disagree"
import json, sys
found = [json.load(open(path))["x_to_y"]["mrr"] for path in sys.argv[1:]]
assert max(found) - min(found) < 2e-3 and found[0] > 0.3, found
PYTHON
