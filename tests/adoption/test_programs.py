"""A program under ``holdfast run`` cannot tell that it is: Python runs it, in an interpreter of its own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from adoption_runs import HOLDFAST, python, run

from holdfast.adoption.launch import SITE

SHOWS = """
import json, os, sys
names = ("__name__", "__file__", "__package__", "__cached__", "__doc__")
print(json.dumps({name: globals()[name] for name in names} | {
    "argv": sys.argv, "path": sys.path, "flags": str(sys.flags), "spec": str(__spec__ and __spec__.name),
    "main": sys.modules["__main__"].__dict__ is globals(), "stdin": sys.stdin.read(), "torch": "torch" in sys.modules,
    "hidden": "sitecustomize" in sys.modules and not sys.modules["sitecustomize"].__file__.count("holdfast"),
}))
"""
NOTHING = "holdfast: the program made no DataLoader\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shows.py").write_text(SHOWS)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(SHOWS)
    (tmp_path / "package" / "inner.py").write_text(SHOWS)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["shows.py", "--epochs", "3", "--", "-m"],
        ["./shows.py"],
        ["package"],
        ["-m", "package", "--quiet"],
        ["-m", "package.inner", "x"],
    ],
    ids=" ".join,
)
def test_it_sees_what_it_sees_with_python(folder: Path, words: list[str]):
    plain, ours = python(folder, *words, stdin="typed"), run(folder, "--no-warm", *words, stdin="typed")
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, plain.stdout, NOTHING)


def test_the_programs_own_sitecustomize_is_imported(folder: Path):
    own = folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os; os.environ['CUSTOM'] = __file__")
    (folder / "says.py").write_text("import os, sitecustomize; print(os.environ['CUSTOM'], sitecustomize.__file__)")
    path = os.pathsep.join([str(own), os.environ.get("PYTHONPATH", "")])
    file = own / "sitecustomize.py"
    assert run(folder, "--no-warm", "says.py", PYTHONPATH=path).stdout == f"{file} {file}\n"


ENDINGS = {
    "returns": "",
    "exits with a number": "import sys; sys.exit(3)",
    "exits with a text": "import sys; sys.exit('no such split')",
    "raises": "def main():\n    raise ValueError('no such split')\nmain()",
    "is no Python": "def (",
    "leaves at once": "import os; os._exit(5)",
    "is interrupted": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "is terminated": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_ends_as_with_python(tmp_path: Path, ending: str):
    """Exit code, or signal, and what Python prints; behind that is the summary, if Python had the time."""
    (tmp_path / "program.py").write_text(ENDINGS[ending])
    plain, ours = python(tmp_path, "program.py"), run(tmp_path, "--no-warm", "program.py")
    summary = "" if ending in ("leaves at once", "is terminated") else NOTHING
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, "", plain.stderr + summary)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_program_may_have_its_streams_closed(folder: Path, closed: str):
    (folder / "writes.py").write_text("open('written', 'w').write('all')")
    words = shlex.join([*HOLDFAST, "run", "--no-warm", "writes.py"])
    ended = subprocess.run(f"{words} {closed}", shell=True, cwd=folder, timeout=100, check=False, capture_output=True)
    assert (ended.returncode, (folder / "written").read_text(), ended.stdout) == (0, "all", b"")


SLEEPS = """
import time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("caught")
"""


def test_ctrl_c_reaches_the_program_once(tmp_path: Path):
    (tmp_path / "program.py").write_text(SLEEPS)
    command = [*HOLDFAST, "run", "--no-warm", "program.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("caught\n", NOTHING)
    assert process.returncode == 0


def test_quiet_is_quiet(folder: Path):
    assert run(folder, "--quiet", "--no-warm", "shows.py").stderr == ""


def test_a_python_that_does_not_have_us_does_not_notice(folder: Path):
    """Such as the one that a virtual environment was made of: it inherits the variables all the same."""
    code = "import sys; assert 'holdfast' not in sys.modules; print(any('adoption' in place for place in sys.path))"
    (folder / "starts.py").write_text(
        "import os, subprocess, sys\n"
        f"environ = dict(os.environ, PYTHONPATH={str(SITE)!r})\n"
        f"print(subprocess.run([sys._base_executable, '-c', {code!r}], env=environ, capture_output=True, text=True))"
    )
    assert "returncode=0, stdout='False\\n', stderr=''" in run(folder, "--no-warm", "starts.py").stdout


def test_a_child_that_imports_no_torch_gets_none(folder: Path):
    code = "import sys; print(sorted(name for name in sys.modules if name in ('torch', 'numpy', 'psutil')))"
    (folder / "starts.py").write_text(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])")
    assert run(folder, "--no-warm", "starts.py").stdout == "[]\n"


