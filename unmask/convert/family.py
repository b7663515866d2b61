"""Family: all that is particular to one architecture of Hugging Face. Each is one file here that holds a `FAMILY`."""

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
CONVERT_PICKLE = "transformers.AutoModelForPreTraining.from_pretrained(OLD).save_pretrained(NEW)"


@dataclass(frozen=True)
class Config:
    """What config.json of one family holds."""

    # Field of our network: name in config.json, and the value that holds where the file has none.
    fields: Mapping[str, tuple[str, Any]]
    activations: Mapping[str, str] = field(default_factory=lambda: ACTIVATIONS)  # their names, and ours
    pad: int = 0  # the padding token where config.json names none
    label_dropout: tuple[str, float | None] = ("classifier_dropout", None)  # before a label; None: as in the network
    # The dropout on attention weights; None: it has none. It is written and not read: an import trains with fast kernels.
    attention_dropout: str | None = "attention_probs_dropout_prob"
    embedding_dropout: str | None = None  # the dropout on the embeddings, where it has its own name
    always: Mapping[str, Any] = field(default_factory=dict)  # values that are written whatever the network is
    only: Mapping[str, Any] = field(default_factory=dict)  # our network can compute only this value of each
    only_label: Mapping[str, Any] = field(default_factory=dict)  # the same, where there is a head for a label
    types: Mapping[str, Any] = field(default_factory=dict)  # types of what is read besides `fields`


def _nothing_more(backbone: Any) -> dict[str, Any]:
    return {}


def _no_notes(config: Mapping[str, Any], backbone: Any) -> tuple[str, ...]:
    return ()


def _as_written(tensors: dict[str, Tensor], backbone: Any) -> dict[str, Tensor]:
    return tensors


@dataclass(frozen=True)
class Family:
    """One architecture of Hugging Face: its files, its tensors, what it computes, and when a recipe is one."""

    model_type: str  # its name in config.json
    recipe: ModuleType  # the recipe that an import continues with
    config: Config
    names: Names
    architectures: Mapping[tuple[str, ...], str]  # the class for these kinds of heads; (): the network alone
    # Why a recipe without a family of its own is this one, of those that can hold its network; None: it is not.
    claims: Callable[[Recipe, Any], str | None]

    # What it computes.
    network: type = Transformer  # our network
    network_values: Mapping[str, Any] = field(default_factory=lambda: {"norm": "post"})  # what that must have
    sees: Pattern = "everything"  # what its attention sees
    sharing: Literal["none", "all"] = "none"  # the weights that its layers share
    predicts: Literal["own", "next"] = "own"  # at each position: the token there, or the one after it
    transform: Literal["network", "gelu"] | None = "network"  # activation of the head for tokens; None: no transform
    pooler: Literal["tanh", "gelu"] | None = "tanh"  # activation before a label; None: there is no pooler
    sentence_task: type = NextSentence  # what its head for sentences answers, where there is one
    summary: Literal["first", "last"] = "first"  # the token that a label is read from
    always_projects: bool = False  # embeddings are projected to the layers' width also if that is their own

    # Its tokenizer.
    tokenizer: str | None = (
        None  # the class that many open its folders with, for tokenizers that split texts as BertTokenizer does
    )
    added_tokens: Mapping[str, str] = field(default_factory=dict)  # roles that it lacks, and the tokens an import adds
    padding_side: Literal["left", "right"] = "right"
    needs_own_pad: bool = False  # its positions skip padding, so no other token may be the padding token
    position_offset: Callable[[int], int] = lambda pad: 0  # rows of the position table before the first position
    pickled_words: Mapping[str, str] = field(default_factory=dict)  # file: Python that makes a tokenizer.json of it
    convert_pickle: str = CONVERT_PICKLE  # Python that makes a model.safetensors of pickled weights

    # Parts that only this family can hold, and what export does with each of their values.
    values: Mapping[type, Mapping[str, Fate]] = field(default_factory=dict)

    # Import: what is not a matter of names.
    read_network: Callable[[Family, Mapping[str, Any], Any], Any] = read_transformer  # config.json -> our network
    adjust: Callable[[HFFolder, Any, Heads], Adjusted] = adjust  # tensors cut and added up to those of our network
    token_head: Callable[[HFFolder, Any, bool], Any] = token_head  # the head that predicts tokens; bool: tied
    token_tables: Callable[[Any], int] = lambda backbone: 0  # numbered token tables; 0: all tokens are in one
    notes: Callable[[Mapping[str, Any], Any], tuple[str, ...]] = _no_notes  # what config.json says and we do not do

    # Export: what is not a matter of names.
    check: Callable[[Family, Recipe, Any], None] = check_transformer  # refuse what it cannot compute
    more_config: Callable[[Any], dict[str, Any]] = _nothing_more  # config.json of a network, besides `fields`
    more_tensors: Callable[[Any], dict[str, Tensor]] = _nothing_more  # tensors, by our names, that the network may lack
    finish: Callable[[dict[str, Tensor], Any], dict[str, Tensor]] = _as_written  # the tensors to write, by their names

    @property
    def alone(self) -> str:
        """The class of the network without a head."""
        return self.architectures[()]

    def architecture(self, heads: Heads) -> str:
        """The class of a network with these heads."""
        return self.architectures[heads.kinds]
