"""Does the score tell right from wrong? Measured on labelled answers, and on a model's own."""
