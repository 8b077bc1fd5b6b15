"""Run by test_array_api_libraries.py in a separate process, because SciPy reads SCIPY_ARRAY_API at import. Calls functions of scikit-learn or SciPy
with tensors and with NumPy arrays, and prints, as JSON, a message for each mismatch ("" if there is none)."""
import json
import sys
import warnings

import naru
import numpy as np
from naru import array_api as xp

random = np.random.default_rng(0)


def values(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def wrong(call, arrays, device):
    """What is wrong with the results for tensors on a device: not on it, or not NumPy's values to float32's accuracy."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted, got = values(call(*arrays)), values(call(*(xp.asarray(a, device=device) for a in arrays)))
        for w, g in zip(wanted, got, strict=True):
            if isinstance(w, (np.ndarray, np.generic)):
                if not isinstance(g, naru.Tensor) or g.device.type != device:
                    return f"a result is {type(g).__name__} on {getattr(g, 'device', 'the host')}"
                g = g.cpu().numpy()
            np.testing.assert_allclose(np.asarray(g, dtype=complex), np.asarray(w, dtype=complex), rtol=2e-3, atol=2e-3)
    except Exception as e:  # noqa: BLE001
        return f"{type(e).__name__}: {e}"
    return ""


def fitted(estimator, *methods):
    """A call that fits the estimator and applies methods to the first array; signs of components are left out by their absolute values."""

    def call(x, *y):
        model = estimator.fit(x, *y)
        return [abs(made) if name == "transform" else made for name in methods for made in (getattr(model, name)(x),)]

    return call


def scikit_learn():
    import sklearn
    from sklearn import metrics
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Ridge
    from sklearn.metrics import pairwise
    from sklearn.naive_bayes import GaussianNB
    from sklearn.preprocessing import LabelEncoder, MaxAbsScaler, MinMaxScaler, Normalizer, PolynomialFeatures, StandardScaler

    sklearn.set_config(array_api_dispatch=True)
    x = random.normal(size=(40, 5)).astype(np.float32)
    y, t = (x[:, 0] + x[:, 1] > 0).astype(np.int64), (x @ np.arange(5.0)).astype(np.float32)
    x[:, 2] += 2 * y
    guess, near = np.roll(y, 3), t + 0.1 * x[:, 0]
    cases = {
        "LinearDiscriminantAnalysis": (fitted(LinearDiscriminantAnalysis(), "predict", "transform", "predict_proba"), x, y),
        "PCA full": (fitted(PCA(3, svd_solver="full"), "transform"), x),
        "PCA covariance_eigh": (fitted(PCA(3, svd_solver="covariance_eigh"), "transform"), x),
        "PCA randomized": (fitted(PCA(3, svd_solver="randomized", power_iteration_normalizer="QR", random_state=0), "transform"), x),
        "Ridge": (fitted(Ridge(solver="svd"), "predict"), x, t),
        "GaussianNB": (fitted(GaussianNB(), "predict", "predict_proba"), x, y),
        "LabelEncoder": (lambda labels: LabelEncoder().fit_transform(labels), y),
        **{type(e).__name__: (fitted(e, "transform"), x) for e in (StandardScaler(), MinMaxScaler(), MaxAbsScaler(), Normalizer(), PolynomialFeatures(2))},
        **{n: (getattr(metrics, n), y, guess) for n in ("accuracy_score", "zero_one_loss", "f1_score", "precision_score", "confusion_matrix", "hamming_loss")},
        **{n: (getattr(metrics, n), t, near) for n in ("r2_score", "mean_squared_error", "mean_absolute_error", "max_error", "explained_variance_score")},
        **{n: (getattr(pairwise, n), x, x[:7].copy()) for n in ("euclidean_distances", "cosine_similarity", "rbf_kernel", "polynomial_kernel")},
    }
    return {f"{name} {device}": wrong(call, arrays, device) for name, (call, *arrays) in cases.items() for device in ("cpu", "cuda")}


def scipy():
    from scipy import differentiate, fft, integrate, ndimage, signal, special, stats
    from scipy.cluster import vq
    from scipy.spatial.transform import Rotation

    x, v, w = random.random((4, 6)), random.normal(size=30), random.normal(size=30) + 0.3
    generic = {
        "special.logsumexp": (lambda a: special.logsumexp(a, axis=1), x), "special.softmax": (lambda a: special.softmax(a, axis=1), x),
        "special.xlogy": (special.xlogy, x + 1, x), "stats.skew": (stats.skew, v), "stats.kurtosis": (stats.kurtosis, v), "stats.zscore": (stats.zscore, v),
        "stats.variation": (stats.variation, x), "stats.gmean": (stats.gmean, x), "stats.describe": (lambda a: stats.describe(a)[2:], v),
        "stats.moment": (lambda a: stats.moment(a, [1, 2, 3]), v), "stats.circmean": (stats.circmean, x), "fft.fftn": (fft.fftn, x), "fft.rfft": (fft.rfft, x),
        "fft.irfft": (fft.irfft, x + 0j), "fft.fftshift": (fft.fftshift, x), "signal.fftconvolve": (signal.fftconvolve, v, w),
        "signal.hilbert": (signal.hilbert, v), "cluster.whiten": (vq.whiten, x), "integrate.trapezoid": (integrate.trapezoid, x),
        "spatial.Rotation": (lambda a: Rotation.from_quat(a[:, :4]).as_matrix(), x),
    }  # fmt: skip
    low, sections = signal.butter(3, 0.3), signal.butter(4, 0.3, output="sos")

    def filters(a, *made):
        return [xp.asarray(f) for f in made] if isinstance(a, naru.Tensor) else made

    host = {  # these have host-only code, or create arrays in SciPy
        "special.erf": (special.erf, x), "special.expit": (special.expit, x), "special.gammaln": (special.gammaln, x + 1), "special.ndtri": (special.ndtri, x), "special.betainc": (special.betainc, x, x + 1, x),
        "stats.ttest_ind": (stats.ttest_ind, v, w), "stats.pearsonr": (lambda a, b: stats.pearsonr(a, b).statistic, v, w), "signal.filtfilt": (lambda a: signal.filtfilt(*filters(a, *low), a), v), "signal.sosfilt": (lambda a: signal.sosfilt(*filters(a, sections), a), v),
        "ndimage.gaussian_filter": (lambda a: ndimage.gaussian_filter(a, 1.0), x), "stats.entropy": (stats.entropy, x), "signal.detrend": (signal.detrend, v),
        "differentiate.derivative": (lambda a: differentiate.derivative(lambda z: z * z * z, a).df, x[0]),
    }  # fmt: skip
    found = {f"{name} {device}": wrong(call, arrays, device) for name, (call, *arrays) in generic.items() for device in ("cpu", "cuda")}
    return found | {f"{name} cpu": wrong(call, arrays, "cpu") for name, (call, *arrays) in host.items()}


if __name__ == "__main__":
    print(json.dumps({"scikit-learn": scikit_learn, "scipy": scipy}[sys.argv[1]]()))
