"""Fine-tuning a language model to rewrite questions."""
