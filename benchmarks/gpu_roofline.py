# SPDX-License-Identifier: Apache-2.0
"""
Times the three stages of a model of π0.5's size against what the device could do at best.

Run: ``.venv/bin/python benchmarks/gpu_roofline.py`` on a machine with a CUDA device. The weights
are random: 3.35 G parameters, bfloat16. The requests are the paper's: three pictures of 196x308,
a prefix of 395 tokens, H = 16, K = 10. Then robots with a period of 180 ms ask in a closed loop,
and the largest fleet with a median response below 150 ms is looked for.
``--device cpu --tiny`` runs the same code with a small model; ``--bounds`` computes the bounds only.
"""

import argparse
import heapq
import queue
import statistics
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from xinfer_ros.core.batch import Batch, LanePlan
from xinfer_ros.core.clock import MonotonicClock
from xinfer_ros.core.contract import CameraSpec, ModelContract
from xinfer_ros.core.slot import SlotArrays, slot_arrays, slot_memory_bytes
from xinfer_ros.core.stage import Stage
from xinfer_ros.models.actions import ActionSpace
from xinfer_ros.models.adapter import StagedModel, write_sample
from xinfer_ros.models.aloha import aloha_contract, aloha_statistics
from xinfer_ros.models.devices import chosen_device
from xinfer_ros.models.expert import AdaptiveNorm
from xinfer_ros.models.gemma import GemmaConfig
from xinfer_ros.models.pi05 import Pi05, Pi05Config, published_config
from xinfer_ros.models.processor import Pi05Processor, StatePrompt
from xinfer_ros.models.siglip import VisionConfig
from xinfer_ros.models.staged import ServingOptions, StagedPi05
from xinfer_ros.models.tiny import drawn
from xinfer_ros.models.tokenizer import ByteTokenizer

CAMERAS, HEIGHT, WIDTH, PATCH, MERGE = 3, 196, 308, 14, 2
PREFIX, HORIZON, WIDTH_OF_ROW = 395, 16, 32
PROMPT = PREFIX - CAMERAS * (HEIGHT // PATCH // MERGE) * (WIDTH // PATCH // MERGE)
SIZES = (1, 2, 4, 8)
PERIOD_NS, MEDIAN_NS = 180_000_000, 150_000_000
# bfloat16 with float32 sums [TFLOP/s], memory [TB/s]
PEAKS = {'H200': (989.0, 4.8), 'RTX 5090': (209.5, 1.792)}


def paper_config(tiny: bool) -> Pi05Config:
    """Return the sizes: published widths, or small ones, with the paper's pictures."""
    published = published_config()
    vision, decoder = {'hidden': 1152, 'layers': 27, 'mlp': 4304, 'heads': 16}, published.language
    expert = published.expert
    if tiny:
        vision = {'hidden': 32, 'layers': 1, 'mlp': 64, 'heads': 2}
        decoder = expert = GemmaConfig(
            hidden=32, layers=2, mlp=64, heads=2, kv_heads=1, head_dim=16
        )
    return Pi05Config(
        vision=VisionConfig(height=HEIGHT, width=WIDTH, patch=PATCH, **vision),
        language=decoder,
        expert=expert,
        vocabulary=300 if tiny else published.vocabulary,
        horizon=HORIZON,
        action_width=WIDTH_OF_ROW,
    )


class MergedPi05(Pi05):
    """A π0.5 whose projector makes one token of a block of 2x2 patches, as the paper's input is."""

    def __init__(self, config: Pi05Config) -> None:
        super().__init__(config)
        self.projector = nn.Linear(MERGE**2 * config.vision.hidden, config.language.hidden)

    @torch.inference_mode()
    def vit(self, images: Tensor) -> Tensor:
        """Return ``(N, tokens, language width)``."""
        size, tokens = self.config.vision, self.vision(images)
        down, across = size.height // PATCH // MERGE, size.width // PATCH // MERGE
        grid = tokens.view(-1, down, MERGE, across, MERGE, size.hidden).transpose(2, 3)
        features: Tensor = self.projector(grid.reshape(len(tokens), down * across, -1))
        return features


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


def paper_contract() -> ModelContract:
    """Return the contract: two arms of seven joints, three pictures of 196x308."""
    robot = aloha_contract('paper', 100)
    return ModelContract(
        name='paper',
        cameras=tuple(
            CameraSpec(name=camera.name, height=HEIGHT, width=WIDTH) for camera in robot.cameras
        ),
        joint_names=robot.joint_names,
        horizon=HORIZON,
        max_commitment_steps=HORIZON // 2,
        max_instruction_bytes=PROMPT,
    )


def served(model: Pi05) -> StagedPi05:
    """Return the model over slots, with room for exactly the paper's prefix."""
    limits = aloha_statistics()
    prompt = StatePrompt(
        statistics=limits, tokenizer=ByteTokenizer(), tokens=PROMPT, model_name='paper'
    )
    processor = Pi05Processor(state_prompt=prompt, action_space=ActionSpace(statistics=limits))
    options = ServingOptions(processor=processor, prompt_rooms=(PROMPT,), capture=True)
    return StagedPi05(paper_contract(), model, options)


def filled(contract: ModelContract, count: int) -> SlotArrays:
    """Return slots with a request each, tied to a leftover."""
    memory = memoryview(bytearray(slot_memory_bytes(contract, count)))
    slots = slot_arrays(contract, count, memory)
    for slot in range(count):
        write_sample(slots, slot, 'transfer the cube to the other arm')
        slots.leftover_steps[slot], slots.commitment_steps[slot] = HORIZON - 6, 6
        slots.seed[slot] = slot
    return slots


def stage_ms(
    model: StagedModel, clock: MonotonicClock, stage: Stage, size: int, runs: int
) -> float:
    """Return the lower quartile of some runs as a lane sees them: staging, device, waiting [ms]."""
    batch = Batch(slot_ids=tuple(range(size)), state_ids=tuple(range(size)))
    spans = []
    for _ in range(runs):
        start_ns = clock.now_ns()
        model.run(stage, batch)
        spans.append((clock.now_ns() - start_ns) / 1e6)
    return statistics.quantiles(spans, n=4)[0]


class Fleet:
    """
    Robots that ask in a closed loop, and a first-come pipeline of lanes that serves them.

    :param model: bound to a slot and a state for each robot
    :param workers: threads of each lane
    :param largest: members of a unit of each lane; it takes whoever waits, and waits for nobody
    """

    def __init__(
        self, model: StagedModel, clock: MonotonicClock, workers: int, largest: dict[Stage, int]
    ) -> None:
        self._model, self._clock, self._largest = model, clock, largest
        self._waiting = {stage: queue.SimpleQueue[int | None]() for stage in Stage}
        self._ended: queue.SimpleQueue[int | Exception] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, args=(stage, worker), daemon=True)
            for stage in Stage
            for worker in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the lanes."""
        for thread in self._threads:
            for stage in Stage:
                self._waiting[stage].put(None)
        for thread in self._threads:
            thread.join()

    def median_ns(self, robots: int, seconds: float) -> float:
        """Return the median response time of so many robots, the first second left out [ns]."""
        start = self._clock.now_ns()
        end = start + round((1 + seconds) * 1e9)
        due = [(start + PERIOD_NS * robot // robots, robot) for robot in range(robots)]
        sent: dict[int, int] = {}
        responses = []
        while due or sent:
            now = self._clock.now_ns()
            while due and due[0][0] <= now:
                _, robot = heapq.heappop(due)
                sent[robot] = now
                self._waiting[Stage.VIT].put(robot)
            try:
                done = self._ended.get(timeout=(due[0][0] - now) / 1e9 if due else None)
            except queue.Empty:
                continue
            if isinstance(done, Exception):
                raise done
            now, asked = self._clock.now_ns(), sent.pop(done)
            if asked - start > 1e9:
                responses.append(now - asked)
            if now < end:
                heapq.heappush(due, (max(asked + PERIOD_NS, now), done))
        return statistics.median(responses)

    def _members(self, stage: Stage) -> Iterator[int]:
        """Yield who waits for a stage; the first is waited for."""
        robot = self._waiting[stage].get()
        for _ in range(self._largest[stage] - 1):
            if robot is None:
                return
            yield robot
            try:
                robot = self._waiting[stage].get_nowait()
            except queue.Empty:
                return
        if robot is not None:
            yield robot

    def _work(self, stage: Stage, worker: int) -> None:
        following = stage.following
        while members := tuple(self._members(stage)):
            try:
                self._model.run(stage, Batch(slot_ids=members, state_ids=members, worker=worker))
            except Exception as error:
                self._ended.put(error)
                return
            for robot in members:
                (self._ended if following is None else self._waiting[following]).put(robot)


def largest_fleet(fleet: Fleet, most: int, seconds: float) -> int:
    """Return how many robots have a median below 150 ms; each step is printed."""
    good, bad = 0, most + 1
    while bad - good > 1:
        robots = min(max(2 * good, 1), most) if bad > most else (good + bad) // 2
        if robots == good:
            break
        median = fleet.median_ns(robots, seconds)
        print(f'  {robots} robots: median response {median / 1e6:.1f} ms')
        good, bad = (robots, bad) if median < MEDIAN_NS else (good, robots)
    return good


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
