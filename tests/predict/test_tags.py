"""Tags of a network with a decoder: those of a task are read from the decoder, those of another column from the encoder."""

import pytest
import torch

from tests.small import random_batch
from unmask.batch import Hidden
from unmask.init_weights import InitWeights
from unmask.predict import Tags


@pytest.mark.parametrize("column, decoder", [("tag", True), ("capital", False)])
def test_a_column_of_the_text_belongs_to_the_tokens_that_the_encoder_reads(column, decoder):
    """Hiding may shorten and reorder the row of the encoder together with its columns, but not the row of the decoder."""
    part, batch = Tags(classes=3, column=column), random_batch(2, 16)
    batch = batch.replace(
        decoder=random_batch(2, 16, seed=1), columns=batch.columns | {column: torch.randint(-1, 3, (2, 16))}
    )
    module = part.build(5, torch.zeros(1, 5), InitWeights())
    encoded, decoded = torch.randn(2, 2, 16, 5)
    hidden = Hidden((encoded,), decoded=decoded)
    assert part.reads_decoder is decoder
    expected = module.out(decoded if decoder else encoded)
    torch.testing.assert_close(module.decode(hidden, batch), expected)
    wanted = torch.nn.functional.cross_entropy(
        expected.flatten(0, 1), batch.columns[column].flatten(), ignore_index=-1, reduction="sum"
    )
    torch.testing.assert_close(module(hidden, batch).total, wanted)
