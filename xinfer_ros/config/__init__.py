# SPDX-License-Identifier: Apache-2.0
"""Every setting of every node: default, bounds, unit, meaning. The only place for a default."""

from xinfer_ros.config.bounds import MAX_BUDGET_S
from xinfer_ros.config.brain import BrainConfig
from xinfer_ros.config.executor import ExecutorConfig
from xinfer_ros.config.replay import ReplayConfig
from xinfer_ros.config.server import MODEL_NAMES, ServerConfig

__all__ = [
    'MAX_BUDGET_S', 'MODEL_NAMES', 'BrainConfig', 'ExecutorConfig', 'ReplayConfig', 'ServerConfig',
]  # fmt: skip
