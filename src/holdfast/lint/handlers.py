"""What becomes of an exception that is caught: raised again, told, or swallowed."""

from __future__ import annotations

import ast

_ALL = {"Exception", "BaseException"}
# Calls that leave a trace somewhere: a log, a stream, a list of bad files, a counter.
_TELLING = {
    *("print", "log", "debug", "info", "warn", "warning", "error", "exception", "critical", "write", "secho", "echo"),
    *("print_exc", "print_exception", "format_exc", "capture_exception", "add", "append", "put", "send", "inc", "exit"),
}
_CLEANING = {"close", "unlink", "remove", "rmtree", "kill", "terminate", "release", "shutdown", "stop", "join", "clear"}


def caught(handler: ast.ExceptHandler) -> list[str]:
    """Names of what it catches, as they are written; a bare ``except`` catches ``BaseException``."""
    if handler.type is None:
        return ["BaseException"]
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [getattr(kind, "id", getattr(kind, "attr", "")) for kind in kinds]


def catches_all(handler: ast.ExceptHandler) -> bool:
    """Whether programming errors are among what it catches."""
    return not _ALL.isdisjoint(caught(handler))


def goes_on(handler: ast.ExceptHandler) -> bool:
    """Whether the function does so: nothing is raised in the handler."""
    return not any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def swallows(handler: ast.ExceptHandler) -> bool:
    """Whether nobody learns of the exception: the handler passes, continues or returns, and tells nobody. A handler
    that assigns has found a way to go on with this sample, which is not for us to judge."""
    quiet = (ast.Pass, ast.Continue, ast.Break, ast.Return, ast.Expr)
    return all(isinstance(one, quiet) for one in handler.body) and not _tells(handler)


def cleans_up(attempt: ast.Try) -> bool:
    """Whether all that is tried is to put something away, which may be gone already."""
    calls = [one.value for one in attempt.body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)]
    return len(calls) == len(attempt.body) and all(_last(call.func) in _CLEANING for call in calls)


def _tells(handler: ast.ExceptHandler) -> bool:
    inside = [node for statement in handler.body for node in ast.walk(statement)]
    named = any(isinstance(node, ast.Name) and node.id == handler.name for node in inside)
    return named or any(isinstance(node, ast.Call) and _last(node.func) in _TELLING for node in inside)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
