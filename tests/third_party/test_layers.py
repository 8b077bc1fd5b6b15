"""Packages of layers: x-transformers, vector-quantize-pytorch, rotary-embedding-torch, vit-pytorch, entmax, pytorch-crf, einx, snntorch, geoopt."""
import einx
import entmax
import geoopt
import pytest
import snntorch
import torch
from facts import recorded
from rotary_embedding_torch import RotaryEmbedding
from torchcrf import CRF
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize
from vit_pytorch import SimpleViT, ViT
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper, ViTransformerWrapper

pytestmark = pytest.mark.filterwarnings("ignore")


def trained(parameters, loss_of, steps=3, rate=0.05):
    optimizer = torch.optim.SGD(parameters, lr=rate)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


OPTIONS = {
    "plain": {}, "rotary": {"rotary_pos_emb": True, "use_rmsnorm": True, "ff_glu": True}, "alibi": {"alibi_pos_bias": True, "attn_pre_talking_heads": True},
    "flash": {"attn_flash": True, "attn_num_mem_kv": 2, "attn_kv_heads": 1}, "sandwich": {"sandwich_norm": True, "rel_pos_bias": True},
}  # fmt: skip


@recorded
@pytest.mark.parametrize("name", OPTIONS)
def test_x_transformers_learn_and_generate(device, name):
    torch.manual_seed(0)
    net = TransformerWrapper(num_tokens=16, max_seq_len=12, attn_layers=Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, **OPTIONS[name])).to(device)
    model = AutoregressiveWrapper(net)
    tokens = (torch.arange(20, device=device) ** 2 % 16).reshape(2, 10)
    losses = trained(model.parameters(), lambda: model(tokens))
    return {"losses": losses, "tokens": model.generate(tokens[:, :3], 5, temperature=0.0)}


@recorded
def test_x_transformers_see_pictures(device):
    torch.manual_seed(0)
    net = ViTransformerWrapper(image_size=8, patch_size=4, num_classes=3, attn_layers=Encoder(dim=16, depth=1, heads=2, attn_dim_head=8)).to(device)
    x = torch.linspace(0, 9, 384, device=device).sin().reshape(2, 3, 8, 8)
    return trained(net.parameters(), lambda: torch.nn.functional.cross_entropy(net(x), torch.tensor([0, 2], device=device)))


@recorded
@pytest.mark.parametrize("name", ["VectorQuantize", "cosine", "ResidualVQ", "FSQ", "LFQ"])
def test_vectors_are_quantized_as_in_pytorch(name):
    torch.manual_seed(0)
    kinds = {"VectorQuantize": lambda: VectorQuantize(4, 8, decay=0.8), "cosine": lambda: VectorQuantize(4, 8, use_cosine_sim=True),
             "ResidualVQ": lambda: ResidualVQ(dim=4, num_quantizers=2, codebook_size=8), "FSQ": lambda: FSQ([5, 3, 4, 3]), "LFQ": lambda: LFQ(codebook_size=16, dim=4)}  # fmt: skip
    layer, x = kinds[name](), torch.linspace(-3, 3, 48).sin().reshape(2, 6, 4).requires_grad_()
    for _ in range(2):
        out, codes, *rest = layer(x)
    (out.square().sum() + (rest[0].sum() if rest else 0)).backward()
    return {"out": out, "codes": codes, "gradient": x.grad}


@recorded
@pytest.mark.parametrize("kind", [ViT, SimpleViT], ids=lambda k: k.__name__)
def test_vit_pytorch(device, kind):
    torch.manual_seed(0)
    net = kind(image_size=8, patch_size=4, num_classes=3, dim=16, depth=2, heads=2, mlp_dim=16, **({} if kind is SimpleViT else {"dropout": 0.0})).to(device)
    x = torch.linspace(0, 9, 384, device=device).sin().reshape(2, 3, 8, 8)
    return trained(net.parameters(), lambda: torch.nn.functional.cross_entropy(net(x), torch.tensor([0, 2], device=device)))


@recorded
def test_rotary_embeddings_turn_queries(device):
    turn = RotaryEmbedding(dim=4).to(device)
    x = torch.linspace(-1, 1, 48, device=device).reshape(1, 2, 3, 8)
    axial = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=8).to(device).get_axial_freqs(2, 3)
    return {"turned": turn.rotate_queries_or_keys(x), "keys": turn.rotate_queries_with_cached_keys(x, x)[1], "axial": axial}


@recorded
def test_entmax_is_sparse_as_in_pytorch(device):
    x = torch.linspace(-2, 2, 12, device=device).reshape(3, 4).requires_grad_()
    found = [entmax.sparsemax(x, dim=-1), entmax.entmax15(x, dim=-1), entmax.entmax_bisect(x, alpha=1.3), entmax.normmax_bisect(x, alpha=2)]
    loss = entmax.Entmax15Loss()(x, torch.tensor([0, 3, 1], device=device))
    (loss + sum((f * torch.arange(4, device=device)).sum() for f in found)).backward()
    return {"found": found, "loss": loss, "gradient": x.grad}


@recorded
def test_a_conditional_random_field_learns_and_decodes(device):
    torch.manual_seed(0)
    field = CRF(4, batch_first=True).to(device)
    scores = torch.linspace(-3, 3, 40, device=device).cos().reshape(2, 5, 4)
    tags, mask = torch.tensor([[0, 1, 2, 3, 0], [1, 1, 0, 2, 0]], device=device), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], device=device).bool()
    return {"losses": trained(field.parameters(), lambda: -field(scores, tags, mask=mask)), "tags": field.decode(scores, mask=mask)}


@recorded
def test_einx_gives_pytorchs_elements(device):
    x = torch.arange(24.0, device=device).reshape(2, 3, 4)
    return [einx.rearrange("a b c -> c (a b)", x), einx.sum("a [b] c", x), einx.dot("a [b] c, [b] d -> a c d", x, torch.ones(3, 2, device=device)),
            einx.add("a b c, b", x, torch.arange(3.0, device=device)), einx.softmax("a b [c]", x), einx.get_at("a [b] c, i -> a i c", x, torch.tensor([0, 2], device=device))]  # fmt: skip


@recorded
def test_spiking_neurons_learn(device):
    torch.manual_seed(0)
    first, second = torch.nn.Linear(4, 8).to(device), torch.nn.Linear(8, 2).to(device)
    hidden, out = snntorch.Leaky(beta=0.9).to(device), snntorch.Leaky(beta=0.8).to(device)
    x = torch.linspace(-1, 4, 12, device=device).reshape(3, 4)

    def loss():
        states, spikes = [hidden.init_leaky(), out.init_leaky()], 0
        for _ in range(5):
            spike, states[0] = hidden(first(x), states[0])
            spike, states[1] = out(second(spike), states[1])
            spikes = spikes + spike
        return (spikes - torch.tensor([4.0, 1.0], device=device)).square().mean() + states[1].square().mean()

    return trained([*first.parameters(), *second.parameters()], loss)


@recorded
def test_points_move_on_manifolds():
    found = {}
    for name, manifold in (("ball", geoopt.PoincareBall()), ("sphere", geoopt.Sphere()), ("stiefel", geoopt.Stiefel())):
        start = torch.tensor([[0.3, 0.1], [-0.2, 0.4], [0.1, 0.1]])
        point = geoopt.ManifoldParameter(manifold.projx(start), manifold=manifold)
        optimizer = geoopt.optim.RiemannianAdam([point], lr=0.05)
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = (point - 0.4).square().sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        found[name] = losses
    return found
