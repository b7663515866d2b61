"""Backbones: networks that turn tokens into contextual vectors; and the parts inside them."""

from unmask.backbone.attention import Full
from unmask.backbone.attention_score import Concat, Dot, General, Score
from unmask.backbone.attentive_lstm import AttentiveLSTM
from unmask.backbone.bilstm import BiLSTM
from unmask.backbone.components import Components
from unmask.backbone.encoder_decoder import EncoderDecoder
from unmask.backbone.fusion import Fusion
from unmask.backbone.key_value_cache import Cache
from unmask.backbone.local import Local
from unmask.backbone.lstm import LSTM
from unmask.backbone.lstm_layer import Cells
from unmask.backbone.positions import Learned, NoPositions, Sinusoidal
from unmask.backbone.protocols import AttentionPart, ComponentsPart, Decoder, Knowledge, LocalLayers, Positions
from unmask.backbone.relative import LayerMemory
from unmask.backbone.rotary import Rotary
from unmask.backbone.spelled_bilstm import SpelledBiLSTM
from unmask.backbone.transformer import Transformer
from unmask.backbone.transformer_xl import TransformerXL
from unmask.backbone.two_way_lstm import TwoWayLSTM
from unmask.backbone.words_alone import WordsAlone

__all__ = [
    "LSTM", "AttentionPart", "AttentiveLSTM", "BiLSTM", "Cache", "Cells", "Components", "ComponentsPart", "Concat", "Decoder", "Dot", "EncoderDecoder", "Full", "Fusion",
    "General", "Knowledge", "LayerMemory", "Learned", "Local", "LocalLayers", "NoPositions", "Positions", "Rotary", "Score", "Sinusoidal",
    "SpelledBiLSTM",
    "Transformer", "TransformerXL", "TwoWayLSTM", "WordsAlone",
]  # fmt: skip
