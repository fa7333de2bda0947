"""``module:attribute``, ``file.py:attribute`` or a script: the data set that it means, and its loader if it has one."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast._system.alarm import TimeOver, alarm
from holdfast._system.interpreter import current_directory

from . import mistake
from .mistake import Mistake, raised
from .program import run_script

FORMS = "module:attribute, file.py:attribute (a data set, a loader, or a function that makes one), or script.py"


@dataclass(frozen=True)
class Target:
    """``loader`` is None where the user named a data set; ``text`` is how they named it, ``folder`` where that was."""

    text: str
    dataset: Any
    loader: Any = None
    folder: str = ""


def find(text: str, arguments: Sequence[str] = (), limit: float | None = None) -> Target:
    """Raises `Mistake`, also for what the user's own code raises, and when it takes more than ``limit`` seconds.

    ``arguments`` are those of a script.
    """
    try:
        with alarm(limit):
            return _found(text, arguments)
    except Mistake:
        raise
    except Exception as error:  # of theirs that is only asked what it has: its __getattr__, for one
        raise raised(text, error) from None
    except TimeOver as over:
        raise Mistake(f"{text} was not there after {limit:.1f} s", mistake.place(over.__traceback__)) from None


def _found(text: str, arguments: Sequence[str]) -> Target:
    folder = current_directory()
    place, colon, attribute = text.rpartition(":")
    if not colon or os.path.exists(text):
        return Target(text, *_parts(_reached(text, arguments), text), folder)
    if not place or not attribute:
        raise Mistake(f"{text!r} names nothing", f"valid are {FORMS}")
    if arguments:
        raise Mistake(f"{text} takes no arguments, and was given {' '.join(arguments)}")
    sys.argv[:] = [place]  # code that reads arguments has none, and not ours
    try:
        made = _made(_attribute(_module(place), attribute, text), text)
    except SystemExit as end:
        hint = 'what ends it belongs under if __name__ == "__main__":; or name the script alone, train.py -- --epochs 1'
        raise Mistake(f"{text} cannot be had: {_ended(end)}", hint) from None
    return Target(text, *_parts(made, text), folder)


def _ended(end: SystemExit) -> str:
    return f"it ended with exit code {end.code or 0}" if not isinstance(end.code, str) else f"it ended: {end.code}"


# -- a script ----------------------------------------------------------------------------------


class _Reached(BaseException):
    """Not an ``Exception``: a script that catches everything does not catch this."""


def _reached(path: str, arguments: Sequence[str]) -> Any:
    """Runs the script up to where it first iterates over a loader, stock or ours, and no further.

    What it does about being stopped is not asked for: a framework may fail at clearing up what has not begun.
    """
    if not os.path.isfile(path):
        raise Mistake(f"there is no file {path}", f"valid are {FORMS}")
    why = "it ended"
    with _stopping() as loaders:
        try:
            run_script(path, arguments)
        except (Mistake, KeyboardInterrupt):
            raise
        except SystemExit as end:
            why = _ended(end)
        except BaseException as error:
            if not loaders:
                raise (error if isinstance(error, TimeOver) else raised(path, error)) from None
    if loaders:
        return loaders[0]
    raise Mistake(
        f"{path} iterated over no DataLoader: {why}",
        f"name what it makes: {path}:make_loader, or give it arguments: {path} -- --epochs 1",
    )


@contextlib.contextmanager
def _stopping() -> Iterator[list[Any]]:
    """The loaders that were reached meanwhile."""
    import torch.utils.data

    reached: list[Any] = []

    def stop(loader: Any) -> Any:
        reached.append(loader)
        raise _Reached

    stock, theirs = torch.utils.data.DataLoader, torch.utils.data.DataLoader.__iter__
    stock.__iter__ = stop  # type: ignore[method-assign]
    try:
        yield reached
    finally:
        stock.__iter__ = theirs  # type: ignore[method-assign]


# -- an attribute ------------------------------------------------------------------------------


def _module(place: str) -> ModuleType:
    if place.endswith(".py") or os.sep in place:
        return _module_of_file(place)
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise Mistake(f"there is no module named {error.name}", f"valid are {FORMS}") from None
        raise raised(place, error) from None
    except Exception as error:
        raise raised(place, error) from None


def _module_of_file(place: str) -> ModuleType:
    """Imported under its own name, with its folder in the path: so that workers can import it, too."""
    path = Path(place)
    if not path.is_file():
        raise Mistake(f"there is no file {place}", f"valid are {FORMS}")
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise Mistake(f"{place} is not a Python program", f"valid are {FORMS}")
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise raised(place, error) from None
    return module


def _attribute(module: ModuleType, names: str, text: str) -> Any:
    value: Any = module
    for name in names.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            there = [one for one in vars(value) if not one.startswith("_")] if hasattr(value, "__dict__") else []
            raise Mistake(f"{text}: there is no {name}", f"there are {', '.join(there[:20])}") from None
        except Exception as error:
            raise raised(text, error) from None
    return value


def _made(value: Any, text: str) -> Any:
    """A function, or a class, is called; a Lightning data module, or module, is asked for its training loader."""
    if inspect.isclass(value) or inspect.isroutine(value):
        value = _called(value, text)
    if hasattr(value, "train_dataloader"):
        for name, given in (("prepare_data", ()), ("setup", ("fit",))):
            if hasattr(value, name):
                _called(getattr(value, name), f"{text}.{name}", *given)
        value = _called(value.train_dataloader, f"{text}.train_dataloader")
    return value


def _called(function: Any, text: str, *given: Any) -> Any:
    try:
        inspect.signature(function).bind(*given)
    except TypeError:
        needs = inspect.signature(function)
        hint = "name a function that takes none, and makes it"
        raise Mistake(f"{text}{needs} cannot be called without arguments", hint) from None
    except ValueError:
        pass  # written in C, and says nothing of what it takes
    try:
        return function(*given)
    except Exception as error:
        raise raised(text, error) from None


def _parts(made: Any, text: str) -> tuple[Any, Any]:
    """Data set and loader."""
    import torch.utils.data

    if isinstance(made, torch.utils.data.DataLoader):
        return made.dataset, made
    if hasattr(made, "__getitem__") and hasattr(made, "__len__") and not isinstance(made, tuple | dict):
        return made, None
    if isinstance(made, torch.utils.data.IterableDataset):
        return made, None
    kind = f"{type(made).__module__}.{type(made).__qualname__}".removeprefix("builtins.")
    hint = "name a function that makes one of them" if isinstance(made, tuple | dict) else f"valid are {FORMS}"
    raise Mistake(f"{text} is neither a data set nor a loader but {kind}", hint)
