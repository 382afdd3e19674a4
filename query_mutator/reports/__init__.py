"""Reading, showing and comparing runs."""
