"""``holdfast explain``: from a code, a number, a name or a pasted message to the page about it."""

from __future__ import annotations

import json
import re
import sys
from typing import Annotated

import typer

from holdfast.pages import Page, pages
from holdfast.pages.failures import FAILURES, Failure, matching, near

NOT_FOUND = 1
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def explain(
    topic: Annotated[
        list[str] | None,
        typer.Argument(help="HF201, F28, WorkerDied, a pasted error text, or - to read it from standard input."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Code, title and body as JSON.")] = False,
) -> None:
    """Explain an error code, a failure of the field guide, or any error text of torch or multiprocessing.

    Without a topic: the list of all of them.

    Exit codes: 0 explained, 1 not known, 2 wrong usage.
    """
    if not topic:
        _print_index(as_json)
        return
    text = _COLOURS.sub("", _standard_input() if topic == ["-"] else " ".join(topic)).strip()
    found = _named(text) or _about(text)
    if not found:
        _print_unknown(text, as_json)
        raise typer.Exit(NOT_FOUND)
    _print_page(found[0], found[1:], as_json)


def _standard_input() -> str:
    return sys.stdin.buffer.read().decode(errors="replace")


def _named(text: str) -> list[Page]:
    """What is called so: a code, a number of the field guide, the name of an error."""
    if number := re.fullmatch(r"[fF](\d{1,2})", text):
        failure = FAILURES.get(f"F{int(number[1]):02}")
        return [_page(failure)] if failure else []
    name = text.removeprefix("holdfast.")
    return [page for page in pages().values() if name.upper() == page.code or name == page.name]


def _about(text: str) -> list[Page]:
    """What a text is about: codes of ours that are in it, then failures whose message it has."""
    codes = dict.fromkeys(re.findall(r"\bHF\d{3}\b", text))
    return [pages()[code] for code in codes if code in pages()] + [_page(failure) for failure in matching(text)]


def _page(failure: Failure) -> Page:
    return Page(failure.id, failure.title, failure.body)


def _print_page(page: Page, others: list[Page], as_json: bool) -> None:
    if as_json:
        also = [{"code": other.code, "title": other.title} for other in others]
        print(json.dumps({"code": page.code, "title": page.title, "body": page.body, "others": also}, indent=2))
        return
    body = page.body
    if others:
        body += "\n## Also in this text\n\n" + "\n".join(f"- {other.code} {other.title}" for other in others) + "\n"
    if sys.stdout.isatty():
        _print_markdown(body)
    else:
        print(body, end="")


def _print_markdown(body: str) -> None:
    from rich.console import Console  # late: it takes longer to import than everything else here
    from rich.markdown import Markdown

    Console().print(Markdown(body))


def _print_index(as_json: bool) -> None:
    titles = {code: page.title for code, page in pages().items()} | {one.id: one.title for one in FAILURES.values()}
    if as_json:
        print(json.dumps([{"code": code, "title": title} for code, title in titles.items()], indent=2))
    else:
        print("\n".join(f"{code:<5}  {title}" for code, title in titles.items()))


def _print_unknown(text: str, as_json: bool) -> None:
    if re.fullmatch(r"(HF|F)\d+", text, re.IGNORECASE):
        close = list(pages() if text[0] in "hH" else FAILURES)
        lines = [f"there is no {text.upper()}; there are {', '.join(close)}"]
    else:
        close = [failure.id for failure in near(text)]
        lines = ["no failure that is known has this text", *(f"  near: {one} {FAILURES[one].title}" for one in close)]
        lines.append("holdfast explain, without a text, lists all of them")
    if as_json:
        print(json.dumps({"error": lines[0], "near": close}, indent=2))
    else:
        print("\n".join(lines), file=sys.stderr)
