#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of all fuzz targets: small valid files and files that lie in one place.

    tests/fuzz/corpus/make_seeds.py

Standard library only. Inputs that the fuzzer found stand beside the seeds as found-*."""
import io
import json
import os
import struct
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def put(target, name, data):
    folder = os.path.join(HERE, "fuzz_" + target)
    os.makedirs(folder, exist_ok=True)
    assert len(data) < 5000, (target, name, len(data))
    with open(os.path.join(folder, name), "wb") as out:
        out.write(data)


def floats(count, size=4):
    letter = {2: "e", 4: "f", 8: "d"}[size]
    return struct.pack("<%d%s" % (count, letter), *[((7 * k) % 11 - 5) / 4 + 0.1 for k in range(count)])


def npy(descr, shape, data, fortran=False, version=1):
    text = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, shape)
    start = 10 if version == 1 else 12
    text += " " * (-(start + len(text) + 1) % 16) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + data


def safetensors(tensors, meta=None):
    """tensors: name -> (dtype, shape, bytes)"""
    header, data = {}, b""
    if meta:
        header["__metadata__"] = meta
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":"))
    text += " " * (-(8 + len(text)) % 8)
    return struct.pack("<Q", len(text)) + text.encode() + data


def f32(*shape):
    count = 1
    for n in shape:
        count *= n
    return ("F32", list(shape), floats(count))


def unit_rows(rows, rank):
    """Rows of length 1 in float16."""
    out = []
    for i in range(rows):
        row = [((3 * i + 5 * k) % 7 - 3) / 4 + 0.1 for k in range(rank)]
        length = sum(a * a for a in row) ** 0.5
        out += [a / length for a in row]
    return ("F16", [rows, rank], struct.pack("<%de" % len(out), *out))


def balance_tensors(balance, rank, rows=5):
    if balance.startswith("quadratic"):
        return {side + ".bias": f32(2 * rank + 1) for side in "xy"}
    return {side + ".bank": unit_rows(rows, rank) for side in "xy"}


def model(kind="linear", kernel="linear", parts=1, normalize="on", mean=True, width=None, degree=None, banks=None,
          **more):
    d, rank, points = {"x": 3, "y": 2}, 2, 4
    meta = {"format": "unicon", "format_version": "1", "rank": str(rank * parts), "d_x": "3", "d_y": "2",
            "parts": str(parts)}
    tensors = {"spectrum": f32(rank * parts)}
    for b in range(parts):
        if parts > 1:
            meta["share.%d" % b] = str(1 / parts)
        for side in "xy":
            at = "%s.%d." % (side, b) if parts > 1 else side + "."
            meta[side + ".map"], meta[side + ".kernel"], meta[side + ".normalize"] = kind, kernel, normalize
            out = d[side]
            if kind != "linear":
                out = points
                tensors[at + ("directions" if kind == "random" else "landmarks")] = f32(points, d[side])
                if kind != "random":
                    tensors[at + "factor"] = f32(points, points)
                elif width:
                    tensors[at + "phases"] = f32(points)
            if width:
                meta[at + "kernel_width"] = width
            if degree:
                meta[side + ".kernel_degree"] = degree
            if mean:
                tensors[at + "mean"] = f32(out)
            tensors[at + "weight"] = f32(out, rank)
    meta.update(more)
    if "balance" in more:
        tensors.update(banks or balance_tensors(more["balance"], rank * parts))
    return safetensors(tensors, meta)


def moving(direction, curve=(-1, 0, 1), drop=None, more=None):
    """A model of a migration: old rows of 3 numbers, new ones of 2."""
    meta = {"format": "unicon", "format_version": "1", "parts": "1", "d_x": "3", "d_y": "2", "direction": direction}
    tensors, rank = {}, {"old-to-new": 2, "new-to-old": 3}.get(direction, 2)
    meta["rank"], tensors["spectrum"] = str(rank), f32(rank)
    for side, d, moves in (("x", 3, direction != "new-to-old"), ("y", 2, direction != "old-to-new")):
        meta[side + ".map"], meta[side + ".kernel"], meta[side + ".normalize"] = "linear", "linear", "on"
        tensors[side + ".like.mean"], tensors[side + ".like.axes"] = f32(d), f32(1, d)
        meta.update({side + ".like.share": ".5", side + ".like.length": "1", side + ".like.length_spread": "1e-9"})
        if moves:
            tensors[side + ".weight"], tensors[side + ".offset"] = f32(d, rank), f32(rank)
    for which in ("old", "new"):
        knots = [v for at in curve for v in (at, at / 2)]
        tensors["scores." + which] = ("F32", [len(curve), 2], struct.pack("<%df" % len(knots), *knots))
    tensors.update(more or {})
    if drop:
        del tensors[drop]
    return safetensors(tensors, meta)


def seeds_moving():
    for direction in ("old-to-new", "new-to-old", "shared", "sideways"):
        put("model", "moving-" + direction, moving(direction))
    put("model", "moving-falls", moving("old-to-new", curve=(1, 0, -1)))
    put("model", "moving-no-mean", moving("old-to-new", drop="x.like.mean"))
    put("model", "moving-no-weight", moving("old-to-new", drop="x.weight"))
    put("model", "moving-two-weights", moving("old-to-new", more={"y.weight": f32(2, 2)}))
    put("model", "moving-wide-axes", moving("shared", more={"x.like.axes": f32(2, 4)}))
    put("model", "moving-long-offset", moving("shared", more={"y.offset": f32(3)}))


def sidecar(**changes):
    about = {"format": "unicon vectors", "version": 1, "model": "0123456789abcdef", "space": "new", "form": "unit",
             "dtype": "<f4", "source": "0123456789abcdef", "hash": "fedcba9876543210", "rows": 12, "width": 3,
             "first": 0, "done": 12}
    about.update(changes)
    return json.dumps({key: value for key, value in about.items() if value is not None}).encode()


def mixed(h, data):
    """unicon__hash: eight bytes at a time."""
    full = 2**64 - 1
    for at in range(0, len(data), 8):
        h = (h ^ int.from_bytes(data[at:at + 8], "little")) * 0x9E3779B97F4A7C15 & full
        h ^= h >> 32
    h = (h ^ len(data)) * 0xD6E8FEB86659FD93 & full
    return h ^ (h >> 32)


def stats(kernel=None, rows=6, units=3, ledger=True, drop=None, tensors=None, cut=0, **changes):
    """Statistics of rows of 3 and 2 numbers; with a kernel nystrom on as many landmarks."""
    d = {"x": 3, "y": 2}
    meta = {"format": "unicon-stats", "format_version": "1", "d_x": "3", "d_y": "2", "parts": "1", "unpaired": "off",
            "n_x": str(rows), "n_y": str(rows), "pairs": str(rows), "weight_x_to_y": str(rows), "weight_y_to_x": str(rows),
            "decayed": "off", "updates": "1", "vectors": "avx2", "ledger": "on" if ledger else "off",
            "sample_rows": "100", "sample_threshold": "9"}
    made, h = {}, 0
    half = {side: struct.pack("<%de" % (units * p), *([0.5] * units * p)) for side, p in d.items()}
    for side, p in d.items():
        gram = [rows * (1.5 if i == j else 0.25 * (j < i)) for i in range(p) for j in range(p)]
        made[side + ".sum"] = ("F64", [p], struct.pack("<%dd" % p, *range(p)))
        made[side + ".gram"] = ("F64", [p, p], struct.pack("<%dd" % (p * p), *gram))
        made[side + ".sample"] = ("F16", [units, p], half[side])
        made[side + ".sample.length"] = ("F32", [units], struct.pack("<%df" % units, *range(1, 1 + units)))
        made[side + ".sample.hash"] = ("U64", [units], struct.pack("<%dQ" % units, *range(7, 7 + units)))
        if ledger:
            made[side + ".ledger"] = ("U64", [rows], struct.pack("<%dQ" % rows, *range(5, 5 + rows)))
        meta.update({side + ".map": "nystrom" if kernel else "linear", side + ".normalize": "on",
                     side + ".kernel": kernel or "linear"})
        h = mixed(h, struct.pack("<5q", p, p, 2 if kernel else 0, 1, 7 if kernel else 0))
        h = mixed(h, struct.pack("<d", 0.5 if kernel else 0))
        if kernel:
            points = floats(p * p)
            factor = struct.pack("<%df" % (p * p), *[1.0 if i == j else 0.125 * (j > i) for i in range(p) for j in range(p)])
            made[side + ".landmarks"], made[side + ".factor"] = ("F32", [p, p], points), ("F32", [p, p], factor)
            meta[side + ".kernel_width"] = "0.5"
            h = mixed(mixed(h, points), factor)
    for way in "xy", "yx":
        made[way + ".cross"] = ("F64", [3, 2], struct.pack("<6d", 3, 1, 0, 2, 1, 1))
        made[way + ".x"] = ("F64", [3], struct.pack("<3d", 0, 1, 2))
        made[way + ".y"] = ("F64", [2], struct.pack("<2d", 0, 1))
    made["sample.key"] = ("F64", [units], struct.pack("<%dd" % units, *[k / 4 for k in range(units)]))
    made["sample.unit"] = ("I64", [units, 4], struct.pack("<4q", 1, 1, 1, 1) * units)
    made["sample.pair"] = ("I64", [units, 2], bytes(16 * units))
    made["sample.weight"] = ("F32", [units], struct.pack("<f", 1) * units)
    made.update(tensors or {})
    meta.update({"maps": "%016x" % h}, **changes)
    gone = {drop} if isinstance(drop, str) else set(drop or ())
    return safetensors({name: made[name] for name in made if name not in gone}, meta)


def labelled(rows=(3, 3), keys=(1, 5), labels=(1, 5), drop=None, tensors=None, **changes):
    """The same of two labels, six rows of each side; two rows of each in the sample."""
    own = {"class.key": ("I64", [2], struct.pack("<2q", *keys)),
           "sample.key": ("F64", [4], struct.pack("<4d", 0, 0.25, 0.5, 0.75)),
           "sample.unit": ("I64", [4, 4], struct.pack("<4q", 1, 0, 0, 1) * 2 + struct.pack("<4q", 0, 1, 0, 1) * 2),
           "sample.pair": ("I64", [0, 2], b""), "sample.weight": ("F32", [0], b"")}
    for side, p in ("x", 3), ("y", 2):
        own[side + ".class.rows"] = ("F64", [2], struct.pack("<2d", *rows))
        own[side + ".class.sum"] = ("F64", [2, p], struct.pack("<%dd" % (2 * p), *range(2 * p)))
        own[side + ".sample"] = ("F16", [2, p], struct.pack("<%de" % (2 * p), *([0.5] * 2 * p)))
        own[side + ".sample.length"] = ("F32", [2], struct.pack("<2f", 1, 2))
        own[side + ".sample.hash"] = ("U64", [2], struct.pack("<2Q", 7, 8))
        own[side + ".sample.label"] = ("I64", [2], struct.pack("<2q", *labels))
    own.update(tensors or {})
    pairs = ("xy.cross", "xy.x", "xy.y", "yx.cross", "yx.x", "yx.y")
    return stats(tensors=own, drop=pairs + ((drop,) if drop else ()),
                 **{"classes": "2", "sample_threshold_y": "9", "pairs": "18", **changes})


def seeds_labelled():
    put("stats", "labels", labelled())
    put("stats", "labels-no-rows", labelled(rows=(6, 0)))
    put("stats", "labels-miscounted", labelled(rows=(3, 2)))
    put("stats", "labels-infinite", labelled(rows=(float("inf"), 1)))
    put("stats", "labels-negative", labelled(rows=(7, -1)))
    put("stats", "labels-fall", labelled(keys=(5, 1)))
    put("stats", "labels-unknown", labelled(labels=(1, 6)))
    put("stats", "labels-many", labelled(classes="2147483647"))
    put("stats", "labels-none-summed", labelled(n_x="0", n_y="0"))
    put("stats", "labels-no-sample", labelled(sample_rows="0"))
    put("stats", "labels-pairs", labelled(tensors={"sample.pair": ("I64", [1, 2], bytes(16))}))
    for name in "class.key", "x.class.rows", "y.class.sum", "x.sample.label":
        put("stats", "labels-no-" + name, labelled(drop=name))


def seeds_stats():
    put("stats", "linear", stats())
    put("stats", "bare", stats(units=0, ledger=False))
    put("stats", "rbf", stats("rbf"))
    put("stats", "decayed", stats(decayed="on", ledger=False, n_x="4.5", n_y="4.5"))
    put("stats", "no-rows", stats(rows=0, units=0))
    put("stats", "one-row", stats(rows=1, units=1))
    put("stats", "newer", stats(format_version="2"))
    put("stats", "model", stats(format="unicon"))
    put("stats", "foreign", stats(format="pt"))
    put("stats", "wrong-maps", stats(maps="0123456789abcdef"))
    put("stats", "wide", stats(d_x="16777216"))
    put("stats", "negative-rows", stats(n_x="-3"))
    put("stats", "nan-rows", stats(n_x="nan"))
    put("stats", "huge-sample", stats(sample_rows="1e300"))
    put("stats", "low-threshold", stats(sample_threshold="0.1"))
    put("stats", "infinite-threshold", stats(sample_threshold="inf"))
    for name in "x.gram", "xy.cross", "sample.pair", "y.sample", "x.ledger":
        put("stats", "no-" + name, stats(drop=name))
    put("stats", "no-factor", stats("rbf", drop="y.factor"))
    put("stats", "full-factor", stats("rbf", tensors={"y.factor": ("F32", [2, 2], struct.pack("<4f", 1, 0, 1, 1))}))
    put("stats", "nan-gram", stats(tensors={"y.gram": ("F64", [2, 2], struct.pack("<4d", 1, 0, float("nan"), 1))}))
    put("stats", "indefinite", stats(tensors={"y.gram": ("F64", [2, 2], struct.pack("<4d", 1, 0, 9, 1))}))
    put("stats", "huge-gram", stats(tensors={"y.gram": ("F64", [2, 2], struct.pack("<4d", 1e308, 0, 1e308, 1e308))}))
    put("stats", "f32-gram", stats(tensors={"y.gram": ("F32", [2, 2], floats(4))}))
    put("stats", "key-falls", stats(tensors={"sample.key": ("F64", [3], struct.pack("<3d", 0, 2, 1))}))
    put("stats", "key-nan", stats(tensors={"sample.key": ("F64", [3], struct.pack("<3d", 0, float("nan"), 1))}))
    put("stats", "pair-outside", stats(tensors={"sample.pair": ("I64", [3, 2], struct.pack("<6q", 0, 0, 1, 0, 0, 0))}))
    put("stats", "unit-huge", stats(tensors={"sample.unit": ("I64", [3, 4], struct.pack("<4q", 2**62, 2**62, 2**62, 1) * 3)}))
    put("stats", "unit-empty", stats(tensors={"sample.unit": ("I64", [3, 4], struct.pack("<4q", 0, 1, 1, 1) * 3)}))
    put("stats", "weight-negative", stats(tensors={"sample.weight": ("F32", [3], struct.pack("<3f", 1, -1, 1))}))
    put("stats", "half-inf", stats(tensors={"x.sample": ("F16", [3, 3], b"\0\x7c" * 9)}))
    put("stats", "ledger-falls", stats(tensors={"x.ledger": ("U64", [6], struct.pack("<6Q", 9, 8, 7, 6, 5, 4))}))
    put("stats", "cut", stats()[:-40])
    put("stats", "empty", b"")
    seeds_labelled()


def seeds_sidecar():
    put("sidecar", "whole", sidecar())
    put("sidecar", "journal", sidecar(done=4))
    put("sidecar", "too-many", sidecar(done=13))
    put("sidecar", "huge", sidecar(rows=2**63 - 1, width=2**63 - 1, done=0))
    put("sidecar", "negative", sidecar(first=-1))
    put("sidecar", "real", sidecar(rows=12.5))
    put("sidecar", "long-word", sidecar(space="s" * 16))
    put("sidecar", "short-id", sidecar(model="0123"))
    put("sidecar", "no-id", sidecar(hash="g" * 16))
    put("sidecar", "missing", sidecar(form=None))
    put("sidecar", "other", sidecar(format="pears"))
    put("sidecar", "newer", sidecar(version=2))
    put("sidecar", "twice", sidecar()[:-1] + b', "rows": 3}')
    put("sidecar", "list", b"[1, 2]")
    put("sidecar", "cut", sidecar()[:50])
    put("sidecar", "nul", sidecar(space="n\0w"))
    put("sidecar", "empty", b"")


def seeds_npy():
    for descr, size in (("<f2", 2), ("<f4", 4), ("<f8", 8)):
        put("npy", "c-" + descr[1:], npy(descr, "(3, 2)", floats(6, size)))
    put("npy", "i1", npy("|i1", "(3, 2)", bytes([1, 2, 255, 4, 128, 6])))
    put("npy", "u1", npy("|u1", "(3, 2)", bytes([1, 2, 255, 4, 128, 6])))
    put("npy", "bf16", npy("<V2", "(3, 2)", b"\x80\x3f" * 6))
    put("npy", "fortran", npy("<f4", "(3, 2)", floats(6), fortran=True))
    for version in (2, 3):
        put("npy", "version-%d" % version, npy("<f4", "(2, 3)", floats(6), version=version))
    put("npy", "one", npy("<f4", "(1, 1)", floats(1)))
    put("npy", "vector", npy("<f4", "(4,)", floats(4)))
    put("npy", "cube", npy("<f4", "(2, 2, 2)", floats(8)))
    put("npy", "empty", npy("<f4", "(0, 4)", b""))
    put("npy", "no-rows-huge-width", npy("<f4", "(0, 9223372036854775807)", b""))
    put("npy", "huge", npy("<f8", "(4294967296, 4294967296)", floats(2, 8)))
    put("npy", "big-endian", npy(">f4", "(3, 2)", floats(6)))
    put("npy", "structured", npy("<f4", "(1, 1)", floats(1)).replace(b"'<f4'", b"[('a', '<f4')]"))
    put("npy", "not-finite", npy("<f4", "(2, 2)", struct.pack("<4f", float("nan"), 1, float("inf"), 0)))


def zip_of(*files, method=zipfile.ZIP_STORED, wide=False, remark=b""):
    """A ZIP archive as NumPy writes it; `wide` has ZIP64 sizes in the list as well."""
    out, limit = io.BytesIO(), zipfile.ZIP64_LIMIT
    if wide:
        zipfile.ZIP64_LIMIT = 0
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files:
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                member.write(data)
        archive.comment = remark
    zipfile.ZIP64_LIMIT = limit
    return out.getvalue()


def seeds_npz():
    emb, ids = ("emb.npy", npy("<f4", "(3, 2)", floats(6))), ("ids.npy", npy("<i8", "(2,)", bytes(16)))
    one = zip_of(emb)
    put("npz", "one", one)
    put("npz", "two", zip_of(emb, ids))
    put("npz", "wide", zip_of(emb, wide=True))
    put("npz", "remark", zip_of(emb, remark=b"made by hand"))
    put("npz", "deflated", zip_of(emb, method=zipfile.ZIP_DEFLATED))
    put("npz", "twice", zip_of(emb, ("e.npy", b"")).replace(b"e.npy", b"emb.npy"))
    put("npz", "text", zip_of(("notes.txt", b"hi")))
    put("npz", "empty", zip_of())
    put("npz", "cut", one[:-1])
    at = one.index(b"PK\1\2")
    put("npz", "far", one[:at + 42] + b"\xfe\xff\xff\xff" + one[at + 46:])
    put("npz", "no-zip64", one[:at + 42] + b"\xff\xff\xff\xff" + one[at + 46:])


def flat_index(kind=b"IxFI", width=2, count=3, metric=0, values=None, data=None):
    data = floats(width * count) if data is None else data
    head = struct.pack("<4siqqq?i", kind, width, count, 1 << 20, 1 << 20, True, metric)
    head += b"" if metric < 2 else struct.pack("<f", 0)
    return head + struct.pack("<Q", len(data) // 4 if values is None else values) + data


def seeds_faiss():
    put("faiss", "inner-product", flat_index())
    put("faiss", "euclid", flat_index(b"IxF2", metric=1))
    put("faiss", "manhattan", flat_index(b"IxFl", metric=2))
    put("faiss", "mapped", flat_index(b"IxMp"))
    put("faiss", "empty", flat_index(count=0))
    put("faiss", "cut", flat_index()[:-1])
    put("faiss", "negative", flat_index(width=-1, count=-1, data=b""))
    put("faiss", "overflow", flat_index(width=2**31 - 1, count=2**62, values=2**31, data=b""))
    put("faiss", "values", flat_index(values=7))


def seeds_vecs():
    short = struct.pack("<i", 3) + b"abc"
    put("fvecs", "bytes", short * 3)
    put("fbin", "bytes", struct.pack("<II", 3, 2) + b"abcdef")
    put("fbin", "ids", struct.pack("<II", 2, 2) + struct.pack("<4i", 0, -1, 7, 2**31 - 1))
    row = struct.pack("<i", 3) + floats(3)
    put("fvecs", "three-rows", row * 3)
    put("fvecs", "one-row", row)
    put("fvecs", "one-column", (struct.pack("<i", 1) + floats(1)) * 5)
    put("fvecs", "cut", row * 2 + row[:9])
    put("fvecs", "two-widths", row + struct.pack("<i", 2) + floats(2) + struct.pack("<i", 3))
    put("fvecs", "negative", struct.pack("<i", -1) + floats(3))
    put("fvecs", "largest", struct.pack("<i", 2**31 - 1) + floats(3))
    put("fbin", "three-rows", struct.pack("<II", 3, 2) + floats(6))
    put("fbin", "one", struct.pack("<II", 1, 1) + floats(1))
    put("fbin", "cut", struct.pack("<II", 3, 2) + floats(6)[:-1])
    put("fbin", "empty", struct.pack("<II", 0, 2**32 - 1))
    put("fbin", "overflow", struct.pack("<II", 2**32 - 1, 2**32 - 1) + floats(1))
    put("fbin", "wraps-to-zero", struct.pack("<II", 2**31, 2**31))


def seeds_safetensors():
    put("safetensors", "two", safetensors({"x": f32(3, 2), "y": f32(2)}, {"a": "b", "c": ""}))
    put("safetensors", "f16", safetensors({"x": ("F16", [3, 2], floats(6, 2))}))
    put("safetensors", "bf16", safetensors({"x": ("BF16", [2, 2], b"\x80\x3f" * 4)}))
    put("safetensors", "f64", safetensors({"x": ("F64", [1, 2], floats(2, 8))}))
    put("safetensors", "bytes", safetensors({"x": ("U8", [2, 2], b"abcd"), "z": ("I8", [2, 2], b"\xff\x01\x80\x7f")}))
    put("safetensors", "scalar", safetensors({"x": ("I64", [], bytes(8))}))
    put("safetensors", "deep", safetensors({"x": ("F32", [1, 1, 1, 1], floats(1))}))
    put("safetensors", "nothing", safetensors({}))
    put("safetensors", "empty-huge-width", safetensors({"x": ("F32", [0, 2**62], b"")}))
    put("safetensors", "huge", safetensors({"x": ("F32", [2**32, 2**32], floats(4))}))
    put("safetensors", "hole", safetensors({"x": f32(2, 2), "y": f32(2, 2)}).replace(b"[16,32]", b"[20,32]"))
    put("safetensors", "long-header", struct.pack("<Q", 2**63) + b"{}")
    put("safetensors", "nested", struct.pack("<Q", 64) + b'{"x":' + b"[" * 40 + b" " * 19)
    put("safetensors", "escapes", safetensors({"\u00e9\"\\x": f32(1, 1)}, {"\u00fc": "\u4e2d\n"}))


def seeds_model():
    put("model", "linear", model())
    put("model", "linear-plain", model(mean=False, normalize="off"))
    put("model", "exact-angular", model("exact", "angular"))
    put("model", "nystrom-rbf", model("nystrom", "rbf", width="0.5"))
    put("model", "nystrom-poly", model("nystrom", "poly", degree="3"))
    put("model", "nystrom-expcos", model("nystrom", "expcos", width="1.5", normalize="off"))
    put("model", "nystrom-laplace", model("nystrom", "laplace", width="2"))
    put("model", "nystrom-matern", model("nystrom", "matern32", width="2", normalize="off"))
    put("model", "random-rbf", model("random", "rbf", width="0.5"))
    put("model", "random-arccos", model("random", "arccos1"))
    put("model", "fused", model("exact", "angular", parts=2))
    put("model", "fused-linear", model(parts=3))
    put("model", "newer", model(format_version="2"))
    put("model", "foreign", model(format="pt"))
    put("model", "many-parts", model(parts=2).replace(b'"parts":"2"', b'"parts":"65536"'))
    put("model", "wide", model(d_x="16777216"))
    put("model", "huge-weights", model().replace(floats(2), struct.pack("<2f", 3e38, -3e38)))
    put("model", "tiny-width", model("nystrom", "rbf", width="1e-300"))
    put("model", "softmax", model(balance="softmax:5"))
    put("model", "softmax-angular", model("nystrom", "angular", balance="softmax:1000"))
    put("model", "csls", model(balance="csls:3"))
    put("model", "csls-beyond-bank", model(balance="csls:1000"))
    put("model", "csls-fused", model("exact", "angular", parts=2, balance="csls:2"))
    put("model", "quadratic", model(balance="quadratic:5"))
    put("model", "balance-off", model(balance="off", banks={"z": f32(1)}))
    put("model", "balance-unknown", model(balance="softmax:1e9"))
    put("model", "bank-missing", model(balance="softmax:5", banks={"x.bank": unit_rows(3, 2)}))
    put("model", "bank-f32", model(balance="softmax:5", banks={"x.bank": f32(3, 2), "y.bank": f32(3, 2)}))
    put("model", "bank-wide", model(balance="softmax:5", banks={"x.bank": unit_rows(3, 3), "y.bank": unit_rows(3, 2)}))
    put("model", "bank-empty", model(balance="csls:1", banks={side + ".bank": ("F16", [0, 2], b"") for side in "xy"}))
    put("model", "bank-nan", model(balance="softmax:5", banks={side + ".bank": ("F16", [1, 2], b"\0\x7e\0\0") for side in "xy"}))
    put("model", "bank-zero", model(balance="csls:1", banks={side + ".bank": ("F16", [2, 2], bytes(8)) for side in "xy"}))
    put("model", "bias-short", model(balance="quadratic:5", banks={"x.bias": f32(5), "y.bias": f32(4)}))
    put("model", "bias-huge", model(balance="quadratic:5", banks={
        side + ".bias": ("F32", [5], struct.pack("<5f", 3e38, -3e38, 3e38, 3e38, -3e38)) for side in "xy"}))
    for name in ("softmax", "csls", "quadratic"):
        with open(os.path.join(HERE, "..", "..", "golden", name + ".safetensors"), "rb") as file:
            put("model", "golden-" + name, file.read())


def seeds_pairs():
    put("pairs", "plain.tsv", b"0\t0\n1\t1\n2\t2\n")
    put("pairs", "weights.tsv", b"x\ty\tweight\n0\t3\t0.5\n1\t1\t1e-3\n39\t49\t2\n")
    put("pairs", "commas.csv", b"x_row, y_row\r\n# remark\r\n0,0\r\n 1 , 2\r\n\r\n")
    put("pairs", "bom.tsv", b"\xef\xbb\xbf0 0\n1 2")
    put("pairs", "twice.tsv", b"1 1\n1 1\n")
    put("pairs", "range.tsv", b"40 0\n-1 2\n9223372036854775808 1\n")
    put("pairs", "fields.tsv", b"1 1 1 1\n2\n")
    put("pairs", "bad-weight.tsv", b"0 0 nan\n1 1 -1\n2 2 inf\n3 3 1e999\n")
    put("pairs", "empty.tsv", b"\n\n# nothing\n")
    put("pairs", "i8.npy", npy("<i8", "(3, 2)", struct.pack("<6q", 0, 0, 1, 5, 2, 7)))
    put("pairs", "u8.npy", npy("<u8", "(1, 2)", struct.pack("<2Q", 2**64 - 1, 1)))
    put("pairs", "i2-fortran.npy", npy("<i2", "(2, 2)", struct.pack("<4h", 1, 2, 3, -4), fortran=True))
    put("pairs", "f8.npy", npy("<f8", "(2, 3)", struct.pack("<6d", 0, 1, 0.5, 2, 3, 1.5)))
    put("pairs", "f8-bad.npy", npy("<f8", "(1, 3)", struct.pack("<3d", 1e300, float("nan"), 0.5)))
    put("pairs", "empty.npy", npy("<i8", "(0, 2)", b""))
    put("pairs", "huge.npy", npy("<i8", "(4611686018427387904, 2)", b""))


def two(a, b=b""):
    return struct.pack("<H", len(a)) + a + b


def seeds_labels():
    put("labels", "text", two(b"cat\ndog\ncat\n", b"dog\ncat\n"))
    put("labels", "one-file", two(b"a\nb\nb"))
    put("labels", "blank-lines", two(b"\n\na\r\n", b"a\n\n"))
    put("labels", "no-match", two(b"a\n", b"b\n"))
    put("labels", "bytes", two(b"\xff\x00\n\xff\n", b"\xff\x00\n"))
    put("labels", "empty", two(b"", b"a\n"))
    put("labels", "npy", two(npy("<i8", "(3,)", struct.pack("<3q", 5, -1, 5)), npy("<i4", "(2,)", struct.pack("<2i", 5, 7))))
    put("labels", "npy-column", two(npy("|u1", "(3, 1)", b"abc"), npy("|u1", "(2,)", b"bc")))
    put("labels", "npy-table", two(npy("<i8", "(1, 2)", bytes(16)), npy("<i8", "(1,)", bytes(8))))
    put("labels", "mixed", two(npy("|i1", "(1,)", b"a"), b"a\n"))
    put("labels", "npy-float", two(npy("<f8", "(2,)", struct.pack("<2d", 1, 2.5)), npy("<f8", "(1,)", bytes(8))))


def folder(*files):
    out = b""
    for name, data in files:
        out += bytes([len(name)]) + name.encode() + struct.pack("<H", len(data)) + data
    return out


def seeds_shards():
    a, b = npy("<f4", "(2, 3)", floats(6)), npy("<f2", "(1, 3)", floats(3, 2))
    put("shards", "two", folder(("img_emb_0.npy", a), ("img_emb_1.npy", b)))
    put("shards", "order", folder(("e_10.npy", a), ("e_9.npy", b), ("e_2.npy", a)))
    put("shards", "bare-numbers", folder(("0.npy", a), ("1.npy", a), ("notes.txt", b"hi")))
    put("shards", "one-number-twice", folder(("e_1.npy", a), ("e_01.npy", b)))
    put("shards", "two-series", folder(("a_0.npy", a), ("b_1.npy", b)))
    put("shards", "two-widths", folder(("a_0.npy", a), ("a_1.npy", npy("<f4", "(3, 2)", floats(6)))))
    put("shards", "long-number", folder(("a_999999999999999999.npy", a), ("a_9999999999999999999.npy", b)))
    put("shards", "hidden", folder((".a_0.npy", a), ("x.npy", a)))
    put("shards", "empty-file", folder(("a_0.npy", b""), ("a_1.npy", a)))
    put("shards", "empty-shard", folder(("a_0.npy", a), ("a_1.npy", npy("<f4", "(0, 3)", b""))))
    put("shards", "cut", folder(("a_0.npy", a), ("a_1.npy", a[:-3])))


def options(*texts):
    return b"\0".join(text if isinstance(text, bytes) else text.encode() for text in texts) + b"\0"


def seeds_options():
    put("options", "presets", options("preset", "paper", "preset", "fast", "preset", "best", "preset", "auto"))
    put("options", "numbers", options("rank", "12", "temperature", "0.05", "ridge", "1e-3", "seed", "9007199254740992"))
    put("options", "words", options("loss", "siglip", "kernel-x", "same", "map", "nystrom", "batch", "full"))
    put("options", "context", options("threads", "3", "max_mem", "1.5GiB", "max-mem", "512m", "threads", "all"))
    put("options", "bounds", options("rank", "0", "rank", "1e6", "rank", "1000001", "temperature", "1e3", "batch", "1e12"))
    put("options", "not-numbers", options("rank", "nan", "ridge", "inf", "ridge", "-0", "rank", "0x10", "rank", "1.5"))
    put("options", "unknown", options("temprture", "1", "", "", "rank ", "3", "x" * 200, "y" * 300))
    put("options", "signs", options("rank", "+7", "rank", " 7", "rank", "7 ", "bias", "-10", "max-mem", "-1M"))
    put("options", "sizes", options("max-mem", "1M", "max-mem", "1048575", "max-mem", "9e18T", "max-mem", "1Mi", "max-mem", "1b"))
    put("options", "text", options("landmark_method", "uniform", "landmark-method", "file.tsv", "landmark_method", ""))
    put("options", "flags", options("ci", "on", "ci", "off", "ci", "ON", "ci", "1"))
    put("options", "by-number", options(b"\x80", "fast", b"\x81", "7", b"\x84", "0.5", b"\xff", "x"))
    put("options", "bytes", options(b"\xff\xfe", b"%s%n", "rank", b"\xc3\xa9", "loss", b"clip|infonce"))


for name, make in sorted(globals().items()):
    if name.startswith("seeds_"):
        make()
