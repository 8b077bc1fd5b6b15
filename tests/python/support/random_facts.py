"""PyTorch 2.15's random numbers: `python tests/python/support/random_facts.py`, run with PyTorch's interpreter, writes random_facts.json.

The same code draws naru's numbers, with set_algorithm("pytorch"), which test_pytorch_random.py compares.
"""
import json
import sys
from pathlib import Path

FACTS = Path(__file__).with_name("random_facts.json")

CASES = """torch.rand(3)|torch.rand(2, 2, dtype=torch.float64)|torch.rand(3, dtype=torch.float16)|torch.rand(3, dtype=torch.bfloat16)|torch.rand(2, dtype=torch.complex64)|E(5).uniform_(-.3, .7)
torch.randn(3)|torch.randn(15)|torch.randn(16)|torch.randn(37)|torch.randn(3, 11)|torch.randn(18, dtype=torch.float64)|torch.randn(5, dtype=torch.float64)|torch.randn(20, dtype=torch.float16)|torch.randn(17, dtype=torch.bfloat16)
torch.randn(9, dtype=torch.complex64)|E(17).normal_(.3, .7)|E(5).normal_(.3, .7)|E(5, torch.float64).normal_(.3, .7)|E(19, torch.float64).normal_(.3, .7)|E(5, torch.float64).uniform_(-.577, .577)|torch.normal(torch.zeros(17), torch.full((17,), 2.))|torch.normal(1., 2., (4,))|torch.normal(torch.arange(4.), 2.)
torch.randint(10, (4,))|torch.randint(-5, 2**28 - 6, (4,))|torch.randint(0, 2**28, (4,))|torch.randint(0, 2**40, (3,))|torch.randint(0, 5, (4,), dtype=torch.int8)|torch.randint_like(E(3), 7)|torch.randperm(12)|torch.randperm(7, dtype=torch.int32)|torch.randperm(1)
E(3, torch.int64).random_()|E(3, torch.int32).random_()|E(3, torch.uint8).random_()|E(3, torch.bool).random_()|E(3).random_()|E(3, torch.float64).random_()|E(3, torch.float16).random_()|E(3, torch.int64).random_(7)|E(3, torch.int64).random_(-5, None)|E(3, torch.int64).random_(-2**63, None)
E(6).bernoulli_(.3)|torch.bernoulli(torch.full((6,), .3))|torch.bernoulli(torch.full((6,), .3, dtype=torch.float64))|E(6, torch.int64).bernoulli_(torch.full((6,), .3))|E(5).exponential_()|E(5).exponential_(3.3)|E(4).cauchy_(1., 2.)|E(4).log_normal_(1., .5)|E(5).geometric_(.3)
torch.multinomial(W, 8, True)|torch.multinomial(W, 3)|torch.multinomial(W, 1)|torch.multinomial(torch.stack([W, W.flip(0)]), 3)|torch.multinomial(torch.stack([W, W.flip(0)]).double(), 5, True)|torch.poisson(torch.tensor([.5, 3., 30., 400.]))|torch.binomial(torch.tensor([10., 100., 5., 300.]), torch.tensor([.3, .5, .9, .2]))
gamma(torch.tensor([.3, 1., 5., 60.], dtype=torch.float64))|F.dropout(torch.ones(9), .3)|F.dropout(torch.ones(5, dtype=torch.float64), .7)|F.dropout1d(torch.ones(2, 3, 2), .5)
init.xavier_uniform_(E(3, 4))|init.xavier_normal_(E(4, 5))|init.kaiming_uniform_(E(3, 4))|init.kaiming_normal_(E(3, 4))|init.trunc_normal_(E(20), 0., 1., -1., 1.)|init.sparse_(E(4, 3), .5)
nn.Linear(3, 2).weight|nn.Linear(3, 2).bias|nn.Conv2d(2, 3, 2).weight|nn.Embedding(4, 5).weight|nn.LSTM(2, 3).weight_ih_l0|nn.GRU(2, 3, bidirectional=True).weight_hh_l0_reverse|nn.Bilinear(2, 3, 2).weight
torch.utils.data.random_split(list(range(7)), [4, 3])[0].indices|list(torch.utils.data.RandomSampler(range(6)))|list(torch.utils.data.WeightedRandomSampler([.1, .5, .4], 5))|list(torch.utils.data.SubsetRandomSampler([3, 4, 5, 6]))
[b.tolist() for _ in range(2) for b in torch.utils.data.DataLoader(range(7), 3, shuffle=True)]|[b[0].tolist() for _ in range(2) for b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(7)), 3, shuffle=True)]
[b.tolist() for _ in range(2) for b in torch.utils.data.DataLoader(range(6), 3, shuffle=True, generator=torch.Generator().manual_seed(3))]|torch.rand(3, generator=torch.Generator().manual_seed(5))|(torch.randn(3), torch.randn(2, dtype=torch.float64), torch.randn(16), torch.randn(1))[1:]|(torch.manual_seed(2**40 + 3), torch.rand(2))[1]
(torch.rand(5), torch.randn(1), torch.get_rng_state().long().mul(torch.arange(5056)).sum())[2]|D.Normal(0., 1.).sample((3,))|D.Categorical(W).sample((5,))|D.Gamma(2., torch.ones(3)).sample()|D.Exponential(2.).sample((3,))|D.Laplace(0., 1.).sample((3,))
F.gumbel_softmax(torch.zeros(2, 3), tau=.7)|D.VonMises(0., 2.).sample((5,))|torch.round(D.Wishart(torch.tensor(4.), torch.eye(2)).sample((2,)), decimals=4)|torch.round(F.rrelu(torch.arange(-3., 3.), training=True), decimals=4)|F.alpha_dropout(torch.ones(5), training=True)|torch.round(D.Dirichlet(W).sample(), decimals=4)
E(6, 5).t().normal_()|E(4, 6)[:, ::2].normal_()|E(5, 2).t().uniform_()|torch.rand_like(E(3, 2).t())|torch.randn_like(torch.ones(2, 3, 2, 2).contiguous(memory_format=torch.channels_last))|torch.randint_like(E(3, 2).t(), 9)|F.dropout(torch.ones(3, 4).t(), .3)|E(4, 3).t().bernoulli_(.4)""".replace("\n", "|").split("|")


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "detach"):
        value = value.detach()
        if value.is_complex():
            return plain([value.real.tolist(), value.imag.tolist()])
        return value.double().tolist() if value.is_floating_point() else value.tolist()
    return value


def facts(torch, F, nn, D):
    def E(*sizes):
        dtype = sizes[-1] if not isinstance(sizes[-1], int) else torch.float32
        return torch.empty(*[s for s in sizes if isinstance(s, int)], dtype=dtype)

    gamma = getattr(torch, "_standard_gamma", None) or torch._C._standard_gamma
    names = {"gamma": gamma, "torch": torch, "F": F, "nn": nn, "init": nn.init, "D": D, "E": E, "W": torch.tensor([.1, .2, .3, .4])}
    found = {}
    for text in CASES:
        torch.manual_seed(7)
        found[text] = plain(eval(text, names))
    return found


if __name__ == "__main__":
    import torch
    import torch.distributions as D
    import torch.nn.functional as F

    assert torch.__version__.startswith("2.15"), sys.version
    FACTS.write_text(json.dumps(facts(torch, F, torch.nn, D), indent=0) + "\n")
