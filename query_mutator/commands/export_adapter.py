"""Writes a tuned rewriter as files that llama.cpp and Ollama take."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path

from query_mutator.base.terminal import printable
from query_mutator.base.weights import EMBEDDED


def add_flags(parser: ArgumentParser) -> None:
    """The command line of `export-adapter`."""
    add = parser.add_argument
    add("adapter", metavar="ADAPTER", help="directory that PEFT saved a LoRA adapter to")
    add(
        "--base",
        default=EMBEDDED,
        help="what it was trained on: embedded (default), a GGUF, a directory or a hub's name",
    )
    add(
        "--output",
        metavar="DIR",
        help="where the files go (default: the directory that ADAPTER is in)",
    )
    add("--merged", metavar="TYPE", help="the whole model too, as q8_0, q4_0 or f16")
    add("--float32", action="store_true", help="the adapter in four bytes a number, not two")


def run(args: Namespace) -> int:
    """What the command does; errors are raised."""
    # Heavy imports come late: --help and a wrong flag answer at once.
    from query_mutator.tuning.export import export_adapter

    adapter = Path(args.adapter)
    output = Path(args.output) if args.output else adapter.resolve().parent
    exported = export_adapter(adapter, args.base, output, merged=args.merged, half=not args.float32)
    for file in filter(None, (exported.adapter, exported.merged, exported.modelfile)):
        print(printable(str(file)))
    print("with Ollama:")
    for command in (f"cd {shlex.quote(str(output))}", *exported.ollama_commands):
        print(printable(f"  {command}"))
    return 0
