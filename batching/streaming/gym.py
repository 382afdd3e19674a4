"""Episodes of a puzzle, played by a policy, as samples: from a server or without any network."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from batching.streaming.protocols import TextTokenizer
from batching.streaming.puzzle_games import Conversation
from batching.streaming.puzzles import GymObservation, PuzzleConnection, PuzzleSession
from batching.streaming.samples import StreamMetrics, StreamSample
from batching.streaming.telnet import ConnectionFailedError, TelnetConnection
from batching.streaming.texts import text_sample
from query_mutator.base.errors import UserError

logger = logging.getLogger(__name__)

DEFAULT_PORT = 8023
DIFFICULTIES = {"easy": 0.25, "medium": 0.5, "hard": 0.75}

GymPolicy = Callable[[GymObservation], str | None]
"""Says the next move; None gives the puzzle up."""


@dataclass(frozen=True)
class GymConfig:
    """Which puzzles are played, where, and how long anything may take."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    game: str = "lights"
    difficulty: str = "easy"
    seed: int | None = 42
    """Of the first episode; each one after it has the next. None leaves it to the server."""
    episodes: int = 1
    first_episode: int = 0
    """Where to go on in a series that was left after so many episodes."""
    most_moves: int = 100
    """After so many an episode ends unsolved."""
    ask_hints: bool = False
    """Whether the server is asked for advice before each move."""
    connect_timeout_s: float = 5.0
    answer_timeout_s: float = 10.0
    episode_timeout_s: float = 600.0
    longest_line: int = 65_536
    most_failures: int = 3
    """So many failed episodes in a row end the stream."""
    reward_solved: float = 1.0
    reward_move: float = 0.0
    reward_refused: float = -0.1
    """Of a move that the server does not accept."""

    def __post_init__(self) -> None:
        if not 0 < self.port < 65_536:
            raise UserError(f"the port must be between 1 and 65535, not {self.port}")
        for name in ("game", "difficulty"):
            word = getattr(self, name)
            if not word.isprintable() or len(word.split()) != 1:
                raise UserError(f"the {name} must be one word, not {word!r}")
        if self.episodes < 0 or self.first_episode < 0:
            raise UserError("the number of episodes cannot be negative")
        for name in ("connect_timeout_s", "answer_timeout_s", "episode_timeout_s"):
            if not 0 < getattr(self, name) < 1e6:
                raise UserError(f"{name} must be a number of seconds above 0")
        for name in ("most_moves", "most_failures", "longest_line"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1")

    def seed_of(self, episode: int) -> int | None:
        return None if self.seed is None else self.seed + episode


@dataclass(frozen=True)
class GymStep:
    """A move, and what came of it."""

    observation: GymObservation
    """What the policy saw."""
    move: str
    accepted: bool
    reward: float


@dataclass(frozen=True)
class GymEpisode:
    """A puzzle that was played to its end, or broke off."""

    episode_id: str
    number: int
    steps: tuple[GymStep, ...]
    solved: bool = False
    failure: str = ""
    """Why it broke off; what happened is then not known, and none of it becomes a sample."""

    @property
    def failed(self) -> bool:
        return bool(self.failure)


def follow_hints(observation: GymObservation) -> str | None:
    """A policy that does what the server advises; for a stream that asks for hints."""
    return observation.hint or None


@dataclass(eq=False)
class GymEpisodeStream:
    """Samples from a puzzle server: the board is the prompt, the policy's move the completion.

    The samples of an episode come when it has ended, because only then is known whether it was
    solved. An episode that breaks off gives none, is counted, and is told in a warning.
    """

    config: GymConfig
    policy: GymPolicy
    tokenizer: TextTokenizer
    on_episode: Callable[[GymEpisode], object] = field(default=lambda _: None, kw_only=True)
    """Called with each episode as it ends, say to show how far it is."""
    metrics: StreamMetrics = field(default_factory=StreamMetrics, init=False)
    source: ClassVar[str] = "gym"

    def __iter__(self) -> Iterator[StreamSample]:
        for episode in self.play():
            if not episode.failed:
                yield from map(self.metrics.record, self.samples_of(episode))

    def play(self) -> Iterator[GymEpisode]:
        """The episodes themselves, failed ones as well; each is counted."""
        failures = 0
        for number in range(self.config.first_episode, self.config.episodes):
            episode = self._episode(number)
            self._count(episode)
            if episode.failed:
                failures += 1
                logger.warning("episode %s failed: %s", episode.episode_id, episode.failure)
                if failures >= self.config.most_failures:
                    raise UserError(
                        f"{failures} episodes in a row have failed: {episode.failure}"
                        f"\n{self._advice()}"
                    )
            else:
                failures = 0
            self.on_episode(episode)
            yield episode

    def opening(self) -> GymObservation:
        """What the first puzzle looks like; `ConnectionFailedError` where there is none."""
        with self._session(self.config.first_episode) as session:
            return replace(session.start(), hint=session.hint())

    def samples_of(self, episode: GymEpisode) -> list[StreamSample]:
        """The samples of an episode, a move each."""
        return [
            text_sample(
                self.tokenizer,
                prompt=f"{step.observation.text}\n",
                completion=step.move,
                sample_id=f"{episode.episode_id}/{index}",
                source=self.source,
                episode_id=episode.episode_id,
                step_index=index,
                reward=step.reward,
                difficulty=DIFFICULTIES.get(self.config.difficulty),
                success=episode.solved,
            )
            for index, step in enumerate(episode.steps)
        ]

    def _count(self, episode: GymEpisode) -> None:
        if episode.failed:
            self.metrics.failed_episodes += 1
            self.metrics.drop("episode failed", len(episode.steps))
        else:
            self.metrics.episodes += 1
            self.metrics.solved_episodes += episode.solved

    def _connect(self) -> PuzzleConnection:
        config = self.config
        return TelnetConnection(
            config.host,
            config.port,
            connect_timeout_s=config.connect_timeout_s,
            answer_timeout_s=config.answer_timeout_s,
            total_timeout_s=config.episode_timeout_s,
            longest_line=config.longest_line,
        )

    def _advice(self) -> str:
        command = f"python -m batching.streaming.puzzle_server --port {self.config.port}"
        return f"Is a puzzle server running? `{command}`"

    def _episode(self, number: int) -> GymEpisode:
        config = self.config
        seed = config.seed_of(number)
        name = f"{config.game}-{config.difficulty}-{number if seed is None else seed}"
        steps: list[GymStep] = []
        try:
            with self._session(number) as session:
                solved = self._moves(session, steps)
        except ConnectionFailedError as error:
            return GymEpisode(name, number, tuple(steps), failure=str(error))
        return GymEpisode(name, number, tuple(steps), solved)

    def _session(self, number: int) -> closing[PuzzleSession]:
        config = self.config
        seed = config.seed_of(number)
        return closing(PuzzleSession(self._connect(), config.game, config.difficulty, seed))

    def _moves(self, session: PuzzleSession, steps: list[GymStep]) -> bool:
        """Plays until it is solved, given up or too long; returns whether it is solved."""
        config = self.config
        observation = session.start()
        while not observation.is_complete and len(steps) < config.most_moves:
            if config.ask_hints:
                observation = replace(observation, hint=session.hint())
            move = self.policy(observation)
            if move is None:
                return False
            result = session.move(move)
            reward = config.reward_move if result.accepted else config.reward_refused
            if result.solved:
                reward = config.reward_solved
            steps.append(GymStep(observation, result.move, result.accepted, reward))
            if result.solved:
                return True
            observation = result.observation
        return observation.is_complete


class MockGymStream(GymEpisodeStream):
    """The same from a puzzle in this process, without any network; it solves them by default."""

    source = "mock-gym"

    def __init__(
        self,
        config: GymConfig | None = None,
        policy: GymPolicy = follow_hints,
        *,
        tokenizer: TextTokenizer,
        **more: Any,
    ) -> None:
        config = config or GymConfig(episodes=10, ask_hints=True)
        super().__init__(config, policy, tokenizer, **more)

    def _connect(self) -> PuzzleConnection:
        return _LocalConnection()

    def _advice(self) -> str:
        return "Games here: lights and order, each easy, medium or hard."


class _LocalConnection:
    """Talks with a puzzle in this process as with a server."""

    def __init__(self) -> None:
        self._talk = Conversation()
        self._said: deque[str] = deque(self._talk.greeting())

    def send(self, *lines: str) -> None:
        for line in lines:
            self._said.extend("\n".join(self._talk.answer(line)).splitlines())

    def read_line(self) -> str:
        if not self._said:
            raise ConnectionFailedError("the puzzle has nothing more to say")
        return self._said.popleft()

    def close(self) -> None:
        self._said.clear()
