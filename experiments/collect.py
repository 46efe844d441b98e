#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/results/README.md, and of docs/migration.md, from the JSON files beside
the first: the text between `<!-- begin NAME -->` and `<!-- end NAME -->` is replaced, everything
else stays. A table whose file is not there keeps its text.

    experiments/collect.py [--check]     --check writes nothing and fails if a table is out of date
"""
import json
import re
import sys

from common import results_folder


def cell(value, column):
    if value is None:
        return ""
    if isinstance(value, str) or isinstance(value, int):
        return str(value)
    if column.endswith(", s"):
        return f"{value:.1f}" if value >= 1 else f"{value:.2g}"
    if value and abs(value) < 0.0005:
        return f"{value:.0e}"
    return (
        f"{value:.1f}"
        if abs(value) >= 10
        else f"{value:.3f}" if abs(value) < 1.5 else f"{value:.2f}"
    )


def markdown(table):
    columns = table["columns"]
    lines = [" | ".join(columns), " | ".join(["---"] * len(columns))]
    lines += [" | ".join(cell(v, c) for v, c in zip(row, columns)) for row in table["rows"]]
    return "\n".join(f"| {line} |" for line in lines)


def main():
    readme = results_folder() / "README.md"
    pages = [page for page in (readme, results_folder().parent / "migration.md") if page.exists()]
    texts = before = [page.read_text() for page in pages]
    times = []
    for path in sorted(results_folder().glob("*.json")):
        found = json.loads(path.read_text())
        if "apart" not in found:
            times.append((found["experiment"], found["seconds"]))
        for name, table in found["tables"].items():
            place = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.S)
            if not any(place.search(text) for text in texts):
                sys.exit(f"{readme}: no place for the table {name} of {path.name}")
            texts = [place.sub(lambda m: m[1] + markdown(table) + "\n" + m[2], text) for text in texts]
    total = {
        "columns": ["experiment", "whole, s"],
        "rows": [*times, ("together", sum(t for _, t in times))],
    }
    texts = [
        re.sub(
            r"(<!-- begin times -->\n).*?(<!-- end times -->)",
            lambda m: m[1] + markdown(total) + "\n" + m[2],
            text,
            flags=re.S,
        )
        for text in texts
    ]
    if "--check" in sys.argv:
        sys.exit(texts != before and f"{readme} or a page beside it is out of date: run experiments/collect.py")
    for page, text in zip(pages, texts):
        page.write_text(text)


if __name__ == "__main__":
    main()
