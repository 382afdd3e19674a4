"""The environments: one question with up to K rewrites, and many of them side by side."""

from query_mutator.environment.env import QueryMutationEnv
from query_mutator.environment.group import BatchedQueryMutationEnv

__all__ = ["BatchedQueryMutationEnv", "QueryMutationEnv"]
