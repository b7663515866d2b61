"""Which waiting texts share a batch: the one that came first, and those that make the batch read most for its time."""

import itertools
import random

import pytest

from unmask.infer.passes import CPU_FIXED, CPU_PASS, together
from unmask.serving.engine import fullest


@pytest.mark.parametrize("fixed", [0, 16, 16_384])
def test_the_batch_is_the_best_of_all_that_hold_the_oldest_text(fixed):
    dice = random.Random(fixed)
    for _ in range(200):
        lengths = sorted(dice.randint(1, 40) for _ in range(dice.randint(1, 12)))
        at, most = dice.randrange(len(lengths)), dice.randint(1, 120)

        def value(begin, end, lengths=lengths):
            return sum(lengths[begin:end]) / ((end - begin) * lengths[end - 1] + fixed)

        allowed = [
            (begin, end)
            for begin, end in itertools.product(range(at + 1), range(at + 1, len(lengths) + 1))
            if end - begin == 1 or (end - begin) * lengths[end - 1] <= most
        ]
        found = fullest(lengths, at, most, fixed)
        assert found in allowed
        assert value(*found) == pytest.approx(max(value(*one) for one in allowed))


def test_texts_of_a_few_clients_are_read_almost_as_fast_as_all_at_once():
    """Eight clients with eight texts in each request, as in bench/serve.py; time in tokens, which does not depend on the machine."""
    dice = random.Random(0)
    lengths = [6 + dice.randint(0, 60) for _ in range(400)]
    cost = sum(len(one) * max(lengths[i] for i in one) + CPU_FIXED for one in together(lengths, tokens=CPU_PASS))
    assert _time_of_requests(lengths) < 1.09 * cost


def _time_of_requests(lengths):
    requests = iter([list(range(begin, begin + 8)) for begin in range(0, len(lengths), 8)])
    waiting, left, time = [], {}, 0
    for request in itertools.islice(requests, 8):
        waiting += request
        left[request[0] // 8] = 8
    while waiting:
        alike = sorted(waiting, key=lambda i: lengths[i])
        begin, end = fullest([lengths[i] for i in alike], alike.index(waiting[0]), CPU_PASS, CPU_FIXED)
        batch = alike[begin:end]
        time += len(batch) * lengths[batch[-1]] + CPU_FIXED
        waiting = [i for i in waiting if i not in batch]
        for i in batch:
            left[i // 8] -= 1
            if not left[i // 8] and (request := next(requests, None)):
                waiting += request
                left[request[0] // 8] = 8
    return time
