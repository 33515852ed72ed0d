# SPDX-License-Identifier: Apache-2.0
"""Messages to dataclasses and back, and what a byte field may be given."""

import ast
import pickle
from array import array
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from sensor_msgs.msg import CompressedImage, Image

from xinfer_ros.core.chunk import Answer, ServerTimes
from xinfer_ros.core.health import Level
from xinfer_ros.core.metrics import ExecutorPhase, RobotReport
from xinfer_ros.engine.status import ServerPhase
from xinfer_ros.errors import Reason, Rejected
from xinfer_ros.msg import ActionChunk, Budget, Observation
from xinfer_ros.observe.fleet_status import FleetStatus, RobotStatus
from xinfer_ros.robot.chunk_executor import ChunkExecutor
from xinfer_ros.robot.executor_settings import ExecutorSettings
from xinfer_ros.robot.request_ledger import RequestDraft
from xinfer_ros.robot.session import Grant
from xinfer_ros.ros import convert
from xinfer_ros.ros.fleet_messages import from_fleet_status, to_fleet_status

SOURCES = Path(convert.__file__).parent
ROOT = Path(__file__).parents[2]


def test_an_answer_survives_the_wire() -> None:
    rows = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
    answer = Answer(
        session=2**63 - 1,
        episode=3,
        request_id=4,
        epoch=5,
        reason=Reason.OK,
        start_step=17,
        joint_names=('a', 'b', 'c'),
        rows=rows,
        frozen_steps=6,
        degraded=True,
        keyframe_spacing_ns=30_000_000,
        times=ServerTimes(decode_ns=1, queue_ns=2, vit_ns=3, prefill_ns=4, action_ns=5),
        ask_after_ns=6,
    )
    back = convert.to_answer(convert.from_answer(answer))
    np.testing.assert_array_equal(back.rows, rows)
    assert back.times == answer.times
    assert (back.ask_after_ns, back.frozen_steps, back.degraded) == (6, 6, True)
    assert (back.session, back.joint_names, back.reason) == (2**63 - 1, ('a', 'b', 'c'), Reason.OK)


def test_an_observation_survives_the_wire() -> None:
    draft = RequestDraft(
        session=5,
        episode=1,
        request_id=2,
        executed_steps=3,
        leftover=np.ones((4, 2), np.float32),
        commitment_steps=4,
        budget_ns=90_000_000,
        minimum_period_ns=180_000_000,
        ticks=70,
        starved_ticks=6,
        answered_request_id=1,
        round_trip_ns=85_000_000,
    )
    message = convert.from_draft(draft, ('a', 'b'), [0.5, 0.25], [])
    back = convert.to_observation(message)
    told = ('ticks', 'starved_ticks', 'answered_request_id', 'round_trip_ns')
    for name in ('session', 'episode', 'request_id', 'executed_steps', 'budget_ns', *told):
        assert getattr(back, name) == getattr(draft, name), name
    assert back.minimum_period_ns == 180_000_000
    np.testing.assert_array_equal(back.leftover, draft.leftover)
    assert back.state.tolist() == [0.5, 0.25]


def test_a_report_survives_the_wire() -> None:
    """Every counter: an operator sees what the executor has counted."""
    report = RobotReport(
        robot_id='r0',
        phase=ExecutorPhase.RUNNING,
        reasons=Counter({Reason.MISSING_CAMERA: 2, Reason.EXPIRED: 1}),
    )
    numbers = [field.name for field in fields(report) if field.type in ('int', int)]
    for value, name in enumerate(numbers, 1):
        setattr(report, name, value)
    assert len(numbers) > 15
    assert convert.to_report(convert.from_report(report)) == report


def test_the_status_of_a_fleet_survives_the_wire() -> None:
    robot = RobotStatus(
        robot_id='r0', robot_namespace='/r0', level=Level.WARN, text='late', silent_s=0.25,
        requests=9, responses=8, refused=1, responses_hz=5.5, goodput_hz=5.25, attainment=0.75,
        starved_share=0.5, budget_ns=1, minimum_period_ns=2, latency_p50_ns=3, latency_p99_ns=4,
        network_p50_ns=5, queued_steps=6, commitment_steps=7,
    )  # fmt: skip
    status = FleetStatus(
        epoch=2**63, state=ServerPhase.ERROR, model='tiny', scheduling_policy='edf', window_s=4.0,
        requests=99, responses=88, responses_hz=11.0, goodput_hz=10.5, attainment=0.5,
        starved_share=0.125, latency_p50_ns=1, latency_p99_ns=2, slots_used=3, num_slots=4,
        waiting=(1, 2, 3), occupancy=(0.25, 0.5, 1.0), protected_requests=5,
        prediction_error_ms=0.75, reasons=Counter({Reason.EXPIRED: 6}), robots=(robot,),
    )  # fmt: skip
    assert to_fleet_status(from_fleet_status(status, Time())) == status


@pytest.mark.parametrize('message', [Observation, Budget])
def test_a_budget_on_the_wire_is_a_whole_number(message: type[Any]) -> None:
    """SC-05: NaN has no place in it; what is absurd else is refused, see test_server.py."""
    assert message.get_fields_and_field_types()['budget_ns'] == 'int64'


def test_rows_that_do_not_fit_their_names_are_neither_cut_nor_padded() -> None:
    """CQ-11."""
    message = ActionChunk(joint_names=['a', 'b'], num_rows=2, rows=array('f', [1, 2, 3, 4, 5]))
    with pytest.raises(Rejected, match='5 values for 2 rows of 2 joints'):
        convert.to_answer(message)
    with pytest.raises(Rejected, match='unknown reason 999'):
        convert.to_answer(ActionChunk(reason=999))


@pytest.mark.parametrize(
    'data',
    [b'\x01\x02', array('B', [1, 2]), np.array([1, 2], np.uint8), memoryview(b'\x01\x02')],
    ids=lambda data: type(data).__name__,
)
def test_a_byte_field_always_gets_an_array(data: object) -> None:
    """TR-03: lists, and numpy arrays on some paths, are converted element by element."""
    assert convert.byte_array(data) == array('B', [1, 2])


def test_a_picture_of_921600_bytes_stays_an_array_from_camera_to_observation() -> None:
    """TR-03: whatever holds the bytes, the frame gets an array, which is copied at once."""
    picture = Image(encoding='rgb8', height=480, width=640, step=1920)
    picture.data = array('B', bytes(921_600))
    frame = convert.camera_frame('top', picture, compressed=False)
    assert type(frame.data) is array
    assert (frame.encoding, frame.step, len(frame.data)) == ('rgb8', 1920, 921_600)
    jpeg = CompressedImage(format='jpeg', data=array('B', bytes(100)))
    assert type(convert.camera_frame('top', jpeg, compressed=True).data) is array


def _list_assignments(source: str) -> list[int]:
    """Return the lines where something that looks like a list is assigned to a field ``data``."""
    lists = (ast.List, ast.ListComp)
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            names = [t.attr for t in node.targets if isinstance(t, ast.Attribute)]
            pairs = [(name, node.value) for name in names]
        elif isinstance(node, ast.Call):
            pairs = [(k.arg, k.value) for k in node.keywords]
        else:
            continue
        for name, value in pairs:
            is_list = isinstance(value, lists) or (
                isinstance(value, ast.Call)
                and getattr(value.func, 'id', getattr(value.func, 'attr', ''))
                in ('list', 'tolist')
            )
            if name in ('data', 'rows', 'leftover', 'state', 'positions') and is_list:
                found.append(node.lineno)
    return found


def test_no_list_is_ever_assigned_to_an_array_field() -> None:
    """TR-03, for every source of the nodes; the check itself can fail."""
    assert _list_assignments('m.data = list(x)\nm.rows = y.tolist()\nf(data=[1])') == [1, 2, 3]
    for path in SOURCES.glob('*.py'):
        assert _list_assignments(path.read_text()) == [], path


def test_our_types_have_the_same_hash_for_the_recorder_and_for_ros() -> None:
    """A bag of observations can be read by any tool that checks type hashes."""
    store = get_typestore(Stores.ROS2_KILTED)
    for name in ('CameraFrame', 'Observation'):
        text = (ROOT / 'msg' / f'{name}.msg').read_text()
        store.register(get_types_from_msg(text, f'xinfer_ros/msg/{name}'))
    ours = store.hash_rihs01('xinfer_ros/msg/Observation')
    Observation()  # loads the type support
    share = ROOT / '.venv' / 'share' / 'xinfer_ros' / 'msg' / 'Observation.json'
    if not share.is_file():
        pytest.skip('the generated type description is not in this prefix')
    assert ours in share.read_text()


def test_an_address_is_read_from_a_message_whose_body_is_broken() -> None:
    message = Observation(session=5, request_id=7, leftover_steps=9, joint_names=['a'])
    with pytest.raises(Rejected, match='neither cut nor padded'):
        convert.to_observation(message)
    assert convert.address(message).request_id == 7


def test_no_bytes_of_a_chunk_are_ever_executed(tmp_path: Path) -> None:
    """SE-01 at the executor: crafted and 10,000 random payloads in every field of bytes."""
    settings = ExecutorSettings(
        robot_id='r0',
        joint_names=('a', 'b'),
        keyframe_spacing_ns=30_000_000,
        minimum_period_ns=1,
        backoff_ns=1,
        commitment_steps=0,
        budget_ns=10**9,
    )
    executor = ChunkExecutor(settings)
    executor.granted(Grant(session=5, epoch=6, lease_ns=10**12), 0)
    canary = tmp_path / 'canary'
    crafted = pickle.dumps((Path.touch, canary)) + f'!!python/object {canary}'.encode()
    random = np.random.default_rng(12)
    refused = 0
    for index in range(10_000):
        data = crafted if index < 3 else random.bytes(int(random.integers(0, 64)))
        text = data.decode('latin-1').replace('\x00', ' ')
        floats = array('f', data[: len(data) // 4 * 4])
        executor.request_is_due(index)
        draft = executor.begin_request(index)
        assert draft is not None
        message = ActionChunk(
            session=5,
            epoch=6,
            request_id=draft.request_id,
            detail=text,
            joint_names=['a', 'b'] if index % 2 else [text, 'b'],
            rows=floats,
            num_rows=len(floats) // 2,
            keyframe_spacing_ns=30_000_000,
            start_step=draft.executed_steps,
        )
        try:
            refused += executor.accept(convert.to_answer(message), index) is not Reason.OK
        except Rejected as refusal:
            refused += executor.refuse(refusal) is not Reason.OK
        row = executor.tick()
        assert row is None or np.isfinite(row.values).all()
    assert refused > 5_000
    assert not canary.exists()
