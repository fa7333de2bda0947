"""When a worker has the user look at an error: policies are asked in the trainer, but the frames are in the worker.

So it is told what stands before `Debug` in the policy, and finds out by itself whether anything of that has an answer.
"""

from __future__ import annotations

from holdfast.policies import Ask, Debug, Policy, Retry, Wait


def up_to_debug(policy: Policy) -> tuple[Policy, ...]:
    """The parts up to the first `Debug`; none when there is none, or when it is never reached."""
    parts = policy.parts()
    place = next((place for place, part in enumerate(parts) if isinstance(part, Debug)), None)
    if place is None or any(isinstance(part, Ask) for part in parts[:place]):  # a function always has an answer
        return ()
    return parts[: place + 1]


def is_for_debugger(parts: tuple[Policy, ...], error: BaseException, attempt: float, *, fatal: bool) -> bool:
    """Whether it is the turn of `Debug`, when a sample has failed so often. ``fatal``: the others are not asked."""
    for part in parts:
        if isinstance(part, Debug):
            return part.concerns(error)
        passes = isinstance(part, Wait) or (isinstance(part, Retry) and attempt > part.times)
        if not fatal and part.concerns(error) and not passes:
            return False
    return False
