"""The kernels of fused relative attention, in Triton. Only fused_attention.py imports them.

Each program computes a tile of one head of one row. Letters as in fused_attention.py: Q queries, K keys, L distances.
Names in capitals are tile sizes, which are known when a kernel is compiled. Scores are exponents of two: exp(x) is
exp2(x * log2(e)), and a GPU has an instruction only for exp2.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def look(
    content, key, value, distant, both, seen, end, column, found, total,
    content_b, content_h, content_q, key_b, key_h, key_k, distant_b, distant_h, found_b, found_h, found_q,
    queries, keys, length, factor,
    width: tl.constexpr, WIDTH: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, AHEAD: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The output of a tile of queries, and the base-2 logarithm of the sum that their weights were divided by."""
    h, b = tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)  # a batch may hold more than 2^31 numbers
    q = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    d = tl.arange(0, WIDTH)
    real = (q < queries)[:, None] & (d < width)[None, :]
    query = tl.load(content + b * content_b + h * content_h + q[:, None] * content_q + d[None, :], mask=real, other=0.0)
    key += b * key_b + h * key_h
    value += b * key_b + h * key_h
    distant += b * distant_b + h * distant_h
    seen += b * queries * keys
    start = _start(column, b, q, queries)
    same, other = _pair(both, (b * tl.num_programs(1) + h) * queries, q, queries)

    top = tl.full((QUERIES,), float("-inf"), tl.float32)
    sum_ = tl.zeros((QUERIES,), tl.float32)
    gathered = tl.zeros((QUERIES, WIDTH), tl.float32)
    stop = tl.max(tl.load(end + b * queries + q, mask=q < queries, other=0))
    if AHEAD:
        following = _added(distant, q, 0, start, queries, stop, length, KEYS)
    for first in range(0, stop, KEYS):
        if AHEAD:
            added = following
            following = _added(distant, q, first + KEYS, start, queries, stop, length, KEYS)
        else:
            added = _added(distant, q, first, start, queries, stop, length, KEYS)
        k = first + tl.arange(0, KEYS)
        relation = _relation(seen, q, k, queries, keys)
        here = (k < keys)[:, None] & (d < width)[None, :]
        near = tl.load(key + k[:, None] * key_k + d[None, :], mask=here, other=0.0)
        score = tl.dot(query, near.T, input_precision=PRECISION)
        score = _score(score, relation, added, same, other, both, False, factor)
        highest = tl.maximum(top, tl.max(score, 1))
        base = tl.where(highest == float("-inf"), 0.0, highest)  # no key seen so far: avoid infinity minus infinity
        weight = tl.exp2(score - base[:, None])
        shrink = tl.exp2(top - base)
        sum_ = sum_ * shrink + tl.sum(weight, 1)
        worth = tl.load(value + k[:, None] * key_k + d[None, :], mask=here, other=0.0)
        gathered = gathered * shrink[:, None]
        gathered = tl.dot(weight.to(worth.dtype), worth, gathered, input_precision=PRECISION)
        top = highest

    # a query that sees no key: its output is 0, and so is its gradient, because exp2(score - infinity) is 0
    blind = sum_ == 0.0
    gathered = gathered / tl.where(blind, 1.0, sum_)[:, None]
    place = found + b * found_b + h * found_h + q[:, None] * found_q + d[None, :]
    tl.store(place, gathered.to(found.dtype.element_ty), mask=real)
    total += (b * tl.num_programs(1) + h) * queries
    tl.store(total + q, tl.where(blind, float("inf"), top + tl.log2(sum_)), mask=q < queries)


@triton.jit
def keys_back(
    content, key, value, distant, both, seen, begin, column, gradient, total, inner, of_key, of_value,
    content_b, content_h, content_q, key_b, key_h, key_k, distant_b, distant_h, gradient_b, gradient_h, gradient_q,
    of_key_b, of_key_h, of_key_k, queries, keys, length, factor, scale,
    width: tl.constexpr, WIDTH: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, AHEAD: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradients of a tile of keys and values, from all queries that see them. Score tiles are transposed: K Q."""
    h, b = tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    k = tl.program_id(0) * KEYS + tl.arange(0, KEYS)
    d = tl.arange(0, WIDTH)
    here = (k < keys)[:, None] & (d < width)[None, :]
    near = tl.load(key + b * key_b + h * key_h + k[:, None] * key_k + d[None, :], mask=here, other=0.0)
    worth = tl.load(value + b * key_b + h * key_h + k[:, None] * key_k + d[None, :], mask=here, other=0.0)
    content += b * content_b + h * content_h
    gradient += b * gradient_b + h * gradient_h
    distant += b * distant_b + h * distant_h
    seen += b * queries * keys
    line = (b * tl.num_programs(1) + h) * queries

    change_key = tl.zeros((KEYS, WIDTH), tl.float32)
    change_value = tl.zeros((KEYS, WIDTH), tl.float32)
    earliest = tl.min(tl.load(begin + b * keys + k, mask=k < keys, other=queries))
    earliest = earliest // QUERIES * QUERIES
    begun = tl.program_id(0) * KEYS
    if AHEAD:
        following = _added_by(distant, column, b, earliest, begun, queries, keys, length, QUERIES, KEYS)
    for first in range(earliest, queries, QUERIES):
        if AHEAD:
            added = following
            following = _added_by(distant, column, b, first + QUERIES, begun, queries, keys, length, QUERIES, KEYS)
        else:
            added = _added_by(distant, column, b, first, begun, queries, keys, length, QUERIES, KEYS)
        q = first + tl.arange(0, QUERIES)
        relation = _relation(seen, q, k, queries, keys)
        same, other = _pair(both, line, q, queries)
        real = (q < queries)[:, None] & (d < width)[None, :]
        query = tl.load(content + q[:, None] * content_q + d[None, :], mask=real, other=0.0)
        score = tl.dot(near, query.T, input_precision=PRECISION)
        score = _score(score, relation, added, same, other, both, True, factor)
        weight = tl.exp2(score - tl.load(total + line + q, mask=q < queries, other=float("inf"))[None, :])
        change = tl.load(gradient + q[:, None] * gradient_q + d[None, :], mask=real, other=0.0)
        change_value = tl.dot(weight.to(change.dtype), change, change_value, input_precision=PRECISION)
        of_weight = tl.dot(worth, change.T, input_precision=PRECISION)
        of_score = weight * (of_weight - tl.load(inner + line + q, mask=q < queries, other=0.0)[None, :])
        change_key = tl.dot(of_score.to(query.dtype), query, change_key, input_precision=PRECISION)

    place = b * of_key_b + h * of_key_h + k[:, None] * of_key_k + d[None, :]
    tl.store(of_key + place, (change_key * scale).to(of_key.dtype.element_ty), mask=here)
    tl.store(of_value + place, change_value.to(of_value.dtype.element_ty), mask=here)


@triton.jit
def queries_back(
    content, key, value, distant, both, seen, end, column, gradient, total, inner, of_content, of_both,
    content_b, content_h, content_q, key_b, key_h, key_k, distant_b, distant_h, gradient_b, gradient_h, gradient_q,
    of_content_b, of_content_h, of_content_q, queries, keys, length, factor, scale,
    width: tl.constexpr, WIDTH: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, AHEAD: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradients of a tile of queries, of their segment scores, and of their distance scores. The last ones overwrite
    the distance scores, which are not read afterwards."""
    h, b = tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    q = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    d = tl.arange(0, WIDTH)
    real = (q < queries)[:, None] & (d < width)[None, :]
    query = tl.load(content + b * content_b + h * content_h + q[:, None] * content_q + d[None, :], mask=real, other=0.0)
    gradient += b * gradient_b + h * gradient_h
    change = tl.load(gradient + q[:, None] * gradient_q + d[None, :], mask=real, other=0.0)
    line = (b * tl.num_programs(1) + h) * queries
    divided = tl.load(total + line + q, mask=q < queries, other=float("inf"))
    mean = tl.load(inner + line + q, mask=q < queries, other=0.0)
    key += b * key_b + h * key_h
    value += b * key_b + h * key_h
    distant += b * distant_b + h * distant_h
    seen += b * queries * keys
    start = _start(column, b, q, queries)
    same, other = _pair(both, line, q, queries)

    change_query = tl.zeros((QUERIES, WIDTH), tl.float32)
    change_same = tl.zeros((QUERIES,), tl.float32)
    change_other = tl.zeros((QUERIES,), tl.float32)
    stop = tl.max(tl.load(end + b * queries + q, mask=q < queries, other=0))
    if AHEAD:
        following = _added(distant, q, 0, start, queries, stop, length, KEYS)
    for first in range(0, stop, KEYS):
        if AHEAD:
            added = following
            following = _added(distant, q, first + KEYS, start, queries, stop, length, KEYS)
        else:
            added = _added(distant, q, first, start, queries, stop, length, KEYS)
        k = first + tl.arange(0, KEYS)
        relation = _relation(seen, q, k, queries, keys)
        here = (k < keys)[:, None] & (d < width)[None, :]
        near = tl.load(key + k[:, None] * key_k + d[None, :], mask=here, other=0.0)
        worth = tl.load(value + k[:, None] * key_k + d[None, :], mask=here, other=0.0)
        score = tl.dot(query, near.T, input_precision=PRECISION)
        score = _score(score, relation, added, same, other, both, False, factor)
        weight = tl.exp2(score - divided[:, None])
        of_weight = tl.dot(change, worth.T, input_precision=PRECISION)
        of_score = weight * (of_weight - mean[:, None])
        change_query = tl.dot(of_score.to(near.dtype), near, change_query, input_precision=PRECISION)
        if both is not None:
            change_same += tl.sum(tl.where(relation == 1, of_score, 0.0), 1)
            change_other += tl.sum(tl.where(relation == 2, of_score, 0.0), 1)
        place, there = _places(q, first, start, queries, stop, length, KEYS)
        of_score = tl.reshape((of_score * scale).to(distant.dtype.element_ty), place.shape)
        tl.store(distant + place, of_score, mask=there)

    place = of_content + b * of_content_b + h * of_content_h + q[:, None] * of_content_q + d[None, :]
    tl.store(place, (change_query * scale).to(of_content.dtype.element_ty), mask=real)
    if both is not None:
        pair = of_both + (line + q) * 2
        tl.store(pair, (change_same * scale).to(of_both.dtype.element_ty), mask=q < queries)
        tl.store(pair + 1, (change_other * scale).to(of_both.dtype.element_ty), mask=q < queries)
    _clear(distant, q[:, None], 0, tl.max(start), 0, start[:, None], queries, length, KEYS)
    rest = start + stop  # the columns before this one are written
    _clear(distant, q[:, None], tl.min(rest), length, rest[:, None], length, queries, length, KEYS)


@triton.jit
def _start(column, b, q, queries):
    """The column of distances of each query's first key."""
    start = queries - 1 - q
    if column is not None:
        start = tl.load(column + b * queries + q, mask=q < queries, other=0).to(tl.int32)
    return start


@triton.jit
def _pair(both, line, q, queries):
    """What is added to each query's score for keys of the same segment, and for keys of another segment."""
    same, other = 0.0, 0.0
    if both is not None:
        pair = both + (line + q) * 2
        same = tl.load(pair, mask=q < queries, other=0.0).to(tl.float32)
        other = tl.load(pair + 1, mask=q < queries, other=0.0).to(tl.float32)
    return same, other


@triton.jit
def _relation(seen, q, k, queries, keys):
    """The tile of `seen`: 0: not seen; 1: seen, same segment; 2: seen, another segment."""
    return tl.load(seen + (q[:, None] * keys + k[None, :]), mask=(q < queries)[:, None] & (k < keys)[None, :], other=0)


@triton.jit
def _places(q, first, start, queries, keys, length, KEYS: tl.constexpr):
    """Where the distance scores of a tile are in memory, and which of them exist. Shape Q K/32 32.

    The shape decides which thread loads which number. A row of distances begins at an unaligned address, so a thread can
    load only one number at a time, and the threads of a warp should load neighbouring numbers. Without this shape, the
    compiler would let each thread load sixteen neighbouring numbers, which is right only for `seen`."""
    WARP: tl.constexpr = min(32, KEYS)
    k = (first + tl.arange(0, KEYS // WARP) * WARP)[None, :, None] + tl.arange(0, WARP)[None, None, :]
    limit = tl.where(q < queries, tl.minimum(keys, length - start), 0)
    return (q * length + start)[:, None, None] + k, k < limit[:, None, None]


@triton.jit
def _added(distant, q, first, start, queries, keys, length, KEYS: tl.constexpr):
    """The distance scores of a tile; 0 for distances that are not in the table."""
    place, there = _places(q, first, start, queries, keys, length, KEYS)
    return tl.load(distant + place, mask=there, other=0.0)


@triton.jit
def _added_by(distant, column, b, first, begun, queries, keys, length, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """The same for a tile that begins at query `first` and key `begun`."""
    q = first + tl.arange(0, QUERIES)
    return _added(distant, q, begun, _start(column, b, q, queries), queries, keys, length, KEYS)


@triton.jit
def _score(product, relation, added, same, other, both, KEYS_FIRST: tl.constexpr, factor):
    """The scores of a tile; minus infinity for keys that are not seen."""
    added = tl.reshape(added, relation.shape)
    if KEYS_FIRST:
        relation, added = relation.T, added.T
    added = added.to(tl.float32)
    if both is not None:
        AXIS: tl.constexpr = 0 if KEYS_FIRST else 1
        added += tl.where(relation == 1, tl.expand_dims(same, AXIS), tl.expand_dims(other, AXIS))
    # two multiplications: the compiler would turn (product + added) into a matrix product that starts from `added`, and
    # that product would have to wait for `added`
    return tl.where(relation > 0, product * factor + added * factor, float("-inf"))


@triton.jit
def _clear(distant, q, low, high, begin, end, queries, length, COLUMNS: tl.constexpr):
    """Write zeros to the columns from `begin` to `end` of each query. `low` and `high`: the range over all queries."""
    for first in range(low, high, COLUMNS):
        c = (first + tl.arange(0, COLUMNS))[None, :]
        held = (q < queries) & (c >= begin) & (c < end) & (c < length)
        tl.store(distant + (q * length + c), tl.zeros((1, COLUMNS), distant.dtype.element_ty), mask=held)
