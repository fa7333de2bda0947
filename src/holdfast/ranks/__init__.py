"""Ranks: N processes that run one function together, or fail together. `spawning.spawn` is the face."""
