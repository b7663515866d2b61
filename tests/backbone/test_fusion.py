"""Fusion of tokens and entities: the formula by hand, BERT where there are no entities, and the prediction of entities."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from tests.small import random_batch, vocabulary
from unmask import recipes, see
from unmask.backbone import Fusion, Transformer
from unmask.batch import Batch, Hidden
from unmask.errors import UserError
from unmask.hide import Links
from unmask.init_weights import InitWeights
from unmask.predict import Entities

SMALL = {"layers": 2, "width": 16, "heads": 2, "feedforward": 24, "length": 32, "segments": 2, "dropout": 0.0}
FUSION = Fusion(heads=2, width=6, entities=5)


def built(**changes) -> torch.nn.Module:
    torch.manual_seed(0)
    network = Transformer(**SMALL | changes).build(vocabulary().size, "everything")
    for parameter in network.parameters():  # norms and biases too
        torch.nn.init.normal_(parameter, std=0.3)
    return network.eval()


def linked_batch(links: bool = True) -> Batch:
    batch = see.Everything().apply(random_batch(rows=3, length=16, examples=2))
    place = torch.arange(batch.ids.numel()).view(batch.shape)
    entity = torch.where(batch.text & (place % 3 == 0), place % 5, -1) if links else torch.full_like(place, -1)
    return batch.replace(columns=batch.columns | {"links": entity})


def norm(x, module):
    mean, variance = x.mean(), x.var(unbiased=False)
    return (x - mean) / torch.sqrt(variance + module.eps) * module.weight + module.bias


def test_a_fusion_layer_computes_the_formula_of_the_paper_token_by_token():
    network, batch = built(knowledge=FUSION), linked_batch()
    block, links = network.blocks[1], batch.columns["links"]
    with torch.no_grad():
        hidden = network(batch)[0]
        below, attended = hidden.layers[1], torch.empty_like(hidden.layers[1])
        plain = [torch.nn.MultiheadAttention(w, 2, batch_first=True) for w in (16, 6)]
        for own, theirs in zip((block.attention, block.entity_attention), plain, strict=True):
            theirs.in_proj_weight.copy_(own.qkv.weight)
            theirs.in_proj_bias.copy_(own.qkv.bias)
            theirs.out_proj.weight.copy_(own.out.weight)
            theirs.out_proj.bias.copy_(own.out.bias)
        seen = 0
        for row in range(3):
            for example in range(2):
                here = (batch.example[row] == example).nonzero()[:, 0]
                x = below[row, here][None]
                attended = (plain[0](x, x, x)[0] + x)[0]
                entities = [place for place in range(len(here)) if links[row, here[place]] >= 0]
                e = network.knowledge.vectors[links[row, here[entities]]][None]
                known = (plain[1](e, e, e)[0] + e)[0]
                for place in range(len(here)):
                    token = norm(attended[place], block.attention_norm)
                    inner = block.mlp.up.weight @ token + block.mlp.up.bias
                    if place in entities:
                        entity = norm(known[entities.index(place)], block.entity_attention_norm)
                        inner = inner + block.entity_up.weight @ entity
                    inner = F.gelu(inner)
                    out = norm(token + block.mlp.down.weight @ inner + block.mlp.down.bias, block.mlp_norm)
                    torch.testing.assert_close(hidden.last[row, here[place]], out, atol=1e-4, rtol=1e-4)
                    wanted = torch.zeros(6)
                    if place in entities:
                        wanted = entity + block.entity_down.weight @ inner + block.entity_down.bias
                        wanted = norm(wanted, block.entity_norm)
                        seen += 1
                    torch.testing.assert_close(hidden.entities[row, here[place]], wanted, atol=1e-4, rtol=1e-4)
        assert seen >= 8


@pytest.mark.parametrize("column", [True, False])
def test_without_entities_the_vectors_are_those_of_bert_to_the_last_bit(column):
    network, bert, batch = built(knowledge=FUSION), built(), linked_batch(links=False)
    bert.load_state_dict({n: t for n, t in network.state_dict().items() if n in bert.state_dict()})
    if not column:
        batch = batch.replace(columns={name: c for name, c in batch.columns.items() if name != "links"})
    with torch.no_grad():
        found, wanted = network(batch)[0], bert(batch)[0]
        other = network(linked_batch())[0]
    assert all(torch.equal(a, b) for a, b in zip(found.layers, wanted.layers, strict=True))
    assert torch.equal(other.layers[1], wanted.layers[1])
    assert not torch.equal(other.last, wanted.last)
    assert found.entities is None if not column else not found.entities.any()


def test_links_are_wrong_removed_and_kept_by_their_shares_and_all_entities_are_predicted():
    batch = random_batch(rows=64, length=128)
    links = torch.where(batch.text & (batch.position % 5 == 0), batch.position % 50, -1)
    batch = batch.replace(columns=batch.columns | {"links": links})
    after = Links(wrong=0.05, unlinked=0.15, entities=50).apply(batch, vocabulary(), 0)
    linked, shown, targets = links >= 0, after.columns["links"], after.targets["entities"]
    count = int(linked.sum())
    assert not (shown[~linked] >= 0).any()
    assert int((linked & (shown < 0)).sum()) / count == pytest.approx(0.15, abs=0.03)
    assert int((linked & (shown >= 0) & (shown != links)).sum()) / count == pytest.approx(0.05, abs=0.02)
    assert int(shown.max()) < 50
    assert int(targets.weight.sum()) == count
    used = targets.weight > 0
    assert torch.equal(links.flatten()[targets.where[used]], targets.ids[used])
    assert torch.equal(after.ids, batch.ids)


@pytest.mark.parametrize("among", ["text", "batch"])
def test_an_entity_is_predicted_among_those_of_its_text_or_of_the_batch(among):
    batch = Links(wrong=0, unlinked=0, entities=5).apply(linked_batch(), vocabulary(), 0)
    torch.manual_seed(1)
    head = Entities(among=among, width=6).build(16, torch.empty(0), InitWeights("normal", 0.3))
    hidden = Hidden((torch.randn(3, 16, 16),), table=torch.randn(5, 6))
    links, total, count = batch.columns["links"], 0.0, 0
    for row, place in (links >= 0).nonzero().tolist():
        near = batch.example[row] == batch.example[row, place]
        several = links[row][near] if among == "text" else links.flatten()
        others = sorted(set(several[several >= 0].tolist()))
        vector = head.norm(F.gelu(head.dense(hidden.last[row, place])))
        scores = torch.stack([vector @ hidden.table[one] for one in others])
        total, count = total - scores.log_softmax(0)[others.index(int(links[row, place]))], count + 1
    loss = head(hidden, batch)
    assert int(loss.count) == count == int(head.count(batch))
    torch.testing.assert_close(loss.total, total)


def test_sizes_that_do_not_fit_are_refused():
    base = recipes.get("ernie-thu", size="tiny").system.backbone
    assert base.knowledge.fused(12) == 6
    with pytest.raises(UserError, match="at most backbone.layers, got 3 and 2"):
        dataclasses.replace(base, knowledge=Fusion(layers=3))
    with pytest.raises(UserError, match="set norm=post"):
        dataclasses.replace(base, norm="pre")
    with pytest.raises(UserError, match="multiple of backbone.knowledge.heads, got 100 and 3"):
        Fusion(heads=3)
    with pytest.raises(UserError, match="add up to 1 at most"):
        Links(wrong=0.6, unlinked=0.6)
