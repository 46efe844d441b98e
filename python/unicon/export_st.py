# SPDX-License-Identifier: Apache-2.0
"""One side of a model as modules of sentence-transformers (2.3 and newer): Normalize, Dense,
Normalize. Nothing of that package is needed to write them.

    folder/modules.json            which modules there are, in order
    folder/1_Dense/config.json     their settings
    folder/1_Dense/model.safetensors

Only linear maps of one part are such modules; unicon.export_torch has the others.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np

from ._parts import sides_of
from .errors import ArgumentError, FileError, UnsupportedError
from .model import Model

PathLike = Union[str, "os.PathLike[str]"]
_TYPE = "sentence_transformers.models."


def to_sentence_transformers(model: Model, path: PathLike, side: str,
                             base: Optional[PathLike] = None) -> None:
    """Writes a folder that SentenceTransformer(path) opens.

    `base`, the folder of a saved SentenceTransformer, is copied and the modules follow its own: the
    result encodes as before and then maps into the shared space. Without it the folder holds the
    modules alone, to be put behind an encoder. Vectors are those of form "unit": a balanced index
    needs rows of form "index" (Model.embed).
    """
    weight, bias, normalize = _linear(model, side)
    folder = Path(path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(f"{folder} is there already; give a new folder or an empty one")
    modules: list[dict[str, Any]] = []
    if base is not None:
        listed = Path(base) / "modules.json"
        if not listed.exists():
            raise FileError(f"{os.fsdecode(base)} is no folder of a SentenceTransformer: it has no "
                            "modules.json. SentenceTransformer(name).save(folder) makes one")
        modules = json.loads(listed.read_text(encoding="utf-8"))
        shutil.copytree(base, folder, dirs_exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    if normalize:
        _add(folder, modules, "Normalize", {})
    out, width = weight.shape
    dense = _add(folder, modules, "Dense", {
        "in_features": width, "out_features": out, "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity"})
    (dense / "model.safetensors").write_bytes(
        safetensors_of({"linear.bias": bias, "linear.weight": weight}))
    _add(folder, modules, "Normalize", {})
    _write(folder / "modules.json", modules)
    settings = folder / "config_sentence_transformers.json"
    known = json.loads(settings.read_text(encoding="utf-8")) if settings.exists() else {}
    _write(settings, {**known, "similarity_fn_name": "cosine"})


def _add(folder: Path, modules: list[dict[str, Any]], kind: str, config: dict[str, Any]) -> Path:
    """One more module, in a folder of its own."""
    number = len(modules)
    own = folder / f"{number}_{kind}"
    own.mkdir(exist_ok=True)
    _write(own / "config.json", config)
    modules.append({"idx": number, "name": str(number), "path": own.name, "type": _TYPE + kind})
    return own


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _linear(model: Model, side: str) -> tuple[np.ndarray, np.ndarray, bool]:
    """Weight (rank by width), bias and whether rows are scaled to length 1 first: the map is
    W'(u - mean) = W'u - W'mean."""
    if side not in ("x", "y"):
        raise ArgumentError(f"side is {side!r}; accepted: \"x\" or \"y\"")
    whole = sides_of(model)[side]
    if len(whole.parts) != 1 or whole.parts[0].map != "linear":
        kind = "of several parts" if len(whole.parts) != 1 else \
            f"of map {whole.parts[0].map} with kernel {whole.parts[0].kernel}"
        raise UnsupportedError(f"side {side} of the model is {kind}; modules of "
                               "sentence-transformers are linear maps. Fit with kernel=\"linear\", "
                               "or use to_torch or to_onnx")
    tensors = whole.parts[0].tensors
    weight = np.ascontiguousarray(tensors["weight"].T)
    mean = tensors.get("mean", np.zeros(weight.shape[1], np.float32))
    bias = -(weight.astype(np.float64) @ mean).astype(np.float32)
    return weight, bias, whole.normalize


def safetensors_of(tensors: dict[str, np.ndarray]) -> bytes:
    """Float32 tensors as a safetensors file."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place, parts = 0, []
    for name, tensor in tensors.items():
        data = np.ascontiguousarray(tensor, "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [place, place + len(data)]}
        place += len(data)
        parts.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)
