"""The environments: one question with up to K rewrites, and many of them side by side."""

from query_mutator.environment.env import BatchedQueryMutationEnv, QueryMutationEnv

__all__ = ["BatchedQueryMutationEnv", "QueryMutationEnv"]
