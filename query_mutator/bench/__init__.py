"""Measures ways to make many model calls at once."""
