"""Which sample, which file, which transform: told from a data set and a traceback, without a loader."""

from __future__ import annotations

import functools
import gc
import os
import random
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset

from holdfast._worker.describe import describe
from holdfast._worker.transforms import failing_transform


class Folder(Dataset):
    """Ten samples, known by attributes."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError


NAMES = [f"/data/{n}.jpg" for n in range(10)]
LISTS = {
    "pairs, as in ImageFolder": {"samples": [(name, 3) for name in NAMES]},
    "an array": {"paths": numpy.array(NAMES)},
    "an array of objects": {"files": numpy.array(NAMES, dtype=object)},
    "an array of pairs": {"items": numpy.array([(name, "3") for name in NAMES])},
    "a tuple of paths": {"imgs": tuple(map(Path, NAMES))},
    "bytes": {"keys": [os.fsencode(name) for name in NAMES]},
    "records": {"records": [{"id": "x", "label": 3, "file": name} for name in NAMES]},
    "a dict": {"urls": dict(enumerate(NAMES))},
    "a name that nobody thought of": {"where_they_are": NAMES},
    "not the first that looks so": {"samples": ["a text"] * 10, "images": [b"\xff\xd8"] * 10, "paths": NAMES},
    "not a shorter list": {"keys": ["image", "label", "a.csv", "b.csv"], "paths": NAMES},
}


@pytest.mark.parametrize("attributes", LISTS.values(), ids=LISTS)
def test_a_sample_is_known_by_its_entry_in_a_list(attributes):
    assert describe(Folder(**attributes), 3) == "/data/3.jpg"


def test_numbers_of_numpy_and_torch_are_indices_too():
    folder = Folder(paths=NAMES)
    assert describe(folder, numpy.int64(4)) == describe(folder, torch.tensor(4)) == "/data/4.jpg"


def test_what_is_no_path_is_a_description_when_nothing_is_better():
    assert describe(Folder(samples=["to be or not", "that is"] * 5, extra=["a/b"] * 3), 1) == "that is"


def test_a_longer_list_is_believed_only_if_it_has_a_usual_name_and_a_path():
    assert describe(Folder(files=[*NAMES, "/data/10.jpg"]), 3) == "/data/3.jpg"
    assert describe(Folder(files=["n1", "n2", "n3", "n4"]), 3) == ""
    assert describe(Folder(roots=["/data/train", "/data/val"]), 1) == ""


def test_the_data_set_may_say_it_itself():
    class Spoken(Folder):
        def describe(self, index: int) -> Path:
            return Path("/from/describe") / str(index)

    assert describe(Spoken(paths=NAMES), 3) == "/from/describe/3"
    assert describe(Subset(Spoken(), [7, 5]), 1) == "/from/describe/5"


def test_a_describe_that_fails_or_knows_nothing_is_passed_over():
    class Broken(Folder):
        def describe(self, index: int) -> str:
            return {}[index]

    class Silent(Folder):
        def describe(self, index: int) -> None:
            return None

    assert describe(Broken(paths=NAMES), 3) == describe(Silent(paths=NAMES), 3) == "/data/3.jpg"


def test_wrappers_are_seen_through():
    class Mapped(Folder):
        pass

    first, second = Folder(paths=NAMES), Folder(paths=[f"/more/{n}.jpg" for n in range(10)])
    both = ConcatDataset([first, second])
    assert describe(both, 13) == describe(both, -7) == "/more/3.jpg"
    assert describe(both, 9) == "/data/9.jpg"
    assert describe(Subset(both, torch.tensor([0, 19])), 1) == "/more/9.jpg"
    assert describe(Subset(Subset(both, [5, 10, 15]), numpy.array([2, 1])), 1) == "/more/0.jpg"
    assert describe(Mapped(dataset=Mapped(dataset=first)), 4) == "/data/4.jpg"


def test_a_wrapper_of_another_length_is_not_seen_through():
    class Pairs(Folder):
        def __len__(self) -> int:
            return 5

    assert describe(Pairs(dataset=Folder(paths=NAMES)), 2) == ""


def test_wrappers_without_end_have_one():
    endless = Folder()
    endless.dataset = endless
    assert describe(endless, 2) == ""


def test_a_table_has_a_column_of_paths():
    class Rows(list):
        pass

    class Table:
        """Stands in for pandas.DataFrame, which is not installed here: rows by ``iloc``, and a length."""

        @property
        def iloc(self) -> list[Any]:
            return [Rows([n, "cat", name]) for n, name in enumerate(NAMES)]

        def __len__(self) -> int:
            return 10

    assert describe(Folder(annotations=Table()), 3) == "/data/3.jpg"


def test_no_property_is_run_and_no_getattr():
    class Trap(Folder):
        @property
        def samples(self) -> Any:
            raise SystemExit

        def __getattr__(self, name: str) -> Any:
            raise SystemExit

    assert describe(Trap(paths=NAMES), 3) == "/data/3.jpg"


def test_slots_are_read():
    class Slotted:
        __slots__ = ("files",)

        def __len__(self) -> int:
            return 10

    dataset = Slotted()
    assert describe(dataset, 3) == ""
    dataset.files = NAMES
    assert describe(dataset, 3) == "/data/3.jpg"


class Weird(Folder):
    def __len__(self) -> int:
        raise ValueError


@pytest.mark.parametrize("dataset", [None, 3, object(), Folder, Weird(paths=3), Weird(dataset=Weird()), [1, 2], {}])
@pytest.mark.parametrize("index", [0, -1, 10**9, "a", None, (1, 2), [1], 1.5])
def test_nothing_makes_it_raise(dataset, index):
    assert describe(dataset, index, ValueError("x")) == ""


def test_a_description_is_one_short_line():
    text = describe(Folder(samples=[f"/data/{'x' * 5000}\n\0/{n}.jpg" for n in range(10)]), 3)
    assert len(text) == 200
    assert text.isprintable()
    assert text.startswith("/data/xxx")
    assert text.endswith("/3.jpg")


def failure(action: Callable[..., Any], *arguments: Any) -> Exception:
    try:
        action(*arguments)
    except Exception as error:
        return error
    raise AssertionError("did not fail")


def test_an_error_of_the_system_names_its_file(tmp_path):
    class Opens(Folder):
        def __getitem__(self, index: int) -> Any:
            index_of_all = "/data/index.json"
            try:
                return open(tmp_path / f"{index}.bin")
            except OSError as error:
                raise ValueError(f"sample of {index_of_all}") from error

    assert describe(Opens(), 3, failure(Opens().__getitem__, 3)) == str(tmp_path / "3.bin")


def test_else_a_path_is_found_in_the_calls_that_failed(tmp_path):
    (tmp_path / "7.jpg").write_bytes(b"not an image")

    class Decodes(Folder):
        def __getitem__(self, index: int) -> Any:
            labels, path = "/labels/list.txt", f"{tmp_path}/{index}.jpg"
            return self.decode(path, f"{labels}:{index}")

        def decode(self, path: str, label: str) -> Any:
            return Image.open(path, formats=["JPEG"])

    error = failure(Decodes().__getitem__, 7)
    assert describe(Decodes(), 7, error) == str(tmp_path / "7.jpg")  # it exists
    (tmp_path / "7.jpg").unlink()
    assert describe(Decodes(), 7, error) == str(tmp_path / "7.jpg")  # it comes first, innermost


def test_a_folder_is_the_last_choice_and_a_sentence_is_none(tmp_path):
    def load(root: Path, words: str, number: str, file: str) -> None:
        raise ValueError

    assert describe(None, 7, failure(load, tmp_path, "this and/or that", "3.14", "7.wav")) == "7.wav"


# --- transforms ---


class Compose:
    def __init__(self, *transforms: Any) -> None:
        self.transforms = list(transforms)

    def __call__(self, img: Any) -> Any:
        for t in self.transforms:
            img = t(img)
        return img


class Counted(Compose):
    def __call__(self, img: Any) -> Any:
        for i in range(len(self.transforms)):
            img = self.transforms[i](img)
        return img


class Keywords(Compose):
    """As in albumentations: data goes round by name."""

    def __call__(self, *arguments: Any, **data: Any) -> Any:
        for t in self.transforms:
            data = t(**data)
        return data


class Comprehended(Compose):
    def __call__(self, img: Any) -> Any:
        return [t(img) for t in self.transforms]


class Keep:
    def __call__(self, *values: Any, **named: Any) -> Any:
        return values[0] if values else named


class Crop:
    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, img: Any) -> Any:
        if img.shape[-1] < self.size:
            raise ValueError("too small")
        return img[..., : self.size]


class CropNamed(Crop):
    def __call__(self, **named: Any) -> Any:
        return {"image": super().__call__(named["image"])}


class Spoils:
    """Puts something else in the place of its argument before it fails."""

    def __call__(self, img: Any) -> Any:
        img = numpy.zeros((2, 2))
        return img[5]


class Late:
    """Would put something else in the place of its argument after the line that fails."""

    def __call__(self, img: Any) -> Any:
        img = img[10**6]
        return img + 1


class Fails(torch.nn.Module):
    def forward(self, x: Any, strength: float = 1.0) -> Any:
        x = list(x)
        return x[10**6]


def fails(value: Any, text: str = "") -> Any:
    raise ValueError(text)


class Transformed(Folder):
    """Applies ``self.transform`` to a value."""

    def __getitem__(self, index: int) -> Any:
        value = self.value
        return self.transform(value)


def told(transform: Any, value: Any = None) -> str:
    value = torch.zeros(3, 20, 20) if value is None else value
    return failing_transform(failure(Transformed(transform=transform, value=value).__getitem__, 0))


GIVEN = "given a Tensor (3, 20, 20) float32"
KEEP, CROP = Keep(), Crop(24)
ROWS = {
    "a list": (Compose(KEEP, CROP, KEEP, KEEP), f"transform 2 of 4 in Compose: Crop, {GIVEN}"),
    "a nested list": (
        Compose(KEEP, Compose(KEEP, KEEP, CROP)),
        f"transform 2 of 2 in Compose, 3 of 3 in Compose: Crop, {GIVEN}",
    ),
    "a comprehension": (Comprehended(KEEP, CROP), f"transform 2 of 2 in Comprehended: Crop, {GIVEN}"),
    "a sequential": (
        torch.nn.Sequential(torch.nn.Identity(), Fails()),
        f"transform 2 of 2 in Sequential: Fails, {GIVEN}",
    ),
    "a module of torch in a sequential": (
        torch.nn.Sequential(torch.nn.Flatten(0), torch.nn.Linear(3, 3)),
        "transform 2 of 2 in Sequential: Linear, given a Tensor (1200,) float32",
    ),
    "a function": (Compose(KEEP, fails), f"transform 2 of 2 in Compose: fails, {GIVEN}"),
    "a partial": (Compose(KEEP, functools.partial(fails, text="x")), f"transform 2 of 2 in Compose: fails, {GIVEN}"),
    "a method": (Compose(KEEP, CROP.__call__), f"transform 2 of 2 in Compose: __call__, {GIVEN}"),
    "a function in C": (Compose(KEEP, torch.inverse), f"transform 2 of 2 in Compose: inverse, {GIVEN}"),
    "an argument that was replaced": (Compose(KEEP, Spoils()), f"transform 2 of 2 in Compose: Spoils, {GIVEN}"),
    "the same one twice, counted": (Counted(Keep(), CROP, KEEP, KEEP), f"transform 2 of 4 in Counted: Crop, {GIVEN}"),
}


@pytest.mark.parametrize(("transform", "text"), ROWS.values(), ids=ROWS)
def test_a_transform_in_a_row_is_named_by_its_place(transform, text):
    assert told(transform) == text


def test_the_same_transform_in_two_places_is_told_apart_by_a_counter_or_not_at_all():
    class Second:
        calls = 0

        def __call__(self, value: Any) -> Any:
            self.calls += 1
            return fails(value) if self.calls == 2 else value

    twice = Second()
    assert told(Counted(twice, KEEP, twice)) == f"transform 3 of 3 in Counted: Second, {GIVEN}"
    twice.calls = 0
    assert told(Compose(twice, KEEP, twice)) == f"transform 1 or 3 of 3 in Compose: Second, {GIVEN}"
    sequential = torch.nn.Sequential(torch.nn.Identity(), module := Fails(), module)
    assert told(sequential) == f"transform 2 or 3 of 3 in Sequential: Fails, {GIVEN}"


def test_functions_of_the_same_code_are_told_apart():
    def failing_if(fail: bool) -> Callable[[Any], Any]:
        return lambda value: fails(value) if fail else value

    assert told(Compose(*map(failing_if, [False, False, True, False]))).startswith(
        "transform 3 of 4 in Compose: the lam"
    )


def test_a_transform_that_takes_names_is_told_its_first():
    class Named(Transformed):
        def __getitem__(self, index: int) -> Any:
            return self.transform(image=self.value, label=3)

    dataset = Named(transform=Keywords(KEEP, CropNamed(24)), value=numpy.zeros((20, 20), numpy.uint8))
    expected = "transform 2 of 2 in Keywords: CropNamed, given an ndarray (20, 20) uint8"
    assert failing_transform(failure(dataset.__getitem__, 0)) == expected


def test_a_list_of_the_data_set_itself_is_a_row_too():
    class Loops(Folder):
        def __getitem__(self, index: int) -> Any:
            value = torch.zeros(3, 20, 20)
            for t in self.steps:
                value = t(value)
            raise KeyError("afterwards")

    error = failure(Loops(steps=[KEEP, CROP]).__getitem__, 0)
    assert failing_transform(error) == f"transform 2 of 2 in Loops: Crop, {GIVEN}"
    assert failing_transform(failure(Loops(steps=[KEEP, torch.abs]).__getitem__, 0)) == ""  # not the last of the loop


def test_a_transform_by_itself_is_named():
    assert told(CROP) == f"transform Crop, {GIVEN}"
    assert told(Fails()) == f"transform Fails, {GIVEN}"
    assert told(fails) == f"transform fails, {GIVEN}"
    assert told(functools.partial(fails, text="x")) == f"transform fails, {GIVEN}"
    line = Folder.__init__.__code__.co_firstlineno  # of this file; the lambda is further down
    named = told(lambda value: value.nothing)
    assert named.startswith("transform the lambda at test_describing.py:")
    assert int(named.partition(".py:")[2].partition(",")[0]) > line
    assert named.endswith(GIVEN)


def test_an_argument_that_was_replaced_is_not_said_to_be_given():
    class Careful(Compose):
        def __call__(self, img: Any) -> Any:
            result = img
            for t in self.transforms:
                result = t(result)
            return result

    by_then = "by then with an ndarray (2, 2) float64"
    assert told(Spoils()) == f"transform Spoils, {by_then}"
    assert told(Careful(torch.flatten, Spoils())) == f"transform 2 of 2 in Careful: Spoils, {by_then}"
    assert told(Late()) == f"transform Late, {GIVEN}"


def test_of_a_transform_that_passes_on_to_another_the_other_is_named():
    class Standard:
        def __init__(self, transform: Any) -> None:
            self.transform = transform

        def __call__(self, value: Any) -> Any:
            return self.transform(value)

    assert told(Standard(CROP)) == f"transform Crop, {GIVEN}"
    assert told(Standard(Compose(CROP))) == f"transform 1 of 1 in Compose: Crop, {GIVEN}"


def test_a_method_or_function_named_so_is_a_transform():
    class Methodical(Folder):
        def __getitem__(self, index: int) -> Any:
            return self.augment(torch.zeros(3, 20, 20))

        def augment(self, value: Any) -> Any:
            return value[9]

    assert failing_transform(failure(Methodical().__getitem__, 0)) == f"transform augment, {GIVEN}"


def test_a_cause_is_looked_into():
    class Wraps(Folder):
        def __getitem__(self, index: int) -> Any:
            try:
                return Compose(KEEP, CROP)(torch.zeros(3, 20, 20))
            except ValueError as error:
                raise RuntimeError("bad sample") from error

    assert failing_transform(failure(Wraps().__getitem__, 0)) == f"transform 2 of 2 in Compose: Crop, {GIVEN}"


INPUTS = {
    "an Image RGB 30x20": Image.new("RGB", (30, 20)),
    "an ndarray (2, 3) uint8": numpy.zeros((2, 3), numpy.uint8),
    "a Tensor () int64": torch.tensor(1),
    "a str of length 5": "hello",
    "bytes": b"abc",
    "an int": 3,
    "a tuple of 2 (Tensor (3,) float32, int)": (torch.zeros(3), 1),
    "a dict of 4 (a: int, b: str of length 1, c: list, ...)": {"a": 1, "b": "x", "c": [], "d": 2},
}


@pytest.mark.parametrize("text", INPUTS)
def test_the_input_is_told_by_type_and_size(text):
    expected = "a bytes of length 3" if text == "bytes" else text
    assert told(fails, INPUTS[text]) == f"transform fails, given {expected}"


def test_no_transform_is_none():
    def load(index: int) -> Any:
        return [][index]

    class Reads(Folder):
        def __getitem__(self, index: int) -> Any:
            return load(index)

    assert failing_transform(failure(Reads(transform=CROP).__getitem__, 0)) == ""
    assert failing_transform(failure(random.choice, [])) == ""
    assert failing_transform(ValueError()) == ""


def test_strange_objects_in_a_traceback_do_no_harm():
    class Strange:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __call__(self, value: Any) -> Any:
            return fails(value)

    assert told(Strange()) == ""
    assert describe(Transformed(), 0, failure(Transformed(transform=Strange(), value=1).__getitem__, 0)) == ""


def test_a_deep_recursion_is_searched_in_part():
    class Deep(Folder):
        def __getitem__(self, index: int) -> Any:
            return self[index + 1]

    error = failure(Deep().__getitem__, 0)
    assert describe(Deep(), 0, error) == failing_transform(error) == ""


def test_nothing_of_the_traceback_is_kept_alive():
    class Sample:
        pass

    died = []

    def load() -> Any:
        sample = Sample()
        died.append(weakref.ref(sample))
        return CROP(torch.zeros(3, 20, 20))

    gc.disable()
    try:
        try:
            Transformed(transform=lambda _: load(), value=1)[0]
        except ValueError as error:
            told = describe(None, 0, error), failing_transform(error)
        assert died[0]() is None
        assert told[0] == ""
        assert told[1].startswith("transform the lambda")
    finally:
        gc.enable()
