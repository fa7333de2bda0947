"""Several trainers of one job: which of them is not where the others are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .conclusion import Conclusion, Standing
from .member import Doing, Member
from .report import Section


def headline(sections: Sequence[Section]) -> Conclusion:
    """What there is to say of the whole job."""
    if len(sections) == 1:
        return sections[0].conclusion
    late = straggler(sections)
    if late:
        others = f"{len(sections) - 1} others, which wait" if len(sections) > 2 else "other one, which waits"
        text = f"{late.name} holds up the {others} for it in {_place(sections, late)}: {late.conclusion.text}"
        return late.conclusion._replace(standing=Standing.STALLED, text=text)
    worst = next((one for one in sections if one.conclusion.standing is Standing.STALLED), None)
    if worst:
        return worst.conclusion._replace(text=f"{worst.name}: {worst.conclusion.text}")
    alive = [one for one in sections if one.conclusion.standing is not Standing.ENDED]
    if not alive:
        return Conclusion(Standing.ENDED, f"all {len(sections)} trainers have ended")
    return Conclusion(Standing.HEALTHY, f"{len(alive)} trainers run; {alive[0].name}: {alive[0].conclusion.text}")


def straggler(sections: Sequence[Section]) -> Section | None:
    """The one that the others wait for: they are in the same operation of all ranks, and it is not."""
    waiting = [one for one in sections if _waits_for_others(one.trainer)]
    rest = [one for one in sections if one not in waiting and one.trainer.doing is not Doing.ENDED]
    if waiting and len(rest) == 1:
        return rest[0]
    return None


def _waits_for_others(trainer: Member) -> bool:
    return trainer.doing is Doing.WAITS and bool(trainer.together) and not trainer.has_moved


def _place(sections: Sequence[Section], late: Section) -> str:
    """Where most of the others are."""
    places = Counter(f"{one.trainer.together}, in {one.trainer.place}" for one in sections if one is not late)
    return places.most_common(1)[0][0]
