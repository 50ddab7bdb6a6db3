"""The four files of MNIST: their names, their official MD5 sums, and how to read them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError, shorten

DigitSplit = Literal["train", "test"]
Part = Literal["images", "labels"]
PARTS: tuple[Part, ...] = get_args(Part)

_UBYTE = 0x08


@dataclass(frozen=True)
class OfficialFile:
    """One file of MNIST as its authors published it: names, sizes and sums.

    Examples
    --------
    >>> OFFICIAL["test", "labels"].gz_name
    't10k-labels-idx1-ubyte.gz'
    """

    name: str
    shape: tuple[int, ...]
    gz_size: int
    gz_md5: str
    raw_md5: str

    @property
    def gz_name(self) -> str:
        """The name of the compressed file."""
        return f"{self.name}.gz"

    @property
    def raw_size(self) -> int:
        """How many bytes the idx file has: header and payload."""
        return 4 + 4 * len(self.shape) + int(np.prod(self.shape))


OFFICIAL: Mapping[tuple[DigitSplit, Part], OfficialFile] = MappingProxyType(
    {
        ("train", "images"): OfficialFile(
            "train-images-idx3-ubyte",
            (60_000, 28, 28),
            9_912_422,
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "6bbc9ace898e44ae57da46a324031adb",
        ),
        ("train", "labels"): OfficialFile(
            "train-labels-idx1-ubyte",
            (60_000,),
            28_881,
            "d53e105ee54ea40749a09fcbcd1e9432",
            "a25bea736e30d166cdddb491f175f624",
        ),
        ("test", "images"): OfficialFile(
            "t10k-images-idx3-ubyte",
            (10_000, 28, 28),
            1_648_877,
            "9fb629c4189551a2d022fa330f9573f3",
            "2646ac647ad5339dbf082846283269ea",
        ),
        ("test", "labels"): OfficialFile(
            "t10k-labels-idx1-ubyte",
            (10_000,),
            4_542,
            "ec29112dd5afa0611ce80d1b7f02629c",
            "27ae3e4e09519cfbb04c329615203637",
        ),
    }
)


def md5(data: bytes) -> str:
    """The MD5 sum in hexadecimal: against accidents, not against attackers.

    Examples
    --------
    >>> md5(b"")
    'd41d8cd98f00b204e9800998ecf8427e'
    """
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def to_idx(array: npt.NDArray[np.uint8]) -> bytes:
    """The idx bytes of an array of bytes.

    Examples
    --------
    >>> to_idx(np.array([5, 0, 4], np.uint8)).hex(" ")
    '00 00 08 01 00 00 00 03 05 00 04'
    """
    header = bytes([0, 0, _UBYTE, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + np.ascontiguousarray(array, dtype=np.uint8).tobytes()


def from_idx(data: bytes, name: str = "idx data") -> npt.NDArray[np.uint8]:
    """The array in the bytes of an idx file.

    Parameters
    ----------
    data : bytes
        The raw (not compressed) file.
    name : str
        What to call it in an error.

    Examples
    --------
    >>> from_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 4]))
    array([5, 0, 4], dtype=uint8)
    """
    if len(data) < 4 or data[:3] != bytes([0, 0, _UBYTE]):
        start = shorten(data[:4])
        raise DataError(f"{name} starts with {start}; expected an idx file of unsigned bytes (00 00 08 ..)")
    ndim = data[3]
    offset = 4 + 4 * ndim
    shape = tuple(int.from_bytes(data[4 + 4 * d : 8 + 4 * d], "big") for d in range(ndim))
    expected = offset + int(np.prod(shape, dtype=np.int64))
    if len(data) != expected:
        raise DataError(f"{name} has {len(data):,} bytes; its header {shape} needs {expected:,}")
    return np.frombuffer(data, np.uint8, offset=offset).reshape(shape)


def unpack(data: bytes, file: OfficialFile, name: str) -> bytes:
    """The verified raw idx bytes of one MNIST file, handed in raw or compressed.

    Raises `DataError` unless they are, to the last bit, what MNIST's authors published.

    Examples
    --------
    >>> unpack(b"<html>", OFFICIAL["test", "labels"], "a mirror's answer")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gaussianmlr.errors.DataError: a mirror's answer is not MNIST's t10k-labels-idx1-ubyte: MD5 ...
    """
    raw = data
    if data[:2] == b"\x1f\x8b":
        try:
            # A bound on the size: a lying archive cannot fill the memory.
            raw = zlib.decompressobj(wbits=31).decompress(data, file.raw_size + 1)
        except zlib.error as error:
            raise DataError(f"{name} cannot be decompressed ({error}); expected gzip") from error
    found = md5(raw)
    if found != file.raw_md5:
        raise DataError(f"{name} is not MNIST's {file.name}: MD5 {found}, expected {file.raw_md5}")
    return raw


def locate(folder: Path, split: DigitSplit, part: Part) -> Path | None:
    """Where a folder holds one MNIST file, raw or compressed, under any of its usual names.

    Examples
    --------
    >>> locate(Path("/nowhere"), "train", "images") is None
    True
    """
    name = OFFICIAL[split, part].name
    dotted = name.replace("-idx", ".idx")
    # The second and third are where torchvision keeps them.
    for place in (folder, folder / "MNIST" / "raw", folder / "raw"):
        for candidate in (name, f"{name}.gz", dotted, f"{dotted}.gz"):
            if (place / candidate).is_file():
                return place / candidate
    return None


def read(folder: Path, split: DigitSplit, part: Part) -> npt.NDArray[np.uint8]:
    """Read and verify one MNIST file of a folder.

    Examples
    --------
    >>> read(Path("/nowhere"), "test", "labels")
    Traceback (most recent call last):
    gaussianmlr.errors.DataError: /nowhere holds no t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte.gz
    """
    path = locate(folder, split, part)
    file = OFFICIAL[split, part]
    if path is None:
        raise DataError(f"{folder} holds no {file.name} or {file.gz_name}")
    return from_idx(unpack(path.read_bytes(), file, str(path)), str(path))
