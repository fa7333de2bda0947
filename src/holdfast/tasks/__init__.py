"""Functions that are called in other processes: ``Pool`` and ``Executor`` are two faces of one engine."""
