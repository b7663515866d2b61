"""The stochastic answer network against its recurrence, written out with loops in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.small import random_batch
from unmask.batch import Hidden
from unmask.errors import UserError
from unmask.init_weights import InitWeights
from unmask.predict import AnswerSteps, San
from unmask.tasks import Classify
from unmask.tasks.classify import Columns, read

WIDTH, CLASSES, STEPS = 6, 3, 5


def made(drop: float = 0.0, dropout: float = 0.0) -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        steps = AnswerSteps(count=STEPS, dropout=drop)
        module = San(classes=CLASSES, steps=steps, dropout=dropout).build(WIDTH, torch.zeros(1), InitWeights())
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.7)
    return module


def inputs() -> tuple[Hidden, object]:
    batch = random_batch(4, 20)
    vectors = torch.randn(4, 20, WIDTH, generator=torch.Generator().manual_seed(5))
    return Hidden((vectors,)), batch.replace(label=torch.tensor([0, 2, 1, 1]))


def softmax(scores: list[float]) -> np.ndarray:
    raised = np.exp(np.array(scores) - max(scores))
    return raised / raised.sum()


def by_hand(module, vectors: np.ndarray, first: list[int], second: list[int]) -> np.ndarray:
    """The probabilities of each step for one pair: arXiv:1901.11504, section 3, one token and one step at a time."""
    p = {name: value.detach().double().numpy() for name, value in module.named_parameters()}

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    shares = softmax([float(p["sum.weight"][0] @ vectors[j] + p["sum.bias"][0]) for j in second])
    state = sum(share * vectors[j] for share, j in zip(shares, second, strict=True))
    found = []
    for _ in range(STEPS):
        query = p["look.weight"] @ state + p["look.bias"]
        shares = softmax([float(vectors[j] @ query) for j in first])
        seen = sum(share * vectors[j] for share, j in zip(shares, first, strict=True))
        both = np.concatenate((state, seen, np.abs(state - seen), state * seen))
        found.append(softmax((p["out.weight"] @ both + p["out.bias"]).tolist()))
        inner = p["update.weight_ih"] @ seen + p["update.bias_ih"]
        outer = p["update.weight_hh"] @ state + p["update.bias_hh"]
        (ir, iz, i_n), (hr, hz, hn) = np.split(inner, 3), np.split(outer, 3)
        reset, keep = sigmoid(ir + hr), sigmoid(iz + hz)
        state = (1 - keep) * np.tanh(i_n + reset * hn) + keep * state
    return np.array(found)


def test_it_answers_with_the_mean_of_the_steps_of_the_recurrence():
    module, (hidden, batch) = made(), inputs()
    found = module.eval().decode(hidden, batch).exp()
    for row in range(4):
        places = [(batch.real[row] & (batch.segment[row] == number)).nonzero().flatten().tolist() for number in (0, 1)]
        expected = by_hand(module, hidden.last[row].double().numpy(), *places).mean(0)
        np.testing.assert_allclose(found[row].detach().numpy(), expected, atol=1e-5)


def test_the_loss_is_that_of_the_mean_and_its_classes_can_have_weights():
    module, (hidden, batch) = made().eval(), inputs()
    scores = module.decode(hidden, batch)
    expected = -scores[torch.arange(4), batch.label].sum()
    assert torch.allclose(module(hidden, batch).total, expected)
    weighted = San(classes=CLASSES, steps=AnswerSteps(count=STEPS), weights=(1.0, 2.0, 0.0)).build(WIDTH, torch.zeros(1), InitWeights())  # fmt: skip
    weighted.load_state_dict(module.state_dict())
    by_class = torch.tensor([1.0, 0.0, 2.0, 2.0])
    assert torch.allclose(weighted.eval()(hidden, batch).total, -(scores[torch.arange(4), batch.label] * by_class).sum())  # fmt: skip


def test_training_leaves_out_answers_but_never_all_and_use_leaves_out_none():
    module, steps = made(drop=0.6), torch.ones(4000, STEPS, CLASSES)
    torch.manual_seed(0)
    kept = module.train()._kept(steps)
    assert kept.sum(1).min() == 1
    assert abs(kept.mean().item() - (1 + (STEPS - 1) * 0.4) / STEPS) < 0.02
    assert module.eval()._kept(steps).min() == 1


def test_the_gradient_of_a_step_that_is_left_out_is_that_of_a_mean_of_the_others():
    module, (hidden, batch) = made(drop=0.5), inputs()
    torch.manual_seed(1)
    module.train()(hidden, batch).total.backward()
    found = module.out.weight.grad.clone()
    module.zero_grad()
    torch.manual_seed(1)
    steps = module._steps(hidden, batch).softmax(-1)
    kept = module._kept(steps)
    # as in the released code: masked probabilities, divided by the number of all steps
    torch.log((steps * kept[..., None] / 0.5).mean(1))[torch.arange(4), batch.label].neg().sum().backward()
    assert torch.allclose(found, module.out.weight.grad, atol=1e-5)


@pytest.mark.parametrize(
    "values, said",
    [
        ({"orders": "both"}, "reads the tokens of a pair once"),
        ({"pool": "mean"}, "reads the tokens of a pair once"),
    ],
)
def test_settings_that_it_does_not_use_are_refused(values, said):
    with pytest.raises(UserError, match=said):
        Classify(san=AnswerSteps(), **values)


def test_a_single_text_is_refused(tmp_path):
    (tmp_path / "one.csv").write_text("text,label\na b,x\nc d,y\n")
    with pytest.raises(UserError, match="compares two texts, and an example has one"):
        Classify(san=AnswerSteps()).learn(read(tmp_path / "one.csv", Columns()))


@pytest.mark.parametrize("values", [{"count": 0}, {"dropout": 1.0}])
def test_wrong_numbers_are_refused(values):
    with pytest.raises(UserError):
        AnswerSteps(**values)
