r"""Agreement of predicted and true order: rank correlations and exact match.

Predictions are read as orders: labels with a score above zero are relevant and ordered by score, all
others tie below them. Unknown labels are ignored. Throughout, :math:`n` known labels make
:math:`N_0 = n(n-1)/2` pairs, of which :math:`N_1` tie in the prediction and :math:`N_2` in the truth;
:math:`N_c` pairs are ordered alike in both (concordant) and :math:`N_d` in opposite ways (discordant).
"""

from __future__ import annotations

from typing import Literal, get_args

import torch

from gaussianmlr.metrics._inputs import Input, Reduction, Result, Values, check_choice, ratio
from gaussianmlr.metrics._instances import Instances, compare, per_instance, tally, untied_pairs

Formula = Literal["tied", "untied"]


def kendall_tau_b(scores: Input, ranks: Input, *, reduction: Reduction = "mean") -> Result:
    r"""Kendall's tau-b, the rank correlation that corrects for ties.

    .. math:: \tau_b = \frac{N_c - N_d}{\sqrt{(N_0 - N_1)(N_0 - N_2)}}

    Parameters
    ----------
    scores : array or tensor [N, K]
        Larger = more significant; a label is predicted relevant iff its score is above zero.
    ranks : array or tensor [N, K]
        The true ranks: 0 = irrelevant, larger = more significant, -1 = unknown.
    reduction : {"mean", "sum", "none"}
        The mean over instances, their sum, or the vector itself.

    Returns
    -------
    float, array or tensor
        In [-1, 1], 1 for the same order. An instance whose labels all tie, in the prediction or in
        the truth, has the value 0.

    References
    ----------
    Kendall (1945), The treatment of ties in ranking problems. Biometrika 33.

    Examples
    --------
    >>> kendall_tau_b([[3.0, 1.5, -2.0, -7.0]], [[2, 1, 0, 0]])
    1.0
    >>> kendall_tau_b([[1.5, 3.0, -2.0], [-1.0, -2.0, -3.0]], [[2, 1, 0], [1, 0, 0]], reduction="none")
    array([0.33333333, 0.        ])
    """
    return per_instance(tau_b_values, scores, ranks, reduction)


def kendall_tau_a(scores: Input, ranks: Input, *, reduction: Reduction = "mean") -> Result:
    r"""Kendall's tau-a, which counts ties as pairs that were not ordered.

    .. math:: \tau_a = \frac{N_c - N_d}{N_0}

    Parameters
    ----------
    scores, ranks, reduction
        As for `kendall_tau_b`.

    Returns
    -------
    float, array or tensor
        In [-1, 1]; below 1 if the truth has ties; 0 with fewer than two known labels.

    References
    ----------
    Kendall (1938), A new measure of rank correlation. Biometrika 30.

    Examples
    --------
    >>> kendall_tau_a([[3.0, 1.5, -2.0, -7.0]], [[2, 1, 0, 0]])
    0.8333333333333334
    """
    return per_instance(tau_a_values, scores, ranks, reduction)


def spearman_rho(
    scores: Input, ranks: Input, *, formula: Formula = "tied", reduction: Reduction = "mean"
) -> Result:
    r"""Spearman's rho, the correlation of positions; tied labels share their mean position.

    .. math::
        \rho_\text{tied} = \frac{\sum_u (\hat p_u - \bar p)(p_u - \bar p)}
        {\sqrt{\sum_u (\hat p_u - \bar p)^2 \sum_u (p_u - \bar p)^2}}
        \qquad
        \rho_\text{untied} = 1 - \frac{6 \sum_u (\hat p_u - p_u)^2}{n(n^2 - 1)}

    Parameters
    ----------
    scores, ranks, reduction
        As for `kendall_tau_b`.
    formula : {"tied", "untied"}
        Both agree without ties. The paper prints the untied formula; its published numbers
        come from the tied one.

    Returns
    -------
    float, array or tensor
        In [-1, 1]. An instance whose labels all tie, in the prediction or in the truth, has the
        value 0 by either formula.

    References
    ----------
    Spearman (1904), The proof and measurement of association between two things.

    Examples
    --------
    >>> spearman_rho([[3.0, 1.5, -2.0, -7.0]], [[1, 2, 0, 0]])
    0.7777777777777778
    >>> spearman_rho([[3.0, 1.5, -2.0, -7.0]], [[1, 2, 0, 0]], formula="untied")
    0.8
    """
    check_choice("formula", formula, get_args(Formula))
    return per_instance(lambda block: rho_values(block, formula), scores, ranks, reduction)


def gamma(scores: Input, ranks: Input, *, reduction: Reduction = "mean") -> Result:
    r"""Goodman and Kruskal's gamma, which counts only pairs ordered in both.

    .. math:: \gamma = \frac{N_c - N_d}{N_c + N_d}

    Parameters
    ----------
    scores, ranks, reduction
        As for `kendall_tau_b`.

    Returns
    -------
    float, array or tensor
        In [-1, 1]. An instance without a pair ordered in both has the value 0.

    References
    ----------
    Goodman and Kruskal (1954), Measures of association for cross classifications. JASA 49.

    Examples
    --------
    >>> gamma([[3.0, 1.5, -2.0, -7.0]], [[1, 2, 1, 0]])
    0.5
    """
    return per_instance(gamma_values, scores, ranks, reduction)


def positives_tau(scores: Input, ranks: Input, *, reduction: Reduction = "mean") -> Result:
    r"""Kendall's tau-b among the true positives alone, which cannot be learned from a bipartition.

    As `kendall_tau_b` with the irrelevant labels left out, and with raw scores: positives with
    scores below zero are ordered too.

    Parameters
    ----------
    scores, ranks, reduction
        As for `kendall_tau_b`.

    Returns
    -------
    float, array or tensor
        In [-1, 1]. An instance without an ordered pair of positives has the value 0 and does not
        count in the mean; one whose positives all have the same score has the value 0 and counts.

    Examples
    --------
    >>> positives_tau([[-1.0, -2.0, 5.0], [1.0, -1.0, -1.0]], [[2, 1, 0], [1, 0, 0]])
    1.0
    """
    return per_instance(positives_tau_values, scores, ranks, reduction)


def exact_match(scores: Input, ranks: Input, *, reduction: Reduction = "mean") -> Result:
    r"""Share of instances whose predicted order is the true one, with all its ties.

    .. math:: \mathbb{I}\left[\hat p_u = p_u \wedge (s_u > 0 \Leftrightarrow r_u > 0) \ \forall u\right]

    Parameters
    ----------
    scores, ranks, reduction
        As for `kendall_tau_b`.

    Returns
    -------
    float, array or tensor
        0 or 1 per instance. If no label is relevant, predicting none is a match.

    Examples
    --------
    >>> exact_match([[0.9, 0.2, 0.2, -1.0], [0.9, 0.3, 0.2, -1.0]], [[2, 1, 1, 0], [2, 1, 1, 0]])
    0.5
    """
    return per_instance(exact_values, scores, ranks, reduction)


def tau_b_values(block: Instances) -> Values:
    """Core of `kendall_tau_b`."""
    pairs = block.pairs
    untied = untied_pairs(block.predicted, block.known)
    return block.values(ratio(pairs.concordant - pairs.discordant, (untied * pairs.ordered).sqrt()))


def tau_a_values(block: Instances) -> Values:
    """Core of `kendall_tau_a`."""
    pairs = block.pairs
    return block.values(ratio(pairs.concordant - pairs.discordant, block.pairs_in_all))


def gamma_values(block: Instances) -> Values:
    """Core of `gamma`."""
    pairs = block.pairs
    return block.values(ratio(pairs.concordant - pairs.discordant, pairs.concordant + pairs.discordant))


def rho_values(block: Instances, formula: Formula = "tied") -> Values:
    """Core of `spearman_rho`; half-integers keep the sums exact."""
    counted = block.counted
    mean = (counted[:, None] + 1) / 2
    predicted = (block.predicted.middle - mean) * block.known
    true = (block.true.middle - mean) * block.known
    spread = (predicted.square().sum(1) * true.square().sum(1)).sqrt()
    if formula == "tied":
        return block.values(ratio((predicted * true).sum(1), spread))
    squares = (predicted - true).square().sum(1)
    rho = 1 - ratio(6 * squares, counted * (counted.square() - 1))
    return block.values(torch.where(spread > 0, rho, 0.0))


def positives_tau_values(block: Instances) -> Values:
    """Core of `positives_tau`."""
    pairs = compare(block.scores, block.ranks, block.relevant)
    untied = untied_pairs(tally(block.raw_groups, block.relevant), block.relevant)
    tau = ratio(pairs.concordant - pairs.discordant, (untied * pairs.ordered).sqrt())
    return Values(tau, (pairs.ordered > 0).double())


def exact_values(block: Instances) -> Values:
    """Core of `exact_match`; orders are equal if positions and relevant labels are equal."""
    alike = (block.predicted.middle == block.true.middle) & (block.accepted == block.relevant)
    return block.values((alike | ~block.known).all(1).double())
