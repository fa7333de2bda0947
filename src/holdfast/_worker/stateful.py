"""The state that an iterable data set, or its iterator, keeps of itself, in torchdata's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast._transport.faults import pack_error
from holdfast._transport.messages import Unsaved
from holdfast.errors import StateMismatch
from holdfast.state.plain import from_plain, to_plain


def has_state(thing: object) -> bool:
    return all(callable(getattr(thing, name, None)) for name in ("state_dict", "load_state_dict"))


def resumed(dataset: Any, state: tuple[Any, Any] | None, over: bool = False) -> Iterator[Any]:
    """An iterator over the data set, at this state: first the data set takes up its part, then the iterator.

    Of an epoch that is ``over`` nothing is left, and the data set waits for the next.
    """
    of_dataset, of_iterator = state or (None, None)
    take_up(dataset, of_dataset)
    stream: Iterator[Any] = iter(()) if over else iter(dataset)
    take_up(stream, of_iterator)
    return stream


def take_up(thing: Any, state: Any) -> None:
    """This state, if there is one."""
    if state is None:
        return
    if not has_state(thing):
        raise StateMismatch("a data set that has", "a state", type(thing).__name__, "it has no load_state_dict")
    thing.load_state_dict(from_plain(state))


class States:
    """Of one stream: takes what there is to take. A data set that is its own iterator is asked once."""

    def __init__(self, dataset: object, stream: object) -> None:
        self._dataset: Any = dataset if dataset is not stream and has_state(dataset) else None
        self._stream: Any = stream if has_state(stream) else None
        self.there_are_any = self._dataset is not None or self._stream is not None

    def take(self) -> tuple[Any, Any] | Unsaved | None:
        """The data set's and the iterator's; what the user's code raises is told to whoever asks for the state."""
        if not self.there_are_any:
            return None
        try:
            return _plain(self._dataset, "the data set's state"), _plain(self._stream, "the iterator's state")
        except Exception as error:
            return Unsaved(pack_error(error))


def _plain(thing: Any, name: str) -> Any:
    return None if thing is None else to_plain(thing.state_dict(), name)
