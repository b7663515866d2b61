"""GloVe: the table of pairs against loops over the text, the loss and its gradients against the paper's formula by loops."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from itertools import combinations_with_replacement

import numpy as np
import pytest
import torch

from unmask.vectors import cooccurrence, making
from unmask.vectors.components import ComponentTable
from unmask.vectors.cooccurrence import Layout, Table, count_pairs
from unmask.vectors.glove import RATE, GloVe, dense_step, sparse_step, weight_of


@pytest.fixture
def small_chunks(monkeypatch):
    """Many chunks and few frequent words, so that runs are merged and both ways to count are used."""
    monkeypatch.setattr(cooccurrence, "CHUNK", 200)
    monkeypatch.setattr(cooccurrence, "FREQUENT", 4)
    monkeypatch.setattr(cooccurrence, "MERGED", 50)


def lines_of(seed: int = 0) -> list[list[str]]:
    dice = random.Random(seed)
    return [dice.choices("abcdefghijklm", range(13, 0, -1), k=dice.randint(0, 30)) for _ in range(60)]


def by_loops(lines: list[list[str]], words: list[str], window: int) -> dict[tuple[int, int], float]:
    table: dict[tuple[int, int], float] = defaultdict(float)
    for line in lines:
        known = [words.index(word) for word in line if word in words]
        for i, one in enumerate(known):
            for j, other in enumerate(known):
                if i != j and abs(i - j) <= window:
                    table[one, other] += 1 / abs(i - j)
    return table


def counted(lines: list[list[str]], words: list[str], window: int, folder, tile: int = 4) -> Table:
    file = folder / "words"
    file.write_text("".join(" ".join(line) + "\n" for line in lines))
    *progress, table = count_pairs(file, folder, words, window, workers=2, tile=tile)
    assert len(progress) > 3
    return table


@pytest.mark.parametrize("window", [1, 3, 10])
def test_the_table_of_pairs_is_what_loops_over_the_text_count(window, tmp_path, small_chunks):
    lines, words = lines_of(), list("abcdefghijk")  # l and m have no number
    table = counted(lines, words, window, tmp_path)
    model, places = GloVe(table, 2), table.layout.places
    expected = by_loops(lines, words, window)
    whole, size = np.zeros((len(model.word.own),) * 2), table.layout.tile
    for i, j in combinations_with_replacement(range(table.layout.blocks), 2):
        row, column, count = (tensor.numpy() for tensor in model.cells((i, j)))
        whole[i * size + row, j * size + column] = count
        whole[j * size + column, i * size + row] = count
    found = {(i, j): whole[places[i], places[j]] for i in range(len(words)) for j in range(len(words))}
    for pair, value in found.items():
        assert value == pytest.approx(expected[pair], rel=1e-5), pair
    assert whole.sum() == pytest.approx(sum(expected.values()), rel=1e-5)  # nothing outside the words


def test_the_weight_of_a_cell_is_the_papers():
    counts = torch.tensor([0.0, 1.0, 50.0, 100.0, 1000.0])
    assert weight_of(counts).tolist() == pytest.approx([0, 0.01**0.75, 0.5**0.75, 1, 1])


def cells_of(counts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    row, column = counts.nonzero(as_tuple=True)
    return row, column, counts[row, column]


@pytest.mark.parametrize("step", [dense_step, sparse_step])
def test_loss_and_gradients_of_a_matrix_are_the_closed_form(step):
    dice = torch.Generator().manual_seed(0)
    words, contexts = (torch.randn(n, 4, generator=dice, dtype=torch.float64) for n in (3, 5))
    counts = torch.rand(3, 5, generator=dice, dtype=torch.float64) * 200 * (torch.rand(3, 5, generator=dice) > 0.4)
    loss, rows, columns = step(words, contexts, *cells_of(counts))
    total, row, column = 0.0, np.zeros((3, 4)), np.zeros((5, 4))
    for i in range(3):
        for j in range(5):
            x = float(counts[i, j])
            if x == 0:
                continue
            w, c = words[i].tolist(), contexts[j].tolist()
            error = sum(a * b for a, b in zip(w[:3], c[:3], strict=True)) + w[3] + c[3] - math.log(x)
            f = min(1.0, (x / 100) ** 0.75)
            total += f * error**2
            row[i] += [f * error * b for b in c[:3]] + [f * error]
            column[j] += [f * error * a for a in w[:3]] + [f * error]
    assert float(loss) == pytest.approx(total)
    np.testing.assert_allclose(rows.numpy(), row, rtol=1e-9)
    np.testing.assert_allclose(columns.numpy(), column, rtol=1e-9)


def one_tile(counts: np.ndarray) -> Table:
    """A symmetric matrix as a table of one tile; its diagonal is stored as half of it."""
    size = len(counts)
    upper = np.triu(counts) - np.diag(np.diag(counts)) / 2
    index = np.flatnonzero(upper)
    starts = np.array([0, len(index)])
    return Table(Layout(size, size), starts, index.astype(np.uint32), upper.ravel()[index].astype(np.float32))


def test_a_step_is_adagrads_and_training_lowers_the_loss():
    counts = np.array([[4.0, 30, 0, 2], [30, 0, 7, 150], [0, 7, 2, 1], [2, 150, 1, 0]])
    model = GloVe(one_tile(counts), 3, seed=1)
    before, contexts = model.word.own.clone(), model.context.own.clone()
    _, gradient, _ = dense_step(before, contexts, *cells_of(torch.tensor(counts, dtype=torch.float32)))
    first = next(model.train(1))
    torch.testing.assert_close(model.word.own, before - RATE * gradient / (1 + gradient**2).sqrt())
    losses = [first.loss, *(done.loss for done in model.train(150))]
    assert losses[-1] < 0.1 * losses[0]
    fitted = model.word.own[:, :-1] @ model.context.own[:, :-1].T + model.word.own[:, -1:] + model.context.own[:, -1]
    assert float(fitted[1, 3]) == pytest.approx(math.log(150), abs=0.5)


def test_a_character_that_was_never_seen_gets_the_sum_of_its_parts(tmp_path):
    file = tmp_path / "parts.tsv"
    file.write_text("河\t氵可\n海\t氵每\n何\t亻 可\n侮\t亻每\n謎\t言迷\n", encoding="utf-8")
    components = ComponentTable.load(file)
    words = ["河", "海", "何", "水"]
    counts = np.random.default_rng(0).random((4, 4)) * 50
    model = GloVe(one_tile(counts + counts.T), 3, parts=components.numbers(words), components=len(components.names))
    for _ in model.train(5):
        pass
    notes = making.Counter()
    vectors = making._with_unseen(
        making.WordVectors(tuple(words), model.vectors()), components, model.component_vectors(), notes
    )
    assert vectors.words == ("河", "海", "何", "水", "侮")
    part = dict(zip(components.names, model.component_vectors(), strict=True))
    np.testing.assert_allclose(vectors.matrix[4], part["亻"] + part["每"], rtol=1e-6)
    own = (model.word.own + model.context.own)[:, :-1].numpy()
    np.testing.assert_allclose(vectors.matrix[0], own[0] + part["氵"] + part["可"], rtol=1e-5)
    assert notes == {
        "characters of the table are in no word of the corpus, such as 侮: their vectors come from their parts": 1,
        "characters of the table get no vector, such as 謎: one of their parts is in no word of the corpus": 1,
    }
    assert components.notes(words) == {"characters of the corpus are not in the table of components, such as 水": 1}


def test_signs_for_how_parts_are_arranged_are_no_components(tmp_path):
    (tmp_path / "parts.tsv").write_text("河\t⿰氵可\n謎\t⿰ 言 迷\n", encoding="utf-8")
    assert ComponentTable.load(tmp_path / "parts.tsv").of == {"河": ("氵", "可"), "謎": ("言", "迷")}


def test_components_move_as_their_words_do():
    """The gradient of a component is the sum of the gradients of the words that have it."""
    counts = np.array([[0.0, 30, 9], [30, 0, 7], [9, 7, 2]])
    parts = np.array([[0, 1], [1, -1], [1, 1]])
    model = GloVe(one_tile(counts), 2, parts=parts, components=2)
    side, before = model.word, model.word.component.clone()
    rows = side.own + torch.stack([before[0] + before[1], before[1], 2 * before[1]])
    torch.testing.assert_close(side.rows(slice(0, 3)), rows)
    _, gradient, _ = sparse_step(
        rows, model.context.rows(slice(0, 3)), *cells_of(torch.tensor(counts, dtype=torch.float32))
    )
    for _ in model.train(1):
        pass
    total = torch.stack([gradient[0], gradient[0] + gradient[1] + 2 * gradient[2]])
    torch.testing.assert_close(side.component, before - RATE * total / (1 + total**2).sqrt())
