"""Second derivatives are PyTorch 2.15's: where it has them, with its values; where it has none, none, or zeros; refused where it refuses them
(second_derivatives.py has the calls, second_derivatives.json its results). And those of the operator cases are the differences of the first."""
import json

import naru
import naru.nn.functional as F
import pytest
from naru.testing.operator_cases import CASES, differentiable, on_device
from second_derivatives import FILE, REFUSED, cases, second_derivatives

WANTED = json.loads(FILE.read_text())
CALLS = {name: (call, shapes) for name, call, shapes in cases()}
EXTRA = {  # PyTorch refuses these, and naru does not
    **{name: "PyTorch's fast kernel has none, its others do" for name in CALLS if name.startswith("F.scaled_dot_product_attention(x, y, z) ")},
    **{name: "PyTorch has no first derivative of this old form" for name in CALLS if "reduce='add'" in name},
}


def agrees(got, want):
    if got == want:
        return True
    if "refused" in got or "refused" in want:
        return False
    a, b = ([] if words in ("none", "constant") else words.split(" ") for words in (got, want))
    pairs = [(a[i] if a else "-", b[i] if b else "-") for i in range(max(len(a), len(b)))]
    # (An operand that does not matter may have zeros here; never the other way round.)
    return all(float(p) == pytest.approx(float(q), rel=1e-6, abs=1e-7, nan_ok=True) if q != "-" and p != "-" else q == "-" and (p == "-" or float(p) == 0) for p, q in pairs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_second_derivatives_are_pytorchs(name):
    got, want = second_derivatives(naru, F, *CALLS[name]), WANTED[name]
    if name in EXTRA:
        assert all("refused" in w for w in want) and not any("refused" in g for g in got)
        return
    assert len(got) == len(want) and all(map(agrees, got, want)), (got, want)


OF_CASES = [c for c in CASES if c.gradient]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", OF_CASES, ids=[c.name for c in OF_CASES])
def test_second_derivatives_of_the_operator_cases_are_differences_of_the_first(case):
    arrays = case.operands(4)
    operands = on_device(arrays, "cpu", naru.float64)
    wanted = differentiable(case, arrays)
    inputs = [operands[i].requires_grad_() for i in wanted]

    def run(*given):
        mine = list(operands)
        for i, x in zip(wanted, given):
            mine[i] = x
        out = case.run(*mine)
        return tuple(t for t in (out if isinstance(out, tuple) else (out,)) if t.requires_grad)

    if case.name in REFUSED:
        with pytest.raises(RuntimeError, match="derivative for aten::.* is not implemented"):
            naru.autograd.gradgradcheck(run, inputs, fast_mode=True)
    else:
        assert naru.autograd.gradgradcheck(run, inputs, fast_mode=True, atol=1e-4)
