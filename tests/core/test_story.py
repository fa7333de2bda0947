"""What the story keeps, of values that stand for events and commands."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast._core.story import NOTABLE, Story


@dataclass
class Often:
    number: int


@dataclass
class Rare:
    number: int


def a_story(length: int = 64) -> Story[Often | Rare, str]:
    return Story(frozenset({Often}), length)


def test_it_is_told_in_lines():
    story = a_story()
    story.tell(0.5, Often(1), ["send", "draw"])
    story.tell(1.0, Rare(2), [])
    assert str(story) == "0.500000  Often(number=1)  ->  send, draw\n1.000000  Rare(number=2)"


def test_what_is_rare_is_kept_for_longer_and_told_once_in_its_turn():
    story = a_story(length=30)
    for number in range(100):
        story.tell(float(number), Rare(number) if number % 30 == 29 else Often(number), ["send"])
    told = [event.number for _, event, _ in story]
    assert told == [29, 59, 89, *range(90, 100)]
    story.tell(100.0, Rare(100), ["start"])
    assert [event.number for _, event, _ in story] == [29, 59, 89, *range(91, 101)]


def test_an_entry_of_which_the_beginning_is_gone_is_left_out():
    story = a_story(length=5)
    story.tell(0.0, Often(0), ["send"])
    story.tell(1.0, Often(1), ["send"])
    assert list(story) == [(1.0, Often(1), ["send"])]


def test_a_rare_one_of_which_the_beginning_is_gone_is_told_whole():
    story = a_story(length=5)
    story.tell(0.0, Rare(0), ["send"])
    story.tell(1.0, Often(1), ["send"])
    assert list(story) == [(0.0, Rare(0), ["send"]), (1.0, Often(1), ["send"])]


def test_what_is_routine_and_led_to_nothing_is_not_told():
    story = a_story()
    story.tell(0.0, Often(0), [])
    story.tell(1.0, Rare(1), [])
    assert list(story) == [(1.0, Rare(1), [])]


def test_it_does_not_grow_for_ever():
    story = a_story()
    for number in range(4 * NOTABLE):
        story.tell(0.0, Rare(number), ["start"])
    assert len(list(story)) == NOTABLE
    assert list(story)[-1][1] == Rare(4 * NOTABLE - 1)
