"""What a run found, for people: in the terminal, as files, and as a page with plots."""
