"""The command line: parsing, output and exit status of commands, with and without Cyclopts."""
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import naru
from naru.__main__ import main
from naru._command import line, plain, screen

HOME = str(Path(naru.__file__).parents[1])
HAS_CYCLOPTS = importlib.util.find_spec("cyclopts") is not None
BOTH = [
    pytest.param(True, id="cyclopts", marks=pytest.mark.skipif(not HAS_CYCLOPTS, reason="cyclopts is not installed (./run installs it)")),
    pytest.param(False, id="argparse"),
]


@pytest.fixture(params=BOTH)
def cyclopts(request, monkeypatch):
    """Whether Cyclopts is there."""
    monkeypatch.setattr(line, "has_cyclopts", lambda: request.param)
    return request.param


def command(*arguments, cwd=None, stdin=None, **environment):
    """(status, output, errors) of a process of its own; a variable that is None is taken out."""
    full = {**os.environ, "PYTHONPATH": HOME, **environment}
    env = {name: value for name, value in full.items() if value is not None}
    done = subprocess.run([sys.executable, "-m", "naru", *arguments], cwd=cwd, env=env, input=stdin, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


# --- parsing ---------------------------------------------------------------------------------------------

LINES = {
    "devices": ([], {}),
    "devices --json --coverage": ([], {"json": True, "coverage": True}),
    "doctor": ([], {}),
    "doctor cuda --json": (["cuda"], {"json": True}),
    "selftest --quick cuda:0": (["cuda:0"], {"quick": True}),
    "check --json src": (["src"], {"json": True}),
    "bench --device cpu --device=cuda:1 --size 8 --no-peers --dtype float64": ([], {"device": ["cpu", "cuda:1"], "size": 8, "no_peers": True, "dtype": "float64"}),
    "bench --json - --picture a.svg": ([], {"json": "-", "picture": "a.svg"}),
    "memory --out a.html --open train.py --out b --help": (["train.py", "--out", "b", "--help"], {"out": "a.html", "open": True}),
    "memory --device=cuda:1 -m package.train -c 3": (["-m", "package.train", "-c", "3"], {"device": "cuda:1"}),
    "memory -- --strange.py --json": (["--strange.py", "--json"], {}),
    "diverge --a mps --b cuda,NARU_FUSE=0 train.py --a 1": (["train.py", "--a", "1"], {"a": "mps", "b": "cuda,NARU_FUSE=0"}),
    "run train.py --random pytorch": (["train.py", "--random", "pytorch"], {}),
    "run --random pytorch train.py": (["train.py"], {"random": "pytorch"}),
    "run --random=philox -": (["-"], {"random": "philox"}),
    "completion zsh --install": (["zsh"], {"install": True}),
    "jupyter install --name x --virtual cuda:4": ([], {"name": "x", "virtual": "cuda:4"}),
    "top --interval 2.5 --once": ([], {"interval": 2.5, "once": True}),
    "version --json": ([], {"json": True}),
}  # fmt: skip


@pytest.mark.parametrize("words", LINES)
def test_a_line_is_the_same_call_with_cyclopts_and_without(words, cyclopts):
    name, rest = line.command_of(words.split())
    positional, named = line.parse(name, rest, line.by_cyclopts if cyclopts else line.by_argparse)
    # Optional parameters may appear with their defaults.
    defaults = {p.name: p.default for p in plain.parameters(line.COMMANDS[name])}
    assert positional == LINES[words][0] and {n: v for n, v in named.items() if v != defaults[n]} == LINES[words][1]


WRONG = {
    "fly": "there is no command 'fly'; the commands are run, torchrun, check",
    "devices --what": "--what",
    "devices extra": "extra",
    "doctor tpu": "there is no kind 'tpu'; the kinds are cpu, cuda",
    "doctor cuda mps": "mps",
    "selftest": "which device? e.g. naru selftest cuda:0",
    "selftest nothing": "nothing",
    "selftest cuda:77": "cuda:77",
    "check": "which script or folder?",
    "check /nowhere/a.py": "can't open file '/nowhere/a.py'",
    "bench --size x": "--size: wanted a number, got 'x'",
    "bench --size": "--size",
    "bench --size 0": "--size: wanted a number from 1 on, got 0",
    "bench --dtype int8": "--dtype: wanted float32, float64, float16 or bfloat16, got 'int8'",
    "run": "which script?",
    "run --random": "which script?",
    "run --random dice a.py": "--random: wanted philox or pytorch, got 'dice'",
    "run --what a.py": "--what",
    "run -q a.py": "what is '-q'?",
    "run -c": "-c: the code is missing",
    "run -m": "-m: the name of a module is missing",
    "memory --device nothing a.py": "nothing",
    "memory --out /nowhere/deep/a.html a.py": "can't write into the folder '/nowhere/deep'",
    "memory --open --out a.txt a.py": "must end in .html",
    "completion tcsh": "wanted bash, zsh or fish, got 'tcsh'",
    "jupyter fly": "there is no command 'jupyter fly'",
    "jupyter install --name a/b": "--name: wanted letters, digits",
    "top --interval 0": "wanted 0.1 seconds or more, got 0",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_with_a_line_is_said_in_one_line_and_the_status_is_2(words, cyclopts, capsys):
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("naru") and err.count("\n") == 1 and WRONG[words] in err, err


# NARU_SELF_CHECK is set by selftest for its process.
@pytest.fixture(autouse=True)
def put_back(monkeypatch):
    monkeypatch.setenv("NARU_SELF_CHECK", "0")


@pytest.mark.parametrize("words", ["devices", "doctor cuda", "selftest cpu", "bench --size 8", "memory a.py", "run a.py"])
def test_variables_that_name_devices_that_cannot_be_are_one_line_and_the_status_2(words, tmp_path):
    (tmp_path / "a.py").write_text("import torch\ntorch.cuda.is_available()\n")
    status, out, err = command(*words.split(), cwd=tmp_path, NARU_VIRTUAL="cuda:many")
    assert (status, out) == (2, "") and err == "naru: NARU_VIRTUAL: 'many' is not a number from 0 to 32; got 'cuda:many'. Wanted kinds and numbers, with settings in parentheses, as in cuda:4,mps:1 or cuda:2(memory=64MiB;copy_delay=3ms)\n"


# --- help and completion -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", line.COMMANDS)
def test_the_help_of_a_command_names_every_parameter_and_says_what_it_is(words, cyclopts, capsys):
    text, told = plain.described(line.COMMANDS[words])
    wanted = plain.parameters(line.COMMANDS[words])
    assert set(told) == {p.name for p in wanted} and all(len(t) > 4 for t in told.values()) and len(text.split("\n")[0]) > 8
    assert main([*words.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert all((p.option or p.name.upper()) in shown or p.choices and p.choices[0] in shown for p in wanted), shown
    assert main(["help", *words.split()]) == 0 and capsys.readouterr().out == shown


def test_the_list_of_commands_has_each_and_the_exit_statuses(cyclopts, capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(words.split()[-1] in shown for words in {w.split()[0] for w in line.COMMANDS}) and "Exit status" in shown
    assert main(["--help"]) == 0 and capsys.readouterr().out == shown


@pytest.mark.parametrize("page", ["docs/command-line.md", "docs/ko/command-line.md"])
def test_the_page_has_every_command_and_every_option(page):
    rows = [row for row in (Path(__file__).resolve().parents[3] / page).read_text().splitlines() if row.startswith("| `naru ")]
    assert len(rows) == len(line.COMMANDS)
    for words, function in line.COMMANDS.items():
        (row,) = (row for row in rows if row.startswith((f"| `naru {words}`", f"| `naru {words} ")))
        # `naru --version` is documented separately.
        assert set(re.findall(r"(?<!naru )--[a-z-]+", row)) == {p.option for p in plain.parameters(function) if p.option}, row


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands_and_their_options(shell, cyclopts, capsys):
    status = main(["completion", shell])
    out, err = capsys.readouterr()
    if cyclopts:
        assert status == 0 and all(words.split()[0] in out for words in line.COMMANDS) and "no-peers" in out
    else:
        assert status == 2 and "pip install cyclopts rich" in err and out == ""


# --- output of commands --------------------------------------------------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="rich is not installed (./run installs it)")
def test_colours_are_for_terminals_and_can_be_taken_away_and_asked_for(monkeypatch, capsys):
    def shown(**variables):
        for name in ("FORCE_COLOR", "NO_COLOR"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"TERM": "xterm", **variables}.items():
            monkeypatch.setenv(name, value)
        assert main(["doctor", "cpu"]) == 0
        return capsys.readouterr().out

    assert "\033[" not in shown()
    assert "\033[32mavailable" in shown(FORCE_COLOR="1")
    assert "\033[3" not in shown(FORCE_COLOR="1", NO_COLOR="1")


def test_progress_is_silent_where_there_is_no_terminal(capsys):
    with screen.progress("reading", 2) as tell:
        tell("a")
        tell("b")
    assert capsys.readouterr() == ("", "")


def test_doctor_names_a_virtual_device_for_every_kind_that_is_absent():
    status, out, _ = command("doctor", NARU_VIRTUAL="", CUDA_VISIBLE_DEVICES="", HIP_VISIBLE_DEVICES="")
    absent = [part for part in out.split("\n") if "not available" in part]
    assert status == 0 and absent
    for text in absent:
        kind = text.partition(":")[0]
        assert f"NARU_VIRTUAL={kind}:1" in out, out


def test_figures_can_be_had_as_json(tmp_path, capsys):
    (tmp_path / "a.py").write_text("import torch\ntorch.sparse.spsolve\ntorch.compile\n")
    assert main(["check", "--json", str(tmp_path)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["files"] == 1 and [(f["file"], f["line"]) for f in found["missing"]] == [(str(tmp_path / "a.py"), 2)]
    assert [f["line"] for f in found["notes"]] == [3]
    assert main(["version", "--json"]) == 0 and json.loads(capsys.readouterr().out)["naru"] == str(naru.__version__)
    assert main(["doctor", "--json"]) == 0
    kinds = {d["kind"]: d for d in json.loads(capsys.readouterr().out)}
    assert kinds["cpu"]["available"] and "libraries" in kinds["cpu"]


def test_the_doctor_says_why_an_installed_onednn_is_not_in_use(monkeypatch, tmp_path):
    from naru._command import report

    class File:
        name = "libdnnl.so.3"

        def locate(self):
            return tmp_path / "libdnnl.so.3"

    (tmp_path / "libdnnl.so.3").write_text("no library")
    monkeypatch.delenv("NARU_MATMUL", raising=False)
    monkeypatch.setattr("importlib.metadata.files", lambda package: [File()])
    assert "onednn-cpu-gomp: " in report.not_opened("OpenBLAS") and "libdnnl.so.3" in report.not_opened("OpenBLAS")
    assert report.not_opened("oneDNN 3.2.0, OpenBLAS") is None
    monkeypatch.setenv("NARU_MATMUL", "openblas")
    assert report.not_opened("OpenBLAS") is None


# --- programs ------------------------------------------------------------------------------------------------------


def test_code_runs_as_python_runs_it(tmp_path):
    (tmp_path / "beside.py").write_text("value = 7\n")
    code = "import sys, torch, beside; print(torch.__spec__.name, sys.argv, beside.value, __name__, '__file__' in globals())"
    told = "naru ['-c', 'x', '--random'] 7 __main__ False\n"
    assert command("run", "-c", code, "x", "--random", cwd=tmp_path) == (0, told, "")
    assert command("run", "-", "x", cwd=tmp_path, stdin=code) == (0, "naru ['-', 'x'] 7 __main__ False\n", "")
    status, _, err = command("run", "-c", "def f():\n    1 / 0\nf()")
    assert status == 1 and err.startswith('Traceback (most recent call last):\n  File "<string>", line 3, in <module>') and "runner" not in err
    assert command("run", "-c", "raise SystemExit(9)")[0] == 9
    assert "<stdin>" in command("run", "-", stdin="x = (")[2]


@pytest.mark.parametrize("way", ["-c", "-", "-m", "file"])
def test_interpreters_that_a_program_starts_have_naru_as_torch_whichever_way_it_runs(way, tmp_path):
    inner = "import torch; print(torch.__spec__.name, flush=True)"
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {inner!r}], check=True)\n"
    (tmp_path / "starts.py").write_text(code)
    words = {"-c": ["-c", code], "-": ["-"], "-m": ["-m", "starts"], "file": ["starts.py"]}[way]
    assert command("run", *words, cwd=tmp_path, stdin=code if way == "-" else None) == (0, "naru\n", "")


def test_options_behind_a_program_are_its_own(tmp_path):
    (tmp_path / "a.py").write_text("import sys\nprint(sys.argv[1:])\n")
    assert command("run", "a.py", "--help", "-h", "--random", cwd=tmp_path) == (0, "['--help', '-h', '--random']\n", "")


def test_a_script_starts_without_what_draws_help():
    code = "import sys, torch; print([m for m in ('cyclopts', 'rich', 'naru._command.line', 'naru._command.check') if m in sys.modules])"
    assert command("run", "-c", code)[1] == "['naru._command.line']\n"
    alone = subprocess.run([sys.executable, "-c", code.replace("torch", "naru")], env={**os.environ, "PYTHONPATH": HOME}, capture_output=True, text=True)
    assert alone.stdout == "[]\n"


def test_memory_writes_the_page_and_the_figures_of_a_script(tmp_path):
    (tmp_path / "a.py").write_text("import sys, torch\nx = torch.ones(1 << 20, device='cuda')\ntorch.cuda.synchronize()\nprint(sys.argv[1:])\n")
    status, out, err = command("memory", "--json", "a.py", "--out", "x", cwd=tmp_path)
    printed, _, rest = out.partition("\n")
    found = json.loads(rest)
    assert status == 0 and printed == "['--out', 'x']" and found["peak"] >= 4 << 20
    assert found["device"] == "cuda:0" and "a.py:2" in found["holders"][0]["line"] and found["holders"][0]["bytes"] == 4 << 20
    assert found["page"] == str(tmp_path / "memory.html") and "<html" in (tmp_path / "memory.html").read_text()[:200].lower()
    assert "naru memory: cuda:0: at most 4.00 MiB in tensors" in err and "a.py:2" in err


@pytest.mark.parametrize("end, wanted", [("raise SystemExit(5)", 5), ("1 / 0", 1)])
def test_memory_writes_the_page_of_a_script_that_fails_and_has_its_status(tmp_path, end, wanted):
    (tmp_path / "a.py").write_text(f"import torch\nx = torch.ones(1 << 20)\nx.sum().item()\n{end}\n")
    status, _, err = command("memory", "--device", "cpu", "--out", "there.html", "a.py", cwd=tmp_path)
    assert status == wanted and (tmp_path / "there.html").exists() and ("ZeroDivisionError" in err) == (wanted == 1)
    assert command("memory", "nothing.py", cwd=tmp_path)[0] == 2 and not (tmp_path / "memory.html").exists()


def test_top_shows_the_programs_that_were_told_to_tell_and_forgets_those_that_ended(tmp_path):
    where = {"XDG_RUNTIME_DIR": str(tmp_path), "PYTHONPATH": HOME}
    code = "import torch, sys\nx = torch.ones(1 << 20, device='cuda:1'); x.add_(1); torch.cuda.synchronize(1); print('ready', flush=True); sys.stdin.read()"
    told = tmp_path / "naru"
    command_line = [sys.executable, "-m", "naru", "run", "-c", code]
    with subprocess.Popen(command_line, env={**os.environ, **where, "NARU_TOP": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        file = told / f"top-{process.pid}.json"
        until = time.monotonic() + 60
        while not (file.exists() and '"device": "cuda:1"' in file.read_text()):
            assert time.monotonic() < until, "the process tells nothing"
            time.sleep(0.05)
        (told / "top-1999999999.json").write_text('{"pid": 1999999999}')
        status, out, _ = command("top", "--json", **where)
        (found,) = json.loads(out)["programs"]
        devices = {d["device"]: d for d in found["devices"]}
        assert status == 0 and found["pid"] == process.pid and set(devices) == {"cpu", "cuda:1"}
        assert devices["cuda:1"]["allocated"] == 4 << 20 and devices["cuda:1"]["queued"] == 0 and devices["cuda:1"]["instructions"] >= 1
        assert os.listdir(told) == [file.name] and told.stat().st_mode & 0o077 == 0
        status, out, _ = command("top", **where)
        assert status == 0 and f"{process.pid}" in out and "4 MiB" in out
        process.stdin.close()
    assert os.listdir(told) == []
    assert command("top", **where) == (0, "no program of yours tells of itself: start one with NARU_TOP=1\n", "")


def test_a_process_that_was_not_told_to_tell_does_not(tmp_path):
    code = "import naru, sys, threading; print([m for m in sys.modules if m.startswith('naru._command')], threading.active_count())"
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "PYTHONPATH": HOME, "NARU_TOP": "0"}
    assert subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout == "[] 1\n" and os.listdir(tmp_path) == []


@pytest.mark.parametrize("words", [["--help"], ["version"], ["completion", "bash"], ["devices"], ["top", "--once"], ["top", "--json"]], ids=" ".join)
def test_a_reader_that_goes_away_is_no_error_of_the_command(words):
    reader, writer = os.pipe()
    os.close(reader)
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # as in a shell: a closed pipe is detected late
    try:
        done = subprocess.run([sys.executable, "-m", "naru", *words], env=buffered, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
