# SPDX-License-Identifier: Apache-2.0
"""A front end whose engine a test plays by hand."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np

from xinfer_ros.core.chunk import Answer
from xinfer_ros.core.clock import SimulatedClock
from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.core.observation import CameraFrame, Observation
from xinfer_ros.core.request import Request
from xinfer_ros.core.slot import slot_arrays, slot_memory_bytes
from xinfer_ros.engine.engine_life import EngineEvents, EngineLife
from xinfer_ros.engine.front_end import FrontEnd
from xinfer_ros.engine.observer import ServerObserver
from xinfer_ros.engine.records import Beat, Cancel, Done, Dropped, Record, Submit
from xinfer_ros.engine.robots import PROTOCOL_VERSION, Registration, Robot
from xinfer_ros.engine.seen import Named, Timeline
from xinfer_ros.engine.status import FrontEndSettings, ServerStatus

CONTRACT = ModelContract(
    name='scripted',
    cameras=(CameraSpec(name='top', height=4, width=4),),
    joint_names=('a', 'b', 'c'),
    horizon=8,
    max_commitment_steps=4,
)
SPACING_NS = 30_000_000


class ScriptedEngine:
    """
    Keeps what the front end sends; answers when told.

    :param num_slots: slots of each life
    """

    def __init__(self, num_slots: int) -> None:
        self._num_slots = num_slots
        self.sent: list[Record] = []
        self.pid = 4321
        self.life: EngineLife | None = None
        self.closed = False

    def start(self, events: EngineEvents) -> None:
        """Keep who is told; no engine yet."""
        self._events = events

    def close(self) -> None:
        """Note the end."""
        self.closed = True

    def send(self, record: Record) -> None:
        """Keep a record, but for who robots are."""
        if not isinstance(record, Named):
            self.sent.append(record)

    def become_ready(self, epoch: int) -> None:
        """Let a new life begin."""
        memory = memoryview(bytearray(slot_memory_bytes(CONTRACT, self._num_slots)))
        slots = slot_arrays(CONTRACT, self._num_slots, memory)
        self.life = EngineLife(epoch, self, CONTRACT, slots)
        self._events.engine_ready(self.life)

    def die(self, next_epoch: int) -> None:
        """Let the life end."""
        self._events.engine_ended(next_epoch)

    def submitted(self) -> list[Request]:
        """Return the requests that the engine got."""
        return [record.request for record in self.sent if isinstance(record, Submit)]

    def cancelled(self) -> list[int]:
        """Return the keys that the front end cancelled."""
        return [record.key for record in self.sent if isinstance(record, Cancel)]

    def finish(self, submit: Request, rows: Any, ask_after_ns: int = 0, **times: int) -> None:
        """Answer a request with rows, a pace, and other times than the few nanoseconds here."""
        assert self.life is not None
        self.life.slots.actions[submit.slot] = rows
        spent = {'queue_ns': 1, 'vit_ns': 2, 'prefill_ns': 3, 'action_ns': 4, **times}
        done = Done(key=submit.key, ask_after_ns=ask_after_ns, **spent)
        self._events.engine_record(self.life, done)

    def tell(self, record: Beat | Timeline) -> None:
        """Let the engine tell of itself."""
        assert self.life is not None
        self._events.engine_told(self.life, record)

    def hang(self, hangs: bool) -> None:
        """Tell that a unit does not end, or that it has ended after all."""
        assert self.life is not None
        self._events.engine_hangs(self.life, hangs)

    def drop(self, dropped: Dropped) -> None:
        """Answer a request without rows."""
        assert self.life is not None
        self._events.engine_record(self.life, dropped)


class InlineExecutor(Executor):
    """Runs what is submitted at once, in the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> 'Future[Any]':
        """Run and return a future that is done."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Bench:
    """
    A front end, its scripted engine and everything that it published.

    :param num_slots: slots of the engine
    :param capacity_per_s: responses per second that robots are admitted for, None: no limit
    :param overlap_preparation: whether pictures are prepared while the device computes
    :param decoders: run what is prepared; None: at once
    :param observer: of the front end
    """

    def __init__(
        self,
        num_slots: int = 4,
        max_robots: int = 4,
        capacity_per_s: float | None = None,
        overlap_preparation: bool = True,
        decoders: Executor | None = None,
        observer: ServerObserver | None = None,
    ) -> None:
        self.clock = SimulatedClock(10**9)
        self.engine = ScriptedEngine(num_slots)
        self.answers: list[tuple[Robot, Answer]] = []
        self.while_answering: Callable[[Answer], object] = lambda answer: None
        self.statuses: list[ServerStatus] = []
        settings = FrontEndSettings(
            max_robots=max_robots,
            lease_ns=5_000_000_000,
            reserved_ns=4_000_000,
            first_epoch=7,
            capacity_per_s=capacity_per_s,
            overlap_preparation=overlap_preparation,
        )
        self.front_end = FrontEnd(
            settings,
            self.clock,
            self.engine,
            decoders if decoders is not None else InlineExecutor(),
            self._answer,
            self.statuses.append,
            observer,
        )

    def _answer(self, robot: Robot, answer: Answer) -> None:
        self.answers.append((robot, answer))
        self.while_answering(answer)

    def robot(
        self, name: str, instance: int = 1, joints: tuple[str, ...] = ('a', 'b', 'c')
    ) -> Robot:
        """Register a robot."""
        registration = Registration(
            robot_id=name,
            namespace=f'/{name}',
            joint_names=joints,
            cameras=('top',),
            keyframe_spacing_ns=SPACING_NS,
            horizon=0,
            protocol_version=PROTOCOL_VERSION,
            instance=instance,
        )
        return self.front_end.register(registration)[0]

    def ask(self, robot: Robot, request_id: int, **changes: Any) -> None:
        """Submit an observation; its pictures are decoded when this returns."""
        asked = observation(robot, request_id, **changes)
        self.front_end.submit(robot, asked, self.clock.now_ns())

    def reasons(self) -> list[str]:
        """Return the reason of every answer so far."""
        return [answer.reason.name for _, answer in self.answers]


def observation(robot: Robot, request_id: int, **changes: Any) -> Observation:
    """Return an observation that is accepted, with changes."""
    picture = np.zeros((4, 4, 3), np.uint8)
    fields: dict[str, Any] = {
        'session': robot.session,
        'episode': 0,
        'request_id': request_id,
        'executed_steps': 0,
        'instruction': 'pick',
        'joint_names': robot.registration.joint_names,
        'state': np.zeros(3, np.float32),
        'images': (
            CameraFrame(
                name='top',
                compressed=False,
                encoding='rgb8',
                height=4,
                width=4,
                step=12,
                is_bigendian=False,
                data=picture.tobytes(),
            ),
        ),
        'budget_ns': 180_000_000,
        'minimum_period_ns': 180_000_000,
        'commitment_steps': 0,
        'keyframe_spacing_ns': SPACING_NS,
        'leftover': np.zeros((0, 3), np.float32),
    }
    return Observation(**(fields | changes))
