#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks of the tests whether they would notice a wrong formula.

Changes one operator or constant of the folders above src/io or of src/linalg at a time (+ and -, * and /, < and <=,
== and !=, && and ||, 0.5 and 0.25, a sign, one off), builds that in a copy of the tree under
build-mutate and runs the tests until one fails: the mutant is killed. One that survives them all
shows a missing test, or changes nothing that can be seen; then it belongs into
scripts/mutants.txt with the reason.

    scripts/mutate.py                     the whole list, on two copies at once
    scripts/mutate.py --list              what would be tried
    scripts/mutate.py --only src/loss  files that begin so
    scripts/mutate.py --more 3            three times as many of each file
    scripts/mutate.py --part 2/8          the second eighth of the list

Which mutants are tried depends on the seed and on the text of the file alone.
"""
import argparse
import collections
import os
import pathlib
import queue
import random
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build-mutate"
KNOWN = ROOT / "scripts" / "mutants.txt"

SWAPS = [
    (r"(?<=[\w)\]]) \+ (?=[\w(*&])", " - "),
    (r"(?<=[\w)\]]) - (?=[\w(*&])", " + "),
    (r"(?<=[\w)\]]) \* (?=[\w(])", " / "),
    (r"(?<=[\w)\]]) / (?=[\w(])", " * "),
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r" \+= ", " -= "),
    (r" -= ", " += "),
    (r"\b0\.5f?\b", "0.25"),
    (r"(?<=return )-", ""),
    (r"(?<=[(,=] )-(?=[\w(])", ""),
    (r"(?<= [+-]) 1\b(?!\.)", " 2"),
    (r"\btrue\b", "false"),
]

# Lines whose change cannot be seen in a result: sizes of buffers, texts, declarations, what is only
# said, shortcuts for speed.
SKIP = re.compile(
    r"^\s*(#|\*|/\*|//|enum|typedef|extern|_Static_assert)|UNICON_NEW|UNICON_ARENA_NEW|unicon__log|"
    r"unicon__fail|unicon__progress|snprintf|unicon__set_error|deadline|UNICON_LOG"
)

FORMULAS = (  # these carry the mathematics: three times as many
    "loss", "kernel", "whiten", "moments", "stats", "closed_form", "gradient", "spectral", "solve",
    "state", "vec_body", "refine", "adam", "retrieval", "balance", "feature", "logistic", "regress",
    "isotonic", "forget", "fewer", "sample",
)

# The tests that know a file best, tried first; then the quick ones.
TESTS = {
    "adam": "test_adam test_refine", "aggregate": "test_solve test_fit", "axes": "test_auto test_auto_limits",
    "balance": "test_bias test_balance", "banks": "test_balance",
    "chance": "test_chance", "landmarks": "test_kept_remove test_kept",
    "batch": "test_solve test_fit test_map_fused", "blas": "test_metric test_spectral test_limits",
    "build_info": "test_base", "check": "test_check", "classify": "test_classify",
    "closed_form": "test_corners test_fit test_metric", "convert": "test_convert test_npy",
    "dataset": "test_dataset test_fit", "dense_device": "test_device_roads",
    "describe": "test_fit test_model", "embed": "test_search test_map_fused",
    "entries": "test_device_roads", "embed_memory": "test_memory",
    "evaluate": "test_metrics test_balance",
    "feature": "test_feature test_map", "feed": "test_device_roads test_memory", "fewer": "test_kept",
    "fit": "test_fit test_fit_limits test_auto test_map_fused", "forget": "test_kept",
    "gradient": "test_refine", "idle": "test_fit_limits", "isotonic": "test_migrate",
    "kept": "test_kept test_kept_labels", "kept_file": "test_kept test_kept_labels", "kernel": "test_kernel test_map",
    "ledger": "test_kept", "likeness": "test_migrate", "logistic": "test_probe",
    "loss": "test_loss", "loss_exp": "test_loss_identities test_loss",
    "loss_pairwise": "test_loss_edges test_loss_identities test_loss",
    "loss_pointwise": "test_loss_identities test_loss",
    "mapfit": "test_map test_map_random test_map_near test_map_far", "maps": "test_kept",
    "migrate": "test_migrate", "migrate_contest": "test_migrate", "migrate_data": "test_migrate",
    "migrate_grow": "test_migrate", "migrate_held": "test_migrate",
    "migrate_model": "test_migrate", "migrate_text": "test_migrate", "model": "test_model",
    "model_file": "test_model test_golden test_map_model",
    "moments": "test_stats test_loss_features", "neighbours": "test_migrate",
    "params": "test_fit test_auto", "part": "test_fit test_map_model",
    "pass": "test_loss_features test_loss", "pass_device": "test_device_roads",
    "pivot": "test_map_pivot", "plan": "test_plan", "plugin": "test_plugin",
    "prepared": "test_stats test_fit", "probe": "test_probe", "project": "test_search test_golden",
    "ranks_device": "test_device_roads", "rate": "test_plan", "refine": "test_refine",
    "reflect": "test_reflect", "regress": "test_regress test_migrate", "retrieval": "test_metrics",
    "rewrite": "test_rewrite", "rewritten": "test_rewrite", "sample": "test_kept", "search": "test_search",
    "select": "test_auto test_auto_limits", "selection": "test_auto test_auto_limits", "shuffle": "test_shuffle test_check",
    "single": "test_single", "solve": "test_solve", "spaces": "test_rewrite",
    "spectral": "test_spectral test_spectral_hard", "split": "test_split",
    "state": "test_state test_solve test_refine", "stats": "test_stats",
    "stats_device": "test_device_roads", "stats_rows": "test_stats",
    "store": "test_map_model test_golden", "stored": "test_kept", "suspect": "test_check",
    "svd": "test_reflect", "synth": "test_synth", "tiled": "test_tiled", "trial": "test_auto",
    "use": "test_device test_device_roads", "validation": "test_auto test_refine",
    "vec": "test_vec", "vec_body": "test_vec test_vec_nan", "weights": "test_weights",
    "whiten": "test_metric",
    "classes": "test_kept_labels", "cost": "test_plan", "draw": "test_device_roads",
    "judge": "test_auto test_refine",
    "refine_device": "test_device_roads", "stats_chunk": "test_stats", "usable": "test_usable test_feature",
}
REST = (
    "test_fit test_solve test_loss_identities test_metrics test_spectral test_refine test_auto "
    "test_map test_map_model test_model test_golden test_fit_limits test_loss_edges test_check "
    "test_search test_dataset test_faults"
).split()

Mutant = collections.namedtuple("Mutant", "file line before after")


def code_only(line):
    """The line with texts and comments blanked out, column by column."""
    line = re.sub(r'"(\\.|[^"\\])*"', lambda m: "~" * len(m.group()), line)
    return re.sub(r"/\*.*?(\*/|$)|//.*", lambda m: "~" * len(m.group()), line)


def candidates(path):
    found, comment, message = [], False, False
    name = path.relative_to(ROOT).as_posix()
    for number, line in enumerate(path.read_text().splitlines()):
        inside, code = comment or message, code_only(line)
        if "/*" in line:
            comment = "*/" not in line.split("/*")[-1]
        elif "*/" in line:
            comment = False
        if SKIP.search(line) and not comment:
            message = not line.rstrip().endswith((";", "{", "\\", "}"))
            continue
        message = message and not line.rstrip().endswith((";", "{"))
        if inside:
            continue
        for pattern, new in SWAPS:
            for m in re.finditer(pattern, code):
                after = line[: m.start()] + new + line[m.end():]
                found.append(Mutant(name, number, line, after))
    return found


def choose(seed, more, only):
    chosen = []
    files = sorted([*(f for f in ROOT.glob("src/*/*.c") if f.parent.name not in ("base", "io")),
                    ROOT / "src/linalg/vec_body.h"])
    gone = set(TESTS) - {f.stem for f in files}
    if gone:
        sys.exit(f"mutate.py: TESTS names files that are gone: {', '.join(sorted(gone))}")
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(only) or path.stem in ("vec_plain", "vec_avx2", "vec_avx512"):
            continue
        if path.stem not in TESTS:
            sys.exit(f"mutate.py: TESTS names no test of {name}")
        found = candidates(path)
        count = (3 if path.stem.startswith(FORMULAS) else 1) * more
        chosen += random.Random(f"{seed} {name}").sample(found, min(count, len(found)))
    return chosen


def run(command, log, timeout, folder):
    """The exit status, or None for a timeout."""
    with subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT,
                          env={**os.environ, "UNICON_SOURCE_DIR": str(folder), "TMPDIR": str(WORK)},
                          start_new_session=True) as process:
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return None


class Copy:
    """A copy of the tree with its build."""

    def __init__(self, number):
        self.folder = WORK / f"copy-{number}"
        self.log = open(WORK / f"copy-{number}.log", "w")
        shutil.rmtree(self.folder, ignore_errors=True)
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "include", "src",
                                "programs", "tests", "cmake", "CMakeLists.txt", "scripts", "docs",
                                "README.md", "LICENSE"],
                               cwd=ROOT, check=True, capture_output=True, text=True)
        for name in names.stdout.splitlines():
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)
        self.make(["cmake", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug",
                   "-DCMAKE_C_FLAGS_DEBUG=-O1", "-DUNICON_PROGRAMS=OFF"])

    def make(self, command):
        if run(command, self.log, 3000, self.folder) != 0:
            sys.exit(f"mutate.py: {' '.join(command)} failed, see {self.log.name}")

    def build(self, targets):
        return run(["cmake", "--build", "build", "--target", *targets], self.log, 600,
                   self.folder) == 0

    def test(self, name, limit):
        bounded = f"ulimit -v 8388608 && exec build/tests/{name}"  # a mutant may ask for anything
        return run(["bash", "-c", bounded], self.log, limit, self.folder) == 0

    def judge(self, mutant, limits):
        """The test that killed it, or None."""
        path = self.folder / mutant.file
        text = path.read_text()
        lines = text.split("\n")
        lines[mutant.line] = mutant.after
        path.write_text("\n".join(lines))
        try:
            best = TESTS.get(path.stem, "").split()
            order = best + [t for t in REST if t not in best]
            for part in [[t] for t in best] + [order[len(best):]]:
                if part and not self.build(part):
                    return "the compiler"
                for name in part:
                    if not self.test(name, limits[name]):
                        return name
            return None
        finally:
            path.write_text(text)


def known():
    """(file, changed line) -> reason."""
    table = {}
    for line in KNOWN.read_text().splitlines() if KNOWN.exists() else []:
        if line.strip() and not line.startswith("#"):
            file, after, reason = (part.strip() for part in line.split(" :: "))
            table[file, after] = reason
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--more", type=int, default=1)
    parser.add_argument("--only", default="src/")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    mutants = choose(options.seed, options.more, options.only)[part - 1::parts]
    if options.list:
        for m in mutants:
            print(f"{m.file}:{m.line + 1}\n- {m.before.strip()}\n+ {m.after.strip()}")
        print(f"{len(mutants)} mutants")
        return 0

    os.nice(10)
    WORK.mkdir(exist_ok=True)
    start, reasons = time.time(), known()
    copies = [Copy(k) for k in range(options.jobs)]
    used = sorted({t for m in mutants for t in TESTS.get(pathlib.Path(m.file).stem, "").split()}
                  | set(REST))
    limits = {}
    for copy in copies:  # the tests pass without a mutant; how long they take bounds the rest
        if not copy.build(used):
            sys.exit(f"mutate.py: the tests do not build, see {copy.log.name}")
    for name in used:
        began = time.time()
        if not copies[0].test(name, 600):
            sys.exit(f"mutate.py: {name} fails without a mutant, see {copies[0].log.name}")
        limits[name] = 20 + 8 * (time.time() - began)

    todo, lock, survivors, killed = queue.SimpleQueue(), threading.Lock(), [], 0
    for m in mutants:
        todo.put(m)

    def work(copy):
        nonlocal killed
        while True:
            try:
                m = todo.get_nowait()
            except queue.Empty:
                return
            killer = copy.judge(m, limits)
            with lock:
                reason = reasons.get((m.file, m.after.strip()))
                if killer:
                    killed += 1
                else:
                    survivors.append((m, reason))
                verdict = f"killed by {killer}" if killer else "SURVIVED" if not reason else "known"
                print(f"{m.file}:{m.line + 1}: {verdict}\n  - {m.before.strip()}\n"
                      f"  + {m.after.strip()}", flush=True)

    threads = [threading.Thread(target=work, args=(copy,)) for copy in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    new = [m for m, reason in survivors if not reason]
    print(f"{len(mutants)} mutants: {killed} killed, {len(survivors) - len(new)} known to change "
          f"nothing, {len(new)} survived; {time.time() - start:.0f} s")
    for m in new:
        print(f"survived: {m.file}:{m.line + 1} :: {m.after.strip()}")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
