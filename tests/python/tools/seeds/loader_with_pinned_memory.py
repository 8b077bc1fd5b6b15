"""A loader with worker processes yields pinned batches, which are copied to the device without waiting. Needs cuda."""
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    inputs, targets = torch.randn(200, 20), torch.arange(200)
    dataset = TensorDataset(inputs, targets)
    loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
    device = "cuda"
    seen = 0
    for x, y in loader:
        assert str(x.device) == str(y.device) == "cpu"
        pinned = x.is_pinned() and y.is_pinned()
        x = x.to(device, non_blocking=True)
        y = y.to(device, non_blocking=True)
        assert str(x.device) == str(y.device) == "cuda:0" and pinned
        # Used at once, without an explicit wait: the values are correct.
        assert (x.cpu() == inputs[seen : seen + len(x)]).all() and (y.cpu() == targets[seen : seen + len(y)]).all()
        seen += len(x)
    assert seen == 200


if __name__ == "__main__":
    main()
