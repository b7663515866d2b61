"""A file of a user with a kind of task that the package does not have."""

from dataclasses import dataclass

import numpy as np

from unmask.axes import Answered, Judged
from unmask.data.examples import Laid, Text
from unmask.predict import Label
from unmask.tasks._recipe import with_head
from unmask.tasks._training import Training


@dataclass(frozen=True)
class Length(Training):
    """Whether a text has more than 12 letters."""

    @property
    def labels(self):
        return ()

    @property
    def main_scores(self):
        return ("right",)

    @property
    def head(self):
        return "long"

    def learn(self, examples):
        return self

    def check(self, examples, reader, *, labelled=True):
        pass

    def recipe(self, base):
        return with_head(base, self.decided(base.recipe), self.head, Label(classes=2, pooler=False), 0)

    def given(self, values, where=()):
        return list(values)

    def lay_out(self, examples, *, labelled=True):
        return Laid([Text(text) for text in examples], [int(len(text) > 12) for text in examples])

    def baseline(self, examples):
        return {}

    def answer(self, model, examples):
        scores, notes = model.scores("class scores", self.lay_out(examples))
        return Answered([bool(row.argmax()) for row in scores], notes)

    def score(self, model, examples, answers):
        truth = [len(text) > 12 for text in examples]
        return {
            "examples": len(examples),
            "right": float(np.mean([a == b for a, b in zip(truth, answers, strict=True)])),
        }

    def judge(self, model, examples):
        right = self.score(model, examples, self.answer(model, examples).answers)["right"]
        return Judged(right, {"right": right})

    def notices(self, model, examples, dev, best):
        return [f"best {best.score}"]
