"""Tasks on their way to workers: packed when they are sent, and not sooner; the function only where it is not known."""

from __future__ import annotations

from holdfast._core.events import Worker
from holdfast._engine.roster import Roster
from holdfast._transport import messages
from holdfast._transport.culprit import find_culprit
from holdfast.errors import CannotShip

from .calls import Task
from .kits import Kit, Kits
from .outlet import Outlet
from .recalls import Recalls


class Dispatch:
    """Owned by the works, and used under their lock. ``private``: tasks may have to be sent again, as they are."""

    def __init__(self, roster: Roster, outlet: Outlet, *, private: bool) -> None:
        self._roster, self._outlet, self._private = roster, outlet, private
        outlet.announce = self.grown
        self.kits, self.recalls = Kits(outlet), Recalls(roster)

    def welcome(self, who: Worker) -> None:
        """A new life has to know the memory that arguments come in."""
        for base, size in self._outlet.extents:
            self._roster.put(who, messages.Extended(base, size))

    def grown(self, base: int, size: int) -> None:
        """There is more of that memory."""
        for who, _ in self._roster.items():
            self._roster.put(who, messages.Extended(base, size))

    def pack(self, task: Task) -> Exception | None:
        """Get it ready to be sent; the error that stands against that."""
        kit = task.call.kit
        if kit.error is not None:
            return _with_culprit(kit.error, f"function {kit.name}", kit.function, kit.name)
        if task.sent is None:
            items = task.call.items[task.first : task.stop]
            try:
                task.sent = self._outlet.pack(items)
            except Exception as error:
                value = items[0] if len(items) == 1 else items
                return _with_culprit(error, f"arguments of {kit.name}", value, "argument")
        return None

    def send(self, who: Worker, task: Task) -> None:
        call, kit, sent = task.call, task.call.kit, task.sent
        assert sent is not None
        berth = self._roster[who]
        call.handed(berth)
        if who not in kit.known:
            self._introduce(kit, who)
        self._outlet.send(sent, who)
        message = messages.Task(
            task.number,
            self.recalls.number(who, task.number),
            kit.number,
            sent.packed,
            task.first,
            messages.shortened(task.todo),
            call.base,
            sent.plain,
            call.timeout is not None,
            task.alone,
            self._private,
            berth.arena.returned(),
        )
        self._roster.put(who, message)

    def done(self, task: Task) -> None:
        """It will not be sent again."""
        if task.sent is not None:
            self._outlet.done(task.sent)
            task.sent = None

    def release(self, kit: Kit) -> None:
        """One who used it does so no longer. If that was the last, and it is not kept, it may be forgotten."""
        kit.users -= 1
        if kit.users or kit.kept or kit.sent is None:
            return
        for who, _ in self._roster.items():
            if who in kit.known:
                self._roster.put(who, messages.Drop(kit.number))
        kit.known.clear()
        self._outlet.done(kit.sent)
        kit.sent = None

    def gone(self, who: Worker) -> None:
        self._outlet.gone(who)
        self.recalls.gone(who)

    def _introduce(self, kit: Kit, who: Worker) -> None:
        assert kit.sent is not None
        kit.known.add(who)
        self._outlet.send(kit.sent, who)
        self._roster.put(who, messages.Kit(kit.number, kit.sent.packed))


def _with_culprit(error: Exception, what: str, value: object, name: str) -> Exception:
    culprit = find_culprit(value, name)
    if culprit is None:
        return error
    refusal = CannotShip(what, *culprit, "")
    refusal.__cause__ = error
    return refusal
