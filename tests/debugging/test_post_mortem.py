"""on_error="debug": a prompt where a sample raised, in the worker that raised it; then the error, as ever."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from halting import Failing

from holdfast import DataLoader, Debug, NoPrompt, Retry, Skip
from holdfast._worker.debugged import is_for_debugger, up_to_debug
from holdfast.policies import Raise, Replace, Wait, policy

CREWS = {
    "processes": {"num_workers": 2},
    "threads": {"num_workers": 2, "workers": "thread"},
    "trainer": {"num_workers": 0},
}


def run(dataset: Any, on_error: Any, **options: Any) -> DataLoader[Any]:
    loader: DataLoader[Any] = DataLoader(dataset, batch_size=4, on_error=on_error, **{"num_workers": 2, **options})
    for _ in loader:
        pass
    return loader


@pytest.mark.parametrize("crew", CREWS)
def test_the_frames_of_the_error_are_there_and_then_it_is_raised(types, capsys, crew):
    typist = types("p marker", "up", "p index")
    with pytest.raises(ValueError, match="bad sample"):
        run(Failing(5), "debug", **CREWS[crew])
    shown = capsys.readouterr().out
    assert "ValueError: bad sample, seen" in shown
    assert "'seen'" in shown
    assert "\n5\n" in shown
    assert len(typist.prompts) == 4


@pytest.mark.parametrize("crew", CREWS)
def test_ctrl_c_means_afterwards_what_it_did_before(types, crew):
    types("p marker", "c")
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="bad sample"):
        run(Failing(5), "debug", **CREWS[crew])
    assert signal.getsignal(signal.SIGINT) is before


def test_what_stands_before_it_comes_first(types):
    typist = types()
    with pytest.raises(ValueError, match="bad sample"):
        run(Failing(5), Retry(2, backoff=0) | Debug())
    assert len(typist.prompts) == 1
    run(Failing(5), Skip() | Debug())
    assert len(typist.prompts) == 1


def test_a_mistake_in_the_program_is_shown_whatever_stands_before(types):
    typist = types("q")
    with pytest.raises(NameError):
        run(Failing(5, fatal=True), Skip() | Debug())
    assert len(typist.prompts) == 1


def test_without_a_terminal_it_raises_and_says_so(types):
    with pytest.warns(NoPrompt, match="errors are raised as they are"), pytest.raises(ValueError, match="bad sample"):
        run(Failing(5), "debug")


def test_a_function_before_it_always_answers():
    assert up_to_debug(policy(lambda fault: None) | Debug()) == ()
    assert up_to_debug(Skip()) == ()
    assert up_to_debug(Wait() | Debug() | Skip()) == (Wait(), Debug())


@pytest.mark.parametrize(
    ("parts", "error", "attempt", "fatal", "expected"),
    [
        ((Debug(),), ValueError(), 1, False, True),
        ((Debug(on=OSError),), ValueError(), 1, False, False),
        ((Retry(2), Debug()), ValueError(), 2, False, False),
        ((Retry(2), Debug()), ValueError(), 3, False, True),
        ((Retry(2, on=OSError), Debug()), ValueError(), 1, False, True),
        ((Skip(on=OSError), Debug()), ValueError(), 1, False, True),
        ((Skip(on=OSError), Debug()), OSError(), 1, False, False),
        ((Skip(), Debug()), NameError(), 1, True, True),
        ((Raise(), Debug()), ValueError(), 1, False, False),
        ((Replace(0), Debug()), ValueError(), 1, False, False),
        ((Wait(), Debug()), ValueError(), 1, False, True),
        ((), ValueError(), 1, False, False),
    ],
)
def test_whose_turn_it_is(parts, error, attempt, fatal, expected):
    assert is_for_debugger(parts, error, attempt, fatal=fatal) is expected
