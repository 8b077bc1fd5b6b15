"""torch.fft, stft, istft and windows: lengths, norms, errors, and what the operator cases do not cover, compared with NumPy and naive sums."""
import itertools
import subprocess
import sys

import naru as torch
import numpy as np
import pytest

F, W = torch.fft, torch.signal.windows


def random(*shape, complex=False, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + (1j * rng.normal(size=shape) if complex else 0)


def close(got, wanted, scale=1.0):
    np.testing.assert_allclose(got.cpu().numpy(), wanted, atol=1e-12 * scale * max(1.0, np.abs(wanted).max(initial=0)))


def test_every_length_to_100_and_some_large_ones_is_transformed_as_numpy_does_it():
    for n in [*range(1, 101), 127, 128, 243, 500, 997, 1009, 2310, 4096, 6006]:
        z, x = random(3, n, complex=True, seed=n), random(2, n, seed=n)
        close(F.fft(torch.tensor(z)), np.fft.fft(z))
        close(F.ifft(torch.tensor(z)), np.fft.ifft(z))
        half = F.rfft(torch.tensor(x))
        close(half, np.fft.rfft(x))
        close(F.irfft(half, n), x)
        close(F.hfft(torch.tensor(z), n), np.fft.hfft(z, n), 4)


def test_a_rows_bits_do_not_depend_on_what_is_transformed_beside_it_or_on_how_it_lies(device):
    for n, dtype in itertools.product((8, 60, 97, 256), (torch.complex64, torch.complex128, torch.float32)):
        x = torch.tensor(random(37, n, complex=dtype.is_complex)).to(dtype).to(device)
        if n == 60:
            x[5] = float("nan")
        for f in (F.fft, F.ifft, F.rfft, F.ihfft, F.hfft)[: 5 if not dtype.is_complex else 2]:
            with torch.fallback.policy("count"):
                whole = torch.view_as_real(f(x)) if f is not F.hfft else f(x)
                alone = torch.cat([torch.view_as_real(f(row)).unsqueeze(0) if f is not F.hfft else f(row).unsqueeze(0) for row in x])
                turned = f(x.t().contiguous(), dim=0).t()
            turned = torch.view_as_real(turned.contiguous()) if f is not F.hfft else turned.contiguous()
            assert whole.cpu().numpy().tobytes() == alone.cpu().numpy().tobytes() == turned.cpu().numpy().tobytes(), (f, n, dtype)


def test_lengths_and_norms_and_dimensions_are_numpys():
    a, z = random(4, 5, 6), random(4, 5, 6, complex=True)
    for n, dim, norm in itertools.product((None, 1, 4, 9), (0, 1, -1), (None, "backward", "ortho", "forward")):
        for name in ("fft", "ifft", "rfft", "ihfft"):
            close(getattr(F, name)(torch.tensor(a), n, dim, norm), getattr(np.fft, name)(a, n, dim, norm))
        for name in ("fft", "ifft", "irfft", "hfft"):
            close(getattr(F, name)(torch.tensor(z), n, dim, norm), getattr(np.fft, name)(z, n, dim, norm), 10)
    for s, dims, norm in itertools.product((None, (3, 7)), ((0, 2), (-1, 1)), (None, "ortho")):
        for name in ("fft2", "ifft2", "rfft2"):
            close(getattr(F, name)(torch.tensor(a), s, dims, norm), getattr(np.fft, name)(a, s, dims, norm))
        close(F.irfft2(torch.tensor(z), s, dims, norm), np.fft.irfft2(z, s, dims, norm))
        close(F.irfft2(F.rfft2(torch.tensor(a), dim=dims, norm=norm), [a.shape[d] for d in dims], dims, norm), a)
        close(F.hfft2(F.ihfft2(torch.tensor(a), dim=dims, norm=norm), [a.shape[d] for d in dims], dims, norm), a)
    close(F.fftn(torch.tensor(a), s=(-1, 4)), np.fft.fftn(a, (5, 4), axes=(1, 2)))
    close(F.rfftn(torch.tensor(a), s=(3,)), np.fft.rfft(a, 3))
    close(F.ifftn(torch.tensor(z)), np.fft.ifftn(z))


def test_types_follow_the_input_and_integers_count_as_the_default_type():
    assert F.fft(torch.ones(4)).dtype == F.rfft(torch.ones(4, dtype=torch.int64)).dtype == torch.complex64
    assert F.fft(torch.ones(4, dtype=torch.float64)).dtype == torch.complex128 and F.irfft(torch.ones(4)).dtype == torch.float32
    assert F.hfft(torch.ones(4, dtype=torch.bool)).tolist() == [6, 0, 0, 0, 0, 0] and F.fft(torch.zeros(0, 3)).shape == (0, 3)
    out = torch.empty(0, dtype=torch.complex64)
    assert F.fft(torch.ones(2), out=out) is out and out.tolist() == [2, 0]
    for dtype in (torch.float16, torch.bfloat16):
        with pytest.raises(NotImplementedError, match="Unsupported dtype"):
            F.fft(torch.ones(4, dtype=dtype))


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda a: F.fft(a, 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda a: F.irfft(a[:, :1]), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda a: F.fft(a, norm="foo"), RuntimeError, 'Invalid normalization mode: "foo"'),
        (lambda a: F.fft(a, dim=2), IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"),
        (lambda a: F.fft(torch.tensor(1.0)), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
        (lambda a: F.rfft(a + 0j), TypeError, "rfft expects a real input tensor, but got ComplexFloat"),
        (lambda a: F.rfftn(a + 0j), TypeError, "rfftn expects a real-valued input tensor, but got ComplexFloat"),
        (lambda a: F.ihfftn(a + 0j), TypeError, "Only supports floating-point dtypes, but found: ComplexFloat"),
        (lambda a: F.fft2(a, (3,)), RuntimeError, "When given, dim and shape arguments must have the same length"),
        (lambda a: F.fftn(a, (1, 2, 3)), RuntimeError, "Got shape with 3 values but input tensor only has 2 dimensions."),
        (lambda a: F.fftn(a, dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
        (lambda a: F.rfftn(a, dim=()), RuntimeError, "rfftn must transform at least one axis"),
        (lambda a: F.fftfreq(4, dtype=torch.int64), RuntimeError, "fftfreq requires a floating point or complex dtype"),
    ],
)
def test_what_cannot_be_transformed_is_pytorchs_error(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(4, 6))


def test_frequencies_and_shifts_are_numpys():
    for n in (1, 4, 5, 8):
        np.testing.assert_allclose(F.fftfreq(n, 0.5, dtype=torch.float64).numpy(), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(F.rfftfreq(n, 2.0, dtype=torch.float64).numpy(), np.fft.rfftfreq(n, 2.0))
        a = torch.arange(n * 3).reshape(n, 3)
        assert F.fftshift(a).tolist() == np.fft.fftshift(a.numpy()).tolist() and torch.equal(F.ifftshift(F.fftshift(a)), a)
        assert F.fftshift(a, dim=0).tolist() == np.fft.fftshift(a.numpy(), 0).tolist()


def test_gradients_of_gradients_agree_with_differences():
    z = torch.tensor(random(2, 7, complex=True)).requires_grad_()
    a = torch.tensor(random(2, 6)).requires_grad_()
    w = torch.hann_window(4, dtype=torch.float64)
    for f, x in ((lambda t: F.fft(t, 5) ** 2, z), (lambda t: F.irfft(t, 9) ** 2, z), (lambda t: F.hfft(t, 8, norm="ortho") ** 2, z),
                 (lambda t: F.rfft(t, 7) ** 2, a), (lambda t: F.rfft2(t) ** 2, a), (lambda t: F.ihfft(t) ** 2, a), (lambda t: F.irfftn(t) ** 2, z),
                 (lambda t: torch.stft(t, 4, 1, window=w, return_complex=True) ** 2, a)):
        assert torch.autograd.gradcheck(f, (x,)) and torch.autograd.gradgradcheck(f, (x,))


def test_other_devices_fall_back_and_count_it():
    x = torch.tensor(random(3, 10))
    with torch.virtual("cuda", without=["fft", "rfft"]):
        y = x.to("cuda")
        with torch.fallback.policy("error"), pytest.raises(NotImplementedError, match="fft"):
            F.rfft(y)
        with torch.fallback.policy("count"):
            torch.fallback.reset()
            assert torch.equal(torch.view_as_real(F.rfft(y)).cpu(), torch.view_as_real(F.rfft(x)))
            assert any(use.op == "rfft" for use in torch.fallback.report())


# --- short-time transforms -------------------------------------------------------------------------------------------


def frames(x, n, hop, window, onesided=True):
    parts = np.stack([x[..., i : i + n] for i in range(0, x.shape[-1] - n + 1, hop)], -1) * window[:, None]
    return np.fft.rfft(parts, axis=-2) if onesided else np.fft.fft(parts, axis=-2)


def test_stft_takes_windows_steps_and_paddings_as_pytorch_does():
    x, w = random(2, 40), np.hanning(6) + 0.1
    t, tw = torch.tensor(x), torch.tensor(w)
    wide = np.pad(w, 1)
    padded = {"reflect": np.pad(x, ((0, 0), (4, 4)), mode="reflect"), "constant": np.pad(x, ((0, 0), (4, 4)))}
    for mode, signal in padded.items():
        close(torch.stft(t, 8, 3, 6, tw, pad_mode=mode, return_complex=True), frames(signal, 8, 3, wide))
    close(torch.stft(t, 8, 3, 6, tw, center=False, return_complex=True), frames(x, 8, 3, wide))
    close(torch.stft(t, 8, 3, 6, tw, center=False, align_to_window=True, return_complex=True), frames(np.pad(x, ((0, 0), (1, 1))), 8, 3, wide))
    close(torch.stft(t, 8, 3, 6, tw, normalized=True, return_complex=True), frames(padded["reflect"], 8, 3, wide) / np.sqrt(8))
    close(torch.stft(t, 8, 3, 6, tw, onesided=False, return_complex=True), frames(padded["reflect"], 8, 3, wide, False))
    close(torch.stft(t[0], 8, window=torch.ones(8, dtype=torch.float64), return_complex=True), frames(padded["reflect"][0], 8, 2, np.ones(8)))
    z = x + 1j * x[:, ::-1]
    close(torch.stft(torch.tensor(z), 8, 3, window=torch.ones(8), center=False), frames(z, 8, 3, np.ones(8), False))


def test_what_pytorch_warns_of_once_is_warned_of_once():
    program = """
import warnings
import naru as torch
warnings.simplefilter("always")
for _ in range(2):
    assert torch.stft(torch.ones(2, 40), 8, return_complex=False).shape == (2, 5, 21, 2)
    torch.istft(torch.stft(torch.ones(40), 8, return_complex=True), 8)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for text in ("A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage.", "stft with return_complex=False is deprecated.",
                 "Please provide the same window used by stft to make the inversion lossless."):
        assert done.stderr.count(text) == 1, done.stderr


def test_istft_gives_back_what_stft_was_given():
    x = torch.tensor(random(3, 50))
    w = torch.hann_window(10, dtype=torch.float64)
    for options in ({}, {"normalized": True}, {"onesided": False}):
        z = torch.stft(x, 10, 2, window=w, return_complex=True, **options)
        close(torch.istft(z, 10, 2, window=w, **options), x.numpy())
        close(torch.istft(z, 10, 2, window=w, length=33, **options), x[:, :33].numpy())
    z = torch.stft(x + 1j * x.flip(1), 10, 2, window=w)
    close(torch.istft(z, 10, 2, window=w, onesided=False, return_complex=True), (x + 1j * x.flip(1)).numpy())
    plain = torch.ones(10, dtype=torch.float64)
    close(torch.istft(torch.stft(x[0], 10, 5, window=plain, center=False, return_complex=True), 10, 5, window=plain, center=False), x[0].numpy())
    with pytest.warns(UserWarning, match="The length of signal is shorter than the length parameter"):
        assert torch.istft(z[0], 10, 2, window=w, length=60, onesided=False, return_complex=True)[-5:].abs().sum() == 0


@pytest.mark.parametrize(
    "options, text",
    [
        ({"n_fft": 0, "center": False}, r"stft\(torch.FloatTensor\[16\], n_fft=0, hop_length=0, win_length=0, .*expected 0 < n_fft < 16, but got n_fft=0"),
        ({"n_fft": 17, "center": False}, "expected 0 < n_fft < 16, but got n_fft=17"),
        ({"hop_length": 0}, "expected hop_length > 0, but got hop_length=0"),
        ({"win_length": 5}, "expected 0 < win_length <= n_fft, but got win_length=5"),
        ({"win_length": 2}, r"expected a 1D window tensor of size equal to win_length=2, but got window with size \[4\]"),
        ({"align_to_window": True}, "stft align_to_window should only be set when center = false"),
        ({"return_complex": None}, "stft requires the return_complex parameter be given for real inputs"),
        ({"window": torch.ones(4) + 0j, "onesided": True}, "Cannot have onesided output if window or input is complex"),
    ],
)
def test_what_stft_cannot_take_is_pytorchs_error(options, text):
    with pytest.raises(RuntimeError, match=text):
        torch.stft(torch.ones(16), **{"n_fft": 4, "window": torch.ones(4), "return_complex": True, **options})


@pytest.mark.parametrize(
    "options, text",
    [
        ({"window": torch.zeros(4)}, "window overlap add min: 1"),
        ({"window": torch.ones(3)}, "Invalid window shape. window has to be 1D and length of `win_length`"),
        ({"n_fft": 6, "window": torch.ones(6)}, "to match n_fft / 2 \\+ 1 when onesided=True, but got 3"),
        ({"onesided": False}, "to match n_fft when onesided=False, but got 3"),
        ({"hop_length": 5}, "expected 0 < hop_length <= win_length"),
        ({"return_complex": True}, "Cannot have onesided output if window or input is complex"),
        ({"window": torch.ones(4) + 0j}, "Complex windows are incompatible with return_complex=False"),
    ],
)
def test_what_istft_cannot_take_is_pytorchs_error(options, text):
    with pytest.raises(RuntimeError, match=text):
        torch.istft(torch.ones(3, 17) + 0j, **{"n_fft": 4, "window": torch.ones(4), **options})


def test_istft_wants_complex_numbers():
    with pytest.raises(TypeError, match="istft requires a complex-valued input tensor"):
        torch.istft(torch.ones(3, 17), 4, window=torch.ones(4))


# --- windows ---------------------------------------------------------------------------------------------------------

NUMPYS = {"bartlett": np.bartlett, "blackman": np.blackman, "hamming": np.hamming, "hann": np.hanning, "kaiser": lambda n: np.kaiser(n, 12.0)}


@pytest.mark.parametrize("name", NUMPYS)
def test_windows_are_numpys_symmetric_or_one_period(name):
    new, old = getattr(W, name), getattr(torch, name + "_window")
    for n in (1, 2, 5, 8):
        np.testing.assert_allclose(new(n, dtype=torch.float64).numpy(), NUMPYS[name](n), atol=1e-15)
        periodic = NUMPYS[name](n + 1)[:n] if n > 1 else [1]
        np.testing.assert_allclose(new(n, sym=False, dtype=torch.float64).numpy(), periodic, atol=1e-15)
        np.testing.assert_allclose(old(n, dtype=torch.float64).numpy(), periodic, atol=1e-15)
        np.testing.assert_allclose(old(n, periodic=False, dtype=torch.float64).numpy(), NUMPYS[name](n), atol=1e-15)
    assert new(0).shape == old(0).shape == (0,) and new(3).dtype == torch.float32 and old(3, dtype=torch.float16).dtype == torch.float16
    assert new(3, requires_grad=True).requires_grad


def test_windows_without_a_numpy_one_are_their_formulas():
    i = np.arange(6)
    np.testing.assert_allclose(W.cosine(6, dtype=torch.float64).numpy(), np.sin(np.pi * (i + 0.5) / 6))
    np.testing.assert_allclose(W.exponential(6, tau=2.0, dtype=torch.float64).numpy(), np.exp(-np.abs(i - 2.5) / 2))
    np.testing.assert_allclose(W.exponential(6, center=1.0, sym=False, dtype=torch.float64).numpy(), np.exp(-np.abs(i - 1)))
    np.testing.assert_allclose(W.gaussian(6, std=1.5, dtype=torch.float64).numpy(), np.exp(-(((i - 2.5) / 1.5) ** 2) / 2))
    np.testing.assert_allclose(W.general_hamming(6, alpha=0.6, dtype=torch.float64).numpy(), 0.6 - 0.4 * np.cos(2 * np.pi * i / 5), atol=1e-15)
    np.testing.assert_allclose(W.general_cosine(6, a=[0.4, 0.3, 0.2], dtype=torch.float64).numpy(), 0.4 - 0.3 * np.cos(2 * np.pi * i / 5) + 0.2 * np.cos(4 * np.pi * i / 5), atol=1e-15)
    assert W.nuttall(5)[2] == 1 and W.nuttall(5)[0].item() == pytest.approx(3.628e-4, abs=1e-7)
    np.testing.assert_allclose(torch.hamming_window(4, True, 0.6, 0.3, dtype=torch.float64).numpy(), 0.6 - 0.3 * np.cos(np.pi * np.arange(4) / 2), atol=1e-15)
    np.testing.assert_allclose(torch.kaiser_window(5, False, 3.0, dtype=torch.float64).numpy(), np.kaiser(5, 3.0))


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: W.hann(-1), ValueError, "general_cosine requires non-negative window length, got M=-1"),
        (lambda: W.kaiser(3, dtype=torch.int64), ValueError, "kaiser expects float32 or float64 dtypes, got: torch.int64"),
        (lambda: W.exponential(5, center=1.0), ValueError, "Center must be None for symmetric windows"),
        (lambda: W.exponential(5, tau=0.0), ValueError, "Tau must be positive, got: 0.0 instead."),
        (lambda: W.gaussian(5, std=-1.0), ValueError, "Standard deviation must be positive, got: -1.0 instead."),
        (lambda: W.kaiser(5, beta=-1.0), ValueError, "beta must be non-negative, got: -1.0 instead."),
        (lambda: W.general_cosine(5, a=[]), ValueError, "Coefficients cannot be empty"),
        (lambda: W.general_cosine(5, a=3), TypeError, "Coefficients must be a list/tuple"),
        (lambda: torch.hann_window(-1), RuntimeError, "hann_window requires non-negative window_length, got window_length=-1"),
        (lambda: torch.hann_window(3, dtype=torch.int64), RuntimeError, r"hann_window expects floating point dtypes, got: TensorOptions\(dtype=long int"),
    ],
)
def test_what_makes_no_window_is_pytorchs_error(call, error, text):
    with pytest.raises(error, match=text):
        call()
