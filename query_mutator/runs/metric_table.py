"""Every metric a run logs: what it is, which way is better and what to watch for."""

from __future__ import annotations

from dataclasses import dataclass

from query_mutator.runs import tags


@dataclass(frozen=True)
class Threshold:
    """A value beyond which a run deserves a warning."""

    limit: float
    warning: str
    above: bool = True
    """Whether values above the limit are the bad ones; else those below it."""
    on_average: bool = False
    """Whether the run as a whole counts, not its worst moment."""

    def passed_by(self, value: float) -> bool:
        return value > self.limit if self.above else value < self.limit

    def in_words(self) -> str:
        which = "above" if self.above else "below"
        return f"{which} {self.limit:g}: {self.warning}"


@dataclass(frozen=True)
class Metric:
    """One TensorBoard tag; `{name}` in it stands for an operator, a term or a kind of failure."""

    tag: str
    meaning: str
    watch_for: str
    better: str = ""
    """`higher`, `lower`, or "" where neither is."""
    matters: bool = False
    """Whether a comparison of runs shows it unasked."""
    counts: bool = False
    """Whether its points add up: the total tells more than any of them."""
    thresholds: tuple[Threshold, ...] = ()
    """From mild to severe: the last one passed is told."""


METRICS: tuple[Metric, ...] = (
    Metric(
        tags.MEAN_RETURN,
        "Mean return of the episodes that ended in this rollout: how much better their last answer "
        "scored than the answer to the question unchanged. Failed episodes are left out.",
        "Above 0 the rewrites help on the training questions. A rise proves learning, not that it "
        "carries over to other questions.",
        "higher",
        matters=True,
    ),
    Metric(
        tags.HELDOUT,
        "How much better the policy, acting greedily, has held-out questions answered than "
        "unchanged: mean over a fixed sample (--eval-sample), every --eval-interval updates.",
        "The curve that counts: it rises only by what carries over to other questions. A sample of "
        "32 is noisy; `evaluate_query_mutator.py` asks them all.",
        "higher",
        matters=True,
    ),
    Metric(
        tags.MEAN_REWARD,
        "Mean reward of a valid step.",
        "The same as the return where an episode is one rewrite.",
        "higher",
    ),
    Metric(
        tags.SCORE_UNCHANGED,
        "Mean score of the answers to the questions as they were asked, in this rollout.",
        "Varies with the questions drawn: compare returns, not scores, between rollouts.",
    ),
    Metric(
        tags.SCORE_LAST,
        "Mean score of the last answers of the episodes.",
        "Its distance to `Reward/score_unchanged` is the mean return.",
        "higher",
    ),
    Metric(
        tags.TERM,
        "Mean of one [term of the score](objectives.md) over the valid steps, before its weight.",
        "A score that rises by one term alone (say closeness without facts) may be gaming it.",
    ),
    Metric(
        tags.LOSS,
        "Policy loss + value loss - entropy bonus, each times its weight, mean over mini-batches.",
        "Says little by itself, and a lower one may go with a worse score: judge a run by "
        "`Reward/heldout` and `Reward/mean_return`.",
        "lower",
        matters=True,
    ),
    Metric(
        tags.POLICY_LOSS,
        "PPO's clipped surrogate loss.",
        "Hovers around 0; large swings mean steps that are too large.",
    ),
    Metric(
        tags.VALUE_LOSS,
        "Half the squared error of the value estimates (clipped).",
        "Falls towards the variance that cannot be predicted.",
        "lower",
    ),
    Metric(
        tags.ENTROPY,
        "Mean entropy of the policy, in nats.",
        "Starts near ln(number of actions). A fall to 0 within a few updates is a collapse: raise "
        "--entropy-coef. No fall at all: nothing is being learned.",
    ),
    Metric(
        tags.APPROX_KL,
        "KL(policy that acted, policy now), estimated as the mean of r - 1 - ln r over the rows of "
        "a mini-batch, r being the action's probability now over that when it was taken. Taken "
        "before each optimizer step, mean over the steps: 0 at the first, and the last step's own "
        "move is not in it.",
        "Above 0.05 the updates are rough: lower --lr or --ppo-epoch, or set --target-kl 0.02. A "
        "mini-batch at which --target-kl ends the update is not in the mean.",
    ),
    Metric(
        tags.CLIP_FRACTION,
        "Share of rows whose probability ratio left the clipping range.",
        "0.05 to 0.3 is usual; 0 all the time means steps that are too small.",
    ),
    Metric(
        tags.EXPLAINED_VARIANCE,
        "Share of the variance of returns that the values given while acting predict: 1 - variance "
        "of (return - value) / variance of the returns. 0 where all returns are equal.",
        "1 is perfect, 0 no better than a constant, below 0 worse; -1 stands for all below it.",
        "higher",
    ),
    Metric(tags.LEARNING_RATE, "The learning rate of this update.", "Falls with decay on."),
    Metric(
        tags.OPTIMIZER_STEPS,
        "Optimizer steps of this update.",
        "Fewer than epochs times mini-batches: --target-kl ended it early, or the rollout had "
        "fewer valid rows (the last one may be short, failed steps are left out).",
    ),
    Metric(
        tags.GRADIENT_NORM,
        "Mean norm of the gradient before it is clipped to --max-grad-norm.",
        "Its size before clipping tells of trouble that the clipped one hides.",
        "lower",
        matters=True,
        thresholds=(
            Threshold(100, "gradient explosion; a lower --lr helps"),
            Threshold(200, "severe gradient explosion; a much lower --lr is needed"),
        ),
    ),
    Metric(
        tags.GRADIENT_NORM_MAX,
        "The largest such norm of the update.",
        "Single spikes are harmless: that is what clipping is for.",
        "lower",
    ),
    Metric(
        tags.VALUE_MEAN,
        "Mean value estimate of the states of this rollout.",
        "Should approach the mean return.",
        matters=True,
    ),
    Metric(tags.ADVANTAGE_STD, "Spread of the advantages before normalisation.", "0: no signal."),
    Metric(
        tags.STOP_SHARE,
        "Share of actions that were *stop*.",
        "1: the policy found that leaving questions alone is best.",
    ),
    Metric(
        tags.KEPT_SHARE,
        "Share of the rewrites with another answer than before in which that answer was kept "
        "(--keep better).",
        "1 all the time: rewriting is worth it as it is. Near 0: new answers look worse, and calls "
        "are made for nothing.",
    ),
    Metric(
        tags.OPERATOR_SHARE,
        "Share of actions that chose this operator.",
        "What the policy has come to prefer.",
    ),
    Metric(
        tags.TRANSITIONS_PER_SECOND,
        "Environment steps per second of this rollout and its update.",
        "The speed of the run.",
        "higher",
        matters=True,
    ),
    Metric(
        tags.CALLS_PER_SECOND,
        "Calls that the server answered, per second of the rollout.",
        "Compare with slots / mean latency, the most that the server can do.",
        "higher",
    ),
    Metric(
        tags.MEAN_CALL_LATENCY_S,
        "Mean duration of a call, retries and back-off included.",
        "Rises with --batch-size once the server's slots are full: then it only queues.",
        "lower",
    ),
    Metric(
        tags.MEAN_QUEUE_WAIT_S,
        "Mean time that a call waited for a slot, where the server tells (Ollama does).",
        "Above 0: --batch-size exceeds the server's parallelism.",
        "lower",
    ),
    Metric(
        tags.MEAN_LOAD_S,
        "Mean time per call spent loading a model, where the server tells (Ollama does).",
        "Above 0 all the time: two models take turns in memory; use one for both parts.",
        "lower",
    ),
    Metric(
        tags.SLOTS_BUSY,
        "Mean number of calls under way during the rollout.",
        "Close to --batch-size is good; far below it, use more --num-processes.",
        "higher",
    ),
    Metric(
        tags.CONCURRENCY_LIMIT,
        "Calls at once that the servers are given, found by --batch-size auto; for Ollama the sum "
        "over its models.",
        "Settles at the slots (of each model, for Ollama) and one or two more. At --num-processes "
        "or above: more environments would make the run faster.",
    ),
    Metric(
        tags.CACHE_HIT_SHARE,
        "Share of calls answered from memory: the same question, operator and settings before.",
        "Rises as questions come round again.",
        "higher",
    ),
    Metric(
        tags.LEARNER_PERCENTAGE,
        "Percent of wall time spent in PPO updates.",
        "Neither end is good: at 0 the learner waits for the server, at 100 the server for the "
        "learner. Small wherever models are asked over a network.",
        matters=True,
        thresholds=(
            Threshold(
                50,
                "learner starved: it waits for model calls most of the time. More calls at once or "
                "a faster server speed the run up; more --ppo-epoch would cost little time",
                above=False,
                on_average=True,
            ),
        ),
    ),
    Metric(
        tags.TOKENS_PER_SECOND,
        "Tokens that the models wrote, per second of the rollout, where the server counts them.",
        "The throughput of the server.",
        "higher",
    ),
    Metric(
        tags.TIME_TARGET,
        "Seconds that calls to the target model took, added up over the slots (the calls that may "
        "be under way at once). The metrics `Time/…` of an update are parts of one whole, the "
        "seconds of all slots; the report draws them.",
        "The largest part where all is well.",
    ),
    Metric(
        tags.TIME_MUTATION, "The same for calls to the mutator model.", "0 without a model's edit."
    ),
    Metric(tags.TIME_JUDGE, "The same for calls to the judge.", "Only where one was asked."),
    Metric(
        tags.TIME_EMBEDDING,
        "Seconds of slots without a call while texts were embedded, estimated: as many slots are "
        "taken to be free then as on average.",
        "Above a tenth: a smaller --embedding-model, or more --num-processes to hide it.",
        "lower",
    ),
    Metric(
        tags.TIME_LEARNING,
        "Seconds of slots without a call while the policy learned.",
        "Small: more --ppo-epoch would cost little time. Above a quarter: the server waits for the "
        "learner; fewer --ppo-epoch make the run faster.",
    ),
    Metric(
        tags.TIME_IDLE,
        "Seconds of slots without a call for no such reason: at the end of a rollout, or as there "
        "are too few environments.",
        "Above a quarter: raise --num-processes, or lower --batch-size.",
        "lower",
    ),
    Metric(
        tags.SERVER_SHARE,
        "Share of this rollout's calls that went to a server (several servers only).",
        "A server that is slower gets less.",
    ),
    Metric(
        tags.SERVER_UP,
        "1 where the server answered at the end of the rollout, 0 where it is left alone.",
        "0: start it again; it is taken back by itself.",
        "higher",
    ),
    Metric(
        tags.FAILED_CALLS,
        "Calls that failed after all retries.",
        "Not 0: see the first message of each kind on the terminal.",
        "lower",
        matters=True,
        counts=True,
    ),
    Metric(
        tags.FAILED_CALLS_OF_KIND,
        "Calls that failed after all retries, by kind of failure: connection, timeout, "
        "server_error, busy, not_found, bad_request, malformed, truncated, outage. A kind is drawn "
        "from its first failure on.",
        "timeout: raise --timeout or lower --batch-size; busy: lower --batch-size; not_found: the "
        "model is gone from the server.",
        "lower",
        counts=True,
    ),
    Metric(
        tags.COLLECTED_AGAIN,
        "How often a rollout was collected anew, since more than --max-failed-share of its steps "
        "had failed. What was thrown away is in no other figure but the counts of calls.",
        "Not 0: the server has just been in trouble.",
        "lower",
        counts=True,
    ),
    Metric(
        tags.MASKED_TRANSITIONS,
        "Steps that failed and were left out of training.",
        "More than a few percent: fix the server first.",
        "lower",
        matters=True,
        counts=True,
    ),
    Metric(
        tags.REFUSED_REWRITES,
        "Rewrites that were not used: empty, too long, an answer in place of a question, an "
        "example repeated, or one that asks something else (--faithful).",
        "Many: the mutator model is too small for these operators.",
        "lower",
        counts=True,
    ),
    Metric(
        tags.TUNING_LOSS,
        "Loss of a token of the rewrite, in the last step of a rewriter's training "
        "(`train-mutator`), against the number of its steps.",
        "Falls fast and then slowly. One that rises: lower --lr.",
        "lower",
    ),
    Metric(
        tags.TUNING_HELDOUT_LOSS,
        "The same, mean over the pairs that are not trained on.",
        "The curve that counts: the weights at its lowest point are kept. Rising while the loss "
        "falls, it tells of pairs learned by heart: more pairs, fewer --epochs or --patience.",
        "lower",
        matters=True,
    ),
    Metric(
        tags.TUNING_EXACT,
        "Share of a few held-out pairs of which the likeliest rewrite is the wanted one to the "
        "letter.",
        "Other wordings may be as good: it says less of quality than of what was learned.",
        "higher",
        matters=True,
    ),
    Metric(
        tags.TUNING_TOKENS_PER_SECOND,
        "Tokens of samples, padding apart, that are learned from in a second, looks at held-out "
        "pairs apart.",
        "The speed of the training.",
        "higher",
        matters=True,
    ),
)
