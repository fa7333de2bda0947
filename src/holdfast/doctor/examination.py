"""The whole examination of a target: its surroundings, what is in it, and how it behaves with workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast._system.starts import HAS_FORK
from holdfast.audit.finding import Severity
from holdfast.targets.target import Target

from .advice import Advice, advice
from .allotment import allotment
from .bounds import Held, growth, held
from .complaints import joined
from .environment import Environment, environment, symptoms_of
from .graph import audit
from .needs import needs_of
from .ramp import Budget, Ramp, numbers, ramp
from .step import Step
from .symptom import Symptom, in_order_of_harm

_ENOUGH = 8  # samples, to believe that a generator is not drawn from
_NO_RAMP = Ramp((), (), 0, ())


@dataclass(frozen=True)
class Examination:
    """``symptoms`` are in order of harm; ``unlooked`` says what was not looked at, and why."""

    target: str
    kind: str  # of the data set
    loader: str  # how it is loaded, "" where there is no loader
    environment: Environment
    symptoms: tuple[Symptom, ...]
    steps: tuple[Step, ...]
    compared: int
    held: Held | None
    advice: Advice | None
    unlooked: tuple[str, ...]

    @property
    def is_ill(self) -> bool:
        return any(symptom.severity is not Severity.NOTE for symptom in self.symptoms)

    def to_dict(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "dataset": self.kind,
            "loader": self.loader,
            "symptoms": [symptom.to_dict() for symptom in self.symptoms],
            "steps": [step.to_dict() for step in self.steps],
            "samples_compared": self.compared,
            "held_back_by": self.held.to_dict() if self.held else None,
            "recommendation": self.advice.to_dict() if self.advice else None,
            "not_looked_at": list(self.unlooked),
            "environment": self.environment.to_dict(),
        }


def examine(
    target: Target,
    budget: float = 60.0,
    progress: Callable[[str], None] = lambda what: None,
    workers: Sequence[int] | None = None,
    ramps: bool = True,
) -> Examination:
    """At most ``budget`` seconds. ``workers``: the steps of the ramp, by default 0, 1, 2, 4 … as the CPUs allow."""
    time, unlooked = Budget(budget), list[str]()
    progress("object graph")
    surroundings = environment(target)
    looked = audit(target)
    climbed = _NO_RAMP
    if not ramps:
        unlooked.append("samples: only the data set itself, as was asked for")
    elif not HAS_FORK:
        unlooked.append("samples: to try them out without touching yours needs fork, which this system does not have")
    else:
        climbed = ramp(target, workers or numbers(allotment(surroundings).cpus), time, progress)
    return _put_together(target, surroundings, looked, climbed, unlooked)


def _put_together(
    target: Target, surroundings: Environment, looked: list[Symptom], climbed: Ramp, unlooked: list[str]
) -> Examination:
    steps, allotted, needs = climbed.steps, allotment(surroundings), needs_of(target)
    if climbed.batch is not None:
        needs = needs.with_batch(*climbed.batch)
    grown = growth(steps, allotted.memory, climbed.grown)
    explained = {path for symptom in grown for path in symptom.where.split(", ")}
    others = [one for one in climbed.symptoms if one.severity is not Severity.NOTE or one.where not in explained]
    looked = [_tried(one, climbed) for one in looked]
    return Examination(
        target.text,
        type(target.dataset).__name__,
        _described(target.loader),
        surroundings,
        tuple(in_order_of_harm(merged([*others, *grown, *looked, *symptoms_of(surroundings, needs)]))),
        steps,
        climbed.compared,
        held(steps, allotted, getattr(target.loader, "num_workers", 0)),
        advice(steps, allotted) if steps else None,
        (*unlooked, *climbed.unlooked),
    )


def _tried(symptom: Symptom, climbed: Ramp) -> Symptom:
    """A generator that would repeat itself if it were drawn from, and did no harm while samples came, is a note."""
    if (
        symptom.check != "HD08"
        or climbed.watched < _ENOUGH
        or any(symptom.where == one.where for one in climbed.symptoms)
    ):
        return symptom
    seen = joined(symptom.evidence, f"no sample of {climbed.watched} differs by it")
    return replace(symptom, severity=Severity.NOTE, evidence=seen)


def merged(symptoms: Iterable[Symptom]) -> list[Symptom]:
    """What was found twice, by looking and by running, is one symptom: the graver, with the evidence of both."""
    found: dict[tuple[str, str], Symptom] = {}
    for symptom in symptoms:
        key = symptom.check, symptom.where or symptom.what
        known = found.get(key)
        if known is None:
            found[key] = symptom
            continue
        graver, other = in_order_of_harm([known, symptom])
        more = other.evidence if other.evidence not in f"{graver.what} {graver.evidence}" else ""
        found[key] = replace(graver, evidence=joined(graver.evidence, more), fix=graver.fix or other.fix)
    return list(found.values())


def _described(loader: Any) -> str:
    if loader is None:
        return ""
    kind = f"{type(loader).__module__.partition('.')[0]}.{type(loader).__name__}"
    return f"{kind}(batch_size={loader.batch_size}, num_workers={loader.num_workers})"
