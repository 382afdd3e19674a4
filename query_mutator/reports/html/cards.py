"""The findings of one run, a card for each."""

from __future__ import annotations

import json
import shlex
from typing import Any

from query_mutator.base.terminal import command_line, counted, without_passwords
from query_mutator.reports.html import evaluation as evaluated
from query_mutator.reports.html import findings
from query_mutator.reports.html.digest import RIGHT
from query_mutator.reports.html.findings import Material
from query_mutator.reports.html.gap import gap_card
from query_mutator.reports.html.markup import Markup, element, name, plain
from query_mutator.reports.html.sections import (
    card,
    example,
    forest_table,
    heat_table,
    note,
    plotted,
    scores_key,
    table,
)

Named = list[tuple[str, Markup]]
"""Parts of a page, each with its name in the contents."""


def run_cards(material: Material, prefix: str = "") -> Named:
    """All that there is to see in one run; `prefix` tells its parts from other runs'."""
    parts: Named = []
    if (learning := _learning(material, prefix)) is not None:
        parts.append(("Learning", learning))
    if material.evaluation is not None:
        after = findings.evaluated_after(material)
        parts.append(("Evaluation", _evaluation(material.evaluation, after, prefix)))
        if (gap := gap_card(material.evaluation, prefix)) is not None:
            parts.append(("Clear and messy", gap))
    if (used := findings.operators_used(material.digest)) is not None:
        text = note("What the policy chose, over training.")
        content = card("Operators", used.says, text, plotted(used), key=f"{prefix}operators")
        parts.append(("Operators", content))
    if (heat := findings.heat_map(material.digest)) is not None:
        content = card("Kinds of question", heat.says, heat_table(heat), key=f"{prefix}heatmap")
        parts.append(("Kinds of question", content))
    parts += _scores_and_time(material, prefix)
    if (examples := _examples(material, prefix)) is not None:
        parts.append(("Examples", examples))
    parts.append(("Settings", _settings(material, prefix)))
    return parts


def _learning(material: Material, prefix: str) -> Markup | None:
    figure = findings.learning(material)
    if figure is None:
        return None
    joined = material.digest.joined()
    text = note(
        f"Each point is {'an update' if joined == 1 else f'{joined} updates'}; the band is the "
        "95 % interval of its mean. ",
        "Squares are a fixed sample of questions that are not trained on."
        if len(figure.lines) > 1
        else "These are the questions it is trained on; others may differ.",
    )
    return card("Learning", figure.says, text, plotted(figure), key=f"{prefix}learning")


def _scores_and_time(material: Material, prefix: str) -> Named:
    """Two small pictures, side by side where there is room."""
    found: Named = []
    if (scores := findings.scores(material.digest)) is not None:
        text = note(f"The last quarter of training. Right: a score of at least {RIGHT:g}.")
        picture = (text, scores_key(), plotted(scores))
        found.append(("Scores", card("Scores", scores.says, *picture, key=f"{prefix}scores")))
    if (time := findings.time_spent(material)) is not None:
        text = note(
            "A slot is a call that may be under way. Slots without a call are put down to "
            "embedding or learning while that goes on, else to idleness."
        )
        found.append(("Time", card("Time", time.says, text, plotted(time), key=f"{prefix}time")))
    if len(found) < 2:
        return found
    both = element("div", *(markup for _, markup in found), class_="pair")
    return [(" and ".join(label for label, _ in found), both)]


def _evaluation(evaluation: dict[str, Any], after: int | None, prefix: str) -> Markup:
    stale = "" if after is None else f"Evaluated after {counted(after, 'step')} of training. "
    content: list[Markup] = [
        note(
            stale,
            evaluated.another_score(evaluation),
            "The same questions asked in every way; 95 % intervals that hold together within a "
            "table. Right of the line the policy is ahead: blue where that is certain, red where "
            "it is certainly behind, grey where it cannot be told.",
        )
    ]
    if leads := evaluated.leads(evaluation):
        few = evaluated.alternatives(evaluation)
        content.append(forest_table(leads, break_after=few))
    apart, by_style = evaluated.parts_apart(evaluation), evaluated.gains_by_style(evaluation)
    for forest in (apart, *by_style, evaluated.gains(evaluation)):
        if forest is not None:
            content.append(forest_table(forest))
    return card("Evaluation", evaluated.evaluated(evaluation), *content, key=f"{prefix}evaluation")


def _examples(material: Material, prefix: str) -> Markup | None:
    best, worst = (material.digest.examples(best) for best in (True, False))
    if not best and not worst:
        return None
    content: list[Markup] = []
    if best:
        content += [element("h3", "Helped most"), *(example(one) for one in best)]
    if worst:
        content += [element("h3", "Hurt most"), *(example(one) for one in worst)]
    text = note(
        "The extremes of training, exploration included, at most one for each question. ",
        element("del", "Words taken out"),
        " and ",
        element("ins", "words put in"),
        " are marked.",
    )
    title = "The rewrites that helped most, and those that hurt most"
    return card("Examples", title, text, *content, key=f"{prefix}examples")


def _settings(material: Material, prefix: str) -> Markup:
    run, config = material.run, material.run.config or {}
    again = f"{command_line('train')} --config {shlex.quote(str(run.path / 'config.json'))}"
    content: list[Markup] = []
    if config:
        content += [
            note("This repeats the run:"),
            element("pre", element("code", again)),
        ]
    if command := config.get("command"):
        shown = plain(without_passwords(str(command)), 4000)
        content += [
            note("It was started with:"),
            element("pre", element("code", f"python {shown}")),
        ]
    settings = run.settings or {}
    if changed := _changed(settings):
        rows = [(name(key), _value(value)) for key, value in changed.items()]
        caption = "Settings that are not as they are by default"
        content.append(table(("setting", "value"), rows, caption=caption, kind="texts"))
    environment = [("server", _value(config.get("server", "unknown")))]
    versions = config.get("versions")
    if isinstance(versions, dict):
        environment += [(name(key), _value(value)) for key, value in versions.items()]
    content.append(table(("what", "version"), environment, caption="Environment", kind="texts"))
    if settings:
        rows = [(name(key), _value(value)) for key, value in settings.items()]
        every = table(("setting", "value"), rows, caption="All settings", kind="texts")
        summary = element("summary", f"All {len(rows)} settings")
        content.append(element("details", summary, every, class_="data"))
    return card("Settings", "How to repeat it", *content, key=f"{prefix}settings")


def _changed(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that differ from the defaults."""
    from query_mutator.runs.settings import Settings

    defaults = Settings().stored()
    return {
        key: value
        for key, value in settings.items()
        if key not in defaults or defaults[key] != value
    }


def _value(value: Any) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return plain(without_passwords(shown), 300)
