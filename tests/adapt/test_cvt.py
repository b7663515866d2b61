"""CVT: its losses against explicit loops, no gradient into the primary from unlabelled text, turns, averages, files and refusals."""

import json
import math

import pytest
import torch

from tests.adapt.made import base_of
from tests.adapt.test_every_way import small
from tests.command import mistake, works
from unmask import adapt as ways
from unmask.adapt import adapt, new_model
from unmask.adapt.cvt import Cvt
from unmask.adapt.unlabelled import _sampled, read_unlabelled
from unmask.adapt.ways import task_with
from unmask.contracts.recordable import _OnlyOnCPU, _Watch
from unmask.data.pack_examples import batch_of
from unmask.errors import UserError
from unmask.infer import answer, open_run
from unmask.infer.model import save_run
from unmask.infer.passes import laid_out
from unmask.predict.tags import PLACE
from unmask.recipe import UNLABELLED
from unmask.settings import override
from unmask.tasks.classify import Classify
from unmask.tasks.number import Number
from unmask.tasks.tag import Tag
from unmask.train import Momentum, Trainer, checkpoint

WORDS = [
    "The doctor opened the case near London .",
    "our server ignored no evidence",
    "A patient sold three valves in the rain",
]
SENTENCES = [
    {"tokens": text.split(), "tags": [("O", "B-X")[len(word) > 5] for word in text.split()]} for text in WORDS * 2
]
TEXTS = [f"the judge followed every window {i} times after the storm" for i in range(9)]
LABELS = ("O", "B-X", "I-X")
PRIMARY = ("forward", "backward", "future", "past")


@pytest.fixture(scope="module")
def cove(tokenizers, tmp_path_factory):
    """A model whose encoder is a BiLSTM of two layers."""
    return small("cove", tokenizers, tmp_path_factory.mktemp("base") / "cove")


def tagging(base, out, tune, **values):
    """A model that is about to learn tags, and a batch of texts without labels."""
    task = Tag(epochs=2, examples=3, rate=1e-2, dropout=0.0, labels=LABELS, **values)
    recipe = ways._recipe(base, task, tune, 6)
    model = new_model(base, recipe.replace(tune=tune), out, 0, False)
    rows, _ = laid_out(model, recipe.task.lay_out(recipe.task.given(TEXTS[:3]), labelled=False))
    return model, batch_of(rows, [0, 1, 2]).replace(tracks=((UNLABELLED, 3),))


def log_softmax(scores):
    total = math.log(sum(math.exp(score) for score in scores))
    return [score - total for score in scores]


@pytest.mark.parametrize("token", ["first", "last"])
def test_the_losses_are_the_papers_by_explicit_loops(token, cove, tmp_path):
    model, batch = tagging(cove, tmp_path / "run", Cvt(), token=token)
    system = model.system.eval()
    assert system.students.views == PRIMARY
    for head in (system.predict["tags"], *system.students.heads):
        torch.nn.init.normal_(head.out.weight, generator=torch.Generator().manual_seed(len(head.out.weight[0])))
    with torch.no_grad():
        losses, _ = system.step(system.hide(batch)[0])
        hidden = system.look(batch.replace(tracks=()))
    wanted, counts = dict.fromkeys(PRIMARY, 0.0), dict.fromkeys(PRIMARY, 0)
    cells = model.recipe.system.backbone.cells
    for row, places in enumerate(batch.columns[PLACE].tolist()):
        words = [at for at, number in enumerate(places) if number >= 0]
        for number, at in enumerate(words):
            teacher = log_softmax(system.predict["tags"].out(hidden.last[row, at]).tolist())
            inside = number > 0, number + 1 < len(words)
            before = at - 1 if token == "first" else words[number - 1]
            after = (words[number + 1] if inside[1] else -1) if token == "first" else at + 1
            reads = {"forward": (at, 0), "backward": (at, cells), "future": (before, 0), "past": (after, cells)}
            for view, (place, begin) in reads.items():
                if (view == "future" and not inside[0]) or (view == "past" and not inside[1]):
                    continue
                head = system.students.heads[PRIMARY.index(view)]
                student = log_softmax(head.out(hidden.layers[1][row, place, begin : begin + cells]).tolist())
                wanted[view] += sum(math.exp(p) * (p - q) for p, q in zip(teacher, student, strict=True))
                counts[view] += 1
    assert {view: float(loss.total) for view, loss in losses.items()} == pytest.approx(wanted, rel=1e-4)
    assert {view: float(loss.count) for view, loss in losses.items()} == counts
    assert {view: float(count) for view, count in system.hide(batch)[1].items()} == counts
    assert min(wanted.values()) > 0.1


def gradients(model, batch):
    system = model.system.train()
    system.zero_grad()
    losses, _ = system.step(system.hide(batch)[0])
    sum(loss.total for loss in losses.values()).backward()
    return {
        name for name, parameter in system.named_parameters() if parameter.grad is not None and parameter.grad.any()
    }


def test_unlabelled_text_gives_no_gradient_to_the_primary(cove, tmp_path):
    """Neither to its head, nor to the layer that only it reads, nor through its prediction."""
    model, batch = tagging(cove, tmp_path / "run", Cvt())
    moved = gradients(model, batch)
    assert {name.split(".")[0] for name in moved} == {"backbone", "students"}
    assert {name for name in moved if name.startswith("backbone.")} == {
        f"backbone.{side}.0.{kind}" for side in ("left", "right")
        for kind in ("input_weight", "recurrent_weight", "input_bias", "recurrent_bias")
    }  # fmt: skip
    assert sum(name.startswith("students.") for name in moved) == 2 * len(PRIMARY)


def test_the_full_view_of_the_papers_code_also_trains_the_upper_layer_but_not_the_head(cove, tmp_path):
    model, batch = tagging(cove, tmp_path / "run", Cvt(views=("full", *PRIMARY)))
    moved = gradients(model, batch)
    assert any(name.startswith("backbone.left.1.") for name in moved)
    assert not any(name.startswith("predict.") for name in moved)


def test_masked_views_of_a_transformer_train_its_layers_and_not_the_head(tokenizers, tmp_path):
    base = base_of("bert", tokenizers["wordpiece"], tmp_path / "base")
    model, batch = tagging(base, tmp_path / "run", Cvt())
    assert model.system.students.views == ("masked",)
    moved = gradients(model, batch)
    assert any("blocks.1." in name for name in moved)
    assert not any(name.startswith("predict.") for name in moved)


@pytest.mark.parametrize("name", ["cove", "bert"])
def test_a_step_on_texts_never_waits_for_the_device_so_it_can_be_recorded(name, tokenizers, tmp_path):
    model, batch = tagging(small(name, tokenizers, tmp_path / "base"), tmp_path / "run", Cvt())
    system, batch = model.system.train(), batch.replace(progress=torch.tensor(0.4))
    with _Watch() as watch, _OnlyOnCPU(watch):
        losses, _ = system.step(system.hide(batch)[0])
        sum(loss.total * loss.scale for loss in losses.values()).backward()


def test_the_teacher_has_no_dropout_and_the_students_have_that_of_the_setting(cove, tmp_path):
    model, batch = tagging(cove, tmp_path / "run", Cvt(dropout=0.75))
    system = model.system
    read = system.read(batch.replace(tracks=()))
    wanted = system.eval().predict["tags"].decode(system.look(read), read)
    seen = []
    for layer in (one for one in system.backbone.modules() if isinstance(one, torch.nn.Dropout)):
        layer.register_forward_hook(lambda layer, *_: seen.append((layer.training, layer.p)))
    system.train()
    rate = system.backbone.dropout.p
    torch.testing.assert_close(system.students._taught(system, read), wanted, rtol=1e-6, atol=1e-6)
    assert {training for training, _ in seen} == {False}
    seen.clear()
    system.step(batch)
    assert {p for training, p in seen if training} == {0.75}
    assert system.training
    assert system.backbone.dropout.p == rate  # as before


def test_the_weight_of_what_is_learned_from_texts_follows_its_curve(cove, tmp_path):
    model, batch = tagging(cove, tmp_path / "run", override(Cvt(), ["weight=After(share=0.5, value=2.0, rise=0.0)"]))
    for done, wanted in ((0.25, 0.0), (0.75, 2.0)):
        losses, _ = model.system.step(batch.replace(progress=torch.tensor(done)))
        assert {float(loss.scale) for loss in losses.values()} == {wanted}
        assert min(float(loss.total.detach()) for loss in losses.values()) > 0  # what is reported is not weighted


def test_a_dense_layer_before_the_tags_is_that_of_every_student_too(cove, tmp_path):
    model, batch = tagging(cove, tmp_path / "run", Cvt(), dense=5)
    system = model.system.eval()
    hidden = system.look(batch.replace(tracks=()))
    head, students = system.predict["tags"], system.students.heads
    wanted = (hidden.last @ head.dense.weight.T + head.dense.bias).clamp(min=0) @ head.out.weight.T + head.out.bias
    torch.testing.assert_close(head.decode(hidden, batch), wanted)
    assert [tuple(one.dense.weight.shape) for one in students] == [(5, model.recipe.system.backbone.cells)] * 4
    with pytest.raises(UserError, match="dense must be none or 1 or more, got 0"):
        Tag(dense=0)


def test_with_momentum_it_is_gradient_descent_at_the_papers_rate(cove):
    tune = Cvt(momentum=0.9, average=None)
    made = ways._recipe(cove, Tag(labels=LABELS), tune, 6)
    assert made.optimise == Momentum(rate=0.5, momentum=0.9, clip=1.0, warmup=cove.recipe.adapt.warmup)
    assert made.task.rate == 0.5
    assert ways._recipe(cove, Tag(labels=LABELS, rate=0.1), tune, 6).optimise.rate == 0.1


def trained(base, out, tune, task, examples, **more):
    return list(adapt(base, examples, out, task=task, tune=tune, unlabelled=task.given(TEXTS), overwrite=True, **more))


def sentences(tmp_path):
    file = tmp_path / "train.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in SENTENCES), encoding="utf-8")
    return Tag().read(file, None)[0]


def test_examples_and_texts_take_turns_and_the_average_is_published(cove, tmp_path, monkeypatch):
    weights, update = [], Trainer.update

    def watched(self, moment):
        if not weights:
            weights.append({name: p.detach().clone() for name, p in self.system.named_parameters()})
        done = update(self, moment)
        weights.append({name: p.detach().clone() for name, p in self.system.named_parameters()})
        return done

    monkeypatch.setattr(Trainer, "update", watched)
    task = Tag(epochs=3, examples=3, rate=1e-2)
    records = trained(cove, tmp_path / "run", Cvt(turns=2.0), task, sentences(tmp_path))
    assert records[0]["steps_per_epoch"] == 6  # two steps on six examples, and two on texts for each
    assert records[-1]["turns"] == {"main": 6, UNLABELLED: 12}
    assert {"loss_tags", "loss_forward", "loss_past"} <= set().union(*records)
    of_task = [record["loss_tags"] for record in records if record.get("step", 0) > 12 and "loss_tags" in record]
    last = [record for record in records if "epoch" in record][-1]
    assert last["epoch_loss"] == pytest.approx(sum(of_task) / len(of_task))  # that of the task, not of the students
    average = weights[0]
    for step, now in enumerate(weights[1:], 1):
        keep = min(0.998, (1 + step) / (10 + step))
        average = {name: keep * average[name] + (1 - keep) * tensor for name, tensor in now.items()}
    saved = checkpoint.read(tmp_path / "run" / "weights.safetensors")
    assert not any(name.startswith("students.") for name in saved)
    shared = saved.keys() & average.keys()
    assert {"predict.tags.out.weight", "backbone.left.1.input_weight"} <= shared
    for name in shared:
        torch.testing.assert_close(saved[name], average[name], rtol=1e-4, atol=1e-5)
    assert answer(open_run(tmp_path / "run", device="cpu"), ["our server"]).answers[0].words == ("our", "server")


def test_the_same_seed_gives_the_same_weights(cove, tmp_path):
    task, files = Tag(epochs=2, examples=3, rate=1e-2), []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        trained(cove, tmp_path / name, Cvt(), task, sentences(tmp_path), seed=seed)
        files.append((tmp_path / name / "weights.safetensors").read_bytes())
    assert files[0] == files[1] != files[2]


@pytest.mark.parametrize("name", ["bert", "elmo", "xlnet", "bart", "electra"])
def test_words_are_tagged_with_every_kind_of_network(name, tokenizers, tmp_path):
    base = small(name, tokenizers, tmp_path / "base")
    records = trained(base, tmp_path / "run", Cvt(), Tag(epochs=2, examples=3, rate=1e-2), sentences(tmp_path))
    views = PRIMARY if name == "elmo" else ("masked",)
    assert {key.removeprefix("loss_") for key in set().union(*records) if key.startswith("loss_")} == {"tags", *views}
    assert all(math.isfinite(record[key]) for record in records for key in record if key.startswith("loss"))
    found = answer(open_run(tmp_path / "run", device="cpu"), ["the doctor opened"]).answers[0]
    assert len(found.tags) == 3


REFUSED = [
    ("bert", Classify(), Cvt(), (), "there are none: give a file or a folder with --unlabelled"),
    ("bert", Classify(), None, TEXTS, "--unlabelled has no effect with --tune full"),
    ("bert", Classify(), "lora", TEXTS, "--unlabelled has no effect with --tune lora"),
    ("gpt2", Classify(language=0.0), Cvt(), TEXTS, "reads from one side only"),
    ("bert", Number(), Cvt(), TEXTS, "--task number has none"),
    ("bert", Tag(crf=True, labels=LABELS), Cvt(), TEXTS, "a CRF has only those of whole sequences"),
    ("bert", Classify(), Cvt(views=("forward",)), TEXTS, "tune.views names forward.*choose from masked, full"),
    ("elmo", Classify(), Cvt(views=("future",)), TEXTS, "tune.views names future.*choose from forward, backward, full"),
    ("elmo", Classify(), Cvt(views=("masked",)), TEXTS, "tune.views names masked"),
    ("cove", Classify(), "hide.budget=0.5", TEXTS, "the views are forward, backward: leave tune.hide out"),
    ("cove", Classify(decay=0.1), Cvt(momentum=0.9), TEXTS, "decay=0.1 is the weight decay of AdamW"),
    ("cove", Classify(layer_decay=0.5), Cvt(momentum=0.9), TEXTS, "layer_decay=0.5 lowers the rates"),
    ("bert", Classify(examples=4), Cvt(), TEXTS[:3], "fill 3 rows, fewer than the 4 of one step: give more text"),
]


@pytest.mark.parametrize("name,task,tune,texts,message", REFUSED)
def test_what_makes_no_sense_is_refused(name, task, tune, texts, message, tokenizers, tmp_path):
    base = small(name, tokenizers, tmp_path / "base")
    if isinstance(tune, str):
        tune = override(Cvt(), [tune]) if "=" in tune else ways.get(tune)
    train = tmp_path / "train.jsonl"
    rows = SENTENCES if task.columns == Tag().columns else [
        {"text": text, "label": i / 2 if task == Number() else "ab"[i % 2]} for i, text in enumerate(WORDS * 2)
    ]  # fmt: skip
    train.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    examples, _ = task.read(train, None)
    with pytest.raises(UserError, match=message):
        list(adapt(base, examples, tmp_path / "run", task=task, tune=tune, unlabelled=task.given(texts)))


@pytest.mark.parametrize(
    "settings,message",
    [
        ("turns=0", "tune.turns must be over 0"),
        ("average=1.0", "tune.average must be none or in"),
        ("momentum=1.0", "tune.momentum must be none or in"),
        ("weight=0", "tune.weight must be 0 or more, and over 0 for a part"),
        ("weight=-1", "tune.weight must be 0 or more"),
        ("dropout=1.0", "tune.dropout must be none or in"),
        ("views=('past','past')", "each view once"),
        ("views=('sideways',)", "views"),
        ("hide.replace=Shuffle", "must put other tokens in the place"),
        ("hide.replace=Keep", "must put other tokens in the place"),
    ],
)
def test_wrong_values_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        override(Cvt(), [settings])


def test_texts_are_read_from_files_and_folders_of_every_format(tmp_path):
    (tmp_path / "a.txt").write_text("one two\n\nthree\n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"text": "four"}\n', encoding="utf-8")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "c.csv").write_text("text\nfive six\n", encoding="utf-8")
    (tmp_path / "readme.md").write_text("not read", encoding="utf-8")
    wanted = ["one two", "three", "four", "five six"]
    assert [e.text.a for e in read_unlabelled(Classify(), [tmp_path], None)] == wanted
    (tmp_path / "inner" / "c.csv").unlink()
    (tmp_path / "inner" / "c.conll").write_text("five O\nsix O\n\n", encoding="utf-8")
    tagged = read_unlabelled(Tag(), [tmp_path], None)
    assert [" ".join(sentence.words) for sentence in tagged] == wanted
    assert tagged[0].tags is None
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    (tmp_path / "none").mkdir()
    for path, message in (
        ("empty.txt", "holds no text"),
        ("none", "has no files of text"),
        ("x", "there is no such file or folder"),
    ):
        with pytest.raises(UserError, match=message):
            read_unlabelled(Classify(), [tmp_path / path], None)


def test_a_part_of_many_texts_is_chosen_by_the_seed_in_their_order():
    values = list(range(1000))
    some = _sampled(iter(values), 64, seed=1)
    assert some == sorted(set(some))
    assert len(some) == 64
    assert some == _sampled(iter(values), 64, seed=1) != _sampled(iter(values), 64, seed=2)
    assert _sampled(iter(values), 2000, seed=1) == values
    assert 350 < sum(some) / 64 < 650  # from all over the texts


def test_the_command_line_learns_from_a_file_of_texts(cove, tmp_path):
    save_run(cove, tmp_path / "cove")
    train, texts = tmp_path / "train.jsonl", tmp_path / "texts.txt"
    train.write_text("".join(json.dumps(one) + "\n" for one in SENTENCES), encoding="utf-8")
    texts.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    words = ["adapt", tmp_path / "cove", train, "--dev", train, "--set", "epochs=2", "--set", "examples=3", "--out"]
    found = works(*words, tmp_path / "run", "--tune", "cvt", "--unlabelled", texts)
    assert "9 texts without labels: each is read 1.3 times" in found.err
    recipe = json.loads((tmp_path / "run" / "recipe.json").read_text(encoding="utf-8"))
    assert recipe["tune"]["part"] == "unmask.adapt.Cvt"
    assert "with --unlabelled" in mistake(*words, tmp_path / "x", "--tune", "cvt")
    assert "no effect with --tune full" in mistake(*words, tmp_path / "x", "--unlabelled", texts)


def test_a_setting_of_the_way_is_named_with_its_full_name():
    with pytest.raises(UserError, match=r"views is a setting of the way of tuning \(cvt\).*write tune.views="):
        task_with(Tag(), ["views=forward"], "cvt")
    assert task_with(Tag(), ["dropout=0.3"], "cvt").dropout == 0.3  # both have it: the task's
