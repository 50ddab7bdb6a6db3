"""Models of the package transformers, for pictures and for texts."""

from __future__ import annotations

from typing import Any

from gaussianmlr.errors import DataError

__all__ = ["load_transformer"]


def load_transformer(code: Any, name: str, pretrained: bool, local_only: bool) -> tuple[Any, Any]:
    """The config and the network of a name or folder; `code` is the package."""
    try:
        # Code that comes with a model is never run, and the user is not asked to run it.
        known = {"local_files_only": local_only, "trust_remote_code": False}
        config = code.AutoConfig.from_pretrained(name, **known)
        if pretrained:
            network = code.AutoModel.from_pretrained(name, config=config, **known)
        else:
            network = code.AutoModel.from_config(config, trust_remote_code=False)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise DataError(f"cannot load {name!r} through transformers: {error}") from None
    return config, network
