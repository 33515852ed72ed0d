# SPDX-License-Identifier: Apache-2.0
"""Integration from noise to actions, against a flow whose answers can be written down."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
import torch

from xinfer_ros.core.guidance import Schedule, guidance_gains, prefix_weights
from xinfer_ros.models.flow import RtcInputs, flow_times, integrate
from xinfer_ros.models.rtc import Jacobian

HORIZON, COMMITMENT, STEPS = 16, 8, 10
SAMPLES = 20
Matrix = npt.NDArray[np.float64]


def covariance() -> Matrix:
    """Return that of smooth paths: neighbouring rows differ by 0.248 (root of the mean square)."""
    rows = np.arange(HORIZON)
    return np.exp(-((rows[:, None] - rows) ** 2) / (2.0 * 4.0**2))


class GaussianFlow:
    """
    The flow between noise and Gaussian paths; one number a row, so a chunk is ``(H, 1)``.

    The best guess of a path from ``x = tau path + (1 - tau) noise`` is linear in ``x``, and so is
    the velocity.
    """

    def __init__(self) -> None:
        paths, unit = covariance(), np.eye(HORIZON)
        self.slopes: list[Matrix] = []
        for time in flow_times(STEPS):
            tau = 1.0 - time
            guess = tau * paths @ np.linalg.inv(tau**2 * paths + time**2 * unit)
            self.slopes.append((unit - guess) / time)

    def velocity(self, step: int, x: torch.Tensor) -> torch.Tensor:
        """Return noise minus actions, as the best guess has them."""
        return torch.from_numpy(self.slopes[step]) @ x


@dataclass(frozen=True)
class Case:
    """A kind of guidance, and what the reference implementations gave for it."""

    jacobian: Jacobian
    max_gain: float
    prefix: float
    handoff: float

    def __str__(self) -> str:
        """Return a name for the test."""
        return f'{self.jacobian.value} {self.max_gain:g}'


CASES = (
    Case(Jacobian.VJP, 5.0, prefix=0.095, handoff=0.300),
    Case(Jacobian.VJP, 10.0, prefix=0.069, handoff=0.263),
    Case(Jacobian.IDENTITY, 5.0, prefix=0.072, handoff=0.374),
    Case(Jacobian.IDENTITY, 10.0, prefix=0.016, handoff=0.366),
)


def inputs(previous: torch.Tensor, case: Case) -> RtcInputs:
    """Return ties with weights of 1 up to the commitment and 0 behind it."""
    row = prefix_weights(HORIZON, COMMITMENT, HORIZON - COMMITMENT, Schedule.ZEROS)
    return RtcInputs(
        previous=previous,
        weights=torch.from_numpy(row).double().expand(len(previous), -1),
        max_gain=case.max_gain,
        jacobian=case.jacobian,
    )


def drawn(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return noise and leftovers, independent of each other."""
    generator = np.random.default_rng(seed)
    root = np.linalg.cholesky(covariance() + 1e-9 * np.eye(HORIZON))
    noise = generator.standard_normal((SAMPLES, HORIZON, 1))
    paths = root @ generator.standard_normal((SAMPLES, HORIZON, 1))
    return torch.from_numpy(noise), torch.from_numpy(paths)


def expected_errors(case: Case | None) -> tuple[float, float]:
    """
    Return how far committed rows are off, and the jump from the last of them to the first free.

    Both are roots of mean squares over all noises and leftovers. The chunk is linear in both, so
    its answers to unit vectors tell everything and nothing needs to be drawn.
    """
    unit = torch.eye(HORIZON, dtype=torch.float64)[..., None]
    still = torch.zeros_like(unit)

    def answers(noise: torch.Tensor, previous: torch.Tensor) -> Matrix:
        rtc = None if case is None else inputs(previous, case)
        return integrate(GaussianFlow().velocity, noise, STEPS, rtc)[..., 0].numpy().T

    def mean_square(of_noise: Matrix, of_previous: Matrix) -> Matrix:
        return np.diag(of_noise @ of_noise.T + of_previous @ covariance() @ of_previous.T)

    of_noise, of_previous = answers(unit, still), answers(still, unit)
    prefix = mean_square(of_noise, of_previous - np.eye(HORIZON))[:COMMITMENT]
    last = np.eye(HORIZON)[COMMITMENT - 1]
    jump = mean_square(of_noise[[COMMITMENT]], of_previous[[COMMITMENT]] - last)
    return float(np.sqrt(prefix.mean())), float(np.sqrt(jump[0]))


def test_neighbouring_rows_of_a_path_differ_by_a_quarter() -> None:
    paths = covariance()
    step = paths[8, 8] + paths[7, 7] - 2 * paths[8, 7]
    assert np.sqrt(step) == pytest.approx(0.248, abs=5e-4)


def test_without_guidance_a_chunk_knows_nothing_of_the_leftover() -> None:
    assert expected_errors(None) == pytest.approx((1.317, 1.332), rel=0.02)


@pytest.mark.parametrize('case', CASES, ids=str)
def test_guidance_holds_prefix_and_handoff_as_the_reference_does(case: Case) -> None:
    """The known figures were drawn and are rounded: 2 % and one of their last digits."""
    prefix, handoff = expected_errors(case)
    assert prefix == pytest.approx(case.prefix, rel=0.02, abs=0.001)
    assert handoff == pytest.approx(case.handoff, rel=0.02, abs=0.001)


def test_true_jacobian_joins_more_smoothly_and_the_identity_holds_the_prefix_harder() -> None:
    true, identity = expected_errors(CASES[0]), expected_errors(CASES[2])
    assert true[1] < identity[1]
    assert identity[0] < true[0]


@pytest.mark.parametrize('case', CASES, ids=str)
def test_guided_chunk_is_the_one_that_can_be_written_down(case: Case) -> None:
    """The flow is linear, so the chunk is: two matrices, multiplied up step by step."""
    flow, unit = GaussianFlow(), np.eye(HORIZON)
    mask = np.diag((np.arange(HORIZON) < COMMITMENT).astype(float))
    of_noise, of_previous = unit, np.zeros_like(unit)
    for slope, time, gain in zip(
        flow.slopes, flow_times(STEPS), guidance_gains(STEPS, case.max_gain), strict=True
    ):
        guess = unit - time * slope
        back = guess.T if case.jacobian is Jacobian.VJP else unit
        pull = gain * back @ mask
        noise_move = -slope @ of_noise - pull @ guess @ of_noise
        previous_move = -slope @ of_previous + pull @ (unit - guess @ of_previous)
        of_noise, of_previous = of_noise + noise_move / STEPS, of_previous + previous_move / STEPS
    noise, previous = drawn(seed=1)
    expected = of_noise @ noise.numpy() + of_previous @ previous.numpy()
    found = integrate(flow.velocity, noise, STEPS, inputs(previous, case))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-10)


def test_frozen_rows_are_those_of_the_leftover() -> None:
    noise, previous = (rows[:3] for rows in drawn())
    frozen = torch.zeros(3, HORIZON, dtype=torch.bool)
    frozen[0, :4], frozen[2, :9] = True, True
    rtc = RtcInputs(previous=previous, weights=torch.zeros(3, HORIZON), frozen=frozen)
    found = integrate(GaussianFlow().velocity, noise, STEPS, rtc)
    assert torch.equal(found[frozen], previous[frozen])
    free = integrate(GaussianFlow().velocity, noise, STEPS, None)
    assert torch.equal(found[1], free[1])


def test_without_weights_nothing_but_frozen_rows_is_tied() -> None:
    noise, previous = (rows[:2] for rows in drawn())
    frozen = (torch.arange(HORIZON) < 5).expand(2, -1)
    weightless = RtcInputs(previous=previous, frozen=frozen)
    unweighted = RtcInputs(previous=previous, frozen=frozen, weights=torch.zeros(2, HORIZON))
    found, expected = (
        integrate(GaussianFlow().velocity, noise, STEPS, rtc)
        for rtc in (weightless.cloned(), unweighted)
    )
    assert torch.equal(found, expected)


@pytest.mark.parametrize('jacobian', Jacobian)
def test_requests_of_a_batch_have_commitments_and_leftovers_of_their_own(
    jacobian: Jacobian,
) -> None:
    noise, previous = (rows[:4] for rows in drawn())
    rows = [prefix_weights(HORIZON, d, 12, Schedule.LINEAR) for d in (0, 3, 8)]
    weights = torch.from_numpy(np.stack([*rows, np.zeros(HORIZON)])).double()

    def solved(members: slice) -> torch.Tensor:
        rtc = RtcInputs(previous=previous[members], weights=weights[members], jacobian=jacobian)
        return integrate(GaussianFlow().velocity, noise[members], STEPS, rtc)

    alone = torch.cat([solved(slice(member, member + 1)) for member in range(4)])
    np.testing.assert_allclose(solved(slice(None)).numpy(), alone.numpy(), atol=1e-12)
    untied = integrate(GaussianFlow().velocity, noise[3:], STEPS, None)
    np.testing.assert_allclose(alone[3:].numpy(), untied.numpy(), atol=1e-12)


@pytest.mark.parametrize('jacobian', Jacobian)
def test_padding_is_not_guided(jacobian: Jacobian) -> None:
    """What the leftover has in columns that no robot has is without effect on any column."""
    noise = torch.randn(2, HORIZON, 4, generator=torch.Generator().manual_seed(0))
    mixing = torch.randn(4, 4, generator=torch.Generator().manual_seed(1)) / 4
    weights = torch.from_numpy(np.stack([prefix_weights(HORIZON, 4, 12, Schedule.LINEAR)] * 2))

    def solved(padding: float, joints: int | None) -> torch.Tensor:
        previous = torch.ones(2, HORIZON, 4)
        previous[..., 3] = padding
        rtc = RtcInputs(previous=previous, weights=weights, jacobian=jacobian)
        return integrate(lambda _, x: x @ mixing, noise, STEPS, rtc, joints=joints)

    assert torch.equal(solved(0.0, 3), solved(7.0, 3))
    assert not torch.equal(solved(0.0, None), solved(7.0, None))
