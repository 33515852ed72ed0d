# SPDX-License-Identifier: Apache-2.0
"""What response times mean in parcels: a projection from published measurements of delay."""

import json
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

HOUR_S = 3600.0
SOURCE = (
    'XInfer / FleetServe paper: table 3, parcels that one robot handled an hour with 0 to 200 ms '
    'of added response delay, and the constants of its projection (figure 2, equations 5 to 7); '
    'how they are put together here is our reading'
)
FORMULA = (
    'D = max(L − {baseline:g} ms, 0), where L is the median response time and {baseline:g} ms '
    'that of the robot measured; time per parcel t(D) = 3600 s / parcels handled, between the '
    'measured delays on a straight line, and beyond {last:g} ms t = {t200:.4f} s + {k:.7f} s/ms · '
    '(D − {last:g} ms), the slope from 100 to {last:g} ms; a robot handles 3600 s / t(D) parcels '
    'an hour, a fleet of N robots N times as many'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalProjection:
    """
    Parcels per hour over response time.

    :param delays_ms: added delays that were measured, rising ``(n,)`` [ms]
    :param handled: parcels handled in an hour at each of them ``(n,)`` [1/h]
    :param baseline_ms: response time without added delay [ms]
    :param last_s: time per parcel at the last delay [s]
    :param slope_s: of the time per parcel beyond it [s/ms]
    """

    delays_ms: npt.NDArray[np.float64]
    handled: npt.NDArray[np.float64]
    baseline_ms: float
    last_s: float
    slope_s: float

    @classmethod
    def published(cls) -> 'PhysicalProjection':
        """Return the projection of the published numbers, which ship with the package."""
        data = resources.files('xinfer_ros.fleet') / 'data' / 'paper_tables.json'
        found = json.loads(data.read_text())
        rows = np.asarray(found['table3_added_delay_parcels_per_h']['rows'], np.float64)
        fit = found['projection']
        return cls(
            delays_ms=rows[:, 0],
            handled=rows[:, 1],
            baseline_ms=float(fit['baseline_ms']),
            last_s=float(fit['t200_s']),
            slope_s=float(fit['k_s_per_ms']),
        )

    def parcel_s(self, latency_ms: float) -> float:
        """Return the time that a robot takes for a parcel [s]."""
        delay_ms = max(latency_ms - self.baseline_ms, 0.0)
        beyond_ms = delay_ms - float(self.delays_ms[-1])
        if beyond_ms > 0.0:
            return self.last_s + self.slope_s * beyond_ms
        return float(np.interp(delay_ms, self.delays_ms, HOUR_S / self.handled))

    def is_extrapolated(self, latency_ms: float) -> bool:
        """Return whether nobody has measured a delay as long."""
        return latency_ms - self.baseline_ms > float(self.delays_ms[-1])

    def parcels_per_hour(self, robots: int, latency_ms: float) -> float:
        """Return the parcels that a fleet handles in an hour."""
        return robots * HOUR_S / self.parcel_s(latency_ms)

    def words(self) -> str:
        """Return the formula, for the page that shows it."""
        return FORMULA.format(
            baseline=self.baseline_ms,
            last=float(self.delays_ms[-1]),
            t200=self.last_s,
            k=self.slope_s,
        )
