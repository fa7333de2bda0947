"""Whatever the program does with torch's class, what it gets is ours, and it cannot tell."""

from __future__ import annotations

import inspect
import json
import pickle
import re
from pathlib import Path

import pytest
from adoption_runs import run
from torch.utils.data import DataLoader

# One program, without a main guard, that does all that programs do to torch's class; each check has a name.
PROGRAM = '''
import importlib.util
assert importlib.util.find_spec("torch")  # as libraries ask that can do without
import abc, copy, functools, inspect, io, json, multiprocessing.context, os, pickle, sys, types, warnings
import torch, torch.utils.data, torch.utils.data.dataloader
from torch.utils.data import DataLoader, Dataset, IterableDataset, SequentialSampler
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter
import holdfast

CHECKS = {}

def check(function):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            CHECKS[function.__name__] = function()
    except BaseException as error:
        CHECKS[function.__name__] = f"{type(error).__name__}: {error}"

class Eight(Dataset):
    def __len__(self): return 8
    def __getitem__(self, index): return torch.tensor(index)

class Stream(IterableDataset):
    def __iter__(self): return iter(range(6))

class Told(Dataset):
    """What a worker knows of the run."""
    def __len__(self): return 1
    def __getitem__(self, index):
        adopted = any(name.endswith("diversion") for name in sys.modules)  # a whole name would have it imported
        return torch.tensor(adopted), torch.tensor("HOLDFAST_RUN" in os.environ)

def numbers(loader): return torch.cat([batch.reshape(-1) for batch in loader]).tolist()
def is_ours(loader, expected=list(range(8))):
    return isinstance(loader, holdfast.DataLoader) and isinstance(loader, DataLoader) and numbers(loader) == expected

@check
def by_every_name():
    names = torch.utils.data.DataLoader, torch.utils.data.dataloader.DataLoader, DataLoader, DataLoader[int]
    return all(is_ours(name(Eight(), 2)) for name in names) and len({id(name) for name in names[:3]}) == 1

@check
def with_workers():
    return is_ours(DataLoader(Eight(), batch_size=2, num_workers=2))

@check
def in_a_default_argument():
    def make(kind=DataLoader): return kind(Eight())
    return is_ours(functools.partial(make)())

@check
def a_subclass_with_arguments_of_its_own():
    class Named(DataLoader):
        def __init__(self, name, *args, **kwargs):
            super().__init__(Eight(), *args, **kwargs)
            self.name = name
    loader = Named("train", 4, num_workers=1)
    return is_ours(loader) and loader.name == "train" and str(inspect.signature(Named)) == "(name, *args, **kwargs)"

@check
def a_subclass_that_calls_the_constructor_by_its_name():
    class Plain(torch.utils.data.DataLoader):
        def __init__(self, dataset): DataLoader.__init__(self, dataset, batch_size=4)
    return is_ours(Plain(Eight()))

@check
def a_subclass_of_two():
    class Mixin(abc.ABC):
        @abc.abstractmethod
        def name(self): ...
    class Both(Mixin, DataLoader[int]):
        def name(self): return "both"
    class Again(Both, DataLoader): pass
    return is_ours(Both(Eight())) and is_ours(Again(Eight())) and issubclass(Again, DataLoader)

@check
def a_subclass_of_ours_and_torchs():
    class Both(holdfast.DataLoader, DataLoader): pass
    return is_ours(Both(Eight()))

@check
def a_loader_that_repeats_itself():
    """As many detection trainers have it: one iterator for ever."""
    class Repeat:
        def __init__(self, sampler): self.sampler = sampler
        def __iter__(self):
            while True: yield from iter(self.sampler)
    class Infinite(DataLoader):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            object.__setattr__(self, "batch_sampler", Repeat(self.batch_sampler))
            self.iterator = super().__iter__()
        def __len__(self): return len(self.batch_sampler.sampler)
        def __iter__(self):
            for _ in range(len(self)): yield next(self.iterator)
    loader = Infinite(Eight(), batch_size=4, num_workers=2)
    return is_ours(loader) and is_ours(loader)

@check
def a_subclass_that_makes_torchs_iterator():
    class Own(DataLoader):
        def _get_iterator(self): return _MultiProcessingDataLoaderIter(self)
    return numbers(Own(Eight(), num_workers=1))

@check
def the_signature_is_torchs():
    return str(inspect.signature(DataLoader)) == os.environ["SIGNATURE"]

@check
def pickled_and_copied():
    loader = DataLoader(Eight(), batch_size=2)
    return all(is_ours(each) for each in (pickle.loads(pickle.dumps(loader)), copy.copy(loader), copy.deepcopy(loader)))

@check
def a_stock_loader_counts():
    stock = pickle.loads(bytes.fromhex(os.environ["STOCK"]))
    return isinstance(stock, DataLoader) and not isinstance(stock, holdfast.DataLoader) and numbers(stock)

@check
def torchdatas_loader_is_left_alone():
    from torchdata.stateful_dataloader import StatefulDataLoader
    warnings.simplefilter("ignore")  # its own: it calls what torch has deprecated
    class Mine(StatefulDataLoader): pass
    alone = not issubclass(StatefulDataLoader, holdfast.DataLoader) and not issubclass(Mine, holdfast.DataLoader)
    return alone and issubclass(Mine, DataLoader) and numbers(Mine(Eight(), num_workers=1))

@check
def what_torch_refuses_is_torchs_error():
    errors = []
    for kwargs in ({"num_workers": -1}, {"shuffle": True, "sampler": []}, {"nonsense": 1}):
        try: DataLoader(Eight(), **kwargs)
        except (TypeError, ValueError) as error: errors.append((str(error), error.__context__))
    return errors == [
        ("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.", None),
        ("sampler option is mutually exclusive with shuffle", None),
        ("DataLoader.__init__() got an unexpected keyword argument 'nonsense'", None),
    ] or errors

@check
def what_only_we_refuse_is_left_to_torch():
    class Odd(multiprocessing.context.ForkContext):
        _name = "odd"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loader = DataLoader(Eight(), num_workers=1, multiprocessing_context=Odd())
    told = [str(each.message) for each in caught if each.filename == __file__]
    return type(loader) is DataLoader and numbers(loader) == list(range(8)) and told

@check
def options_are_for_what_the_program_does_not_say():
    loader, own = DataLoader(Eight()), holdfast.DataLoader(Eight(), max_restarts=7, on_error="raise")
    said = [loader.max_restarts, loader.on_error, own.max_restarts, own.on_error]
    return said == [3, holdfast.Skip(limit=5), 7, "raise"] or said

@check
def an_option_for_streams_is_for_streams():
    return DataLoader(Stream()).shard == "auto" and DataLoader(Eight()).shard is None \\
        and sorted(numbers(DataLoader(Stream(), num_workers=2))) == list(range(6))

@check
def workers_are_not_adopted_but_their_children_are():
    return [[flag.item() for flag in each] for each in DataLoader(Told(), num_workers=1)]

@check
def tracebacks_of_ours_do_not_hide_the_line():
    try: DataLoader(Eight(), num_workers="two")
    except TypeError as error: return error.__traceback__.tb_frame.f_code.co_name

print(json.dumps(CHECKS))
'''
EXPECTED = {
    "a_subclass_that_makes_torchs_iterator": list(range(8)),
    "a_stock_loader_counts": [0, 1, 2],
    "torchdatas_loader_is_left_alone": list(range(8)),
    "what_only_we_refuse_is_left_to_torch": [
        "this DataLoader stays torch's own: multiprocessing_context should be one of Python's own, but starts by 'odd' "
        "[HF501]"
    ],
    "workers_are_not_adopted_but_their_children_are": [[False, True]],
    "tracebacks_of_ours_do_not_hide_the_line": "tracebacks_of_ours_do_not_hide_the_line",
}
CHECKS = [line[4:-3] for line, before in zip(PROGRAM.splitlines()[1:], PROGRAM.splitlines()) if before == "@check"]


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder: Path = tmp_path_factory.mktemp("program")
    (folder / "program.py").write_text(PROGRAM)
    stock, signature = pickle.dumps(DataLoader([0, 1, 2])).hex(), str(inspect.signature(DataLoader))
    options = "--on-error", "skip:5", "--max-restarts", "3", "--shard", "auto", "--quiet"
    ran = run(folder, *options, "program.py", STOCK=stock, SIGNATURE=signature)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CHECKS)
def test_what_torchs_class_makes_is_ours(checks: dict[str, object], name: str):
    assert checks[name] == EXPECTED.get(name, True)


SPAWNS = """
import holdfast.loader  # which imports torch itself
import torch.multiprocessing as mp
from torch.utils.data import DataLoader

class Before(DataLoader): pass

def kind(_):
    loader = Before([1], num_workers=2, persistent_workers=True)
    return type(loader).__mro__[1].__module__, loader.num_workers

def rank(_):
    for batch in DataLoader([1, 2, 3]): pass

if __name__ == "__main__":
    with mp.get_context("spawn").Pool(1) as pool:
        print(*pool.map(kind, [0])[0])
    holdfast.spawn(rank, nprocs=2)
"""


@pytest.mark.slow
def test_children_are_adopted_with_the_same_options(tmp_path: Path):
    """Spawned by Python or started by us. ``num_workers`` holds whatever the program says, and nothing needs more."""
    (tmp_path / "spawns.py").write_text(SPAWNS)
    ran = run(tmp_path, "--no-warm", "--num-workers", "0", "spawns.py")
    assert (ran.stdout, ran.returncode) == ("holdfast.loader 0\n", 0), ran.stderr
    assert len(re.findall(r"pid \d+ spawns.py:13  list +1 +3 ", ran.stderr)) == 2
