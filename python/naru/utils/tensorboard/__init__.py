"""`torch.utils.tensorboard`: writes event files for TensorBoard, without further dependencies."""

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
    """Writes one event file in a folder.

    Args:
        log_dir: the folder, created if missing.
        max_queue, flush_secs: the number of events and of seconds before buffered events are written.
        filename_suffix: appended to the file name.

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
        """Writes buffered events to the file."""
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
    """An image with the given order of dimensions as uint8 (height, width, channels)."""
    x = _tensor(image)
    form = form.upper()
    if len(form) != x.dim():
        raise ValueError(f"size of input tensor and input format are different. tensor shape: {tuple(x.shape)}, input_format: {form}")
    x = x.permute([form.index(c) for c in "NHWC" if c in form]) if "C" in form else x.permute([form.index(c) for c in "NHW" if c in form]).unsqueeze(-1)
    if x.dim() == 4:  # tiled in a nearly square grid
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
    """Writes scalars, histograms, images and text, each with a tag and a step, to an event file in `log_dir` (runs/<date>_<host> if
    None).

    Args:
        comment: appended to the folder's name if log_dir is None.
        purge_step: ignored.
        max_queue: the number of events that may be buffered.
        flush_secs: the number of seconds that events may be buffered.
        filename_suffix: appended to the file names.

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
        """Adds a scalar: a Python number, or a tensor with one element.

        Args:
            tag: its name. scalar_value: the scalar. global_step: the step.
            walltime: seconds since 1970; now if None.
            new_style: ignored. double_precision: whether to write it with 64 bits.

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with naru.utils.tensorboard.SummaryWriter(folder) as writer:
        ...         writer.add_scalar("loss", naru.tensor(0.5), global_step=1)
        ...     [b"loss" in file.read_bytes() for file in pathlib.Path(folder).iterdir()]
        [True]
        """
        self._get_file_writer().add_summary(_records.scalar(tag, _number(scalar_value)), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None, walltime: float | None = None) -> None:
        """Adds several scalars in one chart; each has a separate file.

        Args:
            main_tag: the chart's name. tag_scalar_dict: scalars by name.
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
        """Adds a histogram. bins: a number of equal buckets; by default buckets whose sizes grow with the values.

        Args:
            tag: its name. values: a tensor of any shape.
            global_step: the step. walltime: seconds since 1970; now if None.
            max_bins: ignored.
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
        """Adds an image: uint8, or floating point from 0 to 1. dataformats: the order of its dimensions.

        Args:
            tag: its name. img_tensor: a tensor or an array.
            global_step: the step. walltime: seconds since 1970; now if None.
        """
        x = _pixels(img_tensor, dataformats)
        summary = _records.image(tag, x.shape[0], x.shape[1], x.shape[2], _records.png(x))
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None, dataformats: str = "NCHW") -> None:
        """Adds images in a grid.

        Args:
            tag: its name. img_tensor: a tensor or an array. dataformats: the order of its dimensions.
            global_step: the step. walltime: seconds since 1970; now if None.
        """
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None) -> None:
        """Adds a Matplotlib figure, or several.

        Args:
            tag: its name. global_step: the step. walltime: seconds since 1970; now if None.
            close: whether to close the figures.
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
        """Adds text, in Markdown.

        Args:
            tag: its name. text_string: the text.
            global_step: the step. walltime: seconds since 1970; now if None.
        """
        self._get_file_writer().add_summary(_records.text(tag + "/text_summary", text_string), global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: Any = None, run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:  # fmt: skip
        """Adds a run's hyperparameters, as text, and its results, as scalars, in a separate file.

        Args:
            hparam_dict: hyperparameters by name. metric_dict: results by name. hparam_domain_discrete: ignored.
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
        """Adds the graph of a module: the calls in its forward, with the sizes of their results, nested by module. The module runs once, in eval mode.

        Args:
            model: the module. input_to_model: its input: a tensor, or a tuple of arguments.
            verbose: whether to print the calls. use_strict_trace: ignored.

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
        """Adds points for the projector, in files next to the event file.

        Args:
            mat: the points, (N, D). metadata: their labels: N strings, or N rows below a `metadata_header`.
            label_img: their images, (N, C, H, W). global_step: the step. tag: the name of the set of points.
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
        """Adds precision and recall by threshold.

        Args:
            tag: its name. labels: the true labels, 0 or 1. predictions: the predicted probabilities, from 0 to 1.
            num_thresholds: the number of thresholds, at most 127. weights: the weight of each prediction; 1 if None.
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
        """Adds mono audio: samples from -1 to 1.

        Args:
            tag: its name. snd_tensor: (L,) or (1, L). sample_rate: samples per second.
            global_step: the step. walltime: seconds since 1970; now if None.
        """
        samples = _tensor(snd_tensor).squeeze()
        if samples.dim() > 1:
            raise ValueError(f"add_audio: wanted one row of samples, got a tensor of shape {tuple(samples.shape)}")
        whole = (samples.reshape(-1).double().clamp(-1, 1) * 32767).to(_C.int16).tolist()
        self._get_file_writer().add_summary(_records.audio(tag, sample_rate, whole), global_step, walltime)

    def add_video(self, *args: Any, **kwargs: Any) -> None:
        """Not implemented: NotImplementedError."""
        self._not_yet("add_video")

    def add_mesh(self, *args: Any, **kwargs: Any) -> None:
        """Not implemented: NotImplementedError."""
        self._not_yet("add_mesh")

    def flush(self) -> None:
        """Writes buffered events to the files."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Closes the files; later additions go to new ones."""
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
