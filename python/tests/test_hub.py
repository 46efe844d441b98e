# SPDX-License-Identifier: Apache-2.0
"""Models for other systems: modules of sentence-transformers, cards and repositories of the Hub."""
import json
import types
from pathlib import Path

import numpy as np
import pytest
from support import fast

import unicon


def read_safetensors(path):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    assert header.pop("__metadata__") == {"format": "pt"}
    return {name: np.frombuffer(content[8 + size:][slice(*entry["data_offsets"])], "<f4")
            .reshape(entry["shape"]) for name, entry in header.items()}


def run_modules(folder, rows):
    """What torch would do with the modules that a folder lists, by NumPy."""
    for module in json.loads((folder / "modules.json").read_text()):
        kind = module["type"].rpartition(".")[2]
        own = folder / module["path"]
        if kind == "Normalize":
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        elif kind == "Dense":
            config = json.loads((own / "config.json").read_text())
            assert config["activation_function"] == "torch.nn.modules.linear.Identity"
            tensors = read_safetensors(own / "model.safetensors")
            assert tensors["linear.weight"].shape == (config["out_features"], config["in_features"])
            rows = rows @ tensors["linear.weight"].T + tensors["linear.bias"]
        else:
            assert kind == "Transformer"
    return rows


@pytest.mark.parametrize("options", [{}, {"normalize": "off"}, {"center": "off"}])
@pytest.mark.parametrize("side", ["x", "y"])
def test_modules_embed_as_the_model_does(linear, tmp_path, options, side):
    rows = linear["xy".index(side)]
    model = fast(rank=6, **options).fit(*linear).model_
    model.to_sentence_transformers(tmp_path / "head", side)
    made = run_modules(tmp_path / "head", rows)
    np.testing.assert_allclose(made, model.embed(rows, side), atol=2e-6)
    listed = json.loads((tmp_path / "head" / "modules.json").read_text())
    assert [module["idx"] for module in listed] == list(range(2 if options.get("normalize") else 3))
    settings = json.loads((tmp_path / "head" / "config_sentence_transformers.json").read_text())
    assert settings["similarity_fn_name"] == "cosine"


def test_modules_behind_an_encoder(linear, tmp_path):
    base = tmp_path / "base"
    (base / "0_Transformer").mkdir(parents=True)
    (base / "0_Transformer" / "weights.bin").write_bytes(b"weights")
    (base / "modules.json").write_text(json.dumps(
        [{"idx": 0, "name": "0", "path": "0_Transformer",
          "type": "sentence_transformers.models.Transformer"}]))
    (base / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "q: "}}))
    aligner = fast(rank=6).fit(*linear)
    aligner.to_sentence_transformers(tmp_path / "whole", "y", base)
    whole = tmp_path / "whole"
    assert (whole / "0_Transformer" / "weights.bin").read_bytes() == b"weights"
    assert [module["path"] for module in json.loads((whole / "modules.json").read_text())] == [
        "0_Transformer", "1_Normalize", "2_Dense", "3_Normalize"]
    assert json.loads((whole / "config_sentence_transformers.json").read_text()) == {
        "prompts": {"query": "q: "}, "similarity_fn_name": "cosine"}
    np.testing.assert_allclose(run_modules(whole, linear[1]), aligner.transform_y(linear[1]), atol=2e-6)
    with pytest.raises(unicon.FileError, match="is there already"):
        aligner.to_sentence_transformers(whole, "y")
    with pytest.raises(unicon.FileError, match="has no modules.json"):
        aligner.to_sentence_transformers(tmp_path / "other", "y", tmp_path)


def test_what_is_no_dense_module(linear, tmp_path):
    kernel = fast(rank=6, kernel="angular", map="nystrom", landmarks=50).fit(*linear)
    with pytest.raises(unicon.UnsupportedError, match="map nystrom with kernel arccos1.*to_torch"):
        kernel.to_sentence_transformers(tmp_path / "head", "x")
    fused = fast(rank=4, kernel="rbf", batch=100).fit(*linear)
    with pytest.raises(unicon.UnsupportedError, match="several parts"):
        fused.to_sentence_transformers(tmp_path / "head", "x")
    with pytest.raises(unicon.ArgumentError, match="side is 'z'"):
        kernel.to_sentence_transformers(tmp_path / "head", "z")
    assert not (tmp_path / "head").exists()


@pytest.mark.ecosystem
def test_sentence_transformers_opens_them(linear, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    theirs = pytest.importorskip("sentence_transformers",
                                 reason="sentence-transformers is not installed")
    aligner = fast(rank=6).fit(*linear)
    aligner.to_sentence_transformers(tmp_path / "head", "x")
    module = theirs.SentenceTransformer(str(tmp_path / "head"), device="cpu")
    with torch.no_grad():
        made = module({"sentence_embedding": torch.tensor(linear[0])})["sentence_embedding"]
    np.testing.assert_allclose(made.numpy(), aligner.transform_x(linear[0]), atol=2e-6)


@pytest.fixture
def tiny_encoder(tmp_path):
    """A SentenceTransformer of a few thousand random weights, saved by its own package: no network."""
    pytest.importorskip("torch", reason="torch is not installed")
    theirs = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{k}" for k in range(60))]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    folder = str(tmp_path / "bert")
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(folder)
    BertModel(BertConfig(vocab_size=len(words), hidden_size=24, num_hidden_layers=1, num_attention_heads=2,
                         intermediate_size=32, max_position_embeddings=32)).save_pretrained(folder)
    from sentence_transformers.models import Pooling, Transformer
    body = Transformer(folder)
    encoder = theirs.SentenceTransformer(modules=[body, Pooling(24)], device="cpu")
    encoder.save(str(tmp_path / "base"))
    return theirs, theirs.SentenceTransformer(str(tmp_path / "base"), device="cpu"), tmp_path / "base"


@pytest.mark.ecosystem
def test_an_encoder_with_the_modules_behind_it(tiny_encoder, tmp_path):
    """A text goes in, a vector of the shared space comes out; saved and opened by their package once more."""
    theirs, encoder, base = tiny_encoder
    rng = np.random.default_rng(5)
    texts = [" ".join(f"word{k}" for k in rng.integers(0, 60, 6)) for _ in range(200)]
    x = encoder.encode(texts)
    assert x.shape == (200, 24) and np.ptp(x, axis=0).min() > 0
    aligner = fast(rank=6).fit(x, x @ rng.normal(size=(24, 10)).astype("f4"))
    aligner.to_sentence_transformers(tmp_path / "whole", "x", base)
    whole = theirs.SentenceTransformer(str(tmp_path / "whole"), device="cpu")
    wanted = aligner.transform_x(x)
    np.testing.assert_allclose(whole.encode(texts), wanted, atol=1e-5)
    assert whole.similarity_fn_name == "cosine"
    whole.save(str(tmp_path / "again"))
    again = theirs.SentenceTransformer(str(tmp_path / "again"), device="cpu")
    np.testing.assert_allclose(again.encode(texts), wanted, atol=1e-5)
    tensors = encoder.encode(texts, convert_to_tensor=True)  # rows may be tensors
    np.testing.assert_allclose(aligner.transform_x(tensors), wanted, atol=1e-5)


# ---- cards ----


def test_a_card_says_what_the_model_is(linear):
    x, y = linear
    aligner = fast(rank=8, ridge=.05, balance="off").fit(x[:400], y[:400])
    found = aligner.evaluate(x[400:], y[400:], ci=True)
    card = aligner.model_.card(name="Digits", license="Apache-2.0", x="upper halves", evaluation=found,
                               data="Made-up rows.")
    head = card.split("---\n")[1]
    assert "license: apache-2.0\n" in head and "library_name: unicon\n" in head
    assert "# Digits" in card and "Maps upper halves (40 numbers a row) and y (30) into" in card
    assert "| 400 | 400 | 400 | " + aligner.metadata_["input_hash"] in card
    low, high = found["x_to_y"]["ci"]["hit@1"]
    assert f"{found['x_to_y']['hit@1']:.3f} ({low:.3f} to {high:.3f})" in card
    assert "95 % bootstrap intervals" in card and "Made-up rows." in card
    assert "| ridge | 0.05 |" in card and "| rank | 8 |" in card and "| preset | fast |" in card
    assert "Embedded training rows" not in card and "Landmarks" not in card
    kernel = fast(rank=4, kernel="angular", map="nystrom", landmarks=50, balance="softmax:5",
                  balance_bank=60).fit(x, y).model_.card()
    assert "(60 of x and 60 of y), from which scores are balanced" in kernel
    assert "Landmarks of the kernel (50 of x and 50 of y)" in kernel
    assert "| loss |" not in card  # what the preset or the table says is not repeated
    plain = fast(rank=8, ridge=.01, exponent=1, balance="off").fit(x, y).model_.card()
    assert "license" not in plain.split("---\n")[1] and "None were given" in plain
    with pytest.raises(unicon.ArgumentError, match="an identifier such as"):
        aligner.model_.card(license="do what you want")
    with pytest.raises(unicon.ArgumentError, match="name is"):
        aligner.model_.card(name="two\nlines")


def test_a_card_of_auto_has_the_score_of_the_choice(linear):
    model = unicon.Aligner().fit(*linear).model_
    card = model.card()
    assert f"{float(model.metadata['auto_score']):.3f}, the mean of mrr" in card
    assert model.metadata["auto_chosen"] in card
    yaml = pytest.importorskip("yaml", reason="yaml is not installed")
    assert yaml.safe_load(card.split("---\n")[1])["tags"][0] == "unicon"


def test_folders_of_pretrained_models(linear, tmp_path, saved):
    aligner = fast(rank=8).fit(*linear)
    aligner.save_pretrained(tmp_path / "model", license="mit")
    assert "license: mit" in (tmp_path / "model" / "README.md").read_text()
    again = unicon.Aligner.from_pretrained(tmp_path / "model")
    assert saved(again) == saved(aligner) and (again.preset, again.rank) == ("fast", 8)
    assert unicon.Model.from_pretrained(tmp_path / "model").id == aligner.model_.id
    assert unicon.Model.from_pretrained(tmp_path / "model" / "model.safetensors").rank == 8
    with pytest.raises(unicon.FileError, match="has no model.safetensors"):
        unicon.Model.from_pretrained(tmp_path)
    with pytest.raises(unicon.FileError, match="no name of a repository"):
        unicon.Model.from_pretrained(tmp_path / "none" / "here")


def test_the_hub(linear, tmp_path, monkeypatch):
    """Against a stand-in that keeps repositories in folders."""
    import sys

    class Api:
        def __init__(self, token=None):
            assert token == "secret"

        def create_repo(self, repo_id, private, exist_ok):
            (tmp_path / repo_id).mkdir(parents=True)

        def upload_folder(self, repo_id, folder_path, commit_message):
            for file in Path(folder_path).iterdir():
                (tmp_path / repo_id / file.name).write_bytes(file.read_bytes())
            return f"at {repo_id}"

    def download(repo_id, filename, revision, token):
        return str(tmp_path / repo_id / filename)

    monkeypatch.setitem(sys.modules, "huggingface_hub",
                        types.SimpleNamespace(HfApi=Api, hf_hub_download=download))
    aligner = fast(rank=8).fit(*linear)
    assert aligner.push_to_hub("me/digits", token="secret", license="mit") == "at me/digits"
    card = (tmp_path / "me" / "digits" / "README.md").read_text()
    assert "# digits" in card and "from_pretrained(\"me/digits\")" in card
    assert unicon.Model.from_pretrained("me/digits").id == aligner.model_.id
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(unicon.UnsupportedError, match="pip install huggingface_hub"):
        unicon.Model.from_pretrained("me/digits")
    with pytest.raises(unicon.UnsupportedError, match="pip install huggingface_hub"):
        aligner.push_to_hub("me/digits")


@pytest.mark.ecosystem
def test_the_hub_has_what_is_asked_of_it():
    """The functions and arguments that the stand-in takes the place of."""
    import inspect

    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    for function, names in ((hub.HfApi.create_repo, ("repo_id", "private", "exist_ok")),
                            (hub.HfApi.upload_folder, ("repo_id", "folder_path", "commit_message")),
                            (hub.hf_hub_download, ("repo_id", "filename", "revision", "token"))):
        assert set(names) <= set(inspect.signature(function).parameters)
    hub.HfApi(token="secret")
    card = hub.ModelCard(fast(rank=4).fit(*unicon.synth("linear", 100)[:2]).model_.card(license="mit"))
    assert card.data.license == "mit" and card.data.library_name == "unicon"
