"""skorch: networks as scikit-learn's estimators."""
import numpy as np
import pytest
import torch
from facts import recorded
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EpochScoring, LRScheduler

pytestmark = pytest.mark.filterwarnings("ignore")


class Net(torch.nn.Module):
    def __init__(self, hidden=8, out=2):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, out))

    def forward(self, x):
        return self.layers(x)


def data():
    x = np.sin(np.arange(160, dtype=np.float32)).reshape(40, 4)
    return x, (x.sum(1) > 0).astype(np.int64)


@recorded
def test_a_classifier_in_a_pipeline_learns_as_in_pytorch(device):
    x, y = data()
    callbacks = [LRScheduler(torch.optim.lr_scheduler.StepLR, step_size=2), EpochScoring("accuracy", name="seen", on_train=True)]
    net = NeuralNetClassifier(
        Net, criterion=torch.nn.CrossEntropyLoss, max_epochs=4, lr=0.1, batch_size=8, device=device, verbose=0, callbacks=callbacks, iterator_train__shuffle=True
    )
    model = make_pipeline(StandardScaler(), net).fit(x, y)
    found = model.predict_proba(x)[:3]
    return {"train": net.history[:, "train_loss"], "valid": net.history[:, "valid_loss"], "seen": net.history[:, "seen"], "probabilities": found.tolist()}


@recorded
def test_a_regressor_is_cross_validated_as_in_pytorch():
    x, _ = data()
    net = NeuralNetRegressor(Net, module__out=1, max_epochs=3, lr=0.05, optimizer=torch.optim.Adam, train_split=None, verbose=0)
    return cross_val_score(net, x, x.sum(1, keepdims=True), cv=2, scoring="neg_mean_squared_error").tolist()
