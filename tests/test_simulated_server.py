"""The simulated Ollama, seen by its clients: real HTTP over loopback."""

from __future__ import annotations

import asyncio
import doctest
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

import query_mutator.servers.simulated
from query_mutator.servers.simulated import (
    Fault,
    SimulatedServer,
    answer_from_questions,
    default_answer,
)
from query_mutator.servers.simulated.__main__ import read_latencies
from query_mutator.servers.simulated.faults import ELSEWHERE, HOSTILE_TEXT
from query_mutator.servers.simulated.latency import Latency
from query_mutator.servers.simulated.scheduler import Slots
from query_mutator.servers.simulated.stats import Recorder
from tests.waiting import ENOUGH_S, wait_until

MODEL = "llama3.2:3b"
OTHER_MODEL = "qwen2.5:3b"
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def plain_server() -> Iterator[SimulatedServer]:
    """A server without latency or faults, for tests that do not look at its counters."""
    with SimulatedServer(models=(MODEL, OTHER_MODEL, "untagged")) as server:
        yield server


def post(server: SimulatedServer, path: str, body: Any, **more: Any) -> requests.Response:
    return requests.post(server.url + path, json=body, timeout=ENOUGH_S, **more)


def chat_body(prompt: str = "why is the sky blue", **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}]
    return {"model": MODEL, "messages": messages, "stream": False} | more


def chat(server: SimulatedServer, prompt: str = "why is the sky blue", **more: Any) -> Any:
    response = post(server, "/api/chat", chat_body(prompt, **more))
    assert response.status_code == 200, response.text
    return response.json()


def chat_text(server: SimulatedServer) -> str:
    return str(chat(server)["message"]["content"])


def raw_chat(**more: Any) -> bytes:
    body = json.dumps(chat_body(**more)).encode()
    return b"POST /api/chat HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def read_until_closed(peer: socket.socket) -> bytes:
    received = b""
    while piece := peer.recv(65_536):
        received += piece
    return received


def in_parallel(calls: int, work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(calls) as pool:
        return list(pool.map(work, range(calls)))


# The native API


def test_a_chat_without_streaming_tells_durations_that_add_up() -> None:
    with (
        SimulatedServer(slots=1, mean_latency_s=0.1, load_time_s=0.01) as server,
        ThreadPoolExecutor(2) as pool,
    ):
        first = pool.submit(chat, server, "the first question")
        wait_until(lambda: server.stats.served == 1)
        second = pool.submit(chat, server, "the second question")
    waits = []
    for answer in (first.result(), second.result()):
        assert answer["done"] is True
        assert answer["done_reason"] == "stop"
        assert answer["message"]["role"] == "assistant"
        assert answer["prompt_eval_duration"] + answer["eval_duration"] == 100_000_000
        told = [answer[f"{part}_duration"] for part in ("load", "prompt_eval", "eval")]
        waits.append(answer["total_duration"] - sum(told))
    assert 0 <= waits[0] < waits[1]
    assert first.result()["load_duration"] >= 10_000_000


def test_chat_and_generate_stream_unless_told_otherwise(plain_server: SimulatedServer) -> None:
    for path, body in (
        ("/api/chat", {"messages": [{"role": "user", "content": "name a colour"}]}),
        ("/api/generate", {"prompt": "name a colour"}),
    ):
        response = post(plain_server, path, {"model": MODEL} | body)
        assert response.headers["Content-Type"] == "application/x-ndjson"
        assert response.headers["Transfer-Encoding"] == "chunked"
        *pieces, last = map(json.loads, response.text.splitlines())
        whole = post(plain_server, path, {"model": MODEL, "stream": False} | body).json()

        def text(line: Any) -> str:
            return str(line["message"]["content"] if "message" in line else line["response"])

        assert not any(piece["done"] or "total_duration" in piece for piece in pieces)
        assert "".join(map(text, pieces)) == text(whole)
        assert last["done"]
        assert last["eval_count"] == len(pieces) == whole["eval_count"]
        assert {"total_duration", "load_duration", "prompt_eval_count"} <= set(last)


def test_an_answer_longer_than_num_predict_is_cut(plain_server: SimulatedServer) -> None:
    whole = chat(plain_server)
    cut = chat(plain_server, options={"num_predict": 5})
    assert (cut["done_reason"], cut["eval_count"]) == ("length", 5)
    assert whole["message"]["content"].startswith(cut["message"]["content"])
    assert whole["message"]["content"] != cut["message"]["content"]
    assert chat(plain_server, options={"num_predict": -1})["message"] == whole["message"]


def test_answers_depend_on_the_request_alone(plain_server: SimulatedServer) -> None:
    def text(prompt: str, **options: Any) -> str:
        return str(chat(plain_server, prompt, options=options)["message"]["content"])

    assert text("what is a lake") == text("what is a lake")
    assert text("what is a lake") != text("what is a river")
    assert text("what is a lake", seed=1, temperature=0) == text(
        "what is a lake", seed=2, temperature=0
    )
    assert text("what is a lake", seed=1, temperature=1) != text(
        "what is a lake", seed=2, temperature=1
    )


def test_a_prompt_beyond_num_ctx_is_cut_without_an_error(plain_server: SimulatedServer) -> None:
    answer = chat(plain_server, "word " * 100, options={"num_ctx": 64})
    assert answer["prompt_eval_count"] == 32


def test_stop_sequences_and_json_format_are_honoured(plain_server: SimulatedServer) -> None:
    assert "," not in chat(plain_server, options={"stop": [","]})["message"]["content"]
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
    assert list(json.loads(chat(plain_server, format=schema)["message"]["content"])) == ["colour"]


def test_an_empty_prompt_loads_and_unloads_a_model() -> None:
    with SimulatedServer() as server:
        body = {"model": MODEL, "stream": False}
        assert post(server, "/api/generate", body).json()["done_reason"] == "load"
        loaded = requests.get(server.url + "/api/ps", timeout=ENOUGH_S).json()["models"]
        assert [model["name"] for model in loaded] == [MODEL]
        assert loaded[0]["context_length"] == 4096
        unloaded = post(server, "/api/generate", body | {"keep_alive": 0}).json()
        assert unloaded["done_reason"] == "unload"
        assert requests.get(server.url + "/api/ps", timeout=ENOUGH_S).json() == {"models": []}


def test_the_small_endpoints_answer_as_ollama_does(plain_server: SimulatedServer) -> None:
    url = plain_server.url
    assert requests.get(url, timeout=ENOUGH_S).text == "Ollama is running"
    head = requests.head(url, timeout=ENOUGH_S)
    assert (head.status_code, head.text) == (200, "")
    assert requests.get(f"{url}/api/version", timeout=ENOUGH_S).json() == {"version": "0.33.0"}
    tags = requests.get(f"{url}/api/tags", timeout=ENOUGH_S).json()["models"]
    assert [model["name"] for model in tags] == [MODEL, OTHER_MODEL, "untagged:latest"]
    shown = post(plain_server, "/api/show", {"model": MODEL}).json()
    assert {"details", "model_info", "capabilities"} <= set(shown)
    assert requests.get(f"{url}/nowhere", timeout=ENOUGH_S).status_code == 404
    assert requests.get(f"{url}/api/chat", timeout=ENOUGH_S).status_code == 405


def test_a_pulled_model_can_be_used() -> None:
    with SimulatedServer() as server:
        lines = post(server, "/api/pull", {"model": "tiny"}).text.splitlines()
        progress = [json.loads(line) for line in lines]
        assert progress[-1] == {"status": "success"}
        assert any(line.get("completed") == line.get("total", -1) for line in progress)
        assert chat(server, model="tiny:latest")["done"]


def test_embeddings_of_similar_texts_are_close(plain_server: SimulatedServer) -> None:
    texts = ["what is the capital of france", "the capital of france", "boil two eggs slowly"]
    answer = post(plain_server, "/api/embed", {"model": MODEL, "input": texts}).json()
    first, near, far = answer["embeddings"]

    def cosine(left: list[float], right: list[float]) -> float:
        return sum(a * b for a, b in zip(left, right, strict=True))

    assert cosine(first, first) == pytest.approx(1.0)
    assert cosine(first, near) > cosine(first, far)
    one = post(plain_server, "/api/embed", {"model": MODEL, "input": texts[0]}).json()
    assert one["embeddings"] == [first]


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        ("/api/chat", chat_body(model="nope"), 404, "model 'nope' not found"),
        ("/api/generate", {"model": "nope"}, 404, "model 'nope' not found"),
        ("/api/chat", {"messages": []}, 400, "model is required"),
        ("/api/generate", {"prompt": "hello"}, 404, "model '' not found"),
        ("/api/chat", chat_body(options={"num_ctx": "big"}), 500, "must be of type integer"),
        ("/api/chat", chat_body(messages="hello"), 400, "cannot unmarshal"),
        ("/api/chat", chat_body(keep_alive="soon"), 400, "invalid duration"),
        ("/api/embed", {"model": "nope", "input": "x"}, 404, "model 'nope' not found"),
    ],
)
def test_a_wrong_request_gets_ollamas_error(
    plain_server: SimulatedServer, path: str, body: Any, status: int, text: str
) -> None:
    response = post(plain_server, path, body)
    assert response.status_code == status
    assert text in response.json()["error"]


@pytest.mark.parametrize("body", [b"", b"{broken", b"[]"])
def test_a_body_that_is_no_json_object_is_a_400(plain_server: SimulatedServer, body: bytes) -> None:
    response = requests.post(f"{plain_server.url}/api/chat", data=body, timeout=ENOUGH_S)
    assert response.status_code == 400
    assert response.json()["error"]


def test_an_unknown_option_is_ignored(plain_server: SimulatedServer) -> None:
    assert chat(plain_server, options={"no_such_option": [1]})["done"]


# The OpenAI-compatible API


def test_chat_completions_count_tokens_and_tell_why_they_ended(
    plain_server: SimulatedServer,
) -> None:
    body = chat_body(max_tokens=4)
    answer = post(plain_server, "/v1/chat/completions", body).json()
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 4
    whole = chat(plain_server)["message"]["content"]
    assert whole.startswith(choice["message"]["content"])


def test_chat_completions_stream_as_server_sent_events(plain_server: SimulatedServer) -> None:
    response = post(plain_server, "/v1/chat/completions", chat_body(stream=True))
    assert response.headers["Content-Type"] == "text/event-stream"
    *events, last = [line[len("data: ") :] for line in response.text.split("\n\n") if line]
    assert last == "[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events]
    assert choices[-1]["finish_reason"] == "stop"
    text = "".join(choice["delta"]["content"] for choice in choices)
    assert text == chat(plain_server)["message"]["content"]


def test_errors_of_the_openai_api_have_a_message_and_a_type(plain_server: SimulatedServer) -> None:
    response = post(plain_server, "/v1/chat/completions", chat_body(model="nope"))
    assert response.status_code == 404
    error = response.json()["error"]
    assert (error["message"], error["type"]) == ("model 'nope' not found", "not_found_error")


def test_a_server_that_speaks_only_openai_has_no_native_api() -> None:
    with SimulatedServer(dialects=("openai",), props=True, slots=3) as server:
        for path in ("/", "/api/tags", "/api/version"):
            assert requests.get(server.url + path, timeout=ENOUGH_S).status_code == 404
        assert post(server, "/api/chat", chat_body()).status_code == 404
        assert post(server, "/v1/chat/completions", chat_body()).status_code == 200
        assert requests.get(f"{server.url}/props", timeout=ENOUGH_S).json()["total_slots"] == 3
        models = requests.get(f"{server.url}/v1/models", timeout=ENOUGH_S).json()["data"]
        assert [model["id"] for model in models] == [OTHER_MODEL, MODEL]


def test_props_are_served_only_where_asked_for(plain_server: SimulatedServer) -> None:
    assert requests.get(f"{plain_server.url}/props", timeout=ENOUGH_S).status_code == 404


# The official clients


def test_the_ollama_client_works(plain_server: SimulatedServer) -> None:
    import ollama

    client = ollama.Client(plain_server.url)
    messages = [{"role": "user", "content": "why is the sky blue"}]
    whole = client.chat(MODEL, messages)
    pieces = list(client.chat(MODEL, messages, stream=True))
    assert whole.message.content == "".join(piece.message.content or "" for piece in pieces)
    assert pieces[-1].done_reason == "stop"
    assert client.generate(MODEL, "hello", system="Tidy.").response == default_answer(
        MODEL, "Tidy.", "hello"
    )
    assert MODEL in [model.model for model in client.list().models]
    assert MODEL in [model.model for model in client.ps().models]
    assert client.show(MODEL).modelinfo
    assert len(client.embed(MODEL, ["a", "b"]).embeddings) == 2
    assert list(client.pull(MODEL, stream=True))[-1].status == "success"
    with pytest.raises(ollama.ResponseError, match="model 'nope' not found") as caught:
        client.chat("nope", messages)
    assert caught.value.status_code == 404


def test_the_ollama_client_sees_an_error_in_mid_stream() -> None:
    import ollama

    with SimulatedServer(faults=[Fault("stream_error")]) as server:
        stream = ollama.Client(server.url).generate(MODEL, "tell me of rivers", stream=True)
        with pytest.raises(ollama.ResponseError, match="unexpectedly stopped"):
            list(stream)


def test_the_openai_client_works(plain_server: SimulatedServer) -> None:
    import openai

    client = openai.OpenAI(base_url=f"{plain_server.url}/v1", api_key="none", max_retries=0)
    messages = [{"role": "user", "content": "why is the sky blue"}]
    ask: dict[str, Any] = {"model": MODEL, "messages": messages}
    whole = client.chat.completions.create(**ask)
    chunks = list(
        client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True})
    )
    text = "".join(chunk.choices[0].delta.content for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage == whole.usage
    assert client.completions.create(model=MODEL, prompt="hello").choices[0].text
    assert MODEL in [model.id for model in client.models.list()]
    with pytest.raises(openai.NotFoundError, match="not found"):
        client.chat.completions.create(**(ask | {"model": "nope"}))


def test_the_openai_client_gets_past_a_rate_limit() -> None:
    import openai

    with SimulatedServer(faults=[Fault("rate_limited", retry_after_s=0.01, times=2)]) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=2)
        messages: Any = [{"role": "user", "content": "hello"}]
        assert client.chat.completions.create(model=MODEL, messages=messages).choices
        assert server.stats.statuses == {429: 2, 200: 1}


# Slots, queue and memory


def test_no_more_calls_are_served_than_there_are_slots() -> None:
    with SimulatedServer(slots=3, recorded_latencies_s=[2.0] * 3 + [0.01] * 7) as server:
        in_parallel(10, lambda n: chat(server, f"question {n}"))
        stats = server.stats
    assert stats.generation_calls == stats.generations_answered == 10
    assert stats.max_served == 3
    assert stats.max_in_flight == 10
    assert stats.max_queued == 7
    assert (stats.in_flight, stats.served, stats.queued) == (0, 0, 0)
    assert stats.busy_s == pytest.approx(3 * 2.0 + 7 * 0.01)


def test_the_queue_is_first_come_first_served() -> None:
    served: list[str] = []

    def answer(model: str, system: str, prompt: str) -> str:
        served.append(prompt)
        return "yes"

    prompts = [f"question {n}" for n in range(6)]
    latencies = [2.0, *[0.001] * 5]
    with SimulatedServer(slots=1, recorded_latencies_s=latencies, answer=answer) as server:
        with ThreadPoolExecutor(6) as pool:
            for prompt in prompts:
                arrived = server.stats.generation_calls
                pool.submit(chat, server, prompt)
                wait_until(lambda: server.stats.generation_calls > arrived)  # noqa: B023
        assert server.stats.queue_lengths == (0, 0, 1, 2, 3, 4)
    assert served == prompts


def test_models_share_the_slots_unless_each_has_its_own() -> None:
    for slots_per_model, most_served in ((False, 1), (True, 2)):
        # Neither call ends before the server does: what is seen does not depend on who is fast.
        with (
            ThreadPoolExecutor(2) as pool,
            SimulatedServer(
                slots=1, slots_per_model=slots_per_model, recorded_latencies_s=[60.0, 60.0]
            ) as server,
        ):
            pool.submit(chat, server)
            wait_until(lambda: server.stats.served == 1)
            pool.submit(chat, server, model=OTHER_MODEL)
            wait_until(lambda: server.stats.served + server.stats.queued == 2)
            assert server.stats.served == most_served


def test_the_queue_is_bounded_only_for_calls_that_need_a_load() -> None:
    with SimulatedServer(slots=1, mean_latency_s=0.01, load_time_s=2.0, max_queue=4) as server:
        answers = in_parallel(8, lambda n: post(server, "/api/chat", chat_body(f"question {n}")))
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses == [200] * 4 + [503] * 4
        busy = next(answer for answer in answers if answer.status_code == 503)
        assert busy.json() == {
            "error": "server busy, please try again.  maximum pending requests exceeded"
        }
        assert "Retry-After" not in busy.headers
        in_parallel(20, lambda n: chat(server, f"question {n}"))
        assert server.stats.max_queued > 4
        assert server.stats.loads_by_model == {MODEL: 1}


def test_the_least_recently_used_model_makes_room() -> None:
    with SimulatedServer(models=("a", "b", "c"), max_loaded=2) as server:
        for model in ("a", "b", "a", "c", "a", "b"):
            chat(server, model=model)
        assert server.stats.loads_by_model == {"a": 1, "b": 2, "c": 1}
        assert server.stats.model_loads == 4


def test_a_load_waits_for_a_busy_model_to_drain() -> None:
    with SimulatedServer(max_loaded=1, recorded_latencies_s=[2.0, 0.0]) as server:
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(chat, server)
            wait_until(lambda: server.stats.served == 1)
            second = pool.submit(chat, server, model=OTHER_MODEL)
        assert server.stats.max_served == 1
        assert first.result()["load_duration"] < second.result()["load_duration"]
        assert server.stats.loads_by_model == {MODEL: 1, OTHER_MODEL: 1}


def test_another_num_ctx_reloads_the_model() -> None:
    with SimulatedServer() as server:
        for num_ctx in (2048, 2048, 4096, 2048):
            chat(server, options={"num_ctx": num_ctx})
        chat(server, options={"num_ctx": 2048, "temperature": 0.5})
        assert server.stats.model_loads == 3


def test_keep_alive_of_zero_unloads_after_the_call() -> None:
    with SimulatedServer() as server:
        chat(server, keep_alive=0)
        chat(server, keep_alive="5m")
        chat(server)
        assert server.stats.model_loads == 2


@pytest.mark.parametrize(("frees_slot", "still_served"), [(True, 0), (False, 1)])
def test_a_client_that_goes_away_frees_its_slot_or_not(frees_slot: bool, still_served: int) -> None:
    with SimulatedServer(
        slots=1, recorded_latencies_s=[30.0, 0.0], disconnect_frees_slot=frees_slot
    ) as server:
        with pytest.raises(requests.exceptions.ReadTimeout):
            requests.post(f"{server.url}/api/chat", json=chat_body(), timeout=0.4)
        if frees_slot:
            wait_until(lambda: server.stats.in_flight == 0)
            assert chat(server)["done"]
        assert server.stats.served == still_served


def test_no_slot_is_lost_to_clients_that_give_up_while_they_queue() -> None:
    sent = raw_chat()
    with SimulatedServer(slots=2, mean_latency_s=0.02) as server:
        peers = []
        for n in range(200):
            peers.append(socket.create_connection(("127.0.0.1", server.port)))
            peers[-1].sendall(sent)
            if n % 3:
                peers.pop(n % len(peers)).close()
        for peer in peers:
            peer.close()
        wait_until(lambda: server.stats.requests == 200 and server.stats.in_flight == 0)
        assert (server.stats.served, server.stats.queued) == (0, 0)
        server.reset_stats()
        in_parallel(8, lambda n: chat(server, f"question {n}", options={"num_predict": 1}))
        assert server.stats.max_served == 2


def test_a_slot_given_to_a_call_that_is_just_being_cancelled_goes_to_the_next() -> None:
    async def scenario() -> None:
        slots = Slots(1, Recorder(log_size=1))
        await slots.take()
        given_up = asyncio.create_task(slots.take())
        patient = asyncio.create_task(slots.take())
        await asyncio.sleep(0)
        slots.give_back()
        given_up.cancel()
        await asyncio.wait_for(patient, timeout=ENOUGH_S)
        assert given_up.cancelled()

    asyncio.run(scenario())


# Latencies


def latencies_ns(server: SimulatedServer, prompts: list[str]) -> list[int]:
    answers = [chat(server, prompt) for prompt in prompts]
    return [answer["prompt_eval_duration"] + answer["eval_duration"] for answer in answers]


def test_latencies_do_not_depend_on_the_order_of_arrival() -> None:
    prompts = [f"question {n}" for n in range(8)]
    with SimulatedServer(mean_latency_s=0.003, sigma=1.0, seed=1) as server:
        forward = latencies_ns(server, prompts)
        backward = latencies_ns(server, prompts[::-1])
    with SimulatedServer(mean_latency_s=0.003, sigma=1.0, seed=2) as server:
        other_seed = latencies_ns(server, prompts)
    assert forward == backward[::-1]
    assert len(set(forward)) == len(prompts)
    assert not set(forward) & set(other_seed)


def test_lognormal_latencies_have_the_mean_that_was_asked_for() -> None:
    latency = Latency(mean_s=0.25, sigma=0.5, recorded_s=None, seconds_per_token=0.0, seed=0)
    drawn = [latency.of_call(str(n), 10) for n in range(20_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(0.25, rel=0.02)


def test_recorded_latencies_are_played_in_order() -> None:
    with SimulatedServer(recorded_latencies_s=[0.001, 0.004, 0.002]) as server:
        told = latencies_ns(server, ["same"] * 4)
    assert told == [1_000_000, 4_000_000, 2_000_000, 1_000_000]


def test_each_output_token_can_add_to_the_latency() -> None:
    with SimulatedServer(mean_latency_s=0.001, seconds_per_token=0.001) as server:
        answer = chat(server, options={"num_predict": 4})
    assert answer["prompt_eval_duration"] + answer["eval_duration"] == 5_000_000


# Answers


def test_a_call_with_a_system_message_gets_the_prompt_tidied() -> None:
    mutated = default_answer(MODEL, "Tidy the question.", "  how do   i boil an egg ")
    assert mutated.endswith("How do i boil an egg?")
    request = default_answer(
        MODEL, "Tidy the question.", "Rewrite this question: how do i boil an egg"
    )
    assert request == mutated
    prefixes = {default_answer(MODEL, f"System {n}", "why")[:-4] for n in range(50)}
    assert len(prefixes) > 2


def test_a_well_asked_question_gets_a_shorter_answer_on_the_topic() -> None:
    plain = default_answer(MODEL, "", "why does bread rise overnight")
    better = default_answer(MODEL, "", "Question: why does bread rise overnight")
    assert len(better) < len(plain)
    assert all(word in better.lower() for word in ("does", "bread", "rise", "overnight"))


@pytest.fixture
def questions_file(tmp_path: Path) -> Path:
    rows = [
        {"question": f"what   is item {n} of the list", "reference": f"It is r{n}."}
        for n in range(300)
    ]
    rows += [
        {"question": f"Which town has number {n}?", "reference": f"Town r{n}."} for n in range(300)
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_the_best_form_of_a_prompt_depends_on_the_kind_of_question(questions_file: Path) -> None:
    answer = answer_from_questions(questions_file)
    forms = ("{}", "Question: {}\nAnswer:", "{}\nAnswer in one short sentence.")
    rows = [json.loads(line) for line in questions_file.read_text(encoding="utf-8").splitlines()]

    def hits(kind: list[Any], form: str) -> float:
        said = [answer(MODEL, "", form.format(row["question"])) == row["reference"] for row in kind]
        return said.count(True) / len(said)

    messy = [hits(rows[:300], form) for form in forms]
    clear = [hits(rows[300:], form) for form in forms]
    assert messy == pytest.approx([0.35, 0.90, 0.50], abs=0.09)
    assert clear == pytest.approx([0.60, 0.65, 0.95], abs=0.09)


def test_a_reworded_question_is_matched_by_its_words(questions_file: Path) -> None:
    answer = answer_from_questions(questions_file)
    forms = [f"Question: {'please ' * n} the town with number 217? Answer:" for n in range(20)]
    assert "Town r217." in {answer(MODEL, "", form) for form in forms}


def test_a_questions_file_with_a_wrong_line_is_refused_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "a", "reference": "b"}\n{"question": "c"}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="line 2: expected a JSON object"):
        answer_from_questions(path)


def test_answers_come_from_the_callable_that_was_given() -> None:
    with SimulatedServer(
        answer=lambda model, system, prompt: f"{model}|{system}|{prompt}"
    ) as server:
        messages = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "reply"},
            {"role": "user", "content": "second"},
        ]
        assert chat(server, messages=messages)["message"]["content"] == f"{MODEL}|Be brief.|second"


def test_a_callable_that_fails_is_a_500(caplog: pytest.LogCaptureFixture) -> None:
    def fail(model: str, system: str, prompt: str) -> str:
        raise RuntimeError("out of words")

    with SimulatedServer(answer=fail) as server:
        response = post(server, "/api/chat", chat_body())
        assert response.status_code == 500
        assert "out of words" in response.json()["error"]
        assert server.stats.served == 0


# Faults


@pytest.mark.parametrize(
    ("kind", "status", "text"),
    [
        ("not_found", 404, f"model '{MODEL}' not found"),
        ("bad_request", 400, "invalid character"),
        ("busy", 503, "server busy, please try again.  maximum pending requests exceeded"),
        ("load_failure", 500, "model requires more system memory"),
        ("process_terminated", 500, "process has terminated"),
        ("runner_crash", 500, "model runner has unexpectedly stopped"),
        ("rate_limited", 429, "too many requests"),
        ("closed_request", 499, "client closed request"),
        ("late_error", 200, "model runner has unexpectedly stopped"),
        ("stream_error", 500, "model runner has unexpectedly stopped"),
    ],
)
def test_an_error_on_demand_looks_like_ollamas(kind: str, status: int, text: str) -> None:
    with SimulatedServer(faults=[Fault(kind, retry_after_s=3)]) as server:
        native = post(server, "/api/chat", chat_body())
        assert native.status_code == status
        assert text in native.json()["error"]
        openai = post(server, "/v1/chat/completions", chat_body())
        assert openai.status_code == status
        assert text in openai.json()["error"]["message"]
        assert (native.headers.get("Retry-After") == "3") is (kind == "rate_limited")
        assert server.stats.faults == {kind: 2}


def test_an_error_in_mid_stream_is_a_line_of_a_200() -> None:
    with SimulatedServer(faults=[Fault("stream_error", text="it broke")]) as server:
        response = post(server, "/api/chat", chat_body(stream=True))
        *pieces, last = map(json.loads, response.text.splitlines())
        assert response.status_code == 200
        assert last == {"error": "it broke"}
        assert pieces
        assert not any(piece["done"] for piece in pieces)


def test_an_unfinished_answer_has_no_durations() -> None:
    with SimulatedServer(faults=[Fault("unfinished")]) as server:
        answer = chat(server)
        lines = post(server, "/api/chat", chat_body(stream=True)).text.splitlines()
        assert server.stats.generations_answered == 0
    assert answer["done"] is False
    assert "total_duration" not in answer
    assert answer["message"]["content"]
    assert lines
    assert not any(json.loads(line)["done"] for line in lines)


def test_a_reset_comes_before_any_answer() -> None:
    with SimulatedServer(faults=[Fault("reset", times=1)]) as server:
        with pytest.raises(requests.exceptions.ConnectionError):
            chat(server)
        assert chat(server)["done"]
        assert server.stats.in_flight == 0


def test_a_hanging_call_leaves_health_checks_green() -> None:
    with SimulatedServer(faults=[Fault("hang")]) as server:
        with pytest.raises(requests.exceptions.ReadTimeout):
            requests.post(f"{server.url}/api/chat", json=chat_body(), timeout=0.2)
        for page in ("/", "/api/tags", "/api/version", "/api/ps", "/v1/models"):
            assert requests.get(server.url + page, timeout=ENOUGH_S).status_code == 200
        wait_until(lambda: server.stats.in_flight == 0)


def test_a_stalling_answer_begins_and_never_ends() -> None:
    with SimulatedServer(faults=[Fault("stall")]) as server:
        response = requests.post(
            f"{server.url}/api/chat", json=chat_body(), timeout=0.2, stream=True
        )
        assert response.raw.read1(10)
        with pytest.raises(requests.exceptions.ConnectionError, match="Read timed out"):
            _ = response.content


def test_a_dripping_head_comes_byte_by_byte() -> None:
    with SimulatedServer(faults=[Fault("header_drip", interval_s=0.0)]) as server:
        assert chat(server)["done"]
    with (
        SimulatedServer(faults=[Fault("header_drip", interval_s=0.05)]) as server,
        socket.create_connection(("127.0.0.1", server.port)) as peer,
    ):
        peer.sendall(raw_chat())
        assert [peer.recv(100) for _ in "HTTP"] == [b"H", b"T", b"T", b"P"]


def test_a_load_ends_with_the_client_that_asked_for_it() -> None:
    with SimulatedServer(load_time_s=0.5) as server:
        for _ in range(2):
            with pytest.raises(requests.exceptions.ReadTimeout):
                requests.post(f"{server.url}/api/chat", json=chat_body(), timeout=0.1)
            wait_until(lambda: server.stats.in_flight == 0)
        assert server.stats.model_loads == 0
        assert requests.get(f"{server.url}/api/ps", timeout=ENOUGH_S).json() == {"models": []}
        assert chat(server)["load_duration"] >= 500_000_000


def test_a_dripping_answer_comes_byte_by_byte() -> None:
    with SimulatedServer(faults=[Fault("drip", interval_s=0.001)]) as server:
        response = post(server, "/api/chat", chat_body(), stream=True)
        sizes = [len(piece) for piece in response.raw.stream(1)]
        assert len(sizes) == int(response.headers["Content-Length"])
    with SimulatedServer(faults=[Fault("drip")]) as server:
        response = post(server, "/api/chat", chat_body(), stream=True)
        response.raw.read(1)
        response.close()


def test_a_truncated_answer_is_shorter_than_it_said() -> None:
    broken = pytest.raises(requests.exceptions.ChunkedEncodingError, match="IncompleteRead")
    with SimulatedServer(faults=[Fault("truncated")]) as server, broken:
        chat(server)


def test_malformed_empty_and_html_answers_are_no_json() -> None:
    for kind, status in (("malformed", 200), ("empty", 200), ("html", 502)):
        with SimulatedServer(faults=[Fault(kind)]) as server:
            response = post(server, "/api/chat", chat_body())
            assert response.status_code == status
            assert server.stats.statuses == {status: 1}
            with pytest.raises(requests.exceptions.JSONDecodeError):
                response.json()


def test_bodies_without_an_answer_are_objects_all_the_same() -> None:
    for kind in ("bare", "wrong_types"):
        with SimulatedServer(faults=[Fault(kind)]) as server:
            answer = post(server, "/api/chat", chat_body()).json()
        assert isinstance(answer, dict)
        assert not isinstance(answer.get("message", {}).get("content"), str)
    with SimulatedServer(faults=[Fault("deep")]) as server, pytest.raises(RecursionError):
        post(server, "/api/chat", chat_body()).json()


def test_hostile_text_comes_whole_and_before_the_answer() -> None:
    with SimulatedServer(faults=[Fault("hostile_text", times=2)]) as server:
        native = chat(server)["message"]["content"]
        choice = post(server, "/v1/chat/completions", chat_body()).json()["choices"][0]
        assert native == choice["message"]["content"] == HOSTILE_TEXT + chat_text(server)
    assert {"\x00", "\x1b", "\ud83d"} <= set(HOSTILE_TEXT)


def test_a_redirect_leads_to_another_host() -> None:
    with SimulatedServer(faults=[Fault("redirect")]) as server:
        response = post(server, "/api/chat", chat_body(), allow_redirects=False)
    assert (response.status_code, response.headers["Location"]) == (307, ELSEWHERE + "api/chat")


def test_a_huge_answer_is_as_large_as_asked_for() -> None:
    with SimulatedServer(faults=[Fault("huge", size_bytes=3_000_000)]) as server:
        response = post(server, "/api/chat", chat_body())
    assert len(response.content) > 3_000_000
    assert response.json()["done"]


def test_a_fault_strikes_only_what_it_matches() -> None:
    faults = [
        Fault("busy", model=OTHER_MODEL),
        Fault("runner_crash", path="/api/generate", calls=(2,)),
        Fault("html", path="/api/t*", times=1),
    ]
    with SimulatedServer(faults=faults) as server:

        def generate() -> int:
            body = {"model": MODEL, "prompt": "hello", "stream": False}
            return post(server, "/api/generate", body).status_code

        assert post(server, "/api/chat", chat_body(model=OTHER_MODEL)).status_code == 503
        assert post(server, "/api/chat", chat_body()).status_code == 200
        assert [generate() for _ in range(3)] == [200, 500, 200]
        tags = [
            requests.get(f"{server.url}/api/tags", timeout=ENOUGH_S).status_code for _ in range(2)
        ]
        assert tags == [502, 200]
        server.set_faults()
        assert post(server, "/api/chat", chat_body(model=OTHER_MODEL)).status_code == 200


def test_faults_by_chance_do_not_depend_on_the_order_and_spare_retries() -> None:
    def failures(order: list[int]) -> set[int]:
        with SimulatedServer(faults=[Fault("busy", probability=0.5, seed=3)]) as server:

            def status(n: int) -> int:
                return post(server, "/api/chat", chat_body(f"question {n}")).status_code

            failed = {n for n in order if status(n) == 503}
            assert any(status(n) == 200 for n in failed)
            return failed

    forward = failures(list(range(30)))
    assert 5 < len(forward) < 25
    assert failures(list(range(29, -1, -1))) == forward


def test_an_unknown_kind_of_fault_is_refused() -> None:
    with pytest.raises(
        ValueError, match="unknown fault 'flood'; the kinds are bad_request, bare, busy"
    ):
        Fault("flood")


# Life and death


def test_a_crash_drops_connections_and_a_restart_takes_the_same_port() -> None:
    with SimulatedServer(recorded_latencies_s=[30.0, 0.0]) as server:
        url = server.url
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(chat, server)
            wait_until(lambda: server.stats.served == 1)
            server.crash()
            assert isinstance(call.exception(), requests.exceptions.ConnectionError)
        with pytest.raises(requests.exceptions.ConnectionError, match="refused"):
            requests.get(url, timeout=ENOUGH_S)
        with pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind(("127.0.0.1", server.port))
        server.restart()
        assert server.url == url
        assert requests.get(f"{url}/api/ps", timeout=ENOUGH_S).json() == {"models": []}
        assert chat(server)["done"]
        assert server.stats.model_loads == 2
        assert server.stats.in_flight == 0


def test_a_server_that_ends_while_crashed_gives_its_port_away() -> None:
    with SimulatedServer() as server:
        server.crash()
        server.crash()
    with SimulatedServer(port=server.port) as heir:
        assert requests.get(f"{heir.url}/api/version", timeout=ENOUGH_S).ok
    server.start()
    server.stop()


def test_a_connection_is_kept_for_further_requests() -> None:
    with SimulatedServer() as server, requests.Session() as session:
        for n in range(5):
            session.post(
                f"{server.url}/api/chat", json=chat_body(stream=n % 2 == 0), timeout=ENOUGH_S
            )
        assert server.stats.connections_opened == 1
        assert server.stats.requests == 5


def test_requests_that_arrive_in_pieces_or_together_are_answered_in_order() -> None:
    def request(path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()

    with SimulatedServer() as server, socket.create_connection(("127.0.0.1", server.port)) as peer:
        for byte in request("/api/version"):
            peer.sendall(bytes([byte]))
        peer.sendall(request("/") + request("/api/tags").replace(b"Host: x", b"Connection: close"))
        received = read_until_closed(peer)
    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.index(b'"version"') < received.index(b"Ollama is") < received.index(b'"models"')


@pytest.mark.parametrize("faults", [(), (Fault("unfinished"),), (Fault("stream_error"),)])
def test_a_stream_has_one_last_chunk_however_it_ends(faults: tuple[Fault, ...]) -> None:
    with (
        SimulatedServer(faults=faults) as server,
        socket.create_connection(("127.0.0.1", server.port)) as peer,
    ):
        peer.sendall(raw_chat(stream=True).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        received = read_until_closed(peer)
    assert received.endswith(b"\r\n0\r\n\r\n")
    assert received.count(b"\r\n0\r\n\r\n") == 1
    assert b"\r\n\r\n0\r\n" not in received


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"POST /api/chat HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /api/chat HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, 431),
    ],
)
def test_what_is_not_http_is_refused(
    plain_server: SimulatedServer, sent: bytes, status: int
) -> None:
    with socket.create_connection(("127.0.0.1", plain_server.port)) as peer:
        peer.sendall(sent)
        assert peer.recv(65_536).startswith(f"HTTP/1.1 {status} ".encode())


def test_the_log_holds_the_last_requests_with_body_and_headers() -> None:
    with SimulatedServer(log_size=2) as server:
        for n in range(3):
            post(server, "/api/chat", chat_body(f"question {n}"), headers={"X-Test": str(n)})
        logged = server.stats.last_requests
        assert [entry.body["messages"][0]["content"] for entry in logged] == [
            "question 1",
            "question 2",
        ]
        assert logged[-1].path == "/api/chat"
        assert logged[-1].headers["x-test"] == "2"
        assert server.stats.calls_by_path == {"/api/chat": 3}
        assert server.stats.calls_by_model == {MODEL: 3}
        server.reset_stats()
        assert server.stats.requests == 0


def test_the_example_in_the_documentation_holds() -> None:
    assert doctest.testmod(query_mutator.servers.simulated).failed == 0


def test_two_servers_run_side_by_side() -> None:
    with SimulatedServer() as one, SimulatedServer() as two:
        chat(one)
        assert one.port != two.port
        assert (one.stats.generation_calls, two.stats.generation_calls) == (1, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_its_address_and_ends_quietly(number: signal.Signals) -> None:
    command = [
        sys.executable,
        "-m",
        "query_mutator.servers.simulated",
        "--port",
        "0",
        "--models",
        "a,b",
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    tags = requests.get(f"{url}/api/tags", timeout=ENOUGH_S).json()["models"]
    process.send_signal(number)
    output, errors = process.communicate(timeout=ENOUGH_S)
    assert [model["name"] for model in tags] == ["a:latest", "b:latest"]
    assert (process.returncode, output, errors) == (0, "", "")


def test_the_command_says_why_it_cannot_start(plain_server: SimulatedServer) -> None:
    command = [
        sys.executable,
        "-m",
        "query_mutator.servers.simulated",
        "--port",
        str(plain_server.port),
    ]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("cannot start the simulated server: ")
    assert "Traceback" not in ended.stderr


def test_latencies_can_be_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "latencies.txt"
    file.write_text("0.25 0.5\n1\n")
    assert read_latencies(str(file)) == [0.25, 0.5, 1.0]
    for content in ("", "-1", "nan", "soon"):
        file.write_text(content)
        with pytest.raises(ValueError, match=r"seconds|convert"):
            read_latencies(str(file))


def test_a_server_of_its_own_ends_with_the_one_who_started_it() -> None:
    code = (
        "import os\nfrom query_mutator.servers.simulated import start_simulated\n"
        "with start_simulated() as child: print(child.process.pid, flush=True); os._exit(9)"
    )
    parent = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert parent.returncode == 9
    child = Path(f"/proc/{int(parent.stdout)}/stat")
    wait_until(lambda: not child.exists() or " Z " in child.read_text())
