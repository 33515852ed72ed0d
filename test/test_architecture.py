# SPDX-License-Identifier: Apache-2.0
"""Who may import whom, who may read a clock, and what nobody may do, read from the source."""

import sys
from pathlib import Path

import pytest
from source import GENERATED, PACKAGE, Source, read_sources

ROOT = Path(__file__).parents[1]
MAX_LINES = 300
MAX_NODE_LINES = 150

# A folder may import itself, these, and the leaves (errors, config); DESIGN.md §10
ALLOWED = {
    'core': set(),
    'predict': {'core'},
    'sched': {'predict', 'core', '_native'},
    'robot': {'core'},
    'sim': {'sched', 'predict', 'robot', 'core', '_native'},
    'models': {'predict', 'core'},
    'engine': {'sched', 'predict', 'models', 'core'},
    'observe': {'engine', 'sched', 'predict', 'core'},
    'openpi': {'engine', 'core'},
    'episodes': {'core'},
    'physics': {'sim', 'robot', 'core'},
    'fleet': {
        'sim', 'sched', 'predict', 'engine', 'observe', 'openpi', 'robot', 'episodes', 'physics',
        'brain', 'core',
    },
    'brain': {'core'},
    'pool': {'engine', 'core'},
    'ros': {
        'core', 'predict', 'sched', 'robot', 'models', 'engine', 'observe', 'openpi', 'episodes',
        'brain', 'pool',
    },
}  # fmt: skip
LEAVES = {'errors', 'config', 'setting'}
ROS_PACKAGES = {'rclpy', 'launch', 'launch_ros', 'rosidl_runtime_py', 'builtin_interfaces'}
BAG_PACKAGES = {'rosbags', 'mcap', 'pyarrow', 'rosbag2_py', 'h5py', 'av', 'zstandard', 'lz4'}
PHYSICS_PACKAGES = {'mujoco', 'dm_control', 'gym_aloha'}
PURE = {'core', 'predict', 'sched', 'robot'}
PURE_PACKAGES = {'numpy', 'numba'}
CLOCKS = {
    'time.time', 'time.time_ns', 'time.monotonic', 'time.monotonic_ns', 'time.perf_counter',
    'time.perf_counter_ns', 'time.process_time', 'time.process_time_ns', 'time.thread_time',
    'time.thread_time_ns', 'time.clock_gettime', 'time.clock_gettime_ns', 'time.gmtime',
    'time.localtime', 'datetime.datetime.now', 'datetime.datetime.utcnow',
    'datetime.datetime.today', 'datetime.date.today',
}  # fmt: skip
# core/clock.py is the clock; the others have a reason each
CLOCK_READERS = {
    'core/clock.py': {'time.monotonic_ns', 'datetime.date.today'},
    'ros/server_main.py': {'time.time_ns'},  # a nonce, never compared
    'ros/process_group.py': {'time.monotonic'},  # stands in for ros2 launch, outside of any node
}
PICKLES = {'pickle', 'cPickle', '_pickle', 'marshal', 'shelve', 'dill', 'cloudpickle', 'joblib'}
UNSAFE_CALLS = {
    'eval', 'exec', 'compile', '__import__', 'os.system', 'os.popen',
    'yaml.load', 'yaml.load_all', 'yaml.unsafe_load', 'yaml.unsafe_load_all', 'yaml.full_load',
    'yaml.full_load_all', 'torch.load', 'torch.hub.load', 'numpy.memmap',
}  # fmt: skip


def folder_faults(source: Source) -> list[str]:
    """Return imports from folders that this one must not know."""
    if source.folder == 'cli':
        return []
    faults = []
    for line, name in source.facts.imports:
        parts = name.split('.')
        if parts[0] != PACKAGE or len(parts) < 2:
            continue
        other = parts[1]
        permitted = LEAVES | {source.folder} | ALLOWED.get(source.folder, set())
        if source.folder == 'ros':
            permitted = permitted | GENERATED
        if source.folder in LEAVES:
            permitted = LEAVES
        if other not in permitted:
            faults.append(f'{source.path}:{line}: {source.folder} must not import {name}')
    return faults


def package_faults(source: Source) -> list[str]:
    """Return imports of other packages that belong elsewhere."""
    faults = []
    lane = source.folder == 'engine' and source.path.split('/')[1].startswith('lane')
    for line, name in source.facts.imports:
        top = name.split('.')[0]
        is_ros = top in ROS_PACKAGES or top.endswith('_msgs') or top.endswith('_interfaces')
        wrong = {
            'torch only in models/ and the lanes': top == 'torch'
            and not (source.folder == 'models' or lane),
            'ROS only in ros/': is_ros and source.folder != 'ros',
            'bags only in episodes/': top in BAG_PACKAGES and source.folder != 'episodes',
            'physics only in physics/': top in PHYSICS_PACKAGES and source.folder != 'physics',
            'numpy and the standard library only': source.folder in PURE | LEAVES
            and top not in sys.stdlib_module_names | PURE_PACKAGES | {PACKAGE},
        }
        faults += [f'{source.path}:{line}: {name}: {why}' for why, is_so in wrong.items() if is_so]
    return faults


def clock_faults(source: Source) -> list[str]:
    """Return readings of a clock outside of the places that may."""
    permitted = CLOCK_READERS.get(source.path, set())
    return [
        f'{source.path}:{line}: {name} reads a clock; take core.clock.Clock'
        for line, name in source.facts.names
        if name in CLOCKS and name not in permitted
    ]


def unsafe_faults(source: Source) -> list[str]:
    """Return what could turn received bytes into running code."""
    faults = [
        f'{source.path}:{line}: {name} can run what it reads'
        for line, name in source.facts.imports
        if name.split('.')[0] in PICKLES
    ]
    faults += [
        f'{source.path}:{line}: {name} can run what it reads'
        for line, name in source.facts.calls
        if name in UNSAFE_CALLS
    ]
    faults += [
        f'{source.path}:{line}: {name} is not safe'
        for line, name in source.facts.names
        if name.startswith('yaml.') and name.endswith('Loader') and name != 'yaml.SafeLoader'
    ]
    faults += [
        f'{source.path}:{line}: {name} is on'
        for line, name in source.facts.switches
        if name in ('shell', 'allow_pickle')
    ]
    return faults


def faults_of_tests(source: Source) -> list[str]:
    """Return what a test must not do: mock, sleep, or start ROS outside of test/ros/."""
    faults = []
    for line, name in source.facts.imports:
        top = name.split('.')[0]
        if name.startswith('unittest.mock') or top == 'mock':
            faults.append(f'{source.path}:{line}: {name}: doubles are products, not mocks')
        if (top == 'rclpy' or top.endswith('_msgs')) and source.folder != 'ros':
            faults.append(f'{source.path}:{line}: {name}: only test/ros/ needs ROS')
    faults += [
        f'{source.path}:{line}: {name}: no test sleeps'
        for line, name in source.facts.names
        if name in ('time.sleep', 'asyncio.sleep', 'unittest.mock')
    ]
    return faults


def header_faults(source: Source) -> list[str]:
    """Return files without licence header."""
    good = source.text.startswith('# SPDX-License-Identifier: Apache-2.0\n')
    return [] if good else [f'{source.path}:1: no SPDX header']


PRODUCT = read_sources(ROOT / PACKAGE)
TESTS = read_sources(ROOT / 'test')


def test_there_is_something_to_check() -> None:
    folders = {source.folder for source in PRODUCT}
    assert {'core', 'sched', 'robot', 'engine', 'ros', 'fleet', 'episodes', 'cli'} <= folders
    assert folders <= set(ALLOWED) | LEAVES | {'cli', '__init__'}


CHECKERS = [folder_faults, package_faults, clock_faults, unsafe_faults, header_faults]


@pytest.mark.parametrize('check', CHECKERS, ids=lambda check: check.__name__)
def test_package_keeps_to(check) -> None:
    """SE-01 (unsafe_faults): no pickle, eval, unsafe YAML or unrestricted torch.load anywhere."""
    assert [fault for source in PRODUCT for fault in check(source)] == []


@pytest.mark.parametrize('check', [faults_of_tests, header_faults], ids=lambda c: c.__name__)
def test_tests_keep_to(check) -> None:
    assert [fault for source in TESTS for fault in check(source)] == []


def test_modules_are_not_too_long() -> None:
    """A module names one noun; above 300 lines it is two."""
    lengths = {source.path: len(source.text.splitlines()) for source in PRODUCT}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_no_message_is_held_back_without_a_count() -> None:
    """OB-02: whatever may repeat goes through core/repeats.py."""
    assert [source.path for source in PRODUCT if 'throttle_duration_sec' in source.text] == []


def test_nodes_are_thin() -> None:
    """They turn messages into dataclasses and hand over to objects that need no ROS."""
    nodes = {s.path: len(s.text.splitlines()) for s in PRODUCT if s.path.endswith('_node.py')}
    assert len(nodes) >= 3
    assert {path: lines for path, lines in nodes.items() if lines > MAX_NODE_LINES} == {}


OFFENDING = [
    (folder_faults, 'core/a.py', 'from xinfer_ros.sched import fifo'),
    (folder_faults, 'core/a.py', 'def f():\n    import xinfer_ros.engine.lane'),
    (folder_faults, 'core/a.py', 'from ..robot import session'),
    (folder_faults, 'robot/a.py', 'from xinfer_ros.sched.fifo import Fifo'),
    (folder_faults, 'sched/a.py', 'from xinfer_ros import robot'),
    (folder_faults, 'engine/a.py', 'from xinfer_ros.ros import convert'),
    (folder_faults, 'engine/a.py', 'from xinfer_ros.msg import Budget'),
    (folder_faults, 'ros/a.py', 'from xinfer_ros.fleet.run import FleetRun'),
    (folder_faults, 'models/a.py', 'from xinfer_ros.engine import lane'),
    (folder_faults, 'errors.py', 'from xinfer_ros.core import chunk'),
    (folder_faults, 'core/a.py', 'from xinfer_ros.cli import main'),
    (package_faults, 'engine/pipeline.py', 'import torch'),
    (package_faults, 'ros/a.py', 'from torch import nn'),
    (package_faults, 'engine/a.py', 'from rclpy.node import Node'),
    (package_faults, 'fleet/a.py', 'from std_msgs.msg import String'),
    (package_faults, 'ros/a.py', 'import rosbags.rosbag2'),
    (package_faults, 'core/a.py', 'import yaml'),
    (package_faults, 'robot/a.py', 'import rich.console'),
    (clock_faults, 'robot/a.py', 'import time\nx = time.monotonic()'),
    (clock_faults, 'engine/a.py', 'from time import perf_counter_ns as now\nx = now()'),
    (clock_faults, 'engine/a.py', 'import time as t\nf = t.time'),
    (clock_faults, 'fleet/a.py', 'from datetime import datetime\nx = datetime.now()'),
    (clock_faults, 'core/clock.py', 'import time\nx = time.time()'),
    (clock_faults, 'ros/server_node.py', 'import time\nx = time.monotonic_ns()'),
    (unsafe_faults, 'engine/a.py', 'import pickle'),
    (unsafe_faults, 'engine/a.py', 'from marshal import loads'),
    (unsafe_faults, 'ros/a.py', 'x = eval("1")'),
    (unsafe_faults, 'ros/a.py', 'exec("x = 1")'),
    (unsafe_faults, 'ros/a.py', 'import yaml\nyaml.load("", yaml.SafeLoader)'),
    (unsafe_faults, 'ros/a.py', 'from yaml import unsafe_load as f\nf("")'),
    (unsafe_faults, 'ros/a.py', 'import yaml\ng(Loader=yaml.FullLoader)'),
    (unsafe_faults, 'models/a.py', 'import torch\ntorch.load("x")'),
    (unsafe_faults, 'models/a.py', 'import torch as t\nt.load("x", weights_only=False)'),
    (unsafe_faults, 'models/a.py', 'import numpy as np\nnp.load("x", allow_pickle=True)'),
    (unsafe_faults, 'ros/a.py', 'import subprocess\nsubprocess.run("ls", shell=True)'),
    (faults_of_tests, 'core/test_a.py', 'from unittest.mock import Mock'),
    (faults_of_tests, 'core/test_a.py', 'from unittest import mock'),
    (faults_of_tests, 'core/test_a.py', 'import time\ntime.sleep(1)'),
    (faults_of_tests, 'ros/test_a.py', 'from time import sleep\nsleep(1)'),
    (faults_of_tests, 'core/test_a.py', 'import rclpy'),
    (header_faults, 'core/a.py', '"""No header."""'),
]


@pytest.mark.parametrize(('check', 'path', 'text'), OFFENDING)
def test_offence_is_found(check, path: str, text: str) -> None:
    assert check(Source(path, text))


HARMLESS = [
    (folder_faults, 'sched/a.py', 'from xinfer_ros.core.stage import Stage\nfrom . import fifo'),
    (folder_faults, 'core/a.py', 'from xinfer_ros.errors import Reason\nimport xinfer_ros.config'),
    (folder_faults, 'ros/a.py', 'from xinfer_ros.msg import Budget\nfrom ..engine import robots'),
    (folder_faults, 'cli/a.py', 'from xinfer_ros.fleet.run import FleetRun'),
    (package_faults, 'engine/lane_cuda.py', 'import torch'),
    (package_faults, 'models/a.py', 'import torch\nimport cv2'),
    (package_faults, 'ros/a.py', 'import rclpy\nfrom sensor_msgs.msg import Image'),
    (package_faults, 'core/a.py', 'import numpy.typing as npt\nimport heapq, numba'),
    (clock_faults, 'robot/a.py', 'def f(clock):\n    return clock.now_ns() + self.time.time()'),
    (clock_faults, 'core/clock.py', 'import time\nx = time.monotonic_ns()'),
    (
        unsafe_faults,
        'models/a.py',
        'model.eval()\nre.compile("x")\nimport yaml\nyaml.safe_load("")',
    ),
    (unsafe_faults, 'ros/a.py', 'import os\nos.execv("a", [])\nsubprocess.run("ls", shell=False)'),
    (faults_of_tests, 'ros/test_a.py', 'import rclpy'),
    (header_faults, 'core/a.py', '# SPDX-License-Identifier: Apache-2.0\n"""Good."""'),
]


@pytest.mark.parametrize(('check', 'path', 'text'), HARMLESS)
def test_nothing_is_found_where_nothing_is(check, path: str, text: str) -> None:
    assert check(Source(path, text)) == []
