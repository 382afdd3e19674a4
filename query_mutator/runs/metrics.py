"""What is known of a metric by its name, and the page that explains them all.

`docs/metrics.md` is made from the table (`python -m query_mutator.runs.metrics` prints that page),
and comparisons of runs take names, directions and thresholds from there.
"""

from __future__ import annotations

from itertools import groupby

from query_mutator.runs.metric_table import METRICS, Metric

LOWER_IS_BETTER = ("loss", "error", "perplexity", "latency", "grad_norm", "failed", "failure")
HIGHER_IS_BETTER = (
    "reward", "return", "ep_rew", "score", "accuracy", "success", "fps", "per_second",
)  # fmt: skip
"""What the names of other programs' tags suggest; where both do, lower wins ("reward_loss")."""


def markdown() -> str:
    """The page `docs/metrics.md`."""
    lines = [
        "# Metrics",
        "",
        "Every run writes these to TensorBoard (`tensorboard --logdir runs`), against the",
        "number of environment steps, every `--log-interval` updates. Each point is of its own",
        "rollout and update, but for `Failures/…`, which count all since the point before: their",
        "points add up. A failed step counts as an action that was chosen and is in no other mean.",
        "This page is made by `python -m query_mutator.runs.metrics`.",
        "",
    ]
    for group, metrics in groupby(METRICS, key=lambda metric: metric.tag.split("/")[0]):
        lines += [f"## {group}", "", "| metric | what it is | what to watch for | better |"]
        lines += ["| --- | --- | --- | --- |"]
        for metric in metrics:
            advice = [metric.watch_for]
            advice += [_sentence(limit.in_words()) for limit in metric.thresholds]
            better = metric.better or "—"
            lines.append(f"| `{metric.tag}` | {metric.meaning} | {' '.join(advice)} | {better} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def metric_of(tag: str) -> Metric | None:
    """What is known of a logged tag."""
    for metric in METRICS:
        prefix, found, suffix = metric.tag.partition("{name}")
        if found and tag.startswith(prefix) and tag.endswith(suffix) and len(tag) > len(prefix):
            return metric
        if tag == metric.tag:
            return metric
    return None


def is_counted(tag: str) -> bool:
    """Whether the points of a logged tag add up, so that their total tells more than any."""
    metric = metric_of(tag)
    return metric is not None and metric.counts


def better_of(tag: str) -> str:
    """Which way is better: as defined, or for another program's tag what its name suggests.

    >>> better_of("rollout/ep_rew_mean"), better_of("train/value_loss"), better_of("lr")
    ('higher', 'lower', '')
    """
    if (metric := metric_of(tag)) is not None:
        return metric.better
    name = tag.lower()
    if any(word in name for word in LOWER_IS_BETTER):
        return "lower"
    return "higher" if any(word in name for word in HIGHER_IS_BETTER) else ""


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


if __name__ == "__main__":
    print(markdown(), end="")
