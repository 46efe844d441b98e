# SPDX-License-Identifier: Apache-2.0
"""The command `unicon` of a wheel: gives way to the program that lies in the package. It is no part
of the package, which would load NumPy first."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path


def main() -> None:
    spec = find_spec("unicon")
    if spec is None or spec.origin is None:
        sys.exit("unicon: the Python package is not there")
    program = Path(spec.origin).with_name("bin") / "unicon"
    for name in ("unicon_cuda13", "unicon_cuda12"):  # wheels with a plugin for a GPU
        plugin = find_spec(name)
        if plugin and plugin.submodule_search_locations:
            os.environ.setdefault("UNICON_DEVICES", plugin.submodule_search_locations[0])
    try:
        os.execv(program, ["unicon", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"unicon: {program}: {error.strerror}")
