"""Predictions for the images of figures, stored in the cell so that figures need no model.

A cell's ``probes`` hold, by name,

===============  =====================================================================================
`adjusting`      scores along sequences in which significances change: curves and how well they follow
`calibration`    Gaussians fitted to the scores of four known scales, of gray-s
`bars`           all predictions for a few test images
`extracted`      pictures at equal steps of a label's score
===============  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gaussianmlr.data import RankedMNIST
from gaussianmlr.data.loading import as_input, as_tensor
from gaussianmlr.data.ranked_mnist.digits import Digits
from gaussianmlr.data.ranked_mnist.probes import Probe, adjusting_sequences, calibration_set
from gaussianmlr.methods import Method
from gaussianmlr.metrics.sequences import follow_score, follow_sigma, spread
from gaussianmlr.model.model import Model
from gaussianmlr.model.scale import JndScale
from gaussianmlr.normal import canonical
from gaussianmlr.paper.singles import bars_kept, bars_of, varied

__all__ = ["GAUGES", "Track", "adjusting_probe", "calibration_probe", "follow", "gauges_of", "probe_canvas"]

Floats = npt.NDArray[np.float64]
GAUGES = ("raw", "canonical")
SCALES = (*GAUGES, "jnd")  # the last only for models that have it
CALIBRATED = "gray-s"  # the set of the paper's calibration figure
DIGITS_SHOWN = (4, 4, 7)  # digits per single image
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Track:
    """Predictions for the digits of a probe: arrays [sequences, frames, places]."""

    raw: Floats
    canonical: Floats
    thresholds: Floats | None = None  # of the raw scores, if they are not zero
    sigma_raw: Floats | None = None
    sigma_canonical: Floats | None = None
    jnd: Floats | None = None  # on the scale of just noticeable differences
    sigma_jnd: Floats | None = None

    @property
    def shown(self) -> str:
        """What is drawn: just noticeable differences or canonical, raw if scores have own thresholds."""
        if self.thresholds is not None:
            return "raw"
        return "canonical" if self.jnd is None else "jnd"

    @property
    def scales(self) -> tuple[str, ...]:
        """The scales there are."""
        return SCALES[:2] if self.jnd is None else SCALES


def adjusting_probe(dataset: str, digits: Digits, small: bool = False) -> Probe:
    """The sequences of a set: 50 of 50 frames, or a few for the smoke preset."""
    count, frames = (2, 6) if small else (50, 50)
    return adjusting_sequences(dataset, count=count, frames=frames, digits=digits)


def calibration_probe(digits: Digits, small: bool = False) -> Probe:
    """Fifty images with digits of four scales, or a few for the smoke preset."""
    return calibration_set(CALIBRATED, count=8 if small else 50, digits=digits)


def probe_canvas(model: Model, dataset: str, digits: Digits, small: bool = False) -> dict[str, Any]:
    """Predictions for the probes of a Ranked MNIST set, as stored in a cell.

    Parameters
    ----------
    model : Model
        Trained on the set.
    dataset : str
        The set.
    digits : Digits
        Test digits.
    small : bool
        Smoke preset: few images.
    """
    probe = adjusting_probe(dataset, digits, small)
    found: dict[str, Any] = {"adjusting": _adjusting(follow(model, probe), probe)}
    if dataset == CALIBRATED:
        probe = calibration_probe(digits, small)
        found["calibration"] = _calibration(follow(model, probe), probe)
    data = RankedMNIST(dataset, "test", digits=digits)
    chosen = varied(data.batch(range(40)).ranks, DIGITS_SHOWN)
    batch = data.batch(chosen)
    said = bars_of(model.method, raw_outputs(model, batch.images), data.labels, model.scale(calibrated=False))
    found["bars"] = bars_kept(chosen, data.texts(batch.ranks), said, data.labels)
    return found


def _adjusting(track: Track, probe: Probe) -> dict[str, Any]:
    """Mean, deviation and first sequence of the drawn scores, [frames, 3]; numbers on all scales."""
    scores: Floats = getattr(track, track.shown)
    found: dict[str, Any] = {
        "sequences": len(probe),
        "frames": probe.significance.shape[1],
        "shown": track.shown,
        **_curves(scores),
    }
    if track.shown != "raw":
        found["raw_curves"] = _curves(track.raw)
    if track.thresholds is not None:
        found["thresholds"] = _rounded(track.thresholds.mean(0))
    for gauge in track.scales:
        found[gauge] = follow_score(getattr(track, gauge), probe.significance)
        sigma = getattr(track, f"sigma_{gauge}")
        if sigma is not None:
            quartiles = np.quantile(2 * np.log(sigma), QUARTILES, axis=0)
            numbers = follow_sigma(sigma, probe.significance)
            found[gauge] |= {"variance": {**numbers, "log_quartiles": _rounded(quartiles)}}
    return found


def _curves(scores: Floats) -> dict[str, Any]:
    """Mean, deviation and first sequence, [frames, 3]."""
    parts = {"mean": scores.mean(0), "deviation": scores.std(0), "first": scores[0]}
    return {name: _rounded(part) for name, part in parts.items()}


def _calibration(track: Track, probe: Probe) -> dict[str, Any]:
    significance = probe.significance[:, 0]
    found: dict[str, Any] = {
        "images": len(probe),
        "scales": significance[0].tolist(),
        "shown": track.shown,
        **{gauge: spread(getattr(track, gauge)[:, 0], significance) for gauge in track.scales},
        "missed": (track.canonical[:, 0] <= 0).sum(0).tolist(),
    }
    if track.thresholds is not None:
        found["thresholds"] = _rounded(track.thresholds[:, 0].mean(0))
    return found


def _rounded(values: Floats) -> Any:
    return np.round(values, 4).tolist()


def follow(model: Model, probe: Probe) -> Track:
    """Predict every sequence of a probe and select the digits in it."""
    found: dict[str, list[Floats]] = {}
    for images, labels in zip(probe, probe.labels):
        outputs, jnd = raw_outputs(model, images), model.scale(calibrated=False)
        for name, values in gauges_of(model.method, outputs, jnd).items():
            found.setdefault(name, []).append(values[:, labels])
    return Track(**{name: np.stack(parts) for name, parts in found.items()})


def gauges_of(
    method: Method, outputs: Mapping[str, Tensor], jnd: JndScale | None = None
) -> dict[str, Floats]:
    """The scores of a method in both gauges, and on a scale if given: arrays [N, K], named as in `Track`.

    Raw scores are those the network is trained on: mu, votes minus those of the virtual label, LSEP's f. The
    canonical gauge removes the scale of the instance from mu, and the thresholds from f.
    """
    reading = method.read(outputs)
    scores = reading.scores.double().numpy()
    if {"score", "threshold"} <= set(outputs):
        raw, thresholds = (outputs[name].double().numpy() for name in ("score", "threshold"))
        return {"raw": raw, "canonical": scores, "thresholds": thresholds}
    if reading.mu is None or reading.sigma is None:
        return {"raw": scores, "canonical": scores}
    mu, sigma = canonical(reading.mu.double(), reading.sigma.double())
    found = {
        "raw": scores,
        "canonical": mu.numpy(),
        "sigma_raw": reading.sigma.double().numpy(),
        "sigma_canonical": sigma.numpy(),
    }
    if jnd is not None:
        found["jnd"], found["sigma_jnd"] = jnd.apply(mu.numpy(), sigma.numpy())
    return found


@torch.no_grad()
def raw_outputs(model: Model, images: Any) -> dict[str, Tensor]:
    """The outputs of a model's network, by name."""
    model.network.cpu().eval()
    outputs: dict[str, Tensor] = model.network(as_input(as_tensor(images)))
    return {name: value.float() for name, value in outputs.items()}
