"""Complex tensors beyond the operator cases: dtypes, printing, branch cuts, special values."""
import cmath
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import naru as torch
from naru import safetensors

INF, NAN = math.inf, math.nan


def same(got, wanted):
    """Equal, with NaN equal to NaN and the signs of zeros told apart."""
    return all(
        (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
        for a, b in ((got.real, wanted.real), (got.imag, wanted.imag))
    )


def test_literals_make_complex_tensors_of_the_default_types_width():
    assert torch.tensor([1, 2j]).dtype is torch.complex64
    assert torch.tensor(1j, dtype=torch.complex128).dtype is torch.cdouble
    assert torch.full((2,), 1j).dtype is torch.complex64
    assert torch.as_tensor(np.complex64(1j)).dtype is torch.complex64
    assert torch.zeros(2, dtype=complex).dtype is torch.complex128
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor(1j).dtype is torch.complex128
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("a, b, wanted", [
    ("float32", 1j, "complex64"), ("float64", 1j, "complex128"), ("float16", 1j, "complex32"), ("bfloat16", 1j, "complex64"),
    ("int64", 1j, "complex64"), ("bool", 1j, "complex64"), ("complex64", 2.5, "complex64"), ("complex64", "float64", "complex128"),
    ("complex32", "float32", "complex64"), ("complex32", "bfloat16", "complex64"), ("complex64", "int64", "complex64"),
    ("complex128", "complex64", "complex128"), ("complex64", "float16", "complex64"),
])
def test_promotion_is_pytorchs(a, b, wanted):
    other = getattr(torch, b) if isinstance(b, str) else b
    x = torch.ones(2, dtype=getattr(torch, a))
    y = torch.ones(2, dtype=other) if isinstance(b, str) else other
    assert str(torch.result_type(x, y)) == f"torch.{wanted}"
    if isinstance(b, str):
        assert str(torch.promote_types(x.dtype, y.dtype)) == f"torch.{wanted}"


def test_a_complex_number_without_dimensions_does_not_widen_a_real_tensor():
    assert (torch.ones(2) * torch.tensor(1j, dtype=torch.complex128)).dtype is torch.complex64


def test_elements_are_pythons_complex_numbers():
    z = torch.tensor([1 + 2j, -0.5j])
    assert z.tolist() == [1 + 2j, -0.5j] and z[0].item() == 1 + 2j and complex(z[1]) == -0.5j
    assert float(torch.tensor(3 + 0j)) == 3
    with pytest.raises(RuntimeError, match="value cannot be converted to type double without overflow"):
        float(torch.tensor(1j))
    z[1] = 7j
    z.real = torch.tensor([5.0, 6.0])
    z.imag[0] = -1
    assert z.tolist() == [5 - 1j, 6 + 7j]


def test_casts_between_real_and_complex_types():
    assert torch.tensor([1, 2]).to(torch.complex64).tolist() == [1, 2]
    with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
        assert torch.tensor([1 + 2j]).float().tolist() == [1]
    assert torch.tensor([0j, 1j]).bool().tolist() == [False, True]
    assert torch.tensor([1 + 2j]).to(torch.complex128).dtype is torch.complex128
    assert torch.tensor([1 + 2j]).chalf().cfloat().tolist() == [1 + 2j]
    with pytest.raises(RuntimeError, match="result type ComplexFloat can't be cast to the desired output type Float"):
        torch.ones(2).add_(1j)
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.ones(2).fill_(1j)


@pytest.mark.parametrize("call, kind, text", [
    (lambda z: z < z, NotImplementedError, "\"lt_cpu\" not implemented for 'ComplexFloat'"),
    (lambda z: z.double().cdouble() > 1, NotImplementedError, "\"gt_cpu\" not implemented for 'ComplexDouble'"),
    (lambda z: torch.erf(z), NotImplementedError, "\"erf_vml_cpu\" not implemented for 'ComplexFloat'"),
    (lambda z: z.floor(), NotImplementedError, "floor is not supported for complex inputs"),
    (lambda z: z.sign(), NotImplementedError, "Unlike NumPy, torch.sign is not intended to support complex numbers"),
    (lambda z: torch.maximum(z, z), TypeError, "maximum not implemented for complex tensors."),
    (lambda z: z.clamp(min=0), NotImplementedError, "clamp is not supported for complex types"),
    (lambda z: z // 2, NotImplementedError, "\"div_floor_cpu\" not implemented for 'ComplexFloat'"),
    (lambda z: z.chalf().exp(), NotImplementedError, "\"exp_vml_cpu\" not implemented for 'ComplexHalf'"),
    (lambda z: z.abs_(), RuntimeError, "In-place abs is not supported for complex tensors."),
    (lambda z: torch.ones(2).imag, RuntimeError, "imag is not implemented for tensors with non-complex dtypes."),
    (lambda z: torch.view_as_real(torch.ones(2)), RuntimeError, "view_as_real is only supported for complex tensors"),
    (lambda z: torch.view_as_complex(torch.ones(3)), RuntimeError, "Tensor must have a last dimension of size 2"),
    (lambda z: torch.view_as_complex(torch.ones(2, 2).t()), RuntimeError, "Tensor must have a last dimension with stride 1"),
    (lambda z: torch.view_as_complex(torch.ones(7)[1:].view(3, 2)), RuntimeError, "Tensor must have a storage_offset divisible by 2"),
    (lambda z: torch.complex(torch.ones(2), torch.ones(2).double()), RuntimeError, "Expected object of scalar type Float but got scalar type Double"),
    (lambda z: torch.add(torch.ones(2), torch.ones(2), alpha=1j), RuntimeError, "For non-complex input tensors, argument alpha must not be a complex"),
    (lambda z: z.requires_grad_().sum().backward(), RuntimeError, "grad can be implicitly created only for real scalar outputs but got"),
])
def test_errors_have_pytorchs_words(call, kind, text):
    with pytest.warns(UserWarning) if "Double" in text and "gt" in text else _nothing():
        with pytest.raises(kind) as caught:
            call(torch.tensor([1 + 2j, 3j]))
    assert text in str(caught.value)


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


# Annex G of C99.
SPECIAL = {
    "sqrt": [(complex(-4, -0.0), complex(0, -2)), (complex(NAN, INF), complex(INF, INF)), (complex(-INF, 1), complex(0, INF))],
    "exp": [(complex(-INF, INF), complex(-0.0, 0)), (complex(INF, 0), complex(INF, 0)), (complex(INF, NAN), complex(INF, NAN))],
    "log": [(0j, complex(-INF, 0)), (complex(-1, -0.0), complex(0, -math.pi)), (complex(-INF, INF), complex(INF, 3 * math.pi / 4))],
    "sinh": [(complex(INF, 0), complex(INF, 0)), (complex(0, INF), complex(0, NAN))],
    "tanh": [(complex(INF, 1), complex(1, 0)), (complex(NAN, 0), complex(NAN, 0)), (complex(1000, 1), complex(1, 0))],
    "asin": [(complex(2, 0.0), cmath.asin(complex(2, 0.0))), (complex(INF, INF), complex(math.pi / 4, INF))],
    "acos": [(complex(-INF, 1), complex(math.pi, -INF)), (complex(0, NAN), complex(math.pi / 2, NAN))],
    "atanh": [(complex(1, 0), complex(INF, 0)), (complex(0, INF), complex(0, math.pi / 2))],
    "acosh": [(complex(-1, 0.0), complex(0, math.pi)), (complex(INF, 1), complex(INF, 0))],
}


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_special_values_are_those_of_c(name, device):
    for z, wanted in SPECIAL[name]:
        got = getattr(torch, name)(torch.tensor(z, dtype=torch.complex128, device=device)).item()
        assert same(got, wanted) or abs(got - wanted) <= 1e-15 * abs(wanted), (z, got, wanted)


def test_large_and_small_numbers_do_not_overflow_on_the_way():
    z = torch.tensor([1e38 + 1e38j, 1e-30 + 1e-30j])
    assert (z / z).tolist() == [1, 1]
    assert torch.isfinite(z.sqrt()).all() and torch.isfinite(z.log()).all()
    assert z[1].abs().item() == pytest.approx(1.4142135e-30)


def test_the_logarithm_near_the_unit_circle_loses_no_digits_where_the_squares_of_the_parts_cancel():
    angles = np.random.default_rng(0).uniform(-math.pi, math.pi, 200)
    for dtype, eps, radii in ((torch.complex128, 2.0**-52, (1 - 1e-9, 1.0, 1 + 1e-12, 0.9)), (torch.complex64, 2.0**-23, (1 - 1e-4, 1.0, 1 + 1e-6, 0.9))):
        z = torch.tensor(np.concatenate([r * np.exp(1j * angles) for r in radii]), dtype=dtype)
        for made, numbers, one in ((z.log(), z, 0), ((z - 1).log1p(), z - 1, 1)):
            for got, w in zip(made.tolist(), numbers.tolist()):
                square_less_one = (Fraction(w.real) + one) ** 2 + Fraction(w.imag) ** 2 - 1
                assert abs(got.real - (wanted := math.log1p(square_less_one) / 2)) <= 8 * eps * abs(wanted) + 4 * eps**2, w


def test_numpy_crosses_both_ways_without_a_copy():
    for dtype in (np.complex64, np.complex128):
        a = np.array([[1 + 2j, 3], [4j, 5]], dtype)
        z = torch.from_numpy(a)
        z[0, 0] = 9j
        assert a[0, 0] == 9j and np.shares_memory(z.numpy(), a) and z.numpy().dtype == dtype
        assert np.from_dlpack(z).dtype == dtype and torch.from_dlpack(a).tolist() == z.tolist()
        assert np.asarray(z.t()).tolist() == a.T.tolist()
    assert (torch.ones(1) * np.complex64(2j)).tolist() == [2j]


def test_files_keep_complex_tensors(tmp_path):
    for dtype in (torch.complex32, torch.complex64, torch.complex128):
        z = torch.tensor([1 + 2j, -3.5j]).to(dtype)
        torch.save({"z": z}, tmp_path / "z.pt")
        read = torch.load(tmp_path / "z.pt")["z"]
        assert read.dtype is dtype and read.cdouble().tolist() == [1 + 2j, -3.5j]
        assert pickle.loads(pickle.dumps(z)).dtype is dtype
    safetensors.save_file({"z": torch.tensor([1 + 2j])}, tmp_path / "z.safetensors")
    assert safetensors.load_file(tmp_path / "z.safetensors")["z"].tolist() == [1 + 2j]
    with pytest.raises(ValueError, match="the format has no complex128"):
        safetensors.save_file({"z": torch.zeros(1, dtype=torch.complex128)}, tmp_path / "w.safetensors")
        assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_views_in_another_type_have_another_last_size():
    z = torch.tensor([[1 + 2j], [3 + 4j]])
    assert z.view(torch.float32).tolist() == [[1, 2], [3, 4]]
    assert torch.ones(4).view(torch.complex64).tolist() == [1 + 1j, 1 + 1j]
    with pytest.raises(RuntimeError, match=r"self.size\(-1\) must be divisible by 2 to view Float as ComplexFloat"):
        torch.ones(3).view(torch.complex64)


def test_conjugates_are_tensors_of_their_own():
    z = torch.tensor([1 + 2j])
    c = z.conj()
    assert c.tolist() == [1 - 2j] and not c.is_conj() and c.resolve_conj() is c and c.resolve_neg() is c
    assert torch.ones(2).conj().tolist() == [1, 1]
    assert z.conj_physical_().tolist() == [1 - 2j]
    assert torch.isreal(torch.tensor([1 + 0j, 1j])).tolist() == [True, False]


def test_random_numbers_share_the_variance_between_the_parts():
    torch.manual_seed(0)
    z = torch.randn(20000, dtype=torch.complex64)
    assert z.real.var().item() == pytest.approx(0.5, rel=0.05) and z.var().item() == pytest.approx(1, rel=0.05)
    u = torch.rand(1000, dtype=torch.complex128)
    assert 0 <= u.imag.min().item() and u.real.max().item() < 1 and torch.rand_like(z).dtype is z.dtype


def test_gradcheck_takes_complex_inputs_and_results():
    z = torch.randn(3, dtype=torch.complex128, requires_grad=True)
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    f = lambda z, x: (z.exp() * x + z.conj() / (2 + 1j), z.abs())  # noqa: E731
    assert torch.autograd.gradcheck(f, (z, x)) and torch.autograd.gradgradcheck(f, (z, x))
    with pytest.raises(torch.autograd.GradcheckError if hasattr(torch.autograd, "GradcheckError") else RuntimeError):
        torch.autograd.gradcheck(lambda z: _Wrong.apply(z), (z,))


def test_float_power_is_computed_in_complex128():
    z = torch.tensor([1 + 2j])
    assert torch.float_power(z, 2).dtype is torch.complex128 and torch.float_power(2, z).dtype is torch.complex128
    assert torch.float_power(torch.ones(1), 1j).dtype is torch.complex128


class _Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        return z * 1j

    @staticmethod
    def backward(ctx, g):
        return g * 1j  # without conjugation


def test_a_complex_parameter_is_trained():
    torch.manual_seed(0)
    w = torch.zeros(2, dtype=torch.complex64, requires_grad=True)
    goal = torch.tensor([1 + 2j, -1j])
    for _ in range(60):
        loss = ((w - goal).abs() ** 2).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
    assert torch.allclose(w.detach(), goal, atol=1e-4)


@pytest.mark.parametrize("make, text", [
    (lambda: torch.tensor([1 + 2j, -0.5 - 1.25j]), "tensor([ 1.0000+2.0000j, -0.5000-1.2500j])"),
    (lambda: torch.tensor(1j), "tensor(0.+1.j)"),
    (lambda: torch.tensor([[1j, 100000.5]], dtype=torch.complex128), "tensor([[     0.0000+1.j, 100000.5000+0.j]], dtype=torch.complex128)"),
    (lambda: torch.tensor([complex(NAN, -INF), -0j]), "tensor([nan-infj, -0.-0.j])"),
    (lambda: torch.zeros(0, dtype=torch.complex64), "tensor([], dtype=torch.complex64)"),
    (lambda: torch.ones(1, dtype=torch.complex64, requires_grad=True) * 2, "tensor([2.+0.j], grad_fn=<MulBackward0>)"),
])
def test_a_complex_tensor_prints_as_pytorch_prints_it(make, text):
    assert repr(make()) == text


def test_names_of_types_are_pytorchs():
    assert torch.cfloat is torch.complex64 and torch.cdouble is torch.complex128 and torch.chalf is torch.complex32
    assert torch.float64.to_complex() is torch.complex128 and torch.complex32.to_real() is torch.float16
    z = torch.tensor(1j)
    assert z.type() == "torch.ComplexFloatTensor" and z.is_complex() and not z.is_floating_point() and z.dtype.is_complex
    assert torch.finfo(torch.complex64).bits == 32 and z.element_size() == 8


SPACES = {"torch": torch, "functional": torch.nn.functional, "special": torch.special, "Tensor": torch.Tensor}
FUNCTIONS = [(s, n) for s, space in SPACES.items() for n in dir(space)
             if not n.startswith("_") and callable(getattr(space, n, None)) and not isinstance(getattr(space, n), type)]  # fmt: skip


@pytest.mark.parametrize("space, name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.filterwarnings("error:Casting complex values to real")
def test_no_function_takes_the_memory_of_pairs_for_numbers(space, name):
    """Of every function: it refuses, or gives of z what it gives of an equal tensor whose memory lies otherwise."""
    if name.startswith(("set_", "use_", "load_", "unload_")) or name in ("rand_like", "randn_like", "randint_like", "bernoulli", "dropout", "multinomial", "normal", "empty_like", "save", "seed",
                "initial_seed", "manual_seed", "get_rng_state", "randperm", "pca_lowrank", "svd_lowrank", "poisson", "rrelu", "breakpoint", "normal_", "alpha_dropout",
                "feature_alpha_dropout", "feature_dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "gumbel_softmax", "data_ptr", "stride", "is_contiguous",
                "uniform_", "as_strided", "as_strided_", "storage_offset", "resize_", "set_", "float", "double", "half", "bfloat16", "int", "long", "short",
                "char", "byte", "new_empty", "new", "untyped_storage", "storage", "to", "type", "type_as", "copy_", "share_memory_",
                "empty_strided", "new_empty_strided", "is_set_to", "cdouble", "detach_"):  # fmt: skip
        return
    z = torch.tensor([[1 + 2j, 3 - 1j, -2j], [0.5 + 0j, -1 + 1j, 2 + 2j], [1 - 1j, 4j, -3 + 0j]])
    for args in ([], [z], [0], [1, 0], [0, z], [0, torch.tensor([[0, 1, 2]] * 3)], [z, z], [z.real > 0, 1j]):
        first, second = z.clone(), _spread(z)
        try:
            wanted = getattr(SPACES[space], name)(first, *[first if a is z else a for a in args])
        except Exception as e:  # an error of a proper type is acceptable
            assert type(e) is not SystemError and "discards the imaginary part" not in str(e)
            continue
        got = getattr(SPACES[space], name)(second, *[second if a is z else a for a in args])
        for a, b in zip(_tensors(wanted), _tensors(got)):
            assert a.dtype == b.dtype and a.shape == b.shape
            assert torch.allclose(a, b, equal_nan=True) if a.dtype != torch.bool else torch.equal(a, b)


def _spread(z):
    x = torch.zeros(6, 6, dtype=z.dtype)[::2, ::2]
    return x.copy_(z)


def _tensors(x):
    if isinstance(x, torch.Tensor):
        return [x.to_dense()]
    return [t for item in x for t in _tensors(item)] if isinstance(x, (tuple, list)) else []
