"""Randomness by hash: the same everywhere, uniform, and different for every purpose."""

import numpy as np
import pytest
import torch

from unmask import chance

MASK = (1 << 64) - 1


def splitmix_finaliser(x: int) -> int:
    """Steele, Lea and Flood 2014, with whole numbers of Python."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def by_hand(element: int, *counters: int) -> int:
    state = 0
    for counter in (*counters, element):
        state = splitmix_finaliser(((state ^ (counter & MASK)) + 0x9E3779B97F4A7C15) & MASK)
    return state & (MASK >> 1)


def test_draws_are_splitmix64_to_the_bit():
    elements = [0, 1, 2, 77, -1, 1 << 40]
    found = chance.draw(np.array(elements), 5, chance.purpose("test"))
    assert found.tolist() == [by_hand(e, 5, chance.purpose("test")) for e in elements]


def test_numpy_and_torch_give_the_same_numbers():
    row, place = np.arange(7)[:, None] + (1 << 33), np.arange(50)[None]
    counters = (3, 1 << 63, row, chance.purpose("x"))
    torch_counters = (3, 1 << 63, torch.from_numpy(row), chance.purpose("x"))
    like = np.broadcast_to(place, (7, 50)).copy()
    for function in (chance.draw, chance.uniform, lambda *a: chance.below(97, *a)):
        a, b = function(like, *counters), function(torch.from_numpy(like), *torch_counters)
        assert np.array_equal(a, b.numpy())
    assert chance.uniform(torch.from_numpy(like)).dtype == torch.float32


def test_uniform_is_uniform():
    values = chance.uniform(np.arange(100_000), 0, chance.purpose("x"))
    assert values.min() >= 0
    assert values.max() < 1
    counts = np.histogram(values, 100, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 149  # chi-square of 99 degrees, 99.9%


def test_below_is_uniform_and_never_reaches_its_limit():
    counts = np.bincount(chance.below(37, np.arange(74_000), 1, 2), minlength=37)
    assert len(counts) == 37
    assert ((counts - 2000) ** 2 / 2000).sum() < 68  # 36 degrees, 99.9%


def test_neighbouring_counters_are_independent():
    place = np.arange(50_000)
    draws = [chance.uniform(place, *counters) for counters in ((0, 0, 5), (0, 1, 5), (1, 0, 5), (0, 0, 6), (5, 0, 0))]
    for i, one in enumerate(draws):
        assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.02
        for other in draws[i + 1 :]:
            assert abs(np.corrcoef(one, other)[0, 1]) < 0.02


def test_purposes_differ_and_fit_into_63_bits():
    names = ["choose", "mask, random or keep", "random token", "rows", "groups", "arrange", "deal documents", ""]
    numbers = [chance.purpose(name) for name in names]
    assert len(set(numbers)) == len(names)
    assert all(0 <= number < 1 << 63 for number in numbers)
    draws = {tuple(chance.draw(np.arange(4), 0, number).tolist()) for number in numbers}
    assert len(draws) == len(names)


def test_a_generator_is_a_function_of_its_counters():
    a, b, c = (chance.generator(*counters).random(100) for counters in ((1, 2), (1, 2), (2, 1)))
    assert np.array_equal(a, b)
    assert not np.isin(a, c).any()


def test_drawing_changes_nothing_that_it_was_given():
    like = np.arange(5)
    chance.draw(like, 1)
    assert like.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_seeding_torch_gives_the_numbers_of_its_own_seed(device):
    torch.manual_seed(7)
    wanted = torch.rand(3)
    chance.seed_torch(7, device=device)
    assert torch.equal(torch.rand(3), wanted)
