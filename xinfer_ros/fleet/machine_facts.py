# SPDX-License-Identifier: Apache-2.0
"""On what something was measured: a result without it means little."""

import os
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil

PACKAGES = (
    'xinfer_ros',
    'ros-rclpy',
    'ros-rmw-fastrtps-cpp',
    'numpy',
    'torch',
    'opencv-python-headless',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """
    A machine and what runs on it.

    :param versions: of packages that decide about times, by name
    :param load_per_core: processes that wanted to run over the minute before, mean, a core
    """

    cpu: str
    cores: int
    memory_gb: float
    system: str
    python: str
    versions: dict[str, str]
    load_per_core: float

    def lines(self) -> list[tuple[str, str]]:
        """Return what there is to say, each with its name."""
        return [
            ('processor', f'{self.cpu}, {self.cores} cores'),
            ('memory', f'{self.memory_gb:.1f} GB'),
            ('system', self.system),
            ('Python', self.python),
            *sorted(self.versions.items()),
            ('load of the minute before', f'{self.load_per_core:.2f} a core'),
        ]


def machine_facts() -> MachineFacts:
    """Return the facts of this machine."""
    cores = len(os.sched_getaffinity(0))
    return MachineFacts(
        cpu=_cpu(),
        cores=cores,
        memory_gb=psutil.virtual_memory().total / 1e9,
        system=f'{platform.system()} {platform.release()}',
        python=platform.python_version(),
        versions={name: version for name in PACKAGES if (version := _version(name))},
        load_per_core=os.getloadavg()[0] / cores,
    )


def _cpu() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(':')[2].strip() for line in lines if line.startswith('model name')]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ''
