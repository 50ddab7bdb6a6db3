"""Adjusting sequences and calibration sets, by what the facts say of them."""

from dataclasses import replace

import numpy as np
import pytest

from gaussianmlr.data import SETTINGS, adjusting_sequences, calibration_set, load_digits
from gaussianmlr.errors import DataError

ENDS = {"gray-s-small": (1, 1.25, 1.5)}


def ends(name):
    return ENDS.get(name, (1, 2, 3) if SETTINGS[name].factor == "scale" else (0, 0.5, 1))


@pytest.mark.parametrize("name", SETTINGS)
def test_sequences_of_every_set(name):
    setting = SETTINGS[name]
    probe = adjusting_sequences(name, digits="embedded")
    assert len(probe) == 50
    assert probe.significance.shape == (50, 50, 3)
    assert probe.labels.shape == (50, 3)
    assert all(len(set(labels)) == 3 for labels in probe.labels.tolist())
    low, middle, high = ends(name)
    track = np.stack([np.linspace(low, high, 50), np.full(50, middle), np.linspace(high, low, 50)], axis=1)
    np.testing.assert_allclose(probe.significance, np.broadcast_to(track, (50, 50, 3)), atol=1e-12)

    table = probe.recipes
    rows = np.arange(2500).reshape(50, 50, 1)
    columns = probe.labels[:, None]
    box = table.boxes[rows, columns]
    centre = box[..., :2] + box[..., 2:] / 2
    expected = np.array([(112, 56), (56, 168), (168, 168)])
    assert np.abs(centre - expected).max() <= 0.5
    np.testing.assert_array_equal(box[..., 2], np.floor(28 * table.scale[rows, columns]))
    np.testing.assert_array_equal(getattr(table, setting.factor)[rows, columns], probe.significance)
    assert ((table.digit >= 0).sum(axis=1) == 3).all()
    # One image of each digit a sequence, of the class it says.
    used = table.digit[rows, columns]
    assert (used == used[:, :1]).all()
    np.testing.assert_array_equal(load_digits("test", "embedded").labels[used[:, 0]], probe.labels)

    other = table.brightness if setting.factor == "scale" else table.scale
    values = other[rows, columns]
    if setting.mix:
        span = setting.brightness if setting.factor == "scale" else setting.scale
        assert len(np.unique(values)) == values.size
        assert values.mean() == pytest.approx(sum(span) / 2, abs=0.03)
    else:
        assert (values == 1).all()
    assert len(np.unique(table.hue[rows, columns])) == values.size  # colours are redrawn on every frame


def test_ranks_follow_the_significances_and_meet_in_the_middle():
    probe = adjusting_sequences("gray-s", count=2, frames=5, digits="embedded")
    ranks = probe.ranks.reshape(2, 5, 10)
    for sequence, labels in enumerate(probe.labels):
        assert ranks[sequence][:, labels].tolist() == [[1, 2, 3], [1, 2, 3], [1, 1, 1], [3, 2, 1], [3, 2, 1]]
        assert np.count_nonzero(ranks[sequence]) == 15


def test_a_sequence_is_a_part_of_all_images():
    probe = adjusting_sequences("color-b-mix", count=3, frames=4, digits="embedded")
    assert probe.images.shape == (12, 3, 224, 224)
    np.testing.assert_array_equal(np.concatenate(list(probe)), probe.images)
    np.testing.assert_array_equal(probe[-1], probe.images[8:])
    with pytest.raises(IndexError):
        probe[3]


def test_the_first_digit_grows_and_the_third_shrinks():
    probe = adjusting_sequences("gray-s", count=5, frames=11, digits="embedded")
    for images in probe:
        light = images[:, 0].astype(int)
        first = light[:, :112].sum(axis=(1, 2))
        second, third = light[:, 112:, :112].sum(axis=(1, 2)), light[:, 112:, 112:].sum(axis=(1, 2))
        assert (np.diff(first) > 0).all()
        assert (np.diff(third) < 0).all()
        assert (second == second[0]).all()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("scale", (1, 1.5, 2, 2.5)),
        ("brightness", (0.25, 0.5, 0.75, 1)),
        ("gray-s", (1, 1.5, 2, 2.5)),
        ("gray-b-mix", (0.25, 0.5, 0.75, 1)),
    ],
)
def test_calibration_sets(name, values):
    probe = calibration_set(name, digits="embedded")
    assert probe.images.shape == (50, 1, 224, 224)
    np.testing.assert_array_equal(probe.significance, np.broadcast_to(values, (50, 1, 4)))
    assert all(len(set(labels)) == 4 for labels in probe.labels.tolist())
    table, rows = probe.recipes, np.arange(50)[:, None]
    by_scale = probe.setting.factor == "scale"
    factor, other = (table.scale, table.brightness) if by_scale else (table.brightness, table.scale)
    np.testing.assert_array_equal(factor[rows, probe.labels], np.broadcast_to(values, (50, 4)))
    assert (other[rows, probe.labels] == 1).all()
    box = table.boxes[rows, probe.labels]
    corners = {tuple(map(tuple, image)) for image in np.round(box[..., :2] + box[..., 2:] / 2).astype(int)}
    quadrants = {(56, 56), (56, 168), (168, 56), (168, 168)}
    assert all(set(image) == quadrants for image in corners)
    assert len(corners) > 12  # of the 24 ways to shuffle
    assert (probe.ranks[rows, probe.labels] == [1, 2, 3, 4]).all()


def test_probes_depend_on_the_seed_and_nothing_else():
    one, again, other = (calibration_set("scale", seed=seed, digits="embedded") for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.images, again.images)
    assert (one.labels != other.labels).any()


def test_mistakes_are_named():
    with pytest.raises(DataError, match="expected 1 and 2 or more"):
        adjusting_sequences("gray-s", frames=1)
    with pytest.raises(DataError, match="count is 0"):
        calibration_set("scale", count=0)
    with pytest.raises(DataError, match="do not fit a canvas of 88"):
        adjusting_sequences(replace(SETTINGS["gray-s"], canvas=88), digits="embedded")


def test_sequences_of_chosen_digits_that_keep_their_colours():
    asked = {"count": 2, "frames": 5, "digits": "embedded"}
    probe = adjusting_sequences("color-b-mix", labels=(7, 0, 4), steady=True, **asked)
    assert probe.labels.tolist() == [[7, 0, 4]] * 2
    table, rows = probe.recipes, np.arange(10).reshape(2, 5, 1)
    columns = probe.labels[:, None, :]
    for name in ("hue", "saturation", "scale", "digit"):
        values = getattr(table, name)[rows, columns]
        assert (values == values[:, :1]).all()
        assert len(np.unique(values)) == 6  # others in the other sequence, and for every digit
    np.testing.assert_array_equal(table.brightness[rows, columns], probe.significance)
    restless = adjusting_sequences("color-b-mix", labels=(7, 0, 4), **asked)
    np.testing.assert_array_equal(restless.recipes.hue[::5], table.hue[::5])  # the first frames are the same
    assert (restless.recipes.hue[rows, columns][:, 1:] != table.hue[rows, columns][:, 1:]).all()


@pytest.mark.parametrize("labels", [(1, 2), (1, 2, 2), (1, 2, 10), (1, 2, 3, 4)])
def test_three_different_digits_are_asked_for(labels):
    with pytest.raises(DataError, match="expected three different digits"):
        adjusting_sequences("gray-s", labels=labels, digits="embedded")
