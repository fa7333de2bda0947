"""Paths in a data set that lead nowhere, or not from everywhere."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence

from holdfast._system.interpreter import current_directory
from holdfast._system.mounts import Place, look_at
from holdfast.audit.finding import Severity, target
from holdfast.audit.paths import is_absolute, names_a_place

from .symptom import Symptom, in_order_of_harm

_MOST = 64  # that are looked for
_PATIENCE = 1.0  # seconds that storage has to answer
_OF_THE_DATA = ("root", "root_dir", "data_dir", "data_root", "data_path", "image_dir", "img_dir", "folder")
_INDICES = re.compile(r"(\[[^\]]*\])+$")


def symptoms_of_paths(texts: Sequence[tuple[str, str]], folder: str) -> list[Symptom]:
    """``folder`` is where the program began; an empty one says nothing."""
    return [*_missing(texts), *_relative(texts, folder)]


def _missing(texts: Sequence[tuple[str, str]]) -> list[Symptom]:
    """Absolute paths that are not there, one symptom for each container."""
    found = [(path, text) for path, text in texts if is_absolute(text) and text.count(os.sep) > 1][:_MOST]
    places = {place.path: place for place in look_at((text for _, text in found), _PATIENCE)}
    owners: dict[str, list[tuple[str, Place]]] = defaultdict(list)
    for path, text in found:
        if text in places:
            owners[_owner(path)].append((path, places[text]))
    lost = ((owner, members) for owner, members in owners.items() if any(place.exists is False for _, place in members))
    symptoms = in_order_of_harm(_not_there(owner, members) for owner, members in lost)
    return list({symptom.evidence: symptom for symptom in reversed(symptoms)}.values())  # one for each missing folder


def _owner(path: str) -> str:
    """Of ``dataset.samples[3][0]`` it is ``dataset.samples``."""
    return _INDICES.sub("", path)


def _not_there(owner: str, looked_at: list[tuple[str, Place]]) -> Symptom:
    lost = [(path, place.path) for path, place in looked_at if place.exists is False]
    path, text = lost[0]
    what = f"{text!r} does not exist"
    if len(looked_at) > 1:
        what = f"{len(lost)} of {len(looked_at)} paths that were looked for do not exist, the first is {text!r}"
    gone = _first_missing(text)
    severity = Severity.WARNING if _is_read(owner, path, text) else Severity.NOTE
    fix = f"holdfast.wait_for({gone!r}, non_empty=True)  # if it is mounted late; else correct it"
    return Symptom("HD11", severity, what, path, f"there is no {gone}", fix)


def _is_read(owner: str, path: str, text: str) -> bool:
    """Samples and the folder of the data are; another single path is perhaps to be written, as that of a cache."""
    if path == owner:
        return owner.rpartition(".")[2] in _OF_THE_DATA
    return names_a_place(owner) or bool(os.path.splitext(text)[1])


def _first_missing(path: str) -> str:
    """The outermost part of a path that is not there."""
    above = os.path.dirname(path)
    return path if above == path or os.path.exists(above) else _first_missing(above)


def _relative(texts: Sequence[tuple[str, str]], folder: str) -> list[Symptom]:
    """Harmless while everybody stays in the folder where the program began."""
    here = current_directory()
    moved = bool(folder) and os.path.realpath(folder) != os.path.realpath(here)
    found: dict[str, Symptom] = {}
    for path, text in texts:
        if _owner(path) not in found and not os.path.isabs(text) and "://" not in text:
            symptom = _looked_for(path, text, here, folder if moved else "")
            if symptom is not None:
                found[_owner(path)] = symptom
    return list(found.values())


def _looked_for(path: str, text: str, here: str, before: str) -> Symptom | None:
    fix = f"{target(path)} = os.path.abspath({text!r})  # in __init__"
    if os.path.exists(text):
        what = f"{text!r} is a relative path: it is looked for where a worker happens to be"
        if before:
            moved = f"the program began in {before}, and is in {here} now"
            return Symptom("HD11", Severity.WARNING, what, path, moved, fix)
        return Symptom("HD11", Severity.NOTE, what, path, f"it is there, seen from {here}", fix)
    if before and os.path.exists(os.path.join(before, text)):
        what = f"{text!r} is a relative path, and leads nowhere since the program changed its folder"
        return Symptom("HD11", Severity.ERROR, what, path, f"it is there seen from {before}, and not from {here}", fix)
    return None
