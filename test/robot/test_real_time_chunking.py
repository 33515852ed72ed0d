# SPDX-License-Identifier: Apache-2.0
"""A robot and a server in one process: what is promised is what runs, row by row."""

from dataclasses import replace

import numpy as np
import pytest

from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.models.echo import EchoModel
from xinfer_ros.robot.request_ledger import RequestDraft

from .driven_robot import DrivenRobot
from .in_process_server import InProcessServer, observation_of

CONTRACT = ModelContract(
    name='echo',
    cameras=(CameraSpec(name='top', height=4, width=4),),
    joint_names=('a', 'b', 'c'),
    horizon=50,
    max_commitment_steps=50,
)
SPACING_NS = 66_700_000


class Loop:
    """
    A robot whose joints stand in another order than the model's, and its server.

    :param commitment_steps: ``d``
    :param max_commitment_steps: of the model
    """

    def __init__(self, commitment_steps: int, max_commitment_steps: int = 50) -> None:
        contract = replace(CONTRACT, max_commitment_steps=max_commitment_steps)
        self.server = InProcessServer(EchoModel(contract))
        names = ('c', 'a', 'b')
        self.robot = DrivenRobot(
            names,
            commitment_steps=commitment_steps,
            keyframe_spacing_ns=SPACING_NS,
            budget_ns=10**10,
        )
        self.registered = self.server.register(joint_names=names, keyframe_spacing_ns=SPACING_NS)
        self.robot.executor.granted(self.server.grant(self.registered), 0)
        self._states = iter(np.arange(1, 100, dtype=np.float32))

    def ask(self) -> RequestDraft:
        """Send a request."""
        return self.robot.ask_when_due()

    def compute(self, draft: RequestDraft) -> Answer:
        """Return the server's answer to a robot that stands where it never stood before."""
        state = np.full(3, next(self._states), np.float32)
        observation = observation_of(draft, self.registered, self.server, state=state)
        return self.server.answer(self.registered, observation)

    def accept(self, answer: Answer) -> None:
        """Let an answer arrive."""
        reason = self.robot.executor.accept(answer, self.robot.clock.now_ns())
        assert reason is Reason.OK, self.robot.executor.last_refusal

    def run(self, num_rows: int) -> None:
        """Let rows run."""
        assert None not in self.robot.tick(num_rows)


def _first_chunk(loop: Loop) -> Answer:
    chunk = loop.compute(loop.ask())
    loop.accept(chunk)
    assert len(chunk.rows) == 50
    return chunk


@pytest.mark.parametrize(
    ('executed', 'commitment', 'promised'),
    [(10, 5, 5), (10, 0, 0), (10, 1, 1), (1, 49, 49), (10, 49, 40)],
)
def test_promised_rows_are_those_that_run_until_the_next_chunk_takes_over(
    executed: int, commitment: int, promised: int
) -> None:
    """
    RT-01: 10 rows of A executed at the send, d = 5: the prefix is A[10..14].

    5 more rows run before C arrives: C[0..4] = A[10..14], and the next executed row is C[5]. The
    same for d = 0, 1 and H − 1; of 40 rows that are left, no more than 40 can be promised.
    """
    loop = Loop(commitment)
    a = _first_chunk(loop)
    loop.run(executed)
    draft = loop.ask()
    assert draft.commitment_steps == promised
    np.testing.assert_array_equal(draft.leftover, a.rows[executed:])
    c = loop.compute(draft)
    ran = loop.robot.tick(promised)
    np.testing.assert_allclose(
        c.rows[:promised], a.rows[executed : executed + promised], atol=1e-5
    )
    for row, frozen in zip(ran, c.rows[:promised], strict=True):
        assert row is not None
        np.testing.assert_array_equal(row.values, frozen)
    assert (c.frozen_steps, c.start_step) == (promised, executed)
    loop.accept(c)
    following = loop.robot.executor.tick()
    assert following is not None
    np.testing.assert_array_equal(following.values, c.rows[promised])
    assert following.step == executed + promised
    assert np.abs(c.rows[promised] - a.rows[min(executed + promised, 49)]).max() > 0.5


@pytest.mark.parametrize(
    ('commitment', 'frozen', 'degraded'), [(7, 7, False), (8, 8, True), (9, 8, True)]
)
def test_commitment_at_or_above_the_models_limit_is_served_and_flagged(
    commitment: int, frozen: int, degraded: bool
) -> None:
    """RT-02: d_max = 8: 7 is normal, 8 and 9 are served with a flag, never an exception."""
    loop = Loop(commitment, max_commitment_steps=8)
    _first_chunk(loop)
    loop.run(10)
    draft = loop.ask()
    assert draft.commitment_steps == commitment
    answer = loop.compute(draft)
    assert (answer.frozen_steps, answer.degraded) == (frozen, degraded)
    np.testing.assert_array_equal(answer.rows[:frozen], draft.leftover[:frozen])
    assert np.abs(answer.rows[frozen] - draft.leftover[frozen]).max() > 0.5
    loop.run(9)
    loop.accept(answer)
    assert loop.robot.executor.report().degraded_chunks == degraded
    following = loop.robot.executor.tick()
    assert following is not None
    np.testing.assert_array_equal(following.values, answer.rows[9])


def test_rows_are_spaced_as_the_robot_has_registered() -> None:
    """RT-06: a robot of 66.7 ms gets rows of 66.7 ms; another rate is refused."""
    loop = Loop(0)
    draft = loop.ask()
    wrong = observation_of(draft, loop.registered, loop.server, keyframe_spacing_ns=33_300_000)
    with pytest.raises(Rejected, match='33300000 ns, registered were 66700000 ns') as caught:
        loop.server.answer(loop.registered, wrong)
    assert caught.value.reason is Reason.REJECTED_SPACING
    chunk = loop.compute(draft)
    assert chunk.keyframe_spacing_ns == SPACING_NS
    late = replace(chunk, keyframe_spacing_ns=33_300_000)
    executor, now_ns = loop.robot.executor, loop.robot.clock.now_ns()
    assert executor.accept(late, now_ns) is Reason.REJECTED_SPACING
    assert executor.tick() is None


@pytest.mark.parametrize('spacing_ns', [0, 999_999, 10**10 + 1])
def test_spacing_that_no_robot_can_mean_fails_the_registration(spacing_ns: int) -> None:
    """RT-06: or registration fails."""
    server = InProcessServer(EchoModel(CONTRACT))
    with pytest.raises(Rejected, match='1 ms to 10 s') as caught:
        server.register(keyframe_spacing_ns=spacing_ns)
    assert caught.value.reason is Reason.REJECTED_SPACING
