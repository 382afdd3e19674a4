"""Tokens by llama.cpp itself, in a process of its own: slow, and right for every GGUF.

`python -m batching.generation.llama_tokens FILE` answers each JSON text on a line of standard
input with a line of token ids, until its input ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from query_mutator.base.children import module_command, module_environment
from query_mutator.base.errors import UserError


class LlamaTokens:
    """The tokens of texts, asked of a child process that has loaded the model."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._process = subprocess.Popen(
            module_command("batching.generation.llama_tokens", str(path.resolve())),
            env=module_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self.encode_many([""])
        except UserError:
            self.close()
            raise

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text, one after the other."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            found = []
            for text in texts:
                self._process.stdin.write(json.dumps(text).encode() + b"\n")
                self._process.stdin.flush()
                found.append([int(token) for token in json.loads(self._process.stdout.readline())])
            return found
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"llama.cpp cannot tokenise with {self._path}") from error

    def close(self) -> None:
        """Ends the child; it ends with this process too."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.kill()
        self._process.wait()


def serve(path: str) -> None:
    """Answers the texts on standard input."""
    import requests
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = 1
    params.n_ctx = 64
    params.n_gpu_layers = 0
    params.warmup = False
    params.ui = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    session = requests.Session()
    for line in sys.stdin:
        asked = {"content": json.loads(line), "add_special": False, "parse_special": False}
        answer = session.post(server.listening_address + "/tokenize", json=asked, timeout=60)
        print(json.dumps(answer.json()["tokens"]), flush=True)


if __name__ == "__main__":
    try:
        serve(sys.argv[1])
    finally:
        # llama.cpp's threads do not end with the interpreter.
        os._exit(0)
