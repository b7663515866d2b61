"""Examples of a task that share a row: the losses and the gradients are those of one example in a row."""

import numpy as np
import pytest
import torch

from tests.adapt.made import bases_in
from tests.adapt.test_task import EXAMPLES
from unmask import recipes, tasks
from unmask.adapt import new_model
from unmask.adapt.epochs import packing_of
from unmask.data.examples import Examples, Text, rows_of
from unmask.data.pack_examples import COUNTS, MOST, Packing, batch_of, packed_batch, padding_of
from unmask.infer.passes import laid_out
from unmask.settings import override
from unmask.tasks.classify import Example
from unmask.text import Characters, train

LAYOUT = "[CLS] a [SEP] b [SEP]"
TOKENIZER = train(Characters(vocab=40), ["abcdefghijklmnopqrstuvwxyz"])
SHARE = ("classify", "tag", "number", "multi", "rank")  # kinds of task whose examples may share a row
CELLS = ("awd-lstm", "elmo", "cove")  # their cells are not reset inside a row
DECODERS = ("bart", "mass", "transformer")  # a decoder reads the text again, and has one text for each row


@pytest.fixture(scope="module")
def base_of(tmp_path_factory):
    return bases_in(tmp_path_factory.mktemp("bases"))


def task_model(base, kind, folder, *settings):
    """A model with a head for the task, and the rows of its examples."""
    some = EXAMPLES[kind] * 3
    task = override(tasks.get(kind), ["examples=2", "length=32", *settings]).learn(some)
    recipe = task.recipe(base)
    model = new_model(base, recipe, folder, 0, fresh=False)
    model.system.eval()  # no dropout
    return model, laid_out(model, recipe.task.lay_out(some))[0]


def learned(model, batch):
    """The total and the count of each loss of a batch, and the gradients of all weights."""
    model.system.zero_grad()
    losses = model.system.step(model.system.hide(batch)[0])[0]
    sum(loss.total for loss in losses.values()).backward()
    found = {name: (loss.total.item(), float(loss.count)) for name, loss in losses.items()}
    return found, {name: p.grad.clone() for name, p in model.system.named_parameters() if p.grad is not None}


def check_same(model, rows, chosen, *, static):
    """Check that packed examples teach the model what they teach it in rows of their own."""
    unpacked = batch_of(rows, chosen)
    alone, grads = learned(model, unpacked)
    batch = packed_batch(rows, chosen, 0, packing_of(model.recipe, rows), padding_of(rows), static=static)
    assert len(batch.ids) < len(unpacked.ids) or static
    packed, found = learned(model, batch)
    assert packed.keys() == alone.keys()
    for name, values in alone.items():
        assert packed[name] == pytest.approx(values, rel=1e-4)
    assert found.keys() == grads.keys()
    for name, grad in grads.items():
        torch.testing.assert_close(
            found[name], grad, atol=1e-5, rtol=1e-3, msg=lambda told, name=name: f"{name}: {told}"
        )


@pytest.mark.parametrize("name", [name for name in recipes.names() if name not in CELLS + DECODERS])
def test_every_recipe_learns_the_same_from_packed_examples(name, base_of, tmp_path):
    for kind in ("classify", "tag"):
        model, rows = task_model(base_of(name), kind, tmp_path / kind)
        check_same(model, rows, np.arange(len(rows)), static=False)


@pytest.mark.parametrize("kind", SHARE)
def test_every_kind_of_task_learns_the_same_from_packed_examples_also_in_static_shapes(kind, base_of, tmp_path):
    model, rows = task_model(base_of("bert"), kind, tmp_path / "run")
    for static in (False, True):
        check_same(model, rows, np.array([2, 0, 1, 4, 3]), static=static)


@pytest.mark.parametrize("name", ["bert", "gpt2", "xlnet"])
def test_rows_without_any_example_change_nothing(name, base_of, tmp_path):
    """The number of rows is rounded up in static shapes."""
    model, rows = task_model(base_of(name), "classify", tmp_path / "run")
    packing, pad = packing_of(model.recipe, rows), padding_of(rows)
    several = [np.resize(np.arange(len(rows)), count) for count in range(33, 48)]
    chosen = next(c for c in several if not packed_batch(rows, c, 0, packing, pad, static=True).real.any(1).all())
    check_same(model, rows, chosen, static=True)


def test_the_auxiliary_loss_of_a_language_model_is_the_same_in_packed_examples(base_of, tmp_path):
    model, rows = task_model(base_of("gpt2"), "classify", tmp_path / "run", "language=0.5")
    assert set(learned(model, batch_of(rows, np.arange(4)))[0]) == {"label", "tokens"}
    check_same(model, rows, np.arange(len(rows)), static=False)


@pytest.mark.parametrize("pool", ["mean", "max", "concat"])
def test_vectors_are_pooled_over_the_tokens_of_their_own_example(pool, base_of, tmp_path):
    model, rows = task_model(base_of("bert"), "classify", tmp_path / "run", f"pool={pool}")
    check_same(model, rows, np.arange(len(rows)), static=False)


@pytest.mark.parametrize("kind", ["classify", "tag"])
@pytest.mark.parametrize("name", CELLS + DECODERS)
def test_networks_with_cells_or_a_decoder_read_one_example_in_a_row(name, kind, base_of, tmp_path):
    model, rows = task_model(base_of(name), kind, tmp_path / "run")
    assert packing_of(model.recipe, rows) is None


@pytest.mark.parametrize(
    ("kind", "setting"),
    [("choose", ""), ("relation", ""), ("span", ""), ("embed", ""), ("embed", "loss=negatives"), ("embed", "pool=max"), ("embed", "pool=weighted"),
     ("embed", "pool=summary"), ("tag", "crf=true"), ("classify", "long=strides"), ("classify", "pool=mean")],
)  # fmt: skip
def test_tasks_whose_heads_read_whole_rows_learn_the_same_from_packed_texts(kind, setting, base_of, tmp_path):
    model, rows = task_model(base_of("bert"), kind, tmp_path / "run", *filter(None, [setting]))
    for static in (False, True):
        check_same(model, rows, np.arange(len(rows)), static=static)


@pytest.mark.parametrize("name", [name for name in recipes.names() if name not in CELLS + DECODERS])
def test_every_recipe_learns_the_same_from_packed_texts_of_choices_and_of_embedding(name, base_of, tmp_path):
    for kind in ("choose", "embed"):
        model, rows = task_model(base_of(name), kind, tmp_path / kind)
        check_same(model, rows, np.arange(len(rows)), static=False)


def test_pairs_in_both_orders_and_answers_in_steps_learn_the_same_from_packed_texts(base_of, tmp_path):
    pairs = [Example(Text("a b c d"[: 2 * i + 1], "e f g"), str(i % 2)) for i in range(4)] * 2
    for number, setting in enumerate(("orders=both", "san=AnswerSteps(dropout=0)")):
        task = override(tasks.get("classify"), ["examples=2", "length=32", setting]).learn(pairs)
        base = base_of("bert")
        model = new_model(base, task.recipe(base), tmp_path / str(number), 0, fresh=False)
        model.system.eval()
        rows = laid_out(model, model.recipe.task.lay_out(pairs))[0]
        assert packing_of(model.recipe, rows).apart
        check_same(model, rows, np.arange(len(rows)), static=False)


def test_each_text_of_a_packed_batch_is_also_in_a_row_of_its_own():
    several = [(Text("abc"), Text("defgh")), (Text("ij"),), (Text("k"), Text("lmnop"), Text("qr"))]
    rows, _ = rows_of(several, [0, 1, 2], TOKENIZER, LAYOUT, 32)
    batch = packed_batch(rows, np.array([2, 0, 1]), 0, Packing(64, apart=True), padding_of(rows))
    alone = batch_of(rows, np.array([2, 0, 1]))
    assert len(batch.ids) < len(alone.ids) == 9  # three readings each, some of them empty
    assert torch.equal(batch.apart.rows.ids, alone.ids)
    assert torch.equal(batch.ids.flatten()[batch.apart.place][alone.real], alone.ids[alone.real])
    assert batch.real.sum() == alone.real.sum()
    assert batch.real.flatten()[batch.apart.place].all()  # padding shows a real token, whose vector is a number


def texts(*lengths):
    return rows_of([Text("a" * n) for n in lengths], list(range(len(lengths))), TOKENIZER, LAYOUT, 300)[0]


def test_rows_are_full_and_hold_every_chosen_example_once():
    rows = texts(*range(3, 63))
    chosen = np.random.default_rng(0).permutation(60)
    batch = packed_batch(rows, chosen, 0, Packing(512), padding_of(rows))
    assert batch.shape[1] <= 128
    assert batch.real.float().mean() > 0.9
    assert sorted(batch.label[batch.counted > 0].tolist()) == list(range(60))
    lengths = torch.stack([torch.bincount(row[row >= 0], minlength=MOST) for row in batch.example])
    places = len(batch.label) // len(batch.ids)
    found = lengths[:, :places].flatten()[batch.counted > 0]
    assert found.tolist() == (batch.label[batch.counted > 0] + 5).tolist()  # the letters, [CLS] and [SEP]
    assert (batch.ids.flatten()[batch.summary[batch.counted > 0]] == TOKENIZER.backend.token_to_id("[CLS]")).all()


def test_a_row_is_never_longer_than_the_network_reads():
    rows = texts(60, 50, 3, 4)
    assert packed_batch(rows, np.arange(4), 0, Packing(64), padding_of(rows)).shape[1] <= 64


def test_batches_for_recorded_steps_have_one_width_and_few_heights():
    source = Examples(texts(*([3] * 40), *range(3, 100)), 0, widths=8, packing=Packing(512))
    shapes = {(batch.shape, len(batch.label)) for batch in (source.batch(64) for _ in range(100))}
    assert len({shape[1] for shape, _ in shapes}) == 1
    assert 1 < len(shapes) <= COUNTS


def test_a_source_of_packed_examples_continues_where_it_stopped():
    rows = texts(*range(3, 20))
    whole, first = (Examples(rows, 0, packing=Packing(512)) for _ in range(2))
    expected = [whole.batch(4) for _ in range(9)][5:]
    for _ in range(5):
        first.batch(4)
    rest = Examples(rows, 0, first.state(), packing=Packing(512))
    for batch in expected:
        found = rest.batch(4)
        assert torch.equal(found.ids, batch.ids)
        assert torch.equal(found.label, batch.label)
        assert torch.equal(found.visit, batch.visit)


def test_a_row_has_the_number_and_the_visit_of_its_first_example():
    rows = texts(*range(40, 60))
    batch = packed_batch(rows, np.arange(20), np.arange(20) % 7, Packing(512), padding_of(rows))
    first = batch.label.view(len(batch.ids), -1)[:, 0]  # the label of a text here is its number
    assert torch.equal(batch.row, first)
    assert torch.equal(batch.visit, first % 7)
    assert len(set(batch.row.tolist())) == len(batch.ids) < 20
