"""Contact sheets show the images, their boxes and their orders."""

import itertools

import numpy as np
import pytest
from PIL import Image

from gaussianmlr.data import SETTINGS, RankedMNIST, contact_sheet
from gaussianmlr.data.ranked_mnist import sheet
from gaussianmlr.errors import DataError


def test_a_sheet_shows_the_images_with_their_boxes(tmp_path):
    page = contact_sheet("color-s", rows=2, columns=3, digits="embedded", out=tmp_path / "page.png")
    with Image.open(tmp_path / "page.png") as written:
        np.testing.assert_array_equal(np.asarray(written), np.asarray(page))
    batch = RankedMNIST("color-s", "test", digits="embedded").batch(range(6))
    pixels = np.asarray(page).astype(int)
    zoom = sheet._TILE / 224
    for cell in range(6):
        left = sheet._MARGIN + (cell % 3) * (sheet._TILE + sheet._GAP)
        top = sheet._TITLE + (cell // 3) * sheet._ROW
        for digit in np.flatnonzero(batch.ranks[cell]):
            x, y, side = batch.boxes[cell, digit] * zoom
            # The middle of the right edge is in the colour of the rank.
            edge = pixels[top + round(y + side / 2), left + round(x + side) - 1]
            rank, most = batch.ranks[cell, digit], batch.ranks[cell].max()
            assert edge.tolist() == list(sheet._shade(int(rank), int(most)))
            # Inside the box, away from frame and tag, it is the image, enlarged.
            u, v, s = batch.boxes[cell, digit]
            inside = batch.images[cell, :, v + s // 2 : v + s - 3, u + s // 2 : u + s - 3].mean(axis=(1, 2))
            a, b = round((v + s // 2) * zoom), round((v + s - 3) * zoom)
            c, d = round((u + s // 2) * zoom), round((u + s - 3) * zoom)
            drawn = pixels[top + a : top + b, left + c : left + d].mean(axis=(0, 1))
            np.testing.assert_allclose(drawn, inside, atol=12)


def test_the_family_has_one_row_a_set():
    rows = contact_sheet("all", columns=2, digits="embedded")
    two = contact_sheet(["gray-s", "color-b"], columns=2, digits="embedded")
    one_row = sheet._ROW + sheet._HEADER
    assert rows.height - two.height == (len(SETTINGS) - 2) * one_row
    assert rows.width == two.width


def test_colours_run_from_cool_to_warm():
    shades = [sheet._shade(rank, 10) for rank in range(1, 11)]
    assert len(set(shades)) == 10
    warmth = [red - blue for red, _, blue in shades]
    assert warmth[0] < 0 < warmth[-1]
    assert sheet._shade(1, 1) == shades[-1]


def test_the_order_is_written_below_in_the_colours_of_the_boxes():
    page = np.asarray(contact_sheet("gray-s", rows=1, columns=1, digits="embedded"))
    caption = page[sheet._TITLE + sheet._TILE + 4 : sheet._TITLE + sheet._TILE + sheet._CAPTION]
    most = int(RankedMNIST("gray-s", "test", digits="embedded").batch([0]).ranks.max())
    assert most > 1
    places = [
        np.nonzero((caption == sheet._shade(rank, most)).all(axis=-1))[1] for rank in range(most, 0, -1)
    ]
    # Most significant first, from left to right.
    assert all(before.max() < after.min() for before, after in itertools.pairwise(places))


def test_mistakes_are_named():
    with pytest.raises(DataError, match="0 rows"):
        contact_sheet("gray-s", rows=0)
    with pytest.raises(DataError, match="no Ranked MNIST set 'gray'"):
        contact_sheet("gray")
    with pytest.raises(DataError, match="no set is named"):
        contact_sheet([])
