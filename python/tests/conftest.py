# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import numpy as np
import pytest

import unicon

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def linear():
    """Two related matrices, 500 rows of 40 and 30 columns, float32."""
    x, y, _ = unicon.synth("linear", 500)
    return x, y


@pytest.fixture(scope="session")
def captions(linear):
    """60 rows of x with 5 rows of y each, in order."""
    x, y = linear
    rng = np.random.default_rng(0)
    return x[:60], np.repeat(y[:60], 5, axis=0) + rng.normal(0, .1, (300, 30)).astype("f4")


@pytest.fixture(scope="session")
def command():
    """The command: that of the environment variable UNICON, or the one in the package."""
    try:
        return unicon.command()
    except unicon.FileError:
        pytest.skip("set UNICON to the command to compare it with the package")


@pytest.fixture
def saved(tmp_path):
    """The bytes of an Aligner's model file."""
    def save(aligner):
        path = tmp_path / "saved.safetensors"
        aligner.save(path)
        return path.read_bytes()

    return save
