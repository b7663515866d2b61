"""Checkpoints that transformers made with Bart: imported, they compute the same, and denoising goes on."""

import pytest
import torch
import transformers as hf

from tests.convert.parts import PARITY, TEXTS, edit_json, folder_of, look, score, shaken, tokenizer
from unmask.convert import export_hf, import_hf
from unmask.errors import UserError
from unmask.hide import Rewrite
from unmask.infer import open_run
from unmask.system import check_training
from unmask.train import Machine, Trainer


def made(folder, kind=hf.BartForConditionalGeneration, **values):
    tokens = tokenizer("byte")
    roles = {
        name: tokens.role(role)
        for name, role in (("pad", "pad"), ("bos", "cls"), ("eos", "sep"), ("decoder_start", "sep"))
    }
    config = hf.BartConfig(
        vocab_size=tokens.vocabulary.size, d_model=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=64,
        **{f"{name}_token_id": number for name, number in roles.items()}, forced_eos_token_id=None, **values,
    )  # fmt: skip
    network = shaken(kind(config))
    if hasattr(network, "final_logits_bias"):
        network.final_logits_bias += torch.arange(tokens.vocabulary.size) / 100
    return network, folder_of(network, tokens, folder)


@pytest.mark.parametrize("scaled", [False, True])
def test_an_imported_model_computes_the_same_goes_on_with_denoising_and_is_exported_again(tmp_path, scaled):
    network, folder = made(tmp_path / "hf", scale_embedding=scaled, activation_function="relu")
    report = import_hf(folder, tmp_path / "run")
    assert not report.missing
    assert not report.left_over
    model = open_run(tmp_path / "run", device="cpu")
    batch, hidden = look(model, TEXTS)
    ids, mask = (torch.where(batch.real, batch.ids, model.tokenizer.vocabulary.pad), batch.real.long())
    with torch.no_grad():
        theirs = network(input_ids=ids, attention_mask=mask, decoder_input_ids=batch.decoder.ids)
    torch.testing.assert_close(score(model, "tokens", batch, hidden)[batch.real], theirs.logits[batch.real], **PARITY)
    check_training(model.recipe, model.tokenizer.vocabulary)
    trainer = Trainer(model.system, model.recipe.optimise, Machine(), 0)
    assert float(trainer.gradients([batch.replace(decoder=None, rank=None)], {}, 1)["tokens"]) > 0
    export_hf(open_run(tmp_path / "run", device="cpu"), tmp_path / "again")
    again = hf.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "again").eval()
    assert again.config.scale_embedding == scaled
    for name, tensor in network.state_dict().items():
        unused = 2 if name.endswith("embed_positions.weight") else 0  # rows before the first position
        torch.testing.assert_close(again.state_dict()[name][unused:], tensor[unused:])


def test_an_imported_classifier_reads_the_last_token_of_its_decoder(tmp_path):
    network, folder = made(tmp_path / "hf", hf.BartForSequenceClassification, num_labels=3)
    import_hf(folder, tmp_path / "run")
    model = open_run(tmp_path / "run", device="cpu")
    assert model.recipe.hide == Rewrite()
    batch, hidden = look(model, TEXTS)
    ids = torch.where(batch.real, batch.ids, model.tokenizer.vocabulary.pad)
    with torch.no_grad():
        theirs = network(input_ids=ids, attention_mask=batch.real.long()).logits
    torch.testing.assert_close(score(model, "label", batch, hidden), theirs, **PARITY)


def test_other_heads_in_the_decoder_are_refused_by_name(tmp_path):
    _, folder = made(tmp_path / "hf")
    edit_json(folder / "config.json", decoder_attention_heads=4)
    with pytest.raises(UserError, match="encoder_attention_heads=2 and decoder_attention_heads=4"):
        import_hf(folder, tmp_path / "run")
