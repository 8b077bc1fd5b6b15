"""pytorch-forecasting: data sets of time series, and networks that predict what comes next."""
import lightning.pytorch as pl
import numpy
import pandas
import pytest
import torch
from facts import recorded
from pytorch_forecasting import DeepAR, NBeats, TemporalFusionTransformer, TimeSeriesDataSet
from pytorch_forecasting.metrics import QuantileLoss

pytestmark = pytest.mark.filterwarnings("ignore")
COUNT = 40


def data(**options):
    steps = numpy.arange(2 * COUNT)
    table = pandas.DataFrame({
        "t": list(range(COUNT)) * 2, "group": ["a"] * COUNT + ["b"] * COUNT, "y": numpy.sin(steps / 3).astype("float32") + 2, "x": numpy.cos(steps / 5).astype("float32"),
    })  # fmt: skip
    return TimeSeriesDataSet(table, time_idx="t", target="y", group_ids=["group"], max_encoder_length=8, max_prediction_length=3, time_varying_unknown_reals=["y"], **options)


@recorded
@pytest.mark.parametrize("name", ["transformer", "deepar", "nbeats"])
def test_networks_learn_and_predict_with_pytorchs_numbers(device, name):
    torch.manual_seed(0)
    more = {"static_categoricals": ["group"], "time_varying_known_reals": ["t", "x"]}
    series = data(**(more if name != "nbeats" else {"min_encoder_length": 8, "min_prediction_length": 3}))
    if name == "transformer":
        options = {"hidden_size": 8, "attention_head_size": 2, "dropout": 0.0, "hidden_continuous_size": 4, "loss": QuantileLoss()}
        net = TemporalFusionTransformer.from_dataset(series, learning_rate=0.01, optimizer="sgd", **options)
    elif name == "deepar":
        net = DeepAR.from_dataset(series, hidden_size=8, rnn_layers=1, dropout=0.0, learning_rate=0.01, optimizer="sgd")
    else:
        net = NBeats.from_dataset(series, widths=[8, 8], backcast_loss_ratio=0.1, learning_rate=0.01, optimizer="sgd")
    quiet = {"accelerator": "cpu" if device == "cpu" else "gpu", "devices": 1, "logger": False, "enable_progress_bar": False}
    trainer = pl.Trainer(max_epochs=2, enable_checkpointing=False, enable_model_summary=False, gradient_clip_val=0.1, **quiet)
    trainer.fit(net, series.to_dataloader(train=True, batch_size=16, num_workers=0, shuffle=False))
    loss = trainer.callback_metrics["train_loss_epoch"].item()
    if name == "deepar":
        return loss  # its predictions are drawn
    found = net.predict(series.to_dataloader(train=False, batch_size=8, num_workers=0), trainer_kwargs=quiet)
    return {"loss": loss, "found": found[:4]}
