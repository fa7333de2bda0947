"""What is done with a loader, and timed. Each is a function of `Turn` that a seat calls: it returns a `Running`."""
