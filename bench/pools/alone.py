"""Something done in a new Python process with a group of its own, which is ended with all that it has started."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from bench.names import named


@dataclass(frozen=True)
class Answer:
    """What came of it. `value` is what the function returned, `error` what it raised, in short,
    `ended` how the process ended without an answer; none of them: it took longer than the limit."""

    seconds: float
    value: Any = None
    error: str = ""
    ended: str = ""

    @property
    def hangs(self) -> bool:
        return self.value is None and not self.error and not self.ended


def alone(function: str, limit: float, **arguments: Any) -> Answer:
    """Calls a function, as ``module:function``, which returns something that JSON knows, and not None."""
    began, (reader, writer) = time.monotonic(), os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.pools.alone", str(writer), function, json.dumps(arguments)],
        stdin=subprocess.DEVNULL, stdout=sys.stderr, pass_fds=[writer], start_new_session=True,
    )  # fmt: skip
    os.close(writer)
    try:
        line = _line(reader, began + limit)
        seconds = time.monotonic() - began
        if line is None:
            return Answer(seconds)
        if not line:
            return Answer(seconds, ended=_how(process))
        return Answer(seconds, **json.loads(line))
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _line(reader: int, until: float) -> bytes | None:
    """b"" when it has ended without a line, None when time is up."""
    got = b""
    while not got.endswith(b"\n"):
        if not select.select([reader], [], [], max(0.0, until - time.monotonic()))[0]:
            return None
        part = os.read(reader, 65536)
        if not part:
            return b""
        got += part
    return got


def _how(process: subprocess.Popen[bytes]) -> str:
    status = process.wait()
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"


def in_short(error: BaseException) -> str:
    """The class, and the first sentence of what it says."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0].split('. ')[0]}"[:160] if text else type(error).__name__


def main() -> None:
    os.set_inheritable(writer := int(sys.argv[1]), False)  # nobody who outlives this process keeps it open
    try:
        answer = {"value": named(sys.argv[2])(**json.loads(sys.argv[3]))}
    except Exception as error:
        answer = {"error": in_short(error)}
    os.write(writer, json.dumps(answer).encode() + b"\n")
    time.sleep(3600)  # the end comes from outside: an orderly one may hang


if __name__ == "__main__":
    from bench.pools.alone import main as run

    run()
