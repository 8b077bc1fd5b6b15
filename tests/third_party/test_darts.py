"""darts: its networks that forecast series, trained by lightning."""
import logging

import numpy
import pandas
import pytest
import torch
from darts import TimeSeries
from darts.dataprocessing.transformers import Scaler
from darts.metrics import mae, mape, smape
from darts.models import BlockRNNModel, DLinearModel, NBEATSModel, NHiTSModel, NLinearModel, RNNModel
from darts.models import TCNModel, TFTModel, TiDEModel, TransformerModel, TSMixerModel
from darts.utils.likelihood_models.torch import GaussianLikelihood, QuantileRegression
from facts import recorded

pytestmark = pytest.mark.filterwarnings("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


def series(shift=0.0):
    days = numpy.arange(60)
    return TimeSeries.from_times_and_values(pandas.RangeIndex(60), numpy.sin(days * 0.4 + shift) + days * 0.01).astype(numpy.float32)


def options(tmp_path, device="cpu"):
    quiet = dict.fromkeys(("enable_progress_bar", "logger", "enable_model_summary", "enable_checkpointing"), False)
    trainer = {"accelerator": "gpu" if device == "cuda" else device, "devices": 1, **quiet}
    return {"n_epochs": 1, "batch_size": 8, "random_state": 1, "pl_trainer_kwargs": trainer, "work_dir": str(tmp_path), "dropout": 0.0}


MODELS = {
    "nbeats": lambda o: NBEATSModel(8, 3, num_stacks=2, num_blocks=1, num_layers=2, layer_widths=8, **o),
    "nhits": lambda o: NHiTSModel(8, 3, num_stacks=2, num_blocks=1, num_layers=1, layer_widths=8, **o),
    "tcn": lambda o: TCNModel(8, 3, kernel_size=3, num_filters=2, **o),
    "transformer": lambda o: TransformerModel(8, 3, d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=8, **o),
    "tft": lambda o: TFTModel(8, 3, hidden_size=4, lstm_layers=1, num_attention_heads=2, add_relative_index=True, **o),
    "tide": lambda o: TiDEModel(8, 3, hidden_size=8, temporal_width_past=2, temporal_width_future=2, **o),
    "tsmixer": lambda o: TSMixerModel(8, 3, hidden_size=4, ff_size=4, num_blocks=1, **o),
    "rnn": lambda o: RNNModel(8, model="LSTM", hidden_dim=6, training_length=10, **o),
    "block rnn": lambda o: BlockRNNModel(8, 3, model="GRU", hidden_dim=6, **o),
    "dlinear": lambda o: DLinearModel(8, 3, **{k: v for k, v in o.items() if k != "dropout"}),
    "nlinear": lambda o: NLinearModel(8, 3, **{k: v for k, v in o.items() if k != "dropout"}),
}  # fmt: skip


@recorded
@pytest.mark.parametrize("name", MODELS)
def test_networks_forecast(name, tmp_path):
    scaled = Scaler().fit_transform(series())
    model = MODELS[name](options(tmp_path))
    model.fit(scaled[:50], val_series=scaled[38:])
    found = model.predict(4)
    model.save(str(tmp_path / "model.pt"))
    again = type(model).load(str(tmp_path / "model.pt")).predict(4)
    assert name == "tft" or (again.values() == found.values()).all()  # one of tft that is loaded forecasts otherwise in PyTorch, too
    return {"forecast": found.values().ravel().tolist(), "errors": [float(error(scaled[50:54], found)) for error in (mae, mape, smape)]}


@recorded
def test_a_network_forecasts_on_a_device(device, tmp_path):
    model = NBEATSModel(8, 3, num_stacks=1, num_blocks=1, num_layers=1, layer_widths=8, optimizer_kwargs={"lr": 0.01}, **options(tmp_path, device))
    model.fit([series(), series(1.0)])
    history = model.historical_forecasts(series(2.0), start=50, forecast_horizon=2, retrain=False)
    return {"history": history.values().ravel().tolist(), "forecast": model.predict(5, series=series(2.0)).values().ravel().tolist()}


@recorded
@pytest.mark.parametrize("name", ["gaussian", "quantiles"])
def test_forecasts_are_drawn(name, tmp_path):
    likelihood = GaussianLikelihood() if name == "gaussian" else QuantileRegression([0.1, 0.5, 0.9])
    model = BlockRNNModel(8, 3, model="RNN", hidden_dim=4, likelihood=likelihood, **options(tmp_path))
    model.fit(series(), past_covariates=series(0.5))
    torch.manual_seed(2)
    drawn = model.predict(3, past_covariates=series(0.5), num_samples=5, random_state=4)
    parameters = model.predict(3, past_covariates=series(0.5), predict_likelihood_parameters=True)
    return {"drawn": drawn.all_values().ravel().tolist(), "parameters": parameters.values().tolist()}
