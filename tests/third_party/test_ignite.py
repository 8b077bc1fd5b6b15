"""ignite: engines, metrics and handlers."""
import pytest
import torch
from facts import recorded
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, EarlyStopping, ModelCheckpoint, PiecewiseLinear
from ignite.metrics import SSIM, Accuracy, ConfusionMatrix, Loss, Precision, Recall, RunningAverage

pytestmark = pytest.mark.filterwarnings("ignore")


@recorded
def test_a_trained_network_has_pytorchs_metrics(device, tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    x, y = torch.randn(24, 4), torch.arange(24) % 3
    model = model.to(device)
    batches = [(x[i : i + 6], y[i : i + 6]) for i in range(0, 24, 6)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = torch.nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(model, optimizer, criterion, device=device)
    metrics = {"accuracy": Accuracy(), "loss": Loss(criterion), "precision": Precision(average=True), "recall": Recall(), "confusion": ConfusionMatrix(3)}
    evaluator = create_supervised_evaluator(model, metrics, device=device)
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "running")
    trainer.add_event_handler(Events.ITERATION_STARTED, PiecewiseLinear(optimizer, "lr", [(0, 0.1), (8, 0.01)]))
    evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(3, lambda engine: -engine.state.metrics["loss"], trainer))
    seen = []

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        evaluator.run(batches)
        seen.append([evaluator.state.metrics[name] for name in metrics] + [engine.state.metrics["running"]])

    saver = ModelCheckpoint(str(tmp_path), "net", n_saved=1)
    trainer.add_event_handler(Events.COMPLETED, saver, {"model": model})
    trainer.run(batches, max_epochs=3)
    Checkpoint.load_objects({"model": model}, torch.load(saver.last_checkpoint))
    return seen


@recorded
def test_ssim_is_pytorchs(device):
    a = torch.linspace(0, 1, 3 * 400, device=device).reshape(1, 3, 20, 20)
    metric = SSIM(data_range=1.0, device=device)
    metric.update((a, a.sin()))
    return metric.compute()
