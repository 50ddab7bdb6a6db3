"""Transforms: against torch's own resize, numbers by hand, and the promise to be reproducible."""

import json

import numpy as np
import pytest
import torch

from gaussianmlr import DataError
from gaussianmlr.data import Augment, Preprocess
from gaussianmlr.data.transforms import _policy, _rand_augment


def smooth(height=61, width=97, channels=3):
    """A picture without noise: filters agree on it up to rounding."""
    y, x = np.mgrid[:height, :width]
    planes = [127 + 100 * np.sin(x / 9 + phase) * np.cos(y / 7) for phase in range(channels)]
    picture = np.stack(planes, axis=-1).round().astype(np.uint8)
    return picture[..., 0] if channels == 1 else picture


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(32, 48), (23, 31), (120, 200)])
def test_the_resize_of_a_whole_picture_is_that_of_torch(size, interpolation):
    preprocess = Preprocess(size=size, crop=None, interpolation=interpolation)
    pixels = smooth()
    planes = torch.from_numpy(pixels).permute(2, 0, 1)[None].float()
    expected = torch.nn.functional.interpolate(planes, size, mode=interpolation, antialias=True)[0]
    # The normalisation by hand.
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    expected = (expected.permute(1, 2, 0).numpy() / 255 - mean) / std
    found = preprocess(pixels)
    assert found.dtype == torch.float32
    assert found.shape == (3, *size)
    assert np.abs(found.permute(1, 2, 0).numpy() - expected).max() < 1.5 / 255 / 0.224


def test_a_crop_is_the_middle_of_the_resized_picture():
    # Shorter side 64 to 32, middle 28 of 32 kept: the textbook way in two steps.
    pixels = smooth(64, 96)
    found = Preprocess(size=(28, 28), crop=0.875).resize(pixels)
    whole = torch.from_numpy(pixels).permute(2, 0, 1)[None].float()
    resized = torch.nn.functional.interpolate(whole, (32, 48), mode="bilinear", antialias=True)
    expected = resized[0, :, 2:30, 10:38].permute(1, 2, 0).numpy()
    assert np.abs(found - expected).max() <= 1


@pytest.mark.parametrize(
    ("size", "crop", "picture", "box"),
    [
        ((10, 10), 1.0, (40, 80), (20, 0, 60, 40)),
        ((10, 10), 0.5, (40, 80), (30, 10, 50, 30)),
        ((10, 20), 1.0, (40, 40), (0, 10, 40, 30)),
        ((10, 10), None, (40, 80), (0, 0, 80, 40)),
        ((224, 224), 0.875, (256, 384), (80, 16, 304, 240)),
    ],
)
def test_the_part_that_is_kept(size, crop, picture, box):
    assert Preprocess(size=size, crop=crop).box(*picture) == pytest.approx(box)


def test_odd_pictures_keep_the_box_inside():
    for height, width in [(1, 1), (1, 500), (333, 7), (224, 225)]:
        found = Preprocess(size=(224, 160))(np.full((height, width, 3), 255, dtype=np.uint8))
        assert torch.allclose(found[0], torch.tensor((1 - 0.485) / 0.229))


def test_gray_and_own_statistics():
    preprocess = Preprocess(size=(4, 4), channels=1, mean=(0.25,), std=(0.5,))
    assert preprocess(np.full((9, 9), 51, dtype=np.uint8)).flatten().tolist() == pytest.approx([-0.1] * 16)
    assert Preprocess(channels=1).mean == (0.5,)


def test_settings_go_through_json():
    for preprocess in (Preprocess(), Preprocess(size=(8, 9), crop=None, channels=1, interpolation="lanczos")):
        assert Preprocess.from_dict(json.loads(json.dumps(preprocess.to_dict()))) == preprocess
    with pytest.raises(DataError, match=r"unknown settings of Preprocess: \['colour'\]"):
        Preprocess.from_dict({"colour": 3})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": (0, 3)}, r"size as \(height, width\)"),
        ({"size": (3,)}, r"size as \(height, width\)"),
        ({"crop": 0}, "crop above 0"),
        ({"crop": 1.5}, "crop above 0"),
        ({"channels": 4}, "channels is 1 or 3"),
        ({"mean": (0.5,)}, "for each of 3 channels"),
        ({"std": (1, 0, 1)}, "std > 0"),
        ({"interpolation": "cubic"}, "interpolation is one of"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(DataError, match=message):
        Preprocess(**settings)


@pytest.mark.parametrize(
    "pixels", [np.zeros((4, 4, 3)), np.zeros((4, 4), np.uint8), np.zeros((0, 4, 3), np.uint8)]
)
def test_other_pixels_are_refused(pixels):
    with pytest.raises(DataError, match=r"expected uint8 pixels \[h, w, 3\]"):
        Preprocess()(pixels)


AUGMENT = Augment(Preprocess(size=(48, 48)), seed=5)


def test_augmentation_depends_on_seed_epoch_and_index_alone():
    pixels = smooth()
    first = AUGMENT(pixels, epoch=1, index=2)
    torch.manual_seed(123)
    torch.rand(7)
    state = torch.get_rng_state()
    assert torch.equal(AUGMENT(pixels, epoch=1, index=2), first)
    assert torch.equal(torch.get_rng_state(), state)  # nobody else's draws move
    others = [
        AUGMENT(pixels, epoch=2, index=2),
        AUGMENT(pixels, epoch=1, index=3),
        AUGMENT(pixels, epoch=2, index=1),
        Augment(Preprocess(size=(48, 48)), seed=6)(pixels, epoch=1, index=2),
    ]
    assert not any(torch.equal(other, first) for other in others)


def test_augmented_pictures_differ_and_keep_shape_and_range():
    unit = AUGMENT.preprocess.unit(smooth())
    changes = []
    for index in range(60):
        found = AUGMENT.augment(unit, index=index)
        assert found.shape == unit.shape
        assert found.min() >= 0
        assert found.max() <= 1
        assert torch.isfinite(found).all()
        changes.append(float((found - unit).abs().mean()))
    assert min(changes) > 1e-3
    assert len({round(change, 6) for change in changes}) > 40
    assert np.mean(changes) < 0.3  # magnitude 10 of 40 leaves the picture recognisable


def test_stronger_magnitudes_change_more():
    unit = AUGMENT.preprocess.unit(smooth())

    def change(magnitude):
        augment = Augment(AUGMENT.preprocess, magnitude=magnitude)
        return np.mean([float((augment.augment(unit, index=i) - unit).abs().mean()) for i in range(40)])

    assert 0 == change(0) < change(5) < change(20) < change(39)


@pytest.mark.parametrize("level", [1 / 39, 10 / 39, 1.0])
@pytest.mark.parametrize("up", [True, False])
def test_operations_have_the_strength_asked_for(level, up):
    """Each operation's own parameters, as kornia draws them."""
    expected = {
        "rotate": ("degrees", 30 * level),
        "shear_x": ("shear_x", np.degrees(np.arctan(0.3)) * level),
        "shear_y": ("shear_y", np.degrees(np.arctan(0.3)) * level),
        "translate_x": ("translate_x", 0.45 * level * 40),
        "translate_y": ("translate_y", 0.45 * level * 30),
        "posterize": ("bits_factor", 8 - round(4 * level)),
        "solarize": ("thresholds", 1 - level),
        "brightness": ("brightness_factor", 1 + (0.9 if up else -0.9) * level),
        "contrast": ("contrast_factor", 1 + (0.9 if up else -0.9) * level),
        "color": ("saturation_factor", 1 + (0.9 if up else -0.9) * level),
        "sharpness": ("sharpness", 1 + (0.9 if up else -0.9) * level),
    }
    names = [policy[0][0] for policy in _policy(level, up)]
    assert {*expected, "auto_contrast", "equalize"} == set(names)
    module = _rand_augment(len(names), level, up)
    drawn = module.forward_parameters(torch.Size([1, 3, 30, 40]))
    assert len(drawn) == len(names)
    order = [name for name, _ in module.named_children()]
    for item in drawn:
        name = names[order.index(item.name)]
        if name in expected:
            key, value = expected[name]
            assert abs(float(item.data[0].data[key].flatten()[0])) == pytest.approx(value, rel=1e-4, abs=1e-5)


def test_gray_pictures_are_augmented_too():
    gray = Augment(Preprocess(size=(32, 32), channels=1))
    pixels = smooth(channels=1)
    assert gray(pixels, index=1).shape == (1, 32, 32)
    assert gray.channels == 1
    found = [gray(pixels, index=i) for i in range(5)]
    assert not torch.equal(found[0], found[1])


@pytest.mark.parametrize(
    "settings", [{"operations": 0}, {"operations": 14}, {"magnitude": 40}, {"magnitude": -1}, {"seed": -1}]
)
def test_bad_augmentation_settings(settings):
    with pytest.raises(DataError, match="expected"):
        Augment(**settings)
