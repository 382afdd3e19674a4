"""Trained policies at work."""
