"""Runs in the worker: hand-shake, fetch, collate, report. Knows one message at a time and nothing of the other workers."""
