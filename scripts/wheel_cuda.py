#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel of the CUDA plugin: that one library, named after the main distribution and the CUDA
version that it is linked with, with NVIDIA's wheels as what it needs.

    wheel_cuda.py PLUGIN FOLDER    PLUGIN: libunicon_cuda.so, built with -DUNICON_CUDA_WHEEL=ON

The package unicon_cuda13 inside is a folder that the main package looks for, and is never imported.
"""

import base64
import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What NVIDIA calls its wheels: with the CUDA version in the name until 12. cuSOLVER counts its own.
NEEDS = {
    12: ["nvidia-cublas-cu12>=12.4", "nvidia-cusolver-cu12>=11.6", "nvidia-cuda-runtime-cu12>=12.4"],
    13: ["nvidia-cublas>=13.0,<14", "nvidia-cusolver>=12.0,<13", "nvidia-cuda-runtime>=13.0,<14"],
}


def version():
    header = (ROOT / "include" / "unicon" / "unicon.h").read_text()
    return ".".join(re.findall(r"^#define UNICON_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M))


def cuda_of(plugin):
    """The major version of CUDA that it is linked with."""
    headers = subprocess.run(["readelf", "-d", plugin], check=True, capture_output=True, text=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", headers)
    found = [name for name in needed if name.startswith("libcublas.so.")]
    if not found or not any(name.startswith("libcudart.so.") for name in needed):
        sys.exit(f"wheel_cuda.py: {plugin} is not linked with cuBLAS and the runtime: build it with "
                 "-DUNICON_CUDA_WHEEL=ON")
    if "$ORIGIN/../nvidia/" not in headers:
        sys.exit(f"wheel_cuda.py: {plugin} does not look for NVIDIA's wheels beside it")
    major = int(found[0].rpartition(".")[2])
    if major not in NEEDS:
        sys.exit(f"wheel_cuda.py: CUDA {major} is not known here; known: {', '.join(map(str, NEEDS))}")
    return major


def metadata(name, major):
    main = re.search(r'^name = "([\w-]+)"', (ROOT / "pyproject.toml").read_text(), re.M).group(1)
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version()}",
             f"Summary: The plugin of {main} for NVIDIA GPUs, CUDA {major}",
             "License-Expression: Apache-2.0", "License-File: LICENSE", "Requires-Python: >=3.9",
             f"Requires-Dist: {main}=={version()}"]
    lines += [f"Requires-Dist: {need}" for need in NEEDS[major]]
    lines += ["Description-Content-Type: text/markdown", "",
              f"The plugin `libunicon_cuda.so` of `{main}`, which finds it by itself: `unicon info` and "
              "`unicon.devices()` list the GPU, or the reason why it cannot be used. It needs a GPU of compute "
              f"capability 8.0 or more and a driver for CUDA {major}.", ""]
    return "\n".join(lines)


def write(path, files):
    """A wheel is a zip with a list of what is in it."""
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            if name.endswith(".so"):
                entry.external_attr = 0o100755 << 16
            if name.endswith("RECORD"):
                content = "".join(record + [f"{name},,\n"]).encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}\n")
            archive.writestr(entry, content)


def main(plugin, folder):
    major = cuda_of(plugin)
    name, package = f"unicon-align-cuda{major}", f"unicon_cuda{major}"
    tag = "py3-none-linux_" + subprocess.run(["uname", "-m"], check=True, capture_output=True,
                                             text=True).stdout.strip()
    stem = f"{name.replace('-', '_')}-{version()}"
    info = f"{stem}.dist-info"
    files = {
        f"{package}/__init__.py": b"# SPDX-License-Identifier: Apache-2.0\n"
                                  b'"""A folder with a plugin, in which the package unicon looks."""\n',
        f"{package}/libunicon_cuda.so": Path(plugin).read_bytes(),
        f"{info}/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
        f"{info}/METADATA": metadata(name, major).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: unicon\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        f"{info}/RECORD": b"",
    }
    path = Path(folder) / f"{stem}-{tag}.whl"
    write(path, files)
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
