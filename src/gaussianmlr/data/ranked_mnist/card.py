"""The data card of an exported set: what it is, how it was made, what it is for, and what it is not."""

from __future__ import annotations

from collections.abc import Sequence

from gaussianmlr._utils.tables import markdown_table
from gaussianmlr._version import __version__
from gaussianmlr.data.ranked_mnist.digits import describe_digits
from gaussianmlr.data.ranked_mnist.sets import RankedMNIST

__all__ = ["data_card"]

_LAYOUT = {
    "png": "`SPLIT/00000.png`, ... and `manifest.csv`: columns `image`, `split`, `ranking` and the truth",
    "npz": "`SPLIT.npz` with the arrays `images`, `ranks`, `scale`, `brightness` and `boxes`",
    "parquet": "`SPLIT.parquet` with the columns `image` (PNG bytes), `ranking` and the truth",
}
_CARD = """\
# Ranked MNIST: {name}

{low} to {high} different handwritten digits on a canvas of {canvas} x {canvas} pixels, {colour}. The
larger the {factor} of a digit, the more significant it is. The label of an image is the order of its
digits; digits that are not there are irrelevant.

{splits}

## Contents

- {layout}
- `about.json`: the setting, seeds and digits, from which the same bytes can be made again
- `SHA256SUMS`: checksums, for `sha256sum --check SHA256SUMS`

Ranks: 0 is absent, 1 the least significant digit, larger is more significant; as texts, `7 > 3 > 1`. The
truth about a digit is its `scale`, `brightness`, `left`, `top` and `side` in pixels, empty where it is
absent.

## How it was made

Drawn by gaussianmlr {version}: scale {scale}, brightness {brightness}, without overlap. {shared} Test
digits are from MNIST's test part.

## Use

For multi-label ranking where the significance behind an order is known: whether scores follow it, whether
what is constant keeps its score, whether uncertainty is right. Choose by validation images, which are
endless; measure on the test split once.

## Limits

- Overlaps are drawn again, which pulls scales down, the more the more digits there are.
- Where ranks follow scale, about 2.5 % of pairs of digits (7 % in gray-s-small) have the same side in
  pixels and different ranks: no model can order them.
- Digits of one style on black say nothing about photographs.

## Sources and terms

Digits: MNIST (LeCun, Cortes and Burges), free to use. The family of sets: Yesilkaynak, Dari, Mertan and
Unal, GaussianMLR: Learning Implicit Class Significance via Calibrated Multi-Label Ranking. These images
were drawn anew by the same rules; they are not those of the first implementation, which kept no seeds.
"""


def data_card(sets: Sequence[RankedMNIST], to: str) -> str:
    """The card as Markdown.

    Parameters
    ----------
    sets : sequence of RankedMNIST
        The splits that are exported, all of one setting.
    to : {"png", "npz", "parquet"}
        The form of the export.

    Examples
    --------
    >>> card = data_card([RankedMNIST("gray-s", "test", size=3, digits="embedded")], "png")
    >>> card.splitlines()[0]
    '# Ranked MNIST: gray-s'
    """
    setting, shared = sets[0].setting, any(one.shared_digits for one in sets)
    rows = []
    for one in sets:
        digits = describe_digits(one.digits, "test" if one.split == "test" else "train")
        rows.append([one.split, f"{len(one):,}", str(one.seed), f"{digits['name']} (MD5 {digits['md5']})"])
    own = "Train and validation images have different digits."
    return _CARD.format(
        name=setting.name,
        low=setting.count[0],
        high=setting.count[1],
        canvas=setting.canvas,
        colour="each of its own hue and saturation" if setting.colour else "gray",
        factor=setting.factor,
        splits="\n".join(markdown_table(["split", "images", "seed", "digits"], rows)),
        layout=_LAYOUT[to],
        version=__version__,
        scale=_range(setting.scale),
        brightness=_range(setting.brightness),
        shared="Train and validation images share their digits, as in the paper." if shared else own,
    )


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:g} alone" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}"
