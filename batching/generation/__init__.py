"""Length caches, tokenizers, data sets and batches on disk."""
