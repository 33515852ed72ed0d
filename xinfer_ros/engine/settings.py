# SPDX-License-Identifier: Apache-2.0
"""What the engine makes of the server's settings; both processes read them the same way."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from xinfer_ros.config import ServerConfig
from xinfer_ros.core.batch import ByStage, LanePlan
from xinfer_ros.engine.decision_writer import check_log_folder
from xinfer_ros.errors import ConfigError
from xinfer_ros.models.folder import existing_folder, is_folder
from xinfer_ros.models.options import ModelOptions
from xinfer_ros.predict.calibration import Calibration
from xinfer_ros.predict.matching import serving_calibration
from xinfer_ros.sched.core import SchedulerCore
from xinfer_ros.sched.native import NativeCore, native_core
from xinfer_ros.sched.registry import scheduler_of
from xinfer_ros.sched.scheduler import Scheduler
from xinfer_ros.sched.settings import POLICIES, policy_settings
from xinfer_ros.sched.settings_base import PolicySettings
from xinfer_ros.sched.settings_group import RobionSettings
from xinfer_ros.setting import changes

SPARE_SLOTS = 4  # for requests that were superseded while they ran
HUNG_STAGES = 20  # a unit that takes this many times the slowest stage is taken for hung
MARGIN = 3  # times the slowest stage that a unit must be allowed
# settings of a policy that the server has settings of its own for
OWN = {'stage_overlap': 'stage_overlap', 'max_held': 'max_in_stages'}


@dataclasses.dataclass(frozen=True, slots=True)
class EngineSettings:
    """
    The engine's view of the settings.

    :param config: of the server
    """

    config: ServerConfig

    @classmethod
    def from_json(cls, text: str) -> 'EngineSettings':
        """Return the settings that ``to_json`` has written."""
        return cls(ServerConfig(**json.loads(text)))

    def to_json(self) -> str:
        """
        Return the settings as one line, for the command line of a process.

        Everybody on the machine may read that, so tokens, and the doors they open, are left out.
        """
        doorless = dataclasses.replace(
            self.config, http_port=0, http_token='', websocket_port=0, websocket_token=''
        )
        return json.dumps(dataclasses.asdict(doorless))

    @property
    def num_slots(self) -> int:
        """Return the slots to allocate: one a robot, and a few."""
        return self.config.max_robots + SPARE_SLOTS

    @property
    def num_states(self) -> int:
        """Return the states of the model to allocate."""
        return self.config.max_in_stages or self.num_slots

    def options(self) -> ModelOptions:
        """Return how the model is to be loaded and used."""
        return ModelOptions.from_config(self.config)

    def device(self) -> Calibration:
        """
        Return the calibration as the lanes use it.

        Without concurrency in a stage, it is cut to one unit of one request in each.

        :raises ConfigError: if there is none, or it is not good
        """
        if is_folder(self.config.model):
            existing_folder(self.config.model)  # else its calibration would be missed first
        calibration = serving_calibration(self.config.calibration, self.config.model)
        calibration = dataclasses.replace(calibration, reserved_ms=self.config.reserved_s * 1e3)
        if self.config.stage_concurrency:
            return calibration
        return dataclasses.replace(
            calibration,
            rates=np.ascontiguousarray(calibration.rates[:, :2, :2, :2]),
            batch_work=((1.0,), (1.0,), (1.0,)),
        )

    def checked(self) -> Calibration:
        """
        Return what ``device`` does, once all that can be known before a start is in order.

        :raises ConfigError: if anything is wrong with it, the policy, the times or the log
        """
        device = self.device()
        self.policy_changes(device)
        self.hung_ns(device)
        if self.config.decision_log:
            check_log_folder(Path(self.config.decision_log))
        return device

    def plan(self, device: Calibration) -> LanePlan:
        """Return what the model must be ready for."""
        return LanePlan(
            workers=device.bound, max_batch=_max_batch(device), num_states=self.num_states
        )

    def policy_changes(self, device: Calibration) -> dict[str, Any]:
        """
        Return the settings of the scheduling policy that differ from its defaults.

        :raises ConfigError: if the policy has no such setting
        """
        name = self.config.scheduling_policy
        owner, what = POLICIES[name].of(device), f'scheduling policy {name}'
        found = changes(owner, self.config.policy_settings, what)
        for key, ours in OWN.items():
            if key in found:
                raise ConfigError(f'policy_settings has {key}; set {ours} of the server instead')
        return found | {key: getattr(self.config, ours) for key, ours in OWN.items()}

    def core(self, device: Calibration) -> NativeCore:
        """Return a new scheduler core."""
        return native_core(device, self.policy(device))

    def scheduler(self, core: SchedulerCore, device: Calibration) -> Scheduler:
        """Return the scheduler of an engine, which asks a core of these settings."""
        return scheduler_of(
            core, self.policy(device), device, round_barrier=self.config.round_barrier
        )

    def policy(self, device: Calibration) -> PolicySettings:
        """
        Return the settings of the scheduling policy.

        :raises ConfigError: if the policy has no such setting
        """
        return policy_settings(
            self.config.scheduling_policy, device, **self.policy_changes(device)
        )

    def context_share(self, device: Calibration) -> float:
        """Return the share of the device that the policy wants for Context, 0: undivided."""
        policy = self.policy(device)
        return policy.context_share if isinstance(policy, RobionSettings) else 0.0

    def hung_ns(self, device: Calibration) -> int:
        """
        Return the age at which a unit is taken for hung, and robots are told so [ns].

        Later for slow stages, but well before the engine is ended.

        :raises ConfigError: if the engine would be ended while a stage works as it usually does
        """
        slowest_ms: float = max(
            work * batch[-1] / rates.min()
            for work, batch, rates in zip(
                device.work_ms, device.batch_work, device.rates, strict=True
            )
        )
        timeout_s = self.config.unit_timeout_s
        if MARGIN * slowest_ms > 1e3 * timeout_s:
            raise ConfigError(
                f'unit_timeout_s is {timeout_s:g}, but a unit takes up to '
                f'{slowest_ms / 1e3:.3g} s by the calibration; '
                f'{MARGIN * slowest_ms / 1e3:.3g} s or more is needed'
            )
        hung_s = max(self.config.hung_after_s, HUNG_STAGES * slowest_ms / 1e3)
        return round(min(hung_s, timeout_s / 2) * 1e9)


def _max_batch(device: Calibration) -> ByStage:
    vit, prefill, action = (len(batch) for batch in device.batch_work)
    return vit, prefill, action
