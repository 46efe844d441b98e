# SPDX-License-Identifier: Apache-2.0
"""Rows come every night, and some of them have to go again: no other row is read for either.

docs/many-machines.md is the guide.
"""

import tempfile

import numpy as np

import unicon

x, y, _ = unicon.synth("linear", 4000)
test_x, test_y, _ = unicon.synth("linear", 500, part=1)

aligner = unicon.Aligner()
for night in range(4):
    rows = slice(1000 * night, 1000 * night + 1000)
    aligner.partial_fit(x[rows], y[rows])
    print(f"night {night}: {aligner.stats_}, score {aligner.score(test_x, test_y):.3f}")

gone = slice(2100, 2200)  # someone asks to be forgotten
certificate = aligner.forget(x[gone], y[gone])
print(f"removed {certificate['removed']['pairs']} pairs; of them at most {certificate['trace']['bound']:.1e} "
      f"of the sums of squares is left; {certificate['seen_by']}")

never = unicon.Stats().update(np.delete(x, np.r_[gone], 0), np.delete(y, np.r_[gone], 0)).fit()
apart = abs(aligner.transform_x(test_x) @ aligner.transform_y(test_y).T
            - never.embed(test_x, "x") @ never.embed(test_y, "y").T).max()
print(f"cosines beside a fit that never saw them: {apart:.1e} apart")

with tempfile.TemporaryDirectory() as folder:
    aligner.stats_.save(f"{folder}/all.stats")  # what the next night begins with
    print(unicon.Stats.load(f"{folder}/all.stats"))
