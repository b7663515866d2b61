"""Old Transformer-XL checkpoints: what they compute, by plain loops over their own tensors, and what ours compute."""

import json
import math
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from tests.backbone.test_relative import stream
from tests.convert.parts import PARITY, edit_json, weights
from unmask.convert import export_hf, import_hf
from unmask.convert.hf_folder import CONVERT
from unmask.convert.transfo_xl import PICKLED_WORDS, READ_WORDS
from unmask.errors import UserError
from unmask.infer.model import open_run
from unmask.predict import Adaptive, Tokens
from unmask.text import Tokenizer, WholeWords

WORDS = ["<eos>", "the", ",", ".", "of", "<unk>", "and", "in", "to", "a", "cat", "dog", "river", "rain", "sun", "boat",
         "old", "house", "bird", "every", "morning", "small"]  # fmt: skip
CONFIG = {
    "model_type": "transfo-xl", "architectures": ["TransfoXLLMHeadModel"], "vocab_size": len(WORDS), "cutoffs": [6, 12, 17],
    "d_model": 12, "d_embed": 12, "n_head": 2, "d_head": 5, "d_inner": 20, "div_val": 2, "pre_lnorm": False, "n_layer": 2,
    "mem_len": 9, "clamp_len": -1, "same_length": False, "attn_type": 0, "untie_r": True, "adaptive": True,
    "tie_projs": [False, True, True, True], "tie_weight": True, "layer_norm_epsilon": 1e-5, "sample_softmax": -1,
    "init": "normal",
}  # fmt: skip
IDS = torch.randint(0, len(WORDS), (2, 14), generator=torch.Generator().manual_seed(1))


def tensors_of(config):
    """Random weights under the names of the files."""
    random = torch.Generator().manual_seed(0)

    def numbers(*shape):
        return torch.randn(shape, generator=random) * 0.3

    width, inner, edges = config["d_model"], config["n_head"] * config["d_head"], edges_of(config)
    found = {"transformer.pos_emb.inv_freq": numbers(width // 2)}
    one = config["div_val"] == 1
    for i, (begin, end) in enumerate([(0, edges[-1])] if one else zip(edges, edges[1:], strict=False)):
        narrow = width // config["div_val"] ** i
        found[f"transformer.word_emb.emb_layers.{i}.weight"] = numbers(end - begin, narrow)
        found[f"crit.out_layers.{i}.weight"] = found[f"transformer.word_emb.emb_layers.{i}.weight"].clone()
        found[f"crit.out_layers.{i}.bias"] = numbers(end - begin)
        if not one:
            found[f"transformer.word_emb.emb_projs.{i}"] = numbers(width, narrow)
            tied = config["tie_projs"][i]
            found[f"crit.out_projs.{i}"] = (
                found[f"transformer.word_emb.emb_projs.{i}"].clone() if tied else numbers(width, narrow)
            )
    if len(edges) > 2:
        found["crit.cluster_weight"], found["crit.cluster_bias"] = (
            numbers(len(edges) - 2, width),
            numbers(len(edges) - 2),
        )
    if not config["untie_r"]:
        shape = (config["n_head"], config["d_head"])
        found |= {"transformer.r_w_bias": numbers(*shape), "transformer.r_r_bias": numbers(*shape)}
    for n in range(config["n_layer"]):
        attention, feedforward = f"transformer.layers.{n}.dec_attn.", f"transformer.layers.{n}.pos_ff."
        found[attention + "qkv_net.weight"] = numbers(3 * inner, width)
        found[attention + "r_net.weight"] = numbers(inner, width)
        found[attention + "o_net.weight"] = numbers(width, inner)
        for name in ("r_w_bias", "r_r_bias"):
            shared = found.get(f"transformer.{name}")
            own = numbers(config["n_head"], config["d_head"])
            found[attention + name] = own if shared is None else shared.clone()
        found[feedforward + "CoreNet.0.weight"] = numbers(config["d_inner"], width)
        found[feedforward + "CoreNet.0.bias"] = numbers(config["d_inner"])
        found[feedforward + "CoreNet.3.weight"] = numbers(width, config["d_inner"])
        found[feedforward + "CoreNet.3.bias"] = numbers(width)
        for place in (attention, feedforward):
            found[place + "layer_norm.weight"] = 1 + numbers(width)
            found[place + "layer_norm.bias"] = numbers(width)
    return found


def edges_of(config):
    return [0, *config["cutoffs"], config["vocab_size"]]


def vector(t, config, token):
    """The embedding of one token."""
    edges, one = edges_of(config), config["div_val"] == 1
    cluster = next(i for i in range(len(edges) - 1) if edges[i] <= token < edges[i + 1])
    row = t["transformer.word_emb.emb_layers.0.weight"][token] if one else (
        t[f"transformer.word_emb.emb_projs.{cluster}"]
        @ t[f"transformer.word_emb.emb_layers.{cluster}.weight"][token - edges[cluster]]
    )  # fmt: skip
    return row * math.sqrt(config["d_model"])


def shifted(x):
    """The trick of the paper's appendix B: row i of what was computed for all distances, moved to where they belong."""
    rows, columns = x.shape
    padded = torch.cat((torch.zeros(rows, 1), x), 1)
    return padded.view(columns + 1, rows)[1:].reshape(rows, columns)


def attend(t, config, layer, x, memory):
    place = f"transformer.layers.{layer}.dec_attn."
    read = torch.cat((memory, x))
    query, key, value = (torch.cat((memory, x)) @ part.T for part in t[place + "qkv_net.weight"].chunk(3))
    query = query[len(memory) :]
    distances = [min(d, config["clamp_len"]) if config["clamp_len"] > 0 else d for d in range(len(read) - 1, -1, -1)]
    rates = [1 / 10_000 ** (i / config["d_model"]) for i in range(0, config["d_model"], 2)]
    waves = torch.tensor([[f(d * r) for f in (math.sin, math.cos) for r in rates] for d in distances])
    places = waves @ t[place + "r_net.weight"].T
    gathered = []
    for h in range(config["n_head"]):
        part = slice(h * config["d_head"], (h + 1) * config["d_head"])
        by_content = (query[:, part] + t[place + "r_w_bias"][h]) @ key[:, part].T
        by_place = shifted((query[:, part] + t[place + "r_r_bias"][h]) @ places[:, part].T)
        scores = (by_content + by_place) / math.sqrt(config["d_head"])
        for i in range(len(x)):
            scores[i, len(memory) + i + 1 :] = -math.inf
        gathered.append(scores.softmax(1) @ value[:, part])
    return torch.cat(gathered, 1) @ t[place + "o_net.weight"].T


def normed(t, config, place, x):
    centred = x - x.mean(1, keepdim=True)
    deviation = ((centred**2).mean(1, keepdim=True) + config["layer_norm_epsilon"]).sqrt()
    return centred / deviation * t[place + "layer_norm.weight"] + t[place + "layer_norm.bias"]


def log_chances(t, config, x):
    """Of every token of the vocabulary, at every place."""
    edges, one = edges_of(config), config["div_val"] == 1

    def scores(i, more_weight=None, more_bias=None):
        begin, end = edges[i], edges[i + 1]
        number, rows = (0, slice(begin, end)) if one else (i, slice(None))
        weight, bias = t[f"crit.out_layers.{number}.weight"][rows], t[f"crit.out_layers.{number}.bias"][rows]
        if more_weight is not None:
            weight, bias = torch.cat((weight, more_weight)), torch.cat((bias, more_bias))
        narrow = x if one else x @ t[f"crit.out_projs.{i}"]
        return (narrow @ weight.T + bias).log_softmax(1)

    if len(edges) == 2:
        return scores(0)
    head = scores(0, t["crit.cluster_weight"], t["crit.cluster_bias"])
    tails = [head[:, -i][:, None] + scores(i) for i in range(1, len(edges) - 1)]
    return torch.cat((head[:, : edges[1]], *tails), 1)


def oracle(t, config, ids, memories):
    """Log-probabilities for one row, and what the row after it remembers of each layer."""
    x, kept = torch.stack([vector(t, config, int(token)) for token in ids]), []
    for layer, memory in enumerate(memories):
        kept.append(torch.cat((memory, x))[-config["mem_len"] :])
        place = f"transformer.layers.{layer}."
        x = normed(t, config, place + "dec_attn.", x + attend(t, config, layer, x, memory))
        inside = (x @ t[place + "pos_ff.CoreNet.0.weight"].T + t[place + "pos_ff.CoreNet.0.bias"]).clamp(min=0)
        outside = inside @ t[place + "pos_ff.CoreNet.3.weight"].T + t[place + "pos_ff.CoreNet.3.bias"]
        x = normed(t, config, place + "pos_ff.", x + outside)
    return log_chances(t, config, x), kept


def words():
    backend = Backend(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.add_special_tokens(["<eos>", "<unk>"])
    return Tokenizer(backend)


def folder_of(path, **changes):
    config = CONFIG | changes
    path.mkdir()
    tensors = tensors_of(config)
    save_file(tensors, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config))
    words().save(path / "tokenizer.json")
    return config, tensors, path


def imported(path, **changes):
    config, tensors, folder = folder_of(path / "hf", **changes)
    report = import_hf(folder, path / "run")
    return config, tensors, open_run(path / "run", device="cpu"), report


@pytest.mark.parametrize("changes", [
    {}, {"tie_projs": [True] * 4}, {"tie_projs": [False] * 4}, {"untie_r": False}, {"clamp_len": 9}, {"div_val": 1},
    {"div_val": 1, "cutoffs": []}, {"cutoffs": [11], "tie_projs": [False, True]}, {"layer_norm_epsilon": 0.1},
], ids=str)  # fmt: skip
def test_it_computes_what_its_own_tensors_say_over_two_rows_with_a_memory(tmp_path, changes):
    config, tensors, model, report = imported(tmp_path, **changes)
    assert (report.left_over, report.missing, report.notes) == ((), (), ())
    head, state = model.system.predict["tokens"], model.system.backbone.cache(2, config["mem_len"])
    memories = [[torch.zeros(0, config["d_model"])] * config["n_layer"] for _ in IDS]
    for begin, end in ((0, 8), (8, 14)):
        batch = stream(IDS[:, begin:end])
        with torch.no_grad():
            alone = model.system.backbone(batch)[0]
            hidden, state = model.system.backbone(batch, state)
            found = head.decode(hidden, batch).log_softmax(-1)
        for row in range(2):
            expected, memories[row] = oracle(tensors, config, IDS[row, begin:end], memories[row])
            torch.testing.assert_close(found[row], expected, **PARITY)
        if begin == 0:
            torch.testing.assert_close(alone.last, hidden.last, **PARITY)
        else:
            assert not torch.allclose(alone.last, hidden.last, atol=1e-2), "what is remembered matters"


def test_the_loss_is_the_chance_of_the_next_word(tmp_path):
    config, tensors, model, _ = imported(tmp_path)
    batch, _ = model.system.hide(stream(IDS))
    with torch.no_grad():
        losses, _ = model.system.step(batch)
    empty = [torch.zeros(0, config["d_model"])] * config["n_layer"]
    expected = sum(-oracle(tensors, config, ids, empty)[0][place, ids[place + 1]] for ids in IDS for place in range(13))
    torch.testing.assert_close(losses["tokens"].total, expected, **PARITY)
    assert int(losses["tokens"].count) == 26


def test_the_recipe_says_what_the_checkpoint_is(tmp_path):
    _, _, model, report = imported(tmp_path)
    backbone = model.recipe.system.backbone
    assert (report.architecture, report.recipe) == ("TransfoXLLMHeadModel", "transformer-xl")
    assert model.recipe.tokenizer == WholeWords(vocab=len(WORDS))
    assert model.recipe.layout == "a [SEP] b [SEP]"
    assert model.recipe.predict == {"tokens": Adaptive(own=(0,))}
    assert (backbone.cutoffs, backbone.divide, backbone.memory, backbone.head) == ((6, 12, 17), 2, 9, 5)
    assert (backbone.streams, backbone.shared_biases, backbone.scaled_embeddings, backbone.activation) == (
        1,
        False,
        True,
        "relu",
    )
    assert model.tokenizer.encode("the cat in a storm") == [1, 10, 7, 9, 5]
    assert model.tokenizer.role("sep") == model.tokenizer.vocabulary.pad == 0
    assert not any(name.endswith("projections.1") for name in weights(tmp_path / "run") if name.startswith("predict"))


def test_without_clusters_it_predicts_tokens_plainly(tmp_path):
    _, _, model, _ = imported(tmp_path, div_val=1, cutoffs=[])
    assert model.recipe.predict == {"tokens": Tokens(tied=True, transform=False, bias=True)}


@pytest.mark.parametrize("kept", ["transformer.", "transformer.layers.0.dec_attn.", "transformer.layers.1.dec_attn."])
def test_biases_that_layers_share_may_stand_in_the_file_once_under_any_name(tmp_path, kept):
    _, tensors, folder = folder_of(tmp_path / "hf", untie_r=False)
    some = {name: t for name, t in tensors.items() if "r_w_bias" not in name or name == f"{kept}r_w_bias"}
    save_file(some, folder / "model.safetensors")
    assert (import_hf(folder, tmp_path / "run")).left_over == ()
    bias = open_run(tmp_path / "run", device="cpu").system.backbone.blocks[1].attention.content_bias
    assert torch.equal(bias, tensors["transformer.r_w_bias"])


def test_a_network_without_a_head_gets_a_fresh_one(tmp_path):
    _, tensors, folder = folder_of(tmp_path / "hf", architectures=["TransfoXLModel"])
    bare = {k.removeprefix("transformer."): v for k, v in tensors.items() if k.startswith("transformer.")}
    save_file(bare, folder / "model.safetensors")
    report = import_hf(folder, tmp_path / "run")
    assert report.left_over == ()
    assert {name.split(".")[2] for name in report.missing} == {"bias", "cluster", "cluster_bias"}


def test_what_is_not_kept_is_told(tmp_path):
    _, _, model, report = imported(tmp_path, mem_len=12, clamp_len=8, same_length=True)
    assert (model.recipe.system.backbone.memory, model.recipe.system.backbone.clamp) == (8, 8)
    assert report.notes == (
        "mem_len=12 reaches beyond clamp_len=8: the memory here has 8 tokens",
        "same_length=true is not kept: the later tokens of a row see farther back than the first",
    )


def test_output_tables_that_differ_from_the_embeddings_are_left_over(tmp_path):
    _, tensors, folder = folder_of(tmp_path / "hf")
    save_file(
        tensors | {"crit.out_layers.1.weight": tensors["crit.out_layers.1.weight"] + 1}, folder / "model.safetensors"
    )
    assert import_hf(folder, tmp_path / "run").left_over == ("crit.out_layers.1.weight",)


@pytest.mark.parametrize("changes, message", [
    ({"pre_lnorm": True}, "pre_lnorm=True"),
    ({"attn_type": 1}, "attn_type=1"),
    ({"d_embed": 8}, "d_embed=8 and d_model=12"),
    ({"tie_weight": False}, "tie_word_embeddings=false"),
    ({"n_layer": 3}, "lacks 14 tensors"),
    ({"cutoffs": [7, 12, 17]}, "do not belong together"),
])  # fmt: skip
def test_what_our_network_cannot_compute_is_refused(tmp_path, changes, message):
    _, _, folder = folder_of(tmp_path / "hf")
    edit_json(folder / "config.json", **changes)
    with pytest.raises(UserError, match=message):
        import_hf(folder, tmp_path / "run")


def test_embeddings_that_are_mapped_without_clusters_are_refused(tmp_path):
    _, _, folder = folder_of(tmp_path / "hf", cutoffs=[], tie_projs=[True])
    with pytest.raises(UserError, match="maps its embeddings"):
        import_hf(folder, tmp_path / "run")


def test_a_tokenizer_of_another_size_is_refused(tmp_path):
    _, _, folder = folder_of(tmp_path / "hf")
    larger = words()
    larger.backend.add_tokens(["new"])
    larger.save(folder / "tokenizer.json")
    with pytest.raises(UserError, match="23 tokens and the checkpoint 22 embeddings"):
        import_hf(folder, tmp_path / "run")


@pytest.mark.parametrize("name", ["vocab.pkl", "vocab.bin"])
def test_a_pickled_vocabulary_is_refused_and_the_message_makes_a_tokenizer_of_it(tmp_path, name, monkeypatch):
    _, _, folder = folder_of(tmp_path / "hf")
    (folder / "tokenizer.json").unlink()
    known = {"sym2idx": {word: i for i, word in enumerate(WORDS)}, "idx2sym": WORDS}
    (folder / name).write_bytes(pickle.dumps(known))
    if name == "vocab.bin":
        torch.save(known, folder / name)
    with pytest.raises(UserError, match="can run any code") as caught:
        import_hf(folder, tmp_path / "run")
    monkeypatch.chdir(folder)
    exec(str(caught.value).split("with Python: ")[1], {})
    import_hf(folder, tmp_path / "run")
    assert open_run(tmp_path / "run", device="cpu").tokenizer.encode("a storm , a boat") == [9, 5, 2, 9, 15]


def test_pickled_weights_are_refused_and_the_message_converts_them(tmp_path, monkeypatch):
    _, tensors, folder = folder_of(tmp_path / "hf")
    (folder / "model.safetensors").unlink()
    tensors["crit.out_layers.0.weight"] = tensors["transformer.word_emb.emb_layers.0.weight"]  # as tied as they were
    torch.save(tensors, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="as a pickle") as caught:
        import_hf(folder, tmp_path / "run")
    monkeypatch.chdir(folder)
    assert CONVERT in str(caught.value)
    exec(CONVERT, {})
    assert import_hf(folder, tmp_path / "run").left_over == ()


def test_it_cannot_be_exported_and_the_reason_is_told(tmp_path):
    _, _, model, _ = imported(tmp_path)
    with pytest.raises(UserError, match="no Transformer-XL any more.*use the run folder as it is"):
        export_hf(model, tmp_path / "out")


def test_the_documentation_gives_the_commands_of_the_messages():
    page = (Path(__file__).parents[2] / "docs/hugging_face.md").read_text(encoding="utf-8")
    assert CONVERT in page
    assert PICKLED_WORDS["vocab.pkl"] in page
    assert READ_WORDS["vocab.bin"] in page
