"""PPO for environments that each advance at their own pace. Knows nothing of language models."""

from ppo.algorithm import PPO, PPOSettings, UpdateStats
from ppo.collector import collect_rollout
from ppo.policy import ActorCritic
from ppo.storage import RolloutStorage

__all__ = [
    "PPO",
    "ActorCritic",
    "PPOSettings",
    "RolloutStorage",
    "UpdateStats",
    "collect_rollout",
]
