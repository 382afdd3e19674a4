"""Sentence embeddings: the packaged MiniLM, a model of the user's, or one on the server."""

from __future__ import annotations

import functools
import os
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from query_mutator.base.errors import ServerUnavailableError, UserError
from query_mutator.base.hub import hub_answers
from query_mutator.base.weights import packaged_model_path
from query_mutator.models.backend import Backend
from query_mutator.models.calls import CallFailedError
from query_mutator.models.client import ModelClient
from query_mutator.models.settings import PACKAGED_MODEL

Vectors = npt.NDArray[np.float32]

REMEMBERED_TEXTS = 20_000
SERVER_CHUNK = 64
BATCH_ROWS = 16
LENGTH_STEP = 8
SHORTEST = 16
"""Shorter rows are multiplied by another kernel when alone, with other last bits."""
TRIED_LENGTHS = (3, 20, 120)
MAX_TOKENS = 512
IN_VAIN = {"outage", "not_found", "bad_request", "closed", "connection"}
"""Failures of an embedding call after which another would fail too."""
SAFE_WEIGHTS = ".safetensors"
PICKLED = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib"}


class Embedder(Protocol):
    """Turns texts into vectors of unit length."""

    dimension: int
    exact_in_batches: bool
    """Whether the bits of a row are the same in any company."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text."""


class Encoder:
    """Embeddings with a memory: each text is computed once."""

    def __init__(self, embedder: Embedder) -> None:
        self.dimension = embedder.dimension
        self._embedder = embedder
        self._to_keep: set[str] = set()
        self._kept: dict[str, Vectors] = {}
        self._remembered: OrderedDict[str, Vectors] = OrderedDict()
        self.seconds = 0.0
        """Time that `encode` spent on texts it did not know."""

    def keep(self, texts: Sequence[str]) -> None:
        """Never forgets texts that are known beforehand.

        They are embedded when they are first needed, beside the calls that are under way; where
        the bits of a row depend on its company, here, in batches that do not depend on time.
        """
        distinct = list(dict.fromkeys(texts))
        if self._embedder.exact_in_batches:
            self._to_keep.update(distinct)
        else:
            self._kept.update(zip(distinct, self._embedder.embed(distinct), strict=True))

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row for each text; texts not yet known are computed in batches."""
        found: dict[str, Vectors] = {}
        for text in texts:
            if text in self._kept:
                found[text] = self._kept[text]
            elif text in self._remembered:
                self._remembered.move_to_end(text)
                found[text] = self._remembered[text]
        unknown = [text for text in dict.fromkeys(texts) if text not in found]
        if unknown:
            started = time.monotonic()
            fresh = dict(zip(unknown, self._embedder.embed(unknown), strict=True))
            self.seconds += time.monotonic() - started
            found |= fresh
            for text, row in fresh.items():
                (self._kept if text in self._to_keep else self._remembered)[text] = row
            while len(self._remembered) > REMEMBERED_TEXTS:
                self._remembered.popitem(last=False)
        rows = [found[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)

    def encode_each(self, texts: Sequence[str]) -> Vectors:
        """As `encode`, but the bits of a row do not depend on its neighbours.

        A batch is padded and multiplied together, and the last bits of a row can change with the
        company it is in. Where answers arrive in any order, that would make runs differ.
        """
        if self._embedder.exact_in_batches or not texts:
            return self.encode(texts)
        return np.concatenate([self.encode([text]) for text in texts])


class SentenceTransformerEmbedder:
    """A sentence-transformers model from a directory (or a hub, where one can be reached)."""

    def __init__(self, path: str, *, torch_threads: int = 1) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        if Path(path).is_dir():
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
        import torch
        import transformers
        from sentence_transformers import SentenceTransformer

        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        torch.set_num_threads(torch_threads)
        self._model: Any = SentenceTransformer(
            path, trust_remote_code=False, model_kwargs={"use_safetensors": True}
        ).eval()
        limit = self._model.get_max_seq_length() or MAX_TOKENS
        self._limit = int(min(limit, MAX_TOKENS))  # a model without a limit says infinity
        self.dimension = int(self._model.get_embedding_dimension())
        # What has no tokenizer of the usual kind, or wants a prompt, is left to the library.
        self._pads = callable(getattr(self._model, "tokenizer", None))
        self._pads = self._pads and not self._model.default_prompt_name
        self.exact_in_batches = self._pads and self._same_bits_in_company()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Texts of similar length go together, padded to a length that is each text's own.

        On one thread, the number of rows then changes no bit of any of them.
        """
        import torch

        if not self._pads:
            options = {"normalize_embeddings": True, "show_progress_bar": False}
            return np.asarray(self._model.encode(list(texts), **options), np.float32)
        rows = np.zeros((len(texts), self.dimension), np.float32)
        with torch.inference_mode():
            for length, places in self._by_padded_length(texts).items():
                for start in range(0, len(places), BATCH_ROWS):
                    chosen = places[start : start + BATCH_ROWS]
                    features = self._model.preprocess([texts[place] for place in chosen])
                    features = _padded(features, length, self._model.device)
                    vectors = self._model(features)["sentence_embedding"]
                    vectors = torch.nn.functional.normalize(vectors, dim=1)
                    rows[chosen] = vectors.float().cpu().numpy()
        return rows

    def _by_padded_length(self, texts: Sequence[str]) -> dict[int, list[int]]:
        """The places of the texts, by the number of tokens they are padded to."""
        tokens = self._model.tokenizer(list(texts), truncation=True, max_length=self._limit)
        lengths = [len(ids) for ids in tokens["input_ids"]]
        places: dict[int, list[int]] = {}
        for place in sorted(range(len(texts)), key=lengths.__getitem__):
            padded = max(SHORTEST, -(-lengths[place] // LENGTH_STEP) * LENGTH_STEP)
            places.setdefault(min(padded, self._limit), []).append(place)
        return places

    def _same_bits_in_company(self) -> bool:
        """Tried out, as it depends on the processor and on the library of its matrix products."""
        for words in TRIED_LENGTHS:
            text = " ".join(["word"] * words)
            alone = self.embed([text])
            for rows in (2, BATCH_ROWS):
                if not (self.embed([text] * rows) == alone).all():
                    return False
        return True


def _padded(features: dict[str, Any], length: int, device: Any) -> dict[str, Any]:
    """The features of a batch, with padding up to `length`, on the device of the model."""
    import torch

    found = {}
    for name, value in features.items():
        if isinstance(value, torch.Tensor):
            if value.ndim == 2 and value.shape[1] < length:
                # What stands in padding does not matter: the attention mask is 0 there.
                value = torch.nn.functional.pad(value, (0, length - value.shape[1]))
            value = value.to(device)
        found[name] = value
    return found


class ServerEmbedder:
    """An embedding model on the model server."""

    exact_in_batches = False

    def __init__(self, client: ModelClient, model: str, *, num_ctx: int) -> None:
        self._client, self._model = client, model
        self._num_ctx = num_ctx
        try:
            self.dimension = self._ask(["warm-up"]).shape[1]
        except (ServerUnavailableError, IndexError) as error:
            raise UserError(f"the embedding model {model} gives no embeddings: {error}") from error

    def embed(self, texts: Sequence[str]) -> Vectors:
        chunks = [texts[i : i + SERVER_CHUNK] for i in range(0, len(texts), SERVER_CHUNK)]
        return np.concatenate([self._ask(chunk) for chunk in chunks])

    def _embedded(self, texts: Sequence[str]) -> list[list[float]]:
        """Without them no step can be seen or scored, so a call that failed is made once more."""
        for wait_s in self._client.settings.pauses.embedding_s:
            try:
                return self._client.embed(self._model, texts, num_ctx=self._num_ctx)
            except CallFailedError as error:
                if error.failure.kind in IN_VAIN:
                    raise
            time.sleep(wait_s)
        return self._client.embed(self._model, texts, num_ctx=self._num_ctx)

    def _ask(self, texts: Sequence[str]) -> Vectors:
        try:
            rows = self._embedded(texts)
            vectors = np.asarray(rows, dtype=np.float32)
        except (CallFailedError, ValueError, TypeError) as error:
            raise ServerUnavailableError(f"embedding with {self._model} failed: {error}") from error
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ServerUnavailableError(f"{self._model} gave no vector for some texts")
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def refuse_pickles(directory: Path) -> None:
    """Refuses a model whose weights are pickles: to load one is to run what it says."""
    for file in sorted(directory.rglob("*")):
        beside = any(other.suffix == SAFE_WEIGHTS for other in file.parent.iterdir())
        if file.suffix.casefold() in PICKLED and not beside:
            raise UserError(
                f"{file} may hold code and is not loaded: --embedding-model takes weights as "
                f"{SAFE_WEIGHTS} only (sentence-transformers saves them so)"
            )


@functools.cache
def _packaged_embedder(torch_threads: int) -> SentenceTransformerEmbedder:
    """The packaged MiniLM, loaded once: training and the evaluation at its end share it."""
    return SentenceTransformerEmbedder(str(packaged_model_path()), torch_threads=torch_threads)


def load_encoder(
    name: str = PACKAGED_MODEL,
    *,
    client: ModelClient | None = None,
    num_ctx: int = 2048,
    torch_threads: int = 1,
) -> Encoder:
    """The encoder a user named: `minilm`, a directory, a model on the server, or a hub's name.

    More than one thread splits matrix products by their size, so that last bits change with the
    company of a text and with the number of cores; and a model on the same cores would starve.
    """
    if name == PACKAGED_MODEL:
        return Encoder(_packaged_embedder(torch_threads))
    directory = Path(os.path.expanduser(name))
    if os.path.isdir(directory):
        return Encoder(_embedder_in(directory, torch_threads))
    offered, hint = _offered_by(client.backends if client is not None else [], name)
    if client is not None and any(backend.serves("embedding", name) for backend in client.backends):
        return Encoder(ServerEmbedder(client, name, num_ctx=num_ctx))
    if "/" in name and not hub_answers():
        hint = f"no hub answers to get it from; {hint}"
    elif "/" in name:
        try:
            return Encoder(SentenceTransformerEmbedder(name, torch_threads=torch_threads))
        except Exception as error:  # a hub out of reach fails in a dozen ways
            hint = f"a hub did not give it either ({type(error).__name__}); {hint}"
    raise UserError(
        f"no embedding model '{name}': not a directory, and the server has "
        f"{', '.join(sorted(offered)) or 'none'}.\n"
        f"Use --embedding-model {PACKAGED_MODEL}, or {hint}"
    )


def _embedder_in(directory: Path, torch_threads: int) -> SentenceTransformerEmbedder:
    refuse_pickles(directory)
    try:
        return SentenceTransformerEmbedder(str(directory), torch_threads=torch_threads)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0][:200]
        raise UserError(f"{directory} holds no sentence-transformers model: {reason}") from error


def _offered_by(backends: Sequence[Backend], name: str) -> tuple[set[str], str]:
    """The models of all servers, and how to get the one named; servers that have it serve it."""
    offered: set[str] = set()
    hint = "name a directory"
    for backend in backends:
        try:
            models = backend.dialect.list_models(backend.http)
        except CallFailedError as error:
            raise UserError(f"{backend.http.url} does not list its models: {error}") from error
        for model, digest in models.items():
            if backend.dialect.same_model(name, model):
                backend.also_serves("embedding", name, digest)
        offered |= set(models)
        hint = backend.dialect.missing_model_hint(name)
    return offered, hint
