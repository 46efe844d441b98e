# SPDX-License-Identifier: Apache-2.0
"""Writes and compares .npy files with the standard library alone.

npy.py write OUT TYPE ROWS COLUMNS SEED [ROW,COLUMN=VALUE ...]   normal numbers, some replaced;
                                                                 ROW,*=VALUE sets a whole row
npy.py repeat OUT IN K          each row of IN K times
npy.py rows IN FROM TO OUT      rows FROM to TO - 1
npy.py head FILE                type and shape
npy.py show FILE                values, one row per line
npy.py close A B TOLERANCE      equal shapes, values within TOLERANCE
npy.py products A B C D TOLERANCE   products of rows of A and B beside those of C and D
"""
import ast
import random
import struct
import sys

WIDTH_OF_EMPTY = 4
CODES = {"f2": "e", "f4": "f", "f8": "d", "i1": "b", "u1": "B", "i8": "q"}


def save(path, kind, rows):
    columns = len(rows[0]) if rows else WIDTH_OF_EMPTY
    order = "|" if kind.endswith("1") else "<"
    head = "{'descr': '%s%s', 'fortran_order': False, 'shape': (%d, %d), }" % (
        order, kind, len(rows), columns)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        for row in rows:
            f.write(struct.pack("<%d%s" % (columns, CODES[kind]), *row))


def load(path):
    data = open(path, "rb").read()
    assert data[:6] == b"\x93NUMPY", path
    wide = data[6] > 1
    size = struct.unpack_from("<I" if wide else "<H", data, 8)[0]
    start = 12 if wide else 10
    head = ast.literal_eval(data[start:start + size].decode())
    assert not head["fortran_order"]
    kind = head["descr"].lstrip("<|")
    shape = head["shape"]
    count, columns = shape[0], shape[1] if len(shape) > 1 else 1
    flat = struct.unpack_from("<%d%s" % (count * columns, CODES[kind]), data, start + size)
    assert len(data) == start + size + struct.calcsize("<%d%s" % (count * columns, CODES[kind]))
    return kind, [list(flat[i * columns:(i + 1) * columns]) for i in range(count)]


def write(out, kind, rows, columns, seed, *edits):
    draw = random.Random(int(seed))
    table = [[draw.gauss(0, 1) for _ in range(int(columns))] for _ in range(int(rows))]
    if kind[0] in "iu":
        table = [[int(abs(v) * 10) for v in row] for row in table]
    for edit in edits:
        where, value = edit.split("=")
        row, column = where.split(",")
        for c in range(int(columns)) if column == "*" else [int(column)]:
            table[int(row)][c] = float(value) if kind[0] == "f" else int(value)
    save(out, kind, table)


def rows(path, start, end, out):
    kind, table = load(path)
    save(out, kind, table[int(start):int(end)])


def repeat(out, source, k):
    kind, rows = load(source)
    save(out, kind, [row for row in rows for _ in range(int(k))])


def head(path):
    kind, rows = load(path)
    print(kind, len(rows), len(rows[0]) if rows else 0)


def show(path):
    for row in load(path)[1]:
        print(*row)


def close(a, b, tolerance):
    (_, p), (_, q) = load(a), load(b)
    assert len(p) == len(q) and len(p[0]) == len(q[0]), "shapes differ"
    worst = max(abs(u - v) for r, s in zip(p, q) for u, v in zip(r, s))
    assert worst <= float(tolerance), worst


def products(a, b, c, d, tolerance):
    """The products of the rows of a and b, beside those of c and d."""
    a, b, c, d = (load(path)[1] for path in (a, b, c, d))
    assert len(a) == len(c) and len(b) == len(d), "shapes differ"
    dot = lambda u, v: sum(s * t for s, t in zip(u, v))
    worst = max(abs(dot(p, q) - dot(r, s)) for p, r in zip(a, c) for q, s in zip(b, d))
    assert worst <= float(tolerance), worst


if __name__ == "__main__":
    commands = {"write": write, "repeat": repeat, "rows": rows, "head": head, "show": show, "close": close,
                "products": products}
    commands[sys.argv[1]](*sys.argv[2:])
