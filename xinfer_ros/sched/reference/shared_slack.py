# SPDX-License-Identifier: Apache-2.0
"""XInfer / FleetServe: blocking-aware promotion and shared-slack admission."""

from xinfer_ros.core.stage import Stage
from xinfer_ros.predict.progress import Load
from xinfer_ros.sched.decision import Verdict
from xinfer_ros.sched.reference.policy import STAGE_ORDER, Policy
from xinfer_ros.sched.reference.state import HISTORY_WINDOW, Arrival, Request, State
from xinfer_ros.sched.settings import XInferSettings

ALONE = (0, 0, 0)


class SharedSlack(Policy):
    """
    Ordinary work may take of protected requests no more than their slack.

    ``P`` are the promoted requests, ``L`` those late even alone, ``H = P - L`` the protected ones.
    """

    def __init__(self, state: State, settings: XInferSettings) -> None:
        super().__init__(state)
        self._settings = settings
        self._foreseen: list[int] = []  # n^f after the last refresh

    def choose(self) -> None:
        """
        Start what is protected, and what the checks admit.

        Prefill and ViT are ordered anew after every launch, deferred ones are tested again
        (reading 13); Action keeps its order.
        Source: algorithm 1.
        """
        self._refresh()
        for stage in STAGE_ORDER:
            while self._scan(stage) and stage is not Stage.ACTION:
                pass

    def shields(self, request: Request) -> bool:
        """Return whether a request is protected."""
        return request.is_protected

    def _scan(self, stage: Stage) -> bool:
        """Go through what waits, up to the first launch or, for Action, to the end."""
        launched = False
        # sorted() is stable: protected first, each part by (deadline, key)
        for request in sorted(self.state.ready[stage], key=lambda r: not r.is_protected):
            if not self.state.has_room(stage):
                break
            shielded = request.is_protected
            if not shielded and not self._admits(request):
                continue
            self.launch([request], Verdict.ISSUED_PROTECTED if shielded else Verdict.ISSUED)
            self._refresh()
            launched = True
            if stage is not Stage.ACTION:
                break
        return launched

    def _protected(self) -> list[Request]:
        return [request for request in self.state.live if request.is_protected]

    def _foreseeable(self) -> list[int]:
        """
        Return ``n^f``: running units and the protected ready ones that free lanes can take.

        A protected request counts at its current stage only (reading 6).
        """
        counts = list(self.state.running)
        waiting = [request.stage for request in self._protected() if request.unit is None]
        for stage in Stage:
            free = self.state.limits[stage] - counts[stage]
            counts[stage] += max(min(waiting.count(stage), free), 0)
        return counts

    def _refresh(self) -> None:
        """
        Promote whom a running ordinary unit could make late, until nothing is added.

        Source: algorithm 2.
        """
        state = self.state
        alone = state.predictor.load(ALONE)
        for request in state.live:
            request.hopeless = state.slack(alone, request) < 0.0
        added = True
        while added:
            load = state.predictor.load(self._foreseeable())
            blocking = self._blocking(load)
            added = False
            for request in state.live:
                blocked = max((left for left, who in blocking if who is not request), default=0.0)
                if request.promoted_at is None and state.slack(load, request) < blocked:
                    request.promoted_at = state.now
                    added = True
        self._foreseen = self._foreseeable()

    def _blocking(self, load: Load) -> list[tuple[float, Request]]:
        """
        Return the two largest residuals of running ordinary units, with whose they are.

        Two suffice: ``B_j`` is the largest of another request than ``j`` (reading 5). Ordinary is
        who is not in ``H``, so a hopeless promoted request is (reading 4).
        """
        if self._settings.zero_slack_promotion:
            return []
        residuals = [
            (unit.progress.residual_ms(self.state.now, load), request)
            for unit in self.state.units
            for request in unit.members
            if not request.is_protected
        ]
        return sorted(residuals, key=lambda pair: -pair[0])[:2]

    def _admits(self, request: Request) -> bool:
        """Return whether an ordinary unit may start: both checks, or what an ablation says."""
        if self._settings.strict_gating:
            protected = self._protected()
            if protected:
                self.note(request, Verdict.DEFERRED_GATE, against=protected[0].key)
            return not protected
        if self._settings.entry_only and request.stage is not Stage.VIT:
            return True
        after = list(self._foreseen)
        after[request.stage] += 1
        return self._is_current_feasible(request, after) and (
            not self._settings.arrival_aware or self._is_forecast_feasible(request, after)
        )

    def _is_current_feasible(self, request: Request, after: list[int]) -> bool:
        """
        Return whether for every ``h`` in ``H``: ``R_h(n^f + e_s) - R_h(n^f) <= sigma_h(n^f)``.

        Literally: nothing passes while an ``h`` has no slack at all (reading 7).
        Source: equation 4.
        """
        state = self.state
        load, load_after = state.predictor.load(self._foreseen), state.predictor.load(after)
        for other in self._protected():
            cost = state.remaining(load_after, other) - state.remaining(load, other)
            slack = state.slack(load, other)
            if cost > slack:
                self.note(
                    request, Verdict.DEFERRED_CURRENT, against=other.key, slack=slack, cost=cost
                )
                return False
        return True

    def _is_forecast_feasible(self, request: Request, after: list[int]) -> bool:
        """
        Return whether who is foreseen while the candidate runs can still meet its budget.

        For each forecast ``e``: ``delta + f + R_V(n'_e) <= b_e``, with ``n'_e`` the foreseeable
        load, the candidate and the forecasts before ``e``, without ``e`` itself (reading 2).
        Source: algorithm 1, forecast check.
        """
        counts = list(after)
        for forecast in self._forecasts(request, after):
            load = self.state.predictor.load(counts)
            need = (
                self._settings.reserved_ms
                + self.state.front_end
                + load.stage_ms[Stage.VIT]
                + load.rest_ms[Stage.VIT]
            )
            if need > forecast.budget:
                self.note(
                    request,
                    Verdict.DEFERRED_FORECAST,
                    slack=forecast.budget - need,
                    cost=need,
                    foreseen=forecast.time,
                )
                return False
            counts[Stage.VIT] += 1
        return True

    def _forecasts(self, request: Request, after: list[int]) -> list[Arrival]:
        """
        Return the arrivals foreseen while the candidate runs that are due before it.

        A budget seen ``k`` times in the last ``P`` comes at ``max(t, a_last + P / k)`` and every
        ``P / k`` after (reading 9); the candidate runs for ``q_s(n^f + e_s)`` (reading 8).
        """
        now = self.state.now
        end = now + self.state.predictor.stage_ms(request.stage, after)
        seen: dict[float, list[float]] = {}
        for arrival in self.state.history:
            if arrival.time > now - HISTORY_WINDOW:
                seen.setdefault(arrival.budget, []).append(arrival.time)
        forecasts = []
        for budget, times in seen.items():
            step = HISTORY_WINDOW / len(times)
            at = max(now, max(times) + step)
            while at < end:
                if at + budget - self._settings.reserved_ms < request.deadline:
                    forecasts.append(Arrival(time=at, budget=budget))
                at += step
        return sorted(forecasts, key=lambda forecast: forecast.time)
