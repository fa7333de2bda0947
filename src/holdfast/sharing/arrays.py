"""numpy arrays in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from .locks import Lock
from .memory import Memory

Array = numpy.ndarray[Any, Any]


class SharedArray(numpy.ndarray[Any, Any]):
    """An array whose bytes all processes see that are handed it. Views of it are of its kind; what is computed from it
    is an array like any other."""

    _memory: Memory | None

    def __array_finalize__(self, obj: Any) -> None:
        # Bytes of its own, or of an array that owns them, are a copy: not to keep the memory that it was made from.
        is_copy = getattr(self.base, "base", None) is None
        self._memory = None if is_copy else getattr(obj, "_memory", None)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if array is self:  # it was the out= of the computation
            return array
        return array[()] if array.shape == () else array.view(numpy.ndarray)

    @property
    def lock(self) -> Lock:
        """One for all that was shared by one call of ``share``."""
        if self._memory is None:
            raise AttributeError("this array is not in shared memory")
        return self._memory.lock

    def __reduce_ex__(self, protocol: Any) -> Any:
        memory, start = self._memory, self._start()
        if memory is None or start is None:
            return numpy.asarray(self).__reduce_ex__(protocol)
        return array_at, (memory, start, self.dtype, self.shape, self.strides)

    def __deepcopy__(self, memo: Any) -> Array:
        return numpy.array(self)

    def _start(self) -> int | None:
        """Where in the memory it begins; None when its bytes are its own, as those of a copy."""
        if self._memory is None:
            return None
        start = address(self) - address(self._memory.array())
        return start if 0 <= start < self._memory.size else None


def array_at(memory: Memory, start: int, dtype: Any, shape: Sequence[int], strides: Any = None) -> SharedArray:
    """An array of bytes that lie there already. Named in pickles."""
    array: SharedArray = SharedArray.__new__(SharedArray, shape, dtype, memory.array(), start, strides)
    array._memory = memory
    return array


def address(array: Array) -> int:
    place: int = array.__array_interface__["data"][0]
    return place
