"""scikit-learn and SciPy compute with tensors through the array API, where they are told to; results are tensors, values those of NumPy arrays."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PRELUDE = """
import numpy as np
import tensorrt_lite as trt

generator = np.random.default_rng(0)
a, labels = generator.normal(size=(30, 3)), np.array([0, 1] * 15)
a[:, 2] += labels
x, y = trt.asarray(a.copy()), trt.asarray(labels.copy())


def check(name, made, expected):
    assert isinstance(made, (trt.Tensor, float)), (name, type(made))
    np.testing.assert_allclose(np.asarray(made), np.asarray(expected), rtol=1e-7, atol=1e-10, err_msg=name)
    print(name)
"""

SCIKIT_LEARN = """
from sklearn import set_config
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
from sklearn.preprocessing import MinMaxScaler, StandardScaler

set_config(array_api_dispatch=True)
check("accuracy", accuracy_score(y, 1 - y), accuracy_score(labels, 1 - labels))
check("squared error", mean_squared_error(x, x * 1.5), mean_squared_error(a, a * 1.5))
check("r2", r2_score(x, x * 0.9), r2_score(a, a * 0.9))
check("scaled", StandardScaler().fit_transform(x), StandardScaler().fit_transform(a))
check("range", MinMaxScaler().fit_transform(x), MinMaxScaler().fit_transform(a))
check("components", abs(PCA(2, svd_solver="full").fit_transform(x)), abs(PCA(2, svd_solver="full").fit_transform(a)))
check("ridge", Ridge(solver="svd").fit(x, x[:, 0]).coef_, Ridge(solver="svd").fit(a, a[:, 0]).coef_)
check("discriminant", LinearDiscriminantAnalysis().fit(x, y).predict(x), LinearDiscriminantAnalysis().fit(a, labels).predict(a))
"""

SCIPY = """
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.signal
import scipy.special
import scipy.stats
from scipy.spatial.transform import Rotation

for name, function in {
    "skew": scipy.stats.skew, "z-scores": scipy.stats.zscore, "geometric mean": lambda v: scipy.stats.gmean(abs(v)), "t": lambda v: scipy.stats.ttest_1samp(v, 0.0).pvalue,
    "logsumexp": scipy.special.logsumexp, "expit": scipy.special.expit, "detrend": scipy.signal.detrend, "whiten": scipy.cluster.vq.whiten,
    "trapezoid": scipy.integrate.trapezoid, "rfft": lambda v: abs(scipy.fft.rfft(v)),
}.items():
    check(name, function(x), function(a))
check("rotation", Rotation.from_quat(trt.asarray([0.0, 0.6, 0.0, 0.8], dtype=trt.float64)).as_matrix(), Rotation.from_quat([0.0, 0.6, 0.0, 0.8]).as_matrix())
"""


def run(program: str) -> list[str]:
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_scikit_learn():
    sklearn = pytest.importorskip("sklearn")
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9):
        pytest.skip("needs scikit-learn 1.9")
    assert len(run(PRELUDE + SCIKIT_LEARN)) == 8


def test_scipy():
    scipy = pytest.importorskip("scipy")
    if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17):
        pytest.skip("needs SciPy 1.17")
    assert len(run(PRELUDE + SCIPY)) == 11


def test_array_api_compat_under_the_alias():
    pytest.importorskip("array_api_compat")
    program = """
import tensorrt_lite.compat

tensorrt_lite.compat.install()
import array_api_compat
import torch

x = torch.arange(6.0).reshape(2, 3)
xp = array_api_compat.array_namespace(x)
print(xp.__name__, xp.sum(x, axis=0).tolist(), xp.add(x, torch.tensor(1, dtype=torch.float64)).dtype, xp.unique_values(x).shape[0], round(float(xp.linalg.vector_norm(x)) ** 2, 3))
"""
    [line] = run(program)
    assert line.startswith("array_api_compat.torch [3.0, 5.0, 7.0] torch.float64 6 55.0")
