"""Where chance comes from: calls that seed a generator, calls that make one."""

from __future__ import annotations

import ast

from .script import Script

GLOBAL_SEEDS = ("numpy.random.seed", "random.seed", "torch.manual_seed", "torch.random.manual_seed")
GENERATORS = (
    *("numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator", "numpy.random.PCG64"),
    *("random.Random", "torch.Generator"),
)


def seed_of(call: ast.Call) -> ast.expr | None:
    """What a seeding call is given."""
    return call.args[0] if call.args else next((one.value for one in call.keywords if one.arg in {"seed", "a"}), None)


def is_constant(script: Script, seed: ast.expr | None) -> bool:
    """Whether it is a number, or a name that the file gives one."""
    value = script.value_of(seed)
    return isinstance(value, ast.Constant) and isinstance(value.value, int)
