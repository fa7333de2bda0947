"""Acts: launches, watches, feeds, replaces and closes a crew of workers. The only room that waits."""
