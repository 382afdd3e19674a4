"""Every flag of the trainer, defined once: its name, default, help, group and limits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ppo.settings import PPOSettings
from query_mutator.base.errors import UserError
from query_mutator.base.flags import (
    AUTO,
    BETTER,
    LARGEST_WEIGHT,
    LAST,
    answer_to_keep,
    batch_size,
    check_bounds,
    flag,
    grouped_parser,
    option_of,
    parsed,
    weight,
)
from query_mutator.base.untrusted import DEEPEST, parse_json, read_text
from query_mutator.models.keys import check_servers_of_file

MAX_SECONDS = 7 * 24 * 3600
BEFORE = {"keep": LAST}
"""What runs did before there was a setting for it, where that is not what they do by default."""
NOT_REPEATED = {"run_dir", "resume", "config"}
"""Settings that belong to one run and are not taken from another run's config.json."""
WEIGHTS = {
    "answer": ("facts_weight", "closeness_weight"),
    "helpful": ("willing_weight", "on_point_weight"),
    "consistency": ("stable_weight", "willing_weight"),
    "judge": ("verdict_weight",),
}
"""What each shipped objective rewards; drift is only ever taken off."""

GROUPS = {
    "server": "model server",
    "dataset": "questions, rewrites and reward",
    "num_processes": "rollouts",
    "lr": "PPO",
    "use_eval": "evaluation on held-out questions",
    "seed": "the run",
}
"""What --help calls the flags, from which one on."""


@dataclass(frozen=True)
class Settings:
    """The settings of a training run."""

    server: list[str] = flag(  # noqa: RUF009 - a field() with a default_factory
        [],
        "auto: the Ollama at OLLAMA_HOST if it answers and has the models, else the embedded "
        "model (default); embedded; or a URL (repeatable: calls go where there is room)",
        metavar="SERVER",
    )
    mutator_server: list[str] = flag(  # noqa: RUF009 - a field() with a default_factory
        [], "server for rewrites alone (repeatable)", metavar="SERVER"
    )
    target_server: list[str] = flag(  # noqa: RUF009 - a field() with a default_factory
        [], "server for answers alone (repeatable)", metavar="SERVER"
    )
    judge_server: list[str] = flag(  # noqa: RUF009 - a field() with a default_factory
        [], "server for the judge alone (repeatable; default: as for answers)", metavar="SERVER"
    )
    mutator_model: str | None = flag(
        None, "model that rewrites (default: the target model)", parse=str
    )
    target_model: str | None = flag(
        None, "model that answers (default: the server's only one)", parse=str
    )
    judge_model: str | None = flag(
        None, "model that compares answers (default: the target model)", parse=str
    )
    embedding_model: str = flag(
        "minilm", "minilm (packaged), a directory, or an embedding model on the server"
    )
    rewriter: str | None = flag(
        None,
        "adapter of the embedded model that rewrites: a GGUF, a directory of train-mutator or none",
        parse=str,
    )
    timeout: float = flag(60.0, "deadline of a call, in seconds", above=0, at_most=MAX_SECONDS)
    load_timeout: float = flag(
        600.0,
        "deadline of a model's first call, which loads it, in seconds",
        above=0,
        at_most=MAX_SECONDS,
    )
    retries: int = flag(2, "further attempts of a call that failed", at_least=0, at_most=100)
    max_outage: float = flag(
        600.0,
        "seconds to wait for servers of which none answers; then the run is saved and ends",
        at_least=0,
        at_most=MAX_SECONDS,
    )
    num_ctx: int = flag(
        2048, "context size, the same for every call", at_least=256, at_most=10_000_000
    )
    max_tokens_mutation: int = flag(64, "token limit of a rewrite", at_least=1, at_most=1_000_000)
    max_tokens_answer: int = flag(96, "token limit of an answer", at_least=1, at_most=1_000_000)
    temperature_mutation: float = flag(0.0, "temperature of rewrites", at_least=0, at_most=10)
    temperature_answer: float = flag(0.0, "temperature of answers", at_least=0, at_most=10)
    cache: str | None = flag(
        None,
        "file that keeps the answers of calls at temperature 0 (default: in the user's cache "
        "directory)",
        parse=str,
    )
    use_cache: bool = flag(True, "keep answers between runs")

    dataset: str | None = flag(
        None, "JSONL or CSV with question and reference (default: the shipped one)", parse=str
    )
    num_questions: int | None = flag(
        None, "train on a sample of so many questions (default: all)", parse=int, at_least=1
    )
    operators: list[str] = flag(  # noqa: RUF009 - a field() with a default_factory
        [], "file with operators to add to the shipped ones (repeatable)", metavar="FILE"
    )
    only_operators: str = flag("", "names of the operators to use, with commas between")
    faithful: bool = flag(True, "refuse a model's rewrite that asks something else")
    objective: str = flag(
        "answer", "what a good answer is: answer, helpful, consistency, judge, or file.py:name"
    )
    max_rewrites: int | None = flag(
        None,
        "rewrites in an episode (default: 1 on the embedded model, 2 elsewhere)",
        parse=int,
        at_least=1,
        at_most=100,
    )
    keep: str = flag(
        BETTER,
        "after a rewrite, keep the answer that looks better without the reference, or the last",
        parse=answer_to_keep,
    )
    facts_weight: float = weight(0.5, "weight of the key facts in the score")
    closeness_weight: float = weight(0.5, "weight of the closeness to the reference in the score")
    willing_weight: float = weight(0.5, "weight of not refusing in the score")
    on_point_weight: float = weight(0.5, "weight of answering what was asked in the score")
    stable_weight: float = weight(0.5, "weight of the same answer to variants of the question")
    verdict_weight: float = weight(1.0, "weight of the judge's verdict")
    drift_weight: float = weight(1.0, "cost of drifting from the question")
    drift_threshold: float = flag(
        0.2,
        "drift that costs nothing, of 0 (the same is asked) to 1 (surely something else)",
        at_least=0,
        at_most=2,  # of 1 - cosine, which runs may have stored; from 1 up, nothing costs
    )

    num_processes: int = flag(16, "environments that run side by side", at_least=1, at_most=4096)
    num_steps: int = flag(4, "steps of each environment in a rollout", at_least=1, at_most=100_000)
    num_env_steps: int = flag(
        10_000, "environment steps in all; 1e4 is fine", at_least=1, at_most=10**12
    )
    batch_size: int | str = flag(
        AUTO,
        "model calls under way at once on each server; auto finds out what it can serve",
        parse=batch_size,
        at_least=1,
        at_most=1024,
    )
    use_batching: bool = flag(True, "make up to --batch-size calls at once")
    max_failed_share: float = flag(
        0.5,
        "a rollout of which more than this share failed is collected again, not trained on",
        above=0,
        at_most=1,
    )
    group_by_model: bool = flag(
        False, "never ask a server for both models at once (done by itself where only one fits)"
    )

    lr: float = flag(PPOSettings.lr, "learning rate", above=0, at_most=1)
    gamma: float = flag(PPOSettings.gamma, "discount", at_least=0, at_most=1)
    gae_lambda: float = flag(PPOSettings.gae_lambda, "lambda of GAE", at_least=0, at_most=1)
    clip_param: float = flag(
        PPOSettings.clip_param, "clipping range of PPO", above=0, at_most=LARGEST_WEIGHT
    )
    ppo_epoch: int = flag(PPOSettings.ppo_epoch, "epochs over a rollout", at_least=1, at_most=1000)
    num_mini_batch: int = flag(
        PPOSettings.num_mini_batch,
        "mini-batches in an epoch over a full rollout; fewer of the same size over a smaller one",
        at_least=1,
    )
    entropy_coef: float = weight(PPOSettings.entropy_coef, "weight of the entropy bonus")
    value_loss_coef: float = weight(PPOSettings.value_loss_coef, "weight of the value loss")
    max_grad_norm: float = flag(
        PPOSettings.max_grad_norm, "gradients are clipped to this norm", above=0
    )
    use_linear_lr_decay: bool = flag(False, "let the learning rate fall to 0")
    target_kl: float | None = flag(
        PPOSettings.target_kl,
        "end an update that moves further than 1.5 times this",
        parse=float,
        above=0,
    )
    hidden_size: int = flag(
        0, "width of the policy's two layers; 0: a linear policy", at_least=0, at_most=16_384
    )

    use_eval: bool = flag(True, "evaluate the policy when it is trained")
    eval_questions: int | None = flag(
        None, "held-out questions to evaluate on (default: all)", parse=int, at_least=1
    )
    eval_interval: int = flag(
        8, "updates between points of the curve Reward/heldout; 0 draws none", at_least=0
    )
    eval_sample: int = flag(32, "held-out questions behind that curve, always the same", at_least=1)

    seed: int = flag(1, "seed of everything random", at_least=0, at_most=2**32 - 1)
    run_dir: str | None = flag(
        None, "directory of the run (default: runs/ and the time)", parse=str
    )
    config: str | None = flag(
        None, "file with flags, such as a run's config.json; the command line wins", parse=str
    )
    resume: bool = flag(False, "go on from the last checkpoint of --run-dir")
    save_interval: int = flag(1, "updates between checkpoints", at_least=1)
    log_interval: int = flag(1, "updates between log entries", at_least=1)
    use_report: bool = flag(True, "end with report.html in --run-dir")

    @property
    def max_workers(self) -> int | None:
        """Calls under way at once on a server; None where that is to be found out."""
        if not self.use_batching:
            return 1
        return self.batch_size if isinstance(self.batch_size, int) else None

    def stored(self) -> dict[str, Any]:
        """What config.json keeps."""
        return {key: value for key, value in asdict(self).items() if key not in NOT_REPEATED}


def build_parser(prog: str, description: str) -> argparse.ArgumentParser:
    """The command line of `Settings`, in groups."""
    return grouped_parser(Settings, GROUPS, prog, description)


def parse_settings(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> Settings:
    """The settings of a command line: defaults, then the config file, then the flags."""
    namespace, others = parser.parse_known_args(argv)
    given = vars(namespace)
    if others and given.get("resume") and not others[0].startswith("-"):
        raise UserError(f"--resume takes no directory: write --resume --run-dir {others[0]}")
    if others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    values: dict[str, Any] = {}
    if given.get("resume"):
        if not given.get("run_dir"):
            raise UserError("--resume needs --run-dir, the run to go on with")
        if given.get("config"):
            raise UserError("--resume takes its settings from the run: leave out --config")
        given["config"] = str(Path(given["run_dir"]) / "config.json")
        if not Path(given["config"]).exists():
            raise UserError(
                f"{given['run_dir']} holds no run to go on with (no config.json).\n"
                "Check --run-dir; a run that was stopped as it began is started without --resume"
            )
    if given.get("config"):
        values.update(_read_config(Path(given["config"])))
    of_file = {name: value for name, value in values.items() if name not in given}
    values.update(given)
    settings = Settings(**parsed_fields(values))
    check(settings)
    check_servers_of_file(servers_in(parsed_fields(of_file)), given.get("config"))
    return settings


def servers_in(values: dict[str, Any]) -> list[str]:
    """The servers that some settings name."""
    names = ("server", "mutator_server", "target_server", "judge_server")
    return [server for name in names for server in values.get(name) or []]


def read_settings(path: Path) -> Settings:
    """The settings of a run's config.json, checked as those of a command line are."""
    values = _read_config(path)
    try:
        settings = Settings(**parsed_fields(values))
        check(settings)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return settings


def parsed_fields(values: dict[str, Any]) -> dict[str, Any]:
    """The values of settings from what a command line or a config file holds."""
    by_name = {item.name: item for item in fields(Settings)}
    return {name: parsed(by_name[name], value) for name, value in values.items()}


def may_ask_judge(settings: Settings) -> bool:
    """Whether the objective asks a judge, or is the user's own, which may."""
    return settings.objective == "judge" or ".py:" in settings.objective


def check(settings: Settings) -> None:
    """Refuses values that cannot work, with the reason."""
    for item in fields(Settings):
        value = getattr(settings, item.name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            check_bounds(item, value)
    _check_weights(settings)
    rollout = settings.num_processes * settings.num_steps
    if settings.num_env_steps < settings.num_processes:
        raise UserError(
            f"--num-env-steps {settings.num_env_steps} is less than one step for each of the "
            f"{settings.num_processes} environments; lower --num-processes"
        )
    if settings.num_mini_batch > rollout:
        raise UserError(
            f"--num-mini-batch {settings.num_mini_batch} is more than the {rollout} transitions "
            "of a rollout (--num-processes times --num-steps)"
        )


def _check_weights(settings: Settings) -> None:
    names = WEIGHTS.get(settings.objective, ())
    if names and not any(getattr(settings, name) for name in names):
        flags = " and ".join(option_of(name) for name in names)
        both = "both " if len(names) > 1 else ""
        where = f"with --objective {settings.objective}"
        raise UserError(f"{flags} cannot {both}be 0 {where}: nothing to score")


def _read_config(path: Path) -> dict[str, Any]:
    try:
        data = parse_json(read_text(path, "the config file"), deepest=DEEPEST)
    except ValueError as error:
        raise UserError(f"{path} is not a JSON file: {str(error)[:200]}") from error
    if isinstance(data, dict) and isinstance(data.get("settings"), dict):
        data = {**BEFORE, **data["settings"]}
    if not isinstance(data, dict):
        raise UserError(f"{path} does not hold settings by name")
    known = {item.name for item in fields(Settings)}
    data = {key.replace("-", "_"): value for key, value in data.items()}
    unknown = sorted(set(data) - known)
    if unknown:
        raise UserError(
            f"{path}: unknown setting '{unknown[0][:200]}'; --help lists those there are"
        )
    return {key: value for key, value in data.items() if key not in NOT_REPEATED}
