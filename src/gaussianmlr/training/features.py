"""Features of a frozen backbone: computed once, cached on disk, read in milliseconds.

What is kept is found again by what it was made from: the contents of the inputs (files or
arrays), the weights and shape of the backbone, and the transform. Change one of them and the
features are computed anew; a damaged file is, too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gaussianmlr._utils import files
from gaussianmlr._utils.cache import cache_folder
from gaussianmlr._utils.threads import threads_for, threads_in_use
from gaussianmlr.data.loading import as_input
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.nn.backbones import Backbone
from gaussianmlr.nn.backbones.converted import FEWEST, convert
from gaussianmlr.nn.backbones.memory_format import laid_out, lay_out
from gaussianmlr.nn.backbones.texts import Texts
from gaussianmlr.nn.work import evaluating

__all__ = ["FEWEST", "compute_features", "features_folder", "fingerprint", "weights_fingerprint"]

Paths = Sequence[str | os.PathLike[str]]
Array = npt.NDArray[Any] | Tensor
_TEXTS: dict[bytes, Tensor] = {}
_MOST_NUMBERS = 16_000_000  # of features that are remembered: 64 MB, some 6,000 texts by all layers of MiniLM
_TEXTS_AT_ONCE = 64  # long enough for texts of similar length to meet
_FORMAT = 2  # part of every key: a new layout never reads an old file


def compute_features(
    backbone: Backbone,
    inputs: Array | Paths,
    *,
    load: Callable[[Path], Array] | None = None,
    transform: Mapping[str, Any] | None = None,
    batch_size: int = 8,
    folder: str | os.PathLike[str] | None = None,
    cache: bool = True,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    note: Callable[[str], None] = lambda text: None,
) -> Tensor:
    """Features of all inputs, from the cache if they are there.

    The backbone runs in evaluation mode and without gradients; its mode does not matter. From 64 images on,
    a CPU computes them with onnxruntime if it is installed and agrees with torch to 1e-3 on the first batch
    (see `nn.backbones.converted.convert`), which takes a third of the time.

    Parameters
    ----------
    backbone : Backbone
        The backbone.
    inputs : array, Tensor or sequence of paths
        A batch of inputs, or files.
    load : callable, optional
        Returns the input of a path, without the batch axis; needed for files. All inputs must have
        the same shape.
    transform : mapping, optional
        Settings of `load` (size, crop, ...) as numbers, texts and lists. They are part of the cache
        key, as the behaviour of a function is unknown.
    batch_size : int
        Inputs per batch; small batches are fastest on a CPU.
    folder : path-like, optional
        Cache folder, `features_folder` by default.
    cache : bool
        Whether to use the cache.
    workers : int, optional
        Batches that are loaded and computed at a time, each by one thread; by default one per thread of
        torch. `load` must allow it.
    progress : callable
        Called after each batch with the numbers of finished and of all inputs.
    note : callable
        Called with a line of text if onnxruntime would help, but cannot be used.

    Returns
    -------
    Tensor
        On the CPU, [N, F] or [N, F, H, W], float32.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.nn import backbones
    >>> backbone = backbones.make("mlp", channels=4, width=8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = compute_features(backbone, torch.ones(3, 4), folder=folder)
    ...     again = compute_features(backbone, torch.ones(3, 4), folder=folder)
    ...     print(first.shape, torch.equal(first, again), len(list(Path(folder).iterdir())))
    torch.Size([3, 8]) True 1
    """
    of_files = not isinstance(inputs, np.ndarray | Tensor)
    if of_files and load is None:
        raise DataError("inputs are files; expected a function `load` that returns the input of a path")
    if batch_size < 1:
        raise DataError(f"batch_size is {batch_size}; expected 1 or more")
    if not cache:
        return _run(backbone, inputs, load, batch_size, workers, progress, note)
    place = Path(folder) if folder is not None else features_folder()
    path = place / f"{_key(backbone, inputs, transform)}.features"
    if (kept := _read(path)) is not None and len(kept) == len(inputs):
        progress(len(inputs), len(inputs))
        return kept
    found = _run(backbone, inputs, load, batch_size, workers, progress, note)
    try:
        _write(path, found)
    except OSError as error:  # a full disk must not lose the computed features
        warnings.warn(f"features are not kept: {error}", stacklevel=2)
    return found


def features_folder() -> Path:
    """The cache folder of features: below ``GAUSSIANMLR_CACHE``, or in the user's cache folder.

    Examples
    --------
    >>> features_folder().name
    'features'
    """
    return cache_folder("features")


def fingerprint(inputs: Array | Paths) -> str:
    """A digest of inputs: type, shape and values of an array, or the bytes of files.

    Examples
    --------
    >>> len({fingerprint(array) for array in (np.zeros(2), np.zeros(2), np.ones(2))})
    2
    """
    digest = hashlib.sha256()
    if isinstance(inputs, Tensor):
        _add_tensor(digest, inputs)
    elif isinstance(inputs, np.ndarray):
        digest.update(f"{inputs.dtype}{inputs.shape}".encode())
        digest.update(np.ascontiguousarray(inputs).data)
    else:
        for path in inputs:
            digest.update(_file_digest(Path(path)))
    return digest.hexdigest()


def weights_fingerprint(module: nn.Module) -> str:
    """A digest of a network: its layers and the values of its weights.

    Examples
    --------
    >>> layer = nn.Linear(2, 2)
    >>> before = weights_fingerprint(layer)
    >>> with torch.no_grad():
    ...     _ = layer.weight.add_(1)
    >>> weights_fingerprint(layer) == before
    False
    """
    digest = hashlib.sha256(f"{type(module).__module__}.{module!r}".encode())
    for name, value in module.state_dict().items():
        digest.update(name.encode())
        _add_tensor(digest, value)
    return digest.hexdigest()


def _key(backbone: Backbone, inputs: Array | Paths, transform: Mapping[str, Any] | None) -> str:
    made_from = {
        "format": _FORMAT,
        "inputs": fingerprint(inputs),
        "weights": weights_fingerprint(backbone),
        "parts": repr(backbone),  # what is not a weight: strides, mirrors
        "expects": dataclasses.asdict(backbone.inputs),
        "map": backbone.is_map,
        "transform": dict(transform or {}),
    }
    try:
        text = json.dumps(made_from, sort_keys=True)
    except TypeError as error:
        raise DataError(f"transform {shorten(transform)} cannot be part of a key: {error}") from None
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _run(
    backbone: Backbone,
    inputs: Array | Paths,
    load: Callable[[Path], Array] | None,
    batch_size: int,
    workers: int | None,
    progress: Callable[[int, int], None],
    note: Callable[[str], None],
) -> Tensor:
    if isinstance(backbone, Texts) and isinstance(inputs, np.ndarray | Tensor):
        return _of_texts(backbone, torch.as_tensor(inputs), workers, progress)
    return _in_batches(backbone, inputs, load, batch_size, workers, progress, note)


def _of_texts(
    backbone: Texts, inputs: Tensor, workers: int | None, progress: Callable[[int, int], None]
) -> Tensor:
    """Features of rows with texts. They are remembered: folds and members share most of their rows."""
    weights = weights_fingerprint(backbone).encode()
    keys = [hashlib.sha256(weights + row.tobytes()).digest() for row in inputs.cpu().numpy()]
    found = {key: _TEXTS[key] for key in keys if key in _TEXTS}
    place = {key: number for number, key in enumerate(keys) if key not in found}
    if not place:
        progress(len(keys), len(keys))
    else:
        known = len(keys) - len(place)

        def told(done: int, _: int) -> None:
            progress(known + done, len(keys))

        some = inputs[list(place.values())]
        made = _in_batches(backbone, some, None, _TEXTS_AT_ONCE, workers, told, lambda _: None)
        found |= dict(zip(place, made))
        _TEXTS.update((key, found[key]) for key in place)
        while len(_TEXTS) > max(1, _MOST_NUMBERS // backbone.features):
            _TEXTS.pop(next(iter(_TEXTS)), None)
    return torch.stack([found[key] for key in keys]) if keys else torch.zeros(0, backbone.features)


def _in_batches(
    backbone: Backbone,
    inputs: Array | Paths,
    load: Callable[[Path], Array] | None,
    batch_size: int,
    workers: int | None,
    progress: Callable[[int, int], None],
    note: Callable[[str], None],
) -> Tensor:
    device = next((weight.device for weight in backbone.parameters()), torch.device("cpu"))
    lay_out(backbone)
    runner = backbone
    if len(inputs) >= FEWEST:
        first = _batch(inputs, 0, batch_size, load).to(device)
        runner = convert(backbone, as_input(first), threads=1, note=note)

    def computed(start: int) -> Tensor:
        # onnxruntime has a layout of its own.
        batch = laid_out(_batch(inputs, start, batch_size, load).to(device), runner is backbone)
        with torch.no_grad():
            found: Tensor = runner(batch)
            return found.float().cpu().contiguous()

    parts: list[Tensor] = []
    several = (workers or threads_in_use()) if device.type == "cpu" else 1
    # Each batch has one thread: batches do not wait for each other, the parts of one batch would.
    with evaluating(backbone), threads_for(0), ThreadPoolExecutor(several) as pool:
        for part in pool.map(computed, range(0, len(inputs), batch_size)):
            parts.append(part)
            progress(min(len(parts) * batch_size, len(inputs)), len(inputs))
    return torch.cat(parts) if parts else torch.zeros(0, backbone.features)


def _batch(
    inputs: Array | Paths, start: int, batch_size: int, load: Callable[[Path], Array] | None
) -> Tensor:
    rows = inputs[start : start + batch_size]
    if isinstance(rows, np.ndarray | Tensor):
        return torch.as_tensor(rows)
    assert load is not None
    return _stacked([Path(path) for path in rows], load)


def _stacked(paths: Sequence[Path], load: Callable[[Path], Array]) -> Tensor:
    loaded = [torch.as_tensor(load(path)) for path in paths]
    for path, one in zip(paths, loaded):
        if one.shape != loaded[0].shape:
            raise DataError(
                f"{str(path)!r} has the shape {list(one.shape)}, {str(paths[0])!r} {list(loaded[0].shape)}; "
                "expected `load` to return one shape"
            )
    return torch.stack(loaded)


def _add_tensor(digest: Any, value: Tensor) -> None:
    digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
    flat = value.detach().cpu().contiguous().flatten()
    digest.update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")


def _file_digest(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise DataError(f"cannot read {str(path)!r}: {error.strerror}") from None


def _write(path: Path, features: Tensor) -> None:
    """The digest of the array, then the array in numpy's format."""
    with files.aside(path) as part, part.open("wb") as file:
        file.write(bytes.fromhex(fingerprint(features)))
        np.save(file, features.numpy(), allow_pickle=False)


def _read(path: Path) -> Tensor | None:
    """The cached features; None if there are none or they are damaged."""
    try:
        with path.open("rb") as file:
            digest = file.read(hashlib.sha256().digest_size)
            kept = torch.from_numpy(np.load(file, allow_pickle=False))
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return kept if bytes.fromhex(fingerprint(kept)) == digest else None
