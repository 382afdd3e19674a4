"""Puzzle streams: over a real socket, with all that can go wrong on it, and without any."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batching.generation.tokenizers import ByteTokenizer
from batching.streaming import (
    GymConfig,
    GymEpisode,
    GymEpisodeStream,
    GymObservation,
    MockGymStream,
    SampleStream,
    StreamSample,
    follow_hints,
)
from batching.streaming.puzzle_games import GAMES, SIZES, Conversation
from batching.streaming.puzzle_server import PROPOSAL, PuzzleFault, PuzzleServer
from batching.streaming.telnet import (
    DO,
    DONT,
    IAC,
    SB,
    SE,
    WILL,
    WONT,
    ConnectionFailedError,
    TelnetConnection,
    TelnetFilter,
)
from query_mutator.base.errors import UserError
from tests.nightly import examples
from tests.test_loopback import LOOPBACK, listening

BYTES = ByteTokenizer()
QUICK: dict[str, Any] = {"answer_timeout_s": 1.0, "ask_hints": True}
"""For servers that never answer; those that do answer at once."""
PIECES = st.lists(
    st.one_of(
        st.binary(max_size=5).map(lambda text: (text.replace(b"\xff", b"\xff\xff"), text, b"")),
        st.tuples(st.sampled_from([DO, DONT, WILL, WONT]), st.integers(0, 254)).map(
            lambda command: (bytes([IAC, *command]), b"", bytes(command))
        ),
        st.lists(st.sampled_from([0, 65, SE, IAC]), max_size=4)
        .map(bytes)
        .map(
            lambda inner: (
                bytes([IAC, SB]) + inner.replace(b"\xff", b"\xff\xff") + bytes([IAC, SE]),
                b"",
                b"",
            )
        ),
        st.sampled_from([241, 246, 249]).map(lambda other: (bytes([IAC, other]), b"", b"")),
    ),
    max_size=8,
)


@given(PIECES, st.lists(st.integers(0, 60), max_size=10))
@examples(200)
def test_telnet_commands_are_taken_out_and_refused_wherever_reads_split_them(
    pieces: list[tuple[bytes, bytes, bytes]], cuts: list[int]
) -> None:
    sent = b"".join(raw for raw, _, _ in pieces)
    places = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    telnet = TelnetFilter()
    results = [telnet.feed(sent[start:end]) for start, end in pairwise(places)]
    assert b"".join(text for text, _ in results) == b"".join(text for _, text, _ in pieces)
    proposed = dict.fromkeys(command for _, _, command in pieces if command)
    refusals = {DO: WONT, WILL: DONT}
    expected = [
        bytes([IAC, refusals[verb], option]) for verb, option in proposed if verb in refusals
    ]
    assert b"".join(back for _, back in results) == b"".join(expected)


def play(
    server: PuzzleServer | None = None, policy: Any = follow_hints, **options: Any
) -> tuple[GymEpisodeStream, list[GymEpisode], list[StreamSample]]:
    """Plays until the stream ends: the stream, its episodes and its samples."""
    episodes: list[GymEpisode] = []
    config = GymConfig(**{"ask_hints": True, "port": server.port if server else 8023, **options})
    stream: GymEpisodeStream
    if server is None:
        stream = MockGymStream(config, policy, tokenizer=BYTES, on_episode=episodes.append)
    else:
        stream = GymEpisodeStream(config, policy, BYTES, on_episode=episodes.append)
    return stream, episodes, list(stream)


def text_of(sample: StreamSample, loss: int) -> str:
    chosen = [token for token, mask in zip(sample.input_ids, sample.loss_mask, strict=True)
              if mask == loss and token < 256]  # fmt: skip
    return bytes(chosen).decode()


def test_a_puzzle_played_over_a_socket_becomes_samples() -> None:
    with PuzzleServer() as server:
        stream, episodes, samples = play(server, episodes=2, difficulty="medium")
    assert isinstance(stream, SampleStream)
    assert [episode.solved for episode in episodes] == [True, True]
    assert [episode.episode_id for episode in episodes] == ["lights-medium-42", "lights-medium-43"]
    assert len(samples) == sum(len(episode.steps) for episode in episodes)
    for episode in episodes:
        own = [sample for sample in samples if sample.episode_id == episode.episode_id]
        assert [sample.step_index for sample in own] == list(range(len(own)))
        assert [sample.reward for sample in own] == [0.0] * (len(own) - 1) + [1.0]
        for sample, step in zip(own, episode.steps, strict=True):
            assert (sample.source, sample.success, sample.difficulty) == ("gym", True, 0.5)
            assert text_of(sample, loss=0) == step.observation.text + "\n"
            assert text_of(sample, loss=1) == step.move == step.observation.hint
            assert sample.input_ids[-1] == BYTES.eos_id
    assert (stream.metrics.episodes, stream.metrics.solved_episodes) == (2, 2)
    assert stream.metrics.samples == len(samples)
    refusal = bytes([IAC, WONT, 24, IAC, DONT, 1])
    assert b"".join(server.received).count(refusal) == 2, "once in each connection"


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("difficulty", SIZES)
def test_the_mock_plays_the_same_puzzles_as_the_server(game: str, difficulty: str) -> None:
    options: dict[str, Any] = {"game": game, "difficulty": difficulty, "episodes": 3, "seed": 5}
    _, _, mocked = play(**options)
    with PuzzleServer() as server:
        _, _, served = play(server, **options)
    assert [(s.input_ids, s.reward) for s in mocked] == [(s.input_ids, s.reward) for s in served]
    assert all(sample.success for sample in mocked)
    assert {sample.source for sample in mocked} == {"mock-gym"}
    _, _, others = play(**{**options, "seed": 6})
    assert [s.input_ids for s in others] != [s.input_ids for s in mocked]


def test_a_series_can_be_taken_up_at_any_episode() -> None:
    _, _, whole = play(episodes=4)
    _, _, rest = play(episodes=4, first_episode=2)
    assert rest == [sample for sample in whole if sample.episode_id >= "lights-easy-44"]
    assert rest


def test_a_policy_may_be_wrong_give_up_or_never_come_to_an_end() -> None:
    wrong = iter(["press 9 9", "what?", "", "quit", "solve", "mode normal", "press 1 1\nquit"])
    stream, (episode,), samples = play(policy=lambda seen: next(wrong, None))
    assert [step.accepted for step in episode.steps] == [False] * 7
    assert {sample.reward for sample in samples} == {-0.1}
    assert not episode.solved
    assert not episode.failed
    assert stream.metrics.success_rate == 0.0

    words = iter(["hint", "Show", "order easy 3", "lights easy 1", "LIGHTS"])
    _, (stayed,), _ = play(policy=lambda _: next(words, None))
    assert [step.accepted for step in stayed.steps] == [False] * 5
    assert len({step.observation.text for step in stayed.steps}) == 1
    assert not stayed.failed

    _, (endless,), _ = play(policy=lambda _: "press 1 1", most_moves=6)
    assert len(endless.steps) == 6
    assert not endless.solved

    _, (nothing,), none = play(policy=lambda _: None)
    assert nothing.steps == ()
    assert none == []


def test_a_policy_sees_the_board_and_what_was_said_to_its_last_move() -> None:
    seen: list[GymObservation] = []

    def watch(observation: GymObservation) -> str:
        seen.append(observation)
        return "press 9 9" if len(seen) == 1 else observation.hint

    with PuzzleServer() as server:
        play(server, watch, ask_hints=True)
    assert [observation.step_index for observation in seen] == list(range(len(seen)))
    assert seen[1].message == "numbers go from 1 to 3"
    assert seen[2].message.startswith("pressed")
    assert seen[0].text == seen[1].text != seen[2].text
    assert seen[0].text.splitlines()[0].startswith("Turn all lights")
    assert (seen[0].seed, seen[0].state["invalid_moves"], seen[1].state["invalid_moves"]) == (
        42, 0, 1,
    )  # fmt: skip


def test_every_byte_by_itself_is_understood() -> None:
    with PuzzleServer() as server:
        _, _, expected = play(server, episodes=2)
    with PuzzleServer(fault=PuzzleFault("drip")) as server:
        _, _, samples = play(server, episodes=2)
    assert samples == expected


@pytest.mark.parametrize("after", [0, 3, 9])
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("silent", "gave no answer within 1 s"),
        ("drop", "closed the connection"),
        ("reset", r"broke: |closed the connection"),
        ("overlong", "a line of more than 65,536 bytes"),
        ("bad_json", "sent bad JSON"),
        ("endless", "more than 5,000 lines"),
    ],
)
def test_an_episode_that_breaks_off_is_marked_counted_and_told(
    kind: str, told: str, after: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with PuzzleServer(fault=PuzzleFault(kind, after=after, times=1)) as server:
        stream, (broken, whole), samples = play(server, episodes=2, difficulty="hard", **QUICK)
    assert broken.failed
    assert not broken.solved
    assert re.search(told, broken.failure), broken.failure
    assert broken.failure in caplog.text
    assert "Traceback" not in caplog.text
    assert whole.solved, "the next one is played"
    assert {sample.episode_id for sample in samples} == {whole.episode_id}
    assert (stream.metrics.failed_episodes, stream.metrics.episodes) == (1, 1)
    assert stream.metrics.dropped["episode failed"] == len(broken.steps)
    assert bool(broken.steps) == (after == 9)


def test_only_failures_in_a_row_end_the_stream() -> None:
    def turn(_: GymEpisode) -> None:
        server.fault = PuzzleFault("drop") if server.fault is None else None

    with PuzzleServer() as server:
        config = GymConfig(port=server.port, episodes=8, most_failures=2, ask_hints=True)
        stream = GymEpisodeStream(config, follow_hints, BYTES, on_episode=turn)
        assert [episode.failed for episode in stream.play()] == [False, True] * 4
        server.fault = PuzzleFault("drop")
        with pytest.raises(UserError, match="2 episodes in a row have failed"):
            list(GymEpisodeStream(config, follow_hints, BYTES))


def test_text_that_would_drive_a_terminal_is_cleaned() -> None:
    seen: list[str] = []

    def watch(observation: GymObservation) -> str:
        seen.append(observation.text)
        return observation.hint

    with PuzzleServer(fault=PuzzleFault("hostile")) as server:
        _, (episode,), samples = play(server, watch)
    assert episode.solved
    for text in [*seen, *(str(sample.meta["prompt"]) for sample in samples)]:
        assert all(line.isprintable() for line in text.splitlines())
    assert seen[0].startswith("[2JTurn all lights")


def test_a_server_that_is_not_there_is_told_in_two_lines() -> None:
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    config = GymConfig(port=port, episodes=9)
    stream = GymEpisodeStream(config, follow_hints, BYTES)
    with pytest.raises(UserError, match=r"3 episodes in a row .* refused") as told:
        list(stream)
    assert f"python -m batching.streaming.puzzle_server --port {port}" in str(told.value)
    assert str(told.value).count("\n") == 1
    assert stream.metrics.failed_episodes == 3


def test_a_game_that_the_server_does_not_have_is_told_in_its_words() -> None:
    with PuzzleServer() as server:
        _, (episode,), _ = play(server, game="chess")
    assert "no game 'chess'" in episode.failure


class ScriptedServer:
    """A server that says what it is told to, whatever it hears, to one client."""

    def __init__(self, answers: Callable[[bytes], list[bytes]]) -> None:
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection, connection.makefile("rb") as lines, contextlib.suppress(OSError):
            for line in lines:
                connection.sendall(b"".join(self._answers(line.strip())))
                if line.strip() == b"quit":
                    return

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(10)
        self._listener.close()


def test_a_server_that_says_less_and_in_another_way_is_understood() -> None:
    """As others do it: a mode only in a game, prompts, prose for what is no command, no push."""
    solved, in_game = False, False

    def answers(line: bytes) -> list[bytes]:
        nonlocal solved, in_game
        if line.endswith(b"sudoku easy 42"):
            in_game = True
            return [b"\r\n=====\r\nSUDOKU\r\n> "]
        if line == b"mode json":
            return [b'> {"type":"mode","mode":"json"}\r\n'] if in_game else [b"Unknown command\r\n"]
        if line == b"show":
            state = b'"seed":42,"is_complete":%s' % (b"true" if solved else b"false")
            return [b'{"type":"observation","grid":[[1,0],[0,2]],' + state + b"}\r\n"]
        if line == b"hint":
            return [b"Hint: Try placing 3 at row 1\r\n"]
        if line == b"place 1 2 3":
            solved = True
            return [b'{"type":"result","success":true,"message":"Number placed"}\r\n']
        return [b"Unknown command 'x'. Type 'help'\r\n"]

    moves = iter(["x", "place 1 2 3"])
    seen: list[GymObservation] = []

    def policy(observation: GymObservation) -> str:
        seen.append(observation)
        return next(moves)

    config: dict[str, Any] = {"game": "sudoku", "ask_hints": True}
    with ScriptedServer(answers) as server:
        stream = GymEpisodeStream(GymConfig(port=server.port, **config), policy, BYTES)
        (episode,) = stream.play()
    assert episode.solved, episode.failure
    assert [step.accepted for step in episode.steps] == [False, True]
    assert [step.reward for step in episode.steps] == [-0.1, 1.0]
    assert seen[0].text == "1 0\n0 2"
    assert seen[0].hint == "Try placing 3 at row 1"
    assert seen[1].message == "Unknown command 'x'. Type 'help'"


@pytest.mark.parametrize("change", [b'"game":"chess","seed":42', b'"game":"go","seed":7'])
def test_an_episode_in_which_another_puzzle_begins_has_failed(change: bytes) -> None:
    shown = b'"game":"go","seed":42'

    def answers(line: bytes) -> list[bytes]:
        nonlocal shown
        if line == b"chess 7":
            shown = change
        if line == b"mode json":
            return [b'{"type":"mode","mode":"json"}\r\n']
        if line == b"show":
            return [b'{"type":"observation","grid":[[1]],' + shown + b"}\r\n"]
        return [b"\r\n"]

    with ScriptedServer(answers) as server:
        config = GymConfig(port=server.port, game="go")
        (episode,) = GymEpisodeStream(config, lambda _: "chess 7", BYTES).play()
    assert episode.failure == "the server shows another puzzle than before"


def test_a_line_that_is_too_long_for_the_server_has_one_answer() -> None:
    with PuzzleServer() as server:
        connection = TelnetConnection("127.0.0.1", server.port)
        connection.send("order easy 7", "mode json", "swap 1 2 " * 2_000, "mode json")
        said = [connection.read_line()]
        while sum('"mode"' in line for line in said) < 2:
            said.append(connection.read_line())
        connection.close()
    after = said[next(index for index, line in enumerate(said) if '"mode"' in line) + 1 :]
    assert len(after) == 2
    assert "usage" in after[0]


def test_a_server_that_drips_for_ever_runs_into_the_deadline_of_its_answer() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            while not ended.wait(0.02):
                connection.sendall(b"x")

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    port = listener.getsockname()[1]
    connection = TelnetConnection("127.0.0.1", port, answer_timeout_s=0.3)
    connection.send("show")
    with pytest.raises(ConnectionFailedError, match=r"no answer within 0\.3 s"):
        connection.read_line()
    connection.close()
    ended.set()
    thread.join()
    listener.close()


def test_a_line_that_never_ends_is_given_up_long_before_its_deadline() -> None:
    with ScriptedServer(lambda line: [b"x" * 200_000] if line == b"show" else []) as server:
        connection = TelnetConnection("127.0.0.1", server.port, answer_timeout_s=5)
        connection.send("show")
        with pytest.raises(ConnectionFailedError, match="a line of more than 65,536 bytes"):
            connection.read_line()
        connection.close()


def test_a_whole_episode_has_a_deadline_however_much_time_its_answers_have() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = TelnetConnection(
            "127.0.0.1", listener.getsockname()[1], answer_timeout_s=60, total_timeout_s=0.2
        )
        connection.send("show")
        with pytest.raises(ConnectionFailedError, match="too long over the whole episode"):
            connection.read_line()
        connection.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 0},
        {"port": 70_000},
        {"game": "two words"},
        {"game": ""},
        {"difficulty": "a\nquit"},
        {"episodes": -1},
        {"answer_timeout_s": 0},
        {"episode_timeout_s": float("nan")},
        {"most_moves": 0},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        GymConfig(**wrong)


@given(st.sampled_from(list(GAMES)), st.sampled_from(list(SIZES)), st.integers(0, 10**6))
@examples(60)
def test_following_the_hints_solves_every_puzzle(game: str, difficulty: str, seed: int) -> None:
    talk = Conversation()
    talk.answer(f"{game} {difficulty} {seed}")
    assert talk.puzzle is not None
    assert not talk.puzzle.is_solved()
    for _ in range(2 * SIZES[difficulty]):
        if not talk.puzzle.is_solved():
            talk.answer(talk.puzzle.hint())
    assert talk.puzzle.is_solved()
    assert talk.puzzle.hint() == ""


def test_people_can_play_it_in_words() -> None:
    with PuzzleServer() as server, socket.create_connection(("127.0.0.1", server.port), 5) as talk:
        talk.sendall(b"swap 1 2\r\norder easy 1\r\nswap 1 99\r\nhint\r\nshow\r\nmode x\r\nquit\r\n")
        said = b""
        while piece := talk.recv(4096):
            said += piece
    assert said.startswith(PROPOSAL)
    text = said[len(PROPOSAL) :].decode()
    for words in ("no game 'swap'", "Put the numbers", "numbers go from 1 to 6", "swap 1 "):
        assert words in text
    assert text.endswith("modes are json and normal\r\nGoodbye.\r\n")


def test_the_puzzle_server_listens_on_loopback_only() -> None:
    with PuzzleServer():
        assert listening(os.getpid()) <= LOOPBACK
        assert listening(os.getpid())


def test_the_puzzle_server_runs_by_itself() -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "batching.streaming.puzzle_server", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout:
        port = int(child.stdout.readline().rpartition(":")[2])
        stream = GymEpisodeStream(GymConfig(port=port, ask_hints=True), follow_hints, BYTES)
        assert [episode.solved for episode in stream.play()] == [True]
        taken = subprocess.run(
            [sys.executable, "-m", "batching.streaming.puzzle_server", "--port", str(port)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) == 0
    assert taken.returncode == 2
    assert taken.stderr.startswith("cannot start the puzzle server")
