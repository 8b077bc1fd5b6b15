"""Jacobians, Hessians and their products with vectors."""
import pytest
import naru as torch
from naru.autograd import functional as AF


def close(a, b):
    return torch.allclose(a, b)


def test_a_jacobian_has_the_shape_of_the_output_followed_by_that_of_the_input_and_comes_in_tuples_as_the_function_does():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([[3.0], [4.0]])
    assert AF.jacobian(lambda a: a * a, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    by_x, by_y = AF.jacobian(lambda a, b: (a @ b).sum(), (x, y))
    assert by_x.tolist() == [3.0, 4.0] and by_y.shape == y.shape
    (first, second) = AF.jacobian(lambda a: (a.sum(), a.reshape(2, 1)), x)
    assert first.shape == (2,) and second.shape == (2, 1, 2)
    assert not first.requires_grad
    x.requires_grad_()
    assert AF.jacobian(lambda a: a**3, x, create_graph=True).sum().requires_grad


def test_products_agree_with_the_matrices():
    x, v = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, -1.0, 0.5])

    def vector(a):
        return a.exp() * a.sum()

    def scalar(a):
        return (a**3).sum() + a[0] * a[2]

    j, h = AF.jacobian(vector, x), AF.hessian(scalar, x)
    out, product = AF.vjp(vector, x, v)
    assert close(out, vector(x)) and close(product, v @ j)
    assert close(AF.jvp(vector, x, v)[1], j @ v)
    assert close(AF.hvp(scalar, x, v)[1], h @ v) and close(AF.vhp(scalar, x, v)[1], v @ h)
    blocks = AF.hessian(lambda a, b: (a * b).sum() ** 2, (x, v))
    assert close(blocks[0][1], blocks[1][0].T) and close(blocks[0][0], 2 * v.outer(v))


def test_errors_are_pytorchs():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="The vector v can only be None if"):
        AF.vjp(lambda a: a, x)
    with pytest.raises(RuntimeError, match="v has invalid size"):
        AF.jvp(lambda a: a, x, torch.ones(3))
    with pytest.raises(RuntimeError, match="should contain a single element"):
        AF.hessian(lambda a: a, x)
    with pytest.raises(TypeError, match="The inputs given to jacobian must be either a Tensor or a tuple of Tensors"):
        AF.jacobian(lambda a: a, 3)
    with pytest.raises(RuntimeError, match="is independent of input 1"):
        AF.jacobian(lambda a, b: a, (x, x), strict=True)
    with pytest.raises(ZeroDivisionError):
        AF.jacobian(lambda a: a / (1 // 0), x)
    with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
        AF.jacobian(lambda a: a, x, strategy="forward-mode")


def test_what_does_not_depend_on_an_input_has_zeros():
    x, y = torch.ones(2), torch.ones(3)
    assert AF.jacobian(lambda a, b: a, (x, y))[1].tolist() == [[0.0] * 3] * 2
    assert AF.hessian(lambda a, b: a.sum() ** 2, (x, y))[1][1].sum().item() == 0


def test_strict_products_name_what_does_not_depend_on_the_input():
    F, x, v = torch.autograd.functional, torch.rand(3), torch.ones(3)

    def loose(a):
        return a.detach().requires_grad_().clone()

    for call in (F.hvp, F.vhp):
        with pytest.raises(RuntimeError, match="The output of the user-provided function is independent of input 0"):
            call(lambda a: loose(a).sum(), x, v, strict=True)
    with pytest.raises(RuntimeError, match="The output of the user-provided function is independent of input 0"):
        F.jvp(loose, x, v, strict=True)
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function is independent of input 0"):
        F.jacobian(loose, x, strict=True)
    with pytest.raises(RuntimeError, match="given v should contain a single Tensor"):
        F.vjp(lambda a: a * 2, x, (v, v))
