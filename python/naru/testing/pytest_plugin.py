"""A pytest plugin with the fixture `virtual_devices`, for testing code that uses devices on machines without any.

    def test_my_model_on_four_gpus(virtual_devices):
        virtual_devices("cuda", count=4, memory="1GiB")
        ...

It is available wherever naru is installed. Devices are restored when the test ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture
def virtual_devices() -> Iterator[Callable[..., Any]]:
    """A function that defines virtual devices until the test ends; its arguments are those of `naru.virtual`."""
    import naru

    made = []

    def define(*args: Any, **options: Any) -> Any:
        made.append(naru.virtual(*args, **options))
        return made[-1]

    yield define
    for devices in reversed(made):
        devices.__exit__()
