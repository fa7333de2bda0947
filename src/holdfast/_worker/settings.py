"""Process-wide settings of the trainer that a fork would have inherited, taken along by workers that are no forks of
it.

torch's defaults, numpy's and Python's ways with errors and warnings, and the switches of Pillow that training scripts
set at their top. A setting that is not in this list, made by assigning to a module's attribute in the trainer, does
not reach workers: make it in the data set, or in worker_init_fn.
"""

from __future__ import annotations

import importlib
import pickle
import sys
import warnings
from typing import Any, NamedTuple

import cloudpickle

from holdfast._system import late

_ATTRIBUTES = (
    ("PIL.ImageFile", "LOAD_TRUNCATED_IMAGES"),
    ("PIL.Image", "MAX_IMAGE_PIXELS"),
)


class OfTorch(NamedTuple):
    dtype: str
    gradients: bool
    deterministic: bool
    deterministic_warns_only: bool
    warning_filters: bytes  # all of them: some are about its own warnings


class Settings(NamedTuple):
    """As they are in the trainer when a crew is made."""

    torch: OfTorch | None
    numpy_errors: dict[str, Any] | None
    warning_filters: list[Any]  # that can be read without torch and numpy
    attributes: dict[tuple[str, str], Any]


NOT_NEEDED = Settings(None, None, [], {})  # by who loads in the trainer itself


def gather() -> Settings:
    return Settings(
        _of_torch() if late.is_here("torch") else None,
        _numpy_errors() if late.is_here("numpy") else None,
        [one for one in warnings.filters if one[2].__module__.partition(".")[0] not in ("torch", "numpy")],
        {(module, name): getattr(sys.modules[module], name) for module, name in _ATTRIBUTES if module in sys.modules},
    )


def take_over(settings: Settings) -> None:
    """In a worker; what is said of torch and numpy, as soon as they are there."""
    warnings.filters[:] = settings.warning_filters  # type: ignore[index]
    of_torch, numpy_errors = settings.torch, settings.numpy_errors
    if numpy_errors is not None:
        late.when_here("numpy", lambda: _set_numpy_errors(numpy_errors))
    if of_torch is not None:
        late.when_here("torch", lambda: _set_torch(of_torch))
    for (module, name), value in settings.attributes.items():
        setattr(importlib.import_module(module), name, value)


def _numpy_errors() -> dict[str, Any]:
    import numpy

    return dict(numpy.geterr())


def _set_numpy_errors(theirs: dict[str, Any]) -> None:
    import numpy

    numpy.seterr(**theirs)


def _of_torch() -> OfTorch:
    import torch

    return OfTorch(
        str(torch.get_default_dtype()).removeprefix("torch."),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        cloudpickle.dumps(list(warnings.filters)),
    )


def _set_torch(theirs: OfTorch) -> None:
    """Deterministic algorithms only if that is news: the call imports a compiler, which takes 1 s."""
    import torch

    ours = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_default_dtype(getattr(torch, theirs.dtype))
    torch.set_grad_enabled(theirs.gradients)
    if (theirs.deterministic, theirs.deterministic_warns_only) != ours:
        torch.use_deterministic_algorithms(theirs.deterministic, warn_only=theirs.deterministic_warns_only)
    warnings.filters[:] = pickle.loads(theirs.warning_filters)  # type: ignore[index]
