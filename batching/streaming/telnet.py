"""Lines of text over telnet, with a bound on every line and a deadline on every wait."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

IAC, DONT, DO, WONT, WILL, SB, SE = 255, 254, 253, 252, 251, 250, 240
ANSWERS = {DO: WONT, WILL: DONT}
READ_BYTES = 65_536


class ConnectionFailedError(Exception):
    """The other side cannot be reached, has gone, or does not keep to the rules; says which."""


class TelnetFilter:
    """Takes the commands out of what a telnet server sends, and refuses all that it proposes.

    It keeps its place between reads: a command may come in pieces.

    >>> telnet = TelnetFilter()
    >>> telnet.feed(bytes([104, IAC, DO])), telnet.feed(bytes([24, 105]))
    ((b'h', b''), (b'i', b'\\xff\\xfc\\x18'))
    """

    def __init__(self) -> None:
        self._state = "text"
        self._verb = 0
        self._answered: set[tuple[int, int]] = set()
        """What was refused already: a server that asks again is not answered again, or the two
        might go on for ever (RFC 854)."""

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """The text in the data, and the bytes to send back."""
        if self._state == "text" and IAC not in data:
            return data, b""
        text, back = bytearray(), bytearray()
        for byte in data:
            if self._state == "text":
                if byte == IAC:
                    self._state = "command"
                else:
                    text.append(byte)
            elif self._state == "command":
                self._command(byte, text)
            elif self._state == "option":
                back += self._answer(byte)
                self._state = "text"
            elif self._state == "inside":
                self._state = "inside command" if byte == IAC else "inside"
            else:
                self._state = "text" if byte == SE else "inside"
        return bytes(text), bytes(back)

    def _command(self, byte: int, text: bytearray) -> None:
        self._state = "text"
        if byte == IAC:  # doubled, it stands for itself
            text.append(IAC)
        elif byte == SB:
            self._state = "inside"
        elif byte in (DO, DONT, WILL, WONT):
            self._state, self._verb = "option", byte

    def _answer(self, option: int) -> bytes:
        if self._verb not in ANSWERS or (self._verb, option) in self._answered:
            return b""
        self._answered.add((self._verb, option))
        return bytes([IAC, ANSWERS[self._verb], option])


class TelnetConnection:
    """A connection to a telnet server that gives and takes lines."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        connect_timeout_s: float = 5.0,
        answer_timeout_s: float = 10.0,
        total_timeout_s: float = 600.0,
        longest_line: int = 65_536,
    ) -> None:
        """Connects; raises `ConnectionFailedError` that says why it cannot."""
        self._where = f"{host}:{port}"
        self._answer_timeout_s = answer_timeout_s
        self._longest_line = longest_line
        self._filter = TelnetFilter()
        self._unread = b""
        self._searched = 0
        """How many of the unread bytes are known to hold no end of a line."""
        self._last_moment = time.monotonic() + total_timeout_s
        self._deadline = self._last_moment
        try:
            self._socket = socket.create_connection((host, port), connect_timeout_s)
        except (OSError, UnicodeError) as error:
            reason = (isinstance(error, OSError) and error.strerror) or str(error)
            raise ConnectionFailedError(f"cannot connect to {self._where}: {reason}") from error

    def send(self, *lines: str) -> None:
        """Sends lines; their answer is waited for from this moment on."""
        self._deadline = min(time.monotonic() + self._answer_timeout_s, self._last_moment)
        text = "".join(f"{line}\r\n" for line in lines)
        self._send(text.encode("utf-8", "replace"))

    def read_line(self) -> str:
        """The next line, without its end."""
        while (end := self._unread.find(b"\n", self._searched)) < 0:
            self._searched = len(self._unread)
            if self._searched > self._longest_line:
                break
            self._receive()
        if end < 0 or end > self._longest_line:
            most = f"{self._longest_line:,}"
            raise ConnectionFailedError(f"{self._where} sent a line of more than {most} bytes")
        line, self._unread, self._searched = self._unread[:end], self._unread[end + 1 :], 0
        return line.rstrip(b"\r\0").decode("utf-8", "replace")

    def close(self) -> None:
        """Ends the connection, whatever state it is in."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def _receive(self) -> None:
        with self._in_time():
            data = self._socket.recv(READ_BYTES)
        if not data:
            raise ConnectionFailedError(f"{self._where} closed the connection")
        text, back = self._filter.feed(data)
        if back:
            self._send(back)
        self._unread += text

    def _send(self, data: bytes) -> None:
        with self._in_time():
            self._socket.sendall(data)

    @contextlib.contextmanager
    def _in_time(self) -> Iterator[None]:
        """Bounds a wait by what is left of the time; says what went wrong with it."""
        try:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            yield
        except TimeoutError:
            raise self._too_late() from None
        except OSError as error:
            why = error.strerror or str(error)
            raise ConnectionFailedError(f"the connection to {self._where} broke: {why}") from error

    def _too_late(self) -> ConnectionFailedError:
        if self._deadline == self._last_moment:
            return ConnectionFailedError(f"{self._where} took too long over the whole episode")
        waited = f"{self._answer_timeout_s:g} s"
        return ConnectionFailedError(f"{self._where} gave no answer within {waited}")
