"""The page: what is written by hand, in ``page.md``, and what is generated from results, in its places."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.catalogue import HEADINGS
from bench.contest import FaultTable, Outcome, Result
from bench.report import plot, words
from bench.report.behind import Behind, behind
from bench.report.files import Results
from bench.report.settings import settings

TEMPLATE = Path(__file__).parent / "page.md"


def write(results: Results, path: Path, plots: Path) -> Path:
    """The page and its plots. Plots that belong to nothing any more are removed."""
    plots.mkdir(parents=True, exist_ok=True)
    drawn = drawings(results)
    for old in plots.glob("*.svg"):
        if old.name not in drawn:
            old.unlink()
    for name, content in drawn.items():
        (plots / name).write_text(content)
    path.write_text(text(results, plots.name))
    return path


def text(results: Results, plots: str) -> str:
    """`plots`: the directory of the plots, as seen from the page."""
    page = TEMPLATE.read_text()
    parts = {
        "machine": machine_part(results.machine, results.held.values()),
        "summary": _summary(results),
        "behind": _behind(behind(results)),
        "settings": _settings(results.machine.get("versions", {})),
        "groups": "\n\n".join(_group(name, outcomes, plots) for name, outcomes in results.groups.items()),
        "faults": "\n\n".join(_fates(table) for table in results.fates.values() if table.results),
    }
    for name, part in parts.items():
        page = page.replace("{{" + name + "}}", part)
    return page.rstrip() + "\n"


def drawings(results: Results) -> dict[str, str]:
    """By file name: one for each contest with something to compare, one for each curve."""
    found = {f"{words.slug(one.contest.name)}.svg": plot.bars(one) for one in results.outcomes if _has_bars(one)}
    for group, outcomes in results.groups.items():
        for curve, points in _curves(outcomes).items():
            found[_curve_file(group, curve)] = plot.lines(_curve_title(curve, points), points)
    return found


def machine_line(machine: dict[str, Any]) -> str:
    """For the terminal."""
    torch = machine.get("versions", {}).get("torch") or "–"
    return (
        f"{machine['cores']} cores, {machine['cpu']}, {machine['memory_gib']} GiB, {machine['kernel']}, "
        f"Python {machine['python']}, torch {torch}; load {_load(machine['load_start'])}"
    )


def machine_part(machine: dict[str, Any], held: Collection[dict[str, Any]] = ()) -> str:
    """`held`: when each contest was, and how long it took. They may be of several runs, the machine is of the last."""
    names = {"date": "date", "cpu": "processor", "cores": "cores", "kernel": "kernel", "python": "Python"}
    rows = [[said, str(machine.get(name, "–"))] for name, said in names.items()]
    rows.insert(3, ["memory", f"{machine.get('memory_gib', '–')} GiB"])
    start, end = _load(machine.get("load_start")), _load(machine.get("load_end"))
    rows.append(["load average", f"{start} at start, {end} at end"])
    if "seconds" in machine:
        rows.append(["the last run took", words.duration(machine["seconds"])])
    dates = sorted(one["date"] for one in held if "date" in one)
    if dates:
        took = words.duration(sum(one["seconds"] for one in held if "seconds" in one))
        rows.append(["contests were held", f"from {dates[0]} to {dates[-1]}, {took} in all"])
    known = machine.get("versions", {})
    rows.append(["versions", ", ".join(f"{name} {version or '(not installed)'}" for name, version in known.items())])
    warning = "\n\n**A quick run: small data, few rounds. It shows that all of it runs.**"
    return _table(["machine", ""], rows) + (warning if machine.get("quick") else "")


def _load(values: list[float] | None) -> str:
    return "–" if not values else " ".join(f"{value:g}" for value in values)


def _summary(results: Results) -> str:
    rows = []
    for outcome in results.outcomes:
        contest, best, stock = outcome.contest, _best_peer(outcome), plot.base_of(outcome)
        if contest.curve and not contest.targets:
            continue
        against_best = "–" if best is None else f"{words.ratio(outcome.ratio(best))} {best}"
        bounds = "; ".join(f"{words.bound(outcome, name)} ({name})" for name in contest.targets if outcome.of(name))
        against_stock = f"{words.ratio(outcome.ratio(stock))} {stock}" if stock in plot.BASES else "–"
        rows.append([f"{contest.name}: {contest.title}", words.of_what(contest), against_stock, against_best, bounds])
    head = ["contest", "holdfast has × …", "of stock", "of the best peer", "target"]
    return _table(head, rows)


def _best_peer(outcome: Outcome) -> str | None:
    """The one that holdfast looks worst against."""
    sign = 1 if outcome.contest.better == "more" else -1
    ratios = [(outcome.ratio(one.contender), one.contender) for one in outcome.peers]
    known = [(sign * ratio, name) for ratio, name in ratios if ratio is not None]
    return min(known)[1] if known else None


def _behind(found: Behind) -> str:
    parts = []
    if found.trailing:
        rows = []
        for one in found.trailing:
            contest = one.outcome.contest
            has = f"{words.ratio(one.ratio)} {words.of_what(contest)}"
            rounds = words.ratio(one.outcome.round_by_round(one.peer.contender))
            rows.append([contest.name, one.peer.contender, has, rounds, words.spread(one.peer)])
        parts.append(_table(["contest", "peer", "holdfast has", "round by round", "peer's spread"], rows))
    if found.missed:
        rows = [
            [one.outcome.contest.name, one.contender, str(one.target), words.ratio(one.ratio),
             words.ratio(one.outcome.round_by_round(one.contender))]
            for one in found.missed
        ]  # fmt: skip
        head = ["contest", "against", "target", "ratio", "round by round"]
        parts.append("Targets that were not reached:\n\n" + _table(head, rows))
    if found.without:
        rows = [[one.contest.name, result.contender, words.why_none(result)] for one, result in found.without]
        parts.append("No figure of holdfast:\n\n" + _table(["contest", "way", "why"], rows))
    if found.faults:
        rows = [[title, one.contender, one.fault, one.outcome, one.text] for title, one in found.faults]
        parts.append("Faults:\n\n" + _table(["table", "way", "fault", "what happens", "what it says"], rows))
    return "\n\n".join(parts) or "Nothing, in this run."


def _settings(versions: dict[str, str]) -> str:
    rows = [[one.name, one.version, one.text] for one in settings(versions)]
    return _table(["contender", "what it is", "how"], rows)


def _group(name: str, outcomes: list[Outcome], plots: str) -> str:
    parts = [f"## {HEADINGS.get(name, name.capitalize())}"]
    parts += [_contest(one, plots) for one in outcomes if not one.contest.curve]
    for curve, points in _curves(outcomes).items():
        parts.append(_curve(name, curve, points, plots))
    return "\n\n".join(parts)


def _contest(outcome: Outcome, plots: str) -> str:
    contest, count = outcome.contest, words.rounds(outcome)
    parts = [f"### {contest.name}", f"{contest.title}. In {words.direction(contest)}; the best of {count}."]
    if _has_bars(outcome):
        parts.append(f"![{contest.title}]({plots}/{words.slug(contest.name)}.svg)")
    limits = [one for one in outcome.results if one.contender in contest.limits]
    rows = [_row(outcome, one) for one in outcome.results if one not in limits]
    rows += [_row(outcome, one) for one in limits]
    parts.append(_table(["", contest.unit, "", "holdfast has", "target", "note"], rows))
    return "\n\n".join(parts)


def _row(outcome: Outcome, result: Result) -> list[str]:
    contest, name = outcome.contest, result.contender
    said = f"*{name}* (what the machine allows)" if name in contest.limits else name
    said = f"**{said}**" if name == words.winner(outcome) else said
    value = result.best(contest.better)
    if value is None:
        return [said, "–", "", "", words.bound(outcome, name), words.why_none(result)]
    compared = ""
    if name != contest.champion and outcome.ratio(name) is not None:
        compared = f"{words.ratio(outcome.ratio(name))} {words.of_what(contest)}"
    return [said, words.figure(value), words.spread(result), compared, words.bound(outcome, name), result.note]


def _curves(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.contest.curve:
            found.setdefault(outcome.contest.curve, []).append(outcome)
    return {curve: sorted(points, key=lambda one: one.contest.at) for curve, points in found.items()}


def _curve(group: str, curve: str, points: list[Outcome], plots: str) -> str:
    """A column for each point: the figure, and how many times that holdfast has."""
    first = points[0].contest
    names = dict.fromkeys(one.contender for point in points for one in point.results)
    rows = [[name, *(_point(point, name) for point in points)] for name in names]
    columns = [f"{point.contest.at:,g}" if point.contest.at < 1e6 else f"{point.contest.at:,.0f}" for point in points]
    listed = "; ".join(f"{point.contest.name}: {point.contest.title}" for point in points)
    reasons = dict.fromkeys(
        f"{one.contender}: {words.why_none(one)}" for point in points for one in point.results if not one.figures
    )
    parts = [
        f"### {_curve_title(curve, points)}",
        f"In {words.direction(first)}; in brackets, how many times that {first.champion} has. Points: {listed}.",
        f"![{_curve_title(curve, points)}]({plots}/{_curve_file(group, curve)})",
        _table([curve, *columns], rows),
    ]
    return "\n\n".join([*parts, *(["\n".join(f"- {_cell(reason)}" for reason in reasons)] if reasons else [])])


def _point(outcome: Outcome, name: str) -> str:
    value, ratio = outcome.figure(name), outcome.ratio(name)
    if value is None or name == outcome.contest.champion or ratio is None:
        return words.figure(value)
    return f"{words.figure(value)} ({words.ratio(ratio)})"


def _curve_title(curve: str, points: list[Outcome]) -> str:
    return f"{points[0].contest.unit} by {curve}"


def _curve_file(group: str, curve: str) -> str:
    return f"{words.slug(group)}-by-{words.slug(curve)}.svg"


def _has_bars(outcome: Outcome) -> bool:
    return not outcome.contest.curve and sum(bool(one.figures) for one in outcome.results) > 1


def _fates(table: FaultTable) -> str:
    """Contenders down, faults across; below it what they said."""
    faults = list(dict.fromkeys(one.fault for one in table.results))
    names = dict.fromkeys(one.contender for one in table.results)
    rows = [[name, *(_fate(table, name, fault) for fault in faults)] for name in names]
    said = [[one.contender, one.fault, one.outcome, one.text] for one in table.results if one.text]
    parts = [f"## Faults met by {table.title}"]
    parts += ["\n".join(f"- **{name}**: {meaning}" for name, meaning in table.faults.items() if name in faults)]
    parts += [_table(["", *faults], rows)]
    parts += ["\n".join(f"- *{name}*: {meaning}" for name, meaning in table.outcomes.items())]
    if said:
        parts += ["What a user sees:", _table(["contender", "fault", "", "text"], said)]
    return "\n\n".join(part for part in parts if part)


def _fate(table: FaultTable, contender: str, fault: str) -> str:
    one = table.outcome(contender, fault)
    if one is None:
        return ""
    return "–" if one.outcome == "cannot" else f"{one.outcome} {words.seconds(one.seconds)}".strip()


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    return "\n".join(_table_lines(head, rows))


def _table_lines(head: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(_cell(one) for one in head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(_cell(one) for one in row)} |"


def _cell(text: str) -> str:
    """One line, in which nothing is taken for the table's or for HTML."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
