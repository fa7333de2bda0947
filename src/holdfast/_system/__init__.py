"""Asks the operating system; the only room with platform checks. One contract, one file for each way of keeping it."""
