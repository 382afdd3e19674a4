"""The report: true figures, nothing active, and right in a real browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from experiments.__main__ import main as experiments
from experiments.report import write_report
from experiments.report.digest import ALL, digest
from experiments.report.figures import stacked
from experiments.report.findings import heat_map, operators_used, read, scores, time_spent
from experiments.report.several import curves, together
from experiments.report.words import marked
from experiments.runs import load_run
from model_client.client import CallCounts
from servers.simulated import SimulatedServer, answer_from_questions
from tests.browser import CHROMIUM, Browser, browser
from tests.report_runs import (
    HOSTILE,
    STEPS_IN_UPDATE,
    evaluation_of,
    hostile_transition,
    transition,
    write_run,
)
from tests.test_training import train
from training.time_spent import time_metrics

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here: the report was not looked at in a browser"
)
PLOTS = {"learning", "operators", "heatmap", "scores", "time"}
TAGS = {
    "html", "head", "meta", "title", "link", "style", "body", "a", "header", "main", "footer",
    "nav", "ul", "li", "section", "div", "span", "p", "h1", "h2", "h3", "h4", "dl", "dt", "dd",
    "small", "b", "details", "summary", "table", "caption", "thead", "tbody", "tfoot", "tr", "th",
    "td", "pre", "code", "article", "ins", "del", "svg", "g", "path", "rect", "line", "circle",
    "text", "desc",
}  # fmt: skip


@pytest.fixture(scope="module")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run that trained and was evaluated, against a simulated server."""
    run = tmp_path_factory.mktemp("real") / "run"
    answer = answer_from_questions("data/questions.jsonl")
    with SimulatedServer(slots=8, answer=answer) as server:
        few = ["--eval-questions", "8", "--eval-interval", "1", "--eval-sample", "4"]
        few += ["--num-questions", "6", "--only-operators", "qa,tidy,rephrase"]
        assert train(server, run, "--use-report", "--use-eval", *few) == 0
    return run


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = [transition(number) for number in range(10_000)]
    return write_run(tmp_path_factory.mktemp("long") / "run", lines)


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = [transition(number) for number in range(100)]
    lines += [hostile_transition(number) for number in range(100)]
    lines += [hostile_transition(number) | {"answer": HOSTILE[8], "reward": 3} for number in (2, 4)]
    settings = {"<script>document.title='hacked'</script>": HOSTILE[5], "objective": HOSTILE[1]}
    path = tmp_path_factory.mktemp("hostile") / "<img src=x onerror=alert(1)>"
    return write_run(path, lines, settings=settings, evaluation=evaluation_of(HOSTILE[0]))


@pytest.fixture(scope="module")
def pages(
    real_run: Path, long_run: Path, hostile_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {
        "real": write_report([real_run], folder / "real.html"),
        "long": write_report([long_run], folder / "long.html"),
        "hostile": write_report([hostile_run], folder / "hostile.html"),
        "several": write_report([long_run, hostile_run, real_run], folder / "several.html"),
    }


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


class Parsed(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.comments: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_training_ends_with_a_report(real_run: Path) -> None:
    page = Parsed(real_run / "report.html")
    sections = {section["id"] for section in page.of("section")}
    assert sections >= {"learning", "evaluation", "operators", "heatmap", "scores", "settings"}
    verdict = json.loads((real_run / "evaluation" / "evaluation.json").read_text())["verdict"]
    assert verdict["sentence"] in page.text
    assert f"python train_query_mutator.py --config {real_run}/config.json" in page.text


def test_the_command_writes_the_page_and_the_pictures(
    long_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, pictures = tmp_path / "deep" / "page.html", tmp_path / "pictures"
    assert experiments(["report", str(long_run), "-o", str(page), "--png", str(pictures)]) == 0
    assert capsys.readouterr().out == f"report: {page}\n"
    assert page.stat().st_size < 5_000_000
    drawn = {picture.stem for picture in pictures.iterdir()}
    assert drawn == {f"run-{plot}" for plot in PLOTS}
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in pictures.iterdir())


def test_what_cannot_be_reported_is_said_in_a_line(
    hostile_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert experiments(["report", str(tmp_path / "nothing")]) == 2
    file = tmp_path / "file"
    file.write_text("")
    assert experiments(["report", str(hostile_run), "-o", str(file / "page.html")]) == 2
    assert experiments(["report", str(hostile_run), "-o", str(tmp_path)]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 3
    assert all(line.startswith("error: ") for line in said)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_the_figures_are_those_of_the_transitions(long_run: Path) -> None:
    lines = [transition(number) for number in range(10_000)]
    found = read(load_run(long_run))
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
    assert chosen.says.startswith("The policy came to prefer step_by_step: from ")
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


def test_the_seconds_of_slots_are_parted_without_rest() -> None:
    before = CallCounts(seconds={"answer": 5.0})
    collected = CallCounts(seconds={"answer": 25.0, "mutation": 8.0})
    learned = CallCounts(seconds={"answer": 26.0, "mutation": 8.0})
    found = time_metrics(
        before, collected, learned, slots=4, collect_s=10.0, embed_s=2.5, learn_s=2.0
    )
    assert found == {
        "Time/target": 21.0,
        "Time/mutation": 8.0,
        "Time/learning": 7.0,
        "Time/embedding": 3.0,
        "Time/idle": 9.0,
    }
    assert sum(found.values()) == 4 * 12.0
    full = time_metrics(
        before, collected, learned, slots=1, collect_s=10.0, embed_s=2.5, learn_s=0.5
    )
    assert full["Time/idle"] == full["Time/embedding"] == full["Time/learning"] == 0


def test_failed_steps_are_counted_and_left_out() -> None:
    lines = [transition(number) for number in range(50)]
    lines += [transition(50, failed=True, episode_return=None, reward=-9.0, answer="none")]
    lines += [transition(51, failed=True, episode_return=None, score=None, reward=None)]
    found, whole = digest(lines), digest(lines[:50])
    assert (found.failed, found.transitions) == (2, 52)
    assert found.cells == whole.cells
    assert found.worst == whole.worst
    assert found.updates[1].returns == whole.updates[1].returns


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


def test_marks_keep_all_words_of_both_texts() -> None:
    before, after = "a  b\nc d", "x b\nc  d\nAnswer:"
    for text, markup in zip((before, after), marked(before, after), strict=True):
        assert re.sub(r"<[^>]+>", "", markup) == text


def test_seeds_are_one_line_with_an_interval_and_settings_are_compared(tmp_path: Path) -> None:
    runs = []
    for settings in ({"lr": 0.01}, {"lr": 0.1}):
        for seed in (1, 2, 3):
            shifted = [transition(number + 7 * seed) for number in range(400)]
            path = tmp_path / f"lr{settings['lr']}-seed{seed}"
            runs.append(write_run(path, shifted, seed=seed, settings=settings))
    found = together([read(load_run(run)) for run in runs])
    assert [len(group.runs) for group in found] == [3, 3]
    figure = curves(found, heldout=False)
    assert figure is not None
    for line in figure.lines:
        assert "lr" in line.name
        assert len(line.each) == 3
        rows = np.array([y for _, y in line.each])
        assert np.allclose(line.y, rows.mean(0))
        half = 4.302653 * rows.std(0, ddof=1) / np.sqrt(3)
        assert line.high is not None
        assert np.allclose(line.high - line.y, half)
    page = Parsed(write_report(runs, tmp_path / "page.html"))
    assert "6 runs compared" in page.text
    assert all(run.name in page.text for run in runs)


def test_more_operators_than_colours_are_joined() -> None:
    shares = {f"operator {number}": np.full(3, 1 / 20) for number in range(20)}
    figure = stacked("key", "says", "share", np.arange(3.0), shares)
    assert len(figure.layers) == 8
    assert figure.layers[-1][0] == "13 others"
    assert np.allclose(np.sum([layer for _, layer in figure.layers], axis=0), 1)


@pytest.mark.parametrize("kind", ["real", "long", "hostile", "several"])
def test_nothing_in_the_page_can_act(pages: dict[str, Path], kind: str) -> None:
    page, text = Parsed(pages[kind]), pages[kind].read_text(encoding="utf-8")
    assert {tag for tag, _ in page.elements} <= TAGS
    assert not page.comments
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes), attributes
        assert not {"style", "src", "srcdoc", "xlink:href", "action"} & set(attributes)
        if tag != "link":
            assert attributes.get("href", "#").startswith("#")  # type: ignore[union-attr]
    policy = page.of("meta")[1]["content"]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest_of_style = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest_of_style}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in style
    assert "@import" not in style
    categories = {unicodedata.category(character) for character in set(text) - {"\n"}}
    assert not categories & {"Cc", "Cf", "Cs", "Co"}
    assert "secret" not in text
    assert len(text) < 5_000_000


def test_hostile_text_is_shown_as_text_and_bounded(pages: dict[str, Path]) -> None:
    page = Parsed(pages["hostile"])
    for attack in (HOSTILE[0], HOSTILE[1], "{{7*7}}", "&lt;script&gt;"):
        assert attack in page.text
    assert "[31mred[0m" in page.text
    assert "W" * 1000 in page.text
    assert "W" * 1300 not in page.text


@pytest.mark.parametrize("kind", ["real", "hostile", "several"])
def test_tables_and_pictures_can_be_read_aloud(pages: dict[str, Path], kind: str) -> None:
    page = Parsed(pages[kind])
    tables = page.of("table")
    assert len(page.of("caption")) == len(tables)
    assert all(cell.get("scope") in ("col", "row") for cell in page.of("th"))
    for picture in page.of("svg"):
        assert picture.get("aria-hidden") == "true" or picture.get("aria-label")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    targets = {str(link["href"])[1:] for link in page.of("a")}
    assert targets <= set(ids)
    for box in page.of("div"):
        if box.get("class") == "scroll":
            assert box["tabindex"] == "0"
            assert box["aria-label"]


MEASURE = """[...document.querySelectorAll('[data-plot]')].map(plot => {
  const pictures = plot.matches('.plot') ? [...plot.children] : [plot];
  const shown = pictures.map(one => [one.getBoundingClientRect(), one])
    .filter(([box]) => box.width > 0 && box.height > 0);
  return [plot.dataset.plot, shown.map(([box, one]) =>
    [box.width, box.height, one.viewBox ? box.width / one.viewBox.baseVal.width : 1])];
})"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1600])
@pytest.mark.parametrize("kind", ["real", "hostile", "several"])
def test_a_real_browser_shows_all_of_it_and_complains_of_nothing(
    pages: dict[str, Path], chromium: Browser, kind: str, width: int, dark: bool
) -> None:
    chromium.open(pages[kind], width=width, dark=dark)
    title = chromium.evaluate("document.title")
    chromium.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert chromium.evaluate(OVERFLOW) <= 0
    found = chromium.evaluate(MEASURE)
    assert {name for name, _ in found} >= PLOTS
    for name, shown in found:
        assert len(shown) == 1, f"{name}: one of the sizes is to be seen"
        (box_width, box_height, scale), *_ = shown
        assert box_width > 200
        assert box_height > 100
        assert 12 * scale > 9, f"the text of {name} is too small to read"
    background = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) < 200) == dark
    assert chromium.evaluate("document.title") == title != "hacked"
    assert chromium.problems() == []


@needs_chromium
def test_the_browser_would_have_told(tmp_path: Path, chromium: Browser) -> None:
    """The checks above fail where they should: the page's policy stops a script, and says so."""
    page = tmp_path / "page.html"
    policy = "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">"
    page.write_text(f"{policy}<script>document.title='hacked'</script><p style='width:99em'>x")
    chromium.open(page, width=360, dark=False)
    assert any("Content Security Policy" in problem for problem in chromium.problems())
    assert chromium.evaluate("document.title") != "hacked"
    page.write_text("<p style='width:99em'>x<script>console.error('x')</script>")
    chromium.open(page, width=360, dark=False)
    assert chromium.evaluate(OVERFLOW) > 0
    assert chromium.problems()


@needs_chromium
def test_the_keyboard_reaches_the_skip_link_first(
    pages: dict[str, Path], chromium: Browser
) -> None:
    chromium.open(pages["real"], width=1600, dark=False)
    for kind in ("rawKeyDown", "keyUp"):
        chromium.call("Input.dispatchKeyEvent", type=kind, key="Tab", windowsVirtualKeyCode=9)
    focused = "document.activeElement.getBoundingClientRect()"
    assert chromium.evaluate("document.activeElement.className") == "skip"
    assert chromium.evaluate(f"{focused}.top") >= 0
