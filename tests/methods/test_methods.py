"""Methods: readings, stages, the registry, and a method from outside."""

import dataclasses
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from gaussianmlr import DataError, losses, methods, normal
from support import oracles

every_method = pytest.mark.parametrize("name", methods.available())


def random_outputs(method, count=20, labels=5, seed=0, scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    return {
        output.name: scale * torch.randn(count, output.size(labels), generator=generator)
        for output in method.outputs
    }


@every_method
def test_scores_and_probabilities_agree_on_relevance(name):
    method = methods.make(name)
    reading = method.read(random_outputs(method))
    assert reading.scores.shape == reading.p_relevant.shape == (20, 5)
    assert torch.equal(reading.scores > 0, reading.p_relevant > 0.5)
    assert ((reading.p_relevant >= 0) & (reading.p_relevant <= 1)).all()


@pytest.mark.parametrize(
    ("name", "supervision"),
    [(name, "weak") for name in methods.available()]
    + [(name, "strong") for name in methods.available() if name != "br"],
)
def test_every_method_learns_the_order_of_one_instance(name, supervision):
    """Descending on free outputs finds the true relevance, and under strong supervision the order."""
    method = methods.make(name, supervision=supervision)
    ranks = torch.tensor([[3, 0, 1, 2, 0]])
    outputs = {key: value[:1].requires_grad_() for key, value in random_outputs(method, scale=0.1).items()}
    for stage in method.stages:
        free = [outputs[key] for key in stage.trains or outputs]
        optimiser = torch.optim.Adam(free, lr=0.1)
        for _ in range(200):
            optimiser.zero_grad()
            method.loss(outputs, ranks, stage=stage.name).backward()
            optimiser.step()
    scores = method.read(outputs).scores.detach()[0]
    assert torch.equal(scores > 0, ranks[0] > 0)
    if supervision == "strong":
        assert scores.argsort(descending=True)[:3].tolist() == [0, 3, 2]


def test_gmlr_reads_significances_in_a_bound():
    method = methods.make("gmlr", bound=3.0)
    outputs = {"mu": torch.tensor([[1.0, -2.0]]), "logvar": torch.tensor([[1e6, -1e6]])}
    reading = method.read(outputs)
    assert torch.allclose(reading.sigma, torch.exp(torch.tensor([[1.5, -1.5]])))
    assert torch.equal(reading.scores, outputs["mu"])
    assert torch.allclose(reading.p_relevant, normal.p_relevant(reading.mu, reading.sigma))
    small = torch.tensor([[0.01, -0.02]])
    assert torch.allclose(method.read({"mu": small, "logvar": small}).sigma, torch.exp(small / 2), rtol=1e-5)


def test_gmlr_in_the_canonical_gauge_has_a_mean_logvar_of_zero():
    method = methods.make("gmlr", gauge="canonical")
    reading = method.read(random_outputs(method))
    assert torch.allclose(reading.sigma.log().mean(-1), torch.zeros(20), atol=1e-6)
    shifted = random_outputs(method)
    assert not torch.allclose(methods.make("gmlr").read(shifted).sigma, reading.sigma)


def test_in_the_canonical_gauge_unknown_labels_drop_out():
    method, ranks = methods.make("gmlr", gauge="canonical"), torch.tensor([[1, 0, -1]])
    found = []
    for unknown in (3.0, -3.0):
        logvar = torch.tensor([[0.5, -0.5, unknown]], requires_grad=True)
        loss = method.loss({"mu": torch.tensor([[1.0, -1.0, 0.3]]), "logvar": logvar}, ranks)
        loss.backward()
        found.append(loss.item())
        assert logvar.grad[0, 2] == 0
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["br", "lsep", "gmlr"])
def test_small_scores_in_half_precision_stay_on_their_side(name):
    method = methods.make(name)
    outputs = {output.name: torch.zeros(1, 2, dtype=torch.bfloat16) for output in method.outputs}
    outputs[method.outputs[0].name] = torch.tensor([[1e-3, -1e-3]], dtype=torch.bfloat16)
    assert (method.read(outputs).p_relevant > 0.5).tolist() == [[True, False]]


def test_gmlr_loss_under_half_precision_outputs():
    method = methods.make("gmlr")
    outputs = random_outputs(method)
    ranks = torch.randint(0, 4, (20, 5))
    half = {key: value.bfloat16() for key, value in outputs.items()}
    exact = method.loss({key: value.double() for key, value in half.items()}, ranks)
    assert torch.allclose(method.loss(half, ranks).double(), exact, rtol=1e-5)


def test_lsep_ranks_relevant_labels_by_their_scores():
    method = methods.make("lsep")
    outputs = random_outputs(method, count=200)
    reading, margin = method.read(outputs), outputs["score"] - outputs["threshold"]
    assert torch.equal(reading.scores > 0, margin > 0)
    for scores, raw, gap in zip(reading.scores, outputs["score"], margin):
        relevant = gap > 0
        assert torch.equal(scores[relevant].argsort(), raw[relevant].argsort())
        assert torch.equal(scores[~relevant], gap[~relevant])
        if relevant.any():
            least = raw[relevant].argmin()
            assert torch.isclose(scores[relevant][least], gap[relevant][least], atol=1e-6)
    assert torch.equal(methods.make("lsep", reading="margin").read(outputs).scores, margin)


class ScoresAndThresholds(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1))
        self.layers = nn.ModuleDict({name: nn.Linear(16, 4) for name in ("score", "threshold")})

    def forward(self, x):
        features = self.body(x)
        return {name: layer(features) for name, layer in self.layers.items()}


def train(model, method, x, ranks, steps):
    for stage in method.stages:
        methods.begin_stage(model, stage, model.layers)
        yield stage
        optimiser = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=0.01)
        for _ in range(steps):
            optimiser.zero_grad()
            method.loss(model(x), ranks, stage=stage.name).backward()
            optimiser.step()
    yield None


def test_the_threshold_stage_trains_the_threshold_layer_alone():
    torch.manual_seed(0)
    model, method = ScoresAndThresholds(), methods.make("lsep")
    x = torch.randn(64, 6)
    ranks = torch.from_numpy(np.argsort(np.argsort(x[:, :4].numpy(), 1), 1)) * (x[:, :4] > 0).long()
    states = [
        {key: value.clone() for key, value in model.state_dict().items()}
        for _ in train(model, method, x, ranks, steps=150)
    ]
    before, between, after = states
    assert not torch.equal(before["body.1.running_mean"], between["body.1.running_mean"])
    assert not torch.equal(before["layers.score.weight"], between["layers.score.weight"])
    changed = {key for key in after if not torch.equal(between[key], after[key])}
    assert changed == {"layers.threshold.weight", "layers.threshold.bias"}
    model.eval()
    found = method.read(model(x)).scores
    assert ((found > 0) == (ranks > 0)).float().mean() > 0.9


def test_a_stage_of_layers_that_are_not_there():
    with pytest.raises(DataError, match=r"trains \['threshold'\], but .* layers for \['score'\]"):
        methods.begin_stage(nn.Linear(1, 1), methods.make("lsep").stages[1], {"score": nn.Linear(1, 1)})


@pytest.mark.parametrize("vote", ["correct", "published"])
def test_crpc_votes_against_a_naive_loop(vote):
    method = methods.make("crpc", vote=vote)
    outputs = random_outputs(method)
    found = method.read(outputs).scores
    expected = [oracles.crpc_votes(row, 5, vote == "published") for row in outputs["pair"].tolist()]
    assert torch.allclose(found, torch.tensor(expected), atol=1e-5)


def test_crpc_with_the_published_vote_starves_labels_that_stand_late():
    """The same sure order, told from the left and from the right: only wins of left labels count."""
    pairs = torch.tensor([[9.0, 9.0, -9.0], [-9.0, -9.0, 9.0]])  # a > virtual > b, and b > virtual > a
    scores = methods.make("crpc", vote="published").read({"pair": pairs}).scores
    assert scores.round().tolist() == [[2.0, 0.0], [0.0, 1.0]]  # two wins of a, one of two wins of b


def test_crpc_reads_a_consistent_order_back():
    """Comparisons made from true strengths give the order of the strengths."""
    strengths = torch.tensor([2.0, -1.0, 1.0, 0.5, 0.0])  # the last is the virtual label
    left, right = losses.pair_indices(4)
    reading = methods.make("crpc").read({"pair": 5 * (strengths[left] - strengths[right])[None]})
    assert reading.scores[0].argsort(descending=True).tolist() == [0, 2, 3, 1]
    assert (reading.scores[0] > 0).tolist() == [True, False, True, True]


@every_method
def test_settings_make_the_method_again(name):
    method = methods.make(name)
    assert methods.make(name, **method.settings()) == method
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.supervision = "weak"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: methods.make("gmrl"), "no method 'gmrl'; known are br, crpc, gmlr"),
        (
            lambda: methods.make("gmlr", bond=3),
            "it has balance, bound, gauge, supervision",
        ),
        (lambda: methods.make("br", supervision="strong"), "'br' takes supervision 'weak', not 'strong'"),
        (lambda: methods.make("gmlr", supervision="some"), "'strong' or 'weak', not 'some'"),
        (lambda: methods.make("gmlr", bound=0), "bound above 0"),
        (lambda: methods.make("gmlr", gauge="odd"), "not 'odd'"),
        (lambda: methods.make("gmlr", balance="odd"), "'parts' or 'comparisons', not 'odd'"),
        (lambda: methods.make("lsep", reading="odd"), "not 'odd'"),
        (lambda: methods.make("crpc", vote="odd"), "not 'odd'"),
        (lambda: methods.make("nowhere.at.all:Thing"), "cannot import the method 'nowhere.at.all:Thing'"),
        (lambda: methods.make("math:sqrt"), "'math:sqrt' is not a method"),
        (lambda: methods.make("gaussianmlr.methods:Method"), "not a complete method: it lacks loss, read"),
        (lambda: methods.register(type("Nameless", (methods.Method,), {})), "Nameless has no name; expected"),
        (lambda: methods.make("crpc").read({"pair": torch.zeros(1, 4)}), "got 4"),
    ],
)
def test_bad_settings_are_named(call, message):
    with pytest.raises(DataError, match=message):
        call()


@dataclass(frozen=True)
class Hinge(methods.Method):
    margin: float = 1.0
    name: ClassVar[str] = "hinge"
    outputs: ClassVar[tuple[methods.Output, ...]] = (methods.Output("score"),)
    supervisions: ClassVar[tuple[str, ...]] = ("weak",)
    supervision: str = "weak"

    def loss(self, outputs, ranks, *, stage=None, reduction="mean"):
        signed = torch.where(ranks > 0, outputs["score"], -outputs["score"])
        return losses.reduce((self.margin - signed).clamp(min=0).mean(-1), reduction)

    def read(self, outputs):
        return methods.Reading.of_scores(outputs["score"])


def test_a_method_from_outside(monkeypatch):
    from gaussianmlr.methods import base

    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))
    monkeypatch.setitem(sys.modules, "outside", sys.modules[__name__])
    assert methods.make("outside:Hinge", margin=2.0).margin == 2.0
    assert "hinge" not in methods.available()
    methods.register(Hinge)
    assert methods.make("hinge") == Hinge()
    with pytest.raises(DataError, match=r"'gmlr' is already registered: gaussianmlr\.methods\.gmlr:Gmlr"):
        methods.register(type("Gmlr", (methods.Gmlr,), {"__module__": "elsewhere"}))


@pytest.mark.parametrize(
    ("setting", "text"),
    [({"vote": "loud"}, "vote is 'correct' or"), ({"ties": "wins"}, "ties is 'skip' or")],
)
def test_options_of_crpc_that_do_not_exist(setting, text):
    with pytest.raises(DataError, match=text):
        methods.make("crpc", **setting)
