"""What a model says of some instances, in the forms people and programs read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gaussianmlr import normal
from gaussianmlr._utils.arrays import BoolArray, FloatArray, array, fixed
from gaussianmlr._utils.strict_json import dumps
from gaussianmlr.errors import DataError
from gaussianmlr.methods.base import Reading
from gaussianmlr.model import display
from gaussianmlr.model.guarantees import Conformal, Guaranteed
from gaussianmlr.model.pairs import TopPairs, partial_texts, refuse_pairs, top_pairs, top_places
from gaussianmlr.model.parts import IntArray, Interval, Parts, Scale, Significances, law_of, scaled
from gaussianmlr.model.ranks import mean_degree, mean_rank, rank_distribution
from gaussianmlr.model.tables import dict_of, frame_of
from gaussianmlr.normal.gaussians import central_interval
from gaussianmlr.normal.ties import pair_logs
from gaussianmlr.orders import densify, to_lists, to_text

if TYPE_CHECKING:
    import pandas as pd

    from gaussianmlr.model.calibration import Calibration
    from gaussianmlr.model.scale import JndScale

__all__ = ["Interval", "Prediction", "Scale", "Significances"]


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Parts):
    r"""What a model says of N instances and K labels; a value that never changes.

    A label is relevant where its score is above zero, and only there is `p_relevant` above one half:
    `ranks`, `orders` and `p_relevant` cannot disagree. `Model.predict` and `from_reading` make one.

    Attributes
    ----------
    scores : float array [N, K]
        Larger = more significant; relevant above zero.
    p_relevant : float array [N, K]
        Probability of relevance.
    labels : tuple of str
        Names of the columns.
    raw : Significances or None
        mu and sigma as the network gives them. Their scale differs from one instance to the next and means
        nothing; `significance` and `sigma` are free of it. None for methods without sigma.
    method : str
        Name of the method, for messages.
    names : tuple
        Names of the instances, 0 to N - 1 where none were given.
    jnd : JndScale or None
        The scale of just noticeable differences that the model was given after training.
    scale : {"jnd", "canonical", "raw"}
        The scale of `significance` and `sigma`: ``"jnd"`` where the model has it, else ``"canonical"``;
        `rescaled` changes it. Nothing else depends on it.
    conformal : Conformal or None
        The calibration behind `guaranteed`, of models that have one.
    tau : float array [N, K] or None
        Thresholds of indifference in the units of the scores, of models that predict ties: `ranks`, `orders`
        and `lists` are then the most likely ones with ties, see `normal.best_buckets`.

    Examples
    --------
    >>> import numpy as np
    >>> raw = Significances(np.array([[6.0, 2.0, -4.0]]), np.array([[2.0, 2.0, 2.0]]))
    >>> p_relevant = np.array([[0.99865, 0.8413, 0.0228]])
    >>> prediction = Prediction(raw.mu, p_relevant, ("sky", "sea", "sun"), raw, "gmlr")
    >>> prediction
    Prediction of 1 instance, 3 labels, by gmlr
      0  sky > sea
    >>> prediction.significance
    array([[ 3.,  1., -2.]])
    >>> prediction.p_above[0, 0].round(3)
    array([0.5  , 0.921, 1.   ])
    >>> prediction.partial_order(0.95)[0].astype(int)
    array([[0, 0, 1],
           [0, 0, 1],
           [0, 0, 0]])
    """

    @classmethod
    def from_reading(
        cls,
        reading: Reading,
        labels: Iterable[object],
        *,
        method: str = "",
        calibration: Calibration | None = None,
        names: Iterable[Any] = (),
        jnd: JndScale | None = None,
        conformal: Conformal | None = None,
    ) -> Prediction:
        """A prediction from what a method's `read` gives.

        Parameters
        ----------
        reading : Reading
            What was read.
        labels : iterable of str
            Names of its columns.
        method : str
            Name of the method, for messages.
        calibration : Calibration, optional
            Temperatures to apply; what `Model.read` gives has those of its model already.
        names : iterable, optional
            Names of the instances.
        jnd : JndScale, optional
            The model's scale of just noticeable differences.
        conformal : Conformal, optional
            The calibration behind `guaranteed`, made at the same temperatures.

        Examples
        --------
        >>> import torch
        >>> from gaussianmlr import methods
        >>> reading = methods.make("ranknet").read({"score": torch.tensor([[2.0, -1.0, 3.0]])})
        >>> Prediction.from_reading(reading, "abc", method="ranknet").orders
        ['c > a']
        """
        if calibration is not None:
            reading = calibration.apply(reading)
        raw = None
        if reading.mu is not None and reading.sigma is not None:
            raw = Significances(array(reading.mu), array(reading.sigma))
        known = tuple(str(label) for label in labels)
        return cls(
            array(reading.scores),
            array(reading.p_relevant),
            known,
            raw,
            method,
            tuple(names),
            jnd=jnd,
            conformal=conformal,
            tau=None if reading.tau is None else array(reading.tau),
        )

    def rescaled(self, scale: Scale) -> Prediction:
        """The prediction with `significance` and `sigma` on another scale; for methods with sigma.

        Parameters
        ----------
        scale : {"jnd", "canonical", "raw"}
            ``"jnd"``: a difference of one is ordered correctly 84 times in 100, see
            `gaussianmlr.model.scale.JndScale`. ``"canonical"``: sigmas have the geometric mean 1 in every
            instance (`normal.canonical`). ``"raw"``: as the network gives them.

        Examples
        --------
        >>> import numpy as np
        >>> from gaussianmlr.model.scale import JndScale
        >>> raw = Significances(np.array([[6.0, -4.0]]), np.array([[2.0, 2.0]]))
        >>> scale, sure = JndScale([0.0], [0.0]), np.array([[0.99, 0.02]])
        >>> one = Prediction(raw.mu, sure, ("sky", "sea"), raw, jnd=scale)
        >>> one.scale, one.significance.round(2), one.rescaled("canonical").significance
        ('jnd', array([[ 2.12, -1.41]]), array([[ 3., -2.]]))
        """
        law_of(self.raw, self.method)
        return replace(self, scale=scale)

    @cached_property
    def ranks(self) -> IntArray:
        """Ranks [N, K]: 0 = irrelevant, larger = more significant, equal = tied."""
        if self.tau is None:
            return fixed(densify(self.scores))
        return fixed(normal.best_buckets(*self._tied()).numpy())

    @cached_property
    def orders(self) -> list[str]:
        """Orders as texts, such as ``"mountain > sky = cloud"``."""
        return to_text(self.ranks, self.labels)

    @cached_property
    def lists(self) -> list[list[Any]]:
        """Orders as lists of buckets, most significant first."""
        return to_lists(self.ranks, self.labels)

    @cached_property
    def _scaled(self) -> Significances:
        return scaled(law_of(self.raw, self.method), self.scale, self.jnd)

    @property
    def significance(self) -> FloatArray:
        """Mean significances [N, K], comparable between instances; see `scale`."""
        return self._scaled.mu

    @property
    def sigma(self) -> FloatArray:
        """Standard deviations [N, K] of the significances, on the same scale."""
        return self._scaled.sigma

    @cached_property
    def degree(self) -> FloatArray:
        r"""Expected significance [N, K] where "does not apply" counts as zero; on `scale`, see `rescaled`.

        It is 0 or larger, so unlike `significance` it can be averaged over instances, and compared with
        grades: :math:`P(\text{relevant})\,E[s \mid s > 0]` for s ~ N(significance, sigma^2).

        Examples
        --------
        >>> import numpy as np
        >>> raw = Significances(np.array([[6.0, 2.0, -4.0]]), np.array([[2.0, 2.0, 2.0]]))
        >>> p_relevant = np.array([[0.99865, 0.8413, 0.0228]])
        >>> Prediction(raw.mu, p_relevant, ("sky", "sea", "sun"), raw).degree.round(3)
        array([[3.   , 1.083, 0.009]])
        """
        return fixed(mean_degree(*self._scaled, self.p_relevant))

    @cached_property
    def p_above(self) -> FloatArray:
        """Probability [N, K, K] that a label is more significant than another; see `normal.p_above`.

        With ties, that it stands in a higher bucket if both are relevant; the rest is `p_tie`. Of many
        labels, `top_pairs` gives those among the most significant ones.
        """
        refuse_pairs(self, "p_above", "prediction.top_pairs(50)")
        return self._read(normal.p_above) if self.tau is None else self._pairs[0]

    @cached_property
    def p_tie(self) -> FloatArray:
        """Probability [N, K, K] that two labels tie if both are relevant; 0 for models that predict no ties.

        See `normal.p_tie`; for methods without sigma it is that of Rao and Kupper's model.
        """
        refuse_pairs(self, "p_tie", "prediction.top_pairs(50)")
        return fixed(np.zeros_like(self.p_above)) if self.tau is None else self._pairs[1]

    @cached_property
    def _pairs(self) -> tuple[FloatArray, FloatArray]:
        above, tie = pair_logs(*self._tied())
        return fixed(above.exp().numpy()), fixed(tie.exp().numpy())

    def _tied(self) -> tuple[Tensor, Tensor | None, Tensor]:
        """Scores, raw sigma if there is one, and thresholds, of models that predict ties."""
        assert self.tau is not None
        sigma = None if self.raw is None else torch.tensor(self.raw.sigma)
        return torch.tensor(self.scores), sigma, torch.tensor(self.tau)

    def top_places(self, top: int = 50) -> IntArray:
        """Columns [N, min(top, K)] of the most significant labels of each instance, the first one first.

        Examples
        --------
        >>> import numpy as np
        >>> Prediction(np.array([[2.0, -1.0, 3.0]]), np.array([[0.9, 0.2, 0.9]]), list("abc")).top_places(2)
        array([[2, 0]])
        """
        return top_places(self, top)

    def top_pairs(self, top: int = 50) -> TopPairs:
        """`p_above` among the most significant labels of each instance: top^2 numbers instead of K^2.

        The probability of a pair depends on its two labels alone, so these are the same numbers.
        """
        return top_pairs(self, law_of(self.raw, self.method), top)

    @cached_property
    def p_first(self) -> FloatArray:
        """Probability [N, K] that a label is the most significant of all; see `normal.p_first`."""
        return self._read(normal.p_first)

    @cached_property
    def p_rank(self) -> FloatArray:
        r"""Distribution over ranks [N, K, K + 1]; see `normal.p_rank`.

        Its entry 0 is 1 - `p_relevant`. Where a calibration has given relevance and pairs different
        temperatures, the law of the pairs says how likely each rank of a relevant label is:
        :math:`P(r) = P(\text{relevant})\,P_{T_p}(r \mid \text{relevant})`.
        """
        refuse_pairs(self, "p_rank", "expected_rank, or prediction.partial_text(top=50)")
        return fixed(rank_distribution(*self._law(), self.p_relevant))

    @cached_property
    def expected_rank(self) -> FloatArray:
        """Expected rank [N, K], the mean of `p_rank`, at a lower cost."""
        return fixed(mean_rank(*self._law(), self.p_relevant))

    def rank_interval(self, confidence: float = 0.9) -> Interval:
        """Central interval of ranks that holds the true rank with this probability or more."""
        refuse_pairs(self, "rank_interval", "expected_rank, or prediction.partial_text(top=50)")
        found = central_interval(torch.tensor(self.p_rank), confidence)
        return Interval(*(part.numpy() for part in found))

    def partial_order(self, confidence: float = 0.9) -> BoolArray:
        """Which label stands above which, for sure: [N, K, K]; see `normal.partial_order`."""
        refuse_pairs(self, "partial_order", "prediction.partial_text(top=50)")
        tau = None if self.tau is None else torch.tensor(self.tau)
        found: BoolArray = normal.partial_order(*self._law(), confidence, tau).numpy()
        return found

    def partial_text(self, confidence: float = 0.9, top: int | None = None) -> list[str]:
        """What is sure of the orders, as texts; see `orders.partial.partial_text`.

        Parameters
        ----------
        confidence : float
            Required probability of a statement.
        top : int, optional
            Make statements on so many labels of each instance only, the most significant ones.
        """
        return partial_texts(self, law_of(self.raw, self.method), confidence, top)

    def guaranteed(self, alpha: float = 0.1) -> Guaranteed:
        """Relevance sets, rank intervals and partial orders that hold whatever the model is like.

        For models with a conformal calibration: trained with ``conformal=0.1``, or calibrated by
        `Model.calibrate_conformal`.

        Parameters
        ----------
        alpha : float
            The share of errors to allow, up to 0.5; it needs at least 1/alpha - 1 calibration rows.
        """
        if self.conformal is None:
            raise DataError(
                "these predictions have no conformal calibration: train with conformal=0.1, or use "
                "model.calibrate_conformal on rows that the model was not made from"
            )
        return Guaranteed(self, self.conformal, alpha)

    def to_frame(self, *more: str, confidence: float | None = None, top: int | None = None) -> pd.DataFrame:
        """A tidy pandas frame, one row per instance and label.

        Parameters
        ----------
        *more : str
            Further readings of shape [N, K] as columns: ``"p_first"``, ``"expected_rank"``, ``"degree"``.
        confidence : float, optional
            Adds `rank_interval` at this confidence, as ``rank_low`` and ``rank_high``; not with `top`.
        top : int, optional
            Give so many labels of each instance, the most significant ones, the first one first.

        Examples
        --------
        >>> import numpy as np
        >>> Prediction(np.array([[2.0, -1.0]]), np.array([[0.9, 0.2]]), ("a", "b")).to_frame()
           instance label  rank  score  p_relevant
        0         0     a     1    2.0         0.9
        1         0     b     0   -1.0         0.2
        """
        return frame_of(self, more, confidence, top)

    def to_json(
        self,
        *more: str,
        confidence: float | None = None,
        indent: int | None = None,
        top: int | None = None,
    ) -> str:
        """JSON with method, labels and, for each instance, its name, order and the columns of `to_frame`.

        Examples
        --------
        >>> import numpy as np
        >>> print(Prediction(np.array([[2.0]]), np.array([[0.9]]), ("a",), method="br").to_json())
        {"method": "br", "labels": ["a"], "instances": [{"name": 0, "order": "a",
        "labels": {"a": {"rank": 1, "score": 2.0, "p_relevant": 0.9}}}]}
        """
        return dumps(self.to_dict(*more, confidence=confidence, top=top), ensure_ascii=False, indent=indent)

    def to_dict(self, *more: str, confidence: float | None = None, top: int | None = None) -> dict[str, Any]:
        """What `to_json` writes, as plain dicts, lists and numbers; arguments as of `to_frame`.

        With `top`, ``labels`` are those that occur, and ``partial`` makes statements on them alone.

        Examples
        --------
        >>> import numpy as np
        >>> Prediction(np.array([[2.0]]), np.array([[0.9]]), ("a",), method="br").to_dict()["instances"]
        [{'name': 0, 'order': 'a', 'labels': {'a': {'rank': 1, 'score': 2.0, 'p_relevant': 0.9}}}]
        """
        return dict_of(self, more, confidence, top)

    def __repr__(self) -> str:
        return display.as_text(self)

    def _repr_html_(self) -> str:
        return display.as_html(self)

    def _law(self) -> tuple[Tensor, Tensor]:
        """The raw mu and sigma as tensors."""
        mu, sigma = law_of(self.raw, self.method)
        return torch.tensor(mu), torch.tensor(sigma)

    def _read(self, function: Callable[[Tensor, Tensor], Tensor]) -> FloatArray:
        return fixed(function(*self._law()).numpy())
