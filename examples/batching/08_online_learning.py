"""A student learns puzzles while playing them: episodes, a replay buffer, batches, and again.

It makes the moves that it has learned and asks for a hint where it has learned none, so that it
asks less and less. The puzzles run in this process; with `python -m
batching.streaming.puzzle_server` in another terminal, `GymEpisodeStream` in place of
`MockGymStream` plays the same over the network.

Run it from the repository: python examples/batching/08_online_learning.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from batching import BatchingConfig
from batching.generation import ByteTokenizer
from batching.streaming import (
    GymConfig,
    GymObservation,
    MockGymStream,
    ReplayBuffer,
    RollingBatchPlanWindow,
    StreamSample,
    WindowConfig,
)

ROUNDS, EPISODES = 8, 40


class Student:
    """Knows the moves that it was taught, board by board."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.moves = self.asked = 0

    def __call__(self, observation: GymObservation) -> str:
        self.moves += 1
        move = self.known.get(f"{observation.text}\n")
        if move is None:
            self.asked += 1
            move = observation.hint
        return move

    def learn(self, batch: list[StreamSample]) -> None:
        for sample in batch:
            self.known[sample.meta["prompt"]] = sample.meta["completion"]


def main() -> None:
    student = Student()
    buffer = ReplayBuffer(max_size=2_000, eviction="priority", seed=1)
    window = RollingBatchPlanWindow(WindowConfig(64, BatchingConfig.throughput(token_budget=2048)))
    for round_ in range(ROUNDS):
        config = GymConfig(seed=round_ * EPISODES, episodes=EPISODES, ask_hints=True)
        student.moves = student.asked = 0
        stream = MockGymStream(config, student, tokenizer=ByteTokenizer())
        buffer.extend(stream)

        # Learn from what is drawn; what was learned is drawn less often from there on.
        for _ in range(4):
            drawn = buffer.sample(64)
            for plan in window.plans(drawn.samples):
                for batch in range(len(plan)):
                    student.learn(plan.samples_of(batch))
            buffer.update_priorities(drawn.keys, [0.1] * len(drawn.keys))
        print(
            f"round {round_}: {stream.metrics.solved_episodes}/{EPISODES} solved, asked for "
            f"{student.asked / student.moves:.0%} of {student.moves} moves; "
            f"{len(student.known)} boards known after {window.metrics.num_batches} batches"
        )


if __name__ == "__main__":
    main()
