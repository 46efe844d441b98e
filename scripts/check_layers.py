#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of the house that a compiler does not: who includes whom (src/LAYERS), which
functions of the C library are not called, how sentences name options, how long functions and
files may be."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
PUBLIC = ("unicon/unicon.h", "unicon/migrate.h", "unicon/stats.h", "unicon/tools.h")

MEMORY_FILES = {"base/work.c", "base/ctx.c", "base/parallel.c"}
# (names, files of src that may use them, reason)
BANNED = [
    ("malloc calloc realloc reallocarray aligned_alloc posix_memalign strdup strndup free",
     MEMORY_FILES, "memory comes from the workspace, which keeps the limit max_mem"),
    ("printf fprintf vprintf vfprintf puts fputs putchar fputc perror",
     set(), "the library never prints; it fails with a sentence or calls the log callback"),
    ("abort exit _exit _Exit quick_exit",
     set(), "the library never ends the process; it returns a status"),
    ("rand srand random srandom drand48",
     set(), "random numbers come from base/rng, so a seed gives the same draws everywhere"),
    ("getenv setenv putenv setlocale",
     set(), "the library does not depend on process-wide state"),
    ("dlopen dlsym dlclose dladdr",
     {"device/plugin.c"}, "libraries are loaded at run time in one place"),
    ("strtok sprintf vsprintf gets strcpy strcat",
     set(), "not safe; use snprintf or lengths"),
]
# (regular expression of a header, files of src that may include it, reason)
HEADERS = [
    (r"cblas.*|lapacke.*|openblas.*", {"linalg/blas.c"},
     "one file sees BLAS and LAPACK and guards its integer widths and threads"),
    (r"pthread\.h|threads\.h", {"base/parallel.c", "base/sweep.c", "linalg/blas.c"},
     "threads are made in one place, locks only in the sweep and around BLAS"),
    (r"dlfcn\.h", {"device/plugin.c"}, "libraries are loaded at run time in one place"),
    (r"(cuda|cublas|cusolver|nccl).*|mpi\.h", set(),
     "devices and processes are whole files of their own"),
]
# Plugins of devices: built apart, so they may call what they like; of src they see one header.
PLUGINS = SRC / "device" / "cuda"
PLUGIN_HEADER = "device/device.h"
# The one place that speaks MPI; the commands beside it are those of the other program.
MPI_FOLDER = ROOT / "programs" / "mpi"
MPI_FILE = MPI_FOLDER / "communicator.c"
FUNCTION_NOTE, FUNCTION_LIMIT = 50, 70
FILE_NOTE, FILE_LIMIT = 400, 700

errors, notes = [], []


def where(path, line=None):
    name = str(path.relative_to(ROOT))
    return f"{name}:{line}" if line else name


def bare(text):
    """The code without comments, strings and preprocessor lines; line numbers stay."""
    def blank(match):
        return "\n" * match.group().count("\n") or " "

    text = re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text,
                  flags=re.S)
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", blank, text, flags=re.M)


def with_macros(text):
    """As bare(), but macro bodies stay: banned calls may hide there."""
    return bare(re.sub(r"^[ \t]*#[ \t]*define", "      ", text, flags=re.M))


def includes(text):
    """(line, header, quoted) of each #include."""
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(2), match.group(1) == '"'


def read_layers():
    """{(layer, module): (place of the layer, place of the module)}"""
    order = {}
    lines = (SRC / "LAYERS").read_text().split("\n")
    rows = [line.split("#")[0].strip() for line in lines]
    for place, row in enumerate(filter(None, rows)):
        layer, _, modules = row.partition(":")
        for index, group in enumerate(modules.split()):
            for module in group.split("+"):
                if (layer, module) in order:
                    errors.append(f"src/LAYERS: {layer}/{module} is listed twice")
                order[layer, module] = place, index
    return order


def key_of(path):
    """(layer, module) of a file in src."""
    return path.parent.relative_to(SRC).as_posix(), path.name.split(".")[0]


def check_include_order(path, number, header, order):
    """A quoted include inside src."""
    if header in PUBLIC:
        return
    target = SRC / header if (SRC / header).exists() else path.parent / header
    if not target.exists() or SRC not in target.resolve().parents:
        errors.append(f"{where(path, number)}: \"{header}\" is not in src/; name headers from src/, "
                      "as in \"base/ctx.h\"")
        return
    own, other = key_of(path), key_of(target)
    if own == other or own not in order or other not in order:
        return
    if order[other] > order[own]:
        errors.append(f"{where(path, number)}: {'/'.join(own)} includes {'/'.join(other)}, which "
                      "comes later in src/LAYERS; a reader meets each part before its use")


def check_plugins():
    for path in sorted(p for p in PLUGINS.rglob("*") if p.suffix in (".c", ".h", ".cu", ".cuh")):
        for number, header, quoted in includes(path.read_text()):
            own = quoted and (path.parent / header).exists()
            if not own and (SRC / header).exists() and header != PLUGIN_HEADER:
                errors.append(f"{where(path, number)}: includes {header}: a plugin sees "
                              f"{PLUGIN_HEADER} alone")


def check_src(order):
    files = sorted(p for p in SRC.rglob("*") if p.suffix in (".c", ".h", ".inc", ".def")
                   and PLUGINS not in p.parents)
    for path in files:
        name = path.relative_to(SRC).as_posix()
        if key_of(path) not in order:
            errors.append(f"{where(path)}: not in src/LAYERS; add its module in reading order")
        text = path.read_text()
        for number, header, quoted in includes(text):
            if quoted:
                check_include_order(path, number, header, order)
            for pattern, allowed, reason in HEADERS:
                if re.fullmatch(pattern, header) and name not in allowed:
                    errors.append(f"{where(path, number)}: includes {header}: {reason}")
        code = with_macros(text)
        for names, allowed, reason in BANNED:
            if name in allowed:
                continue
            for match in re.finditer(rf"(?<![\w.>])({'|'.join(names.split())})\s*\(", code):
                number = code.count("\n", 0, match.start()) + 1
                errors.append(f"{where(path, number)}: calls {match.group(1)}: {reason}")
    known = {key_of(path) for path in files}
    return len(files), [f"{layer}/{module}" for layer, module in order if (layer, module) not in known]


def check_sentences():
    """What the library says names options as they are in its table, not as flags of the command."""
    for path in sorted(p for p in SRC.rglob("*") if p.suffix in (".c", ".h")):
        text = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m.group().count("\n"),
                      path.read_text(), flags=re.S)
        for match in re.finditer(r'"(?:\\.|[^"\\\n])*"', text):
            if re.search(r"(?<!\w)--[a-z]|max-mem", match.group()):
                number = text.count("\n", 0, match.start()) + 1
                errors.append(f"{where(path, number)}: {match.group()} names a flag of the command; "
                              "users of C and Python know the option by its snake_case name")


def check_users():
    """Programs, examples and bindings see the library as a user does."""
    for folder in ("programs", "examples", "python"):
        for path in sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in (".c", ".h")):
            for number, header, quoted in includes(path.read_text()):
                own = quoted and (path.parent / header).resolve().exists() and ".." not in header
                own = own or path.parent == MPI_FOLDER and (ROOT / "programs" / header).exists()
                inside = (SRC / header).exists()
                if header in PUBLIC or own or not (quoted or inside):
                    continue
                errors.append(f"{where(path, number)}: includes {header}: {folder} uses only "
                              "the public headers and those of its own folder")
    for header in (ROOT / "include" / name for name in PUBLIC):
        for number, name, _ in includes(header.read_text()):
            if name not in ("stddef.h", "stdint.h", PUBLIC[0]):
                errors.append(f"{where(header, number)}: includes {name}: the public headers need "
                              "only stddef.h and stdint.h")


def check_mpi():
    """MPI is seen by one file; everything else knows processes as callbacks."""
    for folder in ("include", "src", "programs", "examples", "python", "bench", "tests"):
        for path in sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in (".c", ".h", ".cu")):
            for number, header, _ in includes(path.read_text()):
                if header == "mpi.h" and path != MPI_FILE:
                    errors.append(f"{where(path, number)}: includes mpi.h: only {where(MPI_FILE)} does")


def functions(text):
    """(name, first line, lines) of each function body: a brace at the top level after a ')'."""
    code = re.sub(r'extern\s+\{', "", bare(text))
    depth = start = line = 0
    name, head = "", ""
    for char in code:
        if char == "{":
            if depth == 0 and re.search(r"\)\s*$", head):
                match = re.search(r"(\w+)\s*\(", head)
                name, start = match.group(1) if match else "?", line
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0 and name:
                yield name, start + 1, line - start + 1
                name = ""
            head = "" if depth == 0 else head
        elif depth == 0:
            head = "" if char == ";" else head + char
        line += char == "\n"


def check_lengths():
    """Long functions and files: errors in the product, notes in tests and benchmarks."""
    for folder in ("include", "src", "programs", "examples", "python", "bench", "tests"):
        hard = folder not in ("bench", "tests")
        for path in sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in (".c", ".h")):
            text = path.read_text()
            lines = text.count("\n")
            sizes = [(where(path), "file", lines, FILE_NOTE, FILE_LIMIT)]
            sizes += [(where(path, first), name, length, FUNCTION_NOTE, FUNCTION_LIMIT)
                      for name, first, length in functions(text)]
            for place, name, length, note, limit in sizes:
                if length > limit and hard:
                    errors.append(f"{place}: {name} has {length} lines, at most {limit}: what does "
                                  "not fit on a screen or two is not one thought")
                elif length > note:
                    notes.append(f"{place}: {name} has {length} lines, better under {note}")


def main():
    order = read_layers()
    count, unused = check_src(order)
    check_plugins()
    check_sentences()
    check_users()
    check_mpi()
    check_lengths()
    for text in notes:
        print(f"note: {text}")
    if unused:
        print(f"note: src/LAYERS lists modules without a file: {' '.join(unused)}")
    for text in errors:
        print(f"error: {text}")
    print(f"layers: {count} files in src, {len(errors)} errors, {len(notes)} notes")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
