"""Texts as features, for pipelines of people's own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gaussianmlr.data.cells import is_gap
from gaussianmlr.data.inputs import Inputs, encoding_of, table_inputs
from gaussianmlr.data.matrices import Read, read_column
from gaussianmlr.data.tokens import TextCode, default_encoder, is_encoder, tokens_of
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.estimators.targets import FloatArray
from gaussianmlr.model.network import texts_of
from gaussianmlr.training.features import compute_features

__all__ = ["TextFeatures", "as_texts"]


class TextFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features of texts by a frozen encoder.

    Parameters
    ----------
    encoder : str, optional
        ``"text:minilm"`` (English, 384 features, extra ``texts``); ``"text:tfidf"``, which learns its terms
        from the texts of `fit`; or ``"hf:NAME"``, a model of the transformers library. MiniLM by default
        where it is installed, else TF-IDF.

    Attributes
    ----------
    encoder_ : str
        The encoder in use.
    n_features_out_ : int
        Number of features.

    Examples
    --------
    >>> features = TextFeatures("text:tfidf").fit(["so happy", "happy", "so sad"])
    >>> features.transform(["happy", "unheard of"]).tolist(), features.get_feature_names_out().tolist()
    ([[1.0, 0.0], [0.0, 0.0]], ['happy', 'so'])
    """

    def __init__(self, encoder: str | None = None) -> None:
        self.encoder = encoder

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the terms of TF-IDF; pretrained encoders learn nothing.

        Parameters
        ----------
        X : list, Series or array of str, or frame or array with one column of them
            Texts; None is an empty one.
        y : object
            Not used.
        """
        encoder = default_encoder() if self.encoder is None else self.encoder
        if not isinstance(encoder, str) or not is_encoder(encoder):
            raise DataError(
                f"encoder is {shorten(encoder)}; expected 'text:minilm', 'text:tfidf' or 'hf:NAME'"
            )
        found: Read = read_column(np.array(as_texts(X), dtype=object), "text")
        assert found.column is not None
        self.encoder_ = encoder
        self.inputs_: Inputs = table_inputs(found.values[:, None], ["text"], (found.column,), encoder=encoder)
        self.n_features_out_ = texts_of(self.inputs_).features
        return self

    def transform(self, X: Any) -> FloatArray:
        """Features [N, F] of texts.

        Parameters
        ----------
        X : as of `fit`
            Texts.
        """
        check_is_fitted(self)
        code = parse_code(self.inputs_)
        rows = np.array([tokens_of(text, code) for text in as_texts(X)], dtype=np.float32)
        found: FloatArray = compute_features(texts_of(self.inputs_), rows).double().numpy()
        return found

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Terms, or the encoder's name and numbers."""
        check_is_fitted(self)
        code = parse_code(self.inputs_)
        if code.weights:
            return np.array(code.vocabulary.split("\n"), dtype=object)
        return np.array([f"{self.encoder_} {place}" for place in range(self.n_features_out_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def as_texts(X: Any) -> list[str]:
    """Texts in any form that `TextFeatures` takes.

    Examples
    --------
    >>> as_texts(np.array([["so happy"], [None]], dtype=object))
    ['so happy', '']
    """
    if isinstance(X, str):
        raise DataError(f"X is the single text {shorten(X)}; expected a list of texts")
    values = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=object)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or not len(values):
        raise DataError(f"X has shape {list(values.shape)}; expected texts in one column, at least one")
    for row, one in enumerate(values):
        if not isinstance(one, str) and not is_gap(one):
            raise DataError(f"X is {shorten(one)} in row {row}; expected a text")
    return ["" if is_gap(one) else one for one in values.tolist()]


def parse_code(inputs: Inputs) -> TextCode:
    """How the only column of some inputs is coded."""
    (column,) = encoding_of(inputs) or ()
    assert column.text is not None
    return column.text
