"""The failures that users of stock torch meet, as programs: `holdfast gauntlet` runs each with torch and with holdfast.

One file per failure, `f28_killed_worker.py`, with the program as a user writes it and the checks of what must come of
it. `row` says what they are made of, `running` runs one, `judge` compares, `catalogue` knows them all.
"""
