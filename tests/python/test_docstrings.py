"""Every public name says what it does; every function of the extension shows it, and what is shown is true."""
import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import naru
import pytest
from naru._documentation import example, examples

# What users import; modules of one name with an underscore before it are none of theirs, nor are the lists of cases of the tests.
MODULES = [importlib.import_module(name) for name in ["naru"] + [
    info.name for info in pkgutil.walk_packages(naru.__path__, "naru.")
    if not any(part.startswith("_") for part in info.name.split(".")[1:]) and not info.name.startswith("naru.testing.")]]  # fmt: skip
FUNCTIONS = (type(naru.add), type(naru.Tensor.add))


def public(module):
    for name in getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]:
        value = getattr(module, name, None)
        if not inspect.ismodule(value) and callable(value) and str(getattr(value, "__module__", "")).startswith("naru"):
            yield f"{module.__name__}.{name}", value


NAMES = {id(value): (name, value) for module in MODULES for name, value in public(module)}.values()


def of_the_extension():
    found = {value.__name__ for _, value in NAMES if isinstance(value, FUNCTIONS)}
    return found | {n for n, value in vars(naru._C.Tensor).items() if not n.startswith("_") and isinstance(value, FUNCTIONS)}


def test_every_public_name_says_what_it_does():
    without = [name for name, value in NAMES if not (inspect.getdoc(value) or "").strip()]
    assert without == []
    print(f"{len(NAMES)} public names in {len(MODULES)} modules")


def test_a_function_of_the_extension_shows_its_example():
    assert example("abs") in naru.abs.__doc__ and example("abs_") in naru.Tensor.abs_.__doc__ and example("fft_fft") in naru.fft.fft.__doc__
    assert "\n\n>>> " in naru.Tensor.view.__doc__


def test_no_example_is_of_a_function_that_is_not_there():
    assert sorted(set(examples()) - of_the_extension()) == []


def test_an_example_calls_the_function_it_is_of():
    for name, text in examples().items():
        called = re.sub(r"^(fft|linalg|special|signal)_", "", name).removesuffix("_with_indices")
        assert re.search(rf"\.{re.escape(called)}\(", text), f"{name}: {text}"


@pytest.mark.parametrize("letters", ["ab", "c", "de", "fgh", "ijkl", "mno", "pqr", "s", "tuvwxyz"])
def test_the_examples_are_true(letters):
    runner = doctest.DocTestRunner(verbose=False)
    for name, text in examples().items():
        if name[0] in letters:
            runner.run(doctest.DocTestParser().get_doctest(text, {"naru": naru}, name, "examples.doctest", 0))
    assert runner.summarize(verbose=False).failed == 0


def parameters_listed(text):
    """The names below Args: (none where there is no such part)."""
    part = re.search(r"^( *)Args:\n((?:\1 +.*\n?|\n)*)", text, re.MULTILINE)
    if not part:
        return []
    rows = re.findall(rf"^ {{{len(part[1]) + 4}}}([\w*, ]+):", part[2], re.MULTILINE)
    return [name.strip(" *") for row in rows for name in row.split(",")]


def test_the_parameters_that_a_docstring_lists_are_those_of_the_signature():
    wrong = {}
    for name, value in NAMES:
        listed = parameters_listed(inspect.getdoc(value) or "")
        if not listed:
            continue
        there = inspect.signature(value).parameters
        open_ended = any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in there.values())
        if unknown := [n for n in listed if n not in there and not open_ended]:
            wrong[name] = unknown
    assert wrong == {}


WITHOUT = Path(__file__).with_name("without_examples.txt")


def test_a_public_name_has_an_example_unless_it_is_one_of_those_that_have_none_yet():
    """A new name needs one, in its docstring or in naru/_documentation/examples.doctest. `python tests/python/test_docstrings.py` writes the list anew."""
    listed = WITHOUT.read_text().split()
    found = without_example()
    assert sorted(set(found) - set(listed)) == []
    assert sorted(set(listed) - set(found) - set(elsewhere(listed))) == []
    print(f"{len(NAMES) - len(found)} of {len(NAMES)} public names have an example")


def without_example():
    found = [name for name, value in NAMES if not isinstance(value, FUNCTIONS) and ">>>" not in (inspect.getdoc(value) or "")]
    return sorted(found + [f"naru._C.{name}" for name in of_the_extension() if not example(name)])


def elsewhere(names):
    """Those that this machine has by another way, or not at all (an installed torchvision)."""
    return [name for name in names if name not in {n for n, _ in NAMES} and not name.startswith("naru._C.")]


if __name__ == "__main__":
    WITHOUT.write_text("\n".join(without_example()) + "\n")
