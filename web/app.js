// SPDX-License-Identifier: Apache-2.0
// Follows the server's events and hands each to the parts of the page; comes back by itself.

import { Charts } from './charts.js';
import { FleetTable } from './fleet_table.js';
import { Lanes } from './lanes.js';
import { showOverview } from './overview.js';
import { clockTime, element, setText } from './words.js';

const SILENT_MS = 3000;
const AGAIN_MS = 2000;

class Connection {
  constructor(take) {
    this.take = take;
    this.heardAt = null;
    this.openedAt = 0;
    this.source = null;
    this.open();
    setInterval(() => this.check(), 500);
  }

  open() {
    this.openedAt = performance.now();
    this.source = new EventSource('events');
    this.source.onmessage = (event) => {
      this.heardAt = new Date();
      this.show('');
      this.take(JSON.parse(event.data));
    };
    this.source.onerror = () => {
      this.source.close();
      this.source = null;
      setTimeout(() => this.open(), AGAIN_MS);
      this.check();
    };
  }

  check() {
    const now = performance.now();
    const silentMs = this.heardAt === null ? now : new Date() - this.heardAt;
    if (this.source !== null && silentMs < SILENT_MS) {
      return;
    }
    if (this.source !== null && silentMs > 3 * SILENT_MS && now - this.openedAt > 3 * SILENT_MS) {
      this.source.onerror();
      return;
    }
    const since = this.heardAt === null
      ? 'No word from the server yet'
      : `The server is gone: no word since ${clockTime(this.heardAt)}`;
    this.show(`${since}. Trying again every ${AGAIN_MS / 1000} seconds…`);
  }

  show(text) {
    const banner = element('connection');
    banner.hidden = text === '';
    setText(banner, text);
    document.body.classList.toggle('stale', text !== '' && this.heardAt !== null);
  }
}

const charts = new Charts();
const table = new FleetTable();
const lanes = new Lanes();

new Connection((data) => {
  showOverview(data);
  table.show(data);
  charts.show(data);
  lanes.take(data);
});
