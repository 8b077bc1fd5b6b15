"""Generates include/naru/function_methods.inc and src/ops/tensor/function_methods.inc: Tensor methods that call the free function of the same name,
from the functions' headers.

    python tools/function_methods.py [--check]

The function's first tensor parameter becomes `this`. After adding a name to METHODS or IN_PLACE, run `./run format`, which runs this tool (and then
tools/indexed_methods.py, which adds the methods to x[mask]).
"""
import re
import sys
from pathlib import Path

from indexed_methods import names_of, without_defaults

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ["ops", *(f"ops/{h}" for h in "functions complex linalg sparse special aliases".split())]
DECLARED = ROOT / "include" / "naru" / "function_methods.inc"
DEFINED = ROOT / "src" / "ops" / "tensor" / "function_methods.inc"
HEAD = """// The methods of Tensor that are functions of that name{}. Written by tools/function_methods.py (./run format) from the functions' headers.
// clang-format off
"""
METHODS = """
addbmm addr angle as_strided_scatter cholesky_inverse cholesky_solve coalesce col_indices conj corrcoef cov crow_indices cummax cummin dense_dim diag_embed
diagflat diagonal_scatter dsplit frexp gcd geqrf histogram hsplit i0 igamma igammac imag index_reduce is_coalesced isclose isreal lcm ldexp
logaddexp2 logcumsumexp lu_solve mH masked_scatter mode msort nanmedian nanquantile narrow_copy nextafter nonzero_static orgqr ormqr polygamma put put_ real
renorm scatter_reduce select_scatter sgn sinc slice_scatter sparse_dim sparse_mask sum_to_size to_dense to_sparse to_sparse_csr triangular_solve unique
unique_consecutive vdot vsplit cauchy_ exponential_ geometric_ log_normal_ as_strided_ conj_physical_
absolute adjoint arccos arccosh arcsin arcsinh arctan arctan2 arctanh argwhere conj_physical divide expit fix fliplr flipud ger greater greater_equal
is_same_size less less_equal moveaxis multiply mvlgamma negative not_equal ravel split_with_sizes subtract swapaxes swapdims true_divide
absolute_ divide_ multiply_ negative_ subtract_ true_divide_
""".split()
# In-place methods that write the function's result to the tensor.
IN_PLACE = """
addbmm addmm addmv addr arccos arccosh arcsin arcsinh arctan arctan2 arctanh baddbmm cumprod deg2rad fix float_power gcd greater greater_equal heaviside i0
igamma igammac index_reduce lcm ldexp less less_equal logit mvlgamma nan_to_num nextafter not_equal polygamma rad2deg renorm scatter_reduce sgn sinc
""".split()
# Aliases of elementwise operators, which have an in-place kernel already.
OPERATORS = {"arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "fix": "trunc",
             "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne"}
FUNCTION = re.compile(r"^(?:inline )?(?P<result>[\w:<>, ]+?) (?P<name>\w+)\((?P<parameters>(?:[^()]|\([^()]*\))*)\)(?:;| \{)", re.M)
TENSOR = re.compile(r"const (?:Tensor|Operand)& \w+(?:, )?")


def functions() -> dict[str, list[tuple[str, str]]]:
    """Returns (result type, parameters after the tensor) of each overload, by name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for header in HEADERS:
        text = re.sub(r"//[^\n]*", "", (ROOT / "include" / "naru" / f"{header}.h").read_text())
        # The contents of namespace naru (all names), and of nested namespaces (only names that naru imports by `using`).
        inner = re.compile(r"^namespace (?:naru::)?(?:sparse|special|linalg) \{\n.*?^\}\s*$", re.M | re.S)
        taken = re.findall(r"^using (?:\w+)::(\w+);", text, re.M)
        for part, wanted in [(inner.sub("", text), None), *((p, taken) for p in inner.findall(text))]:
            for m in FUNCTION.finditer(part):
                parameters = " ".join(m["parameters"].split()).replace("Range&", "std::optional<std::pair<double, double>>&")
                # In polygamma the tensor is the second parameter.
                first = TENSOR.match(parameters) or re.search(r", const Tensor& \w+$", parameters)
                # Operand is complete only after the class definition.
                if first and (wanted is None or m["name"] in wanted) and "optional<Operand>" not in parameters:
                    overload = (m["result"], parameters[: first.start()] + parameters[first.end() :])
                    if overload not in found.setdefault(m["name"], []):
                        found[m["name"]].append(overload)
    return found


def read_from(parameters: str) -> str:
    """What an in-place method's function reads: a copy if another operand has a gradient, which may need the tensor as it was."""
    others = [f"{name}.requires_grad()" for name in re.findall(r"const Tensor& (\w+)", parameters)]
    others += [f"{name}.is_tensor() && {name}.tensor().requires_grad()" for name in re.findall(r"const Operand& (\w+)", parameters)]
    return f"grad_enabled() && {others[0] if len(others) == 1 else '(' + ' || '.join(others) + ')'} ? clone() : to_be_written()" if others else "to_be_written()"


def forwarders() -> tuple[str, str]:
    """Returns declarations and definitions."""
    declared, defined = [], []
    known = functions()

    def add(name: str, result: str, parameters: str, body: str) -> None:
        declared.append(f"  {result} {name}({parameters}) const;")
        defined.append(f"{result} Tensor::{name}({without_defaults(parameters)}) const {{ {body} }}")

    def call(name: str, parameters: str, tensor: str = "*this") -> str:
        given = names_of(parameters)
        return f"naru::{name}({', '.join([*given, tensor] if name == 'polygamma' else [tensor, *given])})"

    for name in METHODS:
        for result, parameters in known[name]:
            if result == "void":
                add(name, "const Tensor&", parameters, f"{call(name, parameters)}; return *this;")
            else:
                add(name, result, parameters, f"return {call(name, parameters)};")
    for name in IN_PLACE:
        for _, parameters in known[name]:
            if name in OPERATORS:
                body = f"return {OPERATORS[name]}_({', '.join(names_of(parameters))});"
            else:
                body = f"return write_result({call(name, parameters, read_from(parameters))}, \"{name}_\");"
            add(f"{name}_", "const Tensor&", parameters, body)
    return tuple(HEAD.format(what) + "\n".join(lines) + "\n" for what, lines in (("", declared), (", each a call of its function", defined)))


def main() -> int:
    for path, text in zip((DECLARED, DEFINED), forwarders()):
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv:
            print(f"{path.relative_to(ROOT)} does not have the functions as they are declared: ./run format writes it", file=sys.stderr)
            return 1
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
