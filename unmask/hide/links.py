"""Links: corrupt the links between a text and the entities of a graph, and predict the entities."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unmask import chance
from unmask.axes import Need
from unmask.batch import Batch, Vocabulary
from unmask.errors import require
from unmask.hide.choice import places, targets
from unmask.hide.rule import Rule
from unmask.text.links import LINKS


@dataclass(frozen=True)
class Links(Rule):
    """Every entity of the text is predicted; some of their links are wrong, and some are removed. The tokens stay.

    Paper: ERNIE of Tsinghua (Zhang et al. 2019). Needs: the column of links. Produces: the targets "entities". Used by:
    ernie-thu. Differs from Masked: it changes the entities that the network reads next to the text, not the text.
    """

    wrong: float = 0.05  # share of the links that point to another random entity
    unlinked: float = 0.15  # share of the links that are removed
    most: float = 0.25  # places for predictions, as a share of the tokens of a row; further entities are not predicted
    entities: int = 1  # the number of entities of the graph; pretraining takes it from the data

    def __post_init__(self) -> None:
        for name in ("wrong", "unlinked"):
            value = getattr(self, name)
            require(
                0 <= value <= 1, "hide.{name} must be in [0, 1], got {value}: write 0.05 for 5%", name=name, value=value
            )
        require(
            self.wrong + self.unlinked <= 1,
            "hide.wrong and hide.unlinked must add up to 1 at most, got {wrong} and {unlinked}",
            wrong=self.wrong,
            unlinked=self.unlinked,
        )
        require(0 < self.most <= 1, "hide.most must be in (0, 1], got {most}", most=self.most)

    @property
    def needs(self) -> tuple[Need, ...]:
        return (
            Need(f"column:{LINKS}", "it predicts the entities of a text"),
            Need("entity vectors", "it changes the entities that the network reads"),
        )

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({"targets:entities"})

    def apply(self, batch: Batch, vocabulary: Vocabulary, seed: int) -> Batch:
        length = batch.shape[1]
        # a text that is shown and not prepared has no column, and no entities
        links = batch.columns.get(LINKS, torch.full_like(batch.ids, -1)).long()
        place = torch.arange(length, device=links.device).expand(batch.shape)
        linked = links >= 0
        counters = (seed, batch.row[:, None], batch.visit[:, None])
        chosen = chance.uniform(place, *counters, chance.purpose("links"))
        others = max(1, self.entities - 1)
        other = (links + 1 + chance.below(others, place, *counters, chance.purpose("wrong entity"))) % self.entities
        shown = torch.where(linked & (chosen < self.wrong), other, links)
        removed = linked & (chosen >= self.wrong) & (chosen < self.wrong + self.unlinked)
        found = targets(batch, torch.where(linked, place, -1), linked, places(self.most, length))
        found = found.replace(ids=links.flatten()[found.where].clamp(min=0))
        columns = batch.columns | {LINKS: torch.where(removed, -1, shown)}
        return batch.replace(columns=columns, targets=batch.targets | {"entities": found})
