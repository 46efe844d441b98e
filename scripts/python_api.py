#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/python-api.md from the docstrings and signatures of the Python package.

    python_api.py            writes the file
    python_api.py --check    fails where the file is not what would be written

Needs the package: installed, or by UNICON_LIBRARY and PYTHONPATH.
"""

import argparse
import ast
import inspect
import re
import sys
import textwrap
from pathlib import Path

import unicon

OUT = Path(__file__).resolve().parents[1] / "docs" / "python-api.md"
SECTIONS = [
    ("Fit and use", ["Aligner", "Model"]),
    ("Before and beside a fit", ["check", "plan", "split", "compare"]),
    ("Without a model", ["search", "evaluate", "classify", "probe", "weights"]),
    ("Pages", ["report"]),
    ("Another embedding model, the same index", ["Migration"]),
    ("Rows that come and go", ["Stats"]),
    ("scikit-learn", ["paired"]),
    ("Rows and files", ["read_rows", "open_folder", "clip_retrieval", "synth"]),
    ("About the library", ["options", "presets", "devices", "build_info", "command"]),
    ("What comes back", ["Split", "Part", "Paired", "Items", "Folder", "DeviceArray", "Option", "Evaluation"]),
    ("Errors", ["UniconError", "ArgumentError", "OptionError", "ShapeError", "DataError", "PairsError", "DeviceError",
                "MemoryLimitError", "FileError", "FormatError", "NumericError", "CancelledError",
                "UnsupportedError", "NotFittedError", "UniconWarning"]),
]
TYPES = [("_rows", "Matrix"), ("_pairs", "Pairs"), ("_call", "Progress")]
HEAD = """# Python reference

Made from the docstrings by `scripts/python_api.py`; a test holds it current. [python/README.md](../python/README.md)
is the tour. Arguments named `**options` are options of the library by name, `**arguments` those of the function that is
named; `progress` is None, True (a tqdm bar) or a function of a label, the share done and the seconds left.
"""


def text_of(thing):
    doc = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
    return inspect.cleandoc(doc or "")


def value_of(default):
    return repr(default).replace("'", '"')


def signature_of(function, bound):
    parts, star = [], False
    for name, parameter in inspect.signature(function).parameters.items():
        if bound and not parts and name in ("self", "cls"):
            bound = False
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{name}")
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{name}")
            star = True
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        known = parameter.default is not parameter.empty
        parts.append(name + (f"={value_of(parameter.default)}" if known else ""))
    return "(" + ", ".join(parts) + ")"


def prose(text):
    """A docstring as Markdown: indented lines are code, and sections of "name : type" with indented
    text are lists."""
    out = []
    for part in sections(text):
        heading = part[0] if len(part) > 1 and re.fullmatch("-{3,}", part[1]) else None
        if heading:
            out += [f"**{heading}**", *listed(part[2:])]
        else:
            out += blocks(part)
    return "\n\n".join(out)


def sections(text):
    """The lines before the first underlined heading, and those from each to the next."""
    found, lines = [[]], text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""]):
        if re.fullmatch("-{3,}", below):
            found.append([])
        found[-1].append(line)
    return [part for part in found if any(part)]


def blocks(lines):
    groups = re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))
    out = []
    for group in groups:
        if group.startswith("    "):
            code = textwrap.dedent(group)
            if out and out[-1].endswith("```"):
                out[-1] = out[-1][:-4] + "\n\n" + code + "\n```"
            else:
                out.append(f"```python\n{code}\n```")
        elif ">>>" in group:
            out.append(f"```pycon\n{group}\n```")
        else:
            code = re.search(r"\n(    [^\n]+(\n    [^\n]*)*)$", group)
            out.append(group)
            if code:
                out[-1:] = [group[:code.start()], f"```python\n{textwrap.dedent(code[1])}\n```"]
    return out


def listed(lines):
    """ "name : type" and the indented lines below as one item; anything else as it is."""
    if not any(" : " in line for line in lines):
        return blocks(lines)
    items = []
    for line in lines:
        if not line.startswith(" ") and line:
            name, _, kind = line.partition(" : ")
            items.append(f"- **`{name}`** ({kind}):")
        elif line:
            # the first line may have been wrapped, deeper than the text
            if line.startswith("        "):
                items[-1] = items[-1][:-2] + " " + line.strip() + "):"
            else:
                items[-1] += " " + line.strip()
    return ["\n".join(items)]


def types():
    """The names that signatures use, with the texts below their assignments."""
    out = []
    for module, name in TYPES:
        tree = ast.parse((Path(unicon.__file__).parent / f"{module}.py").read_text(encoding="utf-8"))
        for line, below in zip(tree.body, tree.body[1:]):
            target = getattr(line, "targets", [None])[0]
            if getattr(target, "id", None) == name:
                text = inspect.cleandoc(below.value.value)
                out += [f"### `{name}`", "\n\n".join(blocks(tabled(text)))]
    return out


def tabled(text):
    """Lines in columns stay so: as code."""
    head, _, table = text.partition("\n\n")
    return [head, "", *("    " + line.strip() for line in table.splitlines())] if table else [head]


def function(name, thing, level, bound=False):
    return [f"{'#' * level} `{name}{signature_of(thing, bound)}`", prose(text_of(thing))]


def members(cls):
    for name, thing in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(thing, property) and thing.fget.__doc__:
            yield name, "property", thing.fget
        elif isinstance(thing, classmethod) and thing.__func__.__doc__:
            yield name, "class", thing.__func__
        elif inspect.isfunction(thing):
            yield name, "", thing


def whole_class(name, cls):
    own_fields = getattr(cls, "_fields", None)
    start = f"({', '.join(own_fields)})" if own_fields else ""
    if name == "Aligner":
        start = "(**options)"
    elif name == "Migration":
        start = "(**options)"
    parts = [f"### `class {name}{start}`", prose(text_of(cls))]
    for own, kind, thing in members(cls):
        if kind == "property":
            parts.append(f"- **`{own}`**: {' '.join(text_of(thing).split())}")
        else:
            label = f"{name}.{own}" if kind == "class" else own
            parts += function(label, thing, 4, bound=True)
    return parts


def page():
    parts = [HEAD.strip()]
    named = {name for _, names in SECTIONS for name in names} | {name for _, name in TYPES}
    gone, more = named - set(unicon.__all__), sorted(set(unicon.__all__) - named)
    if gone:
        sys.exit(f"python_api.py: these are not there any more: {sorted(gone)}")
    for heading, names in [*SECTIONS, *([("More", more)] if more else [])]:
        parts.append(f"## {heading}")
        for name in names:
            thing = getattr(unicon, name)
            if heading == "Errors":
                base = [b.__name__ for b in thing.__mro__[1:] if b.__module__ == "builtins"][0]
                parts.append(f"- **`{name}`** ({base}): {' '.join(text_of(thing).split())}")
            elif inspect.isclass(thing):
                parts += whole_class(name, thing)
            else:
                parts += function(name, thing, 3)
    parts += ["## What may be given", *types()]
    return "\n\n".join(part for part in parts if part) + "\n"


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    wanted = page()
    if not parser.parse_args().check:
        OUT.write_text(wanted, encoding="utf-8")
    elif not OUT.exists() or OUT.read_text(encoding="utf-8") != wanted:
        sys.exit(f"{OUT} is not what the docstrings say: run scripts/python_api.py")


if __name__ == "__main__":
    main()
