"""An error that loading met, as a symptom: in its own words where it is one of ours, else by sample, path and line."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace

from holdfast import errors
from holdfast._engine.stalls import Stall
from holdfast._worker.culprits import Item
from holdfast.audit.finding import Severity
from holdfast.errors import HoldfastError, Verdict
from holdfast.fault import Fault

from .figures import counted
from .symptom import Symptom

_CHECKS: dict[type[BaseException], str] = {
    errors.WorkerDied: "HD16",
    errors.RestartsSpent: "HD16",
    errors.WorkerStalled: "HD17",
    errors.CannotSend: "HD19",
    errors.StopInItem: "HD20",
    errors.CannotShip: "HD05",
    errors.SharedMemoryFull: "HD12",
}
BAD_SAMPLE = "F20"  # of the field guide
BAD_SAMPLES = (BAD_SAMPLE, "HF303", "HF304")  # all that a file which workers share makes of good ones
_FRAME = re.compile(r'File "([^"]+)", line (\d+),? in (\S+)')
_NOT_THEIRS = re.compile(r"<frozen|[/\\]lib[/\\]python3|[/\\]site-packages[/\\]|[/\\]holdfast[/\\]")
_SKIP = 'DataLoader(..., on_error="skip")  # holdfast: leaves it out, and says so'
_SHOWN = 5  # indices


@dataclass(frozen=True)
class Complaint:
    """A symptom, which sample it is of, and with how many workers. Those of one ``kind`` are one symptom."""

    kind: str
    symptom: Symptom
    sample: str = ""
    workers: int = 0
    vague: bool = False  # its words do not name the samples by their indices


def of_fault(fault: Fault) -> Complaint:
    """A line of a loader's ledger."""
    index = fault.index if fault.item is None else fault.item
    sample = "" if index is None else repr(index)
    named = getattr(fault.error, "second", ("",))[0], getattr(fault.error, "index", "")
    vague = any(isinstance(name, Item) for name in named)
    return replace(of_error(fault.error, sample, fault.where, fault.traceback), vague=vague)


def of_error(error: BaseException, sample: str, where: str, trace: str = "") -> Complaint:
    line = place(trace or "".join(traceback.format_exception(error)))
    if isinstance(error, HoldfastError) and not isinstance(error, errors.RemoteError):
        return _ours(error, sample, line)
    text = next(iter(f"{_kind(error)}: {error}".splitlines()), "")
    what, fix = (f"sample {sample} raises {text}", _SKIP) if sample else (f"a batch raises {text}", "")
    symptom = Symptom(BAD_SAMPLE, Severity.ERROR, what, _located(where, sample), f"at {line}" if line else "", fix)
    return Complaint(f"{_kind(error)} {line}", symptom, sample)


def of_death(verdict: Verdict, sample: str, where: str) -> Complaint:
    """Of the process that loaded without workers."""
    what = f"a process that loads {f'sample {sample}' if sample else 'samples'} {verdict}"
    symptom = Symptom("HD16", Severity.ERROR, what, _located(where, sample), _brief(verdict.cause()), _SKIP)
    return Complaint(f"HD16 {_innermost(verdict.stack) or sample}", symptom, sample)


def of_stall(stall: Stall, sample: str, where: str, seconds: float) -> Complaint:
    line = f"in {found}" if (found := place(stall.line)) else ""
    what, evidence = f"sample {sample} does not come within {seconds:.3g} s", joined(f"the process {stall.why}", line)
    symptom = Symptom("HD17", Severity.ERROR, what, _located(where, sample), evidence, _fix_of_stall(stall.why))
    return Complaint(f"HD17 {line or sample}", symptom, sample)


def _fix_of_stall(why: str) -> str:
    if "OpenMP" in why:
        return 'leave torch.set_num_threads alone in workers; or DataLoader(..., multiprocessing_context="forkserver")'
    return 'a time limit where it waits; or DataLoader(..., stall_timeout=60, on_error="skip")  # holdfast'


def symptoms_of(complaints: Iterable[Complaint]) -> list[Symptom]:
    """One for each kind, with the indices of all samples that have it."""
    kinds: dict[str, list[Complaint]] = {}
    for one in complaints:
        kinds.setdefault(one.kind, []).append(one)
    return [_together(of_kind) for of_kind in kinds.values()]


def _together(complaints: list[Complaint]) -> Symptom:
    symptom = next((one for one in complaints if not one.vague), complaints[0]).symptom
    samples = list(dict.fromkeys(one.sample for one in complaints if one.sample))
    others = ", ".join(samples[1:_SHOWN]) + (f" and {len(samples) - _SHOWN} more" if len(samples) > _SHOWN else "")
    fewest = min(one.workers for one in complaints)
    alone = f"with {counted(fewest, 'worker')}; without workers it does not happen" if fewest else ""
    return replace(
        symptom,
        evidence=joined(
            symptom.evidence, f"so do{'es' if len(samples) == 2 else ''} {others}" if others else "", alone
        ),
    )


def joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _ours(error: HoldfastError, sample: str, line: str) -> Complaint:
    lines = error._lines()
    check = next((code for kind, code in _CHECKS.items() if isinstance(error, kind)), error.code)
    evidence = joined(_brief(lines.get("why", "")), _innermost(lines.get("stack", "")))
    if isinstance(error, errors.StopInItem) and line:
        evidence = joined(evidence, f"at {line}")
    where, fix = _joined(lines.get("where", getattr(error, "path", ""))), lines.get("try", "")
    symptom = Symptom(check, Severity.ERROR, error._what(), where, evidence, fix)
    if check in ("HD16", "HD17"):
        within = _innermost(lines.get("stack", "") or lines.get("why", ""))
        fix = _fix_of_stall(evidence) if check == "HD17" else fix
        return Complaint(f"{check} {within or sample}", replace(symptom, fix=fix), sample)
    return Complaint(f"{check} {getattr(error, 'member', '')}", symptom, sample)


def _brief(cause: str) -> str:
    """Of a crash: what it was, and the user's line; the calls around it are for those who replay the sample."""
    lines = [line.strip() for line in cause.splitlines()]
    stack = [line for line in lines if line.startswith("File ")]
    return joined(*(line for line in lines if line not in stack), _innermost("\n".join(stack)))


def _innermost(stack: str) -> str:
    return f"in {found}" if (found := place("\n".join(reversed(stack.splitlines())))) else ""


def place(trace: str) -> str:
    """The innermost line that is the user's, in a traceback that has it last: ``data.py:31 in load``."""
    frames = [frame for frame in _FRAME.findall(trace) if not _NOT_THEIRS.search(frame[0])]
    if not frames:
        return ""
    path, line, function = frames[-1]
    here = os.path.join(os.getcwd(), "")
    return f"{path.removeprefix(here)}:{line} in {function}"


def _located(where: str, sample: str) -> str:
    at = f"dataset[{sample}]" if sample else "dataset"
    return f"{where} ({at})" if where else at


def _kind(error: BaseException) -> str:
    if isinstance(error, errors.RemoteError):
        return str(error.kind)
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


def _joined(text: str) -> str:
    return "; ".join(line.strip() for line in text.splitlines())
