"""Weights from files: read without running code, and with every mismatch listed."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from gaussianmlr.errors import DataError

_SHOWN = 6


def read_weights(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a weights file, by name.

    Parameters
    ----------
    path : path-like
        A ``.safetensors`` file, or a state dict saved by `torch.save`; the latter is read
        weights-only, so no code in it can run.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     torch.save({"weight": torch.ones(2)}, Path(folder) / "net.pth")
    ...     read_weights(Path(folder) / "net.pth")
    {'weight': tensor([1., 1.])}
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"no weights file {str(path)!r}")
    try:
        found = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)
    except (OSError, RuntimeError, ValueError, EOFError, KeyError, pickle.UnpicklingError) as error:
        raise DataError(f"{str(path)!r} is not a readable weights file: {error}") from None
    return found


def load_weights(
    module: nn.Module,
    path: str | os.PathLike[str],
    *,
    prefix: str = "",
    ignore: Iterable[str] = (),
) -> None:
    """Load the weights of a module from a file, all or nothing.

    Parameters
    ----------
    module : nn.Module
        The module, changed in place.
    path : path-like
        See `read_weights`.
    prefix : str
        Only entries with this prefix are used, without it: ``"backbone."`` loads the backbone of a
        whole network.
    ignore : iterable of str
        Prefixes of entries that are skipped, such as a classifier.

    Raises
    ------
    DataError
        If names or shapes differ, with all that is missing, unexpected or of another shape.

    Examples
    --------
    >>> import tempfile
    >>> from safetensors.torch import save_file
    >>> layer, network = nn.Linear(2, 1), nn.Sequential(nn.Linear(2, 1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file(network.state_dict(), f"{folder}/network.safetensors")
    ...     load_weights(layer, f"{folder}/network.safetensors", prefix="0.")
    >>> bool((layer.weight == network[0].weight).all())
    True
    """
    ignored = tuple(ignore)
    given = {
        name[len(prefix) :]: value for name, value in read_weights(path).items() if name.startswith(prefix)
    }
    given = {name: value for name, value in given.items() if not (ignored and name.startswith(ignored))}
    expected = module.state_dict()
    # Old files have no batch counts, which only cumulative averages need.
    counts = {name: value for name, value in expected.items() if name.endswith("num_batches_tracked")}
    given = {**counts, **given}
    if problems := _differences(expected, given):
        raise DataError(f"the weights in {str(path)!r} do not fit:\n" + "\n".join(problems))
    module.load_state_dict(given)


def _differences(expected: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> list[str]:
    shapes = [
        f"{name} is {list(given[name].shape)}, not {list(value.shape)}"
        for name, value in expected.items()
        if name in given and given[name].shape != value.shape
    ]
    kinds = {
        "missing": sorted(expected.keys() - given.keys()),
        "unexpected": sorted(given.keys() - expected.keys()),
        "of another shape": shapes,
    }
    return [f"  {kind}: {_listed(names)}" for kind, names in kinds.items() if names]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return dict(load_file(path))
    except SafetensorError as error:
        raise ValueError(str(error)) from None


def _read_torch(path: Path) -> dict[str, Tensor]:
    found = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]  # as many training scripts save it
    if not isinstance(found, Mapping) or not all(isinstance(value, Tensor) for value in found.values()):
        raise ValueError("expected a state dict of named tensors")
    return dict(found)
