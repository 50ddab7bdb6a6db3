"""Heads and whole networks: every method with every head, what belongs to whom, and learning."""

import pytest
import torch
from torch import nn

from gaussianmlr import DataError, methods
from gaussianmlr.methods import begin_stage
from gaussianmlr.nn import backbones, heads
from gaussianmlr.nn.heads import make_head
from gaussianmlr.nn.network import Network, make_network

every_method = pytest.mark.parametrize("name", methods.available())
every_head = pytest.mark.parametrize("head", heads.available())


def network(name="gmlr", head="tokens", labels=5, seed=0, **settings):
    torch.manual_seed(seed)
    return make_network(methods.make(name), labels=labels, channels=1, head=head, **settings)


@every_method
@every_head
def test_every_method_gets_what_it_asks_for_from_every_head(name, head):
    method, model = methods.make(name), network(name, head)
    outputs = model(torch.rand(3, 1, 32, 32))
    assert {key: value.shape for key, value in outputs.items()} == {
        output.name: (3, output.size(5)) for output in method.outputs
    }
    assert set(model.layers) == {output.name for output in method.outputs}
    assert method.read(outputs).scores.shape == (3, 5)


@every_method
@every_head
def test_gradients_reach_every_parameter_of_the_head(name, head):
    model = network(name, head)
    outputs = model(torch.rand(4, 1, 64, 64))
    sum(output.square().sum() for output in outputs.values()).backward()
    dead = [key for key, p in model.head.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert not dead


@every_head
def test_only_the_threshold_layer_moves_in_the_threshold_stage(head):
    method, model = methods.make("lsep"), network("lsep", head)
    begin_stage(model, method.stages[1], model.layers)
    free = [key for key, p in model.named_parameters() if p.requires_grad]
    assert free
    assert all(key.startswith("head.layers.threshold.") for key in free)
    x, ranks = torch.rand(4, 1, 32, 32), torch.randint(0, 3, (4, 5))
    before, statistics = model(x), model.backbone.stem[2].running_mean.clone()
    optimizer = torch.optim.SGD(backbones.parameter_groups(model, 1.0))
    method.loss(model(x), ranks, stage="threshold").backward()
    optimizer.step()
    after = model(x)
    assert torch.equal(before["score"], after["score"])
    assert not torch.equal(before["threshold"], after["threshold"])
    assert torch.equal(statistics, model.backbone.stem[2].running_mean)


def test_the_linear_head_is_the_papers():
    backbone = backbones.make("resnet18", channels=1)
    head = make_head("linear", methods.make("gmlr").outputs, labels=10, backbone=backbone)
    linear = [part for part in head.modules() if isinstance(part, nn.Linear)]
    assert [(part.in_features, part.out_features) for part in linear] == [(512, 512), (512, 10), (512, 10)]
    features = torch.rand(2, 512, 7, 7)
    for name, output in head(features).items():
        hidden = torch.relu(linear[0](features.mean((2, 3))))
        torch.testing.assert_close(output, head.layers[name](hidden))
        torch.testing.assert_close(output, head(features.mean((2, 3)))[name])  # a vector is pooled already


def test_tokens_are_what_the_formula_says():
    model = network().eval()
    head, features = model.head, torch.randn(2, 128, 3, 4)
    for n in range(2):
        for k in range(5):
            places = [features[n, :, i, j].view(1, -1, 1, 1) for i in range(3) for j in range(4)]
            sure = torch.stack([head.queries[k] @ head.keys(place).flatten() for place in places])
            values = torch.stack([head.values(place).flatten() for place in places])
            found = (sure.exp() / sure.exp().sum()) @ values
            what = torch.cat([found, sure.max()[None], sure.exp().mean().log()[None]])
            token = torch.relu(head.found(what) + head.named(head.names[k]))
            torch.testing.assert_close(head.tokens(features)[n, k], token, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(
                head(features)["mu"][n, k], head.layers["mu"].network(token)[0], rtol=1e-4, atol=1e-5
            )


def test_the_token_head_does_not_care_where_a_label_is():
    model, features = network().eval(), torch.randn(2, 128, 4, 4)
    moved = features.roll((1, 2), (2, 3))
    torch.testing.assert_close(model.head(features)["mu"], model.head(moved)["mu"])
    torch.testing.assert_close(
        model.head.attention(features).roll((1, 2), (2, 3)), model.head.attention(moved)
    )


@pytest.mark.parametrize("name", ["gmlr", "lsep", "br"])
def test_labels_that_change_query_and_name_change_outputs(name):
    model, x, order = network(name).eval(), torch.rand(3, 1, 32, 32), torch.tensor([2, 0, 4, 1, 3])
    before = model(x)
    with torch.no_grad():
        model.head.queries.copy_(model.head.queries[order])
        model.head.names.copy_(model.head.names[order])
    for key, value in model(x).items():
        torch.testing.assert_close(value, before[key][:, order])
        assert not torch.allclose(value, before[key])


def test_pairs_read_the_two_tokens_they_name():
    model, features = network("crpc", labels=3).eval(), torch.randn(2, 128, 2, 2)
    readout, tokens = model.head.layers["pair"], model.head.tokens(features)
    with_virtual = [*tokens.unbind(1), readout.virtual.expand(2, -1)]
    expected = [
        readout.last(torch.relu(readout.left(with_virtual[u]) + readout.right(with_virtual[v])))
        for u, v in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    ]
    torch.testing.assert_close(model.head(features)["pair"], torch.cat(expected, 1))


@every_head
def test_a_seed_makes_the_same_network_and_a_state_dict_restores_it(head, tmp_path):
    one, same, other = (network(head=head, seed=seed).eval() for seed in (1, 1, 2))
    x = torch.rand(2, 1, 32, 32)
    assert torch.equal(one(x)["mu"], same(x)["mu"])
    assert not torch.equal(one(x)["mu"], other(x)["mu"])
    torch.save(one.state_dict(), tmp_path / "network.pt")
    backbones.load_weights(other, tmp_path / "network.pt")
    assert torch.equal(one(x)["logvar"], other(x)["logvar"])


def test_dropout_works_in_training_alone():
    model, x = network(head_settings={"dropout": 0.5}), torch.rand(2, 1, 32, 32)
    assert not torch.equal(model(x)["mu"], model(x)["mu"])
    assert torch.equal(model.eval()(x)["mu"], model(x)["mu"])


def test_frozen_backbones_stay_frozen_inside_a_network():
    model = network()
    backbones.freeze(model.backbone, "all")
    begin_stage(model, methods.make("gmlr").stages[0], model.layers)
    assert model.head.training
    assert not any(part.training for part in model.backbone.modules())
    x = torch.rand(4, 1, 32, 32)
    assert torch.equal(model.backbone(x)[:1], model.backbone(x)[:1])
    assert {id(p) for g in backbones.parameter_groups(model, 1.0) for p in g["params"]} == {
        id(p) for p in model.head.parameters()
    }


def test_a_thousand_labels_fit():
    model = network(labels=1000)
    outputs = model(torch.rand(4, 1, 224, 224))
    assert outputs["mu"].shape == (4, 1000)
    outputs["mu"].mean().backward()
    assert sum(p.numel() for p in model.head.parameters()) < 300_000


def test_mistakes_are_named():
    outputs, vector = methods.make("gmlr").outputs, backbones.make("resnet18", channels=1, pool=True)
    with pytest.raises(DataError, match=r"needs a map .* 'linear'"):
        make_head("tokens", outputs, labels=3, backbone=vector)
    with pytest.raises(DataError, match="no head 'token'; known are linear, tokens"):
        make_head("token", outputs, labels=3, backbone=vector)
    with pytest.raises(DataError, match="no setting 'width'; it has hidden, dropout"):
        make_head("linear", outputs, labels=3, backbone=vector, width=3)
    with pytest.raises(DataError, match="0 labels"):
        make_head("linear", outputs, labels=0, backbone=vector)


def squares(count, labels=4, side=64, seed=0):
    """Canvases with bright squares: the column of four says the label, the size its significance."""
    generator = torch.Generator().manual_seed(seed)
    images, ranks = torch.zeros(count, 1, side, side), torch.zeros(count, labels, dtype=torch.long)
    for n in range(count):
        present = torch.randperm(labels, generator=generator)[: 1 + n % labels]
        sizes = 4 + 3 * torch.randperm(4, generator=generator)[: len(present)]
        for label, size in zip(present.tolist(), sizes.tolist()):
            top = int(torch.randint(0, side - size, (), generator=generator))
            # The pattern names the label: stripes of a width of its own.
            patch = (torch.arange(size) // (label + 1) % 2).float().expand(size, size)
            images[n, 0, top : top + size, 16 * label : 16 * label + size] = 0.5 + 0.5 * patch
        ranks[n, present] = sizes.argsort().argsort() + 1
    return images, ranks


def test_fast_and_tokens_learn_small_canvases():
    method, model = methods.make("gmlr"), network(labels=4)
    images, ranks = squares(64)
    optimizer = torch.optim.AdamW(backbones.parameter_groups(model, 1e-3))
    model.train()
    losses = []
    for _ in range(200):  # steps jump, and another processor's jumps are others
        optimizer.zero_grad()
        loss = method.loss(model(images), ranks)
        losses.append(loss.item())
        if losses[-1] < 0.05:
            break
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert losses[0] > 1.0
    assert losses[-1] < 0.05


def test_a_network_of_parts():
    backbone = backbones.make(nn.Conv2d(2, 6, 8, stride=8), channels=2, size=32)
    head = make_head("tokens", methods.make("pl").outputs, labels=3, backbone=backbone, width=8, hidden=8)
    assert Network(backbone, head)(torch.rand(2, 2, 32, 32))["score"].shape == (2, 3)


@every_method
def test_a_linear_head_without_a_hidden_layer_is_one_layer_per_output(name):
    backbone = backbones.make("mlp", channels=3, width=8)
    outputs = methods.make(name).outputs
    head = make_head("linear", outputs, labels=4, backbone=backbone, hidden=0, dropout=0.5).eval()
    features = torch.rand(5, 8)
    found = head(features)
    for output in outputs:
        layer = head.layers[output.name]
        expected = layer.values.expand(5, -1) if output.fixed else features @ layer.weight.T + layer.bias
        torch.testing.assert_close(found[output.name], expected)


@pytest.mark.parametrize("hidden", [-1, True, 1.5])
def test_sizes_of_hidden_layers_are_whole_numbers(hidden):
    backbone = backbones.make("mlp", channels=3, width=8)
    with pytest.raises(DataError, match=f"hidden is {hidden}; expected a number of units"):
        make_head("linear", methods.make("gmlr").outputs, labels=4, backbone=backbone, hidden=hidden)
