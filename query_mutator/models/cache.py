"""Answers of deterministic calls, kept between runs in one SQLite file.

`query-mutator cache stats` and `query-mutator cache clear` look after it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from query_mutator.base.errors import UserError
from query_mutator.base.files import size_of
from query_mutator.base.terminal import OneLineParser, printable
from query_mutator.base.untrusted import parse_json
from query_mutator.base.weights import cache_directory
from query_mutator.models.calls import Call, Reply

logger = logging.getLogger(__name__)

FORMAT = 1
ANOTHER = "name another with --cache"
INSTEAD = f"{ANOTHER}, or use --no-cache"
TABLE = "responses (key BLOB PRIMARY KEY, model TEXT, reply TEXT, created REAL) WITHOUT ROWID"
BUSY_TIMEOUT_MS = 10_000
PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
"""What another process's lock gives; whatever else fails will fail again."""
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
MOST_BYTES = 32 * 1024 * 1024
"""Of anything in the file: more than any answer has."""
MOST_TOLD = 1e12
"""Of what a reply tells in tokens and seconds."""


def default_cache_file() -> Path:
    """responses.sqlite in the user's cache directory."""
    return cache_directory() / "responses.sqlite"


def cache_key(server_kind: str, model_digest: str, call: Call) -> bytes:
    """A digest of everything that shapes the answer."""
    parts: dict[str, Any] = asdict(call)
    del parts["purpose"]  # what an answer is used for does not change it
    content = json.dumps([FORMAT, server_kind, model_digest, parts], sort_keys=True)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()


class ResponseCache:
    """Replies by key; safe for many threads and for many processes on one file.

    It never stands in the way of a run: where another process has locked the file, that one answer
    is not found or not kept; where the file fails, the run goes on without. Either is said once.
    """

    def __init__(self, path: str | Path, *, instead: str = INSTEAD) -> None:
        """`instead` is what a message says can be done where the file cannot be used."""
        self._instead = instead
        self.path = Path(os.path.expanduser(path))
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._off = self._was_locked = False
        self._patience_ms = BUSY_TIMEOUT_MS
        until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
        while True:
            try:
                self._open()
                return
            except UserError:
                self.close()
                raise
            except (OSError, ValueError, sqlite3.Error) as error:
                # SQLite does not wait where several processes make a new file one with a WAL.
                if _code(error) in PASSING and time.monotonic() < until:
                    time.sleep(0.005)
                    continue
                self.close()
                clear = "clear it (`query-mutator cache clear`), " * _is_damaged(self.path, error)
                raise UserError(
                    f"cannot use the cache {self.path}: {_why(error)}; {clear}{instead}"
                ) from error

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.path.exists():
            self.path.touch(mode=0o600)
        self._check_own()
        self._check_kind()
        self._check_own(make_private=True)
        connection = self._connection()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"CREATE TABLE IF NOT EXISTS {TABLE}")
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if found == 0:
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        elif found != FORMAT:
            raise UserError(
                f"the cache {self.path} has format {found}, this version reads format "
                f"{FORMAT}; {self._instead}"
            )

    def get(self, key: bytes) -> Reply | None:
        """The reply kept under `key`, if there is one."""
        rows = self._ask("SELECT reply FROM responses WHERE key = ?", (key,))
        return _reply(rows[0][0]) if rows else None

    def put(self, key: bytes, model: str, reply: Reply) -> None:
        """Keeps a reply; the first one under a key stays."""
        values = (key, model, json.dumps(asdict(reply)), time.time())
        if self._ask("INSERT OR IGNORE INTO responses VALUES (?, ?, ?, ?)", values) is not None:
            self._patience_ms = BUSY_TIMEOUT_MS

    def _ask(self, statement: str, values: tuple[Any, ...]) -> list[Any] | None:
        """The rows; None where the file does not answer."""
        if self._off:
            return None
        try:
            connection = self._connection()
            connection.execute(f"PRAGMA busy_timeout = {self._patience_ms}")
            return connection.execute(statement, values).fetchall()
        except (sqlite3.Error, UnicodeError) as error:
            self._fail(error)
            return None

    def stats(self) -> dict[str, Any]:
        """How many replies it holds, by model, and its size."""
        rows = self._connection().execute("SELECT model, COUNT(*) FROM responses GROUP BY model")
        by_model = {str(model): count for model, count in rows}
        size = size_of(self.path) + size_of(Path(f"{self.path}-wal"))
        return {"replies": sum(by_model.values()), "by_model": by_model, "bytes": size}

    def clear(self) -> int:
        """Forgets everything; returns how many replies that were."""
        connection = self._connection()
        count = connection.execute("DELETE FROM responses").rowcount
        connection.execute("VACUUM")
        return int(count)

    def close(self) -> None:
        """Ends its use; a call that is still under way finds nothing and keeps nothing."""
        with self._lock:
            self._off = True
            for connection in self._connections:
                connection.close()
            self._connections.clear()
            self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            # Autocommit: every statement stands for itself, so no thread holds a lock for long.
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self._local.connection = connection
            with self._lock:
                self._connections.append(connection)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute(f"PRAGMA busy_timeout = {self._patience_ms}")
            connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _check_own(self, *, make_private: bool = False) -> None:
        """Refuses a file that others could have put answers into."""
        own = getattr(os, "geteuid", lambda: None)()  # None on Windows, where modes say nothing
        for file in _files(self.path):
            with contextlib.suppress(FileNotFoundError):  # all but the first come and go
                found = file.stat()
                if not stat.S_ISREG(found.st_mode):
                    raise OSError("it is not a file")
                if own is not None and found.st_uid != own:
                    raise OSError("it belongs to another user")
                if own is not None and found.st_mode & stat.S_IWOTH:
                    raise OSError("anybody may write to it")
                if make_private and found.st_mode & 0o077:
                    file.chmod(0o600)

    def _check_kind(self) -> None:
        """Refuses a file of another kind, and leaves it as it is."""
        if not self.path.stat().st_size:
            return
        looking = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            looking.execute("PRAGMA trusted_schema = OFF")
            looking.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            found = set(looking.execute("SELECT type, name FROM sqlite_master"))
        finally:
            looking.close()
        if found - {("table", "responses")}:
            raise sqlite3.DatabaseError("it is a database of another kind")

    def _fail(self, error: Exception) -> None:
        """Says what failed. After a passing error none waits until it works; else none asks."""
        passing = _code(error) in PASSING
        with self._lock:
            said = self._off or (passing and self._was_locked)
            if passing:
                self._was_locked, self._patience_ms = True, 0
            else:
                self._off = True
        if not said:
            what = "asking it again later" if passing else "going on without it"
            logger.warning("the cache %s fails (%s); %s", self.path, error, what)


def _files(path: Path) -> list[Path]:
    return [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]


def _code(error: BaseException) -> int:
    """SQLite's code, without what it adds to tell kinds of one error apart."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _is_damaged(path: Path, error: BaseException) -> bool:
    """Whether this is a cache that SQLite can no longer read, and surely nobody's other file."""
    if _code(error) not in DAMAGED:
        return False
    with path.open("rb") as file:
        page = file.read(4096)
    ours = f"CREATE TABLE {TABLE}".encode() in page and page.count(b"CREATE ") == 1
    in_place = path.resolve() == default_cache_file().resolve()
    return page.startswith(b"SQLite format 3\0") and (ours or in_place)


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _reply(stored: Any) -> Reply | None:
    """The reply that was kept as JSON; None for anything that is not one."""
    try:
        values = parse_json(stored) if isinstance(stored, str) else None
    except ValueError:
        return None
    if not isinstance(values, dict) or set(values) != {item.name for item in fields(Reply)}:
        return None
    for item in fields(Reply):
        value, kind = values[item.name], type(item.default)
        if item.name == "text":
            right = isinstance(value, str)
        elif kind is bool:
            right = isinstance(value, bool)
        else:
            right = type(value) in (int, kind) and 0 <= value <= MOST_TOLD
        if not right:
            return None
    return Reply(**values)


def run(argv: Sequence[str] | None = None, prog: str = "query-mutator cache") -> int:
    """What the command does; errors are raised."""
    parser = OneLineParser(prog=prog, description=__doc__)
    parser.add_argument("command", choices=["stats", "clear"])
    parser.add_argument("--cache", metavar="FILE", help="default: in the user's cache directory")
    args = parser.parse_args(argv)
    path = Path(args.cache) if args.cache else default_cache_file()
    if not path.exists():
        raise UserError(f"there is no cache {path}")
    if path.is_file() and not path.stat().st_size:  # to open it would make it a database
        print(printable(f"{path} is empty: it holds no replies"))
        return 0
    try:
        with contextlib.closing(ResponseCache(path, instead=ANOTHER)) as cache:
            if args.command == "clear":
                print(printable(f"{cache.clear()} replies removed from {path}"))
                return 0
            stats = cache.stats()
            size_mb = stats["bytes"] / 1e6
            print(printable(f"{path}: {stats['replies']} replies, {size_mb:.1f} MB"))
            for model, count in sorted(stats["by_model"].items()):
                print(printable(f"  {model}: {count}"))
    except (UserError, sqlite3.Error) as error:
        if args.command == "clear" and _is_damaged(path, error.__cause__ or error):
            for file in reversed(_files(path.resolve())):
                file.unlink(missing_ok=True)
            print(printable(f"{path} was damaged and is removed"))
        elif isinstance(error, UserError):
            raise
        else:
            raise UserError(f"cannot {args.command} the cache {path}: {error}") from error
    return 0
