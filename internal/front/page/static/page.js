// The live page: it shows what /live/events sends each second.
import uPlot from '/live/uplot.js';

export { at, duration, element, mbit, size };

const seconds = 300;
const at = id => document.getElementById(id);
const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const mbit = rate => number.format(rate * 8 / 1e6);
const size = bytes => {
  for (const [unit, one] of [['TB', 1e12], ['GB', 1e9], ['MB', 1e6], ['kB', 1e3]]) {
    if (bytes >= one) return `${number.format(bytes / one)} ${unit}`;
  }
  return `${bytes} B`;
};
const many = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;
const duration = s => {
  if (!isFinite(s)) return '';
  if (s < 100) return `${Math.round(s)} s`;
  return s < 6000 ? `${Math.round(s / 60)} min` : `${number.format(s / 3600)} h`;
};

const results = { ok: 'complete', client_gone: 'cancelled by the program', origin: 'server error', link: 'no link left', local: 'error on this machine' };
const states = { up: '● up', suspect: '◐ silent', banned: '○ not used', probing: '◐ being tested', down: '○ down' };

// element creates an element with text or children.
function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) e.setAttribute(name, value);
  e.append(...children);
  return e;
}
const fact = (name, value) => [element('dt', {}, name), element('dd', {}, value)];

// Each link keeps its colour, in the order in which the links appeared.
const names = [];
function colour(name) {
  if (!names.includes(name)) {
    names.push(name);
    redraw = true;
  }
  return `link${names.indexOf(name) % 6}`;
}

let samples = [], last = null, chart = null, redraw = true, spoken = 0;
const before = new Map(); // for each download: the time and its progress then

// dated converts the time of a sample to milliseconds.
function dated(sample) {
  sample.at = Date.parse(sample.at);
  return sample;
}

function show(update) {
  if (update.history) {
    samples = update.history;
    samples.forEach(dated);
    before.clear();
  }
  if (update.sample) samples.push(dated(update.sample));
  last = update;
  const now = Date.parse(update.status.at);
  while (samples.length && now - samples[0].at > seconds * 1000) samples.shift();
  const rates = samples.length ? samples.at(-1).rates : {};
  showTotal(update.status, rates);
  showLinks(update.status.links, rates);
  showRelay(update.status.relay);
  showRunning(update.status, update.names, now);
  showEnded(update.ended);
  showPassed(update.passed);
  showFound(update.found ?? []);
  draw(now);
}

function showTotal(status, rates) {
  const total = Object.values(rates).reduce((a, b) => a + b, 0);
  at('total').textContent = mbit(total);
  document.title = total > 0 ? `${mbit(total)} Mbit/s · Tributary` : 'Tributary';
  const up = status.links.filter(l => l.state === 'up').length;
  at('summary').textContent = `${up} of ${many(status.links.length, 'link')} up · ${many(status.transfers.length, 'download')} divided · ` +
    `${status.undivided_running} over one link`;
  at('about').textContent = `Version ${status.version}, running since ${new Date(status.started).toLocaleString()}. Only you and root can see this page.`;
  at('proxy').textContent = `http://${status.listen}`;
}

function showLinks(links, rates) {
  at('links').replaceChildren(...links.map(l => {
    const card = element('li', { class: colour(l.name) },
      element('h3', {}, l.name, element('span', { class: l.state === 'up' ? 'state' : 'state off' }, states[l.state] ?? l.state)),
      element('p', { class: 'now' }, mbit(rates[l.name] ?? 0), ' ', element('span', { class: 'unit' }, 'Mbit/s')));
    if (l.reason) card.append(element('p', { class: 'reason' }, l.reason));
    const facts = [...fact('Round trip', l.rtt_seconds > 0 ? `${Math.round(l.rtt_seconds * 1000)} ms` : '–'), ...fact('Since the start', size(l.bytes))];
    const of = (bytes, limit) => limit ? `${size(bytes)} of ${size(limit)}` : size(bytes);
    if (l.used) {
      facts.push(...fact('Today', of(l.used.today_bytes, l.used.day_limit_bytes)));
      facts.push(...fact('This month', of(l.used.month_bytes, l.used.month_limit_bytes)));
    }
    if (l.monthly_left_bytes != null) facts.push(...fact('Remaining', size(l.monthly_left_bytes)));
    if (l.undivided) facts.push(...fact('Tunnels, undivided', `${l.undivided} open`));
    card.append(element('dl', {}, ...facts));
    return card;
  }));
}

// showRelay says over which links tunnels go through the relay.
function showRelay(relay) {
  at('relay').hidden = !relay;
  if (!relay) return;
  const up = relay.lanes.filter(l => l.up).map(l => `${l.link} ${size(l.bytes)}`).join(', ');
  const failed = relay.failed ? `; ${relay.failed} not carried, the last one because ${relay.failure}` : '';
  const over = up || 'no link: not connected';
  at('relay').textContent = `Relay ${relay.address}: ${relay.tunnels} tunnels over ${over}${relay.refusal ? `; it refuses more: ${relay.refusal}` : ''}${failed}`;
}

// shares returns a bar and a legend of each link's share of some bytes.
function shares(links, whole, held) {
  const brought = links.reduce((sum, l) => sum + l.bytes, 0) || 1;
  const part = (bytes, name) => {
    const i = element('i', { class: name });
    i.style.width = `${100 * bytes / whole}%`;
    return i;
  };
  const bar = element('div', { class: 'bar', 'aria-hidden': 'true' });
  for (const l of links) bar.append(part(l.bytes / brought * (brought - held), colour(l.link)));
  if (held > 0) bar.append(part(held, 'held link0'));
  return [bar, links.map(l => element('span', { class: `key ${colour(l.link)}` }, `${l.link} ${Math.round(100 * l.bytes / brought)} %`))];
}

function showRunning(status, names, now) {
  at('nothing').hidden = status.transfers.length > 0;
  at('running').replaceChildren(...status.transfers.map(t => {
    const first = before.get(t.id) ?? { at: now, offset: t.head };
    before.set(t.id, first);
    const rate = now > first.at ? (t.head - first.offset) / (now - first.at) * 1000 : t.head / t.seconds;
    const known = t.size >= 0;
    const whole = known ? t.size : t.head + t.held_bytes;
    const [bar, keys] = shares(t.links, Math.max(whole, 1), t.held_bytes);
    const facts = [known ? `${size(t.head)} of ${size(t.size)}` : size(t.head), `${mbit(rate)} Mbit/s`];
    if (known && rate > 0) facts.push(`${duration((t.size - t.head) / rate)} left`);
    for (const l of t.left_out ?? []) facts.push(`without ${l.link}: ${l.text}`);
    for (const l of t.limited ?? []) {
      const each = mbit(l.connection_bytes_per_second);
      facts.push(`${l.link}: the server limits each connection to ${each} Mbit/s: ${many(l.connections, 'connection')}`);
    }
    return element('li', {},
      element('h3', {}, names[t.id].name || names[t.id].host, ' ', element('small', {}, names[t.id].host)),
      bar, element('p', { class: 'facts' }, ...facts.map(f => element('span', {}, f)), ...keys));
  }));
  const running = new Set(status.transfers.map(t => t.id));
  for (const id of before.keys()) if (!running.has(id)) before.delete(id);
}

function showEnded(ended) {
  at('ended-section').hidden = ended.length === 0;
  at('ended').replaceChildren(...ended.map(d => {
    const [, keys] = shares(d.links, 1, 0);
    return element('tr', {},
      element('td', {}, d.name || d.host, element('br'), element('span', { class: 'quiet' }, d.host)),
      element('td', {}, size(d.bytes)), element('td', {}, `${mbit(d.bytes / d.seconds)} Mbit/s`),
      element('td', {}, element('span', { class: 'facts' }, ...keys)),
      element('td', {}, `${new Date(d.at).toLocaleTimeString()}, ${results[d.result] ?? d.result}`));
  }));
}

function showPassed(passed) {
  const all = Object.entries(passed).sort((a, b) => b[1] - a[1]);
  at('passed-section').hidden = all.length === 0;
  at('passed').replaceChildren(...all.map(([reason, n]) => element('tr', {}, element('td', {}, reason[0].toUpperCase() + reason.slice(1)), element('td', {}, `${n}`))));
}

let found = ''; // what is shown, so that screen readers do not read it again each second
function showFound(all) {
  if (found === JSON.stringify(all)) return;
  found = JSON.stringify(all);
  at('found-section').hidden = all.length === 0;
  at('found').replaceChildren(...all.map(f => {
    const item = element('li', {}, element('strong', { class: f.fails ? 'fails' : '' }, `${f.fails ? 'Must be fixed' : 'Advice'}: ${f.name}`), element('p', {}, f.found));
    if (f.fix) item.append(element('p', {}, element('code', {}, f.fix)));
    return item;
  }));
}

// draw draws the rates of the links and their sum. Where there is no sample, nothing ran.
function draw(now) {
  const end = Math.floor(now / 1000), first = samples.length ? Math.floor(samples[0].at / 1000) : end;
  const begin = Math.max(end - seconds, Math.min(first, end - 60)); // at least a minute
  const xs = Array.from({ length: end - begin + 1 }, (_, i) => begin + i);
  const lines = names.map(() => new Array(xs.length).fill(0)), total = new Array(xs.length).fill(0);
  for (const s of samples) {
    const i = Math.floor(s.at / 1000) - begin;
    if (i < 0 || i >= xs.length) continue;
    for (const [name, rate] of Object.entries(s.rates)) {
      colour(name);
      const n = names.indexOf(name);
      if (lines[n]) lines[n][i] = rate * 8 / 1e6;
      total[i] += rate * 8 / 1e6;
    }
  }
  if (redraw || !chart || lines.length !== names.length) {
    redraw = false;
    while (lines.length < names.length) lines.push(new Array(xs.length).fill(0));
    chart?.destroy();
    chart = new uPlot(options(), [xs, ...lines, total], at('chart'));
  } else {
    chart.setData([xs, ...lines, total]);
  }
  if (now - spoken > 10000) { // for screen readers, not too often
    spoken = now;
    at('chart').setAttribute('aria-label', `Rate of each link in the last five minutes; now ${names.map((n, i) => `${n} ${number.format(lines[i].at(-2))}`).join(', ')} Mbit/s`);
  }
}

const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 4]]; // for people who cannot tell the colours apart

function options() {
  const axis = { stroke: style('--quiet'), grid: { stroke: style('--line'), width: 1 }, ticks: { show: false }, font: '12px system-ui, sans-serif' };
  const value = (_, v) => v == null ? '' : `${number.format(v)} Mbit/s`;
  return {
    width: at('chart').clientWidth, height: 240, legend: { live: false, markers: { fill: (u, i) => u.series[i].stroke() } }, cursor: { y: false },
    scales: { x: { time: true }, y: { range: (_, min, max) => [0, Math.max(max * 1.05, 1)] } },
    axes: [axis, { ...axis, size: 44 }],
    series: [
      {},
      ...names.map((name, i) => ({ label: name, stroke: style(`--link${i % 6}`), width: 2, dash: dashes[i % 6], points: { show: false }, value })),
      { label: 'together', stroke: style('--total'), width: 2, points: { show: false }, value },
    ],
  };
}

new ResizeObserver(() => chart?.setSize({ width: at('chart').clientWidth, height: 240 })).observe(at('chart'));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  redraw = true;
  if (last) draw(Date.parse(last.status.at));
});

const events = new EventSource('/live/events');
events.onmessage = e => {
  at('connection').textContent = 'Live';
  at('connection').className = '';
  show(JSON.parse(e.data));
};
events.onerror = () => {
  at('connection').textContent = 'Tributary does not answer. Trying again…';
  at('connection').className = 'lost';
};
