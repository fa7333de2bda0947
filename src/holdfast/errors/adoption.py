"""What ``holdfast run`` could not do."""

from __future__ import annotations

from .base import HoldfastWarning


class NotAdopted(HoldfastWarning):
    """A loader that torch can make and we cannot: it is torch's, and nothing holds it."""

    code = "HF501"
