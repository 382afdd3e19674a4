"""Two small puzzles, and the conversation in which one is played: text lines in, text lines out."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any, Protocol

SIZES = {"easy": 3, "medium": 4, "hard": 5}
"""By difficulty: the side of a board, and half of how many numbers there are to order."""
FURTHEST_SEED = 2**31


class Puzzle(Protocol):
    """A puzzle that is played by moves in words."""

    rules: str

    def board(self) -> list[list[int]]:
        """What there is to see."""

    def play(self, words: list[str]) -> str:
        """Carries out a move; raises ValueError for what is none."""

    def hint(self) -> str:
        """A move that leads on; "" once it is solved."""

    def is_solved(self) -> bool:
        """Whether there is nothing left to do."""


class LightsOut:
    """Lights in a square; pressing one turns it and its neighbours on or off. All have to go out.

    It remembers which presses are left of those that made it: pressing these, in any order,
    solves it.
    """

    rules = "Turn all lights (1) off. Moves: press ROW COLUMN"

    def __init__(self, size: int, generator: random.Random) -> None:
        self._size = size
        self._lit: set[tuple[int, int]] = set()
        self._left: set[tuple[int, int]] = set()
        places = [(row, column) for row in range(size) for column in range(size)]
        while not self._lit:  # some presses undo each other
            for place in generator.sample(places, size):
                self._press(place)

    def board(self) -> list[list[int]]:
        side = range(self._size)
        return [[int((row, column) in self._lit) for column in side] for row in side]

    def play(self, words: list[str]) -> str:
        row, column = _two_numbers(words, "press", self._size)
        self._press((row, column))
        return f"pressed {row + 1} {column + 1}"

    def hint(self) -> str:
        if self.is_solved():
            return ""
        row, column = min(self._left)
        return f"press {row + 1} {column + 1}"

    def is_solved(self) -> bool:
        return not self._lit

    def _press(self, place: tuple[int, int]) -> None:
        row, column = place
        near = {(row, column), (row - 1, column), (row + 1, column), (row, column - 1)}
        near |= {(row, column + 1)}
        side = range(self._size)
        self._lit ^= {(y, x) for y, x in near if y in side and x in side}
        self._left ^= {place}


class Ordering:
    """Numbers that have to be brought into order by exchanging two at a time."""

    rules = "Put the numbers in ascending order. Moves: swap PLACE PLACE"

    def __init__(self, size: int, generator: random.Random) -> None:
        self._numbers = list(range(1, 2 * size + 1))
        while self.is_solved():
            generator.shuffle(self._numbers)

    def board(self) -> list[list[int]]:
        return [list(self._numbers)]

    def play(self, words: list[str]) -> str:
        left, right = _two_numbers(words, "swap", len(self._numbers))
        numbers = self._numbers
        numbers[left], numbers[right] = numbers[right], numbers[left]
        return f"swapped {left + 1} and {right + 1}"

    def hint(self) -> str:
        for place, number in enumerate(self._numbers, 1):
            if number != place:
                return f"swap {place} {number}"
        return ""

    def is_solved(self) -> bool:
        return self._numbers == sorted(self._numbers)


def _two_numbers(words: list[str], verb: str, most: int) -> tuple[int, int]:
    """The two numbers of a move, counted from 0."""
    if len(words) != 3 or words[0] != verb:
        raise ValueError(f"usage: {verb} NUMBER NUMBER")
    try:
        first, second = int(words[1]), int(words[2])
    except ValueError:
        raise ValueError("use whole numbers") from None
    if not (1 <= first <= most and 1 <= second <= most):
        raise ValueError(f"numbers go from 1 to {most}")
    return first - 1, second - 1


GAMES: dict[str, type[LightsOut] | type[Ordering]] = {"lights": LightsOut, "order": Ordering}


@dataclass
class Conversation:
    """One player's talk with a puzzle server.

    >>> talk = Conversation()
    >>> _ = talk.answer("order easy 7"), talk.answer("mode json")
    >>> json.loads(talk.answer("swap 1 9")[0])["message"]
    'numbers go from 1 to 6'
    """

    game: str = ""
    difficulty: str = ""
    seed: int = 0
    moves: int = 0
    invalid_moves: int = 0
    hints_used: int = 0
    as_json: bool = False
    ended: bool = False
    puzzle: Puzzle | None = field(default=None, repr=False)

    def greeting(self) -> list[str]:
        games = ", ".join(GAMES)
        return ["Puzzles to play.", f"GAME DIFFICULTY [SEED] begins one: {games}; quit leaves."]

    def answer(self, line: str) -> list[str]:
        """What the server says to a line."""
        words = line.split()
        command = words[0].lower() if words else ""
        if command == "quit":
            self.ended = True
            return [] if self.as_json else ["Goodbye."]
        if command == "mode":
            return self._mode(words[1:])
        if command in GAMES:
            return self._begin(command, words[1:])
        if self.puzzle is None:
            unknown = "nothing is played" if command == "show" else f"no game '{command}'"
            return self._error("NO_GAME", f"{unknown}; there are {', '.join(GAMES)}")
        if command == "show":
            return [self._observation()]
        if command == "hint":
            self.hints_used += 1
            return self._result(bool(self.puzzle.hint()), "HINT", self.puzzle.hint() or "solved")
        return self._move(words)

    def _mode(self, words: list[str]) -> list[str]:
        if words not in (["json"], ["normal"]):
            return self._error("INVALID_MODE", "modes are json and normal")
        self.as_json = words == ["json"]
        if self.as_json:
            return [_line(type="mode", mode="json", success=True)]
        return ["mode: normal"]

    def _begin(self, game: str, words: list[str]) -> list[str]:
        self.difficulty = words[0].lower() if words else "easy"
        if self.difficulty not in SIZES:
            return self._error("DIFFICULTY", f"difficulties are {', '.join(SIZES)}")
        try:
            seed = int(words[1]) if len(words) > 1 else random.randrange(FURTHEST_SEED)
        except ValueError:
            return self._error("SEED", "a seed is a whole number")
        self.game, self.seed = game, seed
        self.moves = self.invalid_moves = self.hints_used = 0
        self.puzzle = GAMES[game](SIZES[self.difficulty], random.Random(seed))
        return [self._observation()] if self.as_json else [self.puzzle.rules, *self._rows()]

    def _move(self, words: list[str]) -> list[str]:
        assert self.puzzle is not None
        try:
            message = self.puzzle.play([word.lower() for word in words])
        except ValueError as error:
            self.invalid_moves += 1
            return self._result(False, "INVALID", str(error))
        self.moves += 1
        answer = self._result(True, "OK", message)
        if self.as_json:
            answer.append(self._observation())
            if self.puzzle.is_solved():
                counts = {"moves": self.moves, "invalid_moves": self.invalid_moves}
                answer.append(_line(type="complete", success=True, game=self.game, **counts))
        elif self.puzzle.is_solved():
            answer.append(f"Solved in {self.moves} moves.")
        return answer

    def _rows(self) -> list[str]:
        assert self.puzzle is not None
        return [" ".join(map(str, row)) for row in self.puzzle.board()]

    def _observation(self) -> str:
        assert self.puzzle is not None
        if not self.as_json:
            return "\n".join(self._rows())
        return _line(
            type="observation",
            game=self.game,
            difficulty=self.difficulty,
            seed=self.seed,
            moves=self.moves,
            invalid_moves=self.invalid_moves,
            hints_used=self.hints_used,
            is_complete=self.puzzle.is_solved(),
            grid=self.puzzle.board(),
            grid_display="\n".join([self.puzzle.rules, *self._rows()]),
        )

    def _result(self, success: bool, code: str, message: str) -> list[str]:
        if not self.as_json:
            return [message]
        return [_line(type="result", success=success, code=code, message=message)]

    def _error(self, code: str, message: str) -> list[str]:
        return [_line(type="error", code=code, message=message) if self.as_json else message]


def _line(**fields: Any) -> str:
    return json.dumps(fields)
