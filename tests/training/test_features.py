"""Features on disk: found again exactly when nothing has changed."""

import numpy as np
import pytest
import torch

from gaussianmlr import DataError
from gaussianmlr.nn import backbones
from gaussianmlr.nn.backbones.texts import Place, Texts, TfIdf
from gaussianmlr.training import features
from gaussianmlr.training.features import compute_features


class Counting(backbones.Backbone):
    """Counts the inputs it has seen."""

    def __init__(self, values="unit"):
        super().__init__(3, backbones.Inputs.of_values(2, values), is_map=True)
        self.layer = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 2), torch.nn.BatchNorm2d(3))
        self.seen = 0

    def extract(self, x):
        assert not torch.is_grad_enabled()
        assert not self.layer.training
        self.seen += len(x)
        return self.layer(x)


@pytest.fixture
def backbone():
    torch.manual_seed(0)
    return Counting()


@pytest.fixture
def images():
    return torch.rand(7, 2, 4, 4, generator=torch.Generator().manual_seed(0))


def test_the_second_time_nothing_is_computed(backbone, images, tmp_path):
    first = compute_features(backbone, images, folder=tmp_path, batch_size=3)
    assert backbone.seen == 7
    assert backbone.training
    second = compute_features(backbone, images, folder=tmp_path, batch_size=2)
    assert backbone.seen == 7
    assert torch.equal(first, second)
    backbone.eval()
    with torch.no_grad():
        torch.testing.assert_close(first, backbone(images))


def test_any_change_of_inputs_weights_or_transform_is_seen(backbone, images, tmp_path):
    def computed(*args, **settings):
        before = backbone.seen
        compute_features(*args, folder=tmp_path, **settings)
        return backbone.seen > before

    assert computed(backbone, images)
    assert not computed(backbone, images.clone())
    assert computed(backbone, images.double().float() + 1e-3)
    assert computed(backbone, images.flip(0))
    assert computed(backbone, images, transform={"size": 4})
    assert not computed(backbone, images, transform={"size": 4})
    assert computed(backbone, images, transform={"size": 5})
    with torch.no_grad():
        backbone.layer[1].running_mean[0] += 1.0
    assert computed(backbone, images)
    other = Counting(values="half")
    other.load_state_dict(backbone.state_dict())
    compute_features(other, images, folder=tmp_path)
    assert other.seen == 7  # the same weights, but other values reach them


def test_backbones_of_the_same_weights_that_do_other_things_are_told_apart(tmp_path):
    torch.manual_seed(0)
    plain = backbones.make("fast+fast", channels=1)
    mirrored = backbones.make("fast+fast", channels=1, mirror=True)
    mirrored.load_state_dict(plain.state_dict())
    image = torch.rand(1, 1, 32, 32)
    seen = compute_features(plain, image, folder=tmp_path)
    both = compute_features(mirrored, image, folder=tmp_path)
    assert not torch.allclose(seen, both)
    torch.testing.assert_close(both, compute_features(mirrored, image, cache=False))


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "noise"])
def test_a_damaged_file_is_computed_anew(backbone, images, tmp_path, damage):
    first = compute_features(backbone, images, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[-2] ^= 1
    bad = {"truncate": bytes(data[:-40]), "flip": bytes(data), "empty": b"", "noise": b"noise" * 50}[damage]
    file.write_bytes(bad)
    again = compute_features(backbone, images, folder=tmp_path)
    assert backbone.seen == 14
    assert torch.equal(first, again)
    compute_features(backbone, images, folder=tmp_path)
    assert backbone.seen == 14  # and it is whole again


def test_files_count_by_contents_not_by_name(backbone, images, tmp_path):
    def load(path):
        return np.frombuffer(path.read_bytes(), np.float32).reshape(2, 4, 4).copy()

    paths = [tmp_path / f"{index}.bin" for index in range(7)]
    for path, image in zip(paths, images):
        path.write_bytes(image.numpy().tobytes())
    first = compute_features(backbone, paths, load=load, folder=tmp_path / "kept", batch_size=3)
    torch.testing.assert_close(first, compute_features(backbone, images, cache=False))
    moved = [path.rename(tmp_path / f"moved-{path.name}") for path in paths]
    seen = backbone.seen
    assert torch.equal(first, compute_features(backbone, moved, load=load, folder=tmp_path / "kept"))
    assert backbone.seen == seen
    moved[3].write_bytes(images[0].numpy().tobytes())
    changed = compute_features(backbone, moved, load=load, folder=tmp_path / "kept")
    torch.testing.assert_close(changed[3], first[0])


def test_nothing_half_written_stays(backbone, images, tmp_path, monkeypatch):
    def fails(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(features.np, "save", fails)
    with pytest.warns(UserWarning, match=r"not kept: .*No space left"):
        found = compute_features(backbone, images, folder=tmp_path)
    assert found.shape == (7, 3, 3, 3)
    assert not list(tmp_path.iterdir())


def test_the_cache_folder_follows_the_environment(backbone, images, tmp_path, monkeypatch):
    monkeypatch.setenv("GAUSSIANMLR_CACHE", str(tmp_path / "cache"))
    compute_features(backbone, images)
    assert len(list((tmp_path / "cache" / "features").iterdir())) == 1


def test_progress_is_told_and_no_inputs_are_no_error(backbone, images, tmp_path):
    told = []
    compute_features(backbone, images, folder=tmp_path, batch_size=4, progress=lambda *now: told.append(now))
    assert told == [(4, 7), (7, 7)]
    assert len(compute_features(backbone, images[:0], folder=tmp_path)) == 0
    assert torch.equal(
        compute_features(backbone, images.numpy(), cache=False)[:1].isfinite().all(), torch.tensor(True)
    )


def test_mistakes_are_named(backbone, images, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"a")
    with pytest.raises(DataError, match="expected a function `load`"):
        compute_features(backbone, [tmp_path / "a.bin"])
    with pytest.raises(DataError, match=r"cannot read .*b\.bin.*No such file"):
        compute_features(backbone, [tmp_path / "b.bin"], load=lambda path: images[0], folder=tmp_path)
    with pytest.raises(DataError, match="cannot be part of a key"):
        compute_features(backbone, images, transform={"crop": object()}, folder=tmp_path)
    with pytest.raises(DataError, match="batch_size is 0"):
        compute_features(backbone, images, batch_size=0)
    shapes = {"a.bin": images[0], "c.bin": images[0, :, :3]}
    (tmp_path / "c.bin").write_bytes(b"c")
    with pytest.raises(DataError, match=r"c\.bin.*expected `load` to return one shape"):
        compute_features(
            backbone,
            [tmp_path / name for name in shapes],
            load=lambda path: shapes[path.name],
            folder=tmp_path,
        )


def test_texts_are_computed_once_and_progress_ends_once(monkeypatch):
    features._TEXTS.clear()
    encoder = TfIdf(2, weights=[1.0, 2.0])
    backbone = Texts(encoder, 2, [Place(0, 2)])
    rows = torch.tensor([[1.0, 2.0], [2.0, 0.0], [1.0, 2.0], [1.0, 1.0]])
    seen, told = [], []
    encode = encoder.encode
    monkeypatch.setattr(encoder, "encode", lambda tokens: seen.append(len(tokens)) or encode(tokens))
    first = compute_features(backbone, rows, cache=False, progress=lambda *done: told.append(done))
    assert torch.equal(first, encode(rows.long()))
    assert sum(seen) == 3  # the third row is the first one
    assert told == [(4, 4)]
    more = torch.cat([rows, torch.tensor([[2.0, 2.0]])])
    compute_features(backbone, more, cache=False, progress=lambda *done: told.append(done))
    assert (sum(seen), told) == (4, [(4, 4), (5, 5)])
    compute_features(backbone, rows, cache=False, progress=lambda *done: told.append(done))
    assert (sum(seen), told[2:]) == (4, [(4, 4)])
