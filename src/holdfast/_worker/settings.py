"""Process-wide settings of the trainer that a fork would have inherited, taken along by workers that are no forks of
it.

torch's defaults, numpy's and Python's ways with errors and warnings, and the switches of Pillow that training scripts
set at their top. A setting that is not in this list, made by assigning to a module's attribute in the trainer, does
not reach workers: make it in the data set, or in worker_init_fn.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any, NamedTuple

import numpy
import torch

_ATTRIBUTES = (
    ("PIL.ImageFile", "LOAD_TRUNCATED_IMAGES"),
    ("PIL.Image", "MAX_IMAGE_PIXELS"),
)


class Settings(NamedTuple):
    """As they are in the trainer when a crew is made."""

    dtype: torch.dtype
    gradients: bool
    deterministic: bool
    deterministic_warns_only: bool
    numpy_errors: dict[str, Any]
    warning_filters: list[Any]
    attributes: dict[tuple[str, str], Any]


def gather() -> Settings:
    return Settings(
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        dict(numpy.geterr()),
        list(warnings.filters),
        {(module, name): getattr(sys.modules[module], name) for module, name in _ATTRIBUTES if module in sys.modules},
    )


def take_over(settings: Settings) -> None:
    """In a worker. Deterministic algorithms only if that is news: the call imports a compiler, which takes 1 s."""
    theirs, ours = settings, gather()
    torch.set_default_dtype(theirs.dtype)
    torch.set_grad_enabled(theirs.gradients)
    if (theirs.deterministic, theirs.deterministic_warns_only) != (ours.deterministic, ours.deterministic_warns_only):
        torch.use_deterministic_algorithms(theirs.deterministic, warn_only=theirs.deterministic_warns_only)
    numpy.seterr(**theirs.numpy_errors)
    warnings.filters[:] = theirs.warning_filters  # type: ignore[index]
    for (module, name), value in theirs.attributes.items():
        setattr(importlib.import_module(module), name, value)
