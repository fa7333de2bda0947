"""`holdfast explain`: from a code, a number, a name or a pasted message to the page about it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import holdfast
from holdfast import errors
from holdfast.cli import app
from holdfast.errors import HoldfastError, HoldfastWarning
from holdfast.pages import all_pages, check_pages, pages, rule_pages
from holdfast.pages.failures import FAILURES, matching

COMMAND = str(Path(sys.executable).parent / "holdfast")
CLASSES = {
    value.code: value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, HoldfastError | HoldfastWarning) and value.code != "HF000"
}
SECTIONS = ["What happened", "Why it happens", "What holdfast did", "What to do", "The same with stock torch"]

# What people paste, as stock torch and multiprocessing print it (or as they describe it, where nothing is printed).
PASTED = {
    "F01": "This process (pid=7) is multi-threaded, use of fork() may lead to deadlocks in the child",
    "F02": "AttributeError: Can't pickle local object 'main.<locals>.<lambda>'",
    "F03": "AttributeError: Can't get attribute 'Numbers' on <module '__main__' (built-in)>",
    "F04": "RuntimeError: \n        An attempt has been made to start a new process before the\n"
    "        current process has finished its bootstrapping phase.",
    "F05": "TypeError: cannot pickle '_io.BufferedReader' object",
    "F06": "spawn is slow: ten seconds to the first batch, each epoch",
    "F07": "RuntimeError: context has already been set",
    "F08": "ValueError: cannot find context for 'forkserver'",
    "F09": "TypeError: BaseContext.Pool() got an unexpected keyword argument 'mp_context'",
    "F10": "AssertionError: daemonic processes are not allowed to have children",
    "F11": "the data set is pickled for each worker",
    "F12": "TypeError: cannot pickle 'torch._C.Generator' object",
    "F13": "FileNotFoundError: [Errno 2] No such file or directory: 'data/train/1.jpg'",
    "F14": "my worker_init_fn raises and nothing happens",
    "F20": "OSError: Caught OSError in DataLoader worker process 0.",
    "F21": "TypeError: default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
    "found <class 'NoneType'>",
    "F22": "NameError: name 'iamge' is not defined",
    "F23": "RuntimeError: stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1",
    "F24": '  File "/lib/torchvision/transforms/transforms.py", line 95, in __call__',
    "F25": "RuntimeError: Caught MyError in DataLoader worker process 0.",
    "F26": '  File "/usr/lib/python3.11/multiprocessing/queues.py", line 244, in _feed',
    "F27": "the epoch ends early after a StopIteration",
    "F28": "RuntimeError: DataLoader worker (pid(s) 4123, 4124) exited unexpectedly",
    "F29": "RuntimeError: DataLoader worker (pid 4123) is killed by signal: Segmentation fault. ",
    "F30": "Caught KeyboardInterrupt in DataLoader worker process 1.",
    "F31": "RuntimeError: DataLoader timed out after 3 seconds",
    "F32": "RuntimeError: DataLoader worker (pid 4123) is killed by signal: Bus error. It is possible that "
    "dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
    "F33": "RuntimeError: received 0 items of ancdata",
    "F34": "RuntimeError: unable to open shared memory object </torch_92_1> in read-write mode: No such file or "
    "directory (2)",
    "F35": "memory grows with every epoch in workers: copy-on-write",
    "F36": "OSError: [Errno 12] Cannot allocate memory",
    "F37": "there is a memory leak in my decoder",
    "F38": "all workers draw the same random numbers",
    "F39": "np.random repeats in pool tasks",
    "F40": "UserWarning: Length of IterableDataset <X> was reported to be 100 (when accessing len(dataloader)), but "
    "101 samples have been fetched. ",
    "F41": "set_epoch has no effect with persistent workers",
    "F42": "one slow sample and all workers idle",
    "F43": "zipfile.BadZipFile: Bad magic number for file header",
    "F44": "my global counter stays 0",
    "F45": "AttributeError: 'NoneType' object has no attribute 'get'",
    "F46": "ValueError: num_samples should be a positive integer value, but got num_samples=0",
    "F47": "the ranks see different files",
    "F48": "OSError: [Errno 5] Input/output error: '/mnt/nfs/1.jpg'",
    "F49": "RuntimeError: Pin memory thread exited unexpectedly",
    "F50": "we ignore SIGCHLD",
    "F51": "orphaned workers hold memory",
    "F52": "AssertionError: can only test a child process",
    "F53": "Process Process-1:\nTraceback (most recent call last):\nKeyboardInterrupt",
    "F54": "batch = next(iter(loader))",
    "F55": "libgomp: Thread creation failed: Resource temporarily unavailable",
    "F60": "Pool.map hangs after a worker was killed",
    "F61": "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while "
    "the future was running or pending.",
    "F62": "RuntimeError: SynchronizedArray objects should only be shared between processes through inheritance",
    "F63": "a tensor silently becomes shared",
    "F64": "UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at shutdown",
    "F65": "_pickle.UnpicklingError: Weights only load failed.",
    "F66": "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL",
    "F67": "multiprocessing/pool.py: MaybeEncodingError: OSError: [Errno 24] Too many open files",
    "F68": "Process SpawnPoolWorker-3:\nAttributeError: Can't get attribute 'work' on <module '__main__' (built-in)>",
    "F69": "multiprocessing.context.TimeoutError",
    "F80": "AttributeError: 'DataLoader' object has no attribute 'state_dict'",
    "F81": "after a restart from a checkpoint it repeats some samples",
    "F82": "accelerator.prepare(loader) loses my options",
    "F83": "TypeError: Trying to inject custom `DistributedSampler` into the `Mine` instance.",
    "F84": "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(...)",
    "F85": "UserWarning: This DataLoader will create 16 worker processes in total. Our suggested max number of worker "
    "in current system is 2, which is smaller than what this DataLoader is going to create.",
    "F86": "The 'train_dataloader' does not have many workers which may be a bottleneck. Consider increasing the value "
    "of the `num_workers` argument`",
    "F87": "bdb.BdbQuit",
}
ALSO = {
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use 'spawn'": "F01",
    "PicklingError: Can't pickle <function <lambda> at 0x7f>: attribute lookup <lambda> on __main__ failed": "F02",
    "AttributeError: Can't get local object 'make.<locals>.Data'": "F02",
    "BrokenPipeError: [Errno 32] Broken pipe": "F04",
    "EOFError: Ran out of input": "F05",
    "AttributeError: module 'multiprocessing' has no attribute 'shared_memory'": "F09",
    "RuntimeError: each element in list of batch should be of equal size": "F23",
    "RuntimeError: Trying to resize storage that is not resizable": "F23",
    "ConnectionResetError: [Errno 104] Connection reset by peer": "F28",
    "DataLoader worker (pid 41) is killed by signal: Killed. ": "F28",
    "EOFError": "F28",
    "Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).": "F32",
    "RuntimeError: unable to write to file </torch_1_2>: No space left on device (28)": "F32",
    "OSError: [Errno 28] No space left on device": "F32",
    "OSError: [Errno 24] Too many open files": "F33",
    "RuntimeError: unable to open shared memory object </torch_1> in read-write mode: Too many open files (24)": "F33",
    "RuntimeError: unable to mmap 1024 bytes from file </torch_1_2>: Cannot allocate memory (12)": "F33",
    "ConnectionRefusedError: [Errno 111] Connection refused": "F34",
    "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/pymp-x/listener-y'": "F34",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/train/1.jpg'": "F46",
    "OSError: [Errno 116] Stale file handle": "F48",
    "how to resume the epoch with StatefulDataLoader": "F80",
    "in _restore_main_state\n    assert self._num_workers == state_dict[self._NUM_WORKERS]\nAssertionError": "F80",
    "AssertionError: State doesn't contain key '_snapshot' expected for multiprocess dataloader": "F80",
    "Neither dataset nor iter(dataset) defines state_dict/load_state_dict so we are naively fast-forwarding your "
    "dataset by 3 steps. For more efficient resumes, please implement `state_dict` and `load_state_dict` in your "
    "IterableDataset and/or iterator.": "F80",
    "ValueError: last_yielded_worker_id does not match, the dataset may have changed": "F80",
    "lightning/pytorch/loops/training_epoch_loop.py:161: You're resuming from a checkpoint that ended before the epoch "
    "ended and your dataloader is not resumable.": "F80",
    "state_dict and load_state_dict for DataLoader and Sampler to continue training at specific epoch and batch": "F80",
    "How can I save the state of my DataLoader?": "F80",
    "some samples are missing after I resume": "F81",
    "prefetched batches are lost when I restart": "F81",
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800000ms for "
    "recv operation to complete": "F84",
    "IterableDataset with DDP and unequal data lengths on different ranks causes NCCL timeout": "F84",
}


def run(*arguments: str, text: bytes = b"") -> Result:
    """In this process, for the sake of time; `test_the_installed_command...` run the real one."""
    ran = CliRunner().invoke(app, ["explain", *arguments], input=text)
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    return ran


# Pages


def test_every_code_has_its_page_and_no_page_is_left_over():
    assert sorted(pages()) == sorted(CLASSES)


def test_every_page_has_its_name_and_all_sections():
    for code, page in pages().items():
        assert (page.code, page.name) == (code, CLASSES[code].__name__)
        assert re.findall("^## (.*)$", page.body, re.MULTILINE) == SECTIONS, code
        assert 25 <= len(page.body.splitlines()) <= 60, code
        assert not re.search("could be|might be", page.body), code


def test_what_a_page_points_to_exists():
    for page in pages().values():
        for other in re.findall(r"holdfast explain (\w+)", page.body):
            assert other in pages() or other in FAILURES, page.code


def test_the_snippets_of_every_page_are_python():
    for page in pages().values():
        for snippet in re.findall(r"```python\n(.*?)```", page.body, re.DOTALL):
            compile(_completed(snippet), page.code, "exec")


def _completed(snippet: str) -> str:
    """A snippet may begin in the middle: with an ``except``, or with an argument of a call."""
    return f"try:\n    pass\n{snippet}" if snippet.startswith("except") else snippet


def test_every_name_of_holdfast_on_a_page_is_one():
    for page in pages().values():
        for name in re.findall(r"holdfast\.([A-Z]\w+)", page.body):
            assert hasattr(errors, name), f"{page.code}: {name}"


CHECK_SECTIONS = ["What was found", "Why it hurts", "What to do"]


def test_every_check_of_the_doctor_has_its_page_with_all_sections():
    assert list(check_pages()) == [f"HD{number:02}" for number in range(1, 27)]
    for code, page in check_pages().items():
        assert page.code == code
        assert re.findall("^## (.*)$", page.body, re.MULTILINE) == CHECK_SECTIONS, code
        assert 20 <= len(page.body.splitlines()) <= 60, code
        assert not re.search("could be|might be", page.body), code
        for other in re.findall(r"\b(?:H[FD]\d{2,3}|F\d\d)\b", page.body):
            assert other in {**pages(), **check_pages(), **FAILURES}, f"{code}: {other}"


def test_the_snippets_of_every_check_are_python():
    for page in check_pages().values():
        snippets = re.findall(r"```python\n(.*?)```", page.body, re.DOTALL)
        assert snippets or "```" in page.body, page.code
        for snippet in snippets:
            compile(snippet, page.code, "exec")


def test_every_name_of_holdfast_on_a_check_is_one():
    for page in check_pages().values():
        for name in re.findall(r"holdfast\.([A-Za-z]\w+)", page.body):
            assert hasattr(holdfast, name), f"{page.code}: {name}"


def test_a_check_is_explained_by_its_code():
    assert run("hd03").stdout == check_pages()["HD03"].body


# The field guide


def test_every_failure_has_an_example_that_finds_it():
    assert list(PASTED) == list(FAILURES)


def test_a_pasted_message_finds_its_failure():
    assert {number: best(text) for number, text in PASTED.items()} == {number: number for number in PASTED}


def test_other_messages_of_the_same_failure_find_it():
    assert {text: best(text) for text in ALSO} == ALSO


def best(text: str) -> str | None:
    return next((failure.id for failure in matching(text)), None)


def test_a_failure_names_only_codes_that_exist():
    for number, failure in FAILURES.items():
        assert failure.id == number
        assert set(failure.codes) | set(re.findall(r"HF\d+", failure.body)) <= set(pages()), number
        assert not re.search("could be|might be", failure.body), number


def test_what_is_not_there_yet_is_not_promised():
    absent = {number for number, failure in FAILURES.items() if not failure.available}
    assert absent == {"F49", "F82", "F83", "F85", "F86"}
    assert all("Not in this version" in FAILURES[number].body for number in absent)


REAL = """
import json, os, signal, time, traceback, warnings
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Broken(Dataset):
    def __init__(self, fail): self.fail = fail
    def __len__(self): return 4
    def __getitem__(self, index): return self.fail(index)

class TwoArguments(Exception):
    def __init__(self, code, name): super().__init__(code, name)

def two(index): raise TwoArguments(1, "x")
def crash(index): os.kill(os.getpid(), signal.SIGSEGV)
def slow(index): time.sleep(30)
def reads(index): return open("data/1.jpg")
def local(): return lambda index: index

told = {}
def provoke(number, fail, **options):
    try:
        for batch in DataLoader(Broken(fail), batch_size=2, num_workers=1, **options): pass
    except BaseException: told[number] = traceback.format_exc()

provoke("F21", lambda index: None)
provoke("F23", lambda index: torch.zeros(index + 1))
provoke("F25", two)
provoke("F13", reads)
provoke("F29", crash)
provoke("F31", slow, timeout=1)
provoke("F02", local(), multiprocessing_context="spawn")
try: DataLoader([], shuffle=True)
except ValueError: told["F46"] = traceback.format_exc()
print(json.dumps(told))
"""


RESUMED_WITH_MORE_WORKERS = """
import os
from torchdata.stateful_dataloader import StatefulDataLoader

loader = StatefulDataLoader(range(8), num_workers=1)
next(iter(loader))
state = loader.state_dict()
loader = StatefulDataLoader(range(8), num_workers=len(os.sched_getaffinity(0)) + 1)  # which it warns of, at length
loader.load_state_dict(state)
iter(loader)
"""


@pytest.mark.slow  # their messages are among those above
def test_a_real_traceback_of_torchdata_finds_its_failure():
    command = [sys.executable, "-c", RESUMED_WITH_MORE_WORKERS]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert "worker processes in total" in ran.stderr
    assert best(ran.stderr) == "F80"


@pytest.fixture
def tracebacks() -> dict[str, str]:
    """Whole tracebacks as this machine's torch prints them."""
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", REAL], capture_output=True, check=True, timeout=100)
    return json.loads(ran.stdout)


@pytest.mark.slow
def test_a_real_traceback_of_stock_torch_finds_its_failure(tracebacks: dict[str, str]):
    found = {number: best(text) for number, text in tracebacks.items()}
    assert found == {number: number for number in ("F21", "F23", "F25", "F13", "F29", "F31", "F02", "F46")}


# The command


def test_the_installed_command_prints_the_page_as_markdown():
    ran = subprocess.run([COMMAND, "explain", "hf209"], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout.decode(), ran.stderr) == (0, pages()["HF209"].body, b"")


def test_the_installed_command_fails_with_a_word_and_not_a_traceback():
    ran = subprocess.run([COMMAND, "explain", "-"], input=b"\xff nothing known", capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert ran.stderr.startswith(b"no failure that is known has this text\n")


@pytest.mark.parametrize("topic", ["F28", "f28"])
def test_a_number_prints_its_failure(topic: str):
    assert run(topic).stdout.startswith("# F28 a worker is killed\n")


def test_a_number_without_its_zero_is_understood():
    assert run("F4").stdout.startswith("# F04 ")


def test_the_name_of_an_error_is_enough():
    assert run("holdfast.WorkerDied").stdout == run("WorkerDied").stdout == pages()["HF201"].body


def test_a_lint_rule_is_explained_by_the_page_in_its_file():
    assert run("hl101").stdout == rule_pages()["HL101"].body
    assert run("train.py:12:9 HL101 W Scans opens self.file").stdout.startswith("# HL101 ")


def test_a_number_of_both_is_the_error_and_names_the_lint_rule_beside_it():
    told = run("HF101").stdout
    assert told.startswith(pages()["HF101"].body)
    assert "- HL101 a handle is opened" in told


def test_a_number_that_only_a_lint_rule_has_is_that_rule():
    assert "HF110" not in pages()
    assert run("HF110").stdout == rule_pages()["HL110"].body


def test_what_the_page_of_a_lint_rule_points_to_exists():
    for page in rule_pages().values():
        for other in re.findall(r"holdfast explain (\w+)", page.body):
            assert other in pages() or other in rule_pages() or other in FAILURES, page.code


def test_an_error_of_holdfast_is_known_by_its_code_whatever_else_it_says():
    error = errors.WorkerDied(3, 41233, errors.Verdict(-9), 118, 7552, [7552], 2, "")
    ran = run(f"holdfast.errors.WorkerDied: {error}")
    assert ran.stdout.startswith("# HF201 ")
    assert "- F28 a worker is killed" in ran.stdout


def test_a_whole_traceback_comes_by_standard_input_in_any_encoding_and_colour():
    text = (
        b"\x1b[31mTraceback\x1b[0m \xff\n"
        + b"  File x\n" * 1000
        + b"Runtime\x1b[1mError: received \x1b[0m0 items of ancdata"
    )
    assert run("-", text=text).stdout.startswith("# F33 ")


def test_words_need_no_quotes():
    assert run("Too", "many", "open", "files").stdout.startswith("# F33 ")


def test_several_matches_are_named_best_first():
    told = json.loads(run("--json", "DataLoader worker (pid(s) 7) exited unexpectedly").stdout)
    assert (told["code"], told["title"]) == ("F28", FAILURES["F28"].title)
    assert told["body"] == FAILURES["F28"].body
    assert [other["code"] for other in told["others"]] == ["F29"]


def test_without_a_topic_it_lists_everything():
    lines = run().stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*all_pages(), *FAILURES]
    assert [entry["code"] for entry in json.loads(run("--json").stdout)] == [*all_pages(), *FAILURES]


@pytest.mark.parametrize(
    ("topic", "valid"),
    [("HF999", pages()), ("HL999", rule_pages()), ("HD99", check_pages()), ("F99", FAILURES)],
)
def test_an_unknown_code_lists_the_valid_ones(topic: str, valid: dict[str, object]):
    ran = run(topic)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr == f"there is no {topic}; there are {', '.join(valid)}\n"


def test_an_unknown_text_names_what_is_near():
    ran = run("something about a shuffled notebook")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "near: F03" in ran.stderr
    assert json.loads(run("--json", "something about a shuffled notebook").stdout)["near"] == ["F03"]


@pytest.mark.parametrize("topic", ["", " ", "-", "\n\n", "(((", "[a-z"])
def test_a_topic_that_says_nothing_is_not_known(topic: str):
    ran = run(topic)
    assert (ran.exit_code, ran.stdout) == (1, "")


def test_wrong_usage_is_2():
    assert run("--nonsense").exit_code == 2


def test_on_a_terminal_the_page_is_rendered():
    shown = _on_a_terminal([COMMAND, "explain", "HF206"])
    assert "\x1b[" in shown
    assert "## What happened" not in shown
    assert "What happened" in shown


def _on_a_terminal(command: list[str]) -> str:
    parent, child = pty.openpty()
    with subprocess.Popen(command, stdout=child, env=os.environ | {"TERM": "xterm"}) as process:
        os.close(child)
        shown = b""
        try:
            while chunk := os.read(parent, 65536):
                shown += chunk
        except OSError:
            pass  # so Linux tells the end of a terminal
        os.close(parent)
        assert process.wait(30) == 0
    return shown.decode()


def test_the_command_needs_no_torch():
    program = "import sys, holdfast.cli; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_any_text_is_looked_through_quickly():
    text = "pool worker tensor Process-1: memory SpawnPoolWorker-1 " * 4000
    began = time.process_time()
    matching(text)
    assert time.process_time() - began < 5.0
