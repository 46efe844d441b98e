#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`unicon compare` on Flickr8k: one command, official split, choices on dev, test read once.

    experiments/compare.py [--smoke]
"""
import json

from common import SMOKE, directions, main, table, unicon
from data import flickr8k

BUDGET = 1 if SMOKE else 120  # of auto and best, in seconds


def row(found):
    name = f"`{found['name']}`"
    if "skipped" in found:
        return (name, *[None] * 8, found["skipped"])
    reached = found["seconds_to_quality_of"].get("sgd_linear")
    if found["name"] == "sgd_linear":
        reached = found["chosen_fit_seconds"]
    return (
        name,
        *directions(found),
        found["held_out_score"],
        found["fit_seconds"],
        found["memory_bytes"] / 1e6,
        "never" if reached is None else f"{reached:.1f}",
        found["chosen"].replace("_", " "),
    )


def body(work):
    train, dev, test = flickr8k(work)
    words = (*train.words(), *dev.validation(), "--test-x", test.x, "--test-y", test.y)
    found = json.loads(unicon("compare", *words, "--budget", BUDGET, "--json"))
    columns = "i→t @1 | t→i @1 | i→t @10 | t→i @10 | dev score | fit, all settings tried, s"
    more = "memory, MB | as good as `sgd_linear` after, s | chosen on dev"
    return {"compare": table(f"row | {columns} | {more}",
                             [row(r) for r in found["rows"]])}


if __name__ == "__main__":
    main("compare", body)
