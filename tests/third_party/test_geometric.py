"""torch_geometric: graph networks trained, pooled, batched and sampled."""
import pytest
import torch
from facts import recorded
from torch_geometric import nn as gnn
from torch_geometric import utils
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddSelfLoops, NormalizeFeatures

pytestmark = pytest.mark.filterwarnings("ignore")
EDGES = [[0, 1, 1, 2, 2, 3, 3, 4, 4, 0, 0, 2], [1, 0, 2, 1, 3, 2, 4, 3, 0, 4, 2, 0]]


def graph(device="cpu"):
    x = torch.linspace(-2, 2, 20).sin().reshape(5, 4)
    return Data(x=x, edge_index=torch.tensor(EDGES), y=torch.tensor([0, 1, 1, 0, 1])).to(device)


LAYERS = {
    "gcn": lambda i, o: gnn.GCNConv(i, o), "sage": lambda i, o: gnn.SAGEConv(i, o), "gat": lambda i, o: gnn.GATConv(i, o, heads=2, concat=False),
    "gatv2": lambda i, o: gnn.GATv2Conv(i, o), "gin": lambda i, o: gnn.GINConv(torch.nn.Linear(i, o)), "transformer": lambda i, o: gnn.TransformerConv(i, o),
    "cheb": lambda i, o: gnn.ChebConv(i, o, K=2), "tag": lambda i, o: gnn.TAGConv(i, o), "arma": lambda i, o: gnn.ARMAConv(i, o),
    "graph": lambda i, o: gnn.GraphConv(i, o), "sg": lambda i, o: gnn.SGConv(i, o, K=2), "pna": lambda i, o: gnn.PNAConv(
        i, o, ["mean", "max", "std"], ["identity", "amplification"], torch.tensor([0, 0, 3, 2])),
}  # fmt: skip


@recorded
@pytest.mark.parametrize("name", LAYERS)
def test_networks_learn_with_pytorchs_losses(device, name):
    torch.manual_seed(0)
    layers = torch.nn.ModuleList([LAYERS[name](4, 6), LAYERS[name](6, 2)])
    data, layers = graph(device), layers.to(device)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        out = layers[1](layers[0](data.x, data.edge_index).tanh(), data.edge_index)
        loss = torch.nn.functional.cross_entropy(out, data.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@recorded
def test_batches_pool_to_pytorchs_numbers(device):
    torch.manual_seed(0)
    graphs = [Data(x=graph().x * (i + 1), edge_index=torch.tensor(EDGES), y=torch.tensor([i % 2])) for i in range(4)]
    found = []
    for batch in DataLoader(graphs, batch_size=2, shuffle=True):
        batch = batch.to(device)
        found += [pool(batch.x, batch.batch) for pool in (gnn.global_mean_pool, gnn.global_max_pool, gnn.global_add_pool)]
    batch = Batch.from_data_list(graphs)
    assert torch.equal(batch.get_example(1).x, graphs[1].x)
    return found


@recorded
def test_utilities_are_pytorchs():
    data = graph()
    edges, weights = utils.add_self_loops(data.edge_index, torch.ones(12), num_nodes=5)
    return {
        "laplacian": utils.get_laplacian(data.edge_index, normalization="sym")[1], "dense": utils.to_dense_adj(data.edge_index), "edges": edges, "weights": weights,
        "softmax": utils.softmax(torch.linspace(0, 1, 12), data.edge_index[0]), "degree": utils.degree(data.edge_index[0]), "loops": AddSelfLoops()(data).edge_index,
        "undirected": utils.to_undirected(torch.tensor([[0, 1], [1, 2]])), "rows": NormalizeFeatures()(data).x, "scatter": utils.scatter(data.x, data.y, 0, reduce="mean"),
        "subgraph": utils.subgraph([0, 1, 2], data.edge_index)[0], "places": AddLaplacianEigenvectorPE(2, attr_name=None)(graph()).x.abs(),
    }  # fmt: skip


@recorded
def test_graphs_of_several_kinds_learn():
    torch.manual_seed(0)
    data = HeteroData()
    data["user"].x, data["item"].x = torch.linspace(-1, 1, 12).reshape(3, 4), torch.linspace(0, 2, 12).cos().reshape(4, 3)
    data["user", "buys", "item"].edge_index = torch.tensor([[0, 1, 2, 2], [0, 1, 2, 3]])
    data["item", "of", "user"].edge_index = data["user", "buys", "item"].edge_index.flip(0)
    layer = gnn.HeteroConv({("user", "buys", "item"): gnn.SAGEConv((4, 3), 2), ("item", "of", "user"): gnn.SAGEConv((3, 4), 2)})
    found = layer(data.x_dict, data.edge_index_dict)
    sum(v.square().sum() for v in found.values()).backward()
    return {"found": found, "gradients": [p.grad.norm() for p in layer.parameters()]}


@recorded
def test_a_network_for_several_kinds_of_nodes_is_made_by_tracing(device):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = gnn.SAGEConv((4, 4), 6), gnn.SAGEConv((6, 6), 2)

        def forward(self, x, edge_index):
            return self.second(self.first(x, edge_index).relu(), edge_index)

    torch.manual_seed(0)
    kinds = [("a", "to", "b"), ("b", "to", "a"), ("a", "near", "a")]
    model = gnn.to_hetero(Net(), (["a", "b"], kinds)).to(device)
    for i, p in enumerate(model.parameters()):
        torch.nn.init.constant_(p, 0.1 * (i % 5) - 0.2)
    x = {"a": graph(device).x, "b": graph(device).x[:3] * 2}
    edges = dict(zip(kinds, ([[0, 1, 4], [2, 1, 0]], [[0, 1, 2], [1, 1, 3]], EDGES)))
    out = model(x, {kind: torch.tensor(e, device=device) for kind, e in edges.items()})
    out["a"].square().sum().backward()
    return {**out, "code": model.code, "gradients": [p.grad.sum().item() for p in model.parameters() if p.grad is not None]}
