"""What an evaluation takes where nothing is said; kept apart, as --help shows it at once."""

MARGIN = 0.02
"""A difference in score that nobody would miss."""
TRAINING_QUESTIONS = 100
"""Training questions on which the best single operator is chosen."""
