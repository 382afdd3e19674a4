"""The commands of `python -m batching`, a file for each group of them."""
