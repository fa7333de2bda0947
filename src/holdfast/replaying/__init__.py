"""One sample once more, with the random numbers that it had in a run.

* ``wanted``    which sample of which batch: from a place in a run, a fault, or a seed and an epoch
* ``orders``    what was drawn, and for which batch, in an epoch of a loader
* ``stage``     the surroundings that the sample had: a worker's seeds, and what was fetched before it
* ``portrait``  what a sample is, in words and as a digest
"""
