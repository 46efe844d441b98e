# SPDX-License-Identifier: Apache-2.0
"""What is passed on: the reference is that of the docstrings, and the sdist holds what a build needs
and nothing else."""
import importlib.util
import os
import re
import subprocess
import sys
import tarfile

import pytest
from conftest import ROOT

import unicon

# Folders of the sdist and what lies in them.
WANTED = {
    "": r"(CMakeLists\.txt|pyproject\.toml|PKG-INFO|LICENSE|README\.md|CHANGELOG\.md|CITATION\.cff"
        r"|CONTRIBUTING\.md|SECURITY\.md|Makefile)",
    "cmake": r"\w+\.(cmake|c|in)|unicon\w*(\.\w+)*\.in",
    "data": r"digits/[\w.]+|README\.md",
    "docs": r"(guide/)?[\w-]+\.(md|svg|png)",
    "examples": r"(python/)?\w+\.(py|c|sh|md)|python/README\.md",
    "include": r"unicon/\w+\.h",
    "programs": r"(mpi/)?\w+\.(c|h|html|css|js)|README\.md",
    "python": r"(unicon/(\w+\.py|py\.typed)|tests/\w+\.py|_unicon_command\.py|README\.md)",
    "scripts": r"setup\.sh",
    "src": r"\w+/(cuda/)?\w+\.([ch]|cuh?)|LAYERS",
}
NEEDED = ["CMakeLists.txt", "LICENSE", "PKG-INFO", "cmake/python.cmake", "include/unicon/unicon.h",
          "programs/main.c", "programs/report.html", "pyproject.toml", "python/README.md",
          "python/_unicon_command.py", "python/unicon/__init__.py", "python/unicon/py.typed",
          "src/LAYERS", "src/base/options.h"]


def test_the_reference_is_current():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "python_api.py", "--check"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_public_name_has_a_text():
    for name in unicon.__all__:
        thing = getattr(unicon, name)
        assert name in ("Matrix", "Pairs", "Progress") or (thing.__doc__ or "").strip(), name


def test_the_version_has_one_home():
    header = (ROOT / "include" / "unicon" / "unicon.h").read_text()
    numbers = re.findall(r"^#define UNICON_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M)
    assert unicon.__version__ == ".".join(numbers)
    text = (ROOT / "pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in text and not re.search(r'^version = "', text, re.M)
    assert f"version: {unicon.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    recipe = ROOT / "conda" / "recipe.yaml"  # not in the sdist
    assert not recipe.exists() or f'version: "{unicon.__version__}" ' in recipe.read_text()


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    folder = tmp_path_factory.mktemp("sdist")
    code = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, folder], cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]


def test_the_sdist_holds_what_a_build_needs_and_nothing_else(sdist):
    assert sdist.name == f"unicon_align-{unicon.__version__}.tar.gz"
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert set(NEEDED) <= set(names)
    stray = []
    for name in names:
        folder, _, rest = name.rpartition("/") if "/" not in name else name.partition("/")
        if not re.fullmatch(WANTED.get(folder, "(?!)"), rest):
            stray.append(name)
    assert not stray
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:  # not in an unpacked sdist
        new = subprocess.run(["git", "ls-files", "--others", "--exclude-standard"], cwd=ROOT,
                             capture_output=True, text=True).stdout.split()
        assert not set(names) - set(listed.stdout.split()) - set(new) - {"PKG-INFO"}


def test_the_page_on_the_index_stands_alone():
    """Links of the README that the index shows would lead nowhere if they were relative."""
    readme = (ROOT / "python" / "README.md").read_text()
    assert not re.findall(r"\]\((?!https?://|#)[^)]*\)", readme)


def test_the_wheel_of_the_plugin(tmp_path, monkeypatch):
    """One library in a folder, with NVIDIA's wheels as what it needs; a plugin that is not linked so is
    refused."""
    script = ROOT / "scripts" / "wheel_cuda.py"
    soft = os.environ.get("UNICON_SOFT_FOLDER")
    if not script.exists() or not soft:
        pytest.skip("needs the scripts and UNICON_SOFT_FOLDER")
    spec = importlib.util.spec_from_file_location("wheel_cuda", script)
    wheel_cuda = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wheel_cuda)
    plugin = os.path.join(soft, "libunicon_soft.so")
    with pytest.raises(SystemExit, match="not linked with cuBLAS and the runtime"):
        wheel_cuda.main(plugin, tmp_path)
    monkeypatch.setattr(wheel_cuda, "cuda_of", lambda _: 13)
    wheel_cuda.main(plugin, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith(f"unicon_align_cuda13-{unicon.__version__}-py3-none-linux_")
    done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "in",
                           wheel], capture_output=True, text=True)
    if "No module named pip" in done.stderr:
        pytest.skip("there is no pip")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "in"
    assert (folder / "unicon_cuda13" / "libunicon_cuda.so").read_bytes() == open(plugin, "rb").read()
    told = next(folder.glob("*.dist-info")).joinpath("METADATA").read_text()
    for need in (f"unicon-align=={unicon.__version__}", "nvidia-cublas>=13.0,<14", "nvidia-cusolver>=12.0,<13",
                 "nvidia-cuda-runtime>=13.0,<14"):
        assert f"Requires-Dist: {need}\n" in told
