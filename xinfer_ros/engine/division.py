# SPDX-License-Identifier: Apache-2.0
"""A device divided between Context and Action: threads of a CPU, as far as it has them."""

from collections.abc import Callable
from dataclasses import dataclass

from xinfer_ros.core.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """
    How many CPU threads the units of a stage use; a GPU is not divided.

    :param context: threads of ViT and Prefill, 0 if the device stays whole
    :param action: threads of Action, 0 likewise
    :param words: what became of the wish, in one line; empty if there was none
    """

    context: int = 0
    action: int = 0
    words: str = ''

    @classmethod
    def of(cls, context_share: float, *, on_cpu: bool, cores: int) -> 'Division':
        """
        Return the division that comes nearest to a share.

        :param context_share: of Context, 0 if the policy does not divide the device
        :param cores: of the CPU that this process may use
        """
        if not context_share:
            return cls()
        if not on_cpu or cores < 2:
            kind = 'a CPU of one core' if on_cpu else 'a GPU'
            text = f'context_share {context_share:g}: {kind} is not divided; both parts share it'
            return cls(words=text)
        context = min(max(round(context_share * cores), 1), cores - 1)
        action = cores - context
        text = f'context_share {context_share:g}: {context} CPU threads for Context, {action} for'
        return cls(context=context, action=action, words=f'{text} Action')

    def threads(self, stage: Stage) -> int:
        """Return the threads of a unit of a stage, 0: as set for the process."""
        return self.action if stage is Stage.ACTION else self.context

    def beginner(self, use_threads: Callable[[int], None]) -> Callable[[Stage], None]:
        """
        Return what a worker does first.

        :param use_threads: sets the number of threads of operations of the calling thread
        """

        def begin(stage: Stage) -> None:
            if count := self.threads(stage):
                use_threads(count)

        return begin
