"""Ranks find each other when they are asked to."""

from __future__ import annotations

import socket

import acts
import pytest

from holdfast.ranks.rendezvous import Rendezvous
from holdfast.ranks.spawning import spawn

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.mark.parametrize("start", ["spawn", "zygote", "fork"])
def test_a_collective_works_at_once(start):
    assert spawn(acts.all_reduce, nprocs=2, start_method=start, distributed=True) == [3.0, 3.0]


def test_each_rank_has_its_environment(monkeypatch):
    monkeypatch.setenv("RANK", "7")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    first, second = spawn(acts.environ, nprocs=2, start_method="zygote", distributed=True)
    assert [first[name] for name in NAMES[:5]] == ["0", "0", "2", "2", "127.0.0.1"]
    assert [second[name] for name in NAMES[:5]] == ["1", "1", "2", "2", "127.0.0.1"]
    assert first["MASTER_PORT"] == second["MASTER_PORT"]
    assert first["TORCHELASTIC_USE_AGENT_STORE"] == "False"


def test_it_is_left_alone_when_nobody_asked(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    assert not set(NAMES) & set(spawn(acts.environ, start_method="zygote")[0])


def test_the_port_is_kept_for_rank_0():
    rendezvous = Rendezvous()
    address = ("127.0.0.1", int(rendezvous.environ(0, 1)["MASTER_PORT"]))
    try:
        with socket.socket() as chance, pytest.raises(OSError, match="in use"):
            chance.bind(address)
        with socket.socket() as store:
            store.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            store.bind(address)
            store.listen()
            with socket.create_connection(address, timeout=10):
                store.accept()[0].close()
    finally:
        rendezvous.close()
