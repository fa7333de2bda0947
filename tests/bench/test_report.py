"""The report, from results that nobody measured."""

from __future__ import annotations

import io
from itertools import pairwise
from xml.etree import ElementTree

import made_up
import pytest

from bench import machine
from bench.progress import Progress
from bench.report import files, page, plot, table, words
from bench.report.svg import even_ticks, round_ticks

SVG = "{http://www.w3.org/2000/svg}"


def test_files_give_back_what_was_written(tmp_path):
    made = made_up.results()
    files.write(tmp_path, made)
    back = files.read(tmp_path, ["rates", "moments", "growth"])
    assert list(back.groups) == ["rates", "moments", "growth"]
    assert back.machine == made.machine
    assert back.fates == made.fates
    assert back.held == made.held
    assert [one.as_dict() for one in back.outcomes] == [one.as_dict() for one in made.outcomes]
    assert page.text(back, "plots") == page.text(made, "plots")


def test_a_contest_that_is_held_again_takes_its_old_place(tmp_path):
    made = made_up.results()
    made.put("rates", made_up.RATE, {"date": "later"})
    assert [one.contest.name for one in made.groups["rates"]] == ["tiny", "kept"]
    assert made.held["tiny"] == {"date": "later"}


def test_files_of_former_groups_go(tmp_path):
    made = made_up.results()
    files.write(tmp_path, made)
    del made.groups["moments"]
    files.remove_others(tmp_path, made)
    assert sorted(path.name for path in tmp_path.iterdir()) == [files.FATES, "growth.json", files.MACHINE, "rates.json"]


def test_the_table_has_a_row_for_each_and_fits():
    block = table.block(made_up.RATE)
    assert max(map(len, block.splitlines())) <= table.WIDTH
    names = ("SPDL", "torch fork", "LitData", "memcpy")
    rows = {name: line for line in block.splitlines() for name in names if name in line}
    assert "★" in rows["SPDL"]
    assert "0.85× the rate" in rows["SPDL"]
    assert "holdfast is behind" in rows["SPDL"]
    assert "6.12× the rate" in rows["torch fork"]
    assert "≥ 8 MISSED" in rows["torch fork"]
    assert "reads only files" in rows["LitData"]
    lines = block.splitlines()
    assert lines.index(rows["memcpy"]) == lines.index("    what the machine allows") + 1
    assert "behind" not in rows["memcpy"]


def test_in_time_less_is_better():
    block = table.block(made_up.TIME)
    assert "1.11× the time" in block
    assert "≤ 0.02 reached" in block
    assert words.winner(made_up.TIME) == "torch fork"


def test_faults_are_printed_as_they_are_met():
    lines = table.fates("loaders", iter(made_up.LOADERS.results))
    assert [next(lines), next(lines)] == ["faults met by loaders", "  killed"]
    assert "finishes" in next(lines)


def test_the_page_has_every_contest_and_all_that_is_behind():
    text = page.text(made_up.results(), "plots")
    assert "{{" not in text
    for outcome in made_up.results().outcomes:
        assert outcome.contest.name in text
        for result in outcome.results:
            assert result.contender in text
    behind = text.partition("## Where holdfast is not ahead")[2].partition("## Method")[0]
    assert "| tiny | SPDL | 0.85× the rate | 0.84× | ±1 % |" in behind
    assert "| first batch | torch fork | 1.11× the time | 1.01× | ±14 % |" in behind
    assert "| first batch | torch fork | ≤ 0.8 | 1.11× | 1.01× |" in behind
    assert "| kept | holdfast | failed: MemoryError: no &lt;more> |" in behind
    assert "| loaders | holdfast | hangs | error | WorkerStalled: worker 0 \\| made no progress |" in behind
    assert "| torch fork | error 0.300 s | hangs |" in text
    for fact in ("Made-up CPU", "Linux 9.9", "torch 2.13.0", "spdl (not installed)", "1 h 56 min"):
        assert fact in text


def test_the_page_says_how_each_peer_is_used():
    text = page.text(made_up.results(), "plots")
    assert "| torch spawn | torch" in text
    assert "torch.utils.data.DataLoader, by each of its start methods." in text


def test_every_plot_of_the_page_is_written_and_no_other_stays(tmp_path):
    made, plots = made_up.results(), tmp_path / "plots"
    plots.mkdir()
    (plots / "former.svg").write_text("")
    text = page.write(made, tmp_path / "page.md", plots).read_text()
    names = {path.name for path in plots.iterdir()}
    assert names == {"tiny.svg", "first-batch.svg", "growth-by-batch-size.svg"}
    for name in names:
        assert f"(plots/{name})" in text


@pytest.mark.parametrize("outcome", [made_up.RATE, made_up.TIME, made_up.BROKEN], ids=lambda one: one.contest.name)
def test_a_bar_for_each_figure_and_a_dash_for_the_rest(outcome):
    root = ElementTree.fromstring(plot.bars(outcome))
    bars = [node for node in root.iter(f"{SVG}rect") if "bar" in node.attrib["class"].split()]
    assert len(bars) == sum(bool(one.figures) for one in outcome.results)
    dashes = [node for node in root.iter(f"{SVG}text") if (node.text or "").startswith("– ")]
    assert len(dashes) == sum(not one.figures for one in outcome.results)
    for bar in bars:
        left = float(bar.attrib["x"])
        assert 0 <= left <= left + float(bar.attrib["width"]) <= plot.WIDTH
    assert outcome.contest.title in (root.findtext(f"{SVG}title") or "")


def test_a_curve_has_a_line_for_each_that_has_a_figure():
    drawn = plot.lines("samples/s by batch size", made_up.CURVE)
    root = ElementTree.fromstring(drawn)
    lines = list(root.iter(f"{SVG}polyline"))
    assert [len(line.attrib["points"].split()) for line in lines] == [6, 6, 5, 6]
    names = [node.text for node in root.iter(f"{SVG}text")]
    assert {"holdfast", "torch fork", "SPDL", "Ray Data", "batch size", "1,024"} <= {*names}
    heights = sorted(float(node.attrib["y"]) for node in root.iter(f"{SVG}text") if node.attrib.get("style"))
    assert all(after - before > 12 for before, after in pairwise(heights))
    assert drawn == plot.lines("samples/s by batch size", made_up.CURVE)


@pytest.mark.parametrize(("low", "high"), [(0.9, 1.1), (0.004, 107.0), (1.0, 13.0), (3e2, 4e9)])
def test_ticks_are_few_and_round(low, high):
    ticks = round_ticks(low, high)
    assert 2 <= len(ticks) <= 8
    assert all(low * 0.99 <= tick <= high * 1.01 for tick in ticks)


@pytest.mark.parametrize("high", [0.3, 1.0, 7.2, 11.9, 4000.0])
def test_even_ticks_reach_the_highest(high):
    ticks = even_ticks(high)
    assert ticks[0] == 0
    assert ticks[-2] < high <= ticks[-1] * 1.0001
    assert len(ticks) <= 8


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (0.01234, "0.0123"), (7.0, "7"), (7.126, "7.13"), (123.4, "123"), (12345.0, "12,300")],
)
def test_a_figure_has_three_digits_that_count(value, text):
    assert words.figure(value) == text


def test_progress_is_a_line_for_each_contest_where_nobody_watches():
    stream = io.StringIO()
    progress = Progress(2, stream)
    progress.begin("tiny")
    progress.tell("round 1")
    progress.done(1)
    progress.begin("big")
    assert stream.getvalue() == "tiny …\nbig …, about 0 s left\n"


def test_the_machine_is_the_same_whatever_its_load():
    facts = machine.facts(quick=True)
    assert machine.same(facts, {**facts, "date": "later", "load_start": [9, 9, 9]})
    assert not machine.same(facts, {**facts, "quick": False})
    assert not machine.same(facts, {**facts, "versions": {**facts["versions"], "torch": "1.0"}})
    assert facts["versions"]["torch"]
    assert {"torchdata", "spdl", "ray", "loky"} <= {*machine.required()}
