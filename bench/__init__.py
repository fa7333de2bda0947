"""The benchmark: `python -m bench` puts holdfast beside its peers, all in one run on one machine, and prints ratios."""
