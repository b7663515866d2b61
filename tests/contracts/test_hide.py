"""Contract 2: hiding is a pure function that touches only what it chose."""

import torch

from unmask.recipe import override


def test_only_targets_change_and_targets_hold_the_original_ids(case):
    system = case.system()
    batch = case.loader().batch(8)
    hidden, counts = system.prepare(batch)
    targets = hidden.targets
    used = targets.weight > 0
    changed = (hidden.ids != batch.ids).flatten()
    allowed = torch.zeros_like(changed)
    allowed[targets.where[used]] = True
    assert not (changed & ~allowed).any()
    assert int(used.sum()) == int(counts["tokens"]) > 0
    predicted = batch.ids.flatten()[targets.start[used]] if case.recipe.hide.needs_mask is False else None
    original = batch.ids.flatten()[targets.where[used]] if predicted is None else predicted
    assert torch.equal(targets.ids[used], original)


def test_special_tokens_and_padding_are_never_hidden_nor_drawn(case):
    system = case.system()
    special = torch.tensor(case.tokenizer.vocabulary.special)
    for visit in range(5):
        batch = case.loader().batch(8)
        batch = batch.replace(visit=batch.visit + visit)
        hidden, _ = system.prepare(batch)
        changed = hidden.ids != batch.ids
        assert not torch.isin(batch.ids[changed], special).any()
        assert not (changed & ~batch.real).any()
        drawn = hidden.ids[changed]
        drawn = drawn[drawn != case.tokenizer.vocabulary.mask]
        assert not torch.isin(drawn, special).any()


def test_the_budget_is_kept_per_row(case):
    system = case.system()
    batch = case.loader(length=128).batch(8)
    hidden, _ = system.prepare(batch)
    per_row = hidden.targets.weight.view(8, -1).sum(1)
    candidates = (batch.word >= 0).sum(1)
    if not case.recipe.hide.needs_mask:  # every token but the first of an example is predicted
        assert torch.equal(per_row.long(), batch.real.sum(1) - (batch.example.amax(1) + 1))
        return
    assert (per_row <= (candidates * case.recipe.hide.share).round().clamp(min=1)).all()
    assert (per_row >= 0.6 * candidates * case.recipe.hide.share).all()  # a unit that no longer fits is left out
    exact = override(case.recipe, ["hide.units=Tokens", "hide.shuffle.budget=0.0"])
    hidden, _ = exact.system.build(exact, case.tokenizer.vocabulary, 0).prepare(batch)
    per_row = hidden.targets.weight.view(8, -1).sum(1)
    assert torch.equal(per_row, (candidates * exact.hide.budget).round().clamp(min=1))


def test_the_same_row_gives_the_same_result_in_any_batch(case):
    system = case.system()
    batch = case.loader().batch(6)
    together, _ = system.prepare(batch)
    order = [4, 1]
    names = ("ids", "word", "sentence", "example", "segment", "position", "row", "visit", "phrase", "entity")
    places = len(batch.summary) // 6
    per_example = {n: getattr(batch, n).view(6, places)[order].flatten() for n in ("summary", "label", "counted")}
    part, _ = system.prepare(batch.replace(**{n: getattr(batch, n)[order] for n in names}, **per_example))
    assert torch.equal(part.ids, together.ids[order])
    assert torch.equal(part.targets.ids, together.targets.ids.view(6, -1)[order].flatten())


def test_another_visit_hides_other_tokens_unless_masking_is_static(case):
    if not hasattr(case.recipe.hide, "copies"):
        return
    batch = case.loader(length=128).batch(4)
    later = batch.replace(visit=batch.visit + 1)
    tenth = batch.replace(visit=batch.visit + 10)
    dynamic = case.system()
    assert not torch.equal(dynamic.prepare(batch)[0].ids, dynamic.prepare(later)[0].ids)
    static_recipe = override(case.recipe, ["hide.copies=10"])
    static = static_recipe.system.build(static_recipe, case.tokenizer.vocabulary, 0)
    assert torch.equal(static.prepare(batch)[0].ids, static.prepare(tenth)[0].ids)
    assert not torch.equal(static.prepare(batch)[0].ids, static.prepare(later)[0].ids)


def test_whole_words_are_hidden_whole(case):
    if not hasattr(case.recipe.hide, "units"):
        return
    recipe = override(case.recipe, ["hide.units=Words", "hide.budget=0.3", "hide.shuffle.budget=0.0"])
    system = recipe.system.build(recipe, case.tokenizer.vocabulary, 0)
    for visit in range(4):
        batch = case.loader(length=64).batch(8)
        batch = batch.replace(visit=batch.visit + visit)
        hidden, _ = system.prepare(batch)
        chosen = torch.zeros(batch.ids.numel(), dtype=torch.bool)
        chosen[hidden.targets.where[hidden.targets.weight > 0]] = True
        chosen = chosen.view(batch.shape)
        for row in range(8):
            words = batch.word[row][chosen[row]].unique()
            assert torch.equal(torch.isin(batch.word[row], words), chosen[row])
            assert int(chosen[row].sum()) <= round(0.3 * 64)
