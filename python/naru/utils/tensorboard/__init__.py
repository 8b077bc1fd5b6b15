"""`torch.utils.tensorboard`: event files that TensorBoard shows. Nothing else need be installed to write them."""

from __future__ import annotations

import os
import socket
import time
from typing import Any, NoReturn

from ... import _C
from ..._missing import fail
from . import _records

Tensor = _C.Tensor

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """One event file in a folder.

    Args:
        log_dir: the folder, which is made.
        max_queue, flush_secs: how many events and how many seconds may wait to be written.
        filename_suffix: put behind the file's name.

    >>> import os, tempfile
    >>> from naru.utils.tensorboard import FileWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = FileWriter(folder, filename_suffix=".train")
    ...     writer.close()
    ...     [name.startswith("events.out.tfevents.") and name.endswith(".train") for name in os.listdir(folder)]
    [True]
    """

    def __init__(self, log_dir: str, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self._folder = os.fspath(log_dir)
        os.makedirs(self._folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{id(self) % 100000}{filename_suffix}"
        self._file = open(os.path.join(self._folder, name), "ab")
        self._max_queue, self._seconds = max_queue, flush_secs
        self._waiting, self._flushed = 0, time.time()
        self._file.write(_records.record(_records.event(time.time(), 0, file_version="brain.Event:2")))
        self._file.flush()

    def get_logdir(self) -> str:
        """The folder."""
        return self._folder

    def add_summary(self, summary: bytes, global_step: int | None = None, walltime: float | None = None) -> None:
        """Writes a summary."""
        now = time.time()
        self._file.write(_records.record(_records.event(now if walltime is None else walltime, int(global_step or 0), summary)))
        self._waiting += 1
        if self._waiting >= self._max_queue or now - self._flushed > self._seconds:
            self.flush()

    def add_graph(self, graph: bytes, walltime: float | None = None) -> None:
        """Writes a graph."""
        self._file.write(_records.record(_records.event(time.time() if walltime is None else walltime, 0, graph=graph)))
        self.flush()

    def flush(self) -> None:
        """Hands all that was written to the system."""
        self._file.flush()
        self._waiting, self._flushed = 0, time.time()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def reopen(self) -> None:
        """Opens another file."""
        self.__init__(self._folder, self._max_queue, self._seconds)  # type: ignore[misc]


def _number(value: Any) -> float:
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(f"add_scalar: wanted one number, got a tensor of shape {tuple(value.shape)}")
        return float(value.detach().float().item())
    return float(value)


def _tensor(value: Any) -> Tensor:
    return value.detach().cpu() if isinstance(value, Tensor) else _C.tensor(value)


def _limits() -> list[float]:
    positive, v = [], 1e-12
    while v < 1e20:
        positive.append(v)
        v *= 1.1
    return [-x for x in reversed(positive)] + [0.0] + positive


def _pixels(image: Any, form: str) -> Tensor:
    """An image in some order of dimensions as uint8 (height, width, channels)."""
    x = _tensor(image)
    form = form.upper()
    if len(form) != x.dim():
        raise ValueError(f"size of input tensor and input format are different. tensor shape: {tuple(x.shape)}, input_format: {form}")
    x = x.permute([form.index(c) for c in "NHWC" if c in form]) if "C" in form else x.permute([form.index(c) for c in "NHW" if c in form]).unsqueeze(-1)
    if x.dim() == 4:  # side by side, in a grid that is nearly square
        count, height, width, channels = x.shape
        columns = min(8, count)
        rows = -(-count // columns)
        grid = _C.zeros((rows * columns, height, width, channels), dtype=x.dtype)
        grid[:count] = x
        x = grid.reshape(rows, columns, height, width, channels).transpose(1, 2).reshape(rows * height, columns * width, channels)
    if x.dtype != _C.uint8:
        x = (x.float() * 255.0).clamp(0, 255).to(_C.uint8)
    if x.shape[-1] == 2:
        raise ValueError("add_image: wanted 1, 3 or 4 channels, got 2")
    return x


class SummaryWriter:
    """Writes numbers, histograms, images and texts, each under a tag and with a step, to an event file in `log_dir` (runs/<date>_<host> if
    None).

    Args:
        comment: put behind the folder's name where log_dir is None.
        purge_step: of no account.
        max_queue: how many events may wait to be written.
        flush_secs: and for how many seconds.
        filename_suffix: put behind the files' names.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with naru.utils.tensorboard.SummaryWriter(folder) as writer:
    ...         writer.add_scalar("loss", 0.5, 1)
    ...     [name.startswith("events.out.tfevents.") for name in os.listdir(folder)]
    [True]
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname() + comment)
        self.log_dir = os.fspath(log_dir)
        self._options = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = FileWriter(self.log_dir, *self._options)
        self.all_writers: dict[str, FileWriter] = {self.log_dir: self.file_writer}
        self._bounds: list[float] | None = None
        self._points: dict[str, str] = {}

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = FileWriter(self.log_dir, *self._options)
            self.all_writers = {self.log_dir: self.file_writer}
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None, new_style: bool = False,
        double_precision: bool = False,
    ) -> None:  # fmt: skip
        """A number: a Python one, or a tensor of one element.

        Args:
            tag: its name. scalar_value: the number. global_step: the step.
            walltime: seconds since 1970; now if None.
            new_style: of no account. double_precision: whether it is written with 64 bits.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with naru.utils.tensorboard.SummaryWriter(folder) as writer:
        ...         writer.add_scalar("loss", naru.tensor(0.5), global_step=1)
        ...     [b"loss" in file.read_bytes() for file in pathlib.Path(folder).iterdir()]
        [True]
        """
        self._get_file_writer().add_summary(_records.scalar(tag, _number(scalar_value)), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None, walltime: float | None = None) -> None:
        """Several numbers in one picture; each has a file of its own.

        Args:
            main_tag: the picture's name. tag_scalar_dict: numbers by name.
            global_step: the step. walltime: seconds since 1970; now if None.
        """
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + tag)
            writer = self.all_writers.setdefault(folder, None) or FileWriter(folder, *self._options)  # type: ignore[arg-type]
            self.all_writers[folder] = writer
            writer.add_summary(_records.scalar(main_tag, _number(value)), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow", walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """How often which values come. bins: a number of equal buckets; by default buckets whose sizes grow with the values.

        Args:
            tag: its name. values: numbers of any shape.
            global_step: the step. walltime: seconds since 1970; now if None.
            max_bins: of no account.
        """
        x = _tensor(values).flatten().double()
        if x.numel() == 0:
            raise ValueError("The input has no element.")
        low, high = x.min().item(), x.max().item()
        if isinstance(bins, int):
            width = (high - low or 1.0) / bins
            edges = [low + width * (i + 1) for i in range(bins)]
        else:
            if self._bounds is None:
                self._bounds = _limits()
            edges = [b for b in self._bounds if low <= b <= high]
            edges.append(next((b for b in self._bounds if b > high), high))
        counts = _C.bincount(_C.bucketize(x, _C.tensor(edges, dtype=_C.float64)).clamp(max=len(edges) - 1), minlength=len(edges)).double().tolist()
        stats = (low, high, float(x.numel()), x.sum().item(), (x * x).sum().item())
        self._get_file_writer().add_summary(_records.histogram(tag, stats, edges, counts), global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None, dataformats: str = "CHW") -> None:
        """An image: uint8, or floating point from 0 to 1. dataformats: the order of its dimensions.

        Args:
            tag: its name. img_tensor: a tensor or an array.
            global_step: the step. walltime: seconds since 1970; now if None.
        """
        x = _pixels(img_tensor, dataformats)
        summary = _records.image(tag, x.shape[0], x.shape[1], x.shape[2], _records.png(x))
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None, dataformats: str = "NCHW") -> None:
        """Images in a grid.

        Args:
            tag: its name. img_tensor: a tensor or an array. dataformats: the order of its dimensions.
            global_step: the step. walltime: seconds since 1970; now if None.
        """
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None) -> None:
        """A figure of Matplotlib's, or several.

        Args:
            tag: its name. global_step: the step. walltime: seconds since 1970; now if None.
            close: whether the figures are closed.
        """
        import numpy as np

        figures = figure if isinstance(figure, list) else [figure]
        images = []
        for one in figures:
            one.canvas.draw()
            images.append(_C.tensor(np.asarray(one.canvas.buffer_rgba()).copy()))
            if close:
                import matplotlib.pyplot as plt

                plt.close(one)
        self.add_image(tag, _C.stack(images), global_step, walltime, "NHWC")

    def add_text(self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None) -> None:
        """A text, in Markdown.

        Args:
            tag: its name. text_string: the text.
            global_step: the step. walltime: seconds since 1970; now if None.
        """
        self._get_file_writer().add_summary(_records.text(tag + "/text_summary", text_string), global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: Any = None, run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:  # fmt: skip
        """Settings of a run, as a text, and its results, as numbers, in a file of their own.

        Args:
            hparam_dict: settings by name. metric_dict: results by name. hparam_domain_discrete: of no account.
            run_name: the file's folder; the time if None. global_step: the step.
        """
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            writer.add_text("hparams", "| | |\n|-|-|\n" + "\n".join(f"| {k} | {v} |" for k, v in hparam_dict.items()), global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def _not_yet(self, name: str) -> NoReturn:
        raise NotImplementedError(f"SummaryWriter.{name} is in PyTorch 2.15 but not in naru yet; nearest: tensorboardX's SummaryWriter")

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True) -> None:
        """The calls of a module's forward, with the sizes of what they give, below the modules that make them. It runs once, in eval mode.

        Args:
            model: the module. input_to_model: what it is called with: a tensor, or a tuple of arguments.
            verbose: whether the calls are printed. use_strict_trace: of no account.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, naru.utils.tensorboard.SummaryWriter(folder) as writer:
        ...     writer.add_graph(naru.nn.Sequential(naru.nn.ReLU()), naru.ones(2), verbose=True)
        input/input = IO Node() (2,)
        Sequential/ReLU[0]/relu = aten::relu(input/input) (2,)
        output/output.1 = IO Node(Sequential/ReLU[0]/relu) (2,)
        """
        from ._graph import graph_of

        self._get_file_writer().add_graph(graph_of(model, input_to_model, verbose))

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: int | None = None, tag: str = "default",
        metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Points in space, to be looked at in a projection. They are in files beside the event file.

        Args:
            mat: the points, (N, D). metadata: what they are called: N strings, or N rows below a `metadata_header`.
            label_img: their pictures, (N, C, H, W). global_step: the step. tag: the name of them all.
        """
        from ._projector import write_points, write_settings

        points, images = _tensor(mat), None if label_img is None else _tensor(label_img)
        if points.dim() != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        if metadata is not None and len(metadata) != len(points):
            raise AssertionError("#labels should equal with #data points")
        if images is not None and len(images) != len(points):
            raise AssertionError("#images should equal with #data points")
        self._get_file_writer()
        step = global_step or 0
        self._points[f"{tag}:{step}"] = write_points(self.log_dir, tag, step, points, metadata, metadata_header, images)
        write_settings(self.log_dir, self._points)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: int | None = None, num_thresholds: int = 127, weights: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Precision and recall by thresholds.

        Args:
            tag: its name. labels: what is true, 0 or 1 each. predictions: how likely it was held, from 0 to 1.
            num_thresholds: how many thresholds, at most 127. weights: what each counts for; 1 if None.
            global_step: the step. walltime: seconds since 1970; now if None.
        """
        count = min(num_thresholds, 127)
        true, likely = _tensor(labels).flatten().double(), _tensor(predictions).flatten().double()
        weight = _C.ones_like(true) if weights is None else _tensor(weights).flatten().double()
        within = (likely >= 0) & (likely <= 1)
        places = (likely[within] * (count - 1)).floor().long()

        def above(each: Tensor) -> Tensor:
            return _C.bincount(places, each[within], minlength=count).flip(0).cumsum(0).flip(0)

        hits, misses = above(true * weight), above((1 - true) * weight)
        missed = hits[0] - hits
        rows = hits, misses, misses[0] - misses, missed, hits / (hits + misses).clamp(min=1e-7), hits / (hits + missed).clamp(min=1e-7)
        self._get_file_writer().add_summary(_records.curve(tag, [row.tolist() for row in rows]), global_step, walltime)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100, walltime: float | None = None
    ) -> None:
        """A sound of one channel: samples from -1 to 1.

        Args:
            tag: its name. snd_tensor: (L,) or (1, L). sample_rate: samples a second.
            global_step: the step. walltime: seconds since 1970; now if None.
        """
        samples = _tensor(snd_tensor).squeeze()
        if samples.dim() > 1:
            raise ValueError(f"add_audio: wanted one row of samples, got a tensor of shape {tuple(samples.shape)}")
        whole = (samples.reshape(-1).double().clamp(-1, 1) * 32767).to(_C.int16).tolist()
        self._get_file_writer().add_summary(_records.audio(tag, sample_rate, whole), global_step, walltime)

    def add_video(self, *args: Any, **kwargs: Any) -> None:
        """Not there yet: NotImplementedError."""
        self._not_yet("add_video")

    def add_mesh(self, *args: Any, **kwargs: Any) -> None:
        """Not there yet: NotImplementedError."""
        self._not_yet("add_mesh")

    def flush(self) -> None:
        """Hands all that was written to the system."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Closes the files; what is added afterwards goes to another one."""
        for writer in self.all_writers.values():
            writer.flush()
            writer.close()
        self.file_writer, self.all_writers = None, {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def __getattr__(name: str) -> Any:
    fail("utils.tensorboard", name)
    raise AttributeError(f"module 'torch.utils.tensorboard' has no attribute {name!r}")
