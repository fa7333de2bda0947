"""What is measured, room by room. Each module has a list `CONTESTS`."""
