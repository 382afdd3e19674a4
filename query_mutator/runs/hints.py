"""Settings that work but are not what one would want, told before a run begins."""

from __future__ import annotations

from query_mutator.runs.settings import Settings, may_ask_judge


def hints(settings: Settings) -> list[str]:
    """One line for each setting that works but is not what one would want."""
    return [*_unused_judge(settings), *_too_few_or_many(settings)]


def _unused_judge(settings: Settings) -> list[str]:
    if may_ask_judge(settings) or not (settings.judge_model or settings.judge_server):
        return []
    return [f"hint: --objective {settings.objective} asks no judge: the one named is not used"]


def _too_few_or_many(settings: Settings) -> list[str]:
    batch, envs = settings.max_workers, settings.num_processes
    if batch is None or batch == 1:
        return []
    parts = (settings.mutator_server, settings.target_server, settings.judge_server)
    at_once = batch * max(1, len({*settings.server, *(url for part in parts for url in part)}))
    allowed = f"the {at_once} calls at once that --batch-size {batch} allows"
    if envs < at_once:
        return [
            f"hint: --num-processes {envs} is below {allowed}: "
            f"{at_once - envs} of them can never be made; use {at_once} to {2 * at_once}"
        ]
    if envs > 2 * at_once:
        return [
            f"hint: --num-processes {envs} is above twice {allowed}: longer rollouts, hardly "
            "faster, unless some answers take much longer than others"
        ]
    return []
