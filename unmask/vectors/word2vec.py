"""word2vec's skip-gram and CBOW, and fastText, trained by gensim."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unmask.data.workers import used_workers
from unmask.errors import UserError
from unmask.vectors.vector_file import WordVectors

SEEDS = 2**32  # gensim has no others, and none below 0
ALPHA = (0.025, 0.0001)  # the learning rate at the beginning and at the end


def gensim_models() -> Any:
    """gensim's models; an error if gensim is not installed."""
    try:
        import gensim.models
    except ImportError:
        raise UserError(
            "skipgram, cbow and fasttext are trained by gensim, which is not installed: pip install 'unmask[vectors]', or use "
            "--kind glove"
        ) from None
    return gensim.models


def train_gensim(
    file: Path, kind: str, *, dims: int, window: int, epochs: int, least_count: int, negative: int, seed: int,
    workers: int | None = None,
) -> Iterator[dict[str, Any] | WordVectors]:  # fmt: skip
    """Train on a file of words; yields a record per epoch, and at last the vectors. With one worker the result depends only
    on the seed."""
    models = gensim_models()
    made = models.FastText if kind == "fasttext" else models.Word2Vec
    model = made(
        vector_size=dims, window=window, min_count=least_count, sg=int(kind != "cbow"), negative=negative, seed=seed % SEEDS,
        workers=used_workers(workers), alpha=ALPHA[0], min_alpha=ALPHA[1], epochs=epochs,
    )  # fmt: skip
    model.build_vocab(corpus_file=str(file))
    first, last = ALPHA
    for epoch in range(epochs):  # one at a time, so that the progress is seen; the rate falls as in one training
        begin, end = (first + (last - first) * done / epochs for done in (epoch, epoch + 1))
        model.train(
            corpus_file=str(file), total_words=model.corpus_total_words, epochs=1, start_alpha=begin, end_alpha=end
        )
        yield {"done": epoch + 1, "done_total": epochs}
    yield WordVectors(tuple(model.wv.index_to_key), model.wv.vectors)
