"""PyTorch's precision switches for products on cuda. Their effect is tested in test_cuda.py."""
import subprocess
import sys

import naru as torch
import pytest

matmul = torch.backends.cuda.matmul


@pytest.fixture(autouse=True)
def as_at_first():
    def reset():
        torch.backends.fp32_precision = matmul.fp32_precision = "none"
        matmul.allow_fp16_reduced_precision_reduction = matmul.allow_bf16_reduced_precision_reduction = True

    reset()
    yield
    reset()


def state():
    return torch.get_float32_matmul_precision(), matmul.allow_tf32, matmul.fp32_precision


def test_float32_is_exact_at_first():
    ask = "import naru; m = naru.backends.cuda.matmul; print(naru.get_float32_matmul_precision(), m.allow_tf32, m.fp32_precision, naru.backends.fp32_precision)"
    assert subprocess.check_output([sys.executable, "-c", ask], text=True) == "highest False none none\n"
    assert state() == ("highest", False, "none")


def test_each_switch_for_tf32_shows_in_the_others():
    matmul.allow_tf32 = True
    assert state() == ("high", True, "tf32")
    matmul.allow_tf32 = False
    assert state() == ("highest", False, "ieee")
    for name in ("high", "medium"):
        torch.set_float32_matmul_precision(name)
        assert state() == (name, True, "tf32")
    torch.set_float32_matmul_precision("highest")
    assert state() == ("highest", False, "ieee")
    matmul.fp32_precision = "tf32"
    assert state() == ("high", True, "tf32")


def test_what_is_set_for_all_holds_where_nothing_is_set_for_cuda():
    torch.backends.fp32_precision = "tf32"
    assert state() == ("high", True, "tf32")
    matmul.fp32_precision = "ieee"
    assert state() == ("highest", False, "ieee") and torch.backends.fp32_precision == "tf32"
    matmul.fp32_precision = "none"
    assert state() == ("high", True, "tf32")


def test_a_precision_that_there_is_not_is_refused():
    with pytest.warns(UserWarning, match="bad is not one of 'highest', 'high', or 'medium'"):
        torch.set_float32_matmul_precision("bad")
    with pytest.raises(RuntimeError, match="expects a str, but got int"):
        torch.set_float32_matmul_precision(3)
    with pytest.raises(RuntimeError, match="Unknown precision: x"):
        matmul.fp32_precision = "x"
    with pytest.raises(RuntimeError, match="backend 'cuda' does not support precision 'bf16'"):
        matmul.fp32_precision = "bf16"
    with pytest.raises(RuntimeError, match="Unknown precision: x"):
        torch.backends.fp32_precision = "x"
    with pytest.raises(RuntimeError, match="set_allow_tf32_cublas expects a bool, but got str"):
        matmul.allow_tf32 = "yes"
    with pytest.raises(AttributeError):
        matmul.allow_tf16 = True
    assert state() == ("highest", False, "none")


@pytest.mark.parametrize("half", ["fp16", "bf16"])
def test_sums_in_16_bits_are_switched_by_type(half):
    name, other = (f"allow_{t}_reduced_precision_reduction" for t in (half, {"fp16": "bf16", "bf16": "fp16"}[half]))
    assert getattr(matmul, name) is True
    setattr(matmul, name, False)
    assert getattr(matmul, name) is False and getattr(matmul, other) is True
    setattr(matmul, name, (True,))
    assert getattr(matmul, name) is True
    setattr(matmul, name, (False, False))
    assert getattr(matmul, name) is False
    for wrong in (1, None, (), (True, True, True), ("x",)):
        with pytest.raises(TypeError, match=f"{name} expects a bool or a tuple/list of bools"):
            setattr(matmul, name, wrong)
    with pytest.raises(RuntimeError, match="allow_splitk=False is not supported"):
        setattr(matmul, name, (True, False))


def test_accumulation_in_float16_can_only_be_off():
    matmul.allow_fp16_accumulation = False
    with pytest.raises(RuntimeError, match="wanted False, got True"):
        matmul.allow_fp16_accumulation = True
    assert matmul.allow_fp16_accumulation is False


@pytest.mark.parametrize(
    ("backend", "major", "libraries", "supported"),
    [
        ("virtual", 9, "", False),
        ("cuda", 8, "cuBLASLt 12.4", True),
        ("cuda", 7, "cuBLASLt 12.4", False),
        ("cuda", 9, "own kernels for products (no cuBLASLt: install it)", False),
    ],
)
def test_tf32_is_supported_where_products_use_it(monkeypatch, backend, major, libraries, supported):
    monkeypatch.setattr(torch._C, "_describe_device", lambda device: {"backend": backend, "major": major, "libraries": libraries})
    assert torch.cuda.is_tf32_supported() is supported
    assert torch.xpu.is_tf32_supported() is False


def test_tf32_is_not_supported_by_virtual_devices():
    assert torch.cuda.is_available() and not torch.cuda.is_tf32_supported()


@pytest.mark.parametrize(("mode", "enabled", "warns"), [("default", False, False), ("warn", True, True), ("error", True, False)])
def test_what_deterministic_algorithms_were_asked_for_is_told(mode, enabled, warns):
    try:
        torch.set_deterministic_debug_mode(mode)
        assert torch.are_deterministic_algorithms_enabled() is enabled and torch.is_deterministic_algorithms_warn_only_enabled() is warns
        assert torch.get_deterministic_debug_mode() == ["default", "warn", "error"].index(mode)
        torch.use_deterministic_algorithms(enabled, warn_only=warns)
        assert torch.get_deterministic_debug_mode() == ["default", "warn", "error"].index(mode)
    finally:
        torch.use_deterministic_algorithms(False)
    with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`, but got sometimes"):
        torch.set_deterministic_debug_mode("sometimes")
    with pytest.raises(RuntimeError, match="expected 0, 1, or 2, but got 3"):
        torch.set_deterministic_debug_mode(3)


def test_deterministic_mode_fills_memory_that_nobody_has_written():
    settings = torch.utils.deterministic
    torch.use_deterministic_algorithms(True)
    try:
        assert settings.fill_uninitialized_memory is True
        for dtype, value in ((torch.int16, 32767), (torch.uint8, 255), (torch.uint64, 2**64 - 1), (torch.int64, 2**63 - 1), (torch.bool, True)):
            assert torch.empty(3, dtype=dtype).tolist() == [value] * 3
        assert torch.empty_like(torch.zeros(2, 2)).isnan().all() and torch.empty_strided((2, 2), (1, 3), dtype=torch.complex64).isnan().all()
        grown = torch.zeros(2).resize_(4)
        assert grown[:2].tolist() == [0, 0] and grown[2:].isnan().all()
        settings.fill_uninitialized_memory = False
        assert torch.empty_like(torch.zeros(100)).shape == (100,) and settings.fill_uninitialized_memory is False
    finally:
        settings.fill_uninitialized_memory = True
        torch.use_deterministic_algorithms(False)
