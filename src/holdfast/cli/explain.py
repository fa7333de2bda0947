"""``holdfast explain``: from a code, a number, a name or a pasted message to the page about it."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from holdfast.pages import Page, all_pages, rule_pages
from holdfast.pages.failures import FAILURES, Failure, matching, near

from .style import AsJson, console, print_json

NOT_FOUND = 1
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def explain(
    topic: Annotated[
        list[str] | None,
        typer.Argument(help="HF201, HL101, HD03, F28, WorkerDied, a pasted error text, or - for standard input."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain an error, a lint rule, a failure of the field guide, or any error text of torch or multiprocessing.

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
    """What is called so: a code, a number of the field guide, the name of an error. Lint rules have numbers of their
    own, so HF101 may be either: the error comes first."""
    if number := re.fullmatch(r"[fF](\d{1,2})", text):
        failure = FAILURES.get(f"F{int(number[1]):02}")
        return [_page(failure)] if failure else []
    name = text.removeprefix("holdfast.")
    code = name.upper()
    found = [page for page in all_pages().values() if code == page.code or name == page.name]
    rule = rule_pages().get(code.replace("HF", "HL", 1)) if code.startswith("HF") else None
    return [*found, rule] if rule else found


def _about(text: str) -> list[Page]:
    """What a text is about: codes of ours that are in it, then failures whose message it has."""
    codes, known = dict.fromkeys(re.findall(r"\bH[FLD]\d{2,3}\b", text)), all_pages()
    return [known[code] for code in codes if code in known] + [_page(failure) for failure in matching(text)]


def _page(failure: Failure) -> Page:
    return Page(failure.id, failure.title, failure.body)


def _print_page(page: Page, others: list[Page], as_json: bool) -> None:
    if as_json:
        also = [{"code": other.code, "title": other.title} for other in others]
        print_json({"code": page.code, "title": page.title, "body": page.body, "others": also})
        return
    body = page.body
    if others:
        body += "\n## See also\n\n" + "\n".join(f"- {other.code} {other.title}" for other in others) + "\n"
    if sys.stdout.isatty():
        _print_markdown(body)
    else:
        print(body, end="")


def _print_markdown(body: str) -> None:
    from rich.markdown import Markdown  # late: it takes longer to import than everything else here

    console().print(Markdown(body))


def _print_index(as_json: bool) -> None:
    titles = {code: page.title for code, page in all_pages().items()} | {one.id: one.title for one in FAILURES.values()}
    if as_json:
        print_json([{"code": code, "title": title} for code, title in titles.items()])
    else:
        print("\n".join(f"{code:<5}  {title}" for code, title in titles.items()))


def _print_unknown(text: str, as_json: bool) -> None:
    if code := re.fullmatch(r"(H[FLD]|F)\d+", text, re.IGNORECASE):
        close = [one for one in [*all_pages(), *FAILURES] if one.startswith(code[1].upper())]
        lines = [f"there is no {text.upper()}; there are {', '.join(close)}"]
    else:
        close = [failure.id for failure in near(text)]
        lines = ["no failure that is known has this text", *(f"  near: {one} {FAILURES[one].title}" for one in close)]
        lines.append("holdfast explain, without a text, lists all of them")
    if as_json:
        print_json({"error": lines[0], "near": close})
    else:
        print("\n".join(lines), file=sys.stderr)
