# SPDX-License-Identifier: Apache-2.0
"""A fit and a transform make no copy of X or Y."""
import subprocess
import sys

import pytest

CHILD = """
import numpy as np, unicon

def memory(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return int(line.split()[1]) * 1024

n, d, dtype = 200000, 128, {dtype!r}
base = np.random.default_rng(0).standard_normal((n, d), dtype="f4").astype(dtype)
x, y = base[:, :64], base[:, 64:]                # strided views
if {torch}:
    import torch
    x, y = torch.from_numpy(x), torch.from_numpy(y)
aligner = unicon.Aligner(preset="fast", rank=8, threads=1, device="cpu")
small = aligner.fit(x[:1000], y[:1000])          # what BLAS and the code need is there now
open("/proc/self/clear_refs", "w").write("5")    # the peak starts here
before = memory("VmRSS")
aligner.fit(x, y)
out = np.empty((n, 8), "f4")
aligner.transform_x(x, out=out)
print((memory("VmHWM") - before) / (base.nbytes / 2))
"""


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_no_copy(dtype):
    run(dtype, False)


@pytest.mark.ecosystem
def test_no_copy_of_tensors():
    pytest.importorskip("torch")
    run("f4", True)


def run(dtype, torch):
    """The pairs take 24 bytes a row, the embedding 32; a row of X has 256 or 512. A copy of one
    side would add 1, so one half is far from both."""
    code = CHILD.format(dtype=dtype, torch=torch)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < .5
