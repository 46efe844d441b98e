#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`unicon compare` on Flickr8k: one command, official split, choices on dev, test read once.

    experiments/compare.py [--smoke]
"""
import json

from common import SMOKE, directions, main, table, unicon
from data import flickr8k

BUDGET = 1 if SMOKE else 120  # of auto and best, in seconds


def rows(found):
    """A method's two rows: by the cosine alone, and balanced."""
    name = f"`{found['name']}`"
    if "skipped" in found:
        return [(name, *[None] * 9, found["skipped"])]
    reached = found["seconds_to_quality_of"].get("sgd_linear")
    if found["name"] == "sgd_linear":
        reached = found["balanced"]["chosen_fit_seconds"]
    plain, balanced = found["plain"], found["balanced"]
    return [
        (name, *directions(plain), plain["held_out_score"], "plain", None, None, "",
         plain["chosen"].replace("_", " ")),
        (name, *directions(balanced), balanced["held_out_score"], balanced["balance"], found["fit_seconds"],
         found["memory_bytes"] / 1e6, "never" if reached is None else f"{reached:.1f}",
         balanced["chosen"].replace("_", " ")),
    ]


def body(work):
    train, dev, test = flickr8k(work)
    words = (*train.words(), *dev.validation(), "--test-x", test.x, "--test-y", test.y)
    found = json.loads(unicon("compare", *words, "--budget", BUDGET, "--json"))
    columns = "i→t @1 | t→i @1 | i→t @10 | t→i @10 | dev score | balance | fit, all settings tried, s"
    more = "memory, MB | as good as `sgd_linear`, balanced, after, s | chosen on dev"
    return {"compare": table(f"row | {columns} | {more}",
                             [row for r in found["rows"] for row in rows(r)])}


if __name__ == "__main__":
    main("compare", body)
