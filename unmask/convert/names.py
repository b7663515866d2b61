"""The names of tensors: what each of Hugging Face's families calls those that we have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[  # Hugging Face's `model_type`
    "albert", "bert", "electra", "ernie", "gpt2", "openai-gpt", "roberta", "transfo-xl", "xlnet"
]  # fmt: skip
# Tensors of ours: those of theirs that hold the same numbers, one after the other; {} for the number of a cluster.
Table = dict[str, tuple[str, ...]]

_STEMS = {  # inside a network
    "embeddings", "embeddings_project", "encoder", "pooler", "wte", "wpe", "tokens_embed", "positions_embed", "h", "ln_f",
    "word_embedding", "mask_emb", "layer", "word_emb", "layers", "r_w_bias", "r_r_bias",
}  # fmt: skip
# What can be computed from the rest: the causal masks of GPT-2, the numbers of positions and segments of BERT, the
# waves of Transformer-XL.
_COMPUTED = re.compile(r"\.attn\.(masked_)?bias$|\.(position_ids|token_type_ids)$|\bpos_emb\.inv_freq$")
_RENAMED = (
    (re.compile(r"LayerNorm\.gamma$"), "LayerNorm.weight"),  # as converted from TensorFlow
    (re.compile(r"LayerNorm\.beta$"), "LayerNorm.bias"),
    (re.compile(r"^((cls\.)?predictions|lm_head)\.decoder\.bias$"), r"\1.bias"),  # one tensor under two names
)


@dataclass(frozen=True)
class Heads:
    """The objectives of a model by the names that its recipe gives them."""

    tokens: str | None = None
    sentence: str | None = None
    label: str | None = None
    replaced: str | None = None
    tied: bool = True  # the output weights of `tokens` are the token embeddings


@dataclass(frozen=True)
class Names:
    """What one family calls its tensors. A head that it does not have is an empty table."""

    title: str  # what its classes begin with
    prefix: str  # of the network under a head
    network: Table  # what is outside of the blocks; theirs under the prefix
    place: str  # of a block under the prefix, {} for its number
    block: Table  # theirs under the place
    tokens: Table
    label: Table
    sentence: Table = field(default_factory=dict)
    replaced: Table = field(default_factory=dict)
    masked: str = "ForMaskedLM"  # what the class ends with that predicts tokens
    causal: bool = False  # at a place, the token after it is predicted
    alone: str | None = None  # what the class ends with that has the sentence task and does not predict tokens
    task: str | None = None  # vectors of tasks, which are added to the embeddings (ERNIE 2.0)
    maps: bool = False  # embeddings are mapped to the layers' width also where it is theirs
    turned: tuple[str, ...] = ()  # layers of a block that are stored input first (Conv1D)
    # Of tensors with more dimensions than ours, each dimension: a field of our backbone, or a number.
    shaped: dict[str, tuple[str | int, ...]] = field(default_factory=dict)
    dropped: bool = False  # today's transformers has no such class

    def inside(self, ours: str) -> str | None:
        """Their name of a tensor outside of the blocks."""
        return self.prefix + self.network[ours][0] if ours in self.network else None

    @property
    def token(self) -> str:
        return self.prefix + self.network["embed.token.weight"][0]

    @property
    def position(self) -> str | None:
        return self.inside("embed.position.weight")

    @property
    def segment(self) -> str | None:
        return self.inside("embed.segment.weight")

    @property
    def output(self) -> str:
        """The output weights of the head that predicts tokens."""
        return self.tokens["weight"][0]

    @property
    def per_token(self) -> tuple[str, ...]:
        """The tensors with one row per token of the vocabulary."""
        return self.token, self.output, *self.tokens.get("bias", ())


def _layers(named: dict[str, str]) -> Table:
    """The weights and biases of layers; several of theirs have spaces between them."""
    return {
        f"{ours}.{which}": tuple(f"{name}.{which}" for name in theirs.split())
        for ours, theirs in named.items()
        for which in ("weight", "bias")
    }


_EMBED: Table = {
    "embed.token.weight": ("embeddings.word_embeddings.weight",),
    "embed.position.weight": ("embeddings.position_embeddings.weight",),
    "embed.segment.weight": ("embeddings.token_type_embeddings.weight",),
    **_layers({"embed.norm": "embeddings.LayerNorm"}),
}
_BLOCK = _layers({
    "attention.qkv": "attention.self.query attention.self.key attention.self.value",
    "attention.out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "mlp.up": "intermediate.dense",
    "mlp.down": "output.dense",
    "mlp_norm": "output.LayerNorm",
})  # fmt: skip


def _bert(title: str, prefix: str, task: str | None = None) -> Names:
    pooler, head = f"{prefix}pooler.dense", "cls.predictions"
    return Names(
        title=title,
        prefix=prefix,
        network=_EMBED,
        place="encoder.layer.{}",
        block=_BLOCK,
        tokens={
            "weight": (f"{head}.decoder.weight",),
            "bias": (f"{head}.bias",),
            **_layers({"dense": f"{head}.transform.dense", "norm": f"{head}.transform.LayerNorm"}),
        },
        label=_layers({"dense": pooler, "out": "classifier"}),
        sentence=_layers({"dense": pooler, "out": "cls.seq_relationship"}),
        alone="ForNextSentencePrediction",
        task=task,
    )


def _gpt(title: str, token: str, position: str, more: dict[str, str]) -> Names:
    return Names(
        title=title,
        prefix="transformer.",
        network={
            "embed.token.weight": (f"{token}.weight",),
            "embed.position.weight": (f"{position}.weight",),
            **_layers(more),
        },
        place="h.{}",
        block=_layers({
            "attention_norm": "ln_1",
            "attention.qkv": "attn.c_attn",
            "attention.out": "attn.c_proj",
            "mlp_norm": "ln_2",
            "mlp.up": "mlp.c_fc",
            "mlp.down": "mlp.c_proj",
        }),
        tokens={"weight": ("lm_head.weight",)},
        label={"out.weight": ("score.weight",)},
        masked="LMHeadModel",
        causal=True,
        turned=("attention.qkv.weight", "attention.out.weight", "mlp.up.weight", "mlp.down.weight"),
    )  # fmt: skip


NAMES: dict[Kind, Names] = {
    "bert": _bert("Bert", "bert."),
    "ernie": _bert("Ernie", "ernie.", task="ernie.embeddings.task_type_embeddings.weight"),
    "roberta": Names(
        title="Roberta",
        prefix="roberta.",
        network=_EMBED,
        place="encoder.layer.{}",
        block=_BLOCK,
        tokens={
            "weight": ("lm_head.decoder.weight",),
            "bias": ("lm_head.bias",),
            **_layers({"dense": "lm_head.dense", "norm": "lm_head.layer_norm"}),
        },
        label=_layers({"dense": "classifier.dense", "out": "classifier.out_proj"}),
    ),
    "electra": Names(
        title="Electra",
        prefix="electra.",
        network=_EMBED | _layers({"project": "embeddings_project"}),
        place="encoder.layer.{}",
        block=_BLOCK,
        tokens={
            "weight": ("generator_lm_head.weight",),
            "bias": ("generator_lm_head.bias",),
            **_layers({"dense": "generator_predictions.dense", "norm": "generator_predictions.LayerNorm"}),
        },
        label=_layers({"dense": "classifier.dense", "out": "classifier.out_proj"}),
        replaced=_layers({
            "dense": "discriminator_predictions.dense", "out": "discriminator_predictions.dense_prediction",
        }),
    ),
    "albert": Names(
        title="Albert",
        prefix="albert.",
        network=_EMBED | _layers({"project": "encoder.embedding_hidden_mapping_in"}),
        place="encoder.albert_layer_groups.{}.albert_layers.0",
        block=_layers({
            "attention.qkv": "attention.query attention.key attention.value",
            "attention.out": "attention.dense",
            "attention_norm": "attention.LayerNorm",
            "mlp.up": "ffn",
            "mlp.down": "ffn_output",
            "mlp_norm": "full_layer_layer_norm",
        }),
        tokens={
            "weight": ("predictions.decoder.weight",),
            "bias": ("predictions.bias",),
            **_layers({"dense": "predictions.dense", "norm": "predictions.LayerNorm"}),
        },
        label=_layers({"dense": "albert.pooler", "out": "classifier"}),
        sentence=_layers({"dense": "albert.pooler", "out": "sop_classifier.classifier"}),
        maps=True,
    ),
    "gpt2": _gpt("GPT2", "wte", "wpe", {"final_norm": "ln_f"}),
    "openai-gpt": _gpt("OpenAIGPT", "tokens_embed", "positions_embed", {}),
    "xlnet": Names(
        title="XLNet",
        prefix="transformer.",
        network={"embed.token.weight": ("word_embedding.weight",), "mask": ("mask_emb",)},
        place="layer.{}",
        block={
            "attention.query.weight": ("rel_attn.q",),
            "attention.key_value.weight": ("rel_attn.k", "rel_attn.v"),
            "attention.place.weight": ("rel_attn.r",),
            "attention.out.weight": ("rel_attn.o",),
            "attention.content_bias": ("rel_attn.r_w_bias",),
            "attention.place_bias": ("rel_attn.r_r_bias",),
            "attention.segment_bias": ("rel_attn.r_s_bias",),
            "attention.segment": ("rel_attn.seg_embed",),
            **_layers({
                "attention_norm": "rel_attn.layer_norm",
                "mlp.up": "ff.layer_1",
                "mlp.down": "ff.layer_2",
                "mlp_norm": "ff.layer_norm",
            }),
        },
        tokens={"weight": ("lm_loss.weight",), "bias": ("lm_loss.bias",)},
        label=_layers({"dense": "sequence_summary.summary", "out": "logits_proj"}),
        masked="LMHeadModel",
        turned=("attention.query.weight", "attention.key_value.weight", "attention.place.weight"),
        shaped={
            "mask": (1, 1, "width"),
            "attention.query.weight": ("width", "heads", "head"),
            "attention.key_value.weight": ("width", "heads", "head"),
            "attention.place.weight": ("width", "heads", "head"),
            "attention.out.weight": ("width", "heads", "head"),
        },
    ),
    "transfo-xl": Names(
        title="TransfoXL",
        prefix="transformer.",
        network={
            "embed.token.weight": ("word_emb.emb_layers.0.weight",),
            "embed.token.tables.{}": ("word_emb.emb_layers.{}.weight",),
            "embed.token.projections.{}": ("word_emb.emb_projs.{}",),
        },
        place="layers.{}",
        block={
            "attention.query.weight": ("dec_attn.q_net.weight",),
            "attention.key_value.weight": ("dec_attn.kv_net.weight",),
            "attention.place.weight": ("dec_attn.r_net.weight",),
            "attention.out.weight": ("dec_attn.o_net.weight",),
            "attention.content_bias": ("dec_attn.r_w_bias",),
            "attention.place_bias": ("dec_attn.r_r_bias",),
            **_layers({
                "attention_norm": "dec_attn.layer_norm",
                "mlp.up": "pos_ff.CoreNet.0",
                "mlp.down": "pos_ff.CoreNet.3",
                "mlp_norm": "pos_ff.layer_norm",
            }),
        },
        tokens={
            "weight": ("crit.out_layers.0.weight",),
            "bias": ("crit.out_layers.0.bias",),
            "bias.{}": ("crit.out_layers.{}.bias",),
            "projections.{}": ("crit.out_projs.{}",),
            "cluster": ("crit.cluster_weight",),
            "cluster_bias": ("crit.cluster_bias",),
        },
        label={},
        masked="LMHeadModel",
        causal=True,
        dropped=True,
    ),
}  # fmt: skip


def architecture(kind: Kind, heads: Heads) -> str:
    """Hugging Face's name for a network with these heads."""
    called = NAMES[kind]
    if heads.label:
        ending: str | None = "ForSequenceClassification"
    elif heads.replaced or (heads.sentence and heads.tokens):
        ending = "ForPreTraining"
    elif heads.sentence:
        ending = called.alone
    else:
        ending = called.masked if heads.tokens else "Model"
    return f"{called.title}{ending}"


def canonical(kind: Kind, name: str) -> str:
    """A name as the newest files write it under a head."""
    if name.split(".")[0] in _STEMS:
        name = NAMES[kind].prefix + name
    for old, new in _RENAMED:
        name = old.sub(new, name)
    return name


def computed(name: str) -> bool:
    """Does a file hold this only for convenience?"""
    return bool(_COMPUTED.search(name))
