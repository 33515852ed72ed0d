// SPDX-License-Identifier: Apache-2.0
// The last five minutes; without the charting library the page does without.

import { element, milliseconds, percent, rate, setText } from './words.js';

const SECONDS = 300;
const EVERY_MS = 1000;

const COLUMNS = ['attainment', 'responses_hz', 'goodput_hz', 'latency_p50_ms', 'latency_p99_ms'];
const PLOTS = [
  { name: 'attainment', unit: '%', lines: [['attainment', '--good']], range: shares },
  { name: 'goodput', unit: '/s', lines: [['responses_hz', '--ordinary'], ['goodput_hz', '--good']] },
  { name: 'latency', unit: 'ms', lines: [['latency_p50_ms', '--ordinary'], ['latency_p99_ms', '--protected']] },
];

// 98 % and 100 % are told apart as long as nothing worse happened
function shares(_, low) {
  return [low === null || low < 50 ? 0 : low < 90 ? 50 : 90, 100];
}

function fromZero(_, low, high) {
  return [0, Math.max(1, 1.1 * (high ?? 1))];
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function ago(seconds) {
  return seconds === 0 ? 'now' : `−${-seconds / 60} min`;
}

export class Charts {
  constructor() {
    this.points = [];
    this.plots = [];
    element('no-charts').hidden = 'uPlot' in window;
    if (!('uPlot' in window)) {
      document.querySelectorAll('#charts figure').forEach((figure) => figure.remove());
      return;
    }
    this.build();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.build());
    new ResizeObserver(() => this.resize()).observe(element('charts'));
  }

  build() {
    this.plots.forEach(({ plot }) => plot.destroy());
    this.plots = PLOTS.map((shape) => ({ ...shape, plot: this.plot(shape) }));
    this.draw();
  }

  plot({ name, unit, lines, range }) {
    const grid = { stroke: colour('--grid'), width: 1 };
    const axis = { stroke: colour('--dim'), grid, ticks: { show: false }, font: '12px sans-serif' };
    const box = element(`chart-${name}`);
    return new window.uPlot(
      {
        width: Math.max(100, box.clientWidth),
        height: Math.max(60, box.clientHeight),
        legend: { show: false },
        cursor: { show: false },
        padding: [6, 16, 0, 0],
        scales: {
          x: { time: false, range: [-SECONDS, 0] },
          y: { range: range ?? fromZero },
        },
        axes: [
          { ...axis, size: 22, splits: () => [-240, -180, -120, -60, 0],
            values: (_, places) => places.map(ago) },
          { ...axis, size: 56, space: 24,
            values: (_, places) => places.map((value) => `${value} ${unit}`) },
        ],
        series: [{}, ...lines.map(([, name]) => (
          { stroke: colour(name), width: 2, points: { show: false } }))],
      },
      [[], ...lines.map(() => [])],
      box,
    );
  }

  resize() {
    for (const { name, plot } of this.plots) {
      const box = element(`chart-${name}`);
      plot.setSize({ width: Math.max(100, box.clientWidth), height: Math.max(60, box.clientHeight) });
    }
  }

  show({ now_ms: now, fleet, history }) {
    if (!this.plots.length) {
      return;
    }
    if (history.length) {
      this.points = history;
    }
    const last = this.points[this.points.length - 1];
    if (last === undefined || now - last.at_ms >= EVERY_MS) {
      const served = fleet.responses_hz > 0;
      this.points.push({
        ...fleet,
        at_ms: now,
        latency_p50_ms: served ? fleet.latency_p50_ms : null,
        latency_p99_ms: served ? fleet.latency_p99_ms : null,
      });
    }
    this.now = now;
    this.points = this.points.filter((point) => now - point.at_ms <= 1000 * SECONDS);
    this.draw();
    setText(element('key-attainment'), percent(fleet.attainment));
    setText(element('key-goodput'), `${rate(fleet.goodput_hz)}/s on time`);
    setText(element('key-responses'), `of ${rate(fleet.responses_hz)}/s`);
    setText(element('key-p50'), `P50 ${milliseconds(fleet.latency_p50_ms)} ms`);
    setText(element('key-p99'), `P99 ${milliseconds(fleet.latency_p99_ms)} ms`);
  }

  draw() {
    const seconds = this.points.map((point) => (point.at_ms - this.now) / 1000);
    const columns = Object.fromEntries(
      COLUMNS.map((name) => [name, this.points.map((point) => point[name])]),
    );
    columns.attainment = columns.attainment.map((share) => (share === null ? null : 100 * share));
    for (const { plot, lines } of this.plots) {
      plot.setData([seconds, ...lines.map(([name]) => columns[name])]);
    }
  }
}
