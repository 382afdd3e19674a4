"""Every metric a run logs: what it is and what to watch for. `docs/metrics.md` is made from this.

`python -m training.metrics` prints that page.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One TensorBoard tag; `{name}` in it stands for an operator, a term or a kind of failure."""

    tag: str
    meaning: str
    watch_for: str
    better: str = ""
    """`higher`, `lower`, or "" where neither is."""


METRICS: tuple[Metric, ...] = (
    Metric(
        "Reward/mean_return",
        "Mean return of the episodes that ended in this rollout: how much better their last answer "
        "scored than the answer to the question unchanged. Failed episodes are left out.",
        "Above 0 the rewrites help on the training questions. A rise proves learning, not that it "
        "carries over to other questions.",
        "higher",
    ),
    Metric(
        "Reward/heldout",
        "How much better the policy, acting greedily, has held-out questions answered than "
        "unchanged: mean over a fixed sample (--eval-sample), every --eval-interval updates.",
        "The curve that counts: it rises only by what carries over to other questions. A sample of "
        "32 is noisy; `evaluate_query_mutator.py` asks them all.",
        "higher",
    ),
    Metric(
        "Reward/mean_reward",
        "Mean reward of a valid step.",
        "The same as the return where an episode is one rewrite.",
        "higher",
    ),
    Metric(
        "Reward/score_unchanged",
        "Mean score of the answers to the questions as they were asked, in this rollout.",
        "Varies with the questions drawn: compare returns, not scores, between rollouts.",
    ),
    Metric(
        "Reward/score_last",
        "Mean score of the last answers of the episodes.",
        "Its distance to `Reward/score_unchanged` is the mean return.",
        "higher",
    ),
    Metric(
        "Reward/term_{name}",
        "Mean of one [term of the score](objectives.md) over the valid steps, before its weight.",
        "A score that rises by one term alone (say closeness without facts) may be gaming it.",
    ),
    Metric(
        "Training/loss",
        "Policy loss + value loss - entropy bonus, each times its weight, mean over mini-batches.",
        "Says little by itself: judge a run by `Reward/mean_return`.",
    ),
    Metric(
        "Training/policy_loss",
        "PPO's clipped surrogate loss.",
        "Hovers around 0; large swings mean steps that are too large.",
    ),
    Metric(
        "Training/value_loss",
        "Half the squared error of the value estimates (clipped).",
        "Falls towards the variance that cannot be predicted.",
        "lower",
    ),
    Metric(
        "Training/entropy",
        "Mean entropy of the policy, in nats.",
        "Starts near ln(number of actions). A fall to 0 within a few updates is a collapse: raise "
        "--entropy-coef. No fall at all: nothing is being learned.",
    ),
    Metric(
        "Training/approx_kl",
        "KL(policy that acted, policy now), estimated as the mean of r - 1 - ln r over the rows of "
        "a mini-batch, r being the action's probability now over that when it was taken. Taken "
        "before each optimizer step, mean over the steps: 0 at the first, and the last step's own "
        "move is not in it.",
        "Above 0.05 the updates are rough: lower --lr or --ppo-epoch, or set --target-kl 0.02. A "
        "mini-batch at which --target-kl ends the update is not in the mean.",
    ),
    Metric(
        "Training/clip_fraction",
        "Share of rows whose probability ratio left the clipping range.",
        "0.05 to 0.3 is usual; 0 all the time means steps that are too small.",
    ),
    Metric(
        "Training/explained_variance",
        "Share of the variance of returns that the values given while acting predict: 1 - variance "
        "of (return - value) / variance of the returns. 0 where all returns are equal.",
        "1 is perfect, 0 no better than a constant, below 0 worse; -1 stands for all below it.",
        "higher",
    ),
    Metric("Training/learning_rate", "The learning rate of this update.", "Falls with decay on."),
    Metric(
        "Training/optimizer_steps",
        "Optimizer steps of this update.",
        "Fewer than epochs times mini-batches: --target-kl ended it early, or the rollout had "
        "fewer valid rows (the last one may be short, failed steps are left out).",
    ),
    Metric(
        "Gradients/norm_before_clip",
        "Mean norm of the gradient before it is clipped to --max-grad-norm.",
        "Above 100 it explodes, above 200 severely.",
        "lower",
    ),
    Metric(
        "Gradients/norm_before_clip_max",
        "The largest such norm of the update.",
        "Single spikes are harmless: that is what clipping is for.",
        "lower",
    ),
    Metric(
        "RL/value_mean",
        "Mean value estimate of the states of this rollout.",
        "Should approach the mean return.",
    ),
    Metric("RL/advantage_std", "Spread of the advantages before normalisation.", "0: no signal."),
    Metric(
        "RL/stop_share",
        "Share of actions that were *stop*.",
        "1: the policy found that leaving questions alone is best.",
    ),
    Metric(
        "Operators/{name}",
        "Share of actions that chose this operator.",
        "What the policy has come to prefer.",
    ),
    Metric(
        "Performance/transitions_per_second",
        "Environment steps per second of this rollout and its update.",
        "The speed of the run.",
        "higher",
    ),
    Metric(
        "Performance/calls_per_second",
        "Calls that the server answered, per second of the rollout.",
        "Compare with slots / mean latency, the most that the server can do.",
        "higher",
    ),
    Metric(
        "Performance/mean_call_latency_s",
        "Mean duration of a call, retries and back-off included.",
        "Rises with --batch-size once the server's slots are full: then it only queues.",
        "lower",
    ),
    Metric(
        "Performance/mean_queue_wait_s",
        "Mean time that a call waited for a slot, where the server tells (Ollama does).",
        "Above 0: --batch-size exceeds the server's parallelism.",
        "lower",
    ),
    Metric(
        "Performance/mean_load_s",
        "Mean time per call spent loading a model, where the server tells (Ollama does).",
        "Above 0 all the time: two models take turns in memory; use one for both parts.",
        "lower",
    ),
    Metric(
        "Performance/slots_busy",
        "Mean number of calls under way during the rollout.",
        "Close to --batch-size is good; far below it, use more --num-processes.",
        "higher",
    ),
    Metric(
        "Performance/concurrency_limit",
        "Calls at once that the servers are given, found by --batch-size auto; for Ollama the sum "
        "over its models.",
        "Settles at the slots (of each model, for Ollama) and one or two more. At --num-processes "
        "or above: more environments would make the run faster.",
    ),
    Metric(
        "Performance/cache_hit_share",
        "Share of calls answered from memory: the same question, operator and settings before.",
        "Rises as questions come round again.",
        "higher",
    ),
    Metric(
        "Performance/learner_percentage_training",
        "Percent of wall time spent in PPO updates.",
        "Small here, since model calls take nearly all the time.",
    ),
    Metric(
        "Performance/tokens_per_second",
        "Tokens that the models wrote, per second of the rollout, where the server counts them.",
        "The throughput of the server.",
        "higher",
    ),
    Metric(
        "Servers/{name}_share",
        "Share of this rollout's calls that went to a server (several servers only).",
        "A server that is slower gets less.",
    ),
    Metric(
        "Servers/{name}_up",
        "1 where the server answered at the end of the rollout, 0 where it is left alone.",
        "0: start it again; it is taken back by itself.",
        "higher",
    ),
    Metric(
        "Failures/failed_calls",
        "Calls of this rollout that failed after all retries.",
        "Not 0: see the first message of each kind on the terminal.",
        "lower",
    ),
    Metric(
        "Failures/masked_transitions",
        "Steps of this rollout that failed and were left out of training.",
        "More than a few percent: fix the server first.",
        "lower",
    ),
    Metric(
        "Failures/refused_rewrites",
        "Rewrites of this rollout that were not used: empty, too long, an answer in place of a "
        "question, an example repeated, or too far from the question.",
        "Many: the mutator model is too small for these operators.",
        "lower",
    ),
)


def markdown() -> str:
    """The page `docs/metrics.md`."""
    lines = [
        "# Metrics",
        "",
        "Every run writes these to TensorBoard (`tensorboard --logdir runs`), against the",
        "number of environment steps, every `--log-interval` updates. A failed step counts as an",
        "action that was chosen and is in no other mean.",
        "This page is made by `python -m training.metrics`.",
        "",
    ]
    group = ""
    for metric in METRICS:
        if (prefix := metric.tag.split("/")[0]) != group:
            group = prefix
            lines += [f"## {group}", "", "| metric | what it is | what to watch for | better |"]
            lines += ["| --- | --- | --- | --- |"]
        lines.append(
            f"| `{metric.tag}` | {metric.meaning} | {metric.watch_for} | {metric.better or '—'} |"
        )
        following = METRICS.index(metric) + 1
        if following == len(METRICS) or not METRICS[following].tag.startswith(f"{group}/"):
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def known_tag(tag: str) -> bool:
    """Whether a logged tag is one of those explained."""
    for metric in METRICS:
        prefix, found, suffix = metric.tag.partition("{name}")
        if found and tag.startswith(prefix) and tag.endswith(suffix) and len(tag) > len(prefix):
            return True
        if tag == metric.tag:
            return True
    return False


if __name__ == "__main__":
    print(markdown(), end="")
