"""Every public name has a docstring that describes it and its parameters and contains a correct example."""
import ast
import contextlib
import doctest
import enum
import functools
import importlib
import inspect
import io
import pkgutil
import re
import traceback
import warnings
from collections import defaultdict

import naru
import pytest
from naru._documentation import _DIMENSIONS, _blocks, _glossary, example, examples, raised, signatures_in, tables

ALL = {"naru": naru} | {
    info.name: importlib.import_module(info.name)
    for info in pkgutil.walk_packages(naru.__path__, "naru.")
    if not info.name.startswith("naru._C") and info.name != "naru.__main__"
}
# What users import: no module with an underscore in its path, and none of the tests' lists of cases.
MODULES = [m for name, m in ALL.items() if not any(p.startswith("_") for p in name.split(".")[1:]) and not name.startswith("naru.testing.")]
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


def attributes():
    """Tensor's public attributes that are no functions of the extension: those with a getter, and methods in Python."""
    return {
        n: value for n, value in vars(naru.Tensor).items()
        if not n.startswith("_") and (inspect.isgetsetdescriptor(value) or inspect.isfunction(value))
    }  # fmt: skip


@functools.cache
def texts_of(name):
    """What the docstrings of a function of the extension, and of the method, say before the example."""
    found = (getattr(naru._C, name, None), vars(naru.Tensor).get(name))
    return [value.__doc__.partition("\n>>>")[0] for value in found if isinstance(value, FUNCTIONS)]


def signatures(name):
    """The lines that begin them, one for each set of parameters."""
    return [line for text in texts_of(name) for line in text.splitlines() if line.startswith(f"{name}(")]


def parameters_of(name):
    """The names in the signatures of a function of the extension: the last word of what stands before a comma or an equals sign."""
    rows = [line[len(name) + 1 : line.rindex(")", 0, (line.rfind(") ->") + 1) or None)] for line in signatures(name)]
    parts = [part.partition(" = ")[0].split() for row in rows for part in re.sub(r"\(.*?\)|\[.*?\]", "", row).split(",")]
    return {part[-1].strip("*") for part in parts if part} - {""}


def text_of(value):
    """A docstring; of a class that of its construction with it."""
    own = inspect.getdoc(value) or ""
    return f"{own}\n{inspect.getdoc(value.__init__) or ''}" if inspect.isclass(value) else own


def test_every_public_name_says_what_it_does():
    without = [name for name, value in NAMES if not (inspect.getdoc(value) or "").strip()]
    assert without == []
    print(f"{len(NAMES)} public names in {len(MODULES)} modules")


def test_a_function_of_the_extension_shows_its_example():
    assert example("abs") in naru.abs.__doc__ and example("abs_") in naru.Tensor.abs_.__doc__ and example("fft_fft") in naru.fft.fft.__doc__
    assert "\n\n>>> " in naru.Tensor.view.__doc__


def test_no_example_is_of_a_function_that_is_not_there():
    assert sorted(set(examples()) - of_the_extension()) == []


def test_what_is_said_of_a_parameter_is_of_one_that_is_there():
    asked = {(p, name) for name, (listed, _) in _blocks("examples").items() for p in listed}
    unknown = [(p, name) for p, name in asked if p not in parameters_of(name) | parameters_of(name + "_") or p not in {w.split()[0] for w in _glossary()}]
    assert unknown == []
    used = {f"{p} {name}" for p, name in asked} | {p for p, _ in asked}
    assert sorted(words for words in _glossary() if words not in used) == []


def test_an_example_calls_the_function_it_is_of():
    for name, text in ((name, text) for table in tables() for name, text in examples(table).items()):
        called = re.sub(r"^(fft|linalg|special|signal)_", "", name).removesuffix("_with_indices")
        assert re.search(rf"[.@]{re.escape(called)}\b", text), f"{name}: {text}"


def docstrings():
    """(place, text) of all docstrings with an example, those of private names and methods too, each once, by package."""
    found, seen = defaultdict(list), set()

    def look(value, name):
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        inner = value.fget if isinstance(value, property) else value
        if inspect.isgetsetdescriptor(inner):
            add(name, inner.__doc__)
        if id(inner) in seen or not (inspect.isroutine(inner) or inspect.isclass(inner)) or not str(getattr(inner, "__module__", "")).startswith("naru"):
            return
        seen.add(id(inner))
        if inner.__module__ in ALL and "<locals>" not in getattr(inner, "__qualname__", "<locals>"):
            name = f"{inner.__module__}.{inner.__qualname__}"
        if not isinstance(inner, FUNCTIONS):
            add(name, inner.__doc__)
            for attribute, member in list(vars(inner).items()) if inspect.isclass(inner) else ():
                look(member, f"{name}.{attribute}")

    def add(name, text):
        if isinstance(text, str) and ">>>" in text:
            found[".".join(name.split(".")[:2])].append((name, text))

    for place, module in ALL.items():
        add(place, module.__doc__)
        for name, value in list(vars(module).items()):
            look(value, f"{place}.{name}")
    for place, value in NAMES:  # including names that a module provides by __getattr__
        look(value, place)
    return found


SHOWN = docstrings()
PARSER, CHECKER = doctest.DocTestParser(), doctest.OutputChecker()


def untrue(name, text, names):
    """What an example's lines print otherwise than they say; as doctest has it, without its debugger and its patches for each text."""
    out = io.StringIO()
    for at in PARSER.get_examples(text):
        flags = sum(flag for flag, on in at.options.items() if on)
        if flags & doctest.SKIP:
            continue
        raised = None
        out.seek(0)
        out.truncate()
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecation warnings
            try:
                exec(compile(at.source, f"<{name}>", "single", dont_inherit=True), names)
            except Exception as error:
                raised = "".join(traceback.format_exception_only(error))
        got, wanted = (out.getvalue(), at.want) if raised is None else (raised, at.exc_msg or "")
        if raised is not None and flags & doctest.IGNORE_EXCEPTION_DETAIL:
            got, wanted = got.partition(":")[0], wanted.partition(":")[0]
        if not CHECKER.check_output(wanted, got, flags):
            yield f"{name}: {at.source}    shows {wanted!r}, is {got!r}"


def of_module(name):
    """The names that an example sees: those of its module, as doctest has it, and naru."""
    while name not in ALL:
        name = name.rpartition(".")[0]
    return dict(vars(ALL[name]), naru=naru, __name__="__main__")


@pytest.mark.parametrize("package", SHOWN)
def test_the_examples_of_docstrings_are_true(package):
    assert [line for name, text in SHOWN[package] for line in untrue(name, text, of_module(name))] == []


@pytest.mark.parametrize("letters", ["ab", "c", "de", "fgh", "ijkl", "mno", "pqr", "s", "tuvwxyz"])
def test_the_examples_of_the_extension_are_true(letters):
    chosen = [(name, text) for name, text in examples().items() if name[0] in letters]
    assert [line for name, text in chosen for line in untrue(name, text, {"naru": naru, "__name__": "__main__"})] == []


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
        if not listed or isinstance(value, FUNCTIONS):
            continue
        there = inspect.signature(value).parameters
        open_ended = any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in there.values())
        if unknown := [n for n in listed if n not in there and not open_ended]:
            wrong[name] = unknown
    assert wrong == {}


def test_a_public_name_shows_an_example_and_names_its_parameters():
    """A name needs both: an example in its docstring or in a table of naru/_documentation, and all its parameters in the docstring's text."""
    assert lacking() == []


def test_a_function_says_what_it_returns():
    silent = [name for name, value in NAMES if not inspect.isclass(value) and not isinstance(value, FUNCTIONS) and not re.search(r"[Rr]eturn|gives?\b|->", text_of(value))
              and inspect.signature(value).return_annotation is inspect.Signature.empty]  # fmt: skip
    assert silent == []
    assert [name for name in of_the_extension() if not all(re.search(r"\) -> \S", line) for line in signatures(name))] == []


def calls_shown(name):
    """(the names that an example's line sees, its call of a function of the extension), in order."""
    names, base = {"naru": naru}, re.sub(r"^(fft|linalg|special|signal)_", "", name)
    for at in PARSER.get_examples(examples().get(name) or example(name)):
        for node in ast.walk(ast.parse(at.source)):
            if isinstance(node, ast.Call) and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in (name, base):
                yield dict(names), node
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
            exec(compile(at.source, "<example>", "exec"), names)


def value_of(node, names):
    return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<example>", "eval"), names)


def changed(names, node, positional, row):
    """The call with a tensor on another device, or a dimension that is not there; False where it has none to change."""
    if row.startswith("IndexError"):
        for keyword in node.keywords:
            if keyword.arg in _DIMENSIONS:
                keyword.value = ast.Constant(99)
                return True
        at = [i for i, p in enumerate(positional) if p in _DIMENSIONS and i < len(node.args)]
    else:
        at = [i for i, argument in enumerate(node.args) if isinstance(value := value_of(argument, names), naru.Tensor) and value.dim() > 0]
        at = at[1:] if len(at) == len(node.args) or len(at) > 1 else []
    if at:
        node.args[at[0]] = ast.Constant(99) if row.startswith("IndexError") else ast.Call(ast.Attribute(node.args[at[0]], "to", ast.Load()), [ast.Constant("cuda:0")], [])
    return bool(at)


def test_what_a_function_is_said_to_raise_for_what_its_parameters_are_it_raises():
    """By its own example, changed: as far as that has tensors with dimensions, or a dimension, among its arguments."""
    asked, wrong = {"RuntimeError": 0, "IndexError": 0}, []
    for name in sorted(of_the_extension()):
        text = (getattr(naru._C, name, None) or vars(naru.Tensor)[name]).__doc__
        for row in raised(text, name):
            assert f"    {row}\n" in text
            for names, node in calls_shown(name):
                positional = [p for _, p, _ in signatures_in(text, name)[0]]
                if len(signatures_in(text, name)) > 1 or not changed(names, node, positional, row):
                    continue
                kind = row.partition(":")[0]
                asked[kind] += 1
                try:
                    wrong.append(f"{name}: {ast.unparse(node)} is {value_of(node, names)}, not a {kind}")
                except Exception as error:
                    if type(error).__name__ != kind or kind == "RuntimeError" and "device" not in str(error):
                        wrong.append(f"{name}: {ast.unparse(node)} raises {error!r}, not a {kind}")
    assert wrong == []
    assert min(asked.values()) > 40, asked


def words_of(text):
    """Those of a docstring's prose."""
    return set(re.findall(r"\w+", re.sub(r"^ *(>>>|\.\.\.) .*$", "", text, flags=re.MULTILINE)))


def unnamed_parameters(value):
    """The parameters of a signature that the text does not name (in words, not in the example). An enumeration is not called with any."""
    if isinstance(value, enum.EnumMeta):
        return []
    try:
        there = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    passed_on = {p.name for p in there if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and p.name in ("args", "kwargs", "arguments", "options")}
    return [p.name for p in there if p.name not in words_of(text_of(value)) | passed_on and not p.name.startswith("_")]


def lacking():
    """"NAME example" for what shows none, "NAME parameters A B" for what does not name these."""
    lines = []
    for name, value in NAMES:
        if not isinstance(value, FUNCTIONS):
            if ">>>" not in text_of(value):
                lines.append(f"{name} example")
            if unnamed := unnamed_parameters(value):
                lines.append(f"{name} parameters {' '.join(unnamed)}")
    for name in of_the_extension():
        prose = (line for text in texts_of(name) for line in text.splitlines() if not line.startswith(f"{name}("))
        if unnamed := parameters_of(name) - words_of("\n".join(prose)) - {"input", "out", "self"}:
            lines.append(f"naru._C.{name} parameters {' '.join(sorted(unnamed))}")
        if ">>>" not in example(name):
            lines.append(f"naru._C.{name} example")
    return lines + [f"naru.Tensor.{name} example" for name, value in attributes().items() if ">>>" not in (value.__doc__ or "")]
