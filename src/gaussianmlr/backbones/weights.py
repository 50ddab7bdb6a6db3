"""Weights from files: read without pickle's powers, and with every mismatch named."""

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
        A ``.safetensors`` file, or what `torch.save` wrote of a state dict; the latter is read
        weights-only, so that no code in it can run.

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
        raise DataError(f"{str(path)!r} is no weights file that can be read: {error}") from None
    return found


def load_weights(
    module: nn.Module,
    path: str | os.PathLike[str],
    *,
    prefix: str = "",
    ignore: Iterable[str] = (),
) -> None:
    """Fill a module from a file; all of it or nothing.

    Parameters
    ----------
    module : nn.Module
        The module, changed in place. A `Backbone` made for published weights has their names.
    path : path-like
        See `read_weights`.
    prefix : str
        Only entries that start so count, without it: ``"backbone."`` takes the backbone out of a
        whole network.
    ignore : iterable of str
        Entries of the file that start so are passed over, such as a classifier.

    Raises
    ------
    DataError
        When names or shapes differ, with all that is missing, unexpected or of another shape.

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
    # Files written before 2017 count no batches; the count serves only cumulative averages.
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
        raise ValueError("expected a state dict, names with tensors")
    return dict(found)
