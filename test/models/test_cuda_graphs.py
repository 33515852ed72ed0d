# SPDX-License-Identifier: Apache-2.0
"""The stages as CUDA graphs, on a real device."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from xinfer_ros.core.batch import LanePlan
from xinfer_ros.core.stage import Stage
from xinfer_ros.errors import Reason
from xinfer_ros.models.device_error import classify
from xinfer_ros.models.rtc import RtcOptions

from .staged_models import TIES, TINY, Parts, Served, Serving, same, tiny_parts

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason='torch sees no CUDA device'),
]

PLAN = LanePlan(num_states=6, max_batch=(3, 3, 3), workers=(2, 2, 2))


@pytest.fixture(scope='module', params=TINY)
def name(request: pytest.FixtureRequest) -> str:
    """Return the name of one tiny model of each family."""
    return str(request.param)


@pytest.fixture(scope='module')
def parts(name: str) -> Parts:
    """Return that model on the device."""
    return tiny_parts(name, 'cuda')


@pytest.fixture(scope='module')
def started(parts: Parts) -> Served:
    """Return it with two workers a stage, batches of up to three and several rooms for prompts."""
    return Serving(plan=PLAN, roomy=True).start(parts)


@pytest.fixture
def served(started: Served) -> Served:
    """Return the same with fresh requests."""
    started.fill()
    return started


@pytest.mark.parametrize('rtc', TIES.values(), ids=TIES)
def test_replays_answer_what_the_device_answers_without_graphs(
    parts: Parts, rtc: RtcOptions
) -> None:
    """Every stage and batch, with requests that differ from those of the capture."""
    graphs = Serving(rtc=rtc, roomy=True).start(parts)
    plain = Serving(rtc=rtc, roomy=True, capture=False).start(parts)
    for batch in ([0], [5], [3, 1], [4, 5, 2], [1, 2, 0]):
        same(graphs.answers(batch), plain.answers(batch))


def test_device_answers_what_a_cpu_answers(name: str, served: Served) -> None:
    plain = Serving(capture=False, roomy=True).start(tiny_parts(name))
    for batch in ([0, 1, 2], [3, 4, 5]):
        same(served.answers(batch), plain.answers(batch), tolerance=1e-3)


def test_narrow_weights_answer_nearly_the_same(name: str, served: Served) -> None:
    narrow = Serving(roomy=True).start(tiny_parts(name, 'cuda', torch.bfloat16))
    same(narrow.answers([0, 1, 2]), served.answers([0, 1, 2]), tolerance=0.5)


def test_every_program_has_a_graph_and_none_is_captured_late(parts: Parts, served: Served) -> None:
    """SL-06."""
    served.model.warm_up()
    recorded = served.model.num_recorded
    assert recorded == 2 * 3 + 2 * (2 * 3 * len(parts.rooms))
    for worker in (0, 1):
        for batch in ([0], [1, 2], [3, 4, 5]):
            served.answers(batch, worker=worker)
    assert served.model.num_recorded == recorded


def test_warm_up_leaves_states_as_they_were(served: Served) -> None:
    expected = served.answers([0, 1])
    for stage in (Stage.VIT, Stage.PREFILL):
        served.run(stage, [0, 1], [0, 1])
    served.model.warm_up()
    served.slots.actions[:] = 0
    served.run(Stage.ACTION, [0, 1], [0, 1])
    same(served.slots.actions[:2], expected)


def test_workers_of_all_stages_run_at_once_as_they_do_one_by_one(served: Served) -> None:
    """SL-01: six streams of two priorities at once."""
    expected = np.concatenate([served.answers([slot]) for slot in range(6)])
    with ThreadPoolExecutor(6) as threads:
        for _ in range(20):
            served.slots.actions[:] = 0
            for beat in range(5):  # a pipeline of pairs
                running = [
                    threads.submit(served.run, stage, [slot], [5 - slot], slot % 2)
                    for stage in Stage
                    for slot in (2 * (beat - stage), 2 * (beat - stage) + 1)
                    if 0 <= slot < 6
                ]
                for unit in running:
                    assert not unit.result()
            same(served.slots.actions, expected)


def test_workers_of_one_stage_run_at_once_for_long(served: Served) -> None:
    """Replays of the same size share neither memory nor graphs."""
    expected = served.answers([0, 1, 2]), served.answers([3, 4, 5])
    members = [0, 1, 2], [3, 4, 5]

    def repeat(worker: int) -> None:
        for _ in range(50):
            served.slots.actions[members[worker]] = 0
            served.run(Stage.ACTION, members[worker], members[worker], worker)
            same(served.slots.actions[members[worker]], expected[worker])

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(repeat, (0, 1)))


@pytest.mark.parametrize('bad', [0, 1, 2], ids=['first', 'middle', 'last'])
def test_refused_member_changes_nothing_for_the_others(served: Served, bad: int) -> None:
    """RT-07."""
    slots = [3, 0, 4]
    good = [slot for slot in slots if slot != slots[bad]]
    expected = np.concatenate([served.answers([slot]) for slot in good])
    served.slots.instruction[slots[bad], :2] = 0xFF  # not UTF-8
    served.run(Stage.VIT, slots, [5, 1, 2])
    refused = served.run(Stage.PREFILL, slots, [5, 1, 2])
    assert [refused[slot].reason for slot in refused] == [Reason.REJECTED_INSTRUCTION]
    served.run(Stage.ACTION, slots, [5, 1, 2])
    same(served.slots.actions[good], expected)


def test_lack_of_memory_is_told_and_passes(served: Served) -> None:
    """SL-04."""
    expected = served.answers([0])
    with pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(1 << 50, dtype=torch.uint8, device='cuda')
    assert classify(caught.value) == 'out_of_memory'
    same(served.answers([0]), expected)


def test_failed_device_is_told_as_lost() -> None:
    """SL-04: in a process of its own, as no later call of that process succeeds."""
    code = (
        'import torch\n'
        'from xinfer_ros.models.device_error import classify\n'
        'found = []\n'
        'for _ in range(2):\n'
        '    try:\n'
        "        rows = torch.zeros(3, device='cuda')\n"
        "        rows[torch.full((1,), 9, device='cuda')]\n"
        '        torch.cuda.synchronize()\n'
        '    except RuntimeError as error:\n'
        '        found.append(classify(error))\n'
        'print(*found, flush=True)'
    )
    told = subprocess.run(
        [sys.executable, '-c', code], stdout=subprocess.PIPE, text=True, check=False
    )
    assert told.stdout.split() == ['device_lost', 'device_lost']
