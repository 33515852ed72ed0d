// SPDX-License-Identifier: Apache-2.0
// The rows of a robot are kept while it is known; only what has changed is written.

import { NOTHING, element, make, milliseconds, percent, rate, setText } from './words.js';

const BADNESS = { ERROR: 2, WARN: 1, OK: 0 };
const LEAST_SCALE = 10;
const SIZES = [[6, 'small'], [12, 'middle'], [18, 'large'], [Infinity, 'huge']];

const CELLS = ['robot', 'level', 'share', 'goodput', 'latency', 'network', 'budget', 'queue', 'starved'];
const NUMBERS = ['share', 'goodput', 'latency', 'network', 'budget', 'starved'];
const EXTRA = ['goodput', 'network', 'budget'];

class Rows {
  constructor() {
    this.body = make('tbody', 'of-a-robot');
    const line = this.body.appendChild(make('tr'));
    this.cells = {};
    for (const name of CELLS) {
      const kinds = [name, NUMBERS.includes(name) && 'number', EXTRA.includes(name) && 'extra'];
      this.cells[name] = line.appendChild(make('td', kinds.filter(Boolean).join(' ')));
    }
    this.chip = this.cells.level.appendChild(make('span', 'chip'));
    this.bar = this.cells.queue.appendChild(make('div', 'bar'));
    this.fill = this.bar.appendChild(make('div', 'fill'));
    this.mark = this.bar.appendChild(make('div', 'mark'));
    this.steps = this.cells.queue.appendChild(make('span', 'steps'));
    this.why = this.body.appendChild(make('tr')).appendChild(make('td', 'why'));
    this.why.colSpan = CELLS.length;
  }

  show(robot, scale) {
    const { cells } = this;
    this.body.dataset.level = robot.level;
    this.body.dataset.robot = robot.robot_id;
    const door = robot.door === 'ros' ? '' : ` (${robot.door})`;
    setText(cells.robot, robot.robot_id + door);
    this.chip.dataset.level = robot.level;
    setText(this.chip, robot.registered ? robot.level : 'LOST');
    setText(cells.share, percent(robot.attainment));
    setText(cells.goodput, `${rate(robot.goodput_hz)}/s`);
    const p50 = milliseconds(robot.latency_p50_ms);
    setText(cells.latency, `${p50} / ${milliseconds(robot.latency_p99_ms)}`);
    setText(cells.network, milliseconds(robot.network_p50_ms));
    setText(cells.budget, milliseconds(robot.budget_ms));
    setText(cells.starved, robot.starved_share === null ? NOTHING : percent(robot.starved_share));
    setText(this.why, robot.text);
    this.showQueue(robot, scale);
  }

  showQueue({ queued_steps: queued, commitment_steps: handoff }, scale) {
    this.fill.style.width = `${(100 * Math.min(queued, scale)) / scale}%`;
    this.mark.style.left = `${(100 * Math.min(handoff, scale)) / scale}%`;
    this.bar.dataset.level = queued === 0 ? 'ERROR' : queued < handoff ? 'WARN' : 'OK';
    this.bar.title = `${queued} rows left; the next chunk takes over behind ${handoff}`;
    setText(this.steps, String(queued));
  }
}

export class FleetTable {
  constructor() {
    this.robots = new Map();
    this.scale = LEAST_SCALE;
    this.newest = null;
    this.button = element('sort');
    this.button.onclick = () => this.sortWorst(!this.worstFirst);
    this.sortWorst(location.hash === '#worst');
  }

  // The choice stands in the address, so that a wall's bookmark keeps it
  sortWorst(on) {
    this.worstFirst = on;
    this.button.setAttribute('aria-pressed', String(on));
    history.replaceState(null, '', on ? '#worst' : location.pathname + location.search);
    if (this.newest !== null) {
      this.show(this.newest);
    }
  }

  show(data) {
    this.newest = data;
    const robots = this.sorted([...data.robots]);
    const queues = robots.flatMap((robot) => [robot.queued_steps, robot.commitment_steps]);
    this.scale = Math.max(this.scale, ...queues);
    const known = new Set(robots.map((robot) => robot.robot_id));
    for (const [name, rows] of this.robots) {
      if (!known.has(name)) {
        rows.body.remove();
        this.robots.delete(name);
      }
    }
    robots.forEach((robot, place) => this.place(robot, place));
    // a small fleet is written large: it is read from across the room
    element('fleet').dataset.size = SIZES.find(([most]) => robots.length <= most)[1];
    element('nobody').hidden = robots.length > 0;
  }

  place(robot, place) {
    let rows = this.robots.get(robot.robot_id);
    if (rows === undefined) {
      rows = new Rows();
      this.robots.set(robot.robot_id, rows);
    }
    rows.show(robot, this.scale);
    const bodies = element('table').tBodies;
    if (bodies[place] !== rows.body) {
      element('table').insertBefore(rows.body, bodies[place] ?? null);
    }
  }

  sorted(robots) {
    const byName = (one, other) =>
      one.robot_id.localeCompare(other.robot_id, undefined, { numeric: true });
    const byBadness = (one, other) =>
      BADNESS[other.level] - BADNESS[one.level] ||
      (one.attainment ?? 1) - (other.attainment ?? 1) ||
      byName(one, other);
    return robots.sort(this.worstFirst ? byBadness : byName);
  }
}
