#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SGD-CLIP heads of `unicon compare` written anew in PyTorch, to see that the built-in baseline
is a fair one: linear and MLP heads, AdamW, cosine decay, weight decay, learned or fixed temperature,
early stop, the same grid, chosen on dev, test read once.

    UNICON_DATA=DIR experiments/torch_heads.py [linear] [mlp]

Needs numpy and PyTorch; says so and stops where they are missing."""
import math
import os
import sys
import time

try:
    import numpy as np
    import torch
except ImportError as error:
    sys.exit(f"skipped: {error}")

from common import SMOKE, Skip, directions, main, say, score, table

BATCH, RANK, HIDDEN, PER_X = 600, 256, 1024, 5
TEMPERATURES = [(0.07, True), (0.1, False)]
HEADS = {"linear": dict(rates=(1e-3, 3e-3, 1e-2), epochs=30, patience=5),
         "mlp": dict(rates=(3e-4, 1e-3), epochs=15, patience=4)}


def load(split):
    """Unit rows of both sides."""
    folder = os.path.join(os.environ.get("UNICON_DATA", ""), "flickr8k-inceptionv3-use")
    rows = []
    for name in ("image", "text"):
        path = os.path.join(folder, f"{name}.{split}.npy")
        if not os.path.exists(path):
            raise Skip("set UNICON_DATA to the folder of the features")
        rows.append(torch.nn.functional.normalize(torch.tensor(np.load(path).astype("f4"))))
    return rows


def head(kind, width):
    if kind == "linear":
        return torch.nn.Linear(width, RANK, bias=False)
    return torch.nn.Sequential(torch.nn.Linear(width, HIDDEN), torch.nn.ReLU(),
                               torch.nn.Dropout(0.3), torch.nn.Linear(HIDDEN, RANK, bias=False))


@torch.no_grad()
def evaluate(model, rows):
    """hit@1, hit@10 and mrr of both directions; caption rows 5i..5i+4 belong to image i."""
    for part in model:
        part.eval()
    zx, zy = (torch.nn.functional.normalize(part(r)) for part, r in zip(model, rows))
    scores = zx @ zy.T
    n = len(zx)
    own = scores.view(n, n, PER_X)[range(n), range(n)]  # of image i with its captions
    to_y = 1 + (scores > own.max(dim=1).values[:, None]).sum(dim=1)
    to_x = 1 + (scores > own.reshape(-1)[None, :]).sum(dim=0)
    found = {}
    for name, rank in (("x_to_y", to_y), ("y_to_x", to_x)):
        found[name] = {"hit@1": (rank <= 1).float().mean().item(),
                       "hit@10": (rank <= 10).float().mean().item(),
                       "mrr": (1 / rank.float()).mean().item()}
    return found


def train(kind, rate, temperature, learned, train_rows, dev_rows, epochs, patience):
    """The best state by the dev score, and that score."""
    torch.manual_seed(0)
    x, y = train_rows
    model = [head(kind, r.shape[1]) for r in train_rows]
    log_scale = torch.tensor(-math.log(temperature), requires_grad=learned)
    weights = [p for part in model for p in part.parameters()]
    groups = [dict(params=weights, weight_decay=0.01)]
    if learned:
        groups.append(dict(params=[log_scale], weight_decay=0.0))
    optimizer = torch.optim.AdamW(groups, lr=rate)
    steps = epochs * (len(y) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    best, kept, since, step = 0.0, None, 0, 0
    for _ in range(epochs):
        for part in model:
            part.train()
        order = torch.cat([torch.randperm(len(x)) for _ in range(PER_X)])
        for k in range(len(y) // BATCH):
            rows = order[k * BATCH:(k + 1) * BATCH]
            caption = PER_X * rows + torch.randint(PER_X, (BATCH,))
            zx = torch.nn.functional.normalize(model[0](x[rows]))
            zy = torch.nn.functional.normalize(model[1](y[caption]))
            logits = zx @ zy.T * log_scale.exp().clamp(max=100)
            target = torch.arange(BATCH)
            loss = (torch.nn.functional.cross_entropy(logits, target)
                    + torch.nn.functional.cross_entropy(logits.T, target)) / 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            step += 1
        now = score(evaluate(model, dev_rows))
        since += 1
        if now > best:
            best, since = now, 0
            kept = [{k: v.clone() for k, v in part.state_dict().items()} for part in model]
        if since >= patience:
            break
    for part, state in zip(model, kept):
        part.load_state_dict(state)
    return model, best


def tuned(kind, splits):
    """The best head of the grid by dev, on test; a row of the table."""
    about, found = HEADS[kind], []
    start = time.perf_counter()
    for rate in about["rates"]:
        for temperature, learned in TEMPERATURES:
            model, dev = train(kind, rate, temperature, learned, splits["train"], splits["dev"],
                               about["epochs"], about["patience"])
            heat = f"temperature {temperature:g}{' learned' if learned else ''}"
            say(f"{kind}: rate {rate:g}, {heat}: dev {dev:.4f}")
            found.append((dev, f"rate {rate:g}, {heat}", model))
    seconds = time.perf_counter() - start
    dev, chosen, model = max(found, key=lambda f: f[0])
    test = evaluate(model, splits["test"])
    return (f"`sgd_{kind}` in PyTorch", *directions(test), dev, seconds, chosen)


def body(_):
    if SMOKE:
        raise Skip("the heads need the features")
    splits = {name: load(name) for name in ("train", "dev", "test")}
    means = [rows.mean(dim=0) for rows in splits["train"]]
    for name, rows in splits.items():
        splits[name] = [r - m for r, m in zip(rows, means)]
    kinds = [kind for kind in HEADS if kind in sys.argv] or HEADS
    columns = "head | i→t @1 | t→i @1 | i→t @10 | t→i @10 | dev score | fit, all settings tried, s"
    return {"torch-heads": table(f"{columns} | chosen on dev", [tuned(k, splits) for k in kinds])}


if __name__ == "__main__":
    main("torch_heads", body, apart=True)
