# SPDX-License-Identifier: Apache-2.0
"""Can colours that stand for different things be told apart by everyone?  colours.py report.css

Each pair of a group, in light and dark, as people without one kind of cones see it (the matrices of Machado, Oliveira
and Fernandes 2009, severity 1), must differ by at least LEAST in CIE Lab; 2.3 is a difference that can just be seen
side by side, so 20 is plain to see in a picture of small marks. Marks also differ from their ground in lightness."""
import itertools
import re
import sys

LEAST, GROUND = 20, 25
GROUPS = (("r0", "r1", "r2", "r3"), ("good", "bad"), ("plus", "minus"), ("a", "b"))
SEEN = {
    "everyone": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)


def times(matrix, vector):
    return [sum(m * v for m, v in zip(row, vector)) for row in matrix]


def lab(colour, matrix):
    """Lab of #rrggbb seen through the matrix, which acts on linear RGB."""
    rgb = [int(colour[k:k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
    seen = [min(1, max(0, v)) for v in times(matrix, linear)]
    ratio = [v / w for v, w in zip(times(XYZ, seen), WHITE)]
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in ratio)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def main(path):
    blocks = re.findall(r":root\{([^}]*--r0[^}]*)\}", open(path, encoding="utf-8").read())
    assert len(blocks) == 2, f"{len(blocks)} sets of colours, not one for light and one for dark"
    least = 1e9
    for mode, block in zip(("light", "dark"), blocks):
        colour = dict(re.findall(r"--([a-z0-9]+):(#[0-9a-f]{6})\b", block))
        card = "#ffffff" if mode == "light" else colour["card"]
        for who, matrix in SEEN.items():
            for group in GROUPS:
                for one, other in itertools.combinations(group, 2):
                    a, b = lab(colour[one], matrix), lab(colour[other], matrix)
                    far = sum((p - q) ** 2 for p, q in zip(a, b)) ** 0.5
                    least = min(least, far)
                    assert far >= LEAST, f"{mode}, {who}: {one} and {other} differ by {far:.1f}"
                for one in group:
                    far = abs(lab(colour[one], matrix)[0] - lab(card, matrix)[0])
                    assert far >= GROUND, f"{mode}, {who}: {one} differs from its ground by {far:.1f}"
    print(f"colours: the nearest two differ by {least:.0f}")


if __name__ == "__main__":
    main(sys.argv[1])
