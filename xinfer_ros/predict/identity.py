# SPDX-License-Identifier: Apache-2.0
"""What a calibration is good for: one model, as it is served, on one device."""

from dataclasses import dataclass

from xinfer_ros.core.contract import ModelContract


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """
    A model on a device.

    :param setting: what the setting ``model`` says: a name, or the folder of a checkpoint
    :param model: name in the model's contract
    :param model_facts: what else of it decides about its times, see ``model_facts``
    :param device: see ``cpu_device``; on CUDA the name of the GPU
    """

    setting: str
    model: str
    model_facts: str
    device: str

    def words(self, with_facts: bool) -> str:
        """Return it for an error text."""
        facts = f' ({self.model_facts})' if with_facts else ''
        return f'model {self.model}{facts} on {self.device}'


def cpu_device(model_name: str, cores: int) -> str:
    """
    Return the name of a CPU as a device: another number of cores is another device.

    :param model_name: as the operating system gives it
    :param cores: those that the process may use
    """
    return f'{model_name}, {cores} core{"" if cores == 1 else "s"}'


def model_facts(contract: ModelContract, *, dtype: str, jacobian: str, torch_threads: int) -> str:
    """
    Return what decides about the times of a model beside its name.

    The way in which chunks are tied is left out unless it takes a derivative, since it costs
    next to nothing.

    :param dtype: type of the weights
    :param jacobian: what the guidance takes, ``identity`` or ``vjp``
    :param torch_threads: CPU threads of one stage, 0 on a GPU
    """
    threads = f'{torch_threads} thread{"" if torch_threads == 1 else "s"} a stage'
    sizes = ' '.join(f'{camera.width}x{camera.height}' for camera in contract.cameras)
    parts = [
        f'cameras {sizes}' if sizes else 'no camera',
        f'{contract.action_dim} joints',
        f'horizon {contract.horizon}',
        f'instructions of {contract.max_instruction_bytes} bytes',
        '+'.join(stage.name for stage in contract.stages),
        *([contract.network] if contract.network else []),
        dtype,
        *(['guidance by vjp'] if jacobian == 'vjp' else []),
        *([threads] if torch_threads else []),
    ]
    return ', '.join(parts)


def remedy(setting: str) -> str:
    """Return what to do about a missing or wrong calibration, as half a sentence."""
    return f'measure this one with `xinfer calibrate --model {setting} --output FILE.json`'
