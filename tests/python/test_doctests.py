"""The examples in the docstrings are true."""
import doctest
import importlib
import pkgutil

import naru
import pytest

MODULES = ["naru"] + [
    info.name
    for info in pkgutil.walk_packages(naru.__path__, "naru.")
    if not info.name.startswith("naru._C") and info.name != "naru.__main__"
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name):
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, extraglobs={"naru": naru})
    assert failed == 0
