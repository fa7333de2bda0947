"""``holdfast replay``: one sample once more, with the random numbers that it had in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .stdout import kept_clear
from .style import FOUND, AsJson, console, print_json

if TYPE_CHECKING:
    from holdfast.replaying.portrait import Leaf
    from holdfast.replaying.running import Died
    from holdfast.replaying.stage import Seen, Stage
    from holdfast.replaying.wanted import Place, Wanted


def replay(
    target: Annotated[str, typer.Argument(help="module:attribute, file.py:attribute, or a script.")],
    index: Annotated[str | None, typer.Argument(help="Of the sample in the data set. Not needed with --fault.")] = None,
    arguments: Annotated[list[str] | None, typer.Argument(help="Of a script, after --.")] = None,
    at: Annotated[
        str | None, typer.Option(help="The place in a run, epoch/batch/seed/order, as an error tells.")
    ] = None,
    fault: Annotated[str | None, typer.Option(help="A fault log, FILE or FILE:LINE; or a bundle's folder.")] = None,
    epoch: Annotated[int | None, typer.Option(min=0, help="Of the loader, when no place is known.")] = None,
    seed: Annotated[int | None, typer.Option(help="torch.manual_seed(SEED) comes first. Implies --epoch 0.")] = None,
    batch: Annotated[int | None, typer.Option(min=0, help="Of the epoch; without it, the one that has INDEX.")] = None,
    worker: Annotated[int, typer.Option(min=0, help="For which worker_init_fn is called.")] = 0,
    pdb: Annotated[bool, typer.Option("--pdb", help="A prompt where it raises, or at its first line.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch one sample again, with the random numbers that it had, and show what it is or how it fails.

    Errors and fault logs of holdfast tell the place (--at, --fault). The samples before it in its batch are fetched
    first, as they drew random numbers, too. It runs in a process of its own, whose death is explained; with --pdb in
    this one.

    Exit codes: 0 it could be fetched, 1 it raised or ended its process, 2 wrong usage.
    """
    given = list(arguments or ())
    if fault is not None and index is not None:  # what stands behind TARGET is the script's
        given, index = [index, *given], None
    if epoch is None and (seed is not None or batch is not None):
        epoch = 0
    from holdfast.replaying.wanted import Place

    place = Place(at, fault, epoch, batch, worker)
    if pdb:
        raise typer.Exit(FOUND if _under_pdb(target, given, index, place, seed) else 0)
    with kept_clear(as_json):
        wanted, seen = _seen(target, given, index, place, seed)
    if as_json:
        print_json(_as_data(target, wanted, seen))
    else:
        _print(target, wanted, seen)
    if getattr(seen, "error", True):
        raise typer.Exit(FOUND)


def _under_pdb(target: str, given: list[str], index: str | None, place: Place, seed: int | None) -> bool:
    from holdfast.replaying.running import under_pdb

    return under_pdb(_staged(target, given, index, place, seed)[0])


def _seen(
    target: str, given: list[str], index: str | None, place: Place, seed: int | None
) -> tuple[Wanted, Seen | Died]:
    from holdfast.replaying.running import in_a_worker

    stage, loader = _staged(target, given, index, place, seed)
    return stage.wanted, in_a_worker(stage, loader)


def _staged(target: str, given: list[str], index: str | None, place: Place, seed: int | None) -> tuple[Stage, Any]:
    """What is to be fetched, and the loader that it is of, if there is one."""
    from holdfast.replaying.stage import Stage
    from holdfast.replaying.wanted import sought
    from holdfast.targets.target import find

    if seed is not None:
        _seed(seed)
    found = find(target, given)
    wanted, loader = sought(found, index, place), found.loader
    if loader is None:
        return Stage(found.dataset, wanted), None
    return Stage(found.dataset, wanted, loader.worker_init_fn, loader.num_workers, loader._auto_collation), loader


def _seed(seed: int) -> None:
    import random

    import numpy
    import torch

    random.seed(seed)
    numpy.random.seed(seed & 0xFFFFFFFF)
    torch.manual_seed(seed)


def _print(target: str, wanted: Wanted, seen: Seen | Died) -> None:
    out = console()
    out.print(f"sample {wanted.index!r} of {target}", style="bold")
    for label, text in _facts(wanted, seen):
        out.print(f"  {label:<6} {text}")
    if wanted.note:
        out.print(f"  note   {wanted.note}")
    for leaf in getattr(seen, "leaves", ()):
        out.print(f"    {_words(leaf)}")
    if trace := getattr(seen, "traceback", ""):
        out.print()
        out.print(trace.rstrip())


def _facts(wanted: Wanted, seen: Seen | Died) -> list[tuple[str, str]]:
    from holdfast.replaying.running import Died

    where, random = [("where", seen.where)] if seen.where else [], ("random", _random(wanted))
    if isinstance(seen, Died):
        return [*where, random, ("died", f"its process {seen.how}, twice"), ("why", seen.why)]
    if seen.error:
        whose = "" if seen.culprit is None else f"sample {seen.culprit!r}, before it in its batch: "
        return [*where, random, ("raised", f"{whose}{seen.error}")]
    took = ("took", f"{seen.seconds * 1000:.3g} ms")
    return [*where, random, took, ("digest", seen.digest or "none: it has parts that cannot be pickled")]


def _random(wanted: Wanted) -> str:
    moment = wanted.moment
    if moment is None:
        return "not that of a run: all generators seeded with 0 (--at, --fault or --epoch give that of one)"
    if wanted.before is None:
        return f"as batch {moment.batch} of epoch {moment.epoch} began; name the loader to have that of the sample"
    before = f"{len(wanted.before)} sample{'' if len(wanted.before) == 1 else 's'}"
    return f"as in batch {moment.batch} of epoch {moment.epoch}, {before} before it (--at {moment})"


def _words(leaf: Leaf) -> str:
    shape = "" if leaf.shape is None else f" {leaf.dtype} {list(leaf.shape)}"
    ends = "" if leaf.low is None else f"  {leaf.low:.6g} … {leaf.high:.6g}"
    odd = "".join(f"  {count} {name}" for name, count in (("NaN", leaf.nan), ("inf", leaf.infinite)) if count)
    return f"{leaf.path or '.':<12} {leaf.type}{shape}{ends}{odd}{leaf.value and f'  {leaf.value}'}"


def _as_data(target: str, wanted: Wanted, seen: Seen | Died) -> dict[str, Any]:
    from holdfast.fault import plain
    from holdfast.replaying.running import Died

    data: dict[str, Any] = {
        "target": target,
        "index": plain(wanted.index),
        "at": str(wanted.moment) if wanted.moment is not None else None,
        "before": None if wanted.before is None else [plain(index) for index in wanted.before],
        "note": wanted.note,
    }
    if isinstance(seen, Died):
        return data | {"outcome": "died", "where": seen.where, "death": seen.how, "why": seen.why}
    if seen.error:
        culprit = plain(wanted.index if seen.culprit is None else seen.culprit)
        error = {"text": seen.error, "traceback": seen.traceback, "index": culprit}
        return data | {"outcome": "raised", "where": seen.where, "error": error}
    sample = [leaf._asdict() for leaf in seen.leaves]
    return data | {
        "outcome": "fetched",
        "where": seen.where,
        "seconds": seen.seconds,
        "digest": seen.digest or None,
        "sample": sample,
    }
