"""Tells: what is known about a run, for people and programs that come later."""
