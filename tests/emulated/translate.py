#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns CUDA C++ into what a C++ compiler takes with emulated.h: translate.py FROM TO."""

import re
import sys


def arguments(text):
    """The parts of a launch's shape, at commas outside of brackets."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return [*parts, part]


def launch(match):
    kernel, shape = match.group(1), arguments(match.group(2))
    grid, block = (f"dim3({s.strip()})" for s in shape[:2])
    rest = "".join("," + s for s in shape[2:])
    call = f"[](auto... p) {{ {kernel}(p...); }}"
    return f'emulated_bind("{kernel}", {call}, {grid}, {block}{rest})'


def translate(text):
    text = re.sub(r"(\w+(?:<[\w, ]+>)?)\s*<<<(.*?)>>>", launch, text, flags=re.S)
    text = re.sub(r"\bNULL\b", "nullptr", text)  # goes through the template of a launch as a pointer
    text = re.sub(r"extern __shared__ (\w+) (\w+)\[\];", r"\1 *\2 = (\1 *)emulated_shared();", text)
    text = re.sub(
        r'asm\("ex2\.approx\.ftz\.f32 %0, %1;" : "=f"\((\w+)\) : "f"\((\w+)\)\);',
        r"\1 = exp2f(\2);",
        text,
    )
    for left in ("<<<", "asm(", "extern __shared__"):
        if left in text:
            sys.exit(f"translate.py: there is a {left} that it does not know")
    return text


if __name__ == "__main__":
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        out = translate(file.read())
    with open(target, "w", encoding="utf-8") as file:
        file.write(f'#line 1 "{source}"\n{out}')
