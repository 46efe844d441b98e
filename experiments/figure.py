# SPDX-License-Identifier: Apache-2.0
"""Small figures without a plotting library: heat maps as PNG and SVG, line charts as SVG."""
import struct
import zlib

import numpy as np

COLOURS = ("#1b6ca8", "#d1495b", "#3c8d5a", "#8a5aa8", "#b8860b")
STYLE = 'font-family="sans-serif" font-size="12" fill="#444"'


def png(path, index, palette):
    """An image of palette entries (rows by columns, uint8)."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    height, width = index.shape
    rows = b"".join(b"\0" + row.tobytes() for row in index.astype("u1"))
    with open(path, "wb") as out:
        out.write(
            b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
            + chunk(b"PLTE", palette.astype("u1").tobytes())
            + chunk(b"IDAT", zlib.compress(rows, 9))
            + chunk(b"IEND", b"")
        )


def signed_panels(path, panels, scale, pixels=2, gap=8):
    """Matrices side by side: blue below 0, white at 0, red above, full colour at +-scale."""
    levels = np.linspace(-1, 1, 63)[:, None]
    blue, red = np.array([[33, 102, 172]]), np.array([[178, 24, 43]])
    palette = np.vstack(
        [255 + np.abs(levels) * (np.where(levels < 0, blue, red) - 255), [[255] * 3]]
    )
    strips = []
    for panel in panels:
        index = np.rint((np.clip(panel / scale, -1, 1) + 1) * 31)
        strips += [
            np.repeat(np.repeat(index, pixels, 0), pixels, 1),
            np.full((len(index) * pixels, gap), 63),
        ]
    png(path, np.hstack(strips[:-1]), np.rint(palette))


def confusion(path, counts, labels):
    """Share of each row in every column; rows are the true class."""
    share = np.array(counts) / np.sum(counts, 1, keepdims=True)
    size, left, top, out = 34, 90, 78, []
    for i, name in enumerate(labels):
        out.append(
            f'<text x="{left - 6}" y="{top + i * size + 21}" text-anchor="end">{name}</text>'
        )
        out.append(
            f'<text transform="translate({left + i * size + 20},{top - 6}) rotate(-50)">{name}</text>'
        )
        for j, value in enumerate(share[i]):
            ink = "#fff" if value > 0.5 else "#222"
            out.append(
                f'<rect x="{left + j * size}" y="{top + i * size}" width="{size - 1}" height="{size - 1}" '
                f'fill="#1b6ca8" fill-opacity="{max(value, .02):.3f}"/>'
            )
            if value >= 0.0051:
                out.append(
                    f'<text x="{left + j * size + 16}" y="{top + i * size + 21}" text-anchor="middle" '
                    f'fill="{ink}">{100 * value:.0f}</text>'
                )
    write_svg(path, left + size * len(labels) + 40, top + size * len(labels) + 6, out)


def lines(path, series, x_name, y_name):
    """A chart of {name: [(x, y), ...]} with a logarithmic x axis."""
    width, height, left, right, top, bottom = 560, 300, 52, 170, 14, 42
    points = [p for values in series.values() for p in values]
    low, high = (np.log(f(p[0] for p in points)) for f in (min, max))
    ceiling = max(p[1] for p in points) * 1.08 or 1

    def place(x, y):
        return (
            left + (np.log(x) - low) / max(high - low, 1e-9) * (width - left - right),
            height - bottom - y / ceiling * (height - top - bottom),
        )

    out = [
        f'<path d="M{left} {top}V{height - bottom}H{width - right}" fill="none" stroke="#888"/>',
        f'<text x="{(left + width - right) / 2}" y="{height - 8}" text-anchor="middle">{x_name}</text>',
        f'<text transform="translate(13,{height / 2 - 14}) rotate(-90)" text-anchor="middle">{y_name}</text>',
    ]
    for x in sorted({p[0] for p in points}):
        out.append(
            f'<text x="{place(x, 0)[0]:.1f}" y="{height - bottom + 16}" text-anchor="middle">{x}</text>'
        )
    step = next(s for s in (0.02, 0.05, 0.1, 0.2, 0.5, 1e9) if ceiling / s <= 6)
    for y in np.arange(0, ceiling, step):
        at = place(np.exp(low), y)[1] + 4
        out.append(f'<text x="{left - 5}" y="{at:.1f}" text-anchor="end">{y:.2f}</text>')
    for k, (name, values) in enumerate(series.items()):
        colour, at = COLOURS[k % len(COLOURS)], [place(*p) for p in values]
        out.append(
            f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in at)}" fill="none" '
            f'stroke="{colour}" stroke-width="2"/>'
        )
        out += [
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"><title>{name}: {x}, {y:.3f}</title></circle>'
            for (a, b), (x, y) in zip(at, values)
        ]
        out.append(
            f'<text x="{width - right + 12}" y="{top + 14 + 18 * k}" fill="{colour}">{name}</text>'
        )
    write_svg(path, width, height, out)


def points(path, places, label, names):
    """A scatter of places (n by 2), coloured by label."""
    size, colours = 300, COLOURS + ("#4aa3c4", "#e08a2f", "#7a7a7a", "#c45aa0", "#6b8e23")
    low, high = places.min(0), places.max(0)
    at = 8 + (places - low) / np.maximum(high - low, 1e-9) * (size - 16)
    out = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6" fill="{colours[k % len(colours)]}"/>'
           for (x, y), k in zip(at, label)]
    out += [f'<text x="{size + 8}" y="{20 + 18 * k}" fill="{colours[k % len(colours)]}">{name}</text>'
            for k, name in enumerate(names)]
    write_svg(path, size + 90, size, out)


def write_svg(path, width, height, elements):
    with open(path, "w") as out:
        out.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" {STYLE}><rect width="100%" height="100%" fill="#fff"/>'
            + "\n".join(elements)
            + "</svg>\n"
        )
