# SPDX-License-Identifier: Apache-2.0
"""Tables of stages side by side: what bench/bench_device and torch_device.py have printed.

    python experiments/beside.py bench.txt torch.txt

Stages are joined by their names, in the order in which they first come. `-`: that one has no time.
"""
import re
import sys

GAP = re.compile(r"\s{2,}")


def read(text):
    """Names of the columns, and the cells of each stage."""
    columns, stages = [], {}
    for line in text.splitlines():
        name, *cells = GAP.split(line.strip())
        if name == "stage, ms":
            columns = cells
        elif columns and len(cells) == len(columns):
            stages[name] = cells
    if not columns:
        raise SystemExit("beside.py: no table begins with \"stage, ms\"")
    return columns, stages


def join(tables):
    """One table of rows of cells, its head first."""
    names = list(dict.fromkeys(name for _, stages in tables for name in stages))
    out = [["stage, ms", *(column for columns, _ in tables for column in columns)]]
    for name in names:
        out.append([name, *(cell for columns, stages in tables
                            for cell in stages.get(name, ["-"] * len(columns)))])
    return out


if __name__ == "__main__":
    texts = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    for row in join([read(text) for text in texts]):
        print(f"{row[0]:<58}" + "".join(f"  {cell:>12}" for cell in row[1:]))
