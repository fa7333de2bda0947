"""Where ranks find each other: the environment that ``torch.distributed`` reads."""

from __future__ import annotations

import os
import socket

ADDRESS = "127.0.0.1"


class Rendezvous:
    """A port of the loopback, held until the ranks have ended. Owns the socket.

    It is bound and does not listen: nobody is given that port by chance, and rank 0, whose store reuses addresses, can
    still listen there.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((ADDRESS, 0))
        self._port = self._socket.getsockname()[1]

    def environ(self, rank: int, ranks: int) -> dict[str, str]:
        found = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "LOCAL_WORLD_SIZE": str(ranks),
            "MASTER_ADDR": ADDRESS,
            "MASTER_PORT": str(self._port),
        }
        if "TORCHELASTIC_USE_AGENT_STORE" in os.environ:  # we are a rank of torchrun, whose store is not for ours
            found["TORCHELASTIC_USE_AGENT_STORE"] = "False"
        return found

    def close(self) -> None:
        self._socket.close()
