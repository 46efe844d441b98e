# SPDX-License-Identifier: Apache-2.0
"""Every script of examples/python runs, and so does the code of the README."""
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT

SCRIPTS = sorted((ROOT / "examples" / "python").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example(script, tmp_path):
    environment = {**os.environ}
    environment.pop("UNICON_DATA", None)  # the small data
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True,
                          env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert not list(tmp_path.iterdir())  # nothing is left where it was started
    if done.stdout.startswith("skipped"):
        pytest.skip(done.stdout.strip())


def test_readme(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "python" / "README.md").read_text(), re.S)
    code = "\n".join(blocks)
    assert "Aligner" in code
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())
