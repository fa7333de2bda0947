"""The state of a loader: what is saved, what it looks like, and how a loader goes on from it."""
