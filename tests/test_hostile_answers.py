"""Answers with anything in them: a value of the right types, or a failed call."""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from query_mutator.base.errors import UserError
from query_mutator.models.cache import ResponseCache, cache_key
from query_mutator.models.calls import Call, CallFailedError, Reply
from query_mutator.models.dialects import DIALECTS, Dialect
from query_mutator.models.dialects.base import LONGEST_TOKEN, bounded
from query_mutator.models.encoders import Encoder, load_encoder, refuse_pickles
from query_mutator.models.http import HttpServer
from query_mutator.servers.simulated import SimulatedServer
from tests.conftest import SIMULATED_MODELS
from tests.nightly import examples

FUZZ = examples(60, suppress_health_check=list(HealthCheck))
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -1, 1e300, math.inf, -math.inf, math.nan, "length", "\ud800", "\0"])
    | st.floats()
    | st.text(max_size=5)
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=3,
)
DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of the fields, each as it should be or anything at all."""
    return st.fixed_dictionaries({}, optional={key: val | ANYTHING for key, val in fields.items()})


MESSAGES = some(content=st.text(), role=st.just("assistant"))
CHATS = some(
    message=MESSAGES,
    done=st.just(True),
    done_reason=st.just("length"),
    prompt_eval_count=st.integers(0, 9),
    eval_count=st.integers(0, 9),
    **dict.fromkeys(DURATIONS, st.integers(0, 10**10)),
    choices=st.lists(some(message=MESSAGES, finish_reason=st.just("stop")), max_size=2),
    usage=some(prompt_tokens=st.integers(0, 9), completion_tokens=st.integers(0, 9)),
)
ROWS = st.lists(st.floats(-1, 1), min_size=2, max_size=2)
EMBEDDINGS = some(
    embeddings=st.lists(ROWS | ANYTHING, max_size=3),
    data=st.lists(some(embedding=ROWS, index=st.integers(0, 3)), max_size=3),
)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(body=CHATS)
@FUZZ
def test_whatever_an_answer_holds_a_reply_is_made_of_the_right_types(
    dialect: Dialect, body: dict[str, Any]
) -> None:
    try:
        reply = dialect.read_chat(body)
    except CallFailedError:
        return
    assert type(reply.text) is str
    assert type(reply.cut) is bool
    for tokens in (reply.prompt_tokens, reply.completion_tokens):
        assert type(tokens) is int
        assert 0 <= tokens <= 10**12
    for seconds in (reply.queue_s, reply.load_s, reply.served_s):
        assert type(seconds) is float
        assert 0 <= seconds <= 14 * 24 * 3600
    bounded(reply, 3).text.encode()  # no half characters


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(body=EMBEDDINGS)
@FUZZ
def test_whatever_an_answer_holds_embeddings_are_finite_rows_of_one_length(
    dialect: Dialect, body: dict[str, Any]
) -> None:
    try:
        rows = dialect.read_embeddings(body)
    except CallFailedError:
        return
    assert len({len(row) for row in rows}) <= 1
    assert all(type(x) is float and abs(x) <= 1e18 for row in rows for x in row)


class _Telling(HttpServer):
    """A server that tells the same on every page."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__("http://127.0.0.1:1")
        self.body = body

    def _request(self, *_: object) -> dict[str, Any]:
        return self.body


LISTS = st.lists(some(name=st.text(), id=st.text(), digest=st.text()), max_size=3)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(body=some(models=LISTS, data=LISTS, total_slots=st.integers(), version=st.text()))
@FUZZ
def test_whatever_a_server_tells_of_itself_models_are_texts_and_slots_a_number(
    dialect: Dialect, body: dict[str, Any]
) -> None:
    server = _Telling(body)
    models = dialect.list_models(server)
    assert all(type(text) is str for pair in models.items() for text in pair)
    slots = dialect.count_slots(server)
    assert slots is None or (type(slots) is int and 1 <= slots <= 10_000)
    dialect.understood_by(server, timeout_s=1)


def test_an_answer_longer_than_its_tokens_is_cut_and_said_to_be() -> None:
    reply = bounded(Reply("x" * 10_000_000), max_tokens=4)
    assert len(reply.text) == 4 * LONGEST_TOKEN
    assert reply.cut
    assert not bounded(Reply("x"), max_tokens=4).cut
    assert bounded(Reply("a\ud83d"), max_tokens=4).text == "a\ufffd"


def test_hostile_text_passes_through_client_cache_and_encoder_as_text(
    models_for: Any, encoder: Encoder
) -> None:
    text = "\x00\x1b]0;owned\x07\u202e\ud800" + "{" * 50_000
    with SimulatedServer(answer=lambda *_: text) as server:
        models = models_for(server)
        call = Call("answer", SIMULATED_MODELS["target_model"], ({"role": "user"},), max_tokens=9)
        outcome = models.client.run([call])[0]
    assert not outcome.failed
    assert len(outcome.text) <= 9 * LONGEST_TOKEN
    assert "\ud800" not in outcome.text
    assert abs(float((encoder.encode([outcome.text])[0] ** 2).sum()) - 1) < 1e-3


@given(stored=some(text=st.text(), cut=st.booleans(), prompt_tokens=st.integers(0, 5)))
@FUZZ
def test_a_cache_row_is_a_reply_or_no_answer(
    tmp_path_factory: pytest.TempPathFactory, stored: dict[str, Any]
) -> None:
    whole = {**json.loads(json.dumps(vars(Reply("x")))), **stored}
    path = tmp_path_factory.mktemp("cache") / "cache.sqlite"
    cache = ResponseCache(path)
    cache.put(b"k", "m", Reply("x"))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE responses SET reply = ?", (json.dumps(whole),))
    connection.close()
    reply = cache.get(b"k")
    cache.close()
    if reply is not None:
        assert type(reply.text) is str
        assert type(reply.cut) is bool
        assert 0 <= reply.prompt_tokens <= 1e12


def test_a_cache_that_others_could_have_filled_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    ResponseCache(path).close()
    path.chmod(0o640)
    ResponseCache(path).close()
    assert path.stat().st_mode & 0o777 == 0o600, "what is the user's is made private"
    path.chmod(0o666)
    with pytest.raises(UserError, match="anybody may write"):
        ResponseCache(path)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE accounts (name)")
    with pytest.raises(UserError, match="of another kind"):
        ResponseCache(other)
    with pytest.raises(UserError, match="not a file"):
        ResponseCache("/dev/null")


def test_a_truncated_cache_and_a_full_disk_do_not_stop_a_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cache.sqlite"
    cache = ResponseCache(path)
    call = Call("answer", "m", ({"role": "user", "content": "x"},), max_tokens=1)
    for number in range(200):
        cache.put(cache_key("ollama", str(number), call), "m", Reply("x" * 500))
    cache.close()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with contextlib.suppress(UserError):  # found out at once, or with the first page that lacks
        cut = ResponseCache(path)
        for number in range(200):
            found = cut.get(cache_key("ollama", str(number), call))
            assert found in (None, Reply("x" * 500))
    full = ResponseCache(tmp_path / "full.sqlite")
    full._connection().execute("PRAGMA max_page_count = 3")
    for number in range(200):
        full.put(str(number).encode(), "m", Reply("x" * 2000))
    assert "going on without it" in caplog.text


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(UserError, match="may hold code"):
        load_encoder(str(tmp_path))
    (tmp_path / "model.safetensors").touch()
    refuse_pickles(tmp_path)
