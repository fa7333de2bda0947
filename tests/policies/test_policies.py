"""What each policy answers: pure, no loader."""

from __future__ import annotations

import math
import time
import types
from typing import Any

import pytest
from torch.utils.data import Subset

from holdfast import Fault, Ledger, Quarantine, Raise, Replace, Retry, Skip, TooManyFaults, Wait, WorkerDied
from holdfast.errors import SharedMemoryFull
from holdfast.policies import Again, Hold, Leave, Put, Repeat, Stand, is_programming_error, policy


def fault(index: Any = 7, error: BaseException | None = None, **known: Any) -> Fault:
    facts: dict[str, Any] = {
        "when": time.time(),
        "kind": "exception",
        "epoch": 0,
        "batch": 1,
        "item": None,
        "where": "",
        "traceback": "",
        "seat": 0,
        "life": 1,
        "pid": 9,
        "attempts": 1,
        "action": "",
    }
    return Fault(**{**facts, "index": index, "error": error or ValueError("bad"), **known})


def ledger(*skipped: Any, seen: int = 0) -> Ledger:
    found = Ledger(warn=False)
    found.seen = seen
    for index in skipped:
        found.note(fault(index, action="skipped"))
    return found


def answer(on_error: Any, about: Fault | None = None, book: Ledger | None = None) -> Any:
    return policy(on_error).answer(about or fault(), book or ledger())


def failing(attribute: str, owner: Any) -> BaseException:
    try:
        getattr(owner, attribute)
    except AttributeError as error:
        return error
    raise AssertionError


# -- names and composition ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [("raise", Stand()), ("skip", Leave()), ("replace", Repeat()), ("retry", Again(0.1)), ("wait", None)],
)
def test_a_name_stands_for_a_policy(name, expected):
    assert answer(name) == expected


@pytest.mark.parametrize("wrong", ["skp", 3, None, Skip, ValueError])
def test_what_is_no_policy_is_refused_with_the_list_of_those_that_are(wrong):
    with pytest.raises(ValueError, match="'raise', 'skip', 'replace'"):
        policy(wrong)


def test_the_first_that_has_an_answer_is_followed():
    chain = Retry(2, on=OSError) | Replace(0, on=KeyError) | Skip(on=(OSError, ValueError))
    assert answer(chain, fault(error=OSError())) == Again(0.1)
    assert answer(chain, fault(error=OSError(), attempts=3)) == Leave()
    assert answer(chain, fault(error=KeyError())) == Put(0)
    assert answer(chain, fault(error=TypeError())) is None
    assert answer(Raise(on=PermissionError) | "skip", fault(error=PermissionError())) == Stand()
    assert answer(Raise(on=PermissionError) | "skip", fault(error=OSError())) == Leave()


def test_a_death_is_an_error_like_any_other():
    died = WorkerDied(0, 9, None, 1, 7, [7], 2, "")
    assert answer(Skip(on=WorkerDied), fault(error=died, kind="death")) == Leave()
    assert answer(Skip(on=WorkerDied)) is None


def test_never_widens_what_a_policy_leaves_alone():
    assert answer(Skip(never=KeyError), fault(error=KeyError())) is None
    assert answer(Skip(never=KeyError)) == Leave()


@pytest.mark.parametrize(
    ("on_error", "expected"),
    [
        ("raise", False),
        ("wait", False),
        (Raise() | Wait(), False),
        ("skip", True),
        (Raise(on=OSError) | Skip(), True),
        (print, True),
    ],
)
def test_it_is_known_whether_anything_but_raising_can_come_of_it(on_error, expected):
    assert policy(on_error).tolerant is expected


# -- one by one --------------------------------------------------------------------------------


def test_retries_wait_longer_each_time_and_not_forever():
    pauses = [answer(Retry(100, backoff=0.5), fault(attempts=n)).after for n in (1, 2, 3, 50)]
    assert pauses == [0.5, 1.0, 2.0, 30.0]
    assert answer(Retry(3, backoff=lambda attempt: attempt * 2), fault(attempts=3)) == Again(6)
    assert answer(Retry(3, backoff=0), fault(attempts=3)) == Again(0)
    assert answer(Retry(3), fault(attempts=4)) is None


def test_a_stall_may_be_waited_for():
    assert answer("wait", fault(kind="stall")) == Hold()


def test_replace_asks_a_function_for_the_value():
    assert answer(Replace(lambda about: about.index * 2)) == Put(14)
    assert answer(Replace(None)) == Put(None)


@pytest.mark.parametrize(
    ("said", "expected"), [(None, Stand()), ("skip", Leave()), (Replace(1), Put(1)), (Put(2), Put(2))]
)
def test_a_function_answers_with_a_policy_its_name_or_nothing(said, expected):
    assert answer(lambda about: said) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Skip(limit=-1),
        lambda: Skip(limit=1.0),
        lambda: Skip(limit=math.nan),
        lambda: Retry(-1),
        lambda: Retry(backoff=-0.1),
        lambda: Quarantine("bad.jsonl", limit=1.5),
    ],
)
def test_arguments_are_checked_when_they_are_given(wrong):
    with pytest.raises(ValueError, match=r"should be .* but got \w+="):
        wrong()


# -- limits ------------------------------------------------------------------------------------


def test_a_limit_counts_different_samples():
    book = ledger(1, 2, 1, 1)
    assert answer(Skip(limit=3), fault(3), book) == Leave()
    assert answer(Skip(limit=2), fault(2), book) == Leave()
    with pytest.raises(TooManyFaults, match="3 of 3 samples failed, and only 2 samples may"):
        answer(Skip(limit=2), fault(3), book)
    with pytest.raises(TooManyFaults):
        answer(Skip(limit=0))


def test_a_share_is_of_those_seen_and_lenient_at_first():
    tenth = Skip(limit=0.1)
    assert answer(tenth, fault(99), ledger(*range(9), seen=20)) == Leave()  # 10 of the first 100 at most
    with pytest.raises(TooManyFaults, match=r"11 of 20 samples failed, and only 0\.1 of the samples may"):
        answer(tenth, fault(99), ledger(*range(10), seen=20))
    assert answer(tenth, fault(99), ledger(*range(40), seen=1000)) == Leave()
    assert answer(Skip(limit=0.0001), fault(99), ledger()) == Leave()  # one early fault does not end a run
    with pytest.raises(TooManyFaults):
        answer(Skip(limit=0.0))
    with pytest.raises(TooManyFaults):
        answer(Skip(limit=0.5, probation=0), fault(99), ledger(1, 2, seen=4))


def test_items_of_a_stream_have_no_index_and_count_each():
    book = Ledger(warn=False)
    for item in range(3):
        book.note(fault(None, item=item, action="skipped"))
    assert answer(Skip(limit=4), fault(None, item=9), book) == Leave()
    with pytest.raises(TooManyFaults, match="4 of"):
        answer(Skip(limit=3), fault(None, item=9), book)


def test_too_many_faults_lists_what_failed():
    with pytest.raises(TooManyFaults) as caught:
        answer(Skip(limit=1), fault(3, KeyError("label")), ledger(1))
    assert [each.index for each in caught.value.faults] == [1, 3]
    assert "sample 1 of batch 1: ValueError: bad; skipped" in str(caught.value)
    assert "sample 3 of batch 1: KeyError: 'label'; one too many" in str(caught.value)


# -- the program's own errors ------------------------------------------------------------------


class Data:
    pass


@pytest.mark.parametrize(
    "error",
    [
        NameError("x"),
        UnboundLocalError("x"),
        ImportError("x"),
        ModuleNotFoundError("x"),
        SyntaxError("x"),
        NotImplementedError(),
        SharedMemoryFull(1, 1, 1, ""),
        failing("nothing", types),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_the_program_are_no_bad_data(error):
    assert is_programming_error(error, Data())


def test_an_attribute_that_the_data_set_does_not_have_is_one_of_them():
    data = Data()
    assert is_programming_error(failing("pathes", data), data)
    assert is_programming_error(failing("pathes", data), Subset(data, [0]))  # type: ignore[arg-type, type-var]
    assert not is_programming_error(failing("pathes", Data()), data)
    assert not is_programming_error(failing("shape", None), data)
    assert not is_programming_error(AttributeError("by hand"), None)


@pytest.mark.parametrize(
    "error", [ValueError(), OSError(), MemoryError(), RuntimeError(), RecursionError(), KeyError()]
)
def test_errors_of_data_are_no_programming_errors(error):
    assert not is_programming_error(error, Data())
