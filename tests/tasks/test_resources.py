"""What a worker makes once in its life: given to the function first, closed at the end, and named when it fails."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import errands
import pytest
from errands import Model, noted

from holdfast import Executor, Pool, per_worker


def loader(folder: Path, name: str = "model"):
    return functools.partial(Model, folder, name)


def pids(pool: Pool) -> list[int]:
    return sorted(process.pid for process in pool.processes)


def closed(pool: Pool) -> None:
    pool.close()
    pool.join()


def test_a_resource_is_made_once_by_each_worker_given_first_and_closed_with_it(tmp_path):
    pool = Pool(2)
    load = loader(tmp_path)
    for _ in range(3):
        results = pool.map(errands.use, range(10), 1, resource=load)
        assert [square for _, _, square in results] == [number * number for number in range(10)]
        assert all(name == "model" and pid in pids(pool) for name, pid, _ in results)
    made = noted(tmp_path, "model made")
    assert made == sorted(set(made))
    assert noted(tmp_path, "model closed") == []
    closed(pool)
    assert noted(tmp_path, "model closed") == made


def test_all_kinds_of_maps_have_resources(tmp_path):
    pool, load = Pool(1), loader(tmp_path)
    assert pool.starmap(errands.use_two, [(2, 3)], resource=load)[0][2] == 36
    assert pool.map_async(errands.use, [3], resource=load).get()[0][2] == 9
    assert pool.starmap_async(errands.use_two, [(1, 2)], resource=load).get()[0][2] == 4
    assert [square for _, _, square in pool.imap(errands.use, [2, 3], resource=load)] == [4, 9]
    assert [square for _, _, square in pool.imap_unordered(errands.use, [2], resource=load)] == [4]
    closed(pool)


def test_the_same_resource_of_several_functions_is_made_once(tmp_path):
    """It may be a model that fills half of the memory."""
    pool, load = Pool(1), loader(tmp_path)
    for use in (errands.use, errands.use_also, lambda model, number: model(number)):
        pool.map(use, [1, 2], resource=load)
    recipe = per_worker(Model, tmp_path, "recipe")
    for use in (errands.use, errands.use_also):
        pool.map(use, [1, 2], resource=recipe)
    closed(pool)
    assert len(noted(tmp_path, "model made")) == len(noted(tmp_path, "model closed")) == 1
    assert len(noted(tmp_path, "recipe made")) == len(noted(tmp_path, "recipe closed")) == 1


def test_different_resources_are_kept_apart(tmp_path):
    pool = Pool(1)
    one, other = loader(tmp_path, "one"), loader(tmp_path, "other")
    for _ in range(2):
        assert {name for name, _, _ in pool.map(errands.use, range(4), resource=one)} == {"one"}
        assert {name for name, _, _ in pool.map(errands.use, range(4), resource=other)} == {"other"}
    closed(pool)
    assert noted(tmp_path, "one closed") == noted(tmp_path, "other closed") == noted(tmp_path, "one made")


def test_recipes_that_are_not_kept_are_not_mistaken_for_each_other(tmp_path):
    with Pool(1) as pool:
        for number in range(50):
            ((name, _, _),) = pool.map(errands.use, [1], resource=per_worker(Model, tmp_path, f"model {number}"))
            assert name == f"model {number}"


def test_each_life_makes_and_closes_its_own(tmp_path):
    pool = Pool(1, maxtasksperchild=2)
    lives = {pid for _, pid, _ in pool.map(errands.use, range(6), 1, resource=loader(tmp_path))}
    closed(pool)
    assert len(lives) == 3
    assert noted(tmp_path, "model made") == noted(tmp_path, "model closed") == sorted(lives)


def test_a_worker_that_died_leaves_it_and_the_next_makes_its_own(tmp_path):
    pool, load = Pool(1, retries=1), loader(tmp_path)
    assert pool.starmap(use_or_die, [(number, tmp_path / "flag") for number in range(4)], 1, resource=load) == [
        0,
        1,
        4,
        9,
    ]
    closed(pool)
    assert len(noted(tmp_path, "model made")) == 2
    assert len(noted(tmp_path, "model closed")) == 1


def use_or_die(model: Model, number: int, flag: Path) -> int:
    if number == 2:
        errands.kill_once(flag)
    return model(number)[2]


def refuse() -> None:
    raise FileNotFoundError(2, "no weights", "model.pt")


def test_a_resource_that_cannot_be_made_is_named():
    with Pool(1) as pool:
        with pytest.raises(FileNotFoundError, match="no weights") as raised:
            pool.map(errands.use, range(3), resource=refuse)
        notes = "\n".join(raised.value.__notes__)
        assert "refuse" in notes
        assert "errands.use" in notes or "use(0)" in notes
        assert pool.map(abs, [-1]) == [1]


def test_per_worker_in_arguments_and_partials(tmp_path):
    pool, recipe = Pool(2), per_worker(Model, tmp_path)
    bound = functools.partial(errands.use, recipe)
    assert [square for _, _, square in pool.map(bound, range(6), 1)] == [number * number for number in range(6)]
    name, pid, square = pool.apply(errands.use, (recipe, 3))
    assert (name, square) == ("model", 9)
    assert pid in pids(pool)
    closed(pool)
    assert os.getpid() not in noted(tmp_path, "model made")
    assert len(noted(tmp_path, "model closed")) == len(noted(tmp_path, "model made"))


def test_per_worker_in_a_future(tmp_path):
    with Executor(1) as executor:
        recipe = per_worker(Model, tmp_path)
        assert executor.submit(errands.use, recipe, 3).result()[2] == 9
    assert len(noted(tmp_path, "model closed")) == 1
