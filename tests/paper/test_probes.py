"""What cells keep for figures, against the outputs of networks; and figures of cells that do not fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.text import Text
from scipy import stats

from gaussianmlr import DataError
from gaussianmlr.data import RankedMNIST, adjusting_sequences, calibration_set, read_nsid
from gaussianmlr.data.ranked_mnist.digits import describe_digits, load_digits
from gaussianmlr.methods import make
from gaussianmlr.model.model import Model, build
from gaussianmlr.paper.cells import METRICS, Cell, is_landed, read_cells, recipe_of, write_cell
from gaussianmlr.paper.figures import bars, variance, write_figures
from gaussianmlr.paper.figures.shared import Studio
from gaussianmlr.paper.places import Sources
from gaussianmlr.paper.probes import probe_canvas
from gaussianmlr.paper.strips import probe_photos
from support.fakes import nsid

DIGITS = load_digits("test", "embedded")
MD5 = describe_digits(DIGITS, "test")["md5"]


def untrained(name):
    torch.manual_seed(0)
    recipe = recipe_of(Cell("gray-s", name, "strong", "smoke"))
    network, method = build(recipe, 10, {"kind": "image", "channels": 1})
    return Model(network.eval(), method, tuple("0123456789"), recipe, {"kind": "image", "channels": 1})


@torch.no_grad()
def said(model, probe, name):
    """An output of the network for the digits of a probe: [sequences, frames, places]."""
    found = [model.network(torch.from_numpy(probe[i]))[name][:, probe.labels[i]] for i in range(len(probe))]
    return torch.stack(found).double().numpy()


@torch.no_grad()
def centred(model, probe):
    """Log-variances minus the instance's mean, and half that mean: what the canonical gauge divides by."""
    found, scales = [], []
    for number, labels in enumerate(probe.labels):
        sigma = model.read(probe[number], calibrated=False).sigma.double()
        log = 2 * sigma.log()
        found.append((log - log.mean(1, keepdim=True))[:, labels].numpy())
        scales.append((log.mean(1, keepdim=True) / 2).exp().numpy())
    return np.stack(found), np.stack(scales)


def test_thresholds_stand_beside_raw_scores():
    """LSEP is drawn as f with its g; f - g is the canonical gauge."""
    model = untrained("lsep")
    kept = probe_canvas(model, "gray-s", DIGITS, small=True)
    probe = adjusting_sequences("gray-s", count=2, frames=6, digits=DIGITS)
    f, g = said(model, probe, "score"), said(model, probe, "threshold")
    assert kept["adjusting"]["shown"] == "raw"
    np.testing.assert_allclose(kept["adjusting"]["mean"], f.mean(0), atol=1e-4)
    np.testing.assert_allclose(kept["adjusting"]["thresholds"], g.mean(0), atol=1e-4)
    images = calibration_set("gray-s", count=8, digits=DIGITS)
    f, g = said(model, images, "score")[:, 0], said(model, images, "threshold")[:, 0]
    np.testing.assert_allclose(kept["calibration"]["raw"]["means"], f.mean(0), atol=1e-4)
    np.testing.assert_allclose(kept["calibration"]["thresholds"], g.mean(0), atol=1e-4)
    assert not np.allclose(kept["calibration"]["canonical"]["means"], f.mean(0), atol=1e-2)


def test_significances_are_kept_in_both_gauges():
    model = untrained("gmlr")
    kept = probe_canvas(model, "gray-s", DIGITS, small=True)["adjusting"]
    probe = adjusting_sequences("gray-s", count=2, frames=6, digits=DIGITS)
    mu, (log_variance, scale) = said(model, probe, "mu"), centred(model, probe)
    assert kept["shown"] == "canonical"
    assert "thresholds" not in kept
    np.testing.assert_allclose(kept["first"], (mu / scale)[0], atol=2e-4)
    quartiles = np.quantile(log_variance, (0.25, 0.5, 0.75), axis=0)
    np.testing.assert_allclose(kept["canonical"]["variance"]["log_quartiles"], quartiles, atol=2e-4)
    raw = np.quantile(log_variance + 2 * np.log(scale), (0.25, 0.5, 0.75), axis=0)
    np.testing.assert_allclose(kept["raw"]["variance"]["log_quartiles"], raw, atol=2e-4)
    truth = probe.significance
    pairs = [(mu[i, :, p], truth[i, :, p]) for i in range(2) for p in (0, 2)]
    expected = np.mean([stats.pearsonr(*pair)[0] for pair in pairs])
    assert kept["raw"]["linearity"] == pytest.approx(expected, abs=1e-3)


def test_pictures_keep_their_names(tmp_path):
    """Outputs come in the order of folds, not of pictures."""
    random = np.random.default_rng(0)
    orders = [
        [tuple(random.permutation(9)[: random.integers(1, 5)] + 1) for _ in range(2)] for _ in range(12)
    ]
    data = read_nsid(nsid(tmp_path, orders, pictures=range(1, 13)))
    where = random.permutation(len(data))
    outputs = {name: torch.randn(len(data), 9) for name in ("mu", "logvar")}
    method = make("gmlr")
    kept = probe_photos(method, data, where, outputs)
    row_of = {data.ids[picture]: row for row, picture in enumerate(where)}
    for one in kept["bars"]["images"]:
        np.testing.assert_allclose(one["values"], outputs["mu"][row_of[one["image"]]], atol=1e-4)
        ranks = data.ranks[data.ids.index(one["image"])]
        relevant = {label for label, rank in zip(data.labels, ranks) if rank > 0}
        assert set(one["true"].replace(" = ", " > ").split(" > ")) == relevant
    reading, column = method.read(outputs), data.labels.index("sun")
    scale = reading.sigma.double().log().mean(1).exp()
    strip, people = kept["extracted"]["sun"], data.by_ranker[:, :, column].mean(1)
    for name, score, given in zip(strip["ids"], strip["scores"], strip["people"]):
        row = row_of[name]
        assert score == pytest.approx(float(reading.mu[row, column] / scale[row]), abs=1e-3)
        assert given == pytest.approx(people[data.ids.index(name)], abs=1e-3)


def drawn(name, probes, md5=MD5, dataset="gray-s"):
    """A cell as it is read, and what it is."""
    return {
        Cell(dataset, name, "strong", "smoke"): {"probes": probes, "data": {"digits": {"test": {"md5": md5}}}}
    }


def texts_of(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def page_of_bars(landed, tmp_path, dataset="gray-s", sources=None):
    studio = Studio(landed, "smoke", tmp_path, sources or Sources("embedded"))
    probes = studio.probes(dataset, "bars")
    return texts_of(bars._page(studio, dataset, probes))


def test_bars_stand_beside_their_own_image(tmp_path):
    gmlr = probe_canvas(untrained("gmlr"), "gray-s", DIGITS, small=True)["bars"]
    crpc = probe_canvas(untrained("crpc"), "gray-s", DIGITS, small=True)["bars"]
    first = gmlr["images"][0]["image"]
    assert (
        gmlr["images"][0]["true"]
        == RankedMNIST("gray-s", "test", digits=DIGITS).texts(
            RankedMNIST("gray-s", "test", digits=DIGITS).batch([first]).ranks
        )[0]
    )
    both = drawn("gmlr", {"bars": gmlr}) | drawn("crpc", {"bars": crpc})
    assert "another image" not in page_of_bars(both, tmp_path)
    moved = {**crpc, "images": [{**one, "image": 99 + n} for n, one in enumerate(crpc["images"])]}
    both = drawn("gmlr", {"bars": moved}) | drawn("crpc", {"bars": crpc})
    assert page_of_bars(both, tmp_path).count("another image") == 3
    elsewhere = drawn("gmlr", {"bars": gmlr}, md5="of other digits") | drawn("crpc", {"bars": crpc})
    assert page_of_bars(elsewhere, tmp_path).count("another image") == 3
    alone = page_of_bars(drawn("gmlr", {"bars": gmlr}, md5="of other digits"), tmp_path)
    assert sum("--digits" in text for text in alone) == 3


def test_pictures_that_are_not_there(tmp_path):
    one = {
        "image": "7",
        "true": "sun",
        "values": [1.0],
        "thresholds": [0.0],
        "canonical": [1.0],
        "order": "sun",
    }
    probes = {"bars": {"labels": ["sun"], "images": [one]}}
    strip = {"ids": ["7"], "scores": [0.5], "people": [1.0], "pictures": 1}
    probes["extracted"] = dict.fromkeys(("mountain", "plant", "sun"), strip)
    landed = drawn("gmlr", probes, dataset="nsid")
    assert "see --nsid" in page_of_bars(landed, tmp_path, "nsid")
    folder = nsid(tmp_path / "scenes", [[(1,)]], {"train": [1]}, [1])
    sources = Sources("embedded", nsid=folder)
    assert "not in the folder" in page_of_bars(landed, tmp_path, "nsid", sources)
    written = write_figures(["bars", "extracted"], landed, "smoke", tmp_path / "figures", sources)
    assert {file.name for file in written} >= {"bars-nsid-smoke.png", "extracted-sun-smoke.png"}


def test_an_empty_place_leaves_the_ticks_of_others(tmp_path):
    probe = probe_canvas(untrained("gmlr"), "gray-s", DIGITS, small=True)["adjusting"]
    studio = Studio(drawn("gmlr", {"adjusting": probe}), "smoke", tmp_path, Sources("embedded"))
    probes = {name: studio.probe(name, "gmlr", "strong", "adjusting") for name in ("gray-s", "gray-b")}
    figure = variance._page(probes, [studio.row(name, ("gmlr", "strong"), probes[name]) for name in probes])
    figure.draw_without_rendering()
    measured, empty = figure.axes[2], figure.axes[3]
    assert [label.get_text() for label in measured.get_xticklabels()]
    assert "not run" in texts_of(empty)


def test_a_drawn_cell_lands_with_its_probes(tmp_path):
    facts = {"metrics": dict.fromkeys(METRICS, 50.0), "images_seen": 1, "seconds": 1.0}
    cell = Cell("gray-s", "gmlr", "strong", "smoke")
    write_cell(tmp_path, cell, facts)
    assert not is_landed(cell, tmp_path)  # it is from before cells kept them
    write_cell(tmp_path, cell.at(seed=1), facts)
    assert is_landed(cell.at(seed=1), tmp_path)  # no figure shows it
    write_cell(tmp_path, cell, {**facts, "probes": {}})
    assert is_landed(cell, tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        write_cell(tmp_path, cell, {**facts, "probes": {"drift": float("inf")}})
    write_cell(tmp_path, replace(cell, seed=2), {**facts, "probes": [1]})
    with pytest.raises(DataError, match=r"seed2.*probes is \[1\]"):
        read_cells(tmp_path)
