"""torch.library: operators from schemas, schemas inferred from type hints, and operator checks."""
from typing import List, Optional, Sequence, Tuple

import naru as torch
import pytest
from naru import library


@pytest.fixture
def made():
    """A library whose operators go with the test."""
    found = library.Library("tests", "FRAGMENT")
    yield found
    found._destroy()


def test_an_operator_by_its_schema_has_a_function_for_each_kind_of_device(made):
    assert made.define("scaled(Tensor x, float by=2.0, *, int[] plus=[1, 2], str how='a') -> Tensor") == "scaled"

    @library.impl(made, "scaled", "CPU")
    def scaled(x, by=2.0, *, plus=(0, 0), how="a"):
        return x * by + sum(plus)

    made.impl("scaled", lambda x, by=2.0, **_: x * by - 1, "CUDA")
    x = torch.ones(1, requires_grad=True)
    assert torch.ops.tests.scaled(x, 3.0, plus=[1]).tolist() == [4]
    assert torch.ops.tests.scaled(torch.ones(1, device="cuda")).tolist() == [1]
    torch.ops.tests.scaled(x, 5.0).backward()
    assert x.grad.tolist() == [5]
    with pytest.raises(NotImplementedError, match="tests::scaled: no kernel was registered for meta; there are kernels for"):
        torch.ops.tests.scaled(torch.ones(1, device="meta"))
    library.register_autograd("tests::scaled", lambda ctx, g: (g * 7, None), setup_context=lambda ctx, inputs, keyword_only_inputs, output: None)
    y = torch.ones(1, requires_grad=True)
    torch.ops.tests.scaled(y).backward()
    assert y.grad.tolist() == [7]


def test_what_is_no_schema_and_what_is_not_there_is_refused(made):
    made.define("one(Tensor x) -> Tensor")
    for call, error, words in [
        (lambda: made.define("one(Tensor x) -> Tensor"), RuntimeError, "same name and overload name multiple times"),
        (lambda: made.define("bare"), RuntimeError, "only the operator name was given"),
        (lambda: made.define("half(Tensor x"), RuntimeError, "wanted a schema like"),
        (lambda: made.define("typeless(x) -> Tensor"), RuntimeError, "wanted a type, a name"),
        (lambda: made.impl("none", lambda x: x, "CPU"), RuntimeError, "tests::none does not exist"),
        (lambda: made.impl("one", None, "CPU"), TypeError, "required to be a callable"),
        (lambda: made.impl("one", lambda x: x, "Toaster"), RuntimeError, "could not parse dispatch key: Toaster"),
        (lambda: made.impl("one", lambda x: x, "AutogradCPU"), NotImplementedError, "register_autograd"),
        (lambda: library.Library("tests", "HALF"), ValueError, "Unsupported kind: HALF"),
        (lambda: library.Library("tests", "IMPL").define("two(Tensor x) -> Tensor"), RuntimeError, "kind IMPL defines nothing"),
        (lambda: library.define("two", "(Tensor x) -> Tensor"), ValueError, "namespace::name"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_a_schema_is_read_off_a_functions_types():
    def f(x: torch.Tensor, n: int, y: Optional[torch.Tensor] = None, *, k: Sequence[int], b: bool = True, t: torch.dtype = torch.int8) -> Tuple[torch.Tensor, torch.Tensor]: ...

    def g(xs: List[torch.Tensor], m: torch.Tensor) -> None: ...

    assert library.infer_schema(f, mutates_args=()) == '(Tensor x, SymInt n, Tensor? y=None, *, SymInt[] k, bool b=True, ScalarType t="int8") -> (Tensor, Tensor)'
    assert library.infer_schema(g, mutates_args=("m",), op_name="g") == "g(Tensor[] xs, Tensor(a1!) m) -> ()"
    with pytest.raises(ValueError, match="Parameter x must have a type annotation"):
        library.infer_schema(lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match="not found in the signature"):
        library.infer_schema(g, mutates_args=("z",))


def test_opcheck_finds_operators_that_do_not_keep_their_word(made):
    for name, function, check, words in [
        ("writes", lambda x: x.add_(1) * 1, "test_schema", "x is not defined as mutable but was mutated"),
        ("gives", lambda x: x[:1], "test_schema", "x is not defined to alias output"),
        ("loses", lambda x: x.detach() * 2, "test_autograd_registration", "no autograd formula was registered"),
    ]:
        made.define(f"{name}(Tensor x) -> Tensor")
        made.impl(name, function)
        x = torch.ones(2, requires_grad=check != "test_schema")
        with pytest.raises(Exception, match=f"{check} failed with .*{words}"):
            library.opcheck(f"tests::{name}", (x,))
        assert isinstance(library.opcheck(f"tests::{name}", (x,), raise_exception=False)[check], RuntimeError)
    made.define("grows(Tensor x) -> Tensor")
    made.impl("grows", lambda x: x * 2, "CPU")
    with pytest.raises(Exception, match="no fake impl registered"):
        library.opcheck(torch.ops.tests.grows.default, (torch.ones(2),))
    made.impl("grows", lambda x: x.new_empty(x.shape[0] + 1), "Meta")
    with pytest.raises(Exception, match=r"on the device 'meta' are \[\(\(3,\)"):
        library.opcheck(torch.ops.tests.grows, (torch.ones(2),))
