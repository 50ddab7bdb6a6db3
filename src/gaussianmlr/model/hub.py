"""Models on the Hugging Face Hub, up by its own `ModelHubMixin` and down by its cache (the extra `hub`).

What is downloaded is opened by `load`, as every other folder: as data that is checked, never as code. The
mixin's own `from_pretrained` would read a config before any check.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaussianmlr._utils.extras import require
from gaussianmlr.errors import DataError

require("a model on the Hub", "huggingface_hub")

from huggingface_hub import ModelHubMixin, snapshot_download  # noqa: E402
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError  # noqa: E402

if TYPE_CHECKING:
    from gaussianmlr.model.model import Model

__all__ = ["OnHub", "download"]

_FILES = ["config.json", "model.safetensors", "trees-*.ubj", "README.md"]


class OnHub(ModelHubMixin, library_name="gaussianmlr", tags=["multi-label-ranking"]):
    """A model that can be uploaded to the Hub; `Model.push_to_hub` uses it.

    Parameters
    ----------
    model : Model
        The model.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def save_pretrained(
        self, save_directory: str | Path, *, model_card_kwargs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        """Write the model to a folder, whole or not at all; only another model is replaced."""
        self.model.save(save_directory, overwrite=True, **(model_card_kwargs or {}))


def download(name: str, **options: Any) -> Path:
    """The folder of a model on the Hub, downloaded to its cache; options as of `snapshot_download`."""
    try:
        return Path(snapshot_download(name, allow_patterns=_FILES, **options))
    except HFValidationError:
        raise DataError(
            f"{name!r} is neither a folder nor a name on the Hub; expected a folder or 'user/model'"
        ) from None
    except LocalEntryNotFoundError:
        raise DataError(
            f"{name!r} is no folder and not in the cache of the Hub, which was not reached or not to be asked"
        ) from None
    except HfHubHTTPError as error:
        raise DataError(f"{name!r} on the Hub: {str(error).splitlines()[0]}") from None
