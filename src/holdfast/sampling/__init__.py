"""Which samples, in which order, and whose: the same for any number of ranks and workers."""
