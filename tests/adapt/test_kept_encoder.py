"""CoVe: of a network that was trained to translate, a task keeps the encoder, and reads [vector; CoVe]."""

import torch

from tests.contracts.every import case
from unmask import adapt as ways
from unmask.adapt import adapt
from unmask.data.examples import Laid, Text
from unmask.infer.model import Model, open_run, save_run
from unmask.infer.passes import batches, laid_out
from unmask.tasks.classify import Classify, Example

TEXTS = ("the doctor opened the case", "no evidence")


def test_the_encoder_alone_gives_the_features_of_the_translator(tmp_path):
    made = case("cove")
    base = Model(made.build().eval(), made.recipe, made.tokenizer, tmp_path / "base")
    save_run(base, base.folder)
    examples = [Example(Text(text), label) for text, label in zip(TEXTS, "ab", strict=True)]
    list(adapt(base, examples, tmp_path / "run", task=Classify(epochs=1), tune=ways.get("head")))
    adapted = open_run(tmp_path / "run", device="cpu")
    ((_, batch),) = batches(adapted, laid_out(adapted, Laid([Text(text) for text in TEXTS]))[0])
    with torch.no_grad():
        layers, _ = base.system.backbone.read_layers(batch)
        found = adapted.system.eval().look(batch).last
    torch.testing.assert_close(found[batch.real], torch.cat((layers[0], layers[-1]), 2)[batch.real])
    assert not [name for name, _ in adapted.system.named_parameters() if "decoder" in name or "attention" in name]
