"""Knowledge on a GPU: vectors are learned as on a CPU, and fusion gives the same vectors. Skipped where there is no GPU."""

import pytest
import torch

from tests.backbone.test_fusion import FUSION, built, linked_batch
from unmask.knowledge import DistMult, Training, TransE
from unmask.knowledge.learn import first_vectors, learn
from unmask.knowledge.rank import ranks

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("model", [TransE(1), TransE(2), DistMult()])
def test_vectors_and_ranks_are_those_of_a_cpu(model):
    triples = torch.randint(30, (200, 3), generator=torch.Generator().manual_seed(0))
    triples[:, 1] %= 4
    training, found = Training(model, 16, epochs=2, rows=64), []
    for device in ("cpu", "cuda"):
        vectors = first_vectors(training, 30, 4, device)
        losses = [float(loss) for loss in learn(vectors, triples.to(device), training)]
        known = triples.numpy()
        found.append((losses, vectors.entities.cpu(), ranks(model, vectors, known[:50], known).mean()))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-2)
    assert (found[0][1] * found[1][1]).sum(1).mean() > 0.99  # sums on a GPU have another order
    assert found[0][2] == pytest.approx(found[1][2], rel=0.05)


@pytest.mark.parametrize("half", [False, True])
def test_fusion_gives_the_vectors_of_a_cpu(half):
    network, batch = built(knowledge=FUSION), linked_batch()
    with torch.no_grad():
        wanted = network(batch)[0]
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            found = network.cuda()(batch.to("cuda"))[0]
    close = 0.2 if half else 1e-3
    real = batch.real
    assert (found.last.float().cpu() - wanted.last)[real].abs().max() < close
    assert (found.entities.float().cpu() - wanted.entities)[real].abs().max() < close
