"""Contact sheets: a page of images with boxes, ranks and order texts, to see what a set looks like."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gaussianmlr._utils import files
from gaussianmlr._utils.extras import require
from gaussianmlr.data.ranked_mnist.digits import Digits
from gaussianmlr.data.ranked_mnist.sets import LABELS, Batch, RankedMNIST, Split
from gaussianmlr.data.ranked_mnist.settings import SETTINGS, Setting, get_setting
from gaussianmlr.errors import DataError

if TYPE_CHECKING:
    from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]

_TILE = 336
_GAP = 22
_MARGIN = 44
_CAPTION = 44
_ROW = _TILE + _CAPTION + _GAP
_HEADER = 30
_TITLE = 96
_PAPER: Colour = (16, 18, 24)
_INK: Colour = (236, 238, 244)
_FAINT: Colour = (138, 144, 160)
# From the least significant (cool) to the most significant (warm); even steps for the eye.
_RAMP: tuple[Colour, ...] = ((92, 116, 232), (48, 176, 206), (96, 204, 122), (238, 200, 66), (248, 116, 74))


def contact_sheet(
    name: str | Setting | Sequence[str | Setting],
    *,
    split: Split = "test",
    rows: int = 3,
    columns: int = 4,
    seed: int = 0,
    digits: Digits | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Image.Image:
    """Draw images of a set, or one row of each of several sets, with their boxes, ranks and orders.

    Parameters
    ----------
    name : str, Setting, or sequence of them
        One set, or ``"all"``, or several sets: one row each.
    split : {"train", "validation", "test"}
        Which images.
    rows, columns : int
        How many images; `rows` is for a single set.
    seed : int
        Seed of the set.
    digits : Digits, str or path, optional
        Digits to use, or where to find them.
    out : path-like, optional
        Where to write the page as PNG.

    Returns
    -------
    PIL.Image.Image
        The page.

    Examples
    --------
    >>> page = contact_sheet("gray-s", rows=1, columns=2, digits="embedded")
    >>> page.mode, page.width > page.height
    ('RGB', True)
    """
    if rows < 1 or columns < 1:
        raise DataError(f"the sheet has {rows} rows and {columns} columns; expected 1 or more of both")
    members = _members(name)
    single = isinstance(name, str | Setting) and len(members) == 1
    title, note = ("Ranked MNIST", "one row per set")
    if single:
        title, note = f"Ranked MNIST  {members[0].name}", _described(members[0])
    rows = rows if single else 1
    header = 0 if single else _HEADER
    height = len(members) * (header + rows * _ROW)
    page, draw = _page(title, f"{note}  ·  {split}, seed {seed}", height, columns)
    for at, setting in enumerate(members):
        top = _TITLE + at * (header + rows * _ROW)
        if header:
            draw.text((_MARGIN, top + 18), setting.name, _INK, _font(18), anchor="ls")
            after = _MARGIN + draw.textlength(setting.name, _font(18)) + 14
            draw.text((after, top + 18), _described(setting), _FAINT, _font(14), anchor="ls")
        data = RankedMNIST(setting, split, seed=seed, digits=digits)
        batch = data.batch(np.arange(rows * columns))
        for cell, text in enumerate(data.texts(batch.ranks)):
            left = _MARGIN + (cell % columns) * (_TILE + _GAP)
            above = top + header + (cell // columns) * _ROW
            _tile(page, draw, batch, cell, left, above)
            _caption(draw, batch.ranks[cell].tolist(), text, left, above + _TILE)
    if out is not None:
        with files.aside(out) as part:
            page.save(part, "PNG")
    return page


def _members(name: str | Setting | Sequence[str | Setting]) -> list[Setting]:
    if isinstance(name, str) and name == "all":
        return list(SETTINGS.values())
    if isinstance(name, str | Setting):
        return [get_setting(name)]
    if not name:
        raise DataError("no set is named; expected one or more")
    return [get_setting(one) for one in name]


def _described(setting: Setting) -> str:
    words = {"scale": "larger", "brightness": "brighter"}
    ranges = [
        f"{what} {low:g} to {high:g}"
        for what, (low, high) in (("scale", setting.scale), ("brightness", setting.brightness))
        if low < high
    ]
    return f"the {words[setting.factor]} the more significant  ·  {', '.join(ranges)}"


def _page(title: str, note: str, body: int, columns: int) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    require("a contact sheet", "PIL", extra="ranked-mnist")
    from PIL import Image, ImageDraw

    width = 2 * _MARGIN + columns * _TILE + (columns - 1) * _GAP
    page = Image.new("RGB", (width, _TITLE + body + _MARGIN // 2), _PAPER)
    draw = ImageDraw.Draw(page)
    draw.text((_MARGIN, 26), title, _INK, _font(26))
    draw.text((_MARGIN, 62), _fitted(note, 15, width - 2 * _MARGIN), _FAINT, _font(15))
    return page, draw


def _tile(page: Image.Image, draw: ImageDraw.ImageDraw, batch: Batch, row: int, left: int, top: int) -> None:
    """One image, and around every digit its box with its rank on a tag."""
    from PIL import Image

    pixels = np.moveaxis(batch.images[row], 0, -1)
    picture = Image.fromarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)).copy())
    page.paste(picture.resize((_TILE, _TILE), Image.Resampling.BICUBIC), (left, top))
    draw.rectangle((left - 1, top - 1, left + _TILE, top + _TILE), outline=(52, 56, 70))
    zoom = _TILE / pixels.shape[0]
    for digit in np.argsort(batch.ranks[row]):
        rank = int(batch.ranks[row, digit])
        if not rank:
            continue
        x, y, side = (float(value) * zoom for value in batch.boxes[row, digit])
        colour = _shade(rank, int(batch.ranks[row].max()))
        corner = (left + round(x), top + round(y))
        far = (left + round(x + side) - 1, top + round(y + side) - 1)
        draw.rounded_rectangle((*corner, *far), radius=4, outline=colour, width=2)
        # On the corner, to hide as little of a small digit as possible.
        _tag(draw, (max(left, corner[0] - 7), max(top, corner[1] - 8)), str(rank), colour)


def _tag(draw: ImageDraw.ImageDraw, corner: tuple[int, int], text: str, colour: Colour) -> None:
    wide = 12 + 7 * len(text)
    draw.rounded_rectangle((*corner, corner[0] + wide, corner[1] + 17), radius=4, fill=colour)
    draw.text((corner[0] + wide / 2, corner[1] + 9), text, _PAPER, _font(13), anchor="mm")


def _caption(draw: ImageDraw.ImageDraw, ranks: list[int], text: str, left: int, top: int) -> None:
    """The order below the image, every digit in the colour of its box, most significant first."""
    x, baseline = float(left), top + 26
    for word in text.split():
        is_digit = word in LABELS
        colour = _shade(ranks[LABELS.index(word)], max(ranks)) if is_digit else _FAINT
        shown = word if is_digit else f" {word} "
        draw.text((x, baseline), shown, colour, _font(19), anchor="ls")
        x += draw.textlength(shown, _font(19))


def _shade(rank: int, most: int) -> Colour:
    """Warm for the most significant, cool for the least; a digit alone is the most significant."""
    place = 1.0 if most == 1 else (rank - 1) / (most - 1)
    at = place * (len(_RAMP) - 1)
    low = min(int(at), len(_RAMP) - 2)
    share = at - low
    first, second = _RAMP[low], _RAMP[low + 1]
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second))
    return red, green, blue


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _fitted(text: str, size: int, width: int) -> str:
    """The text, its end cut off where the page is too narrow."""
    while text and _font(size).getlength(text) > width:
        text = text[:-2].rstrip() + "…"
    return text
