"""Samples as they come: streams, filters, replay, rolling windows, puzzles and our own runs.

What plays our environment or reads its runs is in `batching.streaming.trajectories`; it is not
imported here, because it loads all that a run needs.
"""

from batching.streaming.filters import (
    AsyncPipelineStream,
    PipelineStream,
    SampleFilter,
    SampleTransform,
    by_difficulty,
    by_length,
    by_reward,
    by_source,
    by_success,
)
from batching.streaming.gym import (
    GymConfig,
    GymEpisode,
    GymEpisodeStream,
    GymPolicy,
    GymStep,
    MockGymStream,
    follow_hints,
)
from batching.streaming.offline import (
    AsyncOfflineDatasetStream,
    OfflineDatasetStream,
    StreamPosition,
)
from batching.streaming.protocols import AsyncSampleStream, SampleStream
from batching.streaming.puzzles import GymObservation
from batching.streaming.replay import Eviction, ReplayBatch, ReplayBuffer
from batching.streaming.samples import StreamMetrics, StreamSample
from batching.streaming.texts import text_sample
from batching.streaming.window import RollingBatchPlanWindow, WindowConfig, WindowPlan

__all__ = [
    "AsyncOfflineDatasetStream",
    "AsyncPipelineStream",
    "AsyncSampleStream",
    "Eviction",
    "GymConfig",
    "GymEpisode",
    "GymEpisodeStream",
    "GymObservation",
    "GymPolicy",
    "GymStep",
    "MockGymStream",
    "OfflineDatasetStream",
    "PipelineStream",
    "ReplayBatch",
    "ReplayBuffer",
    "RollingBatchPlanWindow",
    "SampleFilter",
    "SampleStream",
    "SampleTransform",
    "StreamMetrics",
    "StreamPosition",
    "StreamSample",
    "WindowConfig",
    "WindowPlan",
    "by_difficulty",
    "by_length",
    "by_reward",
    "by_source",
    "by_success",
    "follow_hints",
    "text_sample",
]
