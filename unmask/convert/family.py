"""Family: everything that is specific to one Hugging Face architecture. Each family is one file that holds a `FAMILY`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from unmask.axes import Pattern
from unmask.backbone import Transformer
from unmask.convert.adjust_tensors import Adjusted, adjust
from unmask.convert.config_json import read_transformer
from unmask.convert.exported_values import Fate
from unmask.convert.names import Heads, Names
from unmask.convert.network_checks import check_transformer
from unmask.convert.token_head import token_head
from unmask.data import NextSentence
from unmask.recipe import Recipe

if TYPE_CHECKING:
    from unmask.convert.hf_folder import HFFolder

ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}


@dataclass(frozen=True)
class Config:
    """The contents of config.json of one family."""

    # Field of our network: its name in config.json, and the default value if the file does not have it.
    fields: Mapping[str, tuple[str, Any]]
    activations: Mapping[str, str] = field(default_factory=lambda: ACTIVATIONS)  # their name: our name
    pad: int = 0  # the padding token if config.json does not name one
    # the name and default of the dropout before a label; None: the dropout of the network
    label_dropout: tuple[str, float | None] = ("classifier_dropout", None)
    choice_dropout: tuple[str, float | None] | None = (
        None  # the same before the score of a choice; None: as before a label
    )
    # The name of the dropout on attention weights; None: there is none. It is written but not read, because without this
    # dropout an imported model trains with fast kernels.
    attention_dropout: str | None = "attention_probs_dropout_prob"
    embedding_dropout: str | None = None  # the name of the dropout on the embeddings, if it has its own name
    always: Mapping[str, Any] = field(default_factory=dict)  # values that are always written
    only: Mapping[str, Any] = field(default_factory=dict)  # for each field, the only value that our network supports
    only_label: Mapping[str, Any] = field(default_factory=dict)  # the same, for a checkpoint with a head for a label
    only_choice: Mapping[str, Any] = field(default_factory=dict)  # the same, for a checkpoint with a head for choices
    types: Mapping[str, Any] = field(default_factory=dict)  # the types of fields that are read besides `fields`
    token_ids: Mapping[str, str] = field(default_factory=dict)  # fields that hold special tokens, and their roles
    first_written: str | None = None  # the field with the special token that every text of a decoder begins with

    @property
    def before_choice(self) -> tuple[str, float | None]:
        """The name and default of the dropout before the score of a choice."""
        return self.choice_dropout or self.label_dropout


def _nothing_more(backbone: Any) -> dict[str, Any]:
    return {}


def _no_notes(config: Mapping[str, Any], backbone: Any) -> tuple[str, ...]:
    return ()


def _as_written(tensors: dict[str, Tensor], backbone: Any) -> dict[str, Tensor]:
    return tensors


@dataclass(frozen=True)
class Family:
    """One Hugging Face architecture: its files, its tensors, what it computes, and when a recipe belongs to it."""

    model_type: str  # its name in config.json
    recipe: ModuleType  # the recipe that an imported model gets
    config: Config  # its config.json
    names: Names  # the names of its tensors
    architectures: Mapping[tuple[str, ...], str]  # the class for these kinds of heads; (): the network without a head
    # The reason why a recipe that names no family belongs to this one, if several support its network; None: it does not.
    claims: Callable[[Recipe, Any], str | None]

    # What it computes.
    network: type = Transformer  # the class of our network
    network_values: Mapping[str, Any] = field(default_factory=lambda: {"norm": "post"})  # values that it must have
    layer_values: Mapping[str, Any] = field(default_factory=dict)  # unusual values that its layers must have
    positions: type | None = None  # its positions; None: learned, or none if it has no table of positions
    sees: Pattern = "everything"  # which tokens a token sees
    sharing: Literal["none", "all"] = "none"  # which weights the layers share
    # at each position: the token there, or the next one; or a decoder writes the text
    predicts: Literal["own", "next", "written"] = "own"
    transform: Literal["network", "gelu"] | None = "network"  # activation of the head for tokens; None: no transform
    pooler: Literal["tanh", "gelu"] | None = "tanh"  # activation before a label; None: there is no pooler
    pooler_norm: bool = False  # whether the pooler ends with a norm; then the pooler has no biases
    pools: Mapping[str, str] = field(
        default_factory=dict
    )  # our name for what a label reads, and theirs; {}: the summary
    sentence_task: type = NextSentence  # the task of its sentence head, if it has one
    summary: Literal["first", "last"] = "first"  # the token that a label is predicted from
    always_projects: bool = False  # whether embeddings are projected even if they are as wide as the layers

    # Its tokenizer.
    # the class that users often open its folders with; it works only for tokenizers that split texts like BertTokenizer
    tokenizer: str | None = None
    added_tokens: Mapping[str, str] = field(default_factory=dict)  # missing roles, and the tokens that an import adds
    padding_side: Literal["left", "right"] = "right"  # where texts are padded
    needs_own_pad: bool = False  # whether its positions skip padding, so that no other token may be the padding token
    position_offset: Callable[[int], int] = lambda pad: 0  # rows of the position table before the first position
    pickled_words: Mapping[str, str] = field(default_factory=dict)  # file: Python code that makes tokenizer.json

    # Parts that only this family supports, and what export does with each of their values.
    values: Mapping[type, Mapping[str, Fate]] = field(default_factory=dict)

    # Functions for import, besides names.
    read_network: Callable[[Family, Mapping[str, Any], Any], Any] = read_transformer  # config.json -> our network
    adjust: Callable[[HFFolder, Any, Heads], Adjusted] = adjust  # changes the tensors so that they fit our network
    token_head: Callable[[HFFolder, Any, bool], Any] = token_head  # the head that predicts tokens; bool: tied
    token_tables: Callable[[Any], int] = lambda backbone: 0  # number of token tables; 0: there is one without a number
    notes: Callable[[Mapping[str, Any], Any], tuple[str, ...]] = _no_notes  # settings of config.json that are ignored

    # Functions for export, besides names.
    check: Callable[[Family, Recipe, Any], None] = check_transformer  # refuses values that it does not support
    more_config: Callable[[Any], dict[str, Any]] = _nothing_more  # values of config.json besides `fields`
    more_tensors: Callable[[Any], dict[str, Tensor]] = _nothing_more  # tensors, by our names, that the network may lack
    finish: Callable[[dict[str, Tensor], Any], dict[str, Tensor]] = _as_written  # last change of the tensors to write

    @property
    def alone(self) -> str:
        """The class of the network without a head."""
        return self.architectures[()]

    def architecture(self, heads: Heads) -> str:
        """The class of a network with these heads."""
        return self.architectures[heads.kinds]
