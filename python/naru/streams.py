"""Streams and events of every kind of device, under PyTorch's names.

A stream is an in-order queue of a device's work; work on different streams may overlap. Storages record pending reads and writes, so a
stream that uses another stream's result waits for it automatically: correct values never require `wait_stream` or `record_stream`,
which only impose additional ordering.
"""

from __future__ import annotations

from typing import Any

from . import _C
from ._device.kind import current_kind, to_device

_DEFAULT, _CURRENT = 0, 1


def _best(device: Any) -> _C.device:
    if device is None:
        kind = current_kind()
        if kind is None:
            raise RuntimeError("torch.Stream: there is no device beside the CPU. `naru doctor` gives the reason for each kind.")
        return to_device(kind)
    if isinstance(device, int):
        return to_device(_best(None).type, device)
    device = _C.device(device)
    return device if device.type == "cpu" else to_device(device.type, device)


class Event(_C._Event):
    """A point in the work of the stream passed to `record`, or of the current one of `device`. With `enable_timing`, the time between
    two events can be measured. `blocking` is ignored; `interprocess` raises NotImplementedError.

    >>> with naru.virtual("cuda"):
    ...     start, end = naru.Event("cuda", enable_timing=True), naru.Event("cuda", enable_timing=True)
    ...     start.record(); x = naru.ones(8, device="cuda") * 2; end.record()
    ...     end.synchronize(); start.elapsed_time(end) >= 0
    True
    """

    _kind: str | None = None

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        if interprocess:
            raise NotImplementedError("Event(interprocess=True): events are not shared between processes; use queues or pipes")
        super().__init__(enable_timing)
        self._asked = device

    @property
    def device(self) -> _C.device | None:
        """The device of the stream that the event was recorded on."""
        text = self._device()
        return None if text is None else _C.device(text)

    def record(self, stream: Stream | None = None) -> None:
        """Records the event after all work submitted to `stream` (the current one) so far."""
        self._record(stream if stream is not None else current_stream(self._kind, self._asked))

    def wait(self, stream: Stream | None = None) -> None:
        """Makes later work on `stream` (the current one) wait for the event."""
        (stream if stream is not None else current_stream(self._kind, self._asked)).wait_event(self)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to `end_event`; both need `enable_timing=True`, and must be recorded and complete."""
        return self._elapsed_time(end_event)

    def __repr__(self) -> str:
        name = f"torch.{self._kind}.Event" if self._kind else "torch.Event"
        return f"<{name} {id(self):#x}>" if self._recorded() else f"<{name} uninitialized>"


class Stream(_C._Stream):
    """`Stream(device)`: an in-order queue of the work of `device` (the current one), separate from the default stream. As a context manager it
    becomes the current stream, which receives the thread's work for its device. `priority`: 0, or -1 for high.

    >>> import naru as torch
    >>> with naru.virtual("cuda", count=1):
    ...     with torch.Stream(device="cuda"):
    ...         x = torch.ones(2, device="cuda")
    ...     (x + x).tolist()
    [2.0, 2.0]
    """

    _kind: str | None = None

    def __init__(self, device: Any = None, *, priority: int = 0, _which: int = -1) -> None:
        super().__init__(str(self._place(device)), priority, _which)
        self._contexts: list[StreamContext] = []

    def _place(self, device: Any) -> _C.device:
        return _best(device) if self._kind is None else to_device(self._kind, device)

    @property
    def device(self) -> _C.device:
        """The stream's device."""
        return _C.device(self._device)

    @property
    def device_index(self) -> int:
        """The index of the stream's device."""
        index = self.device.index
        return 0 if index is None else index

    @property
    def device_type(self) -> str:
        """The kind of the stream's device."""
        return self.device.type

    @property
    def native_handle(self) -> int:
        """The driver's handle of the stream, for libraries that submit their own work to it, in order with naru's; on devices that other libraries
        cannot use, the stream's number (0 for the default one)."""
        return self._handle or self.stream_id

    cuda_stream = sycl_queue = native_handle

    @classmethod
    def priority_range(cls) -> tuple[int, int]:
        """(lowest, highest) priority; devices without priorities treat these as equal."""
        return 0, -1

    def is_capturing(self) -> bool:
        """Whether the thread is capturing the work of the stream's device (see `naru.Graph`)."""
        return _C._is_capturing(self._device)

    def wait_event(self, event: Event) -> None:
        """Makes later work on this stream wait for the event."""
        self._wait_event(event)

    def wait_stream(self, stream: Stream) -> None:
        """Makes later work on this stream wait for all work submitted to `stream` so far."""
        self._wait_stream(stream)

    def record_event(self, event: Event | None = None) -> Event:
        """Records `event` (a new one) after all work so far."""
        if event is None:
            event = event_class(self._kind)()
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        self._contexts.append(StreamContext(self))
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._contexts.pop().__exit__(*exc)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._same(other)

    def __hash__(self) -> int:
        return hash((self._device, self.stream_id))

    def __repr__(self) -> str:
        if self._kind:
            return f"<torch.{self._kind}.Stream device={self._device} {self._kind}_stream={self.stream_id:#x}>"
        return f"torch.Stream device_type={self.device_type}, device_index={self.device_index}, stream_id={self.stream_id}"


class StreamContext:
    """`with torch.cuda.stream(s):` makes the `stream` s the current one, and its device the current one; None does nothing.

    >>> with naru.virtual("cuda"):
    ...     s = naru.Stream("cuda")
    ...     with naru.cuda.StreamContext(s):
    ...         naru.cuda.current_stream() == s
    True
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        s = self.stream
        if s is None or s.device_type == "cpu":
            return
        self._index = _C.current_device(s.device_type)
        self._before = Stream(s.device, _which=_CURRENT)
        _C.set_device(s.device)
        s._make_current()

    def __exit__(self, *exc: object) -> None:
        s = self.stream
        if s is None or s.device_type == "cpu":
            return
        self._before._make_current()
        _C.set_device(_C.device(s.device_type, self._index))


_streams: dict[str | None, type[Stream]] = {None: Stream}
_events: dict[str | None, type[Event]] = {None: Event}


def stream_class(kind: str | None) -> type[Stream]:
    """`torch.<kind>.Stream`; None: `torch.Stream`.

    >>> naru.streams.stream_class("cuda") is naru.cuda.Stream
    True
    """
    kind = kind and _C.device(kind).type
    if kind not in _streams:
        def init(self: Stream, device: Any = None, priority: int = 0, *, _which: int = -1, **_: Any) -> None:
            Stream.__init__(self, device, priority=priority, _which=_which)

        body = {"_kind": kind, "__init__": init, "__module__": f"torch.{kind}", "__doc__": Stream.__doc__}
        _streams[kind] = type("Stream", (Stream,), body)
    return _streams[kind]


def event_class(kind: str | None) -> type[Event]:
    """`torch.<kind>.Event`; None: `torch.Event`.

    >>> naru.streams.event_class("cuda") is naru.cuda.Event
    True
    """
    kind = kind and _C.device(kind).type
    if kind not in _events:
        def init(
            self: Event, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
        ) -> None:
            Event.__init__(self, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

        body = {"_kind": kind, "__init__": init, "__module__": f"torch.{kind}", "__doc__": Event.__doc__}
        _events[kind] = type("Event", (Event,), body)
    return _events[kind]


def current_stream(kind: str | None, device: Any = None) -> Stream:
    """The stream that receives the thread's work for the `device` of a `kind`.

    >>> with naru.virtual("cuda"):
    ...     naru.streams.current_stream("cuda").device
    device(type='cuda', index=0)
    """
    return stream_class(kind)(device, _which=_CURRENT)


def default_stream(kind: str | None, device: Any = None) -> Stream:
    """The default stream of a `device` of a `kind`.

    >>> with naru.virtual("cuda"):
    ...     naru.streams.default_stream("cuda").stream_id
    0
    """
    return stream_class(kind)(device, _which=_DEFAULT)


def set_stream(stream: Stream | None) -> None:
    """Makes a `stream` the current one of its device, and its device the current one; None does nothing.

    >>> with naru.virtual("cuda"):
    ...     before, s = naru.cuda.current_stream(), naru.Stream("cuda")
    ...     naru.cuda.set_stream(s); naru.cuda.current_stream() == s
    ...     naru.cuda.set_stream(before)
    True
    """
    if stream is None:
        return
    if stream.device_type != "cpu":
        _C.set_device(stream.device)
        stream._make_current()


def of_kind(kind: str) -> tuple[Any, ...]:
    """(Stream, Event, current_stream, default_stream) for the namespace of a `kind`, such as `torch.cuda`.

    >>> naru.streams.of_kind("cuda")[0] is naru.cuda.Stream
    True
    """

    def current(device: Any = None) -> Stream:
        return current_stream(kind, device)

    def default(device: Any = None) -> Stream:
        return default_stream(kind, device)

    current.__name__, current.__doc__ = "current_stream", current_stream.__doc__
    default.__name__, default.__doc__ = "default_stream", default_stream.__doc__
    return stream_class(kind), event_class(kind), current, default


def stream(stream: Stream | None) -> StreamContext:
    """A context in which `stream` is the current one, and its device the current one.

    >>> with naru.virtual("cuda"):
    ...     s = naru.Stream("cuda")
    ...     with naru.cuda.stream(s):
    ...         naru.cuda.current_stream() == s
    True
    """
    return StreamContext(stream)
