"""Model servers that run on this machine: the embedded one and the simulated Ollama."""
