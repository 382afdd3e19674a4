"""`python -m batching gym`: puzzles played, and their moves as samples."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batching.commands.parts import (
    Commands,
    add_command,
    add_group,
    add_json,
    add_tokenizer,
    bar,
    pairs,
    print_json,
    run_commands,
)
from batching.commands.sample_output import (
    add_outputs,
    check_output,
    open_buffer,
    save_buffer,
    settle_outputs,
    summary,
)
from query_mutator.base.errors import UserError
from query_mutator.base.flags import at_least
from query_mutator.base.terminal import counted, printable, show_warnings

if TYPE_CHECKING:
    from batching.generation import Tokenizer
    from batching.streaming import (
        GymConfig,
        GymEpisodeStream,
        GymObservation,
        GymPolicy,
        ReplayBuffer,
        StreamMetrics,
    )
    from batching.streaming.sample_files import SampleWriter

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8023
MOST_EPISODES = 1_000_000
LONGEST_MOVES = 10_000
LAST_SEED = 2**31 - 1
ABOUT = "play puzzles and keep their moves as samples"


def add_commands(commands: Commands) -> None:
    """`gym`, with both of its commands."""
    add_both(add_group(commands, "gym", ABOUT))


def run(argv: Sequence[str] | None = None, prog: str = "query-mutator gym") -> int:
    """What the command does; errors are raised."""
    return run_commands(argv, prog, ABOUT, [add_both])


def add_both(commands: Commands) -> None:
    """`run` and `info`."""
    run = add_command(
        commands, "run", "play episodes as the puzzle's hints say, and keep their moves",
        run_episodes,
        example="-n 20 --game order -o samples.jsonl",
    )  # fmt: skip
    _add_puzzle(run)
    played = run.add_argument_group("episodes")
    played.add_argument(
        "-n", "--episodes", "--num-episodes", type=at_least(1, MOST_EPISODES), default=10,
        metavar="N",
        help="how many are played (default 10)",
    )  # fmt: skip
    played.add_argument(
        "--first-episode", type=at_least(0, MOST_EPISODES), default=0, metavar="N",
        help="go on in a series of which so many are played; each has a seed of its own",
    )  # fmt: skip
    played.add_argument(
        "--most-moves", type=at_least(1, LONGEST_MOVES), default=100, metavar="N",
        help="an episode ends unsolved after so many (default 100)",
    )  # fmt: skip
    samples = run.add_argument_group("samples")
    add_tokenizer(samples, default="bytes")
    add_outputs(samples)
    info = add_command(
        commands, "info", "show the opening of a puzzle and how it is played", run_info,
        example="--game lights",
    )  # fmt: skip
    _add_puzzle(info)
    add_json(info)


def _add_puzzle(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "puzzle", "in this process, unless a server is named by --host or --port"
    )
    add = group.add_argument
    add(
        "--mock", action="store_true",
        help="in this process, as without --host and --port; with them it is refused",
    )  # fmt: skip
    add("--host", metavar="NAME", help=f"of a puzzle server (default {DEFAULT_HOST})")
    add("--port", type=at_least(1, 65_535), metavar="N", help=f"its port (default {DEFAULT_PORT})")
    add("--game", default="lights", metavar="NAME", help="here: lights or order (default lights)")
    add("--difficulty", default="easy", metavar="NAME", help="easy, medium or hard (default easy)")
    add(
        "--seed", type=at_least(0, LAST_SEED), default=42, metavar="N",
        help="of the first episode; each after it has the next (default 42)",
    )  # fmt: skip


def run_episodes(args: argparse.Namespace) -> int:
    """Plays episodes; the samples of those that have ended are kept, however it ends."""
    from batching.generation import load_tokenizer
    from batching.streaming import follow_hints
    from batching.streaming.sample_files import SampleWriter

    show_warnings()
    settle_outputs(args)
    check_output(args)
    played = 0
    with contextlib.ExitStack() as stack:
        buffer = stack.enter_context(open_buffer(args))
        config = _config(args, episodes=args.first_episode + args.episodes)
        stream = _stream(args, config, follow_hints, load_tokenizer(args.tokenizer))
        _opening(args, config)
        writer = stack.enter_context(SampleWriter(args.output)) if args.output else None
        stack.callback(lambda: _tell(stream.metrics, writer, buffer, args.buffer))
        try:
            for episode in bar(stream.play(), args.episodes, "playing", "episodes"):
                samples = [] if episode.failed else stream.samples_of(episode)
                for sample in map(stream.metrics.record, samples):
                    if writer is not None:
                        writer.write(sample)
                    if buffer is not None:
                        buffer.add(sample)
                played += 1
        except KeyboardInterrupt:
            rest = f"--first-episode {args.first_episode + played} -n {args.episodes - played}"
            print(f"interrupted; {rest} and another -o go on", file=sys.stderr)
            return 130
    return 0


def run_info(args: argparse.Namespace) -> int:
    """Shows the opening of the first episode, and the move that is advised."""
    from batching.streaming.puzzle_games import GAMES, SIZES

    config = _config(args, episodes=1)
    opening = _opening(args, config)
    facts: dict[str, Any] = {
        "where": f"{config.host}:{config.port}" if _is_server(args) else "in this process",
        "game": opening.game,
        "difficulty": opening.difficulty,
        "seed": opening.seed,
        "hint": opening.hint,
        "board": opening.text,
    }
    if not _is_server(args):
        facts |= {"games": list(GAMES), "difficulties": list(SIZES)}
    if args.json:
        print_json(facts)
        return 0
    facts |= {name: ", ".join(facts[name]) for name in ("games", "difficulties") if name in facts}
    board = str(facts.pop("board")).splitlines()
    print(pairs([(name, printable(str(value))) for name, value in facts.items()]))
    print("\n".join(["  board", *(f"    {printable(line)}" for line in board)]))
    return 0


def _opening(args: argparse.Namespace, config: GymConfig) -> GymObservation:
    """What the first puzzle looks like; `UserError` where there is no such server or puzzle."""
    from batching.generation import ByteTokenizer
    from batching.streaming import follow_hints
    from batching.streaming.telnet import ConnectionFailedError

    try:
        opening = _stream(args, config, follow_hints, ByteTokenizer()).opening()
    except ConnectionFailedError as error:
        command = f"python -m batching.streaming.puzzle_server --port {config.port}"
        advice = f"\nA puzzle server of our own: {command}"
        cannot_connect = str(error).startswith("cannot connect")
        raise UserError(f"{error}{advice if cannot_connect else ''}") from error
    if opening.is_complete:
        raise UserError("the puzzle is solved before it begins")
    return opening


def _is_server(args: argparse.Namespace) -> bool:
    if args.mock and (args.host is not None or args.port is not None):
        raise UserError("--mock plays in this process: leave it out, or --host and --port")
    return args.host is not None or args.port is not None


def _config(args: argparse.Namespace, *, episodes: int) -> GymConfig:
    from batching.streaming import GymConfig

    return GymConfig(
        host=args.host or DEFAULT_HOST,
        port=args.port or DEFAULT_PORT,
        game=args.game,
        difficulty=args.difficulty,
        seed=args.seed,
        episodes=episodes,
        first_episode=getattr(args, "first_episode", 0),
        most_moves=getattr(args, "most_moves", 1),
        ask_hints=True,
    )


def _stream(
    args: argparse.Namespace, config: GymConfig, policy: GymPolicy, tokenizer: Tokenizer
) -> GymEpisodeStream:
    from batching.streaming import GymEpisodeStream, MockGymStream

    if _is_server(args):
        return GymEpisodeStream(config, policy, tokenizer)
    return MockGymStream(config, policy, tokenizer=tokenizer)


def _tell(
    metrics: StreamMetrics,
    writer: SampleWriter | None,
    buffer: ReplayBuffer | None,
    buffer_path: Path | None,
) -> None:
    """Says what was played and where it is; the buffer is saved before."""
    if metrics.episodes or metrics.failed_episodes:
        print(summary(metrics))
    if writer is not None and writer.written:
        print(f"{writer.path}: {counted(writer.written, 'sample')}")
    save_buffer(buffer, buffer_path, metrics.samples)
