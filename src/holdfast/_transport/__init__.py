"""Carries messages and batches between the trainer and its workers; decides nothing, waits for nothing."""
