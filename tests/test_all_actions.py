"""What each action is worth is learned from few noisy returns, and the policy follows it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch

from ppo import AllActionPPO, Chooser, PPOSettings, RolloutStorage, collect_rollout
from ppo.gym_group import GymGroup
from ppo.worth import Matrix, fit_worth
from tests.noisy_choices import NoisyChoices, Worths

SIZE, ACTIONS = 12, 5
Rows = npt.NDArray[np.float32]


def drawn(
    rows: int, worth: Worths, noise: float, seed: int
) -> tuple[Rows, npt.NDArray[np.int64], Rows]:
    """Rows of what was seen, done at random, and got."""
    random = np.random.default_rng(seed)
    seen = random.uniform(0, 1, (rows, SIZE)).astype(np.float32)
    done = random.integers(0, ACTIONS, rows)
    got = worth(seen)[np.arange(rows), done] + noise * random.standard_normal(rows) * (done > 0)
    return seen, done, got.astype(np.float32)


def common_slope(seen: Rows) -> Matrix:
    """All actions help where the first number is high; the second a little more."""
    worth = np.repeat(0.4 * (seen[:, :1] - 0.5), ACTIONS, axis=1)
    worth[:, 2] += 0.05
    worth[:, 0] = 0.0
    return worth


def slopes_apart(seen: Rows) -> Matrix:
    """Each action helps where another number is high."""
    worth = seen[:, :ACTIONS].astype(np.float64) - 0.5
    worth[:, 0] = 0.0
    return worth


@pytest.mark.parametrize(("worth", "noise"), [(common_slope, 0.05), (slopes_apart, 0.05)])
def test_what_actions_are_worth_is_found(worth: Worths, noise: float) -> None:
    found = fit_worth(*drawn(1000, worth, noise, seed=1), ACTIONS)
    seen = drawn(500, worth, noise, seed=2)[0]
    assert np.abs(found.of(seen) - worth(seen)).mean() < 0.03
    assert (found.of(seen)[:, 0] == 0).all()


def test_few_noisy_returns_move_it_little_and_many_all_the_way() -> None:
    seen = drawn(500, common_slope, 0.0, seed=2)[0]
    wrong = [
        np.abs(
            fit_worth(*drawn(rows, common_slope, 0.3, seed=1), ACTIONS).of(seen)
            - common_slope(seen)
        ).mean()
        for rows in (40, 400, 4000)
    ]
    assert wrong[0] < 0.15  # what least squares make of 40 rows is off by more than .5
    assert wrong[0] > wrong[1] > wrong[2]
    assert wrong[2] < 0.02


def test_it_knows_how_far_off_it_may_be() -> None:
    inside = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        slope, means = random.normal(0, 0.3, SIZE) / np.sqrt(SIZE), random.normal(0, 0.05, ACTIONS)

        def worth(seen: Rows, slope: Matrix = slope, means: Matrix = means) -> Matrix:
            found: Matrix = (seen @ slope)[:, None] + means
            found[:, 0] = 0.0
            return found

        found = fit_worth(*drawn(200, worth, 0.3, seed=seed), ACTIONS)
        seen = drawn(50, worth, 0.3, seed=1000 + seed)[0]
        off = np.abs(found.of(seen) - worth(seen))[:, 1:]
        inside.append((off < 1.96 * found.deviation(seen)[:, 1:]).mean())
    assert 0.85 < np.mean(inside) <= 1.0


@pytest.mark.parametrize("got", [[], [0.0, 0.0, 0.0]])
def test_of_nothing_nothing_is_made(got: list[float]) -> None:
    seen = np.ones((len(got), SIZE), np.float32)
    found = fit_worth(seen, np.arange(len(got)), np.array(got, np.float32), ACTIONS)
    assert not found.of(np.ones((3, SIZE), np.float32)).any()


def trained(worth: Worths, seed: int, updates: int, *, noise: float = 0.3) -> Chooser:
    """A policy after some rollouts on noisy choices."""
    torch.manual_seed(seed)
    group = GymGroup(lambda: NoisyChoices(worth, SIZE, ACTIONS, noise), 8, seed=seed)
    policy = Chooser(SIZE, ACTIONS)
    learner = AllActionPPO(policy, PPOSettings(lr=0.05))
    generators = [np.random.default_rng([seed, 1, index]) for index in range(8)]
    shuffle = np.random.default_rng([seed, 2])
    for _ in range(updates):
        storage = RolloutStorage(8, 8, SIZE, ACTIONS)
        collect_rollout(group, policy, storage, generators, gamma=1.0, gae_lambda=0.95)
        learner.update(storage, shuffle)
    return policy


def gained(policy: Chooser, worth: Worths) -> tuple[float, float]:
    """What its likeliest actions are worth, and the share of them that do nothing."""
    seen = drawn(1000, worth, 0.0, seed=77)[0]
    actions = policy.predict(seen, np.ones((len(seen), ACTIONS), bool))[0].argmax(1)
    return float(worth(seen)[np.arange(len(seen)), actions].mean()), float((actions == 0).mean())


def test_a_policy_begins_by_doing_nothing() -> None:
    torch.manual_seed(0)
    assert gained(Chooser(SIZE, ACTIONS), common_slope) == (0.0, 1.0)


def test_ten_rollouts_of_noisy_returns_are_enough_to_gain() -> None:
    best = float(common_slope(drawn(1000, common_slope, 0.0, seed=77)[0]).max(1).mean())
    gains = [gained(trained(common_slope, seed, 10), common_slope)[0] for seed in range(5)]
    assert min(gains) > 0.0
    assert np.mean(gains) > 0.6 * best


def test_where_all_actions_harm_it_does_nothing() -> None:
    def harm(seen: Rows) -> Matrix:
        worth = np.full((len(seen), ACTIONS), -0.1)
        worth[:, 0] = 0.0
        return worth

    assert min(gained(trained(harm, seed, 10), harm)[1] for seed in range(5)) > 0.95


def test_it_learns_the_same_from_the_same_seed() -> None:
    one, other = (trained(common_slope, 3, 4).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)
