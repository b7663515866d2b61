"""Models with a memory write, and models of orders fill gaps, as others do."""

from __future__ import annotations

import torch

from tests.convert.parts import tokenizer
from unmask import recipes
from unmask.infer import Greedy, fill, generate
from unmask.infer.model import Model
from unmask.see import visible_before
from unmask.tasks import Classify

SHAPE = [
    f"system.backbone.{name}" for name in ("layers=2", "width=16", "heads=2", "head=8", "feedforward=24", "memory=8")
]


def made(name: str, kind: str, folder, *settings: str) -> Model:
    recipe = recipes.get(name, size="tiny", settings=[*SHAPE, *settings])
    tokens = tokenizer(kind)
    system = recipe.system.build(recipe, tokens.vocabulary, 0).eval()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in system.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=random) * 0.3)
    return Model(system, recipe, tokens, folder)


def test_that_what_is_written_with_a_memory_is_what_is_written_when_all_is_read_anew(tmp_path):
    model = made("transformer-xl", "byte", tmp_path, "system.backbone.length=64", "schedule.0.length=16")
    prompts = ["The cat", "Birds fly over"]
    with_memory, anew = (
        [found.text for found in generate(model, prompts, tokens=20, sampling=Greedy(), cached=cached).value]
        for cached in (True, False)
    )
    assert with_memory == anew


def test_that_a_memory_rolls_on_beyond_the_context(tmp_path):
    """Token by token, the likeliest after what the network remembers: as many tokens as its context."""
    model = made("transformer-xl", "byte", tmp_path, "system.backbone.length=16", "schedule.0.length=16")
    (found,) = generate(model, ["The cat"], tokens=40, sampling=Greedy()).value
    assert len(found.ids) == 40
    ids = [*model.tokenizer.encode("The cat"), *found.ids]
    special = [i for i in model.tokenizer.vocabulary.special if i != model.tokenizer.role("sep")]
    head, begin = model.system.predict["tokens"], len(model.tokenizer.encode("The cat"))
    state = model.system.backbone.cache(1, 16)
    with torch.no_grad():
        for at in range(len(ids) - 1):
            batch = _row(ids[at : at + 1])
            hidden, state = model.system.read_on(batch, state)
            scores = head.decode(hidden, batch)[0, -1]
            scores[special] = -float("inf")
            if at + 1 >= begin:
                assert int(scores.argmax()) == ids[at + 1], at


def test_that_no_more_is_remembered_than_distances_are_told_apart(tmp_path):
    rest = ("schedule.0.length=16", "system.backbone.clamp=12")
    long = made("transformer-xl", "byte", tmp_path, "system.backbone.length=64", *rest)
    short = made("transformer-xl", "byte", tmp_path, "system.backbone.length=12", "schedule.0.length=12", rest[1])
    found, expected = (generate(m, ["The cat"], tokens=40, sampling=Greedy()).value[0].ids for m in (long, short))
    assert len(found) == 40
    assert found == expected


def test_that_a_gap_is_filled_by_the_stream_that_does_not_see_it(tmp_path):
    model = made("xlnet", "unigram", tmp_path)
    text = "The [MASK] sat on the [MASK]"
    first, second = fill(model, text, top=3).value
    seen = []
    backbone = model.system.backbone
    plain = type(backbone).forward

    def watched(batch, state=None):
        seen.append(batch)
        return plain(backbone, batch, state)

    backbone.forward = watched
    assert fill(model, text, top=3).value == [first, second]
    batch = next(b for b in seen if b.targets)
    gaps = batch.targets["tokens"].where.tolist()
    assert len(gaps) == 2
    sees = visible_before(batch)[0]
    assert not sees[gaps][:, gaps].any()
    words = [i for i in range(batch.shape[1]) if i not in gaps and batch.columns["word"][0, i] >= 0]
    assert sees[gaps][:, words].all()


def _row(ids):
    from unmask.infer.batches import left_padded

    return left_padded([ids], 0)


def test_that_examples_of_a_task_share_no_memory(tmp_path):
    base = made("xlnet", "unigram", tmp_path)
    recipe = Classify(labels=("no", "yes")).recipe(base)
    system = recipe.system.build(recipe, base.tokenizer.vocabulary, 0)
    batch, _ = system.hide(_row([7, 8, 9]))
    assert system.step(batch, None)[1] is None
    pretraining = base.recipe.hide.apply(
        base.recipe.see.draw(_row(list(range(5, 13))), 0), base.tokenizer.vocabulary, 0
    )
    assert base.system.step(base.recipe.see.apply(pretraining), None)[1] is not None
