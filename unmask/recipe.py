"""Recipe, Track, Stage, Continuing and Adapt: the choices of a paper, as frozen values."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from unmask.axes import (
    Arrange,
    Curve,
    Hide,
    Objective,
    Optimise,
    See,
    Start,
    System,
    Task,
    TokenizerKind,
    Tune,
    gives_of,
)
from unmask.errors import require

MAIN = "main"  # the track that the fields of the recipe itself define
UNLABELLED = "unlabelled"  # the track of texts without labels, in an adaptation that learns from them
SENTENCE = "sentence"  # the name of the objective that a recipe's `arrange` adds


@dataclass(frozen=True)
class Stage:
    """One stage of training."""

    share: float = 1.0  # of all steps
    rows: int = 256  # in a step
    length: int = 512  # tokens in a row
    weights: dict[str, float | Curve] = field(default_factory=dict)  # of each loss, by name; 1 if none is given
    hide: Hide | tuple[Hide, ...] | None = None  # what this stage hides; None: what the recipe hides
    # the tracks that take turns, each with its part of the steps, such as {"main": 2, "other": 1}; {}: tracks share batches
    turns: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(
            0 < self.share <= 1, "schedule.share must be in (0, 1], got {share}: write 0.9 for 90%", share=self.share
        )
        require(self.rows >= 1, "schedule.rows must be 1 or more, got {rows}", rows=self.rows)
        require(self.length >= 8, "schedule.length must be 8 or more tokens, got {length}", length=self.length)
        for name, weight in self.weights.items():
            number = isinstance(weight, int | float) and not isinstance(weight, bool)
            require(
                number or hasattr(weight, "at"),
                (
                    "the weight of a loss must be a number or a curve such as Linear(first=1.0, last=0.0), got "
                    "{weight!r} for {name}"
                ),
                weight=weight,
                name=name,
            )
        for name, turn in self.turns.items():
            require(turn >= 0, "the turns of a track must be 0 or more, got {turn} for {name}", turn=turn, name=name)
        require(
            not self.turns or sum(self.turns.values()) > 0,
            "no track has a turn in a stage, got turns={turns}: give one track a number over 0, or remove the stage",
            turns=self.turns,
        )


@dataclass(frozen=True)
class Track:
    """One way to make and read rows. A field that is None has the value of the recipe.

    Tracks share each batch, or take turns: then each step reads one of them, by the `turns` of its stage."""

    # of the rows of each batch, if tracks share batches; "main" (the fields of the recipe itself) has the rest. None: the
    # tracks take turns
    share: float | None = None
    data: tuple[str, ...] = ()  # prepared data sets, if tracks take turns; (): those of the run
    arrange: Arrange | None = None
    hide: Hide | tuple[Hide, ...] | None = None
    see: See | None = None
    segments: tuple[int, ...] = ()  # the number of each segment of the layout in this track; (): 0, 1, ...
    # the names of the recipe's objectives that are computed; None: all, without the sentence task of another `arrange`
    predict: tuple[str, ...] | None = None
    own: dict[str, Objective] = field(default_factory=dict)  # objectives of this track, if tracks take turns

    def __post_init__(self) -> None:
        require(
            self.share is None or 0 < self.share <= 1,
            "tracks.*.share must be in (0, 1], got {share}: write 0.5 for half of the rows",
            share=self.share,
        )


@dataclass(frozen=True)
class FullTrack:
    """A track in which every field is filled in."""

    share: float  # of the rows of a batch, or of the steps; 0: it is not read
    arrange: Arrange
    hide: Hide | tuple[Hide, ...]
    see: See
    segments: tuple[int, ...]
    predict: tuple[str, ...] | None
    sentence: str = SENTENCE  # the name of the objective for the classes of `arrange`
    own: dict[str, Objective] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    number: int | None = None  # for a network with task embeddings; None: the network has none


@dataclass(frozen=True)
class Continuing:
    """How to continue the training of a model on other text: with a low learning rate, so that it does not forget."""

    rate: float = 5e-5  # highest learning rate at width 768; inversely proportional to the width
    warmup: float = 0.1  # share of the steps

    def __post_init__(self) -> None:
        require(self.rate > 0, "continuing.rate must be over 0, got {rate}", rate=self.rate)
        require(
            0 <= self.warmup < 1,
            "continuing.warmup must be in [0, 1), got {warmup}: write 0.1 for 10% of the steps",
            warmup=self.warmup,
        )


@dataclass(frozen=True)
class Adapt:
    """How a paper adapts its model to tasks; a task may change these values."""

    rate: float = 5e-5  # highest learning rate at width 768; inversely proportional to the width
    warmup: float = 0.1  # share of the steps
    epochs: float = 3.0  # number of times the examples are read
    decay: float = 0.01  # weight decay
    layer_decay: float = 1.0  # rate of a layer as a share of the rate of the layer above it; 1: all layers alike
    language: float = 0.0  # weight of predicting the next token in addition to the task
    pooler: bool = True  # a dense layer before the output, in models that see everything
    activation: Literal["tanh", "gelu"] = "tanh"  # of that layer, where a task has it
    pooler_bias: bool = True  # of that layer, where a task predicts a label
    # epsilon of a norm after that layer, where a task predicts a label; tags and answers have both then too; none: no norm
    pooler_norm: float | None = None

    def __post_init__(self) -> None:
        require(self.rate > 0, "adapt.rate must be over 0, got {rate}", rate=self.rate)
        require(
            0 <= self.warmup < 1,
            "adapt.warmup must be in [0, 1), got {warmup}: write 0.1 for 10% of the steps",
            warmup=self.warmup,
        )
        require(self.epochs > 0, "adapt.epochs must be over 0, got {epochs}", epochs=self.epochs)
        require(self.decay >= 0, "adapt.decay must be 0 or more, got {decay}", decay=self.decay)
        require(
            0 < self.layer_decay <= 1,
            "adapt.layer_decay must be in (0, 1], got {layer_decay}: 1 gives all layers the same rate",
            layer_decay=self.layer_decay,
        )
        require(self.language >= 0, "adapt.language must be 0 or more, got {language}", language=self.language)


@dataclass(frozen=True)
class Recipe:
    """A pretraining method: it hides something, lets every position see something, and predicts something with a backbone."""

    name: str
    size: str
    tokenizer: TokenizerKind  # the kind of tokenizer to train
    layout: str  # special tokens and texts of an example, such as "[CLS] a [SEP] b [SEP]"
    arrange: Arrange  # how documents become examples and rows
    hide: Hide | tuple[Hide, ...]  # a rule, or several that are applied in order
    see: See  # which tokens each token sees
    system: System  # the networks, and how they become one training step
    predict: dict[str, Objective]  # the objectives, by the names of their losses
    optimise: Optimise
    schedule: tuple[Stage, ...]
    variant: str = "paper"
    family: str | None = None  # the model type in other libraries; None: derived from the parts
    adapt: Adapt = Adapt()
    continuing: Continuing = Continuing()
    shrink: bool = False  # whether a short budget may use smaller steps and shorter rows; for sizes that no paper has
    reads: int | None = None  # tokens of the longest text that the model reads; None: from the schedule (see `longest`)
    segments: tuple[int, ...] = ()  # the number of each segment of the layout; (): 0, 1, ...
    tracks: dict[str, Track] = field(default_factory=dict)  # other ways to make and read some of the rows
    start: Start | None = None  # what the token embeddings are before training; none: random numbers
    writes_with: str | None = None  # the track with which the model generates text; None: "main", if it can
    task: Task | None = None  # the task that the model was adapted to; None: it was not adapted
    tune: Tune | None = None  # how it was tuned to the task; None: all weights were trained

    def __post_init__(self) -> None:
        require(
            bool(self.schedule) and all(isinstance(stage, Stage) for stage in self.schedule),
            "schedule must be a tuple of stages, got {schedule}: set schedule.0.length or schedule.0.share",
            schedule=self.schedule,
        )
        require(self.hide != (), "hide must have at least one rule, got (): set hide=Nothing to hide no token")
        total = sum(stage.share for stage in self.schedule)
        require(
            abs(total - 1) < 1e-6, "the shares of the schedule's stages must add up to 1, got {total:g}", total=total
        )
        require(
            self.reads is None or self.reads >= 8,
            "reads must be none or 8 or more tokens, got {reads}",
            reads=self.reads,
        )
        (_check_turns if self.takes_turns else _check_shares)(self)
        require(
            self.writes_with is None or self.writes_with in (MAIN, *self.tracks),
            "writes_with must name a track, got {writes_with!r}: use {value}, or none",
            writes_with=self.writes_with,
            value=", ".join((MAIN, *self.tracks)),
        )

    def all_tracks(self, stage: Stage | None = None) -> dict[str, FullTrack]:
        """Every track with all fields filled in, "main" first. `stage`: use what this stage hides."""
        hide = self.hide if stage is None or stage.hide is None else stage.hide
        shares = self._shares(stage)
        main = FullTrack(shares[MAIN], self.arrange, hide, self.see, self.segments, None)
        others = {name: _full(track, main, shares[name]) for name, track in self.tracks.items()}
        if "task embeddings" in gives_of(self.system):
            main = replace(main, number=0)
            others = {name: replace(track, number=number) for number, (name, track) in enumerate(others.items(), 1)}
        if self.takes_turns:  # an arrangement of its own has its own classes
            others |= {n: replace(others[n], sentence=n) for n, track in self.tracks.items() if track.arrange}
        return {MAIN: main} | others

    @property
    def takes_turns(self) -> bool:
        """Whether each step reads one track. False: the tracks share each batch."""
        return any(stage.turns for stage in self.schedule)

    def _shares(self, stage: Stage | None) -> dict[str, float]:
        """The share of each track in a stage; None: over the whole schedule."""
        if not self.takes_turns:
            given = {name: track.share or 0.0 for name, track in self.tracks.items()}
            rest = 1 - sum(given.values())
            return {MAIN: 0.0 if rest < 1e-9 else rest} | given  # thirds and sixths do not add up exactly
        if stage is not None:
            total = sum(stage.turns.values())
            return {name: stage.turns.get(name, 0.0) / total for name in (MAIN, *self.tracks)}
        stages = [(one.share, self._shares(one)) for one in self.schedule]
        return {name: sum(share * each[name] for share, each in stages) for name in (MAIN, *self.tracks)}

    def alone(self, name: str) -> Recipe:
        """The recipe with only this track, as its main track."""
        track = self.all_tracks()[name]
        own = name != MAIN and self.tracks[name].hide is not None
        stages = tuple(replace(stage, turns={}, hide=None if own else stage.hide) for stage in self.schedule)
        return self.replace(arrange=track.arrange, hide=track.hide, see=track.see, segments=track.segments, tracks={},
                            schedule=stages, writes_with=None)  # fmt: skip

    @property
    def tasks(self) -> dict[str, Task]:
        """The tasks of its labelled tracks, by the names of the tracks."""
        arranged: dict[str, Any] = {name: track.arrange for name, track in self.tracks.items() if track.arrange}
        return {name: part.task for name, part in arranged.items() if "examples" in part.gives and part.task}

    @property
    def writing(self) -> str:
        """The name of the track with which the model generates text."""
        return self.writes_with or MAIN

    @property
    def writes(self) -> frozenset[str]:
        """What the model can generate: "left" for the continuation of a text, "second" for a second text from a source."""
        track = self.all_tracks()[self.writing]
        hides = gives_of(track.hide)
        if "prefix" in track.see.gives or "second text" in hides or {"decoder rows", "from before"} <= hides:
            return frozenset({"second"})
        return track.see.gives & ({"left"} if "from before" in hides or self.task is not None else set())

    @property
    def longest(self) -> int:
        """The longest text that the model reads, in tokens. It never reads positions that it was not trained on.

        A network with learned positions knows the positions of the longest rows of its schedule. `reads` replaces this
        length: for an imported model, or one that continues from another run, it is the length of the earlier training; for
        an adapted model, the length in the adaptation."""
        backbone = self.system.backbone
        trained = max(stage.length for stage in self.schedule) if backbone.bounded else backbone.length
        return min(trained if self.reads is None else self.reads, backbone.length)

    @property
    def step_tokens(self) -> float:
        """The mean number of tokens of a step over the schedule, with padding."""
        return sum(stage.share * stage.rows * stage.length for stage in self.schedule)

    def replace(self, **changes: Any) -> Recipe:
        return dataclasses.replace(self, **changes)


def _check_shares(recipe: Recipe) -> None:
    """Refuse tracks that cannot share batches."""
    for name, track in recipe.tracks.items():
        require(
            track.share is not None,
            "the track {name!r} is never read: set tracks.{name}.share=0.5 for half of the rows of each batch, or let tracks take "
            "turns with schedule.*.turns={{'{main}': 1, '{name}': 1}}",
            name=name,
            main=MAIN,
        )
        for field_name in ("own", "data"):
            require(
                not getattr(track, field_name),
                "tracks.{name}.{field_name} is only for tracks that take turns: set schedule.*.turns, or leave it out",
                name=name,
                field_name=field_name,
            )
    shares = sum(track.share or 0.0 for track in recipe.tracks.values())
    require(
        shares < 1 + 1e-9,
        "the shares of the tracks must add up to at most 1 ({main!r} has the rest), got {shares:g}",
        main=MAIN,
        shares=shares,
    )


def _check_turns(recipe: Recipe) -> None:
    """Refuse stages whose turns do not fit the tracks."""
    for number, stage in enumerate(recipe.schedule):
        require(
            bool(stage.turns),
            "tracks take turns in every stage or in none, but schedule.{number} has no turns: set schedule.{number}.turns={{'{main}': 1}}",
            number=number,
            main=MAIN,
        )
        unknown = [name for name in stage.turns if name not in (MAIN, *recipe.tracks)]
        require(
            not unknown,
            "schedule.{number}.turns must name tracks, got {unknown}: use {known}",
            number=number,
            unknown=", ".join(unknown),
            known=", ".join((MAIN, *recipe.tracks)),
        )
    for name, track in recipe.tracks.items():
        require(
            track.share is None,
            "tracks.{name}.share has no effect, because tracks take turns: leave it out, and set schedule.*.turns.{name}",
            name=name,
        )


def _full(track: Track, main: FullTrack, share: float) -> FullTrack:
    return FullTrack(
        share,
        track.arrange or main.arrange,
        track.hide or main.hide,
        track.see or main.see,
        track.segments,
        track.predict,
        own=track.own,
        data=track.data,
    )
