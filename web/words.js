// SPDX-License-Identifier: Apache-2.0
// How numbers are written, and the one way in which text gets onto the page.

export const NOTHING = '–';

export function element(id) {
  return document.getElementById(id);
}

// Names of robots and reasons come from outside: never as HTML.
export function setText(target, text) {
  if (target.textContent !== text) {
    target.textContent = text;
  }
}

export function make(tag, className = '', text = '') {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

export function percent(share, digits = 1) {
  if (share === null) {
    return NOTHING;
  }
  // 99.96 % is not 100 %: somebody was late
  const rounded = (100 * share).toFixed(digits);
  const whole = Number(rounded) === 100;
  return `${whole ? (share < 1 ? (100 - 10 ** -digits).toFixed(digits) : '100') : rounded} %`;
}

export function milliseconds(value) {
  if (value === null || value === undefined || value <= 0) {
    return NOTHING;
  }
  return value < 10 ? value.toFixed(1) : value.toFixed(0);
}

export function rate(value) {
  return value === null ? NOTHING : value.toFixed(value < 100 ? 1 : 0);
}

export function clockTime(date) {
  return date.toLocaleTimeString([], { hour12: false });
}
