"""CVT: examples and texts without labels in turn; students that see a part of a text learn what the network predicts (Clark et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from unmask import curves
from unmask.adapt._way import Way, unless_given
from unmask.axes import Curve, columns_of, gives_of
from unmask.curves import After
from unmask.errors import require
from unmask.hide import Mask, Masked, Spans, Tokens
from unmask.recipe import Recipe
from unmask.system.teacher_student import Students
from unmask.system.views import OF_WORDS, ONE_WAY, Answers, View, Viewer
from unmask.train import Momentum

RATE_OF_MOMENTUM = 0.5  # the paper's
HIDE = Masked(units=Spans(of=Tokens()), budget=0.3, replace=Mask(mask=1.0, random=0.0))
ANSWERS: dict[str, Answers] = {"tag scores": "words", "class scores": "examples"}  # by what a head gives


@dataclass(frozen=True)
class Cvt(Way):
    """Train all weights on examples and on texts without labels, in turn. The average of the weights is kept."""

    # who learns from texts without labels: forward, backward, future, past, full, masked; (): what the network and the task allow
    views: tuple[View, ...] = ()
    hide: Masked = HIDE  # what the view `masked` hides
    turns: float = 1.0  # steps on texts without labels for each step on examples
    # of what is learned from texts without labels (the paper: 1). Before the network has learned from examples, its predictions
    # teach nothing: with 1 from the first step, short trainings ended with one tag for all words (docs/adapt.md)
    weight: float | Curve = After(share=0.2, value=1.0, rise=0.3)
    # of gradient descent, whose rate is then 0.5 unless it is given (the paper: 0.9); none: AdamW
    momentum: float | None = None
    average: float | None = 0.998  # the share of the average of the weights that a step keeps; none: no average
    # of the network's dropout layers on texts without labels (the paper: 0.2, and 0.5 on examples); none: as on examples
    dropout: float | None = None

    def __post_init__(self) -> None:
        require(
            self.turns > 0,
            "tune.turns must be over 0, got {turns}: 1 gives a text step for each step",
            turns=self.turns,
        )
        require(
            len(set(self.views)) == len(self.views),
            "tune.views must name each view once, got {views}",
            views=", ".join(self.views),
        )
        require(
            self.dropout is None or 0 <= self.dropout < 1,
            "tune.dropout must be none or in [0, 1), got {dropout}",
            dropout=self.dropout,
        )
        require(
            self.average is None or 0 < self.average < 1,
            "tune.average must be none or in (0, 1), got {average}: with 0.998, about the last 500 steps are averaged",
            average=self.average,
        )
        require(
            self.momentum is None or 0 <= self.momentum < 1,
            "tune.momentum must be none or in [0, 1), got {momentum}",
            momentum=self.momentum,
        )
        require(
            curves.least(self.weight) >= 0 and curves.most(self.weight) > 0,
            "tune.weight must be 0 or more, and over 0 for a part of the training, got {weight}",
            weight=self.weight,
        )
        shares = {name for name, share in self.hide.replace.shares.items() if share}
        require(
            shares <= {"mask", "random", "keep"} and shares != {"keep"},
            "tune.hide.replace must put other tokens in the place of those that it hides, got {replace}: use Mask",
            replace=type(self.hide.replace).__name__,
        )

    def task(self, task: Any, recipe: Recipe) -> Any:
        if self.momentum is None:
            return task
        require(
            not task.decay,
            "decay={decay} is the weight decay of AdamW, and tune.momentum={momentum} replaces AdamW: leave one of them out",
            decay=task.decay,
            momentum=self.momentum,
        )
        return unless_given(self.without_layer_decay(task), rate=RATE_OF_MOMENTUM, decay=0.0)

    def recipe(self, recipe: Recipe) -> Recipe:
        _check_task(recipe)
        views = self._views(recipe)
        require(
            self.hide == HIDE or "masked" in views,
            "tune.hide says what the view masked hides, but the views are {views}: leave tune.hide out, or set tune.views=('masked',)",
            views=", ".join(views),
        )
        optimise: Any = recipe.optimise
        if self.momentum is not None:
            optimise = Momentum(rate=optimise.rate, momentum=self.momentum, clip=optimise.clip, warmup=optimise.warmup)
        return recipe.replace(optimise=replace(optimise, average=self.average))

    def students(self, system: Any, recipe: Recipe) -> Students:
        assert recipe.task is not None
        backbone: Any = recipe.system.backbone
        part, views = recipe.predict[recipe.task.head], self._views(recipe)
        require(
            "masked" not in views or system.vocabulary.mask is not None,
            "the view masked of --tune cvt puts [MASK] in the place of tokens, and the tokenizer of {name} has no such token: choose "
            "other views with tune.views, or another model",
            name=recipe.name,
        )
        table, layer = system.backbone.embed.token.weight, backbone.one_way if _has_directions(recipe) else None
        width = {view: backbone.direction if view in ONE_WAY else backbone.width for view in views}
        heads = {view: part.build(width[view], table, backbone.fresh) for view in views}
        token: Any = getattr(recipe.task, "token", None) or "first"
        viewer = Viewer(_answers(recipe), layer, token, self.hide if "masked" in views else None)
        return Students(viewer, heads, recipe.task.head, weight=self.weight, dropout=self.dropout)

    def trained(self, system: Any, head: str, epoch: int) -> frozenset[str]:
        return frozenset(name for name, _ in system.named_parameters())

    def _views(self, recipe: Recipe) -> tuple[View, ...]:
        """The views of this network and task. Views that the user asks for and that it does not have are refused."""
        known: list[View] = [view for view in ONE_WAY if _has_directions(recipe)]
        known = [view for view in known if view not in OF_WORDS or _answers(recipe) == "words"]
        known += ["masked"] if "spelling" not in columns_of(recipe.system.backbone) else []
        unknown = [view for view in self.views if view not in (*known, "full")]
        require(
            not unknown,
            "tune.views names {unknown}, which {name} with --task {task} does not have: choose from {known}. forward, backward, future "
            "and past need a layer with one half for each direction (a BiLSTM); future and past also need tags of words; masked "
            "needs a network that reads tokens, not spellings",
            unknown=", ".join(unknown),
            name=recipe.name,
            task=_task_name(recipe),
            known=", ".join((*known, "full")),
        )
        return self.views or tuple(view for view in known if view in ONE_WAY) or ("masked",)


def _check_task(recipe: Recipe) -> None:
    """Refuse a task without tags or classes, and a network that sees one side."""
    gives = gives_of(recipe.predict)
    require(
        bool(gives & ANSWERS.keys()),
        "--tune cvt teaches students the probabilities of classes or tags, and --task {task} has none: use it with --task classify or "
        "--task tag, or choose another way of tuning",
        task=_task_name(recipe),
    )
    require(
        not getattr(recipe.task, "crf", False),
        "--tune cvt teaches students the probabilities of each tag, and a CRF has only those of whole sequences: set crf=false",
    )
    require(
        "both sides" in recipe.see.gives,
        "--tune cvt needs a teacher that sees more than its students, and {name} reads from one side only: adapt a model that sees "
        "both sides, such as elmo or bert",
        name=recipe.name,
    )


def _answers(recipe: Recipe) -> Answers:
    return next(ANSWERS[fact] for fact in sorted(gives_of(recipe.predict)) if fact in ANSWERS)


def _has_directions(recipe: Recipe) -> bool:
    return "one-way layers" in gives_of(recipe.system.backbone)


def _task_name(recipe: Recipe) -> str:
    return type(recipe.task).__name__.lower()
