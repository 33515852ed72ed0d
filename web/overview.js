// SPDX-License-Identifier: Apache-2.0
// The head of the page: the fleet in a few large numbers, and who needs somebody.

import { NOTHING, element, make, milliseconds, percent, rate, setText } from './words.js';

const MOST_NAMED = 6;

export function levelOfShare(share, warn, error) {
  if (share === null) {
    return '';
  }
  return share < error ? 'ERROR' : share < warn ? 'WARN' : 'OK';
}

export function showOverview({ fleet, robots, timeline }) {
  const state = element('state');
  setText(state, fleet.state);
  state.dataset.level = fleet.level;
  state.title = fleet.text;
  setText(
    element('what'),
    `${fleet.model || 'no model yet'} · ${fleet.scheduling_policy} · epoch ${fleet.epoch}`,
  );
  showFigures(fleet, robots);
  showAttention(fleet, robots);
  showWaiting(timeline, fleet);
  showAnswers(fleet);
}

function showFigures(fleet, robots) {
  const attainment = element('attainment');
  setText(attainment, percent(fleet.attainment));
  attainment.dataset.level = levelOfShare(fleet.attainment, 0.99, 0.9);
  setText(element('goodput'), `${rate(fleet.goodput_hz)}/s`);
  setText(element('responses'), `of ${rate(fleet.responses_hz)}/s`);
  setText(element('p50'), `${milliseconds(fleet.latency_p50_ms)} ms`);
  setText(element('p99'), `P99 ${milliseconds(fleet.latency_p99_ms)} ms`);
  const starved = element('starved');
  setText(starved, percent(fleet.starved_share, 2));
  starved.dataset.level =
    fleet.starved_share === null ? '' : levelOfShare(1 - fleet.starved_share, 1, 0.99);
  setText(element('robots'), String(robots.filter((robot) => robot.registered).length));
  setText(element('max-robots'), `of ${fleet.max_robots} at most`);
  setText(element('slots'), String(fleet.slots_used));
  setText(element('num-slots'), `of ${fleet.num_slots}`);
  const error = fleet.prediction_error_ms;
  setText(
    element('prediction'),
    `${fleet.protected_requests} protected now · predictions off by ` +
      `${error === null ? NOTHING : error.toFixed(1)} ms`,
  );
}

function showAttention(fleet, robots) {
  const errors = robots.filter((robot) => robot.level === 'ERROR');
  const warnings = robots.filter((robot) => robot.level === 'WARN');
  const levels = [fleet, ...robots].map(({ level }) => level);
  const line = element('attention');
  line.dataset.level = ['ERROR', 'WARN'].find((level) => levels.includes(level)) ?? 'OK';
  const parts = fleet.level === 'OK' ? [] : [`server: ${fleet.text}`];
  if (errors.length) {
    parts.push(`${errors.length} in trouble: ${names(errors)}`);
  }
  if (warnings.length) {
    parts.push(`${warnings.length} to watch: ${names(warnings)}`);
  }
  const fine = robots.length ? 'Every robot is on time' : 'Waiting for robots';
  setText(line, parts.length ? parts.join('   ·   ') : fine);
  document.title = errors.length ? `(${errors.length}) xinfer_ros` : 'xinfer_ros';
}

function names(robots) {
  const shown = robots.slice(0, MOST_NAMED).map((robot) => robot.robot_id);
  const more = robots.length - shown.length;
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function showWaiting(timeline, fleet) {
  const list = element('reasons');
  const items = timeline.waiting.map((waiting) => {
    const item = make('li');
    item.append(
      make('b', '', waiting.robot),
      make('span', 'stage', ` ${STAGE_WORDS[waiting.stage]} · ${milliseconds(waiting.since_ms)} ms `),
      make('span', 'why', sentence(waiting)),
    );
    return item;
  });
  if (!items.length) {
    const count = fleet.waiting.reduce((sum, waiting) => sum + waiting, 0);
    const words = count ? `${count} wait; why is not told` : 'No request waits at this moment.';
    items.push(make('li', 'none', words));
  }
  list.replaceChildren(...items);
}

const STAGE_WORDS = ['ViT', 'Prefill', 'Action'];

// The decision says its own time and stage first, which stand beside it here
function sentence({ why, key }) {
  const start = why.indexOf(`of request ${key} `);
  return start < 0 ? why : `request ${why.slice(start + 'of request '.length)}`;
}

function showAnswers(fleet) {
  const reasons = Object.entries(fleet.reasons).map(([name, count]) => `${name} ${count}`);
  setText(
    element('answers'),
    `${fleet.requests} requests, ${fleet.responses} answered with a chunk` +
      (reasons.length ? `; without: ${reasons.join(', ')}` : '') +
      `. Rates, shares and percentiles are over ${fleet.window_s} s.`,
  );
}
