"""MATLAB files of version 5 to 7.2: matrices of numbers, and structs of them.

`scipy.io.loadmat` is not used, because some damaged or nested files crash it.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.bounded import check_file, check_unpacked, most_unpacked
from gaussianmlr.errors import DataError, shorten

_HEADER = 128  # bytes before the first variable
_MATRIX, _COMPRESSED = 14, 15
_STRUCT, _NUMBERS = 2, range(6, 16)  # classes of matrices
_OTHERS = {1: "a cell array", 3: "an object", 4: "a text", 5: "a sparse matrix"}
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_IMAGINARY = 0x0800


class _Element(NamedTuple):
    kind: int
    data: memoryview
    end: int


class _Head(NamedTuple):
    """The header of a matrix, and where its contents begin."""

    kind: int
    flags: int
    shape: tuple[int, ...]
    name: str
    start: int


def load_mat(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Variables of a MATLAB file by name; others are skipped.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    names : sequence of str
        The variables wanted, all of which must be there: matrices of numbers, as they are stored, or structs
        of them, as arrays with one field of objects per field; None where a field holds no numbers.

    Examples
    --------
    >>> import tempfile, scipy.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scipy.io.savemat(f"{folder}/a.mat", {"a": [[1, 2]], "b": "text"})
    ...     load_mat(Path(folder, "a.mat"), ["a"])
    {'a': array([[1, 2]])}
    """
    data = check_file(path, "a MATLAB file").read_bytes()
    try:
        if data and 0 in data[:4]:
            found, known = _version_4(path, names)
        else:
            found, known = _version_5(path, data, names)
    except DataError as error:
        raise DataError(f"{path}: {error}" if not str(error).startswith(str(path)) else str(error)) from None
    except Exception as error:  # a damaged file can break any assumption
        raise DataError(f"{path}: cannot be read as a MATLAB file: {error}") from None
    for name in names:
        if name not in found:
            raise DataError(f"{path}: no matrix {name!r}; it holds {shorten(sorted(known))}")
    return found


def _version_4(path: Path, names: Sequence[str]) -> tuple[dict[str, Any], set[str]]:
    import scipy.io

    known = {name for name, *_ in scipy.io.whosmat(path)}
    found = scipy.io.loadmat(path, variable_names=list(names))
    return {name: found[name] for name in names if name in found}, known


def _version_5(path: Path, data: bytes, names: Sequence[str]) -> tuple[dict[str, Any], set[str]]:
    if len(data) < _HEADER or data[126:128] not in (b"IM", b"MI"):
        raise DataError("cannot be read as a MATLAB file; expected one of version 4 to 7.2")
    order = "<" if data[126:128] == b"IM" else ">"
    if struct.unpack_from(f"{order}H", data, 124)[0] >> 8 != 1:
        raise DataError("is of MATLAB 7.3 (HDF5); save it with '-v7'")
    reader, found, known = _Reader(order), {}, set()
    unpacked = 0
    for element in reader.elements(memoryview(data)[_HEADER:], padded=False):
        content = element
        if element.kind == _COMPRESSED:
            raw = zlib.decompressobj().decompress(element.data, most_unpacked(path) + 1)
            unpacked += len(raw)
            check_unpacked(path, unpacked)
            content = reader.element(memoryview(raw), 0)
        if content.kind != _MATRIX:
            continue
        head = reader.head(content.data)
        known.add(head.name)
        if head.name in names:
            found[head.name] = reader.matrix(content.data, head)
    return found, known


class _Reader:
    """Reads elements in the byte order of a file."""

    def __init__(self, order: str) -> None:
        self.order = order

    def element(self, data: memoryview, at: int, *, padded: bool = True) -> _Element:
        """The element that begins somewhere: its kind, its bytes, and where the next one begins."""
        if at + 8 > len(data):
            raise DataError("is cut off within a variable")
        kind, size = struct.unpack_from(f"{self.order}II", data, at)
        if kind >> 16:  # four bytes or fewer are stored in the tag itself
            return _Element(kind & 0xFFFF, data[at + 4 : at + 4 + min(kind >> 16, 4)], at + 8)
        if size > len(data) - at - 8:
            raise DataError(f"a variable of {size:,} bytes is cut off after {len(data) - at - 8:,}")
        end = at + 8 + size
        if padded or kind != _COMPRESSED:
            end += -size % 8
        return _Element(kind, data[at + 8 : at + 8 + size], end)

    def elements(self, data: memoryview, *, padded: bool = True) -> Iterator[_Element]:
        at = 0
        while at + 8 <= len(data):
            found = self.element(data, at, padded=padded)
            yield found
            at = found.end

    def head(self, data: memoryview) -> _Head:
        flags = self.element(data, 0)
        shape = self.element(data, flags.end)
        name = self.element(data, shape.end)
        (bits,) = struct.unpack_from(f"{self.order}I", flags.data)
        sizes = tuple(self.numbers(shape).tolist())
        if not 2 <= len(sizes) <= 32 or min(sizes) < 0:
            raise DataError(f"a variable has the shape {shorten(sizes)}")
        return _Head(bits & 0xFF, bits, sizes, bytes(name.data).decode("latin-1"), name.end)

    def numbers(self, element: _Element) -> npt.NDArray[Any]:
        if element.kind not in _TYPES:
            raise DataError(f"numbers are stored as type {element.kind}; expected one of {sorted(_TYPES)}")
        stored = np.dtype(self.order + _TYPES[element.kind])
        return np.frombuffer(element.data, stored).astype(stored.newbyteorder("="))

    def matrix(self, data: memoryview, head: _Head) -> npt.NDArray[Any]:
        """The numbers, or structs, after a header."""
        count = math.prod(head.shape)
        if head.kind == _STRUCT:
            return self.fields(data, head, count)
        if head.kind not in _NUMBERS or head.flags & _IMAGINARY:
            what = _OTHERS.get(head.kind, "of no real numbers")
            raise DataError(f"{head.name!r} is {what}; expected a matrix of numbers")
        values = self.numbers(self.element(data, head.start)) if count else np.zeros(0)
        if len(values) != count:
            wanted = f"its shape {shorten(head.shape)} needs {count:,}"
            raise DataError(f"{head.name!r} has {len(values):,} numbers; {wanted}")
        return values.reshape(head.shape, order="F")

    def fields(self, data: memoryview, head: _Head, count: int) -> npt.NDArray[Any]:
        width = self.element(data, head.start)
        listed = self.element(data, width.end)
        (size,) = self.numbers(width).tolist()
        text = bytes(listed.data)
        names = [text[at : at + size].split(b"\0")[0].decode("latin-1") for at in range(0, len(text), size)]
        if 8 * count * len(names) > len(data):  # every value has a tag of its own
            raise DataError(f"{head.name!r} has {count:,} structs of {len(names)} fields, and is shorter")
        found = np.empty(count, dtype=[(name, object) for name in names])
        at = listed.end
        for row in range(count):
            for name in names:
                element = self.element(data, at)
                at = element.end
                found[name][row] = self.value(element)
        return found.reshape(head.shape, order="F")

    def value(self, element: _Element) -> npt.NDArray[Any] | None:
        """The matrix in a field; None if it is not a matrix of numbers."""
        head = self.head(element.data) if element.kind == _MATRIX and len(element.data) else None
        return None if head is None or head.kind not in _NUMBERS else self.matrix(element.data, head)
