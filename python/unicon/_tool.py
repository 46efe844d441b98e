# SPDX-License-Identifier: Apache-2.0
"""What only the command can do, through the command: comparisons and report pages."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from ._call import Progress, listener_of
from ._files import parquet_parts
from ._options import as_text
from ._pairs import Pairs, as_list, is_labels, with_labels
from ._rows import Matrix, is_path, read_rows, writable
from .errors import (ArgumentError, CancelledError, FileError, PairsError, UniconError,
                     UniconWarning, refuse_nul)

if TYPE_CHECKING:
    from .model import Model

PathLike = Union[str, "os.PathLike[str]"]
_logger = logging.getLogger("unicon")
_bar = re.compile(r"^(.*) \[[#-]+\] +(\d+) % ?(?:about (.*) left)?$")
_unit = {"s": 1, "min": 60, "h": 3600}


def command() -> str:
    """The command `unicon` that belongs to this package, or the one that the environment variable
    UNICON names."""
    own = Path(__file__).with_name("bin") / "unicon"
    path = os.environ.get("UNICON") or os.fspath(own)
    found = shutil.which(path)
    if not found:
        raise FileError(f"the command is not there: {path}. It comes with the wheel; elsewhere set "
                        "UNICON to a built one")
    return os.path.abspath(found)


class _Inputs:
    """Files for one run of the command in a folder of its own: arrays are written, files that
    exist are linked, so that messages and pages show their names alone."""

    def __init__(self, folder: str):
        self.folder = Path(folder)

    def rows(self, name: str, data: Matrix) -> str:
        if is_path(data) and parquet_parts(data) is None:
            return self._linked(name, data)
        file = f"{name}.npy"
        np.save(self.folder / file, read_rows(data) if is_path(data) else writable(name, data))
        return file

    def _linked(self, name: str, path: Any) -> str:
        whole = os.fsdecode(path)
        refuse_nul(whole)
        file, colon, part = whole.rpartition(":")
        if os.path.exists(whole) or not colon:  # else FILE.npz:ARRAY and the like
            file, part = whole, ""
        target = Path(os.path.abspath(file))
        link = self.folder / target.name
        if link.exists() or link.is_symlink():
            link = self.folder / f"{name}-{target.name}"
        link.symlink_to(target)
        return link.name + colon + part if part else link.name

    def lines(self, name: str, values: Any) -> str:
        """One label or text for each row."""
        if is_path(values):
            return self._linked(name, values)
        texts = [str(value) for value in np.asarray(values).reshape(-1).tolist()]
        for text in texts:
            if "\n" in text or not text:
                raise ArgumentError(f"{name} has the entry {text!r}; accepted: one line of text")
        (self.folder / f"{name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
        return f"{name}.txt"

    def texts(self, name: str, values: Any) -> str:
        """A text for each row, each on a line of its own; None and "" are none."""
        if is_path(values):
            return self._linked(name, values)
        lines = ["" if value is None else " ".join(str(value).splitlines()) for value in values]
        (self.folder / f"{name}.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return f"{name}.txt"

    def media(self, name: str, values: Any) -> str:
        """The paths of files, from the current folder; those in a file, from the folder of that."""
        if is_path(values):
            whole = os.fsdecode(values)
            refuse_nul(whole)
            home = os.path.dirname(os.path.abspath(whole))
            try:
                values = Path(whole).read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                raise FileError(f"{name}: cannot read {whole}: {error}") from None
        else:
            home = os.getcwd()
        return self.texts(name, [os.path.join(home, os.fsdecode(value)) if value else ""
                                 for value in values])

    def listed(self, name: str, pairs: Any) -> str:
        """A list of pairs, perhaps with weights."""
        if is_path(pairs):
            return self._linked(name, pairs)
        entries = as_list(pairs)
        columns = [entries.x, entries.y]
        lines = (f"{i}\t{j}\n" for i, j in zip(*columns)) if entries.weight is None else (
            f"{i}\t{j}\t{w!r}\n" for i, j, w in zip(*columns, entries.weight.tolist()))
        with open(self.folder / f"{name}.tsv", "w", encoding="ascii") as file:
            file.writelines(lines)
        return f"{name}.tsv"

    def pairs(self, prefix: str, pairs: Pairs) -> list[str]:
        """The flags that say which rows belong together, such as --val-pairs for "val-"."""
        if pairs is None:
            return []
        if is_labels(pairs):
            if len(pairs) != 3:
                raise PairsError("labels of one set of rows are not for this; give those of X and "
                                 "of Y")
            flags = []
            for side, values in zip("xy", pairs[1:]):
                name = f"{prefix}{side}-labels"
                flags += [f"--{name}", self.lines(name, values)]
            return flags
        word = pairs[0] if isinstance(pairs, tuple) and pairs and isinstance(pairs[0], str) else None
        if isinstance(pairs, (int, np.integer)) or word in ("y_per_x", "x_per_y"):
            if prefix:  # --y-per-x holds for all rows of a command
                return []
            per, k = (word or "y_per_x", pairs) if not isinstance(pairs, tuple) else pairs
            return ["--" + str(per).replace("_", "-"), str(int(k))]
        return [f"--{prefix}pairs", self.listed(f"{prefix}pairs", pairs)]


def _flags(inputs: _Inputs, options: Mapping[str, Any]) -> list[str]:
    """Options of the command by name. Values may be a model, a file that exists, or a list of
    texts, which becomes a file of lines."""
    flags = []
    for name, value in options.items():
        if value is None:
            continue
        flag = name.replace("_", "-")
        if hasattr(value, "save") and hasattr(value, "to_bytes"):
            value.save(inputs.folder / f"{flag}.safetensors")
            text = f"{flag}.safetensors"
        elif isinstance(value, os.PathLike) or (isinstance(value, str) and os.path.exists(value)):
            text = inputs._linked(flag, value)
        elif isinstance(value, (list, tuple, np.ndarray)):
            text = inputs.lines(flag, value)
        else:
            text = as_text(value)
            refuse_nul(text, name)
        flags += [f"--{flag}", text]
    return flags


# ---- one run ----------------------------------------------------------------------------------


def _chunks(stream: Any) -> Iterator[str]:
    """What the command writes, line by line; a progress bar is drawn over itself by \\r."""
    left = ""
    while data := os.read(stream.fileno(), 4096):
        *whole, left = re.split(r"[\r\n]", left + data.decode("utf-8", "replace"))
        yield from whole
        if left.endswith(" left"):  # a whole bar, whose \r comes only with the next
            yield left
            left = ""
    yield left


def _seconds(text: Optional[str]) -> Optional[float]:
    if not text:
        return None
    words = text.split()
    return sum(float(number) * _unit[unit] for number, unit in zip(words[::2], words[1::2]))


class _Listener:
    """Reads what the command says beside its result."""

    def __init__(self, name: str, progress: Progress):
        self._start = f"unicon {name}: "
        self._hear = listener_of(progress)
        self.warnings: list[str] = []
        self.last = ""

    def __call__(self, line: str) -> bool:
        """True: stop."""
        line = line.replace("\033[K", "").strip()
        bar = _bar.match(line)
        if bar:
            label, share, left = bar.groups()
            return self._hear is not None and bool(
                self._hear(label, int(share) / 100, _seconds(left)))
        if line.startswith(self._start):
            sentence = line[len(self._start):]
            if sentence.startswith("warning: "):
                self.warnings.append(sentence[len("warning: "):])
            else:
                self.last = sentence
                _logger.info("%s", sentence)
        return False

    def close(self) -> None:
        close = getattr(self._hear, "close", None)
        if close:
            close()


def _run(name: str, arguments: Sequence[str], folder: str, progress: Progress) -> dict[str, Any]:
    words = [command(), name, *arguments, "--json", "--progress"]
    listener = _Listener(name, progress)
    with tempfile.TemporaryFile() as out:
        with subprocess.Popen(words, cwd=folder, stdout=out, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, env=_environment()) as process:
            cancelled = False
            try:
                for line in _chunks(process.stderr):
                    if listener(line) and not cancelled:
                        cancelled = True
                        process.terminate()
            except BaseException:  # Ctrl-C, or what the callback raised
                process.terminate()
                raise
            finally:
                process.wait()
                listener.close()
        out.seek(0)
        text = out.read()
    for sentence in listener.warnings:
        warnings.warn(sentence, UniconWarning, stacklevel=4)
    if cancelled:
        raise CancelledError("cancelled by the progress callback")
    if process.returncode == 130:
        raise KeyboardInterrupt
    if process.returncode:
        kind = ArgumentError if process.returncode == 2 else UniconError
        raise kind(listener.last or f"unicon {name} ended with status {process.returncode}")
    found: dict[str, Any] = json.loads(text)
    return found


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C.UTF-8"}


# ---- what it is for ---------------------------------------------------------------------------


def compare(X: Matrix, Y: Matrix, pairs: Pairs = None, *, labels: Any = None, ignore: Any = None,
            groups: Any = None, validation: Any = None, test: Any = None,
            only: Union[str, Sequence[str], None] = None, progress: Progress = None,
            **options: Any) -> dict[str, Any]:
    """Our presets and the usual methods (SGD-CLIP, CCA, PLS, Procrustes, ridge, none) on the same
    rows, as `unicon compare --json` prints it: {"train", "validation", "test", "rows"}.

    Each of the rows has name, fit_seconds and, by "plain" and by "balanced" scores, x_to_y, y_to_x,
    held_out_score and what was chosen. `validation` and `test` are (X, Y) or (X, Y, pairs); without
    them parts of X and Y are held out. `only` names the methods. A number for pairs, such as 5,
    holds for those rows too. Options: seed, rank, budget, bad_rows, threads, max_mem.
    """
    with tempfile.TemporaryDirectory(prefix="unicon-") as folder:
        inputs = _Inputs(folder)
        words = [inputs.rows("X", X), inputs.rows("Y", Y),
                 *inputs.pairs("", with_labels(pairs, labels))]
        for prefix, given in (("val-", validation), ("test-", test)):
            if given is not None:
                words += _more_rows(inputs, prefix, given, pairs)
        if ignore is not None:
            words += ["--ignore", inputs.listed("ignore", ignore)]
        if groups is not None:
            words += ["--groups", inputs.lines("groups", groups)]
        names = only if only is None or isinstance(only, str) else ",".join(only)
        return _run("compare", [*words, *_flags(inputs, {"only": names, **options})], folder,
                    progress)


def _more_rows(inputs: _Inputs, prefix: str, given: Any, pairs: Pairs) -> list[str]:
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        name = {"val-": "validation", "test-": "test"}[prefix]
        raise ArgumentError(f"{name} must be (X, Y) or (X, Y, pairs)")
    words = []
    for side, rows in zip("xy", given):
        words += [f"--{prefix}{side}", inputs.rows(prefix + side, rows)]
    own = given[2] if len(given) == 3 else None
    if isinstance(own, (int, np.integer)) and own != pairs:
        raise PairsError(f"{own} rows of Y for each row of X must hold for all rows of a comparison; "
                         "give pairs as index arrays instead")
    return words + inputs.pairs(prefix, own)


def report(model: Union[Model, PathLike], path: Optional[PathLike], X: Matrix, Y: Matrix,
           pairs: Pairs = None, *, labels: Any = None, ignore: Any = None, x_ids: Any = None,
           y_ids: Any = None, x_text: Any = None, y_text: Any = None, x_media: Any = None,
           y_media: Any = None, colors: Any = None, beside: Union[Model, PathLike, None] = None,
           classes: Matrix = None, class_names: Any = None, progress: Progress = None,
           **options: Any) -> dict[str, Any]:
    """Writes one HTML page that shows a model on these rows (path None: none), and returns what it
    is made from, as `unicon report --json` prints it.

    Lists with an entry per row, or files with a line per row: `x_ids` and `y_ids`, what the page
    calls the rows; `x_text` and `y_text`, their texts; `x_media` and `y_media`, the paths of their
    images or sounds; `colors`, the labels of the rows of X (--labels of the command). `beside` is a
    second model, `classes` are vectors of the y side for zero-shot classification, with
    `class_names`. Options: layout ("tsne", "pca"), perplexity, seed, threads, max_mem.
    """
    with tempfile.TemporaryDirectory(prefix="unicon-") as folder:
        inputs = _Inputs(folder)
        if is_path(model):
            name = inputs._linked("model", model)
        else:
            name = "model.safetensors"
            model.save(Path(folder) / name)  # type: ignore[union-attr]
        words = [name, inputs.rows("X", X), inputs.rows("Y", Y),
                 *inputs.pairs("", with_labels(pairs, labels))]
        if ignore is not None:
            words += ["--ignore", inputs.listed("ignore", ignore)]
        for flag, values in (("x-ids", x_ids), ("y-ids", y_ids), ("labels", colors),
                             ("class-names", class_names)):
            if values is not None:
                words += [f"--{flag}", inputs.lines(flag, values)]
        for flag, values, kind in (("x-text", x_text, inputs.texts), ("y-text", y_text, inputs.texts),
                                   ("x-media", x_media, inputs.media),
                                   ("y-media", y_media, inputs.media)):
            if values is not None:
                words += [f"--{flag}", kind(flag, values)]
        if classes is not None:
            words += ["--classes", inputs.rows("classes", classes)]
        if path is not None:
            words += ["-o", os.path.abspath(os.fsdecode(path))]
        return _run("report", [*words, *_flags(inputs, {"beside": beside, **options})], folder, progress)
