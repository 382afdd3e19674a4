"""From texts to batches on disk: tokenizers, data sets, length caches, collated batches."""

from batching.generation.batch_files import BatchReader, BatchWriter, Manifest, write_batches
from batching.generation.batches import CollatedBatch, collate
from batching.generation.chats import ChatTemplate, Part, Turn
from batching.generation.dataset import (
    TextSample,
    dataset_hash,
    encode_texts,
    measure_texts,
    read_texts,
)
from batching.generation.length_cache import LengthCache, LengthEntry
from batching.generation.store import SampleStore
from batching.generation.tokenizers import ByteTokenizer, Tokenizer, load_tokenizer

__all__ = [
    "BatchReader",
    "BatchWriter",
    "ByteTokenizer",
    "ChatTemplate",
    "CollatedBatch",
    "LengthCache",
    "LengthEntry",
    "Manifest",
    "Part",
    "SampleStore",
    "TextSample",
    "Tokenizer",
    "Turn",
    "collate",
    "dataset_hash",
    "encode_texts",
    "load_tokenizer",
    "measure_texts",
    "read_texts",
    "write_batches",
]
