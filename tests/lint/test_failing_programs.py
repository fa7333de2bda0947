"""The programs of the gauntlet fail for a reason that is in their source: lint names it, and is content with what
holdfast's side makes of them."""

from __future__ import annotations

import pytest

from holdfast.gauntlet.catalogue import chosen
from holdfast.gauntlet.row import Side
from holdfast.lint.checking import check_text
from holdfast.lint.rule import all_rules

ROWS = {row.name: row for row in chosen(())}
NAMED = {
    "f01_lock_held_at_fork": "HL108",
    "f01_openmp_after_fork": "HL106",
    "f02_lambda_under_spawn": "HL103",
    "f04_no_main_guard": "HL104",
    "f05_unpicklable_member": "HL101",
    "f07_start_method_set_twice": "HL109",
    "f08_no_fork_on_windows": "HL111",
    "f12_generator_in_the_dataset": "HL201",
    "f21_none_sample": "HL304",
    "f22_swallowed_name_error": "HL409",
    "f25_exception_loses_its_facts": "HL406",
    "f26_unpicklable_batch": "HL408",
    "f27_stop_iteration": "HL303",
    "f30_exit_in_a_worker": "HL407",
    "f30_keyboard_interrupt_in_a_worker": "HL407",
    "f31_dead_connection": "HL505",
    "f33_descriptors_of_kept_batches": "HL602",
    "f38_generator_repeats_itself": "HL201",
    "f39_random_in_a_pool": "HL204",
    "f40_stream_once_per_worker": "HL301",
    "f41_epoch_does_not_reach_workers": "HL404",
    "f43_shared_file_handle": "HL101",
    "f44_counter_in_workers": "HL401",
    "f50_sigchld_ignored": "HL113",
    "f54_iterator_per_step": "HL503",
    "f64_left_in_dev_shm": "HL605",
}
# Faults that our side's program mends, or that are none with our loader.
MENDED = [
    *("f02_lambda_under_spawn", "f22_swallowed_name_error", "f25_exception_loses_its_facts"),
    *("f33_descriptors_of_kept_batches", "f40_stream_once_per_worker", "f41_epoch_does_not_reach_workers"),
    *("f43_shared_file_handle", "f44_counter_in_workers", "f54_iterator_per_step", "f64_left_in_dev_shm"),
]


def codes(program: str, side: Side) -> set[str]:
    text = ROWS[program].source(side)
    return {finding.code for finding in check_text(text, "train.py", all_rules().values())}


@pytest.mark.parametrize(("program", "code"), NAMED.items())
def test_the_cause_of_a_failing_program_is_named(program: str, code: str):
    assert code in codes(program, Side.TORCH)


@pytest.mark.parametrize("program", MENDED)
def test_what_holdfast_makes_of_it_is_not_at_fault(program: str):
    assert NAMED[program] not in codes(program, Side.HOLDFAST)
