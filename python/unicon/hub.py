# SPDX-License-Identifier: Apache-2.0
"""Models on the Hugging Face Hub: a folder of the model file and a card that is made from it.
Needs huggingface_hub for anything that is not a folder here."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from ._options import TABLE, presets
from .errors import ArgumentError, FileError, UnsupportedError
from .model import Model

PathLike = Union[str, "os.PathLike[str]"]
FILE = "model.safetensors"
_WAYS = (("x_to_y", "x to y"), ("y_to_x", "y to x"))
_FIGURES = ("hit@1", "hit@5", "hit@10", "mrr", "median_rank")


def model_card(model: Model, *, name: str = "unicon model", license: Optional[str] = None,
               x: str = "x", y: str = "y", data: Optional[str] = None,
               evaluation: Optional[Mapping[str, Any]] = None) -> str:
    """The card of a model, as Markdown with the header that the Hub reads.

    `x` and `y` say what the rows of each side are ("CLIP ViT-B/32 image vectors"), `data` what it
    was fitted on. `evaluation` is what evaluate gave for rows that the fit has not seen; with
    ci=True its intervals are shown. Sizes, options and what was chosen come from the model.
    """
    for what, text in (("name", name), ("license", license or "other")):
        if not text.strip() or "\n" in text:
            raise ArgumentError(f"{what} is {text!r}; accepted: one line of text")
    noted = model.metadata
    parts = [_header(license), f"# {name}",
             f"Maps {x} ({model.width_x} numbers a row) and {y} ({model.width_y}) into one space of "
             f"{model.rank} dimensions, in which rows that belong together have a large cosine. "
             f"Fitted by unicon {noted['library_version']} (Python package `unicon-align`) "
             "on vectors of frozen encoders, which are not part of it: the rows must come from the "
             "same encoders.", _usage(), "## Data", _data(noted, data), "## Held-out figures",
             _figures(evaluation) if evaluation else _own_score(noted), "## How it was fitted",
             _options(noted), "## What the file holds", _holdings(model)]
    return "\n\n".join(parts) + "\n"


def _header(license: Optional[str]) -> str:
    lines = ["---", "library_name: unicon", "pipeline_tag: feature-extraction"]
    if license:
        if not re.fullmatch(r"[A-Za-z0-9.+-]+", license):
            raise ArgumentError(f"license is {license!r}; accepted: an identifier such as "
                                "apache-2.0, cc-by-4.0 or other")
        lines.append(f"license: {license.lower()}")
    return "\n".join([*lines, "tags:", "- unicon", "- embeddings", "- retrieval",
                      "- contrastive-alignment", "---"])


def _usage() -> str:
    return ("```python\nimport unicon\n\n"
            f"model = unicon.Model.from_pretrained(\"REPOSITORY\")  # or Model.load(\"{FILE}\")\n"
            "model.embed(rows, \"x\")                          # unit vectors, float32\n"
            "ids, scores = model.search(queries, candidates)  # rows of x ask, rows of y answer\n"
            "```")


def _holdings(model: Model) -> str:
    """What a reader of the file can learn about the rows that it was fitted on."""
    from ._parts import read_tensors

    held = {name: tensor.shape for name, tensor in read_tensors(model.to_bytes()).items()}
    banks = [f"{shape[0]} of {name[0]}" for name, shape in held.items() if name.endswith(".bank")]
    landmarks = [f"{shape[0]} of {name[0]}" for name, shape in held.items()
                 if name.endswith(".landmarks")]
    lines = ["Weights, means and singular values, which are sums over all rows."]
    if banks:
        lines.append(f"Embedded training rows ({' and '.join(banks)}), from which scores are balanced.")
    if landmarks:
        lines.append(f"Landmarks of the kernel ({' and '.join(landmarks)}): training rows as they "
                     "were, scaled to length 1.")
    return " ".join(lines)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
                     for line in lines)


def _data(noted: Mapping[str, str], data: Optional[str]) -> str:
    table = _table(["rows of x", "rows of y", "pairs", "hash of the rows"],
                   [[noted.get(key, "") for key in ("n_x", "n_y", "pairs", "input_hash")]])
    return table if data is None else f"{data}\n\n{table}"


def _figures(evaluation: Mapping[str, Any]) -> str:
    rows = []
    for key, way in _WAYS:
        found = evaluation[key]
        ends = found.get("ci", {})
        cells = [_number(figure, found[figure]) + _interval(figure, ends.get(figure))
                 for figure in _FIGURES]
        rows.append([way, str(found["queries"]), str(found["candidates"]), *cells])
    balance = evaluation.get("balance", "off")
    note = "Scores are plain cosines." if balance == "off" else f"Scores are balanced by {balance}."
    if any("ci" in evaluation[key] for key, _ in _WAYS):
        note += " In brackets: 95 % bootstrap intervals."
    return _table(["direction", "queries", "candidates", *_FIGURES], rows) + "\n\n" + note


def _number(figure: str, value: float) -> str:
    return f"{value:g}" if figure == "median_rank" else f"{value:.3f}"


def _interval(figure: str, ends: Any) -> str:
    return "" if ends is None else f" ({_number(figure, ends[0])} to {_number(figure, ends[1])})"


def _own_score(noted: Mapping[str, str]) -> str:
    if "auto_score" not in noted:
        return "None were given with this card."
    return (f"While settings were chosen: {float(noted['auto_score']):.3f}, the mean of mrr and hit@10 "
            f"in both directions, among {noted.get('auto_held_x', '?')} by "
            f"{noted.get('auto_held_y', '?')} held-out rows, where a random order has "
            f"{float(noted.get('auto_chance', 'nan')):.2g}. It chose the settings too, so it is on the "
            "high side.")


def _options(noted: Mapping[str, str]) -> str:
    preset = noted.get("option.preset", TABLE["preset"].default)
    sets = presets().get(preset, {})
    rows = [["preset", preset]]
    for key, value in noted.items():
        option = key[len("option."):]
        usual = sets.get(option, TABLE[option].default if option in TABLE else None)
        if key.startswith("option.") and option != "preset" and value != usual:
            rows.append([option, value])
    text = _table(["option", "value"], rows)
    if "auto_chosen" in noted:
        text += f"\n\nChosen on held-out pairs: {noted['auto_chosen']}."
    return text + "\n\nOptions that are not listed have the preset's value or the default."


# ---- folders and the Hub ----------------------------------------------------------------------


def save_pretrained(model: Model, folder: PathLike, **card: Any) -> None:
    """Writes FOLDER/model.safetensors and FOLDER/README.md, the card."""
    text, path = model_card(model, **card), Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    model.save(path / FILE)
    (path / "README.md").write_text(text, encoding="utf-8")


def push_to_hub(model: Model, repo_id: str, *, private: Optional[bool] = None,
                token: Optional[str] = None, message: str = "Upload a unicon model",
                **card: Any) -> str:
    """Uploads the model and its card, made with the arguments of model_card; returns the address."""
    hub = _hub()
    api = hub.HfApi(token=token)
    with tempfile.TemporaryDirectory(prefix="unicon-") as folder:
        save_pretrained(model, folder, **{"name": repo_id.rpartition("/")[2], **card})
        text = (Path(folder) / "README.md").read_text(encoding="utf-8")
        (Path(folder) / "README.md").write_text(text.replace("\"REPOSITORY\"", f"\"{repo_id}\""),
                                                encoding="utf-8")
        api.create_repo(repo_id, private=private, exist_ok=True)
        return str(api.upload_folder(repo_id=repo_id, folder_path=folder, commit_message=message))


def fetch(name: PathLike, *, revision: Optional[str] = None, token: Optional[str] = None) -> Path:
    """The model file of a folder here or of a repository on the Hub."""
    folder = Path(name)
    if folder.is_dir():
        if not (folder / FILE).exists():
            raise FileError(f"{folder} has no {FILE}")
        return folder / FILE
    if folder.exists():
        return folder
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", str(name)):
        raise FileError(f"{name}: there is no such folder, and it is no name of a repository")
    return Path(_hub().hf_hub_download(str(name), FILE, revision=revision, token=token))


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise UnsupportedError("the Hub needs the package huggingface_hub: pip install "
                               "huggingface_hub") from None
    return huggingface_hub
