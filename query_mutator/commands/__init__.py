"""Commands that are composed of several rooms."""
