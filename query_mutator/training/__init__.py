"""A training run: its settings, its loop, its directory."""
