"""Models on the Hugging Face Hub, by its own `ModelHubMixin` (the extra `hub`).

What is downloaded is opened by `load`, as every other folder: as data that is checked, never as code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gaussianmlr._utils.extras import require
from gaussianmlr.errors import DataError
from gaussianmlr.model.model import Model, load

require("a model on the Hub", "huggingface_hub")

from huggingface_hub import ModelHubMixin, snapshot_download  # noqa: E402
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError  # noqa: E402

__all__ = ["OnHub"]

_FILES = ["config.json", "model.safetensors", "trees-*.ubj", "README.md"]


class OnHub(ModelHubMixin, library_name="gaussianmlr", tags=["multi-label-ranking"]):
    """A model with the three methods of the Hub; `Model` has them too and calls these.

    Parameters
    ----------
    model : Model
        The model.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def save_pretrained(
        self, save_directory: str | Path, *, model_card_kwargs: dict[str, str] | None = None, **_: Any
    ) -> None:
        """Write the model to a folder, whole or not at all; only another model is replaced."""
        self.model.save(save_directory, overwrite=True, **(model_card_kwargs or {}))

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: Any) -> OnHub:
        """Open a folder, or what is downloaded from the Hub."""
        # The mixin's own opens config.json before it is checked.
        return cls._from_pretrained(model_id=str(pretrained_model_name_or_path), **options)

    @classmethod
    def _from_pretrained(
        cls, *, model_id: str, register: Iterable[Callable[..., Any]] = (), **options: Any
    ) -> OnHub:
        if Path(model_id).is_dir():
            return cls(load(model_id, register=register))
        try:
            folder = snapshot_download(model_id, allow_patterns=_FILES, **options)
        except HFValidationError:
            raise DataError(
                f"{model_id!r} is neither a folder nor a name on the Hub; expected a folder or 'user/model'"
            ) from None
        except LocalEntryNotFoundError:
            raise DataError(
                f"{model_id!r} is not in the cache, and the Hub was not reached or not to be asked"
            ) from None
        except HfHubHTTPError as error:
            raise DataError(f"{model_id!r} on the Hub: {str(error).splitlines()[0]}") from None
        return cls(load(folder, register=register))
