"""sentence-transformers: embeddings of a small network of one's own, losses, and searches."""
import pytest
import torch
from facts import recorded
from sentence_transformers import util
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss, MultipleNegativesRankingLoss, TripletLoss

pytestmark = pytest.mark.filterwarnings("ignore")


class Encoder(torch.nn.Module):
    """What the losses ask of a model: features in, embeddings out."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.EmbeddingBag(20, 8)

    def forward(self, features):
        return {"sentence_embedding": self.embedding(features["input_ids"])}


@recorded
@pytest.mark.parametrize("name", ["cosine", "ranking", "triplet"])
def test_losses_train_with_pytorchs_numbers(device, name):
    torch.manual_seed(0)
    model = Encoder().to(device)
    texts = [{"input_ids": (torch.arange(12, device=device).reshape(3, 4) * (i + 2)) % 20} for i in range(3)]
    kinds = {"cosine": (CosineSimilarityLoss, texts[:2]), "ranking": (MultipleNegativesRankingLoss, texts), "triplet": (TripletLoss, texts)}
    kind, features = kinds[name]
    loss_of, labels = kind(model), torch.tensor([0.1, 0.9, 0.4], device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = loss_of(features, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@recorded
def test_similarities_and_searches_are_pytorchs(device):
    a = torch.linspace(-1, 1, 40, device=device).cos().reshape(5, 8) - 0.8
    b = torch.linspace(-3, 2, 80, device=device).sin().reshape(10, 8)
    hits = util.semantic_search(a, b, top_k=3)
    return {"cos": util.cos_sim(a, b), "dot": util.dot_score(a, b), "pairs": util.pairwise_cos_sim(a, b[:5]),
            "hits": [[h["corpus_id"] for h in row] for row in hits], "communities": util.community_detection(b, threshold=0.5, min_community_size=2)}  # fmt: skip
