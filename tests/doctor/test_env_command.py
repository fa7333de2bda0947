"""`holdfast env`: what a bug report needs, at once and without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).parent / "holdfast")


def test_it_prints_a_line_for_each_fact():
    ran = subprocess.run([COMMAND, "env"], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stderr == ""
    names = [line.split()[0] for line in ran.stdout.splitlines()]
    assert names[:3] == ["python", "holdfast", "torch"]
    expected = ["system", "CPUs", "memory", "/dev/shm", "limits", "signals", "threads", "start", "tracing", "leftovers"]
    assert names[-len(expected) :] == expected
    assert len({line.index(line.split(maxsplit=1)[1]) for line in ran.stdout.splitlines()}) == 1  # one column


def test_as_json_it_is_alone_on_standard_output():
    told = json.loads(subprocess.check_output([COMMAND, "env", "--json"], timeout=60))
    assert told["versions"]["holdfast"]
    assert told["cpus"]["machine"] >= told["cpus"]["affinity"] >= 1
    assert told["memory"]["machine"] > told["memory"]["available"] > 0


def test_it_needs_no_torch():
    program = (
        "import sys\nfrom holdfast.cli.env import env\nenv()\nassert not {'torch', 'numpy', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=60)


def test_wrong_usage_is_2():
    assert subprocess.run([COMMAND, "env", "--nonsense"], capture_output=True, check=False).returncode == 2
