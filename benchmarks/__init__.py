"""Ways to make the same model calls, measured side by side."""
