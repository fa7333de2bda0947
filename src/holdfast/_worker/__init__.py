"""Runs in the worker: hand-shake, fetch, collate, report. Knows nothing of the other workers."""
