"""A simulated Ollama on loopback, for tests and benchmarks.

>>> import requests
>>> with SimulatedServer(slots=8, mean_latency_s=0.01) as server:
...     body = {"model": "llama3.2:3b", "prompt": "Why is the sky blue?", "stream": False}
...     answer = requests.post(f"{server.url}/api/generate", json=body, timeout=10).json()
>>> answer["done_reason"], server.stats.max_in_flight
('stop', 1)

`python -m query_mutator.servers.simulated --help` tells how to run it by itself.
"""

from query_mutator.servers.simulated.answers import Answer, answer_from_questions, default_answer
from query_mutator.servers.simulated.child import SimulatedChild, start_simulated
from query_mutator.servers.simulated.faults import Fault
from query_mutator.servers.simulated.server import DEFAULT_MODELS, SimulatedServer
from query_mutator.servers.simulated.stats import LoggedRequest, Stats

__all__ = [
    "DEFAULT_MODELS",
    "Answer",
    "Fault",
    "LoggedRequest",
    "SimulatedChild",
    "SimulatedServer",
    "Stats",
    "answer_from_questions",
    "default_answer",
    "start_simulated",
]
