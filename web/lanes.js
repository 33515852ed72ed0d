// SPDX-License-Identifier: Apache-2.0
// The lanes as a timeline that moves; a unit is found by its stage and number.

import { element, make, setText } from './words.js';

const PIXELS_PER_SECOND = 240;
const DELAY_MS = 1000; // updates come late by as much
const KEPT_MS = 15000;
const FRAME_MS = 33;
const ROW_GAP = 2;

export class Lanes {
  constructor() {
    this.units = new Map();
    this.offset = null; // the server's clock less this page's [ms]
    this.epoch = '';
    this.rows = [1, 1, 1];
    this.pointer = null;
    this.drawnAt = 0;
    this.canvas = element('canvas');
    this.canvas.onpointermove = (event) => {
      this.pointer = { x: event.offsetX, y: event.offsetY };
    };
    this.canvas.onpointerleave = () => {
      this.pointer = null;
    };
    this.readColours();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.readColours());
    const frame = (now) => {
      if (now - this.drawnAt >= FRAME_MS) {
        this.drawnAt = now;
        this.draw(now);
      }
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    this.colours = Object.fromEntries(
      ['ordinary', 'protected', 'lane', 'grid', 'dim', 'text'].map((name) => [
        name, style.getPropertyValue(`--${name}`).trim(),
      ]),
    );
  }

  take({ now_ms: now, stages, fleet, timeline }) {
    const offset = now - performance.now();
    // the least delay seen is the truest; it follows slowly, should a clock drift
    this.offset = this.offset === null || this.epoch !== fleet.epoch || Math.abs(offset - this.offset) > 2000
      ? offset
      : Math.max(offset, this.offset - 1);
    if (this.epoch !== fleet.epoch) {
      this.epoch = fleet.epoch;
      this.units.clear();
    }
    for (const [stage, number, start, end, isProtected, places, keys] of timeline.units) {
      const robots = places.map((place) => timeline.names[place]);
      const row = this.units.get(`${stage}/${number}`)?.row ?? this.freeRow(stage, start);
      this.units.set(`${stage}/${number}`, { stage, number, start, end, isProtected, robots, keys, row });
    }
    this.forget(now);
    this.showNames(stages, fleet);
  }

  freeRow(stage, start) {
    const taken = new Set();
    for (const unit of this.units.values()) {
      if (unit.stage === stage && (unit.end === null || unit.end > start)) {
        taken.add(unit.row);
      }
    }
    let row = 0;
    while (taken.has(row)) {
      row += 1;
    }
    return row;
  }

  forget(now) {
    this.rows = [1, 1, 1];
    for (const [name, unit] of this.units) {
      if (now - (unit.end ?? unit.start) > KEPT_MS) {
        this.units.delete(name);
      } else {
        this.rows[unit.stage] = Math.max(this.rows[unit.stage], unit.row + 1);
      }
    }
  }

  showNames(stages, fleet) {
    const list = element('lane-names');
    while (list.children.length < stages.length) {
      const item = list.appendChild(make('li'));
      item.append(make('b'), make('span'));
    }
    stages.forEach((stage, place) => {
      const [name, numbers] = list.children[place].children;
      setText(name, stage);
      const busy = `${(100 * fleet.occupancy[place]).toFixed(0)} % busy`;
      setText(numbers, `${busy}, ${fleet.waiting[place]} wait`);
    });
  }

  // Returns the unit's rectangle in CSS pixels
  place(unit, rightMs, width, laneHeight) {
    const end = unit.end ?? rightMs;
    const right = width - ((rightMs - end) * PIXELS_PER_SECOND) / 1000;
    const left = width - ((rightMs - unit.start) * PIXELS_PER_SECOND) / 1000;
    const height = (laneHeight - 10) / this.rows[unit.stage];
    const top = unit.stage * laneHeight + 5 + unit.row * height;
    return { left, top, width: Math.max(1.5, right - left), height: height - ROW_GAP };
  }

  draw(now) {
    const { canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    }
    const paint = canvas.getContext('2d');
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.clearRect(0, 0, width, height);
    const laneHeight = (height - 18) / 3;
    paint.fillStyle = this.colours.lane;
    for (let lane = 0; lane < 3; lane += 1) {
      paint.fillRect(0, lane * laneHeight + 3, width, laneHeight - 6);
    }
    if (this.offset === null) {
      return;
    }
    const rightMs = now + this.offset - DELAY_MS;
    this.drawSeconds(paint, rightMs, width, height);
    this.showTip(this.drawUnits(paint, rightMs, width, laneHeight), rightMs);
  }

  drawSeconds(paint, rightMs, width, height) {
    paint.fillStyle = this.colours.dim;
    paint.strokeStyle = this.colours.grid;
    paint.font = '12px sans-serif';
    paint.textAlign = 'center';
    for (let second = 1; second * PIXELS_PER_SECOND < width + PIXELS_PER_SECOND; second += 1) {
      const x = width - ((second * 1000 - DELAY_MS) * PIXELS_PER_SECOND) / 1000;
      paint.beginPath();
      paint.moveTo(x, 0);
      paint.lineTo(x, height - 16);
      paint.stroke();
      paint.fillText(`${second} s ago`, Math.min(Math.max(x, 24), width - 26), height - 3);
    }
  }

  drawUnits(paint, rightMs, width, laneHeight) {
    let under = null;
    for (const isProtected of [false, true]) {
      paint.fillStyle = isProtected ? this.colours.protected : this.colours.ordinary;
      for (const unit of this.units.values()) {
        if (Boolean(unit.isProtected) !== isProtected || unit.start > rightMs) {
          continue;
        }
        const box = this.place(unit, rightMs, width, laneHeight);
        if (box.left > width || box.left + box.width < 0) {
          continue;
        }
        paint.fillRect(box.left, box.top, box.width, box.height);
        if (this.pointer !== null && isInside(this.pointer, box)) {
          under = { unit, box };
        }
      }
    }
    if (under !== null) {
      paint.strokeStyle = this.colours.text;
      paint.lineWidth = 2;
      paint.strokeRect(under.box.left, under.box.top, under.box.width, under.box.height);
      paint.lineWidth = 1;
    }
    return under?.unit ?? null;
  }

  showTip(unit, rightMs) {
    const tip = element('tip');
    tip.hidden = unit === null;
    if (unit === null) {
      return;
    }
    const requests = unit.robots.map((robot, place) => `${robot} (request ${unit.keys[place]})`);
    const duration = ((unit.end ?? rightMs) - unit.start).toFixed(1);
    const kind = unit.isProtected ? 'protected' : 'ordinary';
    setText(tip, `${requests.join(', ')}: ${kind}, ${duration} ms${unit.end === null ? ' so far' : ''}`);
    const left = this.canvas.offsetLeft + this.pointer.x;
    tip.style.left = `${Math.min(left, this.canvas.offsetLeft + this.canvas.clientWidth - tip.offsetWidth)}px`;
    tip.style.top = `${this.canvas.offsetTop + this.pointer.y - tip.offsetHeight - 8}px`;
  }
}

function isInside({ x, y }, { left, top, width, height }) {
  return x >= left - 2 && x <= left + width + 2 && y >= top && y <= top + height;
}
