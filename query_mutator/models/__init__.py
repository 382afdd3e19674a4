"""How model servers are found, spoken to, and kept busy."""
