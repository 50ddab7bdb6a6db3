"""Universal Binary JSON as XGBoost writes it, read within bounds: a file of models is data of others."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["read_ubjson"]

_DEEPEST = 32
_BYTES_PER_VALUE = 16  # at least; XGBoost's own files have 30, and a value takes up to 70 bytes in Python
_FREE = 1_000  # values that any data may hold
_SCALARS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_CONSTANTS = {"Z": None, "T": True, "F": False}


def read_ubjson(data: bytes) -> Any:
    r"""The value of UBJSON: objects as dicts, arrays of one type as numpy arrays, other arrays as lists.

    Raises
    ------
    ValueError
        For anything else, with the place. Lengths are compared with the bytes that are left, and the number
        of values with that of the bytes, so nothing is allocated that the data does not hold.

    Examples
    --------
    >>> read_ubjson(b"{i\x01a[$U#i\x02\x07\x08}")
    {'a': array([7, 8], dtype=uint8)}
    """
    reader = _Reader(data)
    value = reader.value(reader.letter(), 0)
    if reader.at != len(data):
        raise ValueError(f"bytes after the end, at {reader.at}")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.left = _FREE + len(data) // _BYTES_PER_VALUE

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise ValueError(f"{count} bytes expected at {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count : self.at]

    def letter(self) -> str:
        return self.take(1).decode("latin-1")

    def peek(self, letter: str) -> bool:
        """Whether this letter comes next; then it is taken."""
        found = self.data[self.at : self.at + 1] == letter.encode()
        self.at += found
        return found

    def number(self, kind: str) -> int | float:
        """One number of a kind."""
        dtype = np.dtype(_SCALARS[kind])
        found: int | float = np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()
        return found

    def length(self) -> int:
        kind = self.letter()
        count = self.number(kind) if kind in "iUIlL" else -1
        if not 0 <= count <= len(self.data) - self.at:
            raise ValueError(f"a length of {count} at {self.at} of {len(self.data)} bytes")
        return int(count)

    def text(self) -> str:
        try:
            return self.take(self.length()).decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"a text that is not UTF-8 before {self.at}") from None

    def value(self, kind: str, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} levels at {self.at}")
        self.left -= 1
        if self.left < 0:
            raise ValueError(f"too many values for {len(self.data):,} bytes, at {self.at}")
        if kind in _SCALARS:
            return self.number(kind)
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind == "S":
            return self.text()
        if kind == "{":
            return self.object(depth)
        if kind == "[":
            return self.array(depth)
        raise ValueError(f"no kind {kind!r}, at {self.at}")

    def object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.peek("}"):
            name = self.text()
            if name in found:  # readers differ in which one they take
                raise ValueError(f"the name {name[:40]!r} twice, before {self.at}")
            found[name] = self.value(self.letter(), depth + 1)
        return found

    def array(self, depth: int) -> Any:
        kind = self.letter() if self.peek("$") else None
        if not self.peek("#"):
            if kind is not None:
                raise ValueError(f"a type without a length at {self.at}")
            found = []
            while not self.peek("]"):
                found.append(self.value(self.letter(), depth + 1))
            return found
        count = self.length()
        if kind is None:
            return [self.value(self.letter(), depth + 1) for _ in range(count)]
        if kind not in _SCALARS:
            raise ValueError(f"an array of the kind {kind!r} at {self.at}")
        dtype = np.dtype(_SCALARS[kind])
        return np.frombuffer(self.take(count * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))
