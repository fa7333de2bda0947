"""The benchmark: `python -m bench` prints ratios to stock torch, all measured in one run on one machine."""
