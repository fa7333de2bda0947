"""Static rules for training scripts: what will go wrong in worker processes, seen before it runs.

A file is parsed and walked once (``Script``); rules (``lint.rules``, one file each) ask it and yield remarks; findings
are values, and ``cli`` renders them.
"""
