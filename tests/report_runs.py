"""Runs that are written, not made: as long and as hostile as a test of the report needs them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

OPERATORS = ("step_by_step", "qa", "one_sentence", "stop")
CATEGORIES = ("arithmetic", "geography", "food")
STEPS_IN_UPDATE = 100

HOSTILE = [
    "<script>document.title='hacked';fetch('http://attacker.invalid/')</script>",
    "<img src=x onerror=\"document.title='hacked'\">",
    "<svg onload=\"document.title='hacked'\"><animate onbegin=alert(1) attributeName=x></svg>",
    "</style><style>*{display:none}</style></title></textarea><!--",
    "\"><a href=\"javascript:document.title='hacked'\">click</a> ' onmouseover='alert(1)",
    "<iframe srcdoc='<script>parent.document.title=1</script>'></iframe><base href='http://a.invalid'>",
    "<meta http-equiv=refresh content='0;url=http://a.invalid'><link rel=stylesheet href=//a>",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x00 \x9b31m \u202egnp.exe \u2066hid\u2069 \ufeff \ud800",
    "W" * 5000,
    "&lt;script&gt; &amp;#60; {{7*7}} ${7*7} <!-- ]]> <![CDATA[",
    "Z" + "\u0335\u0336\u0489" * 400,
]


def transition(number: int, **changes: Any) -> dict[str, Any]:
    """A plausible line: step_by_step comes to be preferred and helps arithmetic."""
    random_ = random.Random(number)
    progress = min(1.0, number / 5000)
    operator = OPERATORS[0] if random_.random() < 0.25 + 0.6 * progress else OPERATORS[number % 4]
    category = CATEGORIES[number % 3]
    before = float(random_.random() < 0.4)
    helps = operator == "step_by_step" and category == "arithmetic"
    after = before if operator == "stop" else float(random_.random() < (0.9 if helps else 0.4))
    query = f"wat is {number % 300} plus 2 please"
    line = {
        "update": number // STEPS_IN_UPDATE + 1,
        "env": number % 10,
        "step": number // 10,
        "terminated": True,
        "episode_return": after - before,
        "question_id": f"q-{number % 300}",
        "category": category,
        "operator": operator,
        "original_query": query,
        "query": query,
        "rewritten_query": f"What is {number % 300} plus 2? Let's think step by step.",
        "rewritten_question": f"What is {number % 300} plus 2?",
        "previous_answer": "I do not know that. " * 3,
        "answer": f"It is {number % 300 + 2}. " * 4,
        "previous_score": before,
        "score": after,
        "reward": after - before,
        "terms": {"facts": {"value": after, "why": "all key facts found", "weight": 1.0}},
        "failed": False,
        "failure": "",
        "refused_rewrite": "",
        "costs": {"answer": {"prompt_tokens": 20, "completion_tokens": 12}},
    }
    return line | changes


def hostile_transition(number: int) -> dict[str, Any]:
    """A line in which every text is an attack."""
    attacks = [HOSTILE[(number + place) % len(HOSTILE)] for place in range(8)]
    keys = ("question_id", "category", "operator", "query", "rewritten_query", "previous_answer")
    line = transition(number, **dict(zip((*keys, "answer", "failure"), attacks, strict=True)))
    line["original_query"] = line["query"]
    line |= {"previous_score": number % 2, "score": 1 - number % 2, "reward": 1 - 2 * (number % 2)}
    line["question_id"] += str(number)
    return line


def write_run(
    path: Path,
    lines: list[dict[str, Any]],
    *,
    seed: int = 1,
    settings: dict[str, Any] | None = None,
    evaluation: dict[str, Any] | None = None,
) -> Path:
    """A run directory as training leaves it, with these transitions."""
    path.mkdir(parents=True)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (path / "transitions.jsonl").write_text(text)
    told = {"num_env_steps": len(lines), "seed": seed, "server": ["http://me:secret@host:1"]}
    config = {
        "settings": told | (settings or {}),
        "server": "the ollama server at http://me:secret@host:1",
        "versions": {"python": "3.11.2"},
        "command": "train_query_mutator.py --server http://me:secret@host:1",
    }
    (path / "config.json").write_text(json.dumps(config))
    summary = {"wall_time_s": 75.0, "model_calls": 900, "failed_calls": 2, "heldout_gain": 0.21}
    summary["env_steps"] = len(lines)
    (path / "summary.json").write_text(json.dumps(summary))
    if evaluation is not None:
        write_evaluation(path, evaluation)
    writer = SummaryWriter(str(path / "tensorboard"))
    for update in range(1, max(2, len(lines) // STEPS_IN_UPDATE) + 1):
        step = update * STEPS_IN_UPDATE
        for tag, seconds in (("target", 6.0), ("mutation", 2.0), ("embedding", 0.5)):
            writer.add_scalar(f"Time/{tag}", seconds, step)
        writer.add_scalar("Time/learning", 0.5, step)
        writer.add_scalar("Time/idle", 1.0, step)
        if update % 2 == 0:
            writer.add_scalar("Reward/heldout", 0.002 * update, step)
    writer.close()
    return path


def write_evaluation(run: Path, evaluation: dict[str, Any]) -> None:
    """Puts an evaluation into the directory of a run."""
    (run / "evaluation").mkdir()
    (run / "evaluation" / "evaluation.json").write_text(json.dumps(evaluation))


def evaluation_of(name: str) -> dict[str, Any]:
    """An evaluation.json with one of each thing, told of that name."""
    lead = {"mean": 0.12, "low": 0.05, "high": 0.19, "groups": 40}
    way = {"score": 0.5, "target_calls": 1.0, "mutator_calls": 0.0, "seconds": 0.1}
    way |= {"facts": 0.4, "wording": 0.6}
    closed = {"gain": lead, "share": {**lead, "mean": 0.48}}
    return {
        "verdict": {"outcome": "helps", "sentence": f"The policy helps: {name}"},
        "questions": 40,
        "ways": [{"name": "unchanged", "policy_ahead": lead, **way}],
        "operators": [{"name": name, "policy_ahead": {**lead, "low": -0.1}, **way}],
        "contenders": [{"name": f"by {name}", "policy_ahead": lead, **way}],
        "styles": [
            {"style": "clear", "questions": 20, "ways": {name: {"score": lead, "facts": lead}}},
            {"style": "messy", "questions": 20, "ways": {f"by {name}": {"score": lead}}},
        ],
        "apart": {"facts": {**lead, "mean": 0.03, "low": -0.02}, "wording": lead},
        "gap": {
            "pairs": 30,
            "sentence": f"Asked clearly, the same 30 questions score higher: {name}",
            "sides": {"score": {"clear": 0.75, "messy": 0.5, "gap": {**lead, "mean": 0.25}}},
            "closers": [{"name": name, "asks_mutator": True, "closes": {"score": closed}}],
        },
        "categories": [{"category": name, "questions": 4, "difference": {**lead, "groups": 4}}],
    }
