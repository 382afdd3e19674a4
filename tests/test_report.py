"""The report: nothing active in its page, and right in a real browser, on a phone and on paper."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from query_mutator.cli import main as experiments
from query_mutator.data.loading import DEFAULT_FILE
from query_mutator.reports.html import refresh_report, report_finished, write_report
from query_mutator.servers.simulated import SimulatedServer, answer_from_questions
from tests.browser import CHROMIUM, Browser, Parsed, browser
from tests.report_runs import (
    HOSTILE,
    evaluation_of,
    hostile_transition,
    transition,
    write_evaluation,
    write_run,
)
from tests.test_training import train
from tests.written_runs import write_events

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here: the report was not looked at in a browser"
)
PLOTS = {"learning", "operators", "heatmap", "scores", "time"}
TAGS = {
    "html", "head", "meta", "title", "link", "style", "body", "a", "header", "main", "footer",
    "nav", "ul", "li", "section", "div", "span", "p", "h1", "h2", "h3", "h4", "dl", "dt", "dd",
    "small", "b", "details", "summary", "table", "caption", "thead", "tbody", "tfoot", "tr", "th",
    "td", "pre", "code", "article", "ins", "del", "svg", "g", "path", "rect", "line", "circle",
    "text", "desc", "wbr",
}  # fmt: skip


@pytest.fixture(scope="module")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run that trained and was evaluated, against a simulated server."""
    run = tmp_path_factory.mktemp("real") / "run"
    answer = answer_from_questions(DEFAULT_FILE)
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
    seeds = []
    for port, seed in itertools.product((1, 2), (1, 2)):
        settings = {"server": [f"http://me:secret@host:{port}"]}
        lines = [transition(number + 7 * seed) for number in range(300)]
        seeds.append(write_run(folder / f"{port}-{seed}", lines, seed=seed, settings=settings))
    return {
        "real": write_report([real_run], folder / "real.html"),
        "long": write_report([long_run], folder / "long.html"),
        "hostile": write_report([hostile_run], folder / "hostile.html"),
        "several": write_report([long_run, hostile_run, real_run], folder / "several.html"),
        "seeds": write_report(seeds, folder / "seeds.html"),
    }


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


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
    assert "Each point is 2 updates" in Parsed(page).text


def test_what_cannot_be_reported_is_said_in_a_line(
    hostile_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert experiments(["report", str(tmp_path / "nothing")]) == 2
    (tmp_path / "file").write_text("")
    outputs = [str(tmp_path / "file" / "page.html"), str(tmp_path), "", "/"]
    for output in outputs:
        assert experiments(["report", str(hostile_run), "-o", output]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 + len(outputs)
    assert all(line.startswith("error: ") for line in said)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_runs_of_other_programs_are_left_out_with_a_warning(
    hostile_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "foreign"
    write_events(foreign, [("train/loss", 1, 0.5, 1.0)])
    page = tmp_path / "page.html"
    assert experiments(["report", str(foreign), str(hostile_run), "-o", str(page)]) == 0
    assert f"{foreign} is left out" in capsys.readouterr().err
    assert "foreign" not in Parsed(page).text
    assert experiments(["report", str(foreign), "-o", str(tmp_path / "other.html")]) == 2
    assert "report needs a run of `python train_query_mutator.py`" in capsys.readouterr().err


def test_a_line_that_is_still_being_written_is_not_counted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [transition(number) for number in range(120)])
    log = run / "transitions.jsonl"
    log.write_bytes(log.read_bytes()[:-40])
    assert "environment steps119" in Parsed(write_report([run], tmp_path / "page.html")).text


def test_an_evaluation_brings_the_report_up_to_date(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [transition(number) for number in range(200)])
    refresh_report(run)
    assert not (run / "report.html").exists()
    report_finished(run)
    assert "has not been evaluated" in Parsed(run / "report.html").text
    write_evaluation(run, evaluation_of("more than ever") | {"env_steps": 200})
    refresh_report(run)
    page = Parsed(run / "report.html")
    assert "The policy helps: more than ever" in page.text
    assert "valuated after" not in page.text


def test_facts_wording_and_the_gap_between_twins_are_shown(tmp_path: Path) -> None:
    lines = [transition(number) for number in range(200)]
    run = write_run(tmp_path / "run", lines, evaluation=evaluation_of("tidy"))
    page = Parsed(write_report([run], tmp_path / "page.html"))
    assert "What the policy changes in facts and in wording" in page.text
    assert "Asked clearly, 30 questions score +0.250 higher than as people type them" in page.text
    assert "tidy (mutator model)" in page.text
    assert "48 %" in page.text
    assert "What is gained over the question unchanged, on 20 messy questions" in page.text
    assert "What is gained over the question unchanged, on 20 clear questions" in page.text
    assert page.text.count("by tidy") == 2, "a contender, among the leads and the gains by style"


@pytest.mark.parametrize(
    "gap",
    [
        *("all", [], {}, {"sides": 7}, {"sides": {"score": []}}),
        {"sides": {"score": {"gap": "wide"}}},
        {"sides": {"score": {}}, "closers": [{"closes": {"score": 7}}, {"closes": 7}, {}]},
        [
            {"style": "clear", "ways": 7},
            {"style": "messy", "ways": {"tidy": 7, "qa": {"score": 7}}},
        ],
    ],
)
def test_a_gap_that_is_none_disturbs_nothing(tmp_path: Path, gap: object) -> None:
    lines = [transition(number) for number in range(20)]
    evaluation = evaluation_of("tidy") | {"gap": gap, "apart": gap, "styles": gap}
    evaluation |= {"contenders": gap}
    run = write_run(tmp_path / "run", lines, evaluation=evaluation)
    assert "The policy helps" in Parsed(write_report([run], tmp_path / "page.html")).text


def test_a_verdict_on_an_earlier_policy_is_told_as_such(tmp_path: Path) -> None:
    lines = [transition(number) for number in range(1200)]
    evaluation = evaluation_of("then") | {"env_steps": 1000}
    run = write_run(tmp_path / "run", lines, evaluation=evaluation)
    page = Parsed(write_report([run], tmp_path / "page.html"))
    assert "Evaluated after 1,000 steps: the policy helps" in page.text
    other = write_run(tmp_path / "other", lines)
    beside = Parsed(write_report([run, other], tmp_path / "both.html"))
    assert "+0.120 [+0.050, +0.190] after 1,000 steps" in beside.text


def test_a_report_that_fails_takes_nothing_from_a_finished_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> str:
        raise KeyError("no such colour")

    monkeypatch.setattr("query_mutator.reports.html.page.page", broken)
    run = write_run(tmp_path / "run", [transition(number) for number in range(100)])
    report_finished(run)
    said = capsys.readouterr().out
    assert said.startswith("no report: KeyError: 'no such colour'; query-mutator report ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("kind", ["real", "long", "hostile", "several", "seeds"])
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
    assert kind == "real" or "http://…@host:1" in page.text
    assert len(text) < 5_000_000


def test_hostile_text_is_shown_as_text_and_bounded(pages: dict[str, Path]) -> None:
    page = Parsed(pages["hostile"])
    for attack in (HOSTILE[0], HOSTILE[1], "{{7*7}}", "&lt;script&gt;"):
        assert attack in page.text
    assert "[31mred[0m" in page.text
    assert "W" * 1000 in page.text
    assert "W" * 1300 not in page.text


@pytest.mark.parametrize("kind", ["real", "hostile", "several", "seeds"])
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
@pytest.mark.parametrize("kind", ["real", "hostile", "several", "seeds"])
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


HIDDEN_NUMBERS = """[...document.querySelectorAll('[data-plot=leads] tbody tr')].filter(row =>
  row.children[1].getBoundingClientRect().right >
  row.closest('.scroll').getBoundingClientRect().right)"""
BROKEN_NAMES = """[...document.querySelectorAll('.heat tbody th span')].map(span => {
  const text = document.createRange();
  text.selectNodeContents(span);
  return [span.textContent, text.getClientRects().length];
}).filter(([name, lines]) => /^[a-z]+$/.test(name) && lines > 1)"""


@needs_chromium
def test_a_phone_shows_the_numbers_and_whole_words(
    pages: dict[str, Path], chromium: Browser
) -> None:
    chromium.open(pages["real"], width=360, dark=False)
    assert chromium.evaluate("document.querySelectorAll('[data-plot=leads] tbody tr').length") > 2
    assert chromium.evaluate(f"{HIDDEN_NUMBERS}.length") == 0
    assert chromium.evaluate("document.querySelectorAll('.heat tbody th span').length") > 2
    assert chromium.evaluate(BROKEN_NAMES) == []


A4 = 718
"""The width of a page in CSS pixels, margins of a centimetre aside."""
UNSEEN = """[...document.querySelectorAll('main .card, details.run > summary')].filter(one =>
  !one.checkVisibility({contentVisibilityAuto: true}) || !one.getBoundingClientRect().height)
  .map(one => one.id || one.textContent)"""
CUT_OFF = """[...document.querySelectorAll('table')].filter(table =>
  table.checkVisibility() && table.getBoundingClientRect().right > innerWidth)
  .map(table => table.caption.textContent)"""


@needs_chromium
@pytest.mark.parametrize("kind", ["real", "hostile", "several", "seeds"])
def test_all_of_it_can_be_printed(pages: dict[str, Path], chromium: Browser, kind: str) -> None:
    chromium.open(pages[kind], width=A4, dark=True, media="print")
    assert chromium.evaluate("document.querySelectorAll('main .card').length") > 5
    assert chromium.evaluate(UNSEEN) == []
    assert chromium.evaluate(CUT_OFF) == []
    paper = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"


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
