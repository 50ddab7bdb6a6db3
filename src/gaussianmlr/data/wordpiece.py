"""WordPiece, as uncased networks of the BERT family read texts.

References
----------
J. Devlin et al., "BERT: Pre-training of deep bidirectional transformers for language understanding", 2019.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterator, Mapping

__all__ = ["split_words", "word_pieces"]

_LONGEST = 100  # characters of a word; a longer one is unknown
_PUNCTUATION = frozenset(string.punctuation)
_CONTROL = frozenset({"Cc", "Cf", "Co", "Cs"})
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def split_words(text: str) -> Iterator[str]:
    """Words and single punctuation marks, in lower case and without accents.

    Examples
    --------
    >>> list(split_words("Schöne  Grüße, don't!"))
    ['schone', 'gruße', ',', 'don', "'", 't', '!']
    """
    for word in _plain(text).split():
        start = 0
        for place, sign in enumerate(word):
            if _is_punctuation(sign):
                if start < place:
                    yield word[start:place]
                yield sign
                start = place + 1
        if start < len(word):
            yield word[start:]


def word_pieces(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """The longest pieces of a word from the left; later ones begin with ``##``.

    Examples
    --------
    >>> word_pieces("playing", {"[UNK]": 0, "play": 1, "##ing": 2})
    [1, 2]
    >>> word_pieces("played", {"[UNK]": 0, "play": 1, "##ing": 2})
    [0]
    """
    if len(word) > _LONGEST:
        return [vocabulary["[UNK]"]]
    found, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = vocabulary.get(word[start:end] if start == 0 else f"##{word[start:end]}")
            if piece is not None:
                break
        else:
            return [vocabulary["[UNK]"]]
        found.append(piece)
        start = end
    return found


def _plain(text: str) -> str:
    """Without control characters and accents, in lower case, ideographs apart."""
    if text.isascii():
        return "".join(sign if sign.isprintable() else _blank(sign) for sign in text).lower()
    signs = []
    for sign in text:
        if sign == "\ufffd" or (unicodedata.category(sign) in _CONTROL and sign not in "\t\n\r"):
            continue
        code = ord(sign)
        if code >= 0x3400 and any(low <= code <= high for low, high in _IDEOGRAPHS):
            sign = f" {sign} "
        signs.append(sign)
    apart = unicodedata.normalize("NFD", "".join(signs))
    # One character at a time: in Python a sigma at the end of a word has another lower case.
    return "".join(sign.lower() for sign in apart if unicodedata.category(sign) != "Mn")


def _blank(sign: str) -> str:
    return " " if sign in "\t\n\r" else ""


def _is_punctuation(sign: str) -> bool:
    return sign in _PUNCTUATION or (not sign.isascii() and unicodedata.category(sign)[0] == "P")
