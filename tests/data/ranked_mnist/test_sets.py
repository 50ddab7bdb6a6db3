"""Ranked MNIST against a plain version of it, and against the facts known about it."""

import colorsys
import hashlib
import itertools
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest

from gaussianmlr.data import SETTINGS, Digits, RankedMNIST, Recipes, Setting, load_digits
from gaussianmlr.data.ranked_mnist.drawing import hsv_to_rgb, render
from gaussianmlr.data.ranked_mnist.random_numbers import stream_key, uniforms
from gaussianmlr.errors import DataError
from support import plain_mnist as plain

QUICK = Setting(name="quick", factor="scale", scale=(0.5, 1.5), canvas=112, count=(1, 5))
CROWDED = Setting(name="crowded", factor="scale", scale=(2.0, 3.0), canvas=150, count=(10, 10))
EVERY = [*SETTINGS.values(), QUICK, CROWDED]


def named(setting):
    return setting.name


def made(name, split="train", **options):
    return RankedMNIST(name, split, digits="embedded", **options)


def pools(split):
    """The digits of a split, by the rule: of each class, every sixth is for validation."""
    labels = load_digits("test" if split == "test" else "train", "embedded").labels
    found = []
    for digit in range(10):
        of_class = [i for i, label in enumerate(labels) if label == digit]
        if split != "test":
            of_class = [i for n, i in enumerate(of_class) if (n % 6 == 5) == (split == "validation")]
        found.append(of_class)
    return found


@pytest.mark.parametrize("setting", EVERY, ids=named)
@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_recipes_are_those_of_the_plain_version(setting, split):
    where = [0, 1, 2, 17, 59_999, 10**15]
    table = made(setting, split, seed=3).recipes(where)
    for row, index in enumerate(where):
        placed = plain.recipe(setting, 3, split, index, pools(split))
        assert set(np.flatnonzero(table.digit[row] >= 0)) == set(placed)
        for digit, (image, *box, scale, light, hue, saturation) in placed.items():
            assert table.digit[row, digit] == image
            assert table.boxes[row, digit].tolist() == box
            got = [getattr(table, name)[row, digit] for name in ("scale", "brightness", "hue", "saturation")]
            assert got == [scale, light, hue, saturation]
        assert table.ranks[row].tolist() == plain.ranks_of(placed, setting.factor)


@pytest.mark.parametrize("setting", [s for s in EVERY if s is not QUICK], ids=named)
def test_images_are_those_of_pil_to_the_nearest_grey_level(setting):
    data = made(setting, "test", seed=5)
    digits = load_digits("test", "embedded").images
    batch = data.batch(np.arange(20))
    off = 0
    for index in range(20):
        placed = plain.recipe(setting, 5, "test", index, pools("test"))
        exact = plain.draw_image(placed, digits, setting.canvas, setting.colour)
        error = np.abs(batch.images[index] - exact)
        assert error.max() < 0.75  # half a level for rounding, the rest for fixed point
        off += np.count_nonzero(batch.images[index] != np.rint(exact))
    assert off / batch.images.size < 0.005


@pytest.mark.parametrize("side", [1, 7, 14, 20, 28, 29, 33, 56, 71, 84])
def test_resizing_is_torchs_bilinear_without_aligned_corners(side):
    """Also below 28 pixels, where PIL would smooth."""
    digits = load_digits("test", "embedded")
    setting = Setting(name="one", factor="scale", scale=(1 / 28, 3.5), canvas=128)
    table = Recipes.empty(1)
    table.digit[0, 4], table.boxes[0, 4], table.brightness[0, 4] = 417, (3, 5, side), 0.7
    got = render(setting, table, digits)[0, 0, 5 : 5 + side, 3 : 3 + side]
    source = torch.from_numpy(digits.images[417].astype(np.float64))[None, None]
    exact = torch.nn.functional.interpolate(source, (side, side), mode="bilinear", align_corners=False)
    assert np.abs(got - 0.7 * exact.numpy()[0, 0]).max() < 0.75


def test_a_digit_of_scale_and_brightness_one_is_the_digit():
    digits = load_digits("test", "embedded")
    table = Recipes.empty(2)
    table.digit[:, 0], table.boxes[:, 0], table.brightness[:, 0] = (7, 11), (50, 60, 28), 1.0
    page = render(SETTINGS["gray-b"], table, digits)
    np.testing.assert_array_equal(page[:, 0, 60:88, 50:78], digits.images[[7, 11]])
    assert page.sum() == digits.images[[7, 11]].sum()


def test_hsv_is_that_of_colorsys():
    h, s, v = np.random.default_rng(0).random((3, 500))
    h[:7] = np.arange(7) / 6
    expected = [colorsys.hsv_to_rgb(*values) for values in zip(h, s, v)]
    np.testing.assert_allclose(hsv_to_rgb(h, s, v), expected, atol=1e-15)


def test_recipes_outside_the_canvas_are_refused_not_drawn_into_other_memory():
    digits = load_digits("test", "embedded")
    for digit, box in ((0, (200, 0, 28)), (0, (0, 210, 20)), (0, (-1, 0, 28)), (1000, (0, 0, 28))):
        table = Recipes.empty(1)
        table.digit[0, 0], table.boxes[0, 0], table.brightness[0, 0] = digit, box, 1.0
        with pytest.raises(DataError, match="outside the digits or the canvas"):
            render(SETTINGS["gray-s"], table, digits)
    with pytest.raises(DataError, match=r"expected contiguous uint8 \(1, 1, 224, 224\)"):
        render(SETTINGS["gray-s"], Recipes.empty(1), digits, np.zeros((1, 3, 224, 224), np.uint8))


# --- The facts -----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=list(SETTINGS))
def table(request):
    return SETTINGS[request.param], made(request.param).recipes(np.arange(6000))


def test_places_and_sides(table):
    setting, recipes = table
    there = recipes.digit >= 0
    left, top, side = (recipes.boxes[..., part][there] for part in range(3))
    np.testing.assert_array_equal(side, np.floor(28 * recipes.scale[there]))
    for place in (left, top):
        assert (place >= 1).all()
        assert (place <= 222 - side).all()
    assert not recipes.boxes[~there].any()
    if setting.scale == (1.0, 1.0):
        assert left.min() == 1
        assert left.max() == 222 - 28


def test_no_boxes_overlap(table):
    _, recipes = table
    for boxes in recipes.boxes[:300]:
        present = boxes[boxes[:, 2] > 0]
        assert not any(plain.overlap(a, b) for a, b in itertools.combinations(present.tolist(), 2))


def test_numbers_and_classes_of_digits_are_uniform(table):
    _, recipes = table
    counts = (recipes.digit >= 0).sum(axis=1)
    assert chisquare(np.bincount(counts, minlength=11)[1:]).pvalue > 1e-4
    assert chisquare((recipes.digit >= 0).sum(axis=0)).pvalue > 1e-4
    labels = load_digits("train", "embedded").labels
    rows, digits = np.nonzero(recipes.digit >= 0)
    np.testing.assert_array_equal(labels[recipes.digit[rows, digits]], digits)


def test_factors_have_their_distributions(table):
    setting, recipes = table
    # A digit alone is never rejected, so its factors show what is drawn.
    alone = (recipes.digit >= 0).sum(axis=1) == 1
    for name in ("scale", "brightness", "hue", "saturation"):
        low, high = getattr(setting, name, {"hue": (0, 1), "saturation": (0.5, 1)}.get(name))
        values = getattr(recipes, name)[alone]
        values = values[~np.isnan(values)]
        assert len(values) == alone.sum()
        if low == high:
            assert (values == low).all()
        else:
            assert kstest(values, "uniform", (low, high - low)).pvalue > 1e-4


def test_ranks_follow_the_real_factor(table):
    setting, recipes = table
    factor = getattr(recipes, setting.factor)
    present = recipes.digit >= 0
    np.testing.assert_array_equal(np.isnan(factor), ~present)
    order = np.argsort(np.where(present, factor, -1.0), axis=1)
    expected = np.zeros_like(recipes.ranks)
    absent = (~present).sum(axis=1, keepdims=True)
    np.put_along_axis(expected, order, np.maximum(np.arange(1, 11) - absent, 0), axis=1)
    np.testing.assert_array_equal(recipes.ranks, expected)


@pytest.mark.parametrize(("name", "share"), [("gray-s", 0.025), ("gray-s-small", 0.07)])
def test_some_pairs_cannot_be_told_apart(name, share):
    recipes = made(name).recipes(np.arange(8000))
    side = recipes.boxes[..., 2]
    same = total = 0
    for a, b in itertools.combinations(range(10), 2):
        both = (side[:, a] > 0) & (side[:, b] > 0)
        assert (recipes.ranks[both, a] != recipes.ranks[both, b]).all()
        same += np.count_nonzero(side[both, a] == side[both, b])
        total += np.count_nonzero(both)
    assert same / total == pytest.approx(share, rel=0.1)


def test_rejection_pulls_scales_down():
    assert np.nanmean(made("gray-s").recipes(np.arange(8000)).scale) == pytest.approx(1.72, abs=0.015)


def test_a_digit_without_room_is_dropped_and_ranks_stay_dense():
    recipes = made(CROWDED).recipes(np.arange(300))
    counts = (recipes.digit >= 0).sum(axis=1)
    assert counts.max() < 10
    for ranks, count in zip(recipes.ranks, counts):
        assert sorted(ranks)[10 - count :] == list(range(1, count + 1))
    np.testing.assert_array_equal(recipes.ranks > 0, recipes.digit >= 0)


def test_equal_values_share_a_rank():
    from gaussianmlr.data.ranked_mnist import kernels as _kernels

    ranks = np.zeros(10, np.int64)
    values = np.array([0.5, 0.1, 0.5, np.nan, 0.9, 0.1, 0, 0, 0, 0])
    _kernels._rank(values, np.array([4, 0, 1, 2, 5]), 5, ranks)
    assert ranks.tolist() == [2, 1, 2, 0, 3, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("family", ["gray", "color"])
def test_mix_sets_share_images_and_differ_in_labels(family):
    one, two = (made(f"{family}-{factor}-mix").batch(np.arange(50)) for factor in "sb")
    np.testing.assert_array_equal(one.images, two.images)
    assert (one.ranks != two.ranks).any()
    np.testing.assert_array_equal(one.ranks > 0, two.ranks > 0)


def test_train_and_validation_digits_are_disjoint_unless_shared():
    used = {
        (split, shared): set(
            made("gray-b", split, shared_digits=shared).recipes(np.arange(20_000)).digit.ravel().tolist()
        )
        - {-1}
        for split in ("train", "validation")
        for shared in (False, True)
    }
    assert not used["train", False] & used["validation", False]
    assert used["train", False] | used["validation", False] == set(range(4000))
    assert used["train", True] == used["validation", True] == set(range(4000))


def test_sets_seeds_and_splits_are_different():
    seen = set()
    for name, split, seed in itertools.product(("gray-s", "gray-b", "color-s"), ("train", "test"), (0, 1)):
        seen.add(made(name, split, seed=seed).recipes([0, 1, 2]).boxes.tobytes())
    assert len(seen) == 12


# --- The same bytes in any order, process and machine -----------------------------------------------

SUMS = {
    "gray-s": "3975c187f690ab451befcc7065b5b086535275a9a4752e0ee0c9682d2e58e1c2",
    "gray-b": "5786be6ee667b0492d9d66a39fd0e253de879d4d04eb95ff44575ca5c8dd28f4",
    "gray-s-mix": "4da90e68438c8ab19871e9c38de6a573adf546a5725e4e09dee879f5257379c5",
    "color-s": "be943f9ae7dd192138788840233b4b7160fe9b6af5808125ae14739d54600f9a",
    "color-b": "20d07c24c100ad4a880eb852bf8f1edb1c630fc6330b0519b41804d3ddb57164",
    "color-b-mix": "a49b243350aa17d6241edcfcd7fafbcbf718959f8becbab1fcb80e24b67ea057",
    "gray-s-small": "eb08276b2c43d7f76253f0717bbc658a2a4a0c980d46a4196417993dfff9572c",
}


def summed(name):
    return hashlib.sha256(made(name, "train", seed=7).batch(np.arange(40)).images.tobytes()).hexdigest()


@pytest.mark.parametrize("name", SUMS)
def test_images_are_those_of_every_machine(name):
    assert summed(name) == SUMS[name]


def test_order_chunks_and_threads_do_not_matter():
    data = made("color-s-mix", seed=7)
    whole = data.batch(np.arange(40)).images
    backwards = data.batch(np.arange(40)[::-1]).images[::-1]
    np.testing.assert_array_equal(whole, backwards)
    with ThreadPoolExecutor(4) as pool:
        pieces = list(pool.map(lambda i: data.batch([i]).images[0], range(40)))
    np.testing.assert_array_equal(whole, np.stack(pieces))
    buffer = np.full((40, 3, 224, 224), 99, np.uint8)
    assert data.batch(np.arange(40), out=buffer).images is buffer
    np.testing.assert_array_equal(whole, buffer)


@pytest.mark.parametrize("cache", ["new", "impossible"])
def test_another_process_that_compiles_afresh_draws_the_same(tmp_path, cache):
    (tmp_path / "a file").write_text("not a folder")
    folder = tmp_path / "new" if cache == "new" else tmp_path / "a file" / "below"
    code = (
        "import hashlib, json, sys, numpy as np\n"
        "from gaussianmlr.data import RankedMNIST\n"
        "assert 'torch' not in sys.modules\n"
        "sums = {}\n"
        "for name in json.loads(sys.argv[1]):\n"
        "    data = RankedMNIST(name, 'train', seed=7, digits='embedded')\n"
        "    pieces = [data.batch(np.arange(a, a + 8)).images for a in (32, 24, 16, 8, 0)]\n"
        "    sums[name] = hashlib.sha256(np.concatenate(pieces[::-1]).tobytes()).hexdigest()\n"
        "print(json.dumps(sums))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "NUMBA_CPU_NAME": "generic"}
    command = [sys.executable, "-c", code, json.dumps(list(SUMS))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == SUMS


def test_other_digits_change_the_digits_and_nothing_else():
    embedded = load_digits("train", "embedded")
    fewer = Digits(embedded.images[::2], embedded.labels[::2], "half of them")
    one, two = made("gray-s").recipes(range(20)), RankedMNIST("gray-s", digits=fewer).recipes(range(20))
    np.testing.assert_array_equal(one.boxes, two.boxes)
    np.testing.assert_array_equal(one.ranks, two.ranks)
    assert (one.digit != two.digit).any()


def test_numpy_and_compiled_counters_agree():
    key = stream_key("any")
    counter = plain.Counter(0, 0)
    counter.state = int(key)
    expected = [counter.uniform(0.0, 1.0) for _ in range(12)]
    np.testing.assert_array_equal(uniforms(key, (3, 4)).ravel(), expected)


# --- As a data set -------------------------------------------------------------------------------


def test_sizes_are_the_papers_unless_given():
    assert [len(made("gray-s", split)) for split in ("train", "validation", "test")] == [
        60_000,
        10_000,
        10_000,
    ]
    assert len(made("gray-s", size=123)) == 123


def test_items_are_tensors_of_the_batch():
    data = made("color-b", "test", size=30)
    batch = data.batch([4])
    image, ranks = data[4]
    assert (image.dtype, tuple(image.shape)) == (torch.uint8, (3, 224, 224))
    assert (ranks.dtype, tuple(ranks.shape)) == (torch.int64, (10,))
    np.testing.assert_array_equal(image.numpy(), batch.images[0])
    np.testing.assert_array_equal(ranks.numpy(), batch.ranks[0])
    assert torch.equal(data[-1][0], data[29][0])
    for outside in (30, -31):
        with pytest.raises(IndexError, match="outside a set of 30"):
            data[outside]
    assert len(list(data)) == 30


def test_torchs_loader_takes_it_in_processes_too():
    data = made("gray-s", "test", size=20)
    loader = torch.utils.data.DataLoader(data, 8, num_workers=1, multiprocessing_context="spawn")
    images, ranks = (torch.cat(parts) for parts in zip(*loader))
    batch = data.batch(np.arange(20))
    np.testing.assert_array_equal(images.numpy(), batch.images)
    np.testing.assert_array_equal(ranks.numpy(), batch.ranks)


def test_fresh_images_have_no_end():
    data = made("gray-s", size=10)
    stream = data.stream(4, first=8)
    first, second = next(stream), next(stream)
    np.testing.assert_array_equal(first.images, data.batch([8, 9, 10, 11]).images)
    np.testing.assert_array_equal(second.ranks, data.batch([12, 13, 14, 15]).ranks)
    np.testing.assert_array_equal(data.fresh(3).fresh(2)[1][0], data.batch([51]).images[0])
    assert len(data.fresh(3)) == 10


def test_true_significances_are_those_of_the_factor():
    for name, factor in (("gray-s-mix", "scale"), ("gray-b-mix", "brightness")):
        data = made(name)
        batch = data.batch(range(10))
        np.testing.assert_array_equal(data.significance(batch), getattr(batch, factor))


def test_texts_read_from_the_most_significant():
    data = made("gray-s")
    batch = data.batch(range(20))
    for text, scale in zip(data.texts(batch.ranks), batch.scale):
        values = [scale[int(digit)] for digit in text.split(" > ")]
        assert values == sorted(values, reverse=True)
        assert len(values) == np.count_nonzero(~np.isnan(scale))


def test_mistakes_are_named():
    with pytest.raises(DataError, match="there is no Ranked MNIST set 'grey-s'; expected one of gray-s"):
        made("grey-s")
    with pytest.raises(DataError, match="split is 'val'; expected one of train, validation, test"):
        made("gray-s", "val")
    with pytest.raises(DataError, match="size is -1"):
        made("gray-s", size=-1)
    with pytest.raises(DataError, match="index -3 is negative"):
        made("gray-s").batch([1, -3])
    with pytest.raises(DataError, match="whole numbers"):
        made("gray-s").batch([0.5])
    few = load_digits("train", "embedded")
    some = np.concatenate([few.of_class(digit)[:5] for digit in range(10)])
    lacking = Digits(few.images[some], few.labels[some], "five of each")
    with pytest.raises(DataError, match="no image of the digit 0 is left for validation"):
        RankedMNIST("gray-s", "validation", digits=lacking)
    assert len(RankedMNIST("gray-s", "validation", digits=lacking, shared_digits=True)) == 10_000
    with pytest.raises(DataError, match="scale is"):
        replace(SETTINGS["gray-s"], canvas=80)
    with pytest.raises(DataError, match="count is"):
        replace(SETTINGS["gray-s"], count=(0, 3))
    with pytest.raises(DataError, match="brightness is"):
        replace(SETTINGS["gray-b"], brightness=(0.0, 2.0))


def test_an_empty_batch_is_empty():
    batch = made("gray-s").batch([])
    assert batch.images.shape == (0, 1, 224, 224)
    assert batch.ranks.shape == (0, 10)
