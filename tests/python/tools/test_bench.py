"""`naru bench`: its output and files, with small matrices. Times are not checked, only that the figures are consistent."""
import importlib.util
import json
import os
import subprocess
import sys

import pytest

import naru
from naru._command import bench_report as bench
from naru.__main__ import main

COPIES = {"within", "to_device_pinned", "to_device_pageable", "to_host_pinned", "to_host_pageable"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What --json writes, and the table."""
    path = tmp_path_factory.mktemp("bench") / "figures.json"
    done = subprocess.run([sys.executable, "-m", "naru", "bench", "--size", "64", "--repeat", "3", "--json", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text()), done.stdout


def test_every_device_is_measured_and_the_figures_belong_together(written):
    found, _ = written
    assert found["work"] == {"size": 64, "dtype": "float32", "count": 3, "operations": 2 * 64**3 * 3}
    ours = [r for r in found["results"] if r["library"] == "naru"]
    assert [r["device"] for r in ours] == [d["device"] for d in naru._C.devices()]
    for r in found["results"]:
        assert r["right"] and r["product"]["tflops"] == pytest.approx(found["work"]["operations"] / r["product"]["seconds"] / 1e12)
        for c in r["copy"].values():
            assert c["gb_per_s"] == pytest.approx(c["bytes"] / c["seconds"] / 1e9) and c["bytes"] == 64 * 64 * 4
        assert r["launch"]["queued_seconds"] > 0 and r["launch"]["synchronous_seconds"] > 0
        if r["peak"]["tflops"]:
            assert r["peak"]["share"] == pytest.approx(r["product"]["tflops"] / r["peak"]["tflops"])
    for r in ours:
        assert set(r["copy"]) == ({"within"} if r["device"] == "cpu" else COPIES)
        assert r["virtual"] == (r["device"] != "cpu" and naru.device(r["device"]).type in ("cuda", "mps"))


def test_numpy_is_measured_beside_and_what_is_left_out_has_a_reason(written):
    found, text = written
    beside = {r["library"] for r in found["results"]} - {"naru"}
    left_out = {x["library"]: x["reason"] for x in found["left_out"]}
    assert "numpy" in beside and beside | set(left_out) == {"numpy", "torch", "mlx"}
    for library, reason in left_out.items():
        assert reason and f"without {library}: {reason}" in text


def test_the_table_has_a_line_for_each_result_in_aligned_columns(written):
    found, text = written
    lines = text.splitlines()
    assert lines[0].startswith("3 products of (64, 64) matrices of float32 on ")
    head, units, *rows = lines[2:lines.index("", 2)]
    assert len(rows) == len(found["results"])
    for at, unit in (("TFLOP/s", ""), ("queued", "µs"), ("to pinned", "GB/s")):
        assert units[head.index(at):].startswith(unit)
    assert "cuda:0 (virtual)" in text and "peak of cpu: " in text


def test_a_device_a_dtype_and_sizes_can_be_chosen(capsys):
    assert main(["bench", "--size", "8", "--dtype", "float64", "--device", "cuda:1", "--device", "cuda:1", "--repeat", "1", "--no-peers", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [r["device"] for r in found["results"]] == ["cuda:1"] and found["work"]["dtype"] == "float64"
    assert found["results"][0]["product"]["error"] < 1e-12


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_type_whose_peak_is_not_known_says_so(dtype, capsys):
    assert main(["bench", "--size", "8", "--dtype", dtype, "--device", "cpu", "--no-peers", "--repeat", "1"]) == 0
    assert f"peak of cpu: the processors' rate for {dtype} is not known" in capsys.readouterr().out


def test_a_device_without_the_type_is_left_out_with_the_reason(capsys):
    with naru.virtual("mps", without="fp64"):
        assert main(["bench", "--size", "8", "--dtype", "float64", "--device", "mps", "--no-peers", "--repeat", "1"]) == 0
        assert "without naru on mps:0: it has no float64" in capsys.readouterr().out


def test_wrong_products_are_marked_and_the_status_is_1(monkeypatch, capsys):
    monkeypatch.setattr(bench.Naru, "product", lambda self, a, b: a @ b + 1)
    monkeypatch.setattr(bench.Naru, "error", lambda self, a, b: 1.0)
    assert main(["bench", "--size", "8", "--device", "cpu", "--no-peers", "--repeat", "1"]) == 1
    assert "cpu WRONG" in capsys.readouterr().out


def test_bad_arguments_are_said(capsys):
    for arguments, text in ((["--size", "0"], "wanted a number from 1 on, got 0"), (["--dtype", "int8"], "int8"), (["--what"], "--what")):
        assert main(["bench", *arguments]) == 2 and text in capsys.readouterr().err
    assert main(["bench", "--device", "cuda:7"]) == 2
    assert "invalid device ordinal" in capsys.readouterr().err


def test_a_picture_is_drawn_where_matplotlib_is_and_else_the_reason_is_said(tmp_path, capsys):
    status = main(["bench", "--size", "8", "--device", "cpu", "--no-peers", "--repeat", "1", "--picture", str(tmp_path / "bench.svg")])
    if importlib.util.find_spec("matplotlib"):
        assert status == 0 and "<svg" in (tmp_path / "bench.svg").read_text()
    else:
        assert status == 2 and "--picture needs matplotlib" in capsys.readouterr().err


def side(device, library, tflops, peak, copies, queued, waited):
    launch = {"queued_seconds": queued * 1e-6, "synchronous_seconds": waited * 1e-6}
    kinds = ("within", "to_device_pinned", "to_device_pageable", "to_host_pinned", "to_host_pageable")
    copy = {kind: {"gb_per_s": v} for kind, v in zip(kinds, copies)}
    return {"device": device, "library": library, "product": {"tflops": tflops}, "peak": {"tflops": peak}, "copy": copy, "launch": launch}


@pytest.mark.parametrize("count", [1, 4])
def test_a_picture_shows_each_figure_clips_nothing_and_can_be_read_in_black_and_white(count):
    pytest.importorskip("matplotlib", reason="matplotlib, which draws the picture, is not installed")
    from matplotlib import pyplot
    from naru._command.bench_report import figure_of

    gpu = (1500.0, 25.0, 6.0, 24.0, 5.0)
    rows = [side("cpu", "naru", 0.31, 0.4, (11.0,), 1, 2), side("cuda:0", "naru", 41, 61, gpu, 3, 12), side("cuda", "PyTorch", 43, 61, gpu, 4, 13),
            side("cpu", "NumPy", 0.25, None, (12.0,), 0.2, 0.3)][:count]  # fmt: skip
    figure = figure_of({"work": {"size": 4096, "dtype": "float32"}, "results": rows})
    try:
        figure.canvas.draw()
        whole, drawn = figure.bbox, [[bar.get_width() for bar in axes.patches] for axes in figure.axes]
        assert drawn[0] == [r["product"]["tflops"] for r in rows]
        assert sorted(drawn[1]) == sorted(c["gb_per_s"] for r in rows for c in r["copy"].values())
        assert drawn[2] == pytest.approx([r["launch"][k] * 1e6 for k in ("queued_seconds", "synchronous_seconds") for r in rows])
        for axes in figure.axes:
            bars = [bar.get_window_extent() for bar in axes.patches]
            texts = [*axes.texts, axes.title, axes.xaxis.label, *axes.get_yticklabels(), *(axes.get_legend().get_texts() if axes.get_legend() else ())]
            for text in texts:
                box = text.get_window_extent()
                assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1, text.get_text()
            if legend := axes.get_legend():
                box = legend.get_window_extent()
                assert not any(box.overlaps(bar) for bar in bars) and not box.overlaps(axes.title.get_window_extent())
                hatches = [patch.get_hatch() for patch in legend.get_patches()]
                assert len(set(hatches)) == len(hatches)  # distinguishable without colors
            assert len({t.get_text() for t in axes.texts}) > 0 and not any("e" in t.get_text() for t in axes.get_xticklabels(which="both"))
            assert all(bar.x1 <= axes.bbox.x1 for bar in bars)
    finally:
        pyplot.close(figure)


def test_a_library_that_fails_is_left_out_with_its_own_words(tmp_path, monkeypatch):
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx" / "__init__.py").write_text("")
    (tmp_path / "mlx" / "core.py").write_text("raise RuntimeError('no Metal here')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    from naru._command.bench import peer

    assert peer("mlx", 8, "float32", 1) == ([], "RuntimeError: no Metal here")


def test_another_library_is_measured_on_the_devices_that_were_asked_for():
    from naru._command.bench import peer

    assert peer("numpy", 8, "float32", 1, ["cuda:0"]) == ([], "")
    assert [row["device"] for row in peer("numpy", 8, "float32", 1, ["cuda:0", "cpu"])[0]] == ["cpu"]


H100 = {"kind": "cuda", "name": "NVIDIA H100", "on_host": False, "clock_rate": 1_830_000, "multi_processor_count": 132, "major": 9, "minor": 0, "uuid": ""}


@pytest.mark.parametrize("dtype, tflops", [("float32", 61.8), ("float64", 61.8), ("float16", 989), ("bfloat16", 989)])
def test_the_peak_of_an_nvidia_gpu_is_as_its_data_sheet_has_it(dtype, tflops):
    peak, source = bench.peak_of(H100, dtype, 0)
    assert peak == pytest.approx(tflops, rel=0.001) and source.startswith("declared: ")


def test_the_switch_for_tf32_changes_the_peak():
    before = naru.get_float32_matmul_precision()
    naru.set_float32_matmul_precision("high")
    try:
        assert bench.peak_of(H100, "float32", 0)[0] == pytest.approx(494.7, rel=0.001)
    finally:
        naru.set_float32_matmul_precision(before)


def test_a_device_of_which_nothing_is_known_has_no_peak():
    assert bench.peak_of({**H100, "major": 6}, "float32", 0) == (None, "no figure is known for NVIDIA H100")
    assert bench.peak_of({**H100, "kind": "xpu"}, "float32", 0)[0] is None
