"""Files with a checksum: PyTorch files in the comment of the zip archive, and JSON."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from gaussianmlr._utils.files import aside
from gaussianmlr.errors import DataError

__all__ = ["read_tensors", "seal", "unseal", "write_tensors"]

_PREFIX = b"sha256:"
_SEAL = len(_PREFIX) + 64
_ENDING = 22  # bytes at the end of a zip archive without a comment
_FIELD = "sha256"


def write_tensors(path: str | os.PathLike[str], what: Any) -> str:
    """Write what `torch.save` takes, with a checksum, atomically; `torch.load` can read it.

    Parameters
    ----------
    path : path-like
        The file.
    what : object
        Tensors, texts and numbers, in dicts and lists.

    Returns
    -------
    str
        The checksum.

    Raises
    ------
    DataError
        If it cannot be written, with the reason; an existing file stays as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     digest = write_tensors(f"{folder}/best.pt", {"weight": torch.ones(2)})
    ...     found, again = read_tensors(f"{folder}/best.pt")
    >>> found, digest == again
    ({'weight': tensor([1., 1.])}, True)
    """
    try:
        with aside(path) as part:
            with part.open("wb") as stream:  # our own stream reports why writing fails
                torch.save(what, stream)
            with part.open("r+b") as stream:
                stream.seek(-2, os.SEEK_END)  # the length of the comment, 0 so far
                stream.write(_SEAL.to_bytes(2, "little"))
                stream.seek(0)
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
                stream.write(_PREFIX + digest.encode())
    except (OSError, RuntimeError) as error:
        cause = _system_error(error)
        if cause is None:
            raise
        raise DataError(f"cannot write {path}: {cause.strerror or cause}") from None
    return digest


def read_tensors(path: str | os.PathLike[str]) -> tuple[Any, str | None]:
    """What `write_tensors` wrote, and its checksum; None for plain files of `torch.save`.

    Raises
    ------
    ValueError
        For a file that was changed or damaged, with the reason. Code in it is never run.
    """
    file = Path(path)
    digest = None
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _SEAL - _ENDING))
            tail = stream.read()
        if tail[-_SEAL:].startswith(_PREFIX):
            digest = tail[-64:].decode("ascii")
            if digest != _digest_before(file, size - _SEAL):
                raise ValueError("its checksum is wrong: it was changed")
        elif tail[-_ENDING:].startswith(b"PK\x05\x06") and tail.endswith(b"\0\0"):
            with zipfile.ZipFile(file) as archive:
                if (damaged := archive.testzip()) is not None:
                    raise ValueError(f"its part {damaged!r} was changed")
        else:
            raise ValueError("it was cut or overwritten" if size else "it is empty")
        with zipfile.ZipFile(file) as archive:  # PyTorch compresses nothing
            if sum(one.file_size for one in archive.infolist()) > size:
                raise ValueError("it would grow when it is read")
        return torch.load(file, weights_only=True, map_location="cpu"), digest
    except ValueError:
        raise
    except Exception as error:  # a damaged file may lead to any error of torch, pickle and zip
        raise ValueError(str(error).partition("\n")[0] or type(error).__name__) from None


def seal(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields for JSON with their checksum added.

    Examples
    --------
    >>> unseal(json.loads(json.dumps(seal({"tau_b": 0.7}))))
    {'tau_b': 0.7}
    >>> unseal({**seal({"tau_b": 0.7}), "tau_b": 0.9})
    Traceback (most recent call last):
        ...
    ValueError: its checksum is wrong: it was changed
    """
    return {**fields, _FIELD: _digest_of(fields)}


def unseal(fields: Any) -> Any:
    """Sealed fields without their checksum; fields without one are returned unchanged.

    Raises
    ------
    ValueError
        If anything was changed.
    """
    if not isinstance(fields, dict) or _FIELD not in fields:
        return fields
    rest = {name: value for name, value in fields.items() if name != _FIELD}
    if fields[_FIELD] != _digest_of(rest):
        raise ValueError("its checksum is wrong: it was changed")
    return rest


def _digest_of(fields: Mapping[str, Any]) -> str:
    as_read = json.loads(json.dumps(fields))  # keys that are numbers become strings, and sort as such
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()


def _digest_before(file: Path, end: int) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while end > 0 and (piece := stream.read(min(end, 1 << 20))):
            digest.update(piece)
            end -= len(piece)
    return digest.hexdigest()


def _system_error(error: BaseException | None) -> OSError | None:
    """The `OSError` that caused an error, if any."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error
