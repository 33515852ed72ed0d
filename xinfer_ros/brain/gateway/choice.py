# SPDX-License-Identifier: Apache-2.0
"""The controller that the settings ask for."""

from xinfer_ros.brain.admission import EpisodeAdmission
from xinfer_ros.brain.controller import Controller
from xinfer_ros.brain.controllers.aimd_hits import AimdHits
from xinfer_ros.brain.controllers.aimd_usage import AimdUsage
from xinfer_ros.brain.controllers.open import Open
from xinfer_ros.brain.controllers.static import Static
from xinfer_ros.brain.controllers.working_set import WorkingSet
from xinfer_ros.brain.guards import PreemptionGuard
from xinfer_ros.brain.rule import Rule
from xinfer_ros.config import BrainConfig
from xinfer_ros.config.working_set import WorkingSetConfig
from xinfer_ros.setting import changes, settings_from


def make_controller(config: BrainConfig) -> Controller:
    """
    Return a new controller, for one LLM server.

    :raises ConfigError: if a setting of the controller is wrong
    """
    given = changes(WorkingSetConfig, config.controller_settings, 'the controller working_set')
    origins = dict.fromkeys(given, 'controller_settings')
    settings = settings_from(WorkingSetConfig, given, origins)
    rules: dict[str, Rule] = {
        'open': Open(),
        'static': Static(config.static_episodes),
        'aimd_usage': AimdUsage(),
        'aimd_hits': AimdHits(),
        'working_set': WorkingSet(config.cache_tokens, settings, config.block_tokens),
    }
    guard = None if config.controller == 'open' else PreemptionGuard()
    return EpisodeAdmission(rules[config.controller], guard, config.block_tokens)
