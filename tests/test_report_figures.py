"""The figures of a report: true to the transitions, and claiming no more than seeds show."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image

from query_mutator.environment.transition import Transition
from query_mutator.models.client import CallCounts
from query_mutator.reports.events import Curve
from query_mutator.reports.html import write_report
from query_mutator.reports.html.digest import Digest, digest
from query_mutator.reports.html.figures import (
    ALL,
    SHADES,
    Cell,
    Curves,
    Forest,
    HeatMap,
    Interval,
    stacked,
)
from query_mutator.reports.html.findings import (
    Material,
    heat_map,
    learning,
    operators_used,
    read,
    scores,
    time_spent,
)
from query_mutator.reports.html.png import colour, draw_all, draw_png
from query_mutator.reports.html.several import Seeds, curves, curves_note, together
from query_mutator.reports.html.svg import draw
from query_mutator.reports.html.words import marked
from query_mutator.reports.runs import Run, load_run
from query_mutator.runs.tags import HELDOUT
from query_mutator.training.update_metrics import Moment, Phases, time_metrics
from tests.browser import Parsed
from tests.report_runs import STEPS_IN_UPDATE, transition, write_run


def digest_of(lines: list[dict[str, Any]]) -> Digest:
    return digest(map(Transition.from_json, lines))


def test_the_figures_are_those_of_the_transitions(tmp_path: Path) -> None:
    lines = [transition(number) for number in range(10_000)]
    found = read(load_run(write_run(tmp_path / "run", lines)))
    points = found.digest.points(most=1000)
    assert [steps for steps, _ in points] == list(range(100, 10_001, STEPS_IN_UPDATE))
    seventh = np.array([line["episode_return"] for line in lines[600:700]])
    assert points[6][1].mean == pytest.approx(seventh.mean())
    error = seventh.std(ddof=1) / 10
    assert points[6][1].half_interval == pytest.approx(1.984217 * error, rel=1e-5)
    few = found.digest.points(most=40)
    assert len(few) <= 40
    assert sum(update.episodes for _, update in few) == 10_000

    used = [
        line
        for line in lines
        if (line["operator"], line["category"]) == ("step_by_step", "arithmetic")
    ]
    figure = heat_map(found.digest)
    assert figure is not None
    cell = figure.cells["step_by_step", "arithmetic"]
    assert cell.count == len(used)
    assert cell.gain == pytest.approx(np.mean([line["reward"] for line in used]))
    assert cell.to_right == sum(line["score"] > line["previous_score"] for line in used)
    assert cell.to_wrong == sum(line["score"] < line["previous_score"] for line in used)
    assert figure.cells[ALL, ALL].count == sum(line["operator"] != "stop" for line in lines)
    assert figure.says.startswith("step_by_step helps arithmetic most (+0.")

    chosen = operators_used(found.digest)
    assert chosen is not None
    assert chosen.says.startswith("Chosen more and more often: “step_by_step”, from ")
    assert np.allclose(np.sum([share for _, share in chosen.layers], axis=0), 1)
    distribution = scores(found.digest)
    assert distribution is not None
    late = np.array([line["score"] for line in lines[7500:]])
    assert distribution.after[-1] == pytest.approx(late.mean())
    spent = time_spent(found)
    assert spent is not None
    assert spent.says == "Most of the time went to the target model: 60%; slots stood idle for 10%"


@pytest.mark.parametrize("lines", [0, 1])
def test_a_run_that_has_hardly_begun_has_a_report(tmp_path: Path, lines: int) -> None:
    broken = {"verdict": {"sentence": "unsure", "outcome": []}, "questions": "<b>", "ways": [1]}
    broken |= {"categories": [{"category": {}, "difference": {"mean": "<u>", "low": "<i>"}}]}
    broken |= {"operators": [{"name": None, "policy_ahead": {"mean": 0.5, "low": "<i>"}}]}
    begun = [transition(number, episode_return=None) for number in range(lines)]
    runs = [
        write_run(tmp_path / "plain", begun),
        write_run(tmp_path / "broken", begun, evaluation=broken, settings={"seed": "x"}),
    ]
    for chosen in (runs[:1], runs[1:], runs):
        pictures = tmp_path / "pictures" if chosen == runs[1:] else None
        page = write_report(chosen, tmp_path / "page.html", png=pictures)
        assert {"settings", "comparison"} & {
            section["id"] for section in Parsed(page).of("section")
        }
        assert "<i>" not in page.read_text()


def test_the_best_and_worst_rewrites_are_shown_with_the_changed_words_marked(
    tmp_path: Path,
) -> None:
    best = {"query": "wat is teh capital", "original_query": "wat is teh capital", "reward": 5.0}
    best |= {"rewritten_query": "What is the capital?", "answer": "Lima, surely", "operator": "qa"}
    worst = {"reward": -5.0, "answer": "I refuse", "operator": "qa", "question_id": "other"}
    second = {"reward": 9.0, "query": "rewritten once", "answer": "of a second rewrite"}
    lines = [transition(number) for number in range(200)]
    lines += [transition(200, **best), transition(201, **worst), transition(202, **second)]
    page = write_report([write_run(tmp_path / "run", lines)], tmp_path / "page.html").read_text()
    assert "<del>wat</del> is <del>teh</del> capital</dd>" in page
    assert "<ins>What</ins> is <ins>the</ins> capital<ins>?</ins></dd>" in page
    assert page.index("Lima, surely") < page.index("Hurt most") < page.index("I refuse")
    assert "of a second rewrite" not in page


def test_the_seconds_of_slots_are_parted_without_rest() -> None:
    began = Moment(0.0, CallCounts(seconds={"answer": 5.0}))
    collected = Moment(10.0, CallCounts(seconds={"answer": 25.0, "mutation": 8.0}))
    learned = Moment(12.0, CallCounts(seconds={"answer": 26.0, "mutation": 8.0}), embedded_s=2.5)
    found = time_metrics(Phases(began, collected, learned), slots=4)
    assert found == {
        "Time/target": 21.0,
        "Time/mutation": 8.0,
        "Time/learning": 7.0,
        "Time/embedding": 3.0,
        "Time/idle": 9.0,
    }
    assert sum(found.values()) == 4 * 12.0
    quick = Phases(began, collected, replace(learned, at_s=10.5))
    full = time_metrics(quick, slots=1)
    assert full["Time/idle"] == full["Time/embedding"] == full["Time/learning"] == 0


def test_failed_steps_are_counted_and_left_out() -> None:
    lines = [transition(number) for number in range(50)]
    lines += [transition(50, failed=True, episode_return=None, reward=-9.0, answer="none")]
    lines += [transition(51, failed=True, episode_return=None, score=None, reward=0.0)]
    found, whole = digest_of(lines), digest_of(lines[:50])
    assert (found.failed, found.transitions) == (2, 52)
    assert found.cells == whole.cells
    assert found.worst == whole.worst
    assert found.updates[1].returns == whole.updates[1].returns


@pytest.mark.parametrize(
    ("before", "after"), [("a  b\nc d", "x b\nc  d\nAnswer:"), (".,;!" * 290, ".,;!" * 280 + "end")]
)
def test_marks_keep_all_words_of_both_texts(before: str, after: str) -> None:
    for text, markup in zip((before, after), marked(before, after), strict=True):
        assert re.sub(r"<[^>]+>", "", markup) == text


def test_seeds_are_one_line_with_an_interval_and_settings_are_compared(tmp_path: Path) -> None:
    runs = []
    for settings in ({"lr": 0.01}, {"lr": 0.1}):
        for repetition, seed in enumerate((1, 2, 3, 4, 5, 5)):
            shifted = [transition(number + 7 * seed) for number in range(400)]
            path = tmp_path / f"lr{settings['lr']}-{repetition}"
            runs.append(write_run(path, shifted, seed=seed, settings=settings))
    found = together([read(load_run(run)) for run in runs])
    assert [len(group.seeds) for group in found] == [5, 5]
    figure = curves(found, heldout=False)
    assert figure is not None
    for line in figure.lines:
        assert "lr" in line.name
        assert len(line.each) == 5
        rows = np.array([y for _, y in line.each])
        assert np.allclose(line.y, rows.mean(0))
        half = 2.776445 * rows.std(0, ddof=1) / np.sqrt(5)
        assert line.high is not None
        assert np.allclose(line.high - line.y, half)
    page = Parsed(write_report(runs, tmp_path / "page.html"))
    assert "12 runs compared" in page.text
    assert all(run.name in page.text for run in runs)


def test_more_operators_than_colours_are_joined() -> None:
    shares = {f"operator {number}": np.full(3, 1 / 20) for number in range(20)}
    figure = stacked("key", "says", "share", np.arange(3.0), shares)
    assert len(figure.layers) == 8
    assert figure.layers[-1][0] == "13 others"
    assert np.allclose(np.sum([layer for _, layer in figure.layers], axis=0), 1)


def group(name: str, *seeds: list[float], step: int = 10) -> Seeds:
    """Runs that held out these scores, one list for each seed, a point every so many steps."""
    found = []
    for number, values in enumerate(seeds):
        steps = step * np.arange(1, len(values) + 1)
        times = steps.astype(np.float64)
        curve = Curve(steps, np.array(values), times, times)
        run = Run(f"{name}-{number}", Path(name), {HELDOUT: curve})
        found.append([Material(run, digest([]))])
    return Seeds(name, found)


def heldout_curves(*groups: Seeds) -> Curves:
    figure = curves(groups, heldout=True)
    assert figure is not None
    return figure


HIGH = [[0.5, 0.80], [0.5, 0.82], [0.5, 0.84], [0.5, 0.82], [0.5, 0.81]]
LOW = [[0.5, 0.20], [0.5, 0.22], [0.5, 0.24], [0.5, 0.22], [0.5, 0.21]]


def test_a_group_is_said_to_be_ahead_only_where_intervals_over_seeds_part() -> None:
    parted = heldout_curves(group("low", *LOW), group("high", *HIGH))
    assert parted.says == "high is ahead on held-out questions: +0.818 at step 20"
    unclear = "No clear difference on held-out questions at step 20"
    assert heldout_curves(group("low", *LOW), group("same", *LOW)).says == unclear
    assert heldout_curves(group("low", *LOW[:4]), group("high", *HIGH)).says == unclear
    assert heldout_curves(group("one", LOW[0]), group("other", HIGH[0])).says == unclear
    assert heldout_curves(group("one", LOW[0]), group("high", *HIGH)).says == unclear


def test_runs_of_different_length_are_compared_at_the_last_step_of_the_shortest() -> None:
    short = group("short", *([0.48 + number / 100] for number in range(5)))
    figure = heldout_curves(short, group("long", *HIGH))
    assert figure.says == "No clear difference on held-out questions at step 10"
    late = group("late", *HIGH, step=20)  # it has no point by the last step of the other
    early = group("early", *([0.1] for _ in range(5)))
    says = "Not measured on held-out questions at a common step"
    assert heldout_curves(early, late).says == says


def test_lines_without_a_colour_are_counted_and_the_highest_are_drawn() -> None:
    groups = [group(f"g{number}", [0.1, 0.1 * number]) for number in range(11)]
    figure = heldout_curves(*groups)
    assert [line.name for line in figure.lines] == [f"g{number}" for number in range(3, 11)]
    assert "Drawn are the 8 highest at step 20; 3 more are left out." in curves_note(figure)
    assert "left out" not in curves_note(heldout_curves(*groups[:8]))


def test_a_point_of_one_episode_has_no_interval() -> None:
    lines = [transition(number, update=number + 1) for number in range(3)]
    figure = learning(Material(Run("run", Path("run"), {}), digest_of(lines)))
    assert figure is not None
    assert [row[-1] for row in figure.table()[1]] == ["", "", ""]
    assert "nan" not in draw(figure)


def test_a_category_may_be_called_all() -> None:
    lines = [transition(number, category="all", operator="all") for number in range(20)]
    lines += [transition(number, category="food", operator="qa") for number in range(20)]
    figure = heat_map(digest_of(lines))
    assert figure is not None
    assert figure.categories == ["all", "food"]
    counts = {key: cell.count for key, cell in figure.cells.items()}
    assert counts[ALL, ALL] == 40
    assert counts["all", "all"] == counts["all", ALL] == counts[ALL, "all"] == 20


def test_a_cell_of_few_uses_is_pale_however_large_its_gain() -> None:
    rare, often, bad = Cell(1, 1.0, 1, 0), Cell(50, 0.2, 10, 0), Cell(50, -0.1, 0, 5)
    cells = {("a", "x"): rare, ("b", "x"): often, ("b", "y"): bad}
    figure = HeatMap("heatmap", "says", ["a", "b"], ["x", "y"], cells)  # type: ignore[arg-type]
    assert figure.shade(rare) == 1
    assert figure.shade(often) == SHADES
    assert -SHADES < figure.shade(bad) < 0


def colours_of(picture: Path) -> set[str]:
    pixels = (image.imread(picture)[..., :3] * 255).round().astype(int).reshape(-1, 3)
    return {"#{:02x}{:02x}{:02x}".format(*pixel) for pixel in np.unique(pixels, axis=0)}


def test_pictures_have_the_colours_of_the_page(tmp_path: Path) -> None:
    cells = {("a", "x"): Cell(1, 1.0, 1, 0), ("b", "x"): Cell(50, 0.2, 10, 0)}
    figure = HeatMap("heatmap", "says", ["a", "b"], ["x"], cells)  # type: ignore[arg-type]
    draw_png(figure, tmp_path / "heat.png")
    assert {colour("up-1"), colour("up-5")} <= colours_of(tmp_path / "heat.png")
    rows = [Interval("a", 0.3, 0.2, 0.4), Interval("b", 0.1, -0.1, 0.3)]
    draw_png(Forest("leads", "says", ("a",), rows), tmp_path / "forest.png")
    assert {colour("good"), colour("soft")} <= colours_of(tmp_path / "forest.png")
    assert colour("bad") not in colours_of(tmp_path / "forest.png")


def test_no_two_runs_are_drawn_into_the_same_file(tmp_path: Path) -> None:
    names = ["lr=0.1/a", "lr=0.1 a", "économie", "x" * 300]
    lines = [transition(number) for number in range(40)]
    materials = [Material(Run(name, Path(name), {}), digest_of(lines)) for name in names]
    files = draw_all(materials, tmp_path)
    assert len(set(files)) == len(files) == 1 + 4 * len(names)
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in files}
    assert (tmp_path / "3-économie-learning.png").exists()
