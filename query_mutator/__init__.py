"""Learns how to rephrase questions so that a language model answers them well."""
