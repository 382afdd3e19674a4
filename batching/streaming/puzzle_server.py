"""Puzzles over telnet, on loopback, with faults on demand."""

from __future__ import annotations

import argparse
import contextlib
import signal
import socket
import struct
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Self

from batching.streaming.puzzle_games import Conversation

HOST = "127.0.0.1"
DEFAULT_PORT = 8023
LONGEST_LINE = 4096
PROPOSAL = bytes([255, 253, 24, 255, 251, 1, 255, 250, 24, 1, 255, 240])
"""Telnet: DO terminal type, WILL echo, and a subnegotiation, which a client has to see through."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
KINDS = ("drip", "silent", "drop", "reset", "overlong", "bad_json", "hostile", "endless")


@dataclass(frozen=True)
class PuzzleFault:
    """What goes wrong, from the line numbered `after` on that a client sends.

    | kind | what the client sees |
    | --- | --- |
    | drip | every byte by itself, telnet commands among them |
    | silent | nothing more |
    | drop, reset | the connection is closed, or reset |
    | overlong | a line of a million bytes |
    | bad_json | a line that begins as JSON and is none |
    | hostile | ANSI sequences and controls in every text |
    | endless | lines of prose without an end |
    """

    kind: str
    after: int = 0
    times: int | None = None
    """In how many connections; None: in all."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown fault {self.kind!r}; the kinds are {', '.join(KINDS)}")


class PuzzleServer:
    """A puzzle server on loopback, served from daemon threads."""

    def __init__(self, port: int = 0, fault: PuzzleFault | None = None) -> None:
        """Port 0 takes a free one, which `port` holds once the server has started."""
        self.port = port
        self.fault = fault
        self.received: list[bytes] = []
        """All that clients have sent, line by line, their telnet commands included."""
        self.connections = 0
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Returns the server once it listens."""
        listener = socket.create_server((HOST, self.port))
        self.port = listener.getsockname()[1]
        self._listener = listener
        self._thread = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stops listening and drops all connections."""
        listener, self._listener = self._listener, None
        if listener is not None and self._thread is not None:
            # Closing alone does not wake the thread that accepts.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            self._thread.join()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                fault = self.fault
                if fault and fault.times is not None and self.connections > fault.times:
                    fault = None
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection, fault), daemon=True).start()

    def _serve(self, connection: socket.socket, fault: PuzzleFault | None) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with connection, contextlib.suppress(OSError):
                self._talk(connection, fault)
        finally:
            with self._lock:
                self._open.discard(connection)

    def _talk(self, connection: socket.socket, fault: PuzzleFault | None) -> None:
        talk = Conversation()
        drip = fault is not None and fault.kind == "drip"
        _send(connection, PROPOSAL + _encoded(talk.greeting()), drip=drip)
        with connection.makefile("rb") as lines:
            number = 0
            while not talk.ended and (line := _read_line(lines)):
                self.received.append(line)
                text = _without_commands(line).decode("utf-8", "replace").strip()
                said = _encoded(talk.answer(text))
                if fault is not None and number >= fault.after:
                    spoilt = _spoilt(fault, connection, said)
                    if spoilt is None:
                        return
                    said = spoilt
                _send(connection, said, drip=drip)
                number += 1


def _spoilt(fault: PuzzleFault, connection: socket.socket, said: bytes) -> bytes | None:
    """What is sent in place of `said`; None once the connection is to be closed."""
    if fault.kind == "silent":
        return b""
    if fault.kind == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    if fault.kind in ("drop", "reset"):
        return None
    if fault.kind == "overlong":
        return b'{"type": "observation", "grid_display": "' + b"x" * 1_000_000 + b'"}\r\n'
    if fault.kind == "bad_json":
        return b'{"type": "observation", "grid_display": \r\n'
    if fault.kind == "endless":
        while True:
            connection.sendall(b"and so on\r\n" * 100)
    if fault.kind == "hostile":
        return said.replace(b'_display": "', b'_display": "\\u001b[2J\\u202e\\u0000')
    return said


def _encoded(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).replace("\n", "\r\n").encode()


def _read_line(lines: BinaryIO) -> bytes:
    """The next line, b"" after the last; one that is too long is read over, and is an empty one."""
    line = lines.readline(LONGEST_LINE)
    if len(line) < LONGEST_LINE or line.endswith(b"\n"):
        return line
    while line and not line.endswith(b"\n"):
        line = lines.readline(LONGEST_LINE)
    return b"\n"


def _without_commands(line: bytes) -> bytes:
    """A client's line without its answers to the proposal, of three bytes each."""
    while (start := line.find(b"\xff")) >= 0:
        line = line[:start] + line[start + 3 :]
    return line


def _send(connection: socket.socket, data: bytes, *, drip: bool = False) -> None:
    if not drip:
        connection.sendall(data)
        return
    for index in range(len(data)):
        connection.sendall(data[index : index + 1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a server until Ctrl-C or SIGTERM and returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m batching.streaming.puzzle_server",
        description="Serve puzzles over telnet on loopback until Ctrl-C.",
        epilog="Example: --port 8023, then telnet 127.0.0.1 8023",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help="port to listen on; 0 takes a free one"
    )
    parser.add_argument("--fault", choices=KINDS, help="what goes wrong")
    parser.add_argument("--after", type=int, default=4, help="lines that go well before that")
    options = parser.parse_args(arguments)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    fault = PuzzleFault(options.fault, after=options.after) if options.fault else None
    try:
        server = PuzzleServer(options.port, fault).start()
    except (OSError, OverflowError) as error:
        print(f"cannot start the puzzle server: {error}", file=sys.stderr)
        return 2
    print(f"puzzles on {HOST}:{server.port}", flush=True)
    stopped.wait()
    server.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
