"""PPO for environments that each advance at their own pace. Knows nothing of language models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ppo.algorithm import PPO, UpdateStats
    from ppo.all_actions import AllActionPPO
    from ppo.chooser import Chooser
    from ppo.collector import collect_rollout
    from ppo.policy import ActorCritic
    from ppo.settings import PPOSettings
    from ppo.storage import RolloutStorage

__all__ = [
    "PPO",
    "ActorCritic",
    "AllActionPPO",
    "Chooser",
    "PPOSettings",
    "RolloutStorage",
    "UpdateStats",
    "collect_rollout",
]

_MODULES = (
    *("settings", "storage", "policy", "collector", "algorithm"),
    *("chooser", "all_actions"),
)


def __getattr__(name: str) -> Any:
    """Imported when first asked for: the flags' defaults (`ppo.settings`) must not load torch."""
    if name in __all__:
        for module in _MODULES:
            if (found := getattr(import_module(f"ppo.{module}"), name, None)) is not None:
                return found
    raise AttributeError(f"module 'ppo' has no attribute '{name}'")
