"""torchmetrics: metrics over batches, collections, and copies of them."""
import copy
import pickle

import pytest
import torch
import torchmetrics as tm
from facts import recorded

pytestmark = pytest.mark.filterwarnings("ignore")
CLASSES = [
    "Accuracy", "AUROC", "AveragePrecision", "CalibrationError", "CohenKappa", "ConfusionMatrix", "F1Score", "HingeLoss", "JaccardIndex", "MatthewsCorrCoef",
    "Precision", "Recall", "Specificity", "StatScores",
]  # fmt: skip
NUMBERS = [
    "ConcordanceCorrCoef", "ExplainedVariance", "KendallRankCorrCoef", "LogCoshError", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredError",
    "NormalizedRootMeanSquaredError", "PearsonCorrCoef", "R2Score", "RelativeSquaredError", "SpearmanCorrCoef", "TweedieDevianceScore",
]  # fmt: skip


def draws(device):
    torch.manual_seed(0)
    scores, labels, x, y = torch.softmax(torch.randn(40, 5), 1), torch.randint(0, 5, (40,)), torch.randn(40), torch.randn(40)
    return [t.to(device) for t in (scores, labels, x, y)]


@recorded
@pytest.mark.parametrize("name", CLASSES)
def test_metrics_of_classes(device, name):
    scores, labels, _, _ = draws(device)
    metric = getattr(tm, name)(task="multiclass", num_classes=5).to(device)
    metric.update(scores[:20], labels[:20])
    metric.update(scores[20:], labels[20:])
    return metric.compute()


@recorded
@pytest.mark.parametrize("name", ["AUROC", "ROC", "PrecisionRecallCurve", "StatScores"])
def test_metrics_of_two_classes(device, name):
    scores, labels, _, _ = draws(device)
    metric = getattr(tm, name)(task="binary", **({} if name == "StatScores" else {"thresholds": 5})).to(device)
    metric.update(scores[:, 0] * 2, labels % 2)
    return metric.compute()


@recorded
@pytest.mark.parametrize("name", NUMBERS)
def test_metrics_of_numbers(device, name):
    _, _, x, y = draws(device)
    metric = getattr(tm, name)().to(device)
    metric.update(x[:20], y[:20])
    metric.update(x[20:], y[20:])
    return metric.compute()


@recorded
def test_collections_images_and_texts(device):
    from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure
    from torchmetrics.text import BLEUScore, WordErrorRate

    _, _, x, _ = draws(device)
    both = tm.MetricCollection({"mean": tm.MeanMetric(), "sum": tm.SumMetric(), "max": tm.MaxMetric()}).to(device)
    both.update(x)
    images = torch.rand(2, 2, 3, 32, 32).to(device)
    return {
        "collection": both.compute(), "ssim": [1.0, StructuralSimilarityIndexMeasure(data_range=1.0).to(device)(*images)],  # a mean of numbers up to 1
        "psnr": PeakSignalNoiseRatio(data_range=1.0).to(device)(*images),
        "bleu": BLEUScore()(["the cat is on the mat now"], [["there is a cat on the mat now", "the cat is on the mat"]]), "wer": WordErrorRate()(["a b c"], ["a b d"]),
    }  # fmt: skip


def test_metrics_are_copied_pickled_and_reset():
    scores, labels, _, _ = draws("cpu")
    metric = tm.Accuracy(task="multiclass", num_classes=5)
    metric.update(scores, labels)
    value = metric.compute()
    assert torch.equal(pickle.loads(pickle.dumps(metric)).compute(), value) and torch.equal(copy.deepcopy(metric).compute(), value)
    metric.reset()
    assert metric.update_count == 0
