"""What the contenders load. Each work is a function of `Turn`; all imports of holdfast are elsewhere."""
