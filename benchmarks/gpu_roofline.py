# SPDX-License-Identifier: Apache-2.0
"""
Times the three stages of a model of π0.5's size against what the device could do at best.

Run: ``.venv/bin/python benchmarks/gpu_roofline.py`` on a machine with a CUDA device. The weights
are random: 3.35 G parameters, bfloat16. The requests are the paper's: three pictures of 196x308,
a prefix of 395 tokens, H = 16, K = 10. Then robots with a period of 180 ms ask in a closed loop,
and the largest fleet with a median response below 150 ms is looked for.
``--device cpu --tiny`` runs the same code with a small model, ``--bounds H200`` measures nothing.
"""

import argparse
import statistics
from dataclasses import dataclass

import torch
from closed_loop import Fleet, largest_fleet
from paper_model import (
    CAMERAS,
    HORIZON,
    PREFIX,
    PROMPT,
    MergedPi05,
    filled,
    paper_config,
    served,
)
from torch import nn

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.stage import Stage
from xinfer_ros.models.adapter import StagedModel
from xinfer_ros.models.devices import chosen_device
from xinfer_ros.models.expert import AdaptiveNorm
from xinfer_ros.models.pi05 import Pi05
from xinfer_ros.models.tiny import drawn

SIZES = (1, 2, 4, 8)
# bfloat16 with float32 sums [TFLOP/s], memory [TB/s]
PEAKS = {'H200': (989.0, 4.8), 'RTX 5090': (209.5, 1.792)}


@dataclass(frozen=True, kw_only=True)
class Cost:
    """
    What a stage must do at least.

    :param operations: multiplications and additions of one request
    :param shared_bytes: weights, read once whatever the batch
    :param own_bytes: of the cache of one request, read or written
    """

    operations: float
    shared_bytes: float
    own_bytes: float = 0.0

    def bound_ms(self, batch: int, peak_tflops: float, bandwidth_tb: float) -> float:
        """Return the time of a batch on a device without any loss [ms]."""
        moved = self.shared_bytes + batch * self.own_bytes
        return max(batch * self.operations / peak_tflops, moved / bandwidth_tb) / 1e9


def _weights(*modules: nn.Module) -> int:
    """Return the number of weights that matrix products read."""
    return sum(p.numel() for m in modules for p in m.parameters() if p.ndim > 1)


def costs(model: Pi05, bytes_per_number: int) -> dict[Stage, Cost]:
    """Return the cost of each stage, from the model's own sizes."""
    vision, language, expert = model.config.vision, model.config.language, model.config.expert
    patches = vision.num_tokens
    tower = _weights(model.vision) - model.vision.embeddings.position_embedding.weight.numel()
    tokens = PREFIX - PROMPT
    attention = 4 * patches**2 * vision.hidden * vision.layers
    projector = _weights(model.projector)
    vit = CAMERAS * (2 * patches * tower + attention) + 2 * tokens * projector

    last = model.language.layers[-1]  # only its keys and values are wanted
    unused = _weights(last) - _weights(last.self_attn.k_proj, last.self_attn.v_proj)
    decoder = _weights(model.language.layers) - unused
    heads = language.heads * language.head_dim
    prefill = 2 * PREFIX * decoder + 4 * PREFIX**2 * heads * (language.layers - 1)

    norms = [m for m in model.expert.modules() if isinstance(m, AdaptiveNorm)]
    dense = _weights(*norms)  # used once, at the start
    rows = _weights(model.expert, model.action_in_proj, model.action_out_proj) - dense
    seen = 4 * HORIZON * (PREFIX + HORIZON) * heads * expert.layers
    steps = model.config.num_steps
    cache = PREFIX * 2 * language.layers * language.kv_width * bytes_per_number
    return {
        Stage.VIT: Cost(operations=vit, shared_bytes=(tower + projector) * bytes_per_number),
        Stage.PREFILL: Cost(
            operations=prefill, shared_bytes=decoder * bytes_per_number, own_bytes=cache
        ),
        Stage.ACTION: Cost(
            operations=steps * (2 * HORIZON * rows + seen),
            shared_bytes=steps * rows * bytes_per_number,
            own_bytes=steps * cache,
        ),
    }


def stage_ms(
    model: StagedModel, clock: MonotonicClock, stage: Stage, size: int, runs: int
) -> float:
    """Return the lower quartile of some runs as a lane sees them: with copies and waiting [ms]."""
    batch = Batch(slot_ids=tuple(range(size)), state_ids=tuple(range(size)))
    spans = []
    for _ in range(runs):
        start_ns = clock.now_ns()
        model.run(stage, batch)
        spans.append((clock.now_ns() - start_ns) / 1e6)
    return statistics.quantiles(spans, n=4)[0]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The least times that a device allows; without known peaks it has none."""

    costs: dict[Stage, Cost]
    peaks: tuple[float, float] | None

    def of(self, stage: Stage, batch: int) -> float | None:
        """Return the bound of a batch [ms]."""
        return self.costs[stage].bound_ms(batch, *self.peaks) if self.peaks else None


def peaks(arguments: argparse.Namespace, name: str) -> tuple[float, float] | None:
    """Return the device's peaks [TFLOP/s, TB/s]; None if nobody has said them."""
    known = next((value for part, value in PEAKS.items() if part in name), (None, None))
    tflops, bandwidth = arguments.peak_tflops or known[0], arguments.bandwidth or known[1]
    return (tflops, bandwidth) if tflops and bandwidth else None


def report(bounds: Bounds, times: dict[tuple[Stage, int], float]) -> None:
    """Print a row for each stage and batch: time, bound and share; what is missing is left out."""
    print(f'{"stage":8} {"batch":>5} {"ms":>9} {"ms/request":>11} {"bound ms":>9} {"share":>6}')
    for stage in Stage:
        for size in SIZES:
            bound, found = bounds.of(stage, size), times.get((stage, size))
            cells = [
                f'{found:9.3f} {found / size:11.3f}' if found else f'{"-":>9} {"-":>11}',
                f'{bound:9.3f}' if bound else f'{"-":>9}',
                f'{bound / found:6.0%}' if bound and found else f'{"-":>6}',
            ]
            print(f'{stage.name:8} {size:5}', *cells)
    whole = [times.get((stage, 1)) for stage in Stage]
    least = [bounds.of(stage, 1) for stage in Stage]
    if all(whole) and all(least):
        print(f'one request alone: {sum(least) / sum(whole):.0%} of the roofline')


def arguments_given() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--device', default='auto', help='auto, cpu, cuda or cuda:N')
    parser.add_argument('--tiny', action='store_true', help='a small model with the same code')
    parser.add_argument('--bounds', metavar='NAME', help='of this device, and measure nothing')
    parser.add_argument('--peak-tflops', type=float, help='of the type of the weights, dense')
    parser.add_argument('--bandwidth', type=float, help='of the device memory [TB/s]')
    parser.add_argument('--runs', type=int, default=50, help='of each stage and batch')
    parser.add_argument('--robots', type=int, default=64, help='largest fleet to try')
    parser.add_argument('--seconds', type=float, default=10.0, help='of each fleet')
    parser.add_argument('--workers', type=int, default=1, help='units of one stage at once')
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    arguments, clock = arguments_given(), MonotonicClock()
    torch.set_num_threads(1)
    device = torch.device('meta') if arguments.bounds else chosen_device(arguments.device)
    if device.type == 'cpu' and not arguments.tiny:
        raise SystemExit(
            'torch sees no CUDA device, and 3.35 G parameters on a CPU take minutes and 13 GB; '
            '--tiny runs the same code small, --bounds H200 prints the bounds alone'
        )
    narrow = arguments.bounds or device.type == 'cuda'
    with torch.device('meta'):
        model = MergedPi05(paper_config(arguments.tiny))
    model.to(torch.bfloat16 if narrow else torch.float32)
    number_bytes = model.action_in_proj.weight.itemsize
    name = arguments.bounds or (
        torch.cuda.get_device_name(device) if device.type == 'cuda' else 'this CPU'
    )
    bounds = Bounds(costs=costs(model, number_bytes), peaks=peaks(arguments, name))
    count = sum(p.numel() for p in model.parameters())
    print(
        f'{name}, torch {torch.__version__}, {count / 1e9:.2f} G parameters, {number_bytes} bytes'
    )
    if arguments.bounds:
        report(bounds, {})
        return
    staged = served(drawn(model, torch.Generator(device).manual_seed(0)))
    number = max(arguments.robots, *SIZES)
    plan = LanePlan(
        num_states=number, max_batch=(SIZES[-1],) * 3, workers=(arguments.workers,) * 3
    )
    start_ns = clock.now_ns()
    staged.bind(filled(staged.contract, number), plan)
    staged.warm_up()
    print(f'ready after {(clock.now_ns() - start_ns) / 1e9:.1f} s, {staged.num_recorded} graphs')
    times = {
        (stage, size): stage_ms(staged, clock, stage, size, arguments.runs)
        for size in SIZES
        for stage in Stage
    }
    report(bounds, times)
    fleet = Fleet(
        staged, clock, arguments.workers, {Stage.VIT: 1, Stage.PREFILL: 1, Stage.ACTION: 8}
    )
    robots = largest_fleet(fleet, arguments.robots, arguments.seconds)
    fleet.close()
    print(f'{robots} robots with a period of 180 ms have a median response below 150 ms')


if __name__ == '__main__':
    main()
