"""The learners that are compared on a table of operators."""

from __future__ import annotations

from benchmarks.learning.learners import Learner, all_actions, linucb, ours, sb3
from benchmarks.learning.simple import best_single_in_hindsight, best_single_seen, regression

LEARNERS: dict[str, Learner] = {
    "ours": ours,
    "PPO, all actions": all_actions,
    "SB3 PPO": sb3,
    "LinUCB": linucb,
    "regression": regression,
    "best single of what was seen": best_single_seen,
    "best single in hindsight": best_single_in_hindsight,
}
