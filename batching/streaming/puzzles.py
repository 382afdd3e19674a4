"""Plays a puzzle with a server: the words of the protocol, over any connection that has lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from batching.streaming.puzzle_games import GAMES
from batching.streaming.telnet import ConnectionFailedError
from query_mutator.base.terminal import printable
from query_mutator.base.untrusted import DEEPEST, parse_json

MOST_LINES = 5_000
"""In one answer: a server that never comes to the point is left."""
LONGEST_MOVE = 1_000
LONGEST_SHOWN = 200
NOT_MOVES = frozenset(
    {"mode", "quit", "exit", "q", "menu", "m", "solve", "reset", "hint", "show", *GAMES}
)
"""Words that a server takes for something else than a move: a policy that says one of them, as a
language model may, would end or spoil the conversation, begin another puzzle, or be shown the
solution."""


class PuzzleConnection(Protocol):
    """Lines to a server and back."""

    def send(self, *lines: str) -> None:
        """Sends lines."""

    def read_line(self) -> str:
        """The next line; raises `ConnectionFailedError`."""

    def close(self) -> None:
        """Ends it."""


@dataclass(frozen=True)
class GymObservation:
    """What a policy sees before it moves."""

    game: str
    difficulty: str
    seed: int | None
    step_index: int
    text: str
    """The board as the server draws it, in lines, without anything that drives a terminal."""
    hint: str = ""
    """What the server advises, where the stream asks for it."""
    message: str = ""
    """What the server said to the move before."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """All that the server tells of the puzzle, as it came: not cleaned."""
    is_complete: bool = False


@dataclass(frozen=True)
class MoveResult:
    """What came of a move."""

    move: str
    """As it was sent: one line, without anything that drives a terminal."""
    accepted: bool
    solved: bool
    observation: GymObservation


@dataclass(frozen=True)
class _Answer:
    """All that a server said before it came to the fence."""

    messages: list[dict[str, Any]]
    prose: list[str]

    def last(self, kind: str) -> dict[str, Any] | None:
        found = [message for message in self.messages if message["type"] == kind]
        return found[-1] if found else None


class PuzzleSession:
    """One puzzle, from its first to its last move.

    A server answers a command with any number of lines: a result, the board, that it is solved,
    or plain words. So every command is followed by `mode json`, which is always answered, and
    all that comes before that answer belongs to the command.
    """

    def __init__(
        self, connection: PuzzleConnection, game: str, difficulty: str, seed: int | None
    ) -> None:
        self._connection = connection
        self._asked = (game, difficulty, seed)
        self._step = 0
        self._shown: dict[str, Any] = {}
        """What the server called the puzzle when it began."""

    def start(self) -> GymObservation:
        """Begins the puzzle."""
        game, difficulty, seed = self._asked
        words = [game, difficulty] if seed is None else [game, difficulty, str(seed)]
        # Some servers know modes only in a game, so this is answered in words.
        opening = self._ask(" ".join(words))
        shown = self._ask("show")
        if shown.last("observation") is None:
            said = " ".join(opening.prose[-1:]) or "it shows no puzzle"
            raise ConnectionFailedError(f"the server refuses {game} {difficulty}: {said}")
        observation = self._observed(shown)
        self._shown = {name: observation.state.get(name) for name in ("game", "seed")}
        return observation

    def move(self, move: str) -> MoveResult:
        """Makes a move, whatever it says: a line is sent, and what is no move is not accepted."""
        self._step += 1
        line = printable(move).strip()[:LONGEST_MOVE]
        if not line or line.split()[0].casefold() in NOT_MOVES | {self._asked[0].casefold()}:
            observation = self._observed(self._ask("show"), message="that is no move")
            return MoveResult(line, False, observation.is_complete, observation)
        answer = self._ask(line, "show")
        reply = answer.last("result") or answer.last("error")
        said = _said(reply) if reply else printable(" ".join(answer.prose))[:LONGEST_SHOWN]
        observation = self._observed(answer, message=said)
        complete = answer.last("complete")
        # Whoever solves a puzzle may be told so by the board alone.
        solved = observation.is_complete or (complete is not None and _is_good(complete))
        return MoveResult(line, reply is not None and _is_good(reply), solved, observation)

    def hint(self) -> str:
        """What the server advises; "" where it does not."""
        answer = self._ask("hint")
        reply = answer.last("result") or answer.last("hint")
        if reply is not None:
            return _said(reply) if _is_good(reply) else ""
        advice = [line for line in answer.prose if line.casefold().startswith("hint:")]
        return advice[-1][len("hint:") :].strip() if advice else ""

    def close(self) -> None:
        """Takes leave of the server, if it is there."""
        try:
            self._connection.send("quit")
        except ConnectionFailedError:
            pass
        finally:
            self._connection.close()

    def _ask(self, *commands: str) -> _Answer:
        self._connection.send(*commands, "mode json")
        answer = _Answer([], [])
        for _ in range(MOST_LINES):
            try:
                line = self._connection.read_line()
            except ConnectionFailedError as error:
                said = f"; it last said: {answer.prose[-1]}" if answer.prose else ""
                raise ConnectionFailedError(f"{error}{said}") from error
            line = line.lstrip("> \t")  # a prompt has no line of its own
            if not line.startswith("{"):
                if line.strip():
                    answer.prose.append(printable(line)[:LONGEST_SHOWN])
                continue
            message = _message(line)
            if message["type"] == "mode":
                return answer
            answer.messages.append(message)
        raise ConnectionFailedError(f"the server answered with more than {MOST_LINES:,} lines")

    def _observed(self, answer: _Answer, message: str = "") -> GymObservation:
        state = answer.last("observation")
        if state is None:
            error = answer.last("error")
            why = _said(error) if error else " ".join(answer.prose[-1:])
            raise ConnectionFailedError(f"the server shows no puzzle: {why or 'nothing was said'}")
        if any(state.get(name) != value for name, value in self._shown.items()):
            # A word that we do not know of began another one; this one has no end.
            raise ConnectionFailedError("the server shows another puzzle than before")
        game, difficulty, seed = self._asked
        shown_seed = state.get("seed")
        return GymObservation(
            game=game,
            difficulty=difficulty,
            seed=shown_seed if type(shown_seed) is int else seed,
            step_index=self._step,
            text=_board(state),
            message=message,
            state=state,
            is_complete=state.get("is_complete") is True,
        )


def _message(line: str) -> dict[str, Any]:
    """A line of JSON; raises `ConnectionFailedError` for what is none."""
    try:
        message = parse_json(line, deepest=DEEPEST)
    except ValueError:
        message = None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ConnectionFailedError(f"the server sent bad JSON: {printable(line[:80])}")
    return message


def _is_good(message: dict[str, Any]) -> bool:
    return message["type"] != "error" and message.get("success", True) is True


def _said(message: dict[str, Any]) -> str:
    words = message.get("message", message.get("hint", ""))
    said = printable(words if isinstance(words, str) else "")[:LONGEST_SHOWN]
    return said.strip().removeprefix("Hint:").strip()


def _board(state: dict[str, Any]) -> str:
    """The board in lines, each of them clean."""
    drawn = state.get("grid_display")
    if isinstance(drawn, str):
        return "\n".join(printable(line).rstrip() for line in drawn.splitlines())
    rows = state.get("grid")
    if isinstance(rows, list):
        cells = [row if isinstance(row, list) else [row] for row in rows]
        return "\n".join(printable(" ".join(map(str, row))) for row in cells)
    return ""
