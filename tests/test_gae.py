"""Advantages against values worked out by hand, and what the optimizer is shown."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest
import torch

from ppo import PPO, ActorCritic, PPOSettings, RolloutStorage, UpdateStats
from ppo.algorithm import clipped_value_loss, explained_variance, mini_batch_count, value_clip_of
from ppo.steps import EnvStep

GAMMA, LAMBDA = 0.9, 0.8


def filled(
    rewards: list[float],
    values: list[float],
    *,
    terminated: Collection[int] = (),
    truncated: tuple[int, ...] = (),
    failed: tuple[int, ...] = (),
) -> RolloutStorage:
    storage = RolloutStorage(len(rewards), 1, 2, 3)
    mask = np.ones(3, bool)
    for step, (reward, value) in enumerate(zip(rewards, values, strict=True)):
        observation = np.full(2, step, np.float32)
        storage.record_action(step, 0, observation, mask, step % 3, -1.0, value)
        result = EnvStep(
            observation, mask, reward, step in terminated, step in truncated, None, step in failed
        )
        storage.record_result(step, 0, result)
    return storage


def advantages(storage: RolloutStorage, last_value: float) -> list[float]:
    storage.compute_returns(np.array([last_value]), gamma=GAMMA, gae_lambda=LAMBDA)
    return storage.advantages[:, 0].tolist()


def test_an_episode_that_goes_on_bootstraps_from_the_next_value() -> None:
    result = advantages(filled([1.0, 2.0], [0.5, 0.25]), last_value=4.0)
    second = 2.0 + GAMMA * 4.0 - 0.25
    first = 1.0 + GAMMA * 0.25 - 0.5 + GAMMA * LAMBDA * second
    assert result == pytest.approx([first, second])


def test_a_terminated_episode_is_worth_nothing_more() -> None:
    result = advantages(filled([1.0, 2.0], [0.5, 0.25], terminated=(0,)), last_value=4.0)
    assert result == pytest.approx([1.0 - 0.5, 2.0 + GAMMA * 4.0 - 0.25])


def test_a_truncated_episode_bootstraps_from_its_own_final_observation() -> None:
    storage = filled([1.0, 2.0], [0.5, 0.25], truncated=(0,))
    storage.final_values[0, 0] = 3.0
    result = advantages(storage, last_value=4.0)
    assert result == pytest.approx([1.0 + GAMMA * 3.0 - 0.5, 2.0 + GAMMA * 4.0 - 0.25])


def test_a_failed_step_says_nothing_and_the_one_before_bootstraps_from_its_state() -> None:
    storage = filled([1.0, 99.0, 2.0], [0.5, 0.25, 0.75], truncated=(1,), failed=(1,))
    result = advantages(storage, last_value=4.0)
    assert result == pytest.approx([1.0 + GAMMA * 0.25 - 0.5, 0.0, 2.0 + GAMMA * 4.0 - 0.75])


def test_with_lambda_1_the_return_is_the_discounted_sum_of_rewards() -> None:
    storage = filled([1.0, 2.0, 3.0], [0.3, 0.2, 0.1], terminated=(2,))
    storage.compute_returns(np.array([7.0]), gamma=GAMMA, gae_lambda=1.0)
    assert storage.returns[0, 0] == pytest.approx(1 + GAMMA * 2 + GAMMA**2 * 3)


def test_the_optimizer_sees_valid_rows_only_and_all_of_them() -> None:
    storage = filled(
        [1.0, 99.0, 2.0, 3.0, 4.0], [0.0] * 5, terminated=(0, 2, 3), truncated=(1,), failed=(1,)
    )
    advantages(storage, 0.0)
    rows = storage.training_rows()
    assert rows.observations[:, 0].tolist() == [0, 2, 3, 4]
    assert 99.0 not in rows.returns.tolist()


def mini_batches_of(
    storage: RolloutStorage, settings: PPOSettings, rollout_rows: int | None
) -> list[list[int]]:
    """The rows of each optimizer step of an update."""
    advantages(storage, 0.0)
    algorithm = PPO(ActorCritic(2, 3), settings, rollout_rows=rollout_rows)
    used: list[list[int]] = []
    original = algorithm._step

    def spy(rows, advantage, clip, chosen):  # type: ignore[no-untyped-def]
        used.append(chosen.tolist())
        return original(rows, advantage, clip, chosen)

    algorithm._step = spy  # type: ignore[method-assign]
    stats = algorithm.update(storage, np.random.default_rng(0))
    assert stats.optimizer_steps == len(used)
    return used


@pytest.mark.parametrize(
    ("num_mini_batch", "rollout_rows", "sizes"),
    [
        (1, None, [7]),
        (3, None, [3, 2, 2]),
        (4, None, [2, 2, 2, 1]),
        (50, None, [1] * 7),
        (4, 28, [7]),
        (4, 16, [4, 3]),
        (4, 8, [3, 2, 2]),
        (4, 1000, [7]),
    ],
)
def test_every_row_is_used_in_every_epoch_in_mini_batches_of_the_size_of_a_full_rollouts(
    num_mini_batch: int, rollout_rows: int | None, sizes: list[int]
) -> None:
    storage = filled([float(n) for n in range(7)], [0.0] * 7, terminated=tuple(range(7)))
    settings = PPOSettings(ppo_epoch=3, num_mini_batch=num_mini_batch)
    used = mini_batches_of(storage, settings, rollout_rows)
    assert [len(rows) for rows in used] == sizes * 3
    assert sorted(row for rows in used for row in rows) == sorted(list(range(7)) * 3)


def test_failed_rows_make_fewer_mini_batches_not_smaller_ones() -> None:
    failed = tuple(range(4, 16))
    storage = filled([float(n) for n in range(16)], [0.0] * 16, truncated=failed, failed=failed)
    used = mini_batches_of(storage, PPOSettings(ppo_epoch=2, num_mini_batch=4), None)
    assert [sorted(rows) for rows in used] == [[0, 1, 2, 3]] * 2


def test_no_mini_batch_is_of_one_row_unless_a_full_rollouts_are() -> None:
    for full_rows, number in ((64, 4), (64, 32), (48, 7), (10, 4), (9, 4), (5, 2)):
        assert mini_batch_count(full_rows, full_rows, number) == number
        for rows in range(2, full_rows):
            assert rows // mini_batch_count(rows, full_rows, number) >= 2


def test_a_rollout_in_which_all_failed_changes_nothing() -> None:
    storage = filled([1.0, 1.0], [0.0, 0.0], truncated=(0, 1), failed=(0, 1))
    advantages(storage, 0.0)
    policy = ActorCritic(2, 3)
    before = [parameter.clone() for parameter in policy.parameters()]
    stats = PPO(policy, PPOSettings()).update(storage, np.random.default_rng(0))
    assert stats.trained_rows == stats.optimizer_steps == 0
    assert all((a == b).all() for a, b in zip(before, policy.parameters(), strict=True))


def one_step(settings: PPOSettings, storage: RolloutStorage) -> tuple[UpdateStats, ActorCritic]:
    torch.manual_seed(0)
    policy = ActorCritic(2, 3)
    stats = PPO(policy, settings).update(storage, np.random.default_rng(0))
    return stats, policy


def test_the_gradient_norm_is_told_before_it_is_clipped() -> None:
    storage = filled([100.0 * n for n in range(8)], [0.0] * 8, terminated=tuple(range(8)))
    advantages(storage, 0.0)
    stats, _ = one_step(PPOSettings(max_grad_norm=0.01), storage)
    assert stats.norm_before_clip > 1
    assert stats.norm_before_clip_max >= stats.norm_before_clip


def test_the_entropy_bonus_keeps_the_policy_broad() -> None:
    storage = filled([float(n % 3 == 0) for n in range(30)], [0.0] * 30, terminated=range(30))
    advantages(storage, 0.0)
    entropies = []
    for coefficient in (0.0, 1.0):
        settings = PPOSettings(lr=0.01, ppo_epoch=30, entropy_coef=coefficient)
        _, policy = one_step(settings, storage)
        with torch.no_grad():
            rows = storage.training_rows()
            log_probs, _ = policy(rows.observations, rows.masks)
        entropies.append(float(-(log_probs.exp() * log_probs).sum(-1).mean()))
    assert entropies[1] > entropies[0] + 0.1


def test_a_ratio_out_of_the_clipping_range_gives_no_further_push() -> None:
    """With every ratio far above 1 + clip and a positive advantage, the policy stays put."""
    storage = filled([1.0, 0.0] * 4, [0.0] * 8, terminated=range(8))
    advantages(storage, 0.0)
    good = storage.rewards[:, 0] > 0
    storage.log_probs[good] = -9.0  # the ratio is huge where the advantage is positive
    storage.log_probs[~good] = 5.0  # and tiny where it is negative
    settings = PPOSettings(ppo_epoch=1, num_mini_batch=1, value_loss_coef=0.0, entropy_coef=0.0)
    stats, policy = one_step(settings, storage)
    torch.manual_seed(0)
    assert stats.clip_fraction == 1.0
    assert stats.norm_before_clip == 0.0
    fresh = ActorCritic(2, 3)
    assert all((a == b).all() for a, b in zip(fresh.parameters(), policy.parameters(), strict=True))


def test_advantages_are_normalised_over_the_valid_rows() -> None:
    """Scaling all rewards leaves the policy's step as it is (up to the epsilon in the divisor)."""
    policies = []
    for scale in (1.0, 50.0):
        storage = filled([scale * n for n in range(8)], [0.0] * 8, terminated=range(8))
        advantages(storage, 0.0)
        settings = PPOSettings(value_loss_coef=0.0, max_grad_norm=1e9)
        policies.append(one_step(settings, storage)[1])
    for left, right in zip(
        policies[0].actor.parameters(), policies[1].actor.parameters(), strict=True
    ):
        assert torch.allclose(left, right, atol=1e-4)


def test_the_value_loss_takes_the_worse_of_the_value_and_the_clipped_one() -> None:
    """By hand, with a clip of 0.5: a move within it, one beyond it, one away from the return."""
    old_values = torch.tensor([1.0, 1.0, 1.0])
    values = torch.tensor([1.2, 3.0, 0.0], requires_grad=True)
    returns = torch.tensor([2.0, 3.0, 2.0])
    loss = clipped_value_loss(values, old_values, returns, 0.5)
    within, clipped, worse = 0.8**2, (1.5 - 3.0) ** 2, (0.0 - 2.0) ** 2
    assert loss.item() == pytest.approx(0.5 * (within + clipped + worse) / 3)
    loss.backward()
    assert values.grad is not None
    assert values.grad.tolist() == pytest.approx([-0.8 / 3, 0.0, -2.0 / 3])


def test_values_are_clipped_in_units_of_the_returns_deviation() -> None:
    storage = filled([10.0, 30.0], [0.0, 0.0], terminated=range(2))
    advantages(storage, 0.0)
    assert value_clip_of(storage.training_rows(), 0.2) == pytest.approx(0.2 * 10)


@pytest.mark.parametrize("rewards", [[0.7] * 8, [0.7, 0.7001] * 4, [0.7]])
def test_the_values_move_to_returns_that_are_all_the_same(rewards: list[float]) -> None:
    storage = filled(rewards, [0.0] * len(rewards), terminated=range(len(rewards)))
    storage.observations[:] = 1.0
    policy = ActorCritic(2, 3, hidden_size=0)
    storage.values[:] = policy.predict(storage.observations[:, 0], storage.masks[:, 0])[1][:, None]
    advantages(storage, 0.0)
    settings = PPOSettings(lr=0.05, ppo_epoch=60, num_mini_batch=1)
    PPO(policy, settings).update(storage, np.random.default_rng(0))
    _, values = policy.predict(storage.observations[:, 0], storage.masks[:, 0])
    assert values == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize(
    ("values", "returns", "expected"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 1.0),
        ([2.0, 2.0, 2.0], [1.0, 2.0, 3.0], 0.0),
        ([0.0, 2.0, 4.0], [0.0, 1.0, 2.0], 0.0),
        ([0.5, 1.0, 1.5], [0.0, 1.0, 2.0], 0.75),
        ([0.0, 1.0], [0.5, 0.5], 0.0),
        ([0.1, 0.4], [0.5, 0.5 + 6e-8], 0.0),
        ([0.0, 1.0], [0.5, 0.5001], -1.0),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([3.0], [1.0], 0.0),
    ],
)
def test_explained_variance_is_0_for_equal_returns_and_never_explodes(
    values: list[float], returns: list[float], expected: float
) -> None:
    assert explained_variance(torch.tensor(values), torch.tensor(returns)) == pytest.approx(
        expected
    )


@pytest.mark.parametrize(
    ("lr", "rewards", "message"),
    [
        (0.01, [1e30, 0.0], "the value loss has become"),
        (0.01, [1e18, 0.0], "the gradient has become"),
        (1e30, [1.0, 0.0], "has become infinite or not a number"),
    ],
)
def test_an_update_that_leads_to_no_number_says_where(
    lr: float, rewards: list[float], message: str
) -> None:
    storage = filled(rewards * 4, [0.0] * 8, terminated=range(8))
    storage.observations *= 1e3
    advantages(storage, 0.0)
    algorithm = PPO(ActorCritic(2, 3, hidden_size=0), PPOSettings(lr=lr))
    with pytest.raises(FloatingPointError, match=message):
        algorithm.update(storage, np.random.default_rng(0))


def test_the_learning_rate_decays() -> None:
    algorithm = PPO(ActorCritic(2, 3), PPOSettings(lr=0.1))
    algorithm.decay_lr(0.25)
    assert algorithm.learning_rate == pytest.approx(0.025)


def test_a_policy_that_moved_too_far_stops_before_the_step() -> None:
    storage = filled([float(n) for n in range(8)], [0.0] * 8, terminated=tuple(range(8)))
    advantages(storage, 0.0)
    storage.log_probs[:] = -9.0  # as if the acting policy had been quite another one
    policy = ActorCritic(2, 3)
    before = [parameter.clone() for parameter in policy.parameters()]
    stats = PPO(policy, PPOSettings(target_kl=0.01)).update(storage, np.random.default_rng(0))
    assert stats.optimizer_steps == 0
    assert all((a == b).all() for a, b in zip(before, policy.parameters(), strict=True))
