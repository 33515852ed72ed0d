# SPDX-License-Identifier: Apache-2.0
"""Whether an LLM server gets on: by its tokens, never by what its health endpoint says."""

from dataclasses import dataclass, field
from enum import Enum

PROBE_SHARE = 0.4  # of the time limit, after which a silent server is asked for a token


class Probe(Enum):
    """What came of a probe."""

    TOKEN = 'token'
    SHUT_OUT = 'shut out'  # the server answers, but wants an API key
    NOTHING = 'nothing'


class Verdict(Enum):
    """What has changed about a server."""

    SAME = 'same'
    DOWN = 'down'
    UP = 'up'


@dataclass(slots=True)
class ProgressWatch:
    """
    Judges one LLM server by its progress; values in, verdicts out.

    A server is down when it has work and nothing has come of it for ``limit_ns``: no byte of any
    answer, no step counted in its metrics, no completed probe. A probe, one token asked for, is
    sent well before, since a long prompt alone or a long answer in one piece is silent too. It is
    up again after one completed probe, or one that its server shuts out: then calls have to tell.

    :param limit_ns: silence that is death [ns]
    :param probe_period_ns: time between two probes of a dead server [ns]
    """

    limit_ns: int
    probe_period_ns: int
    why: str = ''
    _running: set[int] = field(default_factory=set)
    _moved_ns: int = 0
    _heard_ns: int | None = None
    _probe_sent_ns: int | None = None
    _probing: bool = False
    _steps: float | None = None

    @property
    def is_down(self) -> bool:
        """Return whether the server is taken for dead."""
        return bool(self.why)

    @property
    def _is_at_work(self) -> bool:
        """Return whether something should come; a probe stays when its call is given up."""
        return bool(self._running) or self._probing

    def started(self, call: int, now_ns: int) -> None:
        """Take note of a call that was sent; the first after a rest begins the silence."""
        if not self._is_at_work:
            self._moved_ns = now_ns
        self._running.add(call)

    def moved(self, now_ns: int) -> None:
        """Take note of bytes of an answer."""
        self._moved_ns = self._heard_ns = now_ns

    def ended(self, call: int) -> None:
        """Take note that a call is over."""
        self._running.discard(call)

    def counted(self, steps: float | None, now_ns: int) -> None:
        """
        Take note of the steps that the server has counted.

        :param steps: any number that rises with its work, None: it tells none
        """
        if steps is not None and self._steps is not None and steps != self._steps:
            self._moved_ns = now_ns
        self._steps = steps

    def failed(self, why: str, now_ns: int) -> Verdict:
        """
        Take note that the server could not be reached, in words.

        While answers are coming it is no death: a server that is being replaced ends them first.
        """
        if not self.is_down and self._is_heard(now_ns):
            return Verdict.SAME
        was_down, self.why = self.is_down, why
        self._probe_sent_ns = now_ns if not was_down else self._probe_sent_ns
        return Verdict.SAME if was_down else Verdict.DOWN

    def _is_heard(self, now_ns: int) -> bool:
        if not self._running or self._heard_ns is None:
            return False
        return now_ns - self._heard_ns < PROBE_SHARE * self.limit_ns

    def probed(self, found: Probe, now_ns: int) -> Verdict:
        """Take note of the end of a probe."""
        self._probing = False
        if found is Probe.NOTHING or (found is Probe.SHUT_OUT and not self.is_down):
            return Verdict.SAME
        self._moved_ns, was_down, self.why = now_ns, self.is_down, ''
        return Verdict.UP if was_down else Verdict.SAME

    def take_probe(self, now_ns: int) -> bool:
        """Return whether a probe is to be sent now; then it counts as sent."""
        sent_ns = self._probe_sent_ns
        if self.is_down:
            due = sent_ns is None or now_ns - sent_ns >= self.probe_period_ns
        else:
            quiet_ns = now_ns - self._moved_ns
            due = bool(self._running) and quiet_ns >= PROBE_SHARE * self.limit_ns
            due = due and (sent_ns is None or sent_ns < self._moved_ns)
        if not due or self._probing:
            return False
        self._probing, self._probe_sent_ns = True, now_ns
        return True

    def judge(self, now_ns: int) -> Verdict:
        """Return whether the server has just been found dead."""
        silent_ns = now_ns - self._moved_ns
        if self.is_down or not self._is_at_work or silent_ns < self.limit_ns:
            return Verdict.SAME
        work = f'{len(self._running)} calls' + (' and a probe' if self._probing else '')
        self.why = (
            f'{work} are at the LLM server, and nothing has come of any for '
            f'{silent_ns / 1e9:.1f} s'
        )
        return Verdict.DOWN

    def look_again_ns(self, now_ns: int) -> int:
        """Return when to look again at the latest [ns]."""
        if self.is_down:
            sent_ns = self._probe_sent_ns
            if self._probing:
                return now_ns + self.limit_ns
            return now_ns if sent_ns is None else max(sent_ns + self.probe_period_ns, now_ns)
        if not self._is_at_work:
            return now_ns + self.limit_ns
        probe_ns = self._moved_ns + round(PROBE_SHARE * self.limit_ns)
        end_ns = self._moved_ns + self.limit_ns
        return probe_ns if now_ns < probe_ns else max(end_ns, now_ns)
