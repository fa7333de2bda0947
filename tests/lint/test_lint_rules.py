"""Each rule fires where its cases say, and nowhere else."""

from __future__ import annotations

import re

import pytest
from casebook import cases, examples

from holdfast.lint.checking import check_text
from holdfast.lint.finding import Finding, Level
from holdfast.lint.rule import all_rules, codes, page

CASES = {code: [case for case in cases() if case.code == code] for code in codes()}


def findings(code: str, text: str) -> list[Finding]:
    return check_text(text, "train.py", [all_rules()[code]])


def lines(code: str, text: str) -> list[int]:
    return [finding.line for finding in findings(code, text)]


@pytest.mark.parametrize("code", codes())
def test_a_rule_fires_on_the_lines_that_are_marked_and_on_no_other(code: str):
    fired = {case.promise: lines(code, case.text) for case in CASES[code]}
    assert fired == {case.promise: case.fires for case in CASES[code]}


def test_every_rule_has_cases_that_fire_and_near_misses():
    for code, found in CASES.items():
        assert sum(bool(case.fires) for case in found) >= 1, code
        assert sum(not case.fires for case in found) >= 2, code


def test_every_case_is_of_a_rule():
    assert {case.code for case in cases()} == set(codes())


def test_the_examples_of_every_page_are_what_they_say():
    for code in codes():
        shown = examples(page(code))
        assert findings(code, shown["Bad"]), code
        assert not findings(code, shown["Good"]), code


def test_what_a_page_calls_good_is_so_by_every_other_rule():
    rules = [rule for rule in all_rules().values() if rule.level is not Level.INFO]
    for code in codes():
        assert not check_text(examples(page(code))["Good"], code, rules)


def test_every_page_has_a_title_and_its_four_parts():
    for code in codes():
        text = page(code)
        assert re.match(rf"# {code} [^A-Z].*[^.]\n", text)
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Bad", "Good", "Why", "See"], code


def test_messages_are_one_line_without_a_guess_and_have_a_fix():
    for code, found in CASES.items():
        for finding in (finding for case in found for finding in findings(code, case.text)):
            assert not re.search(r"could be|might be|\.$|\n", finding.message), finding
            assert finding.fix, finding
            assert "\n" not in finding.fix, finding
