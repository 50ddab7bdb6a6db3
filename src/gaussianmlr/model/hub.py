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

__all__ = ["OnHub", "downloaded"]

_FILES = ["config.json", "model.safetensors", "trees-*.ubj", "README.md"]


class OnHub(ModelHubMixin, library_name="gaussianmlr", tags=["multi-label-ranking"]):
    """A model that can be pushed; what is uploaded is the folder that `Model.save` writes.

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


def downloaded(name: str | Path, **options: Any) -> Path:
    """The folder of a name on the Hub, from its cache or downloaded to it."""
    try:
        return Path(snapshot_download(str(name), allow_patterns=_FILES, **options))
    except HFValidationError:
        reason = "is neither a folder nor a name on the Hub; expected a folder or 'user/model'"
    except LocalEntryNotFoundError:
        reason = "is not in the cache, and the Hub was not reached or not to be asked"
    except HfHubHTTPError as error:
        reason = f"on the Hub: {str(error).splitlines()[0]}"
    raise DataError(f"{str(name)!r} {reason}")
