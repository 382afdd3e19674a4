"""Makes a rewriter of one's own: a language model, fine-tuned on questions asked both ways."""
