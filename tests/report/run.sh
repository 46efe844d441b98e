#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reports in a real browser: run.sh UNICON FOLDER. Makes reports of the digits (one as the README
# has it), opens them in Chromium, and leaves pages and screenshots in FOLDER.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
unicon=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
mkdir -p "$2"
cd "$2"
data=$root/data/digits
look() { python3 "$root/tests/report/chromium.py" "$@"; }

"$unicon" fit "$data/upper.train.npy" "$data/lower.train.npy" -o digits.safetensors
"$unicon" report digits.safetensors "$data/upper.test.npy" "$data/lower.test.npy" \
  --labels "$data/label.test.txt" -o digits.html --json >digits.json
look digits.html digits.json digits

# Class vectors are the mean lower halves of each digit; ids and texts that try to break out; images of some rows,
# a sound that is linked, and a second model.
python3 - "$root/tests/cli" "$data" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
import npy
rows = npy.load(sys.argv[2] + "/lower.train.npy")[1]
labels = open(sys.argv[2] + "/label.train.txt").read().split()
means = []
for digit in range(10):
    own = [r for r, l in zip(rows, labels) if l == str(digit)]
    means.append([sum(v) / len(own) for v in zip(*own)])
npy.save("classes.npy", "f4", means)
with open("ids.txt", "w") as f:
    for i in range(500):
        f.write(f"<img src=x onerror=alert({i})>" + "long" * 60 + "</title></svg><script>alert(1)</script>\n")
with open("texts.txt", "w") as f:
    for i in range(500):
        f.write(f"</script><script>alert({i})</script> <b>text</b> of row {i} &lt;b&gt;" + " and more of it" * 9 + "\n")

# The upper and the lower halves as pictures.
import pathlib, struct, zlib
def png(row):
    large = [bytes(255 - int(v * 255 / 16) for v in row[8 * k:8 * k + 8] for _ in range(12)) for k in range(len(row) // 8)]
    raw = b"".join(b"\0" + line for line in large for _ in range(12))
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", 96, 12 * len(large), 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(raw)) + part(b"IEND", b"")
for half in ("upper", "lower"):
    folder = pathlib.Path("pictures", half)
    folder.mkdir(parents=True, exist_ok=True)
    for i, row in enumerate(npy.load(f"{sys.argv[2]}/{half}.test.npy")[1]):
        (folder / f"{i}.png").write_bytes(png(row))
    pathlib.Path(half + ".txt").write_text("".join(f"pictures/{half}/{i}.png\n" for i in range(500)))
pathlib.Path("pictures/a<b>.wav").write_bytes(b"RIFF....WAVE")
pathlib.Path("sounds.txt").write_text("pictures/a<b>.wav\n" * 500)
PYTHON
"$unicon" fit "$data/upper.train.npy" "$data/lower.train.npy" --preset fast --iterations 3 -o fast.safetensors
"$unicon" report fast.safetensors "$data/upper.test.npy" "$data/lower.test.npy" --x-ids ids.txt --y-ids ids.txt \
  --labels "$data/label.test.txt" --classes classes.npy --x-text texts.txt --y-text texts.txt --x-media upper.txt \
  --y-media sounds.txt --beside digits.safetensors -o hostile.html --json >hostile.json
look hostile.html hostile.json hostile
"$unicon" report digits.safetensors "$data/upper.test.npy" "$data/lower.test.npy" --labels "$data/label.test.txt" \
  --x-media upper.txt --y-media lower.txt --beside fast.safetensors -o two.html --json >two.json
look two.html two.json two
"$unicon" report fast.safetensors "$data/upper.test.npy" "$data/lower.test.npy" --x-labels "$data/label.test.txt" \
  --y-labels "$data/label.test.txt" -o labels.html --json >labels.json
look labels.html labels.json labels

# The checks can fail: a picture from elsewhere, something too wide, a point less, a script.
refuse() { # NAME SED_PROGRAM
  sed "$2" digits.html >"$1.html"
  if cmp -s digits.html "$1.html"; then echo "run.sh: $1 changes nothing" >&2; exit 1; fi
  if look "$1.html" digits.json >/dev/null 2>&1; then echo "run.sh: $1 was not noticed" >&2; exit 1; fi
}
refuse outside 's|<main>|<main><img src="https://example.org/a.png">|'
refuse wide 's|<main>|<main><div style="width:700px">wide</div>|'
refuse point '0,/class="point/s///'
refuse script 's|<main>|<main><script>console.log(1)</script>|'
refuse changed 's|const IMAGE =|const  IMAGE =|'
refuse misplaced '0,/<rect class="bar a" x="[0-9.]*"/s//<rect class="bar a" x="900"/'
echo "report in chromium: ok"
