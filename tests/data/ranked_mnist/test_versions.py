"""Versions of digits against a plain version in floating point, scipy, and what MNIST promises of a digit."""

import hashlib
import math

import numpy as np
import pytest
from scipy import ndimage

from gaussianmlr.data import RankedMNIST, load_digits
from gaussianmlr.data.ranked_mnist.versions import draw_versions
from gaussianmlr.errors import DataError
from support.plain_mnist import WORD, scramble

GOLDEN = 0x9E3779B97F4A7C15
KEY = int.from_bytes(hashlib.blake2b(b"versions of digits|1", digest_size=8).digest(), "little")
# Of the first three versions of every 37th embedded training digit; the same on every machine.
SUM = "7777202d7d7ae86f5933e2c27dc50990c31a9e8fd3c4f55adc54a806ae90ff2c"


@pytest.fixture(scope="module")
def images():
    return load_digits("train", "embedded").images


def extent(image):
    """The larger of width and height between the places where profiles of maxima cross 128."""
    found = []
    for axis in (0, 1):
        profile = np.concatenate([[0.0], np.asarray(image, float).max(axis), [0.0]])
        there = np.flatnonzero(profile >= 128)
        first, last = there[0], there[-1]
        left = first - (profile[first] - 128) / (profile[first] - profile[first - 1])
        right = last + (profile[last] - 128) / (profile[last] - profile[last + 1])
        found.append(right - left)
    return max(found)


def plain(source, index, version):
    """A version by sines, matrices and scipy's interpolation."""
    state = scramble(KEY ^ scramble((index << 32) + version))

    def uniform(low, high):
        nonlocal state
        state = (state + GOLDEN) & WORD
        return low + (high - low) * (scramble(state) >> 11) / 2**53

    angle = 2 * math.atan(uniform(-0.13, 0.13))
    shear, width = uniform(-0.3, 0.3), uniform(0.8, 1.2)
    spin = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    turn = spin @ [[1, shear], [0, 1]]
    turn[0] *= width
    bend = np.array([[[uniform(-1.4, 1.4) for _ in range(5)] for _ in range(5)] for _ in range(2)])
    amount = uniform(-0.35, 0.7)
    cross = ndimage.generate_binary_structure(2, 1)
    change = ndimage.grey_dilation if amount > 0 else ndimage.grey_erosion
    near = change(source.astype(float), footprint=cross, mode="nearest")
    thick = source + abs(amount) * (near - source)

    def drawn(side, place, ratio):
        y, x = np.mgrid[:side, :side].astype(float)
        x, y = (x - place[0]) * ratio, (y - place[1]) * ratio
        knots = [np.clip(v + 14, 0, 28) * 4 / 28 for v in (y, x)]
        moved = [ndimage.map_coordinates(one, knots, order=1) for one in bend]
        across = 13.5 + turn[0, 0] * x + turn[0, 1] * y + moved[0]
        down = 13.5 + turn[1, 0] * x + turn[1, 1] * y + moved[1]
        return ndimage.map_coordinates(thick, [down, across], order=1, mode="grid-constant")

    wide = drawn(44, (21.5, 21.5), 1.0)
    ratio = extent(np.rint(wide)) / extent(source)
    down, across = (at - 21.5 for at in ndimage.center_of_mass(wide))
    y, x = ndimage.center_of_mass(source)
    return drawn(28, (x - across / ratio, y - down / ratio), ratio)


@pytest.mark.slow
@pytest.mark.parametrize("index", [5, 399, 418, 1203, 2900, 3999])
def test_versions_are_those_of_the_plain_version(images, index):
    drawn, where = draw_versions(images, np.arange(index * 10, index * 10 + 10, dtype=np.int32), 10)
    np.testing.assert_array_equal(where, np.arange(10))
    np.testing.assert_array_equal(drawn[0], images[index])
    for version in range(1, 10):
        error = np.abs(drawn[version] - plain(images[index], index, version))
        assert error.mean() < 0.6
        assert error.max() < 12  # of 255: a slope times a hundredth of a pixel
        assert np.abs(drawn[version].astype(int) - images[index]).mean() > 2  # a version is another image


def test_versions_keep_size_and_centre(images):
    index = np.arange(0, 4000, 40)
    drawn, _ = draw_versions(images, (index[:, None] * 10 + np.arange(10)).astype(np.int32), 10)
    for image, versions in zip(images[index], drawn.reshape(-1, 10, 28, 28)):
        sizes = [extent(one) / extent(image) for one in versions]
        np.testing.assert_allclose(np.median(sizes), 1, atol=0.02)
        centres = np.array([ndimage.center_of_mass(one) for one in versions])
        assert (
            np.abs(centres - ndimage.center_of_mass(image)).max() < 0.7
        )  # what reaches over the edge is cut


def test_versions_are_those_of_every_machine(images):
    numbers = (np.arange(0, 4000, 37)[:, None] * 10 + np.arange(3)).astype(np.int32)
    drawn, _ = draw_versions(images, numbers, 10)
    assert hashlib.sha256(drawn.tobytes()).hexdigest() == SUM


def test_a_blank_image_stays_blank():
    drawn, where = draw_versions(np.zeros((1, 28, 28), np.uint8), np.array([3, -1, 3], np.int32), 5)
    assert not drawn.any()
    np.testing.assert_array_equal(where, [0, -1, 0])


def test_a_set_with_versions_draws_from_them_and_changes_nothing_else():
    plainly = RankedMNIST("gray-s", "train", digits="embedded")
    several = RankedMNIST("gray-s", "train", digits="embedded", versions=10)
    one, two = plainly.recipes(range(300)), several.recipes(range(300))
    there = two.digit >= 0
    assert set((two.digit[there] % 10).tolist()) == set(range(10))
    labels = several.digits.labels
    np.testing.assert_array_equal(labels[two.digit[there] // 10], np.nonzero(there)[1])
    held_out = RankedMNIST("gray-s", "validation", digits="embedded").recipes(range(2000)).digit
    assert not set(two.digit[there] // 10) & set(held_out[held_out >= 0].tolist())  # no leak between splits
    for name in ("boxes", "ranks", "scale"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    images = several.batch(range(4)).images
    assert (images != plainly.batch(range(4)).images).any()
    np.testing.assert_array_equal(several.fresh(1).batch([3]).images, several.batch([60_003]).images)
    assert several.fingerprint() == plainly.fingerprint() + " versions=10"


@pytest.mark.parametrize("versions", [0, -1, 10_001, 2.5, True])
def test_strange_numbers_of_versions_are_refused(versions):
    with pytest.raises(DataError, match="versions is"):
        RankedMNIST("gray-s", digits="embedded", versions=versions)
