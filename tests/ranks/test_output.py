"""What ranks print is shown line by line behind their number, and all of it."""

from __future__ import annotations

import os

import acts
import pytest
from torch.multiprocessing import ProcessExitedException

from holdfast.ranks.output import Lines
from holdfast.ranks.spawning import spawn

STARTS = ("spawn", "zygote", "fork")


@pytest.mark.parametrize("start", STARTS)
def test_lines_of_both_streams_are_shown_behind_the_rank(start, capsys):
    spawn(acts.prints, nprocs=2, start_method=start, prefix=True)
    out, err = capsys.readouterr()
    for rank in range(2):
        mine = [line.removeprefix(f"[{rank}] ") for line in out.split("\n") if line.startswith(f"[{rank}] ")]
        assert mine == [f"one of {rank}", "two, from C", f"bar {rank}\r[{rank}] bar {rank}!\r", "no end"]
    assert sorted(err.splitlines()) == ["[0] ouch", "[1] ouch"]
    assert out.endswith("\n")


@pytest.mark.parametrize("start", STARTS)
def test_without_it_stdout_is_the_parents(start, capfd):
    spawn(acts.prints, nprocs=1, start_method=start)
    out, err = capfd.readouterr()
    assert "two, from C\n" in out
    assert "[0]" not in out + err
    assert "ouch\n" in err


def test_nothing_is_lost_of_much(capsys):
    spawn(acts.prints_much, (5000,), nprocs=2, start_method="zygote", prefix=True)
    lines = capsys.readouterr().out.splitlines()
    for rank in range(2):
        assert [line for line in lines if line[1] == str(rank)] == [
            f"[{rank}] {rank} {line} {'x' * 100}" for line in range(5000)
        ]


@pytest.mark.parametrize("start", STARTS)
def test_what_a_killed_rank_had_printed_is_shown(start, capsys, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with pytest.raises(ProcessExitedException, match="SIGKILL"):
        spawn(acts.prints_and_dies, nprocs=1, start_method=start, prefix=True)
    assert capsys.readouterr().out.splitlines() == [f"[0] {line}" for line in range(1000)]


def test_lines_are_whole_however_they_come(capsys):
    lines, theirs = Lines.of(3, "stdout")
    shown = []
    for part in (b"a", b"b\nc\r", b"\nd\r", b"e", "ü".encode()[:1], "ü".encode()[1:], b"\n"):
        os.write(theirs, part)
        assert lines.forward()
        shown.append(capsys.readouterr().out)
    assert shown == ["", "[3] ab\n", "[3] c\r\n", "[3] d\r", "", "", "[3] eü\n"]
    os.close(theirs)
    lines.close()


def test_a_line_without_end_is_not_kept_for_ever(capsys):
    lines, theirs = Lines.of(0, "stdout")
    os.write(theirs, b"x" * 100_000)
    lines.forward()
    assert capsys.readouterr().out == f"[0] {'x' * 100_000}\n"
    os.close(theirs)
    lines.close()
