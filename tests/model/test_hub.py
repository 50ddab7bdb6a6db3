"""Models by the names that the Hugging Face Hub has: local folders and its cache; no network."""

import json

import huggingface_hub
import numpy as np
import pytest
import torch
import yaml
from huggingface_hub import ModelCard

import gaussianmlr
from gaussianmlr.data.loading import Arrays
from gaussianmlr.errors import DataError
from gaussianmlr.model import Model
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.fit import fit

COMMIT = "0" * 40
LABELS = ("sky", "sea", "sun")


def make_data(count=80, seed=0):
    x = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
    return Arrays(x, gaussianmlr.densify(x[:, :3]))


@pytest.fixture(scope="module")
def model():
    recipe = Recipe(backbone="mlp", epochs=2, head_settings={"hidden": 8})
    return fit(recipe, make_data(), make_data(40, 1), labels=LABELS).model


def same(one, two):
    x = make_data().inputs
    return torch.equal(one.read(x).scores, two.read(x).scores)


def test_a_folder_is_saved_and_opened_by_both_names(model, tmp_path):
    folder = model.save_pretrained(tmp_path / "model", data="Hikes of *one* summer.", use="Nothing serious.")
    again = Model.from_pretrained(folder)
    assert same(again, model)
    assert same(gaussianmlr.load(folder), model)
    model.save_pretrained(folder)  # another model is replaced
    assert "Hikes" not in (folder / "README.md").read_text()


def test_the_card_is_one_that_the_hub_reads(model, tmp_path):
    folder = model.save_pretrained(tmp_path / "model", data="Hikes of *one* summer.", use="Nothing serious.")
    card = ModelCard.load(folder / "README.md")
    assert card.data.library_name == "gaussianmlr"
    assert "multi-label-ranking" in card.data.tags
    for text in (*LABELS, "Hikes of *one* summer.", "Nothing serious.", "## Metrics", "## Intended use"):
        assert text in card.text
    value = f"{100 * model.about['metrics']['tau_b']:.2f}"
    assert f"| tau-b | {value} |" in card.text


def test_a_card_without_metrics_says_how_to_measure(model):
    from dataclasses import replace

    card = replace(model, about={}).card()
    assert "## Metrics\n\nNone were recorded in training; `gmlr evaluate FOLDER DATA` measures them." in card
    assert "over all epochs: unknown" in card
    assert "over all epochs: 1,234" in replace(model, about={"images": 1234}).card()


def test_labels_cannot_change_the_card(model):
    from dataclasses import replace

    strange = ("---\nlicense: other\n---", "<script>alert(1)</script>", "[a](javascript:b)")
    card = replace(model, labels=strange).card()
    front = yaml.safe_load(card.split("---")[1])
    assert set(front) == {"library_name", "tags"}
    assert "\nlicense" not in card
    assert "<script" not in card.replace("\\<script", "")
    assert "[a](" not in card.replace("\\[a](", "")


def test_what_is_no_model_is_neither_replaced_nor_opened(model, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "config.json").write_text('{"mine": 1}')
    with pytest.raises(DataError, match="is not a model"):
        model.save_pretrained(theirs)
    assert (theirs / "config.json").read_text() == '{"mine": 1}'
    with pytest.raises(DataError, match="is not a model"):
        Model.from_pretrained(theirs)
    (theirs / "config.json").write_text("[" * 100_000)  # the mixin would open it before any check
    with pytest.raises(DataError):
        Model.from_pretrained(theirs)
    for name in ("a/b/c", "no such: name"):
        with pytest.raises(DataError, match="neither a folder nor a name on the Hub"):
            Model.from_pretrained(name, local_files_only=True)
    with pytest.raises(DataError, match="is no folder and not in the cache of the Hub"):
        Model.from_pretrained("nobody/nothing", local_files_only=True, cache_dir=tmp_path / "empty")


def in_cache(model, cache, change=lambda folder: None):
    """The folder of the Hub's cache: blobs by digest, and links to them."""
    place = cache / "models--someone--hikes"
    saved = model.save(place / "saved")
    change(saved)
    snapshot = place / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(COMMIT)
    (place / "blobs").mkdir()
    for file in saved.iterdir():
        blob = place / "blobs" / f"blob-of-{file.name}"
        blob.write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(blob)


def test_what_was_downloaded_is_opened_from_the_cache(model, tmp_path):
    in_cache(model, tmp_path)
    assert same(Model.from_pretrained("someone/hikes", cache_dir=tmp_path, local_files_only=True), model)


def test_what_was_downloaded_is_data_not_code(model, tmp_path):
    def name_code(folder):
        config = json.loads((folder / "config.json").read_text())
        config["recipe"]["backbone"] = "os:system"
        del config["config_sha256"]
        (folder / "config.json").write_text(json.dumps(config))

    in_cache(model, tmp_path, name_code)
    with pytest.raises(DataError, match="os:system"):
        Model.from_pretrained("someone/hikes", cache_dir=tmp_path, local_files_only=True)


def test_a_push_uploads_the_folder_that_load_opens(model, monkeypatch):
    """Of the Hub, only its two requests are replaced."""
    sent = {}

    def create(self, repo_id, **options):
        return huggingface_hub.RepoUrl(f"https://huggingface.co/{repo_id}")

    def upload(self, *, repo_id, folder_path, **options):
        sent["files"] = sorted(file.name for file in folder_path.iterdir())
        sent["model"] = gaussianmlr.load(folder_path)
        sent["card"] = (folder_path / "README.md").read_text()
        return f"https://huggingface.co/{repo_id}/commit/1"

    monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", create)
    monkeypatch.setattr(huggingface_hub.HfApi, "upload_folder", upload)
    address = model.push_to_hub("someone/hikes", data="Hikes.", private=True)
    assert address.endswith("someone/hikes/commit/1")
    assert sent["files"] == ["README.md", "config.json", "model.safetensors"]
    assert same(sent["model"], model)
    assert "Hikes." in sent["card"]
