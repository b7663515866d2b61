"""The files of a Hugging Face folder: old names, shards, pickles, vocabularies, and what cannot be read."""

import json
import subprocess
import sys

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

from tests.convert.parts import SENTENCES, edit_json, folder_of, model_of, recipe_of, tokenizer, weights
from tests.convert.test_import import albert, bert, electra, ernie, gpt2, roberta
from unmask.convert import export_hf, import_hf
from unmask.errors import UserError


def same(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


@pytest.fixture
def folder(tmp_path):
    return folder_of(bert(), tokenizer(), tmp_path / "hf")


def rewrite(folder, change):
    """Save the weights anew under other names."""
    tensors = {change(name): tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors")


def test_old_names_of_norms_and_names_without_prefix_are_understood(folder, tmp_path):
    import_hf(folder, tmp_path / "new")
    rewrite(
        folder,
        lambda name: name.removeprefix("bert.").replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"),
    )
    report = import_hf(folder, tmp_path / "old")
    assert not report.missing
    assert not report.left_over
    same(weights(tmp_path / "new"), weights(tmp_path / "old"))


@pytest.mark.parametrize(
    "build, kind, head", [(bert, "wordpiece", "cls.predictions"), (albert, "unigram", "predictions")]
)
def test_a_bias_under_its_second_name_and_repeated_output_weights_are_understood(tmp_path, build, kind, head):
    network = build()
    folder = folder_of(network, tokenizer(kind), tmp_path / "hf")
    import_hf(folder, tmp_path / "new")
    rewrite(folder, lambda name: name.replace(f"{head}.bias", f"{head}.decoder.bias"))
    tensors = load_file(folder / "model.safetensors")
    repeated = {f"{head}.decoder.weight": network.get_input_embeddings().weight.detach().clone()}
    save_file(tensors | repeated, folder / "model.safetensors")
    report = import_hf(folder, tmp_path / "old")
    assert not report.missing
    assert not report.left_over
    same(weights(tmp_path / "new"), weights(tmp_path / "old"))


def test_computed_tensors_are_dropped_and_unknown_ones_reported(tmp_path):
    folder = folder_of(gpt2(), tokenizer("gpt2"), tmp_path / "hf")
    extra = {
        "transformer.h.0.attn.bias": torch.ones(1, 1, 4, 4),
        "h.1.attn.masked_bias": torch.ones(1),
        "odd": torch.ones(1),
    }
    save_file(load_file(folder / "model.safetensors") | extra, folder / "model.safetensors")
    assert import_hf(folder, tmp_path / "run").left_over == ("odd",)


def test_shards_are_read_together(tmp_path):
    network = bert()
    import_hf(folder_of(network, tokenizer(), tmp_path / "whole"), tmp_path / "a")
    folder = tmp_path / "shards"
    network.save_pretrained(folder, max_shard_size="10KB")
    tokenizer().save(folder / "tokenizer.json")
    assert len(list(folder.glob("*.safetensors"))) > 1
    import_hf(folder, tmp_path / "b")
    same(weights(tmp_path / "a"), weights(tmp_path / "b"))


def test_a_shard_outside_the_folder_is_refused(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": "../x.safetensors"}}))
    with pytest.raises(UserError, match="outside its folder"):
        import_hf(folder, tmp_path / "run")


def test_a_pickle_under_another_name_is_refused(folder, tmp_path):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()  # the tensors are still mapped from it
    torch.save(tensors, folder / "model.safetensors")
    with pytest.raises(UserError, match="is a pickle"):
        import_hf(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("shards", [1, 2])
def test_a_pickle_is_refused_and_the_command_in_the_message_converts_it(folder, tmp_path, shards):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    files = ["pytorch_model.bin"] if shards == 1 else ["pytorch_model-1-of-2.bin", "pytorch_model-2-of-2.bin"]
    for number, name in enumerate(files):
        torch.save({key: value for i, (key, value) in enumerate(tensors.items()) if i % shards == number}, folder / name)  # fmt: skip
    if shards > 1:
        (folder / "pytorch_model.bin.index.json").write_text("{}")
    with pytest.raises(UserError, match="holds its weights as a pickle") as refused:
        import_hf(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    _, _, command = str(refused.value).partition("convert it once: ")
    subprocess.run(command.replace("python", sys.executable), shell=True, check=True)
    import_hf(folder, tmp_path / "run")
    found = load_file(folder / "model.safetensors")
    assert found.keys() == tensors.keys()  # nothing was added, such as a head with random weights
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize("missing, message", [
    ("config.json", "no config.json"), ("model.safetensors", "no weights"), ("tokenizer.json", "no tokenizer"),
])  # fmt: skip
def test_a_folder_that_lacks_a_file_says_which(folder, tmp_path, missing, message):
    (folder / missing).unlink()
    with pytest.raises(UserError, match=message):
        import_hf(folder, tmp_path / "run")


@pytest.mark.parametrize("changes, message", [
    ({"model_type": "pegasus"}, "unknown model_type .*'pegasus'"),
    ({"model_type": None}, 'no "model_type"'),
    ({"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key'"),
    ({"hidden_act": "silu"}, "hidden_act='silu'.*gelu_new"),
    ({"is_decoder": True}, "is_decoder=True"),
    ({"num_hidden_layers": 4}, "lacks 12 tensors.*layer.3"),
    ({"intermediate_size": 48}, "do not belong together"),
    ({"model_type": "gpt2"}, "holds no gpt2 network"),
])  # fmt: skip
def test_a_config_that_cannot_be_expressed_names_the_value(folder, tmp_path, changes, message):
    edit_json(folder / "config.json", **changes)
    with pytest.raises(UserError, match=message):
        import_hf(folder, tmp_path / "run")


@pytest.mark.parametrize("build, changes, message", [
    (albert, {"num_hidden_groups": 2}, "num_hidden_groups=2"),
    (albert, {"inner_group_num": 2}, "inner_group_num=2"),
    (electra, {"hidden_act": "relu"}, "hidden_act='relu'.*as ElectraModel"),
    (ernie, {"use_task_id": True}, "no ernie.embeddings.task_type_embeddings.weight"),
])  # fmt: skip
def test_what_a_family_alone_can_say_and_we_cannot_express_names_the_value(tmp_path, build, changes, message):
    folder = folder_of(build(), tokenizer("unigram" if build is albert else "wordpiece"), tmp_path / "hf")
    edit_json(folder / "config.json", **changes)
    with pytest.raises(UserError, match=message):
        import_hf(folder, tmp_path / "run")


def test_a_regression_of_several_numbers_and_an_unknown_problem_are_refused(tmp_path):
    folder = folder_of(bert(hf.BertForSequenceClassification, num_labels=3), tokenizer(), tmp_path / "hf")
    for problem in ("regression", "ordinal"):
        edit_json(folder / "config.json", problem_type=problem)
        with pytest.raises(
            UserError, match=f"one of several classes, .*or one number, got 3 with problem_type='{problem}'"
        ):
            import_hf(folder, tmp_path / "run")


def test_a_tokenizer_with_more_tokens_than_embeddings_is_refused(folder, tmp_path):
    larger = tokenizer()
    larger.backend.add_tokens(["new"])
    larger.save(folder / "tokenizer.json")
    with pytest.raises(UserError, match=r"71 tokens .* 70 embeddings.*resize_token_embeddings\(71\)"):
        import_hf(folder, tmp_path / "run")


def test_an_existing_run_is_not_overwritten_unless_asked(folder, tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(UserError, match="exists already"):
        import_hf(folder, tmp_path / "run")
    import_hf(folder, tmp_path / "run", overwrite=True)


@pytest.mark.parametrize("lower", [True, False])
def test_a_vocab_txt_makes_the_tokenizer_that_transformers_makes_of_it(tmp_path, lower):
    folder = folder_of(bert(), tokenizer(), tmp_path / "hf")
    known = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(sorted(known, key=known.get)) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}))
    import_hf(folder, tmp_path / "run")
    theirs = hf.BertTokenizer(vocab=known, do_lower_case=lower)
    compare(tmp_path / "run", theirs, "Ünïcode 中文 " + SENTENCES[0] + " [MASK]")


@pytest.mark.parametrize("build, kind, theirs", [
    (roberta, "byte", hf.RobertaTokenizer), (gpt2, "gpt2", hf.GPT2Tokenizer),
])  # fmt: skip
def test_a_vocab_json_and_merges_make_the_tokenizer_that_transformers_makes_of_them(tmp_path, build, kind, theirs):
    folder = folder_of(build(), tokenizer(kind), tmp_path / "hf")
    (folder / "tokenizer.json").unlink()
    known = json.loads(tokenizer(kind).backend.to_str())
    everything = tokenizer(kind).backend.get_vocab()
    merges = [tuple(merge) for merge in known["model"]["merges"]]
    (folder / "vocab.json").write_text(json.dumps(everything))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(merge) for merge in merges))
    import_hf(folder, tmp_path / "run")
    compare(tmp_path / "run", theirs(vocab=everything, merges=merges), "Ünïcode 中文  " + SENTENCES[0])


def compare(run, theirs, text):
    from unmask.text import Tokenizer

    assert Tokenizer.load(run).encode(text) == theirs(text, add_special_tokens=False)["input_ids"]


def test_a_tokenizer_that_cannot_lay_out_a_text_is_said_to_be_damaged(tmp_path):
    export_hf(model_of(recipe_of("bert"), tokenizer(), tmp_path), tmp_path / "hf")
    path = tmp_path / "hf" / "tokenizer.json"
    known = json.loads(path.read_text())
    del known["post_processor"]["special_tokens"]["[SEP]"]
    path.write_text(json.dumps(known))
    with pytest.raises(UserError, match="tokenizer.json is damaged"):
        import_hf(tmp_path / "hf", tmp_path / "run")


@pytest.mark.parametrize("name, value, wanted", [
    ("num_hidden_layers", 2.5, "a whole number"), ("hidden_size", "16", "a whole number"), ("hidden_size", None, "a whole"),
    ("hidden_dropout_prob", "x", "a number"), ("hidden_act", 3, "a word"), ("architectures", "Bert", "a list or none"),
    ("vocab_type", 1, None),
])  # fmt: skip
def test_a_value_of_config_json_that_has_another_type_is_named(folder, tmp_path, name, value, wanted):
    config = json.loads((folder / "config.json").read_text()) | {name: value}
    (folder / "config.json").write_text(json.dumps(config))
    if wanted is None:
        import_hf(folder, tmp_path / "run")  # what is not read may be anything
        return
    with pytest.raises(UserError, match=f"config.json: {name} must be {wanted}"):
        import_hf(folder, tmp_path / "run")
