"""What rules may ask about a file."""

from __future__ import annotations

import ast

import pytest

from holdfast.lint.contexts import Role
from holdfast.lint.script import Script


def script(text: str) -> Script:
    return Script(text, ast.parse(text))


@pytest.mark.parametrize(
    "line",
    [
        "from torch.utils.data import DataLoader; DataLoader(x)",
        "from torch.utils.data.dataloader import DataLoader as Loader; Loader(x)",
        "import torch.utils.data as D; D.DataLoader(x)",
        "import torch; torch.utils.data.DataLoader(x)",
        "from torch.utils import data; data.DataLoader(x)",
        "from torch.utils.data import *; DataLoader(x)",
        "import torch\nMine = torch.utils.data.DataLoader\nMine(x)",
        "try:\n    from torch.utils.data import DataLoader\nexcept ImportError:\n    DataLoader = None\nDataLoader(x)",
        "def f():\n    from torch.utils.data import DataLoader\n    return DataLoader(x)",
    ],
)
def test_a_loader_is_known_under_every_name(line: str):
    assert len(script(line).loaders) == 1


@pytest.mark.parametrize(
    "line",
    [
        "from .data import DataLoader; DataLoader(x)",
        "class DataLoader: pass\nDataLoader(x)",
        "DataLoader(x)",
        "from torch.utils.data import DataLoader\ndef f(DataLoader):\n    return DataLoader(x)",
        "from torch.utils.data import DataLoader\ndef f():\n    DataLoader = g()\n    return DataLoader(x)",
    ],
)
def test_what_is_only_called_so_is_no_loader(line: str):
    assert not script(line).loaders


def test_a_data_set_is_known_by_its_base_by_that_of_its_base_or_by_its_loader():
    text = """
from torch.utils.data import DataLoader, IterableDataset
from torchvision.datasets import VisionDataset
from tensorflow.data import Dataset as Other

class Images(VisionDataset): pass
class Stream(IterableDataset[int]): pass
class Longer(Stream): pass
class Plain:
    def __getitem__(self, index): return index
class Unused:
    def __getitem__(self, index): return index
class Theirs(Other): pass

def local():
    class Base(Images): pass
    class Inner(Base): pass
    return Inner()

plain = Plain()
loader = DataLoader(plain)
"""
    found = {dataset.name: dataset.iterable for dataset in script(text).datasets}
    assert found == {
        "Images": False, "Stream": True, "Longer": True, "Plain": False,
        "Base": False, "Inner": False,
    }


def test_item_functions_are_found_through_what_they_are_handed_to():
    found = script("""
import functools, multiprocessing
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import Compose

class Images(Dataset):
    def __init__(self): self.setup()
    def setup(self): pass
    def __getitem__(self, index): return self._read(index)
    def _read(self, index): return parse(index)

def parse(text): return text
def collate(batch, size): return batch
def first(worker): pass
def resize(image): return image
def task(item): return item
def unrelated(): return parse(1)

images = Images(transform=Compose([resize]))
loader = DataLoader(images, collate_fn=functools.partial(collate, size=3), worker_init_fn=first)
with multiprocessing.get_context("spawn").Pool(4) as pool:
    pool.map(task, range(3))
""")
    assert {item.via: item.role for item in found.items} == {
        "Images.__getitem__": Role.SAMPLE,
        "Images._read (called by Images.__getitem__)": Role.SAMPLE,
        "parse (called by Images.__getitem__)": Role.SAMPLE,
        "collate": Role.COLLATE,
        "resize": Role.TRANSFORM,
        "first": Role.WORKER_INIT,
        "task": Role.TASK,
    }


def test_a_name_that_is_assigned_once_stands_for_its_value():
    text = "a = b = 3\nc = a\nd = 1\nd = 2\ne = f\nf = e\ndef g(a):\n    return a\nprint(c, d, e)"
    one = script(text)
    shown = [one.value_of(argument) for argument in one.calls_to("print")[0].args]
    assert [value and ast.unparse(value) for value in shown] == ["3", None, None]
    assert one.value_of(one.nodes(ast.Return)[0].value) is None


def test_what_runs_at_import_is_neither_in_a_function_nor_under_the_main_guard():
    functions = "def f(x=b()):\n    c()\nclass C:\n    d()\nf = lambda: g()\n@h()\ndef i(): pass"
    one = script(f"a()\n{functions}\nif __name__ == '__main__':\n    e()\n")
    assert "".join(call.func.id for call in one.nodes(ast.Call) if one.at_import(call)) == "abdh"


@pytest.mark.parametrize(
    ("body", "undefined"),
    [
        ("return iamge", {"iamge"}),
        ("return len(image)", set()),
        ("return Defined, imported, written, __file__", set()),
        ("return [one for one in index], (lambda two: two + three)", {"three"}),
        ("if (n := index): return n", set()),
        ("try:\n        pass\n    except ValueError as error:\n        return error", set()),
        ("match index:\n        case {'a': found, **rest}:\n            return found, rest", set()),
        ("class Inner:\n        field = 1\n        other = field\n    return Inner", set()),
        ("def inner(): return __class__\n    return inner", set()),
        ("del index", set()),
    ],
)
def test_a_name_is_undefined_when_nothing_defines_it(body: str, undefined: set[str]):
    one = script(
        f"import imported\nclass Defined: pass\ndef w():\n    global written\n    written = 1\n"
        f"@w\ndef f(index, image=1):\n    {body}\n"
    )
    function = one.nodes(ast.FunctionDef)[-1 if "inner" not in body else 1]
    assert one.undefined_names(function) == undefined


@pytest.mark.parametrize("line", ["from numpy import *", "exec(code)", "globals()['x'] = 1"])
def test_nothing_is_undefined_where_names_come_from_elsewhere(line: str):
    one = script(f"{line}\ndef f():\n    return iamge\n")
    assert one.undefined_names(one.nodes(ast.FunctionDef)[0]) == frozenset()
