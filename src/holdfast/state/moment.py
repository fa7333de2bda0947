"""A batch of a run, and all that was random in it: what an error tells, and what ``holdfast replay`` takes."""

from __future__ import annotations

import os
import re
import shlex
import sys
from typing import Any, NamedTuple

from holdfast._core.mixing import mix
from holdfast.sampling.springs import Origin

_FORM = re.compile(r"(\d+)/(\d+)(?:@(\d+))?/(-?\d+)(?:/(-?\d+)(?:\+(\d+))?)?")


class Moment(NamedTuple):
    """As text ``epoch/batch/seed/order``: ``2/118/8214565720323847/93842``.

    ``number`` is the batch as its random numbers are counted, which on ranks is another (``118@947``).
    """

    epoch: int
    batch: int
    number: int
    seed: int  # of the epoch
    order: Origin

    @property
    def batch_seed(self) -> int:
        """With which all generators were set before the batch was loaded."""
        return mix(self.seed, self.number)

    def __str__(self) -> str:
        number = f"@{self.number}" if self.number != self.batch else ""
        drawn = f"+{self.order.drawn}" if self.order.drawn else ""
        order = f"/{self.order.seed}{drawn}" if any(self.order) else ""
        return f"{self.epoch}/{self.batch}{number}/{self.seed}{order}"

    @classmethod
    def of(cls, text: str) -> Moment:
        """ValueError when it is not one."""
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is not of the form epoch/batch/seed/order")
        epoch, batch, number, seed, order, drawn = found.groups()
        return cls(int(epoch), int(batch), int(number or batch), int(seed), Origin(int(order or 0), int(drawn or 0)))


class Moments(NamedTuple):
    """Of one epoch, by batch."""

    epoch: int
    seed: int
    order: Origin
    stride: int = 1
    shift: int = 0

    def at(self, batch: int) -> Moment:
        return Moment(self.epoch, batch, batch * self.stride + self.shift, self.seed, self.order)


def command(index: Any, at: str, *options: str) -> str:
    """By which a sample is seen again, as far as we know how the user would name its data set."""
    main: Any = sys.modules.get("__main__")
    file, target, arguments = getattr(main, "__file__", None) or "", "TARGET", ""
    if file.endswith(".py") and os.path.exists(file) and getattr(main, "__spec__", None) is None:
        target = shlex.quote(os.path.relpath(file))
        arguments = f" -- {shlex.join(sys.argv[1:])}" if sys.argv[1:] else ""
    return " ".join(["holdfast replay", target, shlex.quote(str(index)), "--at", at, *options]) + arguments
