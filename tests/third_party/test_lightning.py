"""PyTorch Lightning: the Trainer, its callbacks and checkpoints."""
import pytest
import pytorch_lightning as pl
import torch
from facts import recorded
from pytorch_lightning.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.filterwarnings("ignore")


class Classifier(pl.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))
        self.losses = []

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log_dict({"val_loss": F.cross_entropy(self.net(x), y), "right": (self.net(x).argmax(1) == y).float().mean()})

    def predict_step(self, batch, index):
        return self.net(batch[0]).argmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1)}


def loaders(workers=0):
    x = torch.randn(64, 8)
    data = TensorDataset(x, (x.sum(1) > 0).long())
    return DataLoader(data, batch_size=16, shuffle=True, num_workers=workers), DataLoader(data, batch_size=16, num_workers=workers)


def trainer(device, folder, **options):
    settings = {"max_epochs": 3, "enable_progress_bar": False, "enable_model_summary": True, "log_every_n_steps": 1, **options}
    return pl.Trainer(accelerator=device, devices=1, default_root_dir=folder, logger=CSVLogger(folder), **settings)


@recorded
def test_the_trainer_gives_pytorchs_losses(tmp_path, device):
    pl.seed_everything(0)
    train, valid = loaders()
    model = Classifier()
    kept = ModelCheckpoint(monitor="val_loss")
    it = trainer(device, tmp_path, callbacks=[kept, EarlyStopping("val_loss"), LearningRateMonitor()], gradient_clip_val=1.0)
    it.fit(model, train, valid)
    (result,) = it.validate(model, valid, verbose=False)
    again = Classifier.load_from_checkpoint(kept.best_model_path, weights_only=False)
    assert again.hparams.width == 16 and all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(again.parameters(), model.parameters()))
    return {"losses": model.losses, "result": result, "predicted": torch.cat(it.predict(model, valid))}


@recorded
def test_a_fit_that_is_resumed_goes_on_where_it_was(tmp_path, device):
    pl.seed_everything(0)
    train, _ = loaders()
    first = Classifier()
    it = trainer(device, tmp_path, max_epochs=1)
    it.fit(first, train)
    it.save_checkpoint(tmp_path / "half.ckpt")
    second = Classifier()
    trainer(device, tmp_path, max_epochs=3).fit(second, train, ckpt_path=tmp_path / "half.ckpt", weights_only=False)
    return [first.losses, second.losses]


def test_manual_optimisation_and_accumulation(tmp_path, device):
    class Manual(Classifier):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch, index):
            optimizer = self.optimizers()
            optimizer.zero_grad()
            loss = F.cross_entropy(self.net(batch[0]), batch[1])
            self.manual_backward(loss)
            optimizer.step()
            self.losses.append(loss.item())

    train, _ = loaders()
    model = Manual()
    trainer(device, tmp_path).fit(model, train)
    assert len(model.losses) == 12 and model.losses[-1] < model.losses[0] * 1.5
    trainer(device, tmp_path, accumulate_grad_batches=2, precision="bf16-mixed").fit(Classifier(), train)


def test_worker_processes_serve_the_trainer(tmp_path):
    train, valid = loaders(workers=2)
    model = Classifier()
    trainer("cpu", tmp_path, max_epochs=1).fit(model, train, valid)
    assert len(model.losses) == 4


def test_the_strategy_of_several_processes(tmp_path):
    trainer("cpu", tmp_path, strategy="ddp").fit(Classifier(), loaders()[0])

