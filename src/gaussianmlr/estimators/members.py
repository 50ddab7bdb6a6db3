"""Members of an ensemble: their mean, and the model in double precision that estimators read."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from gaussianmlr.data.loading import RankedSet
from gaussianmlr.methods.ties import learns_ties
from gaussianmlr.model.model import Model, join
from gaussianmlr.model.network import has_texts
from gaussianmlr.training.finish import measure_and_calibrate
from gaussianmlr.training.ties import without_ties

__all__ = ["Member", "in_double", "joined"]

_IN_DOUBLE: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # networks, made once


class Member(NamedTuple):
    """A model of an ensemble, and the rows that it was chosen and calibrated on."""

    model: Model
    held: RankedSet | None

    @property
    def gained(self) -> bool:
        """Whether it is known what its ties gain."""
        return "ties" in self.model.about


def joined(kinds: Sequence[Sequence[Member]], *, without_useless_ties: bool) -> Model:
    """The mean of members of each kind; if asked to, without ties that have gained nothing."""
    members = [one for kind in kinds for one in kind]
    known = [one.model.about["ties"]["gain"] for one in members if one.gained]
    if without_useless_ties and known and np.mean(known) <= 0:
        for one in members:
            without_ties(one.model)
            if one.held is not None:
                measure_and_calibrate(one.model, one.held)
    model = join([join([one.model for one in kind]) for kind in kinds])
    if known and learns_ties(model.method):
        model.about["ties"] = {"gain": float(np.mean(known)), "members": len(known)}
    return model


def in_double(model: Model) -> Model:
    """The model in double precision, in which a row's reading does not depend on its batch.

    Models of texts keep their precision: they are large, and rows agree to six digits.
    """
    if has_texts(model.inputs):
        return model
    network = model.network
    if network not in _IN_DOUBLE:
        _IN_DOUBLE[network] = copy.deepcopy(network).double()
    return replace(model, network=_IN_DOUBLE[network])
