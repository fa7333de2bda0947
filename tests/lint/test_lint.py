"""What is checked: files, folders, notebooks; which rules, by command line and pyproject.toml; what is silenced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.lint.finding import Finding, Level
from holdfast.lint.run import Report, lint
from holdfast.lint.settings import settings_for
from holdfast.targets.mistake import Mistake

DATASET = """\
import os
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self, folder):
        self.paths = os.listdir(folder)
        self.log = open("log")
"""


def checked(folder: Path, *paths: str, **chosen) -> Report:
    """As the command does, with the settings of the folder."""
    arguments = {"select": (), "ignore": (), "level": None} | chosen
    settings = settings_for(folder, **arguments)
    return lint([str(folder / path) for path in paths] or [str(folder)], settings)


def places(report: Report) -> list[tuple[str, int, str]]:
    return [(Path(one.path).name, one.line, one.code) for one in report.findings]


def one(path: Path, text: str, **chosen) -> list[Finding]:
    path.write_text(text)
    return list(checked(path.parent, path.name, **chosen).findings)


# Files


def test_a_folder_stands_for_its_python_files_and_notebooks_in_order(tmp_path: Path):
    (tmp_path / "b").mkdir()
    for name in ("b/two.py", "one.py", "b/one.py", "text.txt"):
        (tmp_path / name).write_text("import os\n")
    (tmp_path / "three.ipynb").write_text(json.dumps({"cells": []}))
    report = checked(tmp_path)
    assert (report.files, report.lines, report.findings) == (4, 3, ())


@pytest.mark.parametrize("folder", [".hidden", ".venv", "venv", "node_modules", "build", "__pycache__", "env"])
def test_what_is_not_the_users_own_code_is_skipped(folder: str, tmp_path: Path):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "pyvenv.cfg").write_text("")
    (tmp_path / folder / "bad.py").write_text(DATASET)
    (tmp_path / "good.py").write_text("")
    assert checked(tmp_path).files == 1
    assert len(checked(tmp_path, f"{folder}/bad.py").findings) == 2, "and read when it is asked for"


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path):
    (tmp_path / "train.py").write_text(DATASET)
    assert len(checked(tmp_path, "train.py", ".", "train.py").findings) == 2


def test_a_path_that_is_not_there_or_has_nothing_is_a_mistake(tmp_path: Path):
    with pytest.raises(Mistake, match=r"there is no .*nowhere"):
        checked(tmp_path, "nowhere")
    with pytest.raises(Mistake, match="there is no Python file in"):
        checked(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"def f(:\n", "cannot parse this"),
        (b"x = 1\n\ntext = '\xff'\n", "not text in utf-8"),
        (b"# coding: nonsense\n", "unknown encoding: nonsense"),
        (b"x = 1\0", "null bytes"),
        (b"(" * 10_000, "too many nested parentheses"),
    ],
    ids=["syntax", "bytes", "coding", "null", "deep"],
)
def test_a_file_that_is_no_python_is_a_finding_and_the_others_are_read(data: bytes, message: str, tmp_path: Path):
    (tmp_path / "a.py").write_bytes(data)
    (tmp_path / "b.py").write_text(DATASET)
    report = checked(tmp_path)
    assert [finding.code for finding in report.findings] == ["HL001", "HL205", "HL101"]
    assert message in report.findings[0].message


def test_a_file_in_another_encoding_is_read_as_it_declares(tmp_path: Path):
    (tmp_path / "train.py").write_bytes(b"# coding: latin-1\nname = '\xe9'\n" + DATASET.encode())
    assert places(checked(tmp_path)) == [("train.py", 8, "HL205"), ("train.py", 9, "HL101")]


def test_columns_count_characters_and_lines_are_those_of_python(tmp_path: Path):
    text = DATASET.replace("self.log = open", "é = 'é'; self.log = open").replace("import os", "import os\n\x0c", 1)
    (found,) = one(tmp_path / "train.py", text, select=["HL101"])
    assert (found.line, found.column) == (8, 9 + len("é = 'é'; self.log = "))


# Notebooks


def notebook(path: Path, *cells: str) -> None:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ["# Title"]}, *code], "nbformat": 4}))


def test_a_notebook_is_one_script_and_findings_are_told_by_cell(tmp_path: Path):
    notebook(tmp_path / "a.ipynb", "import os\n%matplotlib inline\n!ls", DATASET.partition("\n")[2], "Images('a')")
    report = checked(tmp_path)
    assert [(finding.cell, finding.line, finding.code) for finding in report.findings] == [
        (2, 5, "HL205"),
        (2, 6, "HL101"),
    ]
    assert report.findings[0].place.endswith("a.ipynb:cell 2:5:22")


def test_what_ipython_alone_understands_may_also_be_assigned(tmp_path: Path):
    cell = "files = !ls\ntook = %timeit -o f()\nname, rest = !hostname\n"
    notebook(tmp_path / "a.ipynb", cell, "if files:\n    first = !ls\nrest = 7 \\\n    % 4\n", DATASET)
    assert [(one.cell, one.code) for one in checked(tmp_path).findings] == [(3, "HL205"), (3, "HL101")]


def test_a_cell_that_is_no_python_is_a_finding_and_the_others_are_read(tmp_path: Path):
    notebook(tmp_path / "a.ipynb", "%%bash\nls {", "def f(:", DATASET)
    assert [(one.cell, one.code) for one in checked(tmp_path).findings] == [(2, "HL001"), (3, "HL205"), (3, "HL101")]


def test_processes_that_a_notebook_starts_are_not_imported_again(tmp_path: Path):
    text = "from torch.utils.data import DataLoader\nfor batch in DataLoader([], num_workers=2): pass"
    notebook(tmp_path / "a.ipynb", text)
    assert not checked(tmp_path).findings
    assert [found.code for found in one(tmp_path / "a.py", text)] == ["HL104"]


def test_a_notebook_that_is_none_is_a_finding(tmp_path: Path):
    for text in ("", "[]", '{"worksheets": []}'):
        assert [found.code for found in one(tmp_path / "a.ipynb", text)] == ["HL001"]


# What is silenced


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("# holdfast: noqa", []),
        ("# holdfast: noqa HL205", []),
        ("#holdfast:noqa: hl205", []),
        ("# HOLDFAST: NOQA", []),
        ("# holdfast: noqa HF205", []),
        ("# type: ignore  # holdfast: noqa HL101, HL205 as they are sorted later", []),
        ("# holdfast: noqa HL101", ["HL205"]),
        ("# noqa", ["HL205"]),
        ("# holdfast: nothing", ["HL205"]),
    ],
)
def test_a_comment_silences_its_line(comment: str, left: list[str], tmp_path: Path):
    text = DATASET.replace("os.listdir(folder)", f"os.listdir(folder)  {comment}")
    assert [found.code for found in one(tmp_path / "train.py", text)] == [*left, "HL101"]


# Which rules


def test_notes_are_off_unless_asked_for(tmp_path: Path):
    text = (
        "import time\nfrom torch.utils.data import Dataset\n"
        "class A(Dataset):\n    def __getitem__(self, i):\n        return time.time()\n"
    )
    assert not one(tmp_path / "a.py", text)
    assert [found.code for found in one(tmp_path / "a.py", text, level=Level.INFO)] == ["HL206"]
    assert [found.code for found in one(tmp_path / "a.py", text, select=["HL206"])] == ["HL206"]
    assert not one(tmp_path / "a.py", text, select=["HL2"]), "a group is taken at the level that is wanted"


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        ({"select": ["HL1"]}, ["HL101"]),
        ({"select": ["hl205,HF101"]}, ["HL205", "HL101"]),
        ({"ignore": ["HL2"]}, ["HL101"]),
        ({"select": ["HL"], "ignore": ["HF101", "HL205"]}, []),
        ({"level": Level.ERROR}, []),
    ],
)
def test_rules_are_chosen_by_code_group_and_level(chosen: dict, left: list[str], tmp_path: Path):
    assert [found.code for found in one(tmp_path / "train.py", DATASET, **chosen)] == left


def configured(folder: Path, table: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.holdfast.lint]\n{table}\n")


def test_pyproject_is_found_above_and_the_command_line_goes_before(tmp_path: Path):
    configured(tmp_path, 'select = ["HL1"]')
    (tmp_path / "package").mkdir()
    assert [found.code for found in one(tmp_path / "package" / "train.py", DATASET)] == ["HL101"]
    assert [found.code for found in one(tmp_path / "package" / "train.py", DATASET, select=["HL2"])] == ["HL205"]


def test_paths_are_excluded_and_rules_ignored_by_pattern(tmp_path: Path):
    configured(tmp_path, 'exclude = ["old", "*_pb2.py"]\n[tool.holdfast.lint.per-file-ignores]\n"tests/*" = ["HL205"]')
    for name in ("old/a.py", "tests/deep/b.py", "src/c_pb2.py", "src/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(DATASET)
    assert places(checked(tmp_path)) == [("d.py", 6, "HL205"), ("d.py", 7, "HL101"), ("b.py", 7, "HL101")]
    assert len(checked(tmp_path, "old/a.py").findings) == 2, "a file that is named is read"


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        ('selct = ["HL1"]', "has selct, which is no setting", "select, ignore, level, exclude, per-file-ignores"),
        ('select = ["HL999"]', "there is no rule HL999", "HL101"),
        ('select = "HL101"', "select is 'HL101'", 'select = ["..."]'),
        ('level = "loud"', "there is no level 'loud'", "E (errors)"),
        ("per-file-ignores = 3", "per-file-ignores is 3", "it is a table"),
        ("[", "cannot be read", ""),
    ],
)
def test_a_wrong_setting_is_a_mistake_that_says_what_is_valid(table: str, message: str, hint: str, tmp_path: Path):
    configured(tmp_path, table)
    with pytest.raises(Mistake) as raised:
        checked(tmp_path)
    assert message in str(raised.value)
    assert hint in raised.value.hint


def test_a_setting_of_lint_that_is_no_table_is_a_mistake(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("[tool.holdfast]\nlint = 3\n")
    with pytest.raises(Mistake, match=r"tool\.holdfast\.lint is a table of options, and not 3"):
        settings_for(tmp_path, (), (), None)
