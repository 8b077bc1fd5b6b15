"""torchinfo: summaries of modules."""
import torch
from facts import recorded
from torchinfo import summary


@recorded
def test_a_summary_has_pytorchs_shapes_and_counts(device):
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 30 * 30, 4)).to(device)
    columns = ("input_size", "output_size", "num_params", "mult_adds")
    text = str(summary(net, (2, 3, 32, 32), verbose=0, col_names=columns, device=device))
    recurrent = str(summary(torch.nn.LSTM(4, 5, batch_first=True), (2, 7, 4), verbose=0, device=device))
    return [text.splitlines(), recurrent.splitlines()]
