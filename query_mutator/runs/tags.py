"""The names of what a run logs; `{name}` stands for an operator, a term or a kind of failure."""

HELDOUT = "Reward/heldout"
MEAN_RETURN = "Reward/mean_return"
MEAN_REWARD = "Reward/mean_reward"
SCORE_UNCHANGED = "Reward/score_unchanged"
SCORE_LAST = "Reward/score_last"
TERM = "Reward/term_{name}"

LOSS = "Training/loss"
POLICY_LOSS = "Training/policy_loss"
VALUE_LOSS = "Training/value_loss"
ENTROPY = "Training/entropy"
APPROX_KL = "Training/approx_kl"
CLIP_FRACTION = "Training/clip_fraction"
EXPLAINED_VARIANCE = "Training/explained_variance"
LEARNING_RATE = "Training/learning_rate"
OPTIMIZER_STEPS = "Training/optimizer_steps"

GRADIENT_NORM = "Gradients/norm_before_clip"
GRADIENT_NORM_MAX = "Gradients/norm_before_clip_max"

VALUE_MEAN = "RL/value_mean"
ADVANTAGE_STD = "RL/advantage_std"
STOP_SHARE = "RL/stop_share"
KEPT_SHARE = "RL/kept_share"

OPERATOR_SHARE = "Operators/{name}"

TRANSITIONS_PER_SECOND = "Performance/transitions_per_second"
CALLS_PER_SECOND = "Performance/calls_per_second"
TOKENS_PER_SECOND = "Performance/tokens_per_second"
MEAN_CALL_LATENCY_S = "Performance/mean_call_latency_s"
MEAN_QUEUE_WAIT_S = "Performance/mean_queue_wait_s"
MEAN_LOAD_S = "Performance/mean_load_s"
SLOTS_BUSY = "Performance/slots_busy"
CONCURRENCY_LIMIT = "Performance/concurrency_limit"
CACHE_HIT_SHARE = "Performance/cache_hit_share"
LEARNER_PERCENTAGE = "Performance/learner_percentage_training"

TIME_TARGET = "Time/target"
TIME_MUTATION = "Time/mutation"
TIME_JUDGE = "Time/judge"
TIME_EMBEDDING = "Time/embedding"
TIME_LEARNING = "Time/learning"
TIME_IDLE = "Time/idle"

SERVER_SHARE = "Servers/{name}_share"
SERVER_UP = "Servers/{name}_up"

FAILED_CALLS = "Failures/failed_calls"
FAILED_CALLS_OF_KIND = "Failures/calls_{name}"
COLLECTED_AGAIN = "Failures/rollouts_collected_again"
MASKED_TRANSITIONS = "Failures/masked_transitions"
REFUSED_REWRITES = "Failures/refused_rewrites"

TUNING_LOSS = "Tuning/loss"
TUNING_HELDOUT_LOSS = "Tuning/heldout_loss"
TUNING_EXACT = "Tuning/exact_rewrites"
TUNING_TOKENS_PER_SECOND = "Tuning/tokens_per_second"

SCORES = (HELDOUT, MEAN_RETURN)
"""What a run is judged by: the first of these that it has."""
