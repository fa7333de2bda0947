"""Exceptions of a worker reach the loop as themselves."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
import torch

from holdfast import DataLoader, RemoteError
from holdfast._transport.faults import pack_error, unpack_error


class Failing(torch.utils.data.Dataset):
    """Sample 1 fails as told; the others are fine."""

    def __init__(self, fail: Any) -> None:
        self.fail = fail

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int:
        if index == 1:
            self.fail()
        return index


def failure(fail: Any) -> BaseException:
    """What a worker's exception is in the trainer; the batches around it are not touched by it."""
    batches = iter(DataLoader(Failing(fail), batch_size=None, num_workers=1))
    assert next(batches) == 0
    with pytest.raises(Exception) as caught:  # any: that is what is asked
        next(batches)
    assert next(batches) == 2
    with pytest.raises(StopIteration):
        next(batches)
    return caught.value


def note(error: BaseException) -> str:
    return "\n".join(error.__notes__)


class BadImage(Exception):
    """Two required arguments, and a text that is not among them."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


class KeywordOnly(Exception):
    def __init__(self, *, code: int) -> None:
        self.code = code


class Holder(Exception):
    """Holds something that stays in its process."""

    def __init__(self, path: str) -> None:
        super().__init__(f"cannot read {path}")
        self.path, self.lock = path, threading.Lock()


def test_an_exception_with_two_required_arguments_keeps_type_and_attributes():
    def fail() -> None:
        raise BadImage("a.jpg", "truncated")

    error = failure(fail)
    assert type(error) is BadImage
    assert (error.path, error.reason, str(error)) == ("a.jpg", "truncated", "a.jpg: truncated")


def test_an_exception_with_keyword_arguments_keeps_type_and_attributes():
    def fail() -> None:
        raise KeywordOnly(code=7)

    error = failure(fail)
    assert type(error) is KeywordOnly
    assert error.code == 7


@pytest.mark.parametrize("kind", [OSError, FileNotFoundError])
def test_an_oserror_keeps_errno_and_filename(kind):
    def fail() -> None:
        with open("/no/such/file.jpg"):
            pass

    error = failure(fail)
    assert isinstance(error, kind)
    assert (error.errno, error.filename, error.strerror) == (2, "/no/such/file.jpg", "No such file or directory")


def test_unicode_and_key_errors_keep_their_facts():
    def undecodable() -> None:
        b"ab\xff".decode()

    error = failure(undecodable)
    assert type(error) is UnicodeDecodeError
    assert (error.object, error.start, error.encoding) == (b"ab\xff", 2, "utf-8")

    def no_key() -> None:
        {}["label"]

    assert failure(no_key).args == ("label",)


def test_an_exception_of_a_class_made_in_a_function_is_caught_by_that_class():
    class Local(Exception):
        pass

    def fail() -> None:
        raise Local("here")

    assert type(failure(fail)) is Local


def test_an_exception_that_holds_a_lock_arrives_with_what_does_travel():
    def fail() -> None:
        raise Holder("a.jpg")

    error = failure(fail)
    assert type(error) is RemoteError
    assert error.kind.endswith("Holder")
    assert error.text == "cannot read a.jpg"
    assert error.attributes == {"path": "a.jpg"}
    assert "raise Holder" in error.traceback
    assert "cannot read a.jpg" in str(error)


def test_an_exception_that_fails_to_come_back_is_told_all_the_same():
    class Explosive(Exception):
        def __reduce__(self) -> Any:
            return int, ("no number",)

    def fail() -> None:
        raise Explosive("boom")

    error = failure(fail)
    assert "boom" in str(error)


def test_a_note_says_where_it_happened_and_shows_the_workers_traceback():
    def deep() -> None:
        raise ValueError("bad pixel")

    def fail() -> None:
        deep()

    batches = iter(DataLoader(Failing(fail), batch_size=3, num_workers=1))
    with pytest.raises(ValueError) as caught:
        next(batches)
    assert str(caught.value) == "bad pixel"
    told = note(caught.value)
    assert "in worker 0 (pid " in told
    assert "while it loaded sample 1 of batch 0" in told
    assert "in deep" in told
    assert 'raise ValueError("bad pixel")' in told


def test_causes_and_contexts_are_shown_in_the_note():
    def fail() -> None:
        try:
            {}["label"]
        except KeyError as missing:
            raise ValueError("no label") from missing

    told = note(failure(fail))
    assert "KeyError: 'label'" in told
    assert "The above exception was the direct cause of the following exception" in told


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no exception groups before Python 3.11")
def test_exception_groups_arrive_as_groups():
    from builtins import ExceptionGroup

    def fail() -> None:
        raise ExceptionGroup("both", [ValueError("one"), BadImage("a.jpg", "truncated")])

    error = failure(fail)
    assert isinstance(error, ExceptionGroup)
    assert [str(inner) for inner in error.exceptions] == ["one", "a.jpg: truncated"]
    assert "a.jpg: truncated" in note(error)


def test_notes_of_the_user_are_kept():
    def fail() -> None:
        error = ValueError("x")
        error.add_note("while reading shard 7")
        raise error

    assert failure(fail).__notes__[0] == "while reading shard 7"


def test_no_exception_fails_to_be_packed():
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    class Slotted(Exception):
        __slots__ = ("lock",)

        def __init__(self) -> None:
            self.lock = threading.Lock()

    for error in (Silent(), Slotted(), SystemExit(3), KeyboardInterrupt(), StopIteration(5), Holder("x")):
        made, text = unpack_error(pack_error(error))
        assert isinstance(made, BaseException)
        assert type(error).__name__ in text or type(error).__name__ in str(made)
