"""Views: what a view must not see never changes what it gives. A token is changed, and the vectors of every view are compared."""

import pytest
import torch

from tests.small import random_batch, vocabulary
from unmask.backbone import BiLSTM, SpelledBiLSTM, TwoWayLSTM
from unmask.hide import Mask, Masked, Spans, Tokens
from unmask.predict.tags import PLACE
from unmask.see import Everything
from unmask.system.views import Reading, Viewer

ROWS, LENGTH = 2, 18
NETWORKS = {
    "BiLSTM": BiLSTM(layers=2, cells=5, embedding=6, dropout=0.0),
    "joined": BiLSTM(layers=2, cells=5, embedding=6, dropout=0.0, joined=True),
    "SpelledBiLSTM": SpelledBiLSTM(cells=(6, 4), projection=5, embedding=6, characters=3, filters=(0, 2), dropout=0.0),
    "TwoWayLSTM": TwoWayLSTM(layers=2, width=10, cells=8, filters=(4, 4), characters=4, dropout=0.0),
}


def batch_of(token):
    """Rows of words of one token or more; PLACE is on the first or the last token of each."""
    batch = random_batch(ROWS, LENGTH, size=200)
    word = batch.columns["word"]
    other = torch.roll(word, 1 if token == "first" else -1, 1)
    place = torch.where((word >= 0) & (word != other), word, -1)
    return batch.replace(columns=batch.columns | {PLACE: place, "spelling": spelled(batch.ids)})


def spelled(ids):
    return torch.stack((ids % 7, ids % 11, ids % 13), -1).where(ids[..., None] > 4, 255)


def changed(batch, at):
    """The batch with another token at one place of every row."""
    ids = batch.ids.clone()
    ids[:, at] = (ids[:, at] - 4) % 190 + 7
    return batch.replace(ids=ids, columns=batch.columns | {"spelling": spelled(ids)})


def vectors(network, viewer, view, batch):
    whole = Reading(network(batch)[0], batch)
    return viewer.read(view, None, batch, whole).hidden.last


def may_see(view, token, word, at, j):
    """Whether the answer at place `at` of a word may depend on token `j`, by what the paper says of the view."""
    mine = [i for i, number in enumerate(word) if number == word[at]]  # the tokens of the word
    return {"forward": j <= at, "backward": j >= at, "future": j < mine[0], "past": j > mine[-1]}[view]


@pytest.mark.parametrize("token", ["first", "last"])
@pytest.mark.parametrize("view", ["forward", "backward", "future", "past"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_tag_of_a_word_depends_only_on_the_tokens_that_its_view_sees(name, view, token):
    spec = NETWORKS[name]
    torch.manual_seed(0)
    network = spec.build(200, "everything").eval()
    viewer, batch = Viewer("words", spec.one_way, token), batch_of(token)
    before, weight = vectors(network, viewer, view, batch), viewer.weight(view, batch)
    assert before.shape[2] == spec.direction
    seen = torch.zeros(ROWS, LENGTH, LENGTH, dtype=torch.bool)
    for j in range(1, LENGTH - 4):  # the ids of padding are read by nobody
        moved = (vectors(network, viewer, view, changed(batch, j)) != before).any(2) & (weight > 0)
        seen[:, :, j] = moved
    for row in range(ROWS):
        word = batch.columns["word"][row].tolist()
        for at in torch.nonzero(weight[row])[:, 0].tolist():
            allowed = [may_see(view, token, word, at, j) for j in range(LENGTH)]
            assert not any(seen[row, at, j] for j in range(LENGTH) if not allowed[j])
            nearest = max if view in ("forward", "future") else min
            inside = [j for j in range(1, LENGTH - 4) if allowed[j]]
            assert seen[row, at, nearest(inside)]  # it sees all that it may see, up to its edge


@pytest.mark.parametrize("token", ["first", "last"])
def test_the_first_word_has_no_past_word_to_be_predicted_from_and_the_last_word_no_later_one(token):
    batch = batch_of(token)
    words = (batch.columns[PLACE] >= 0).float()
    viewer = Viewer("words", 1, token)
    for row, weights in enumerate(words.tolist()):
        places = [i for i, weight in enumerate(weights) if weight]
        for view, left_out in (("forward", None), ("backward", None), ("future", places[0]), ("past", places[-1])):
            wanted = [float(i in places and i != left_out) for i in range(LENGTH)]
            assert viewer.weight(view, batch)[row].tolist() == wanted


@pytest.mark.parametrize("name", NETWORKS)
def test_of_an_example_forward_sees_its_first_half_and_backward_its_second(name):
    spec = NETWORKS[name]
    torch.manual_seed(0)
    network = spec.build(200, "everything").eval()
    viewer, batch = Viewer("examples", spec.one_way), batch_of("first")
    tokens = int(batch.real[0].sum())
    for view, own in (("forward", range((tokens + 1) // 2)), ("backward", range((tokens + 1) // 2, tokens))):
        before = vectors(network, viewer, view, batch)
        assert torch.equal(before, before[:, :1].expand_as(before))  # so that a head may pool as it likes
        moved = [
            bool((vectors(network, viewer, view, changed(batch, j)) != before).any()) for j in range(1, tokens - 1)
        ]
        assert moved == [j in own for j in range(1, tokens - 1)]


def test_what_the_masked_view_hides_changes_nothing_that_it_gives():
    rule = Masked(units=Spans(of=Tokens()), budget=0.4, replace=Mask(mask=1.0, random=0.0))
    torch.manual_seed(0)
    spec = NETWORKS["BiLSTM"]
    network, batch = spec.build(200, "everything").eval(), batch_of("first")
    system = Fake(network)
    viewer = Viewer("words", hide=rule)
    hidden = rule.chosen(batch, system.vocabulary, system.seed)
    before = viewer.read("masked", system, batch, None).hidden.last
    for j in range(1, LENGTH - 4):
        moved = (viewer.read("masked", system, changed(batch, j), None).hidden.last != before).flatten(1).any(1)
        assert moved.tolist() == (~hidden[:, j]).tolist()
    assert hidden.any()
    later = batch.replace(visit=batch.visit + 1)
    assert not torch.equal(rule.chosen(later, system.vocabulary, system.seed), hidden)  # other spans at the next visit


class Fake:
    """What a view needs of a system."""

    def __init__(self, network):
        self.network, self.vocabulary, self.seed = network, vocabulary(), 3

    def read(self, batch):
        return Everything().apply(batch)

    def vectors(self, batch):
        return self.network(batch)
