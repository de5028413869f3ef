// The popup: what runs or waits, and how much each link brought.
import { api, call, change, keys, settings } from './daemon.js';

const at = id => document.getElementById(id);
const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const size = bytes => {
  for (const [unit, one] of [['GB', 1e9], ['MB', 1e6], ['kB', 1e3]]) if (bytes >= one) return `${number.format(bytes / one)} ${unit}`;
  return `${bytes} B`;
};

function element(tag, text, ...children) {
  const e = document.createElement(tag);
  e.append(text, ...children);
  return e;
}

function button(text, name, act) {
  const b = element('button', text);
  b.setAttribute('aria-label', `${text}: ${name}`);
  b.addEventListener('click', act);
  return b;
}

// newRow returns the item of a download, and a function that shows its state. Items stay, so that buttons keep the focus.
function newRow(gid) {
  let status = '';
  const after = method => () => call(method, gid).then(show, show);
  const title = element('strong', ''), progress = document.createElement('progress'), facts = element('p', ''), links = element('p', '');
  const toggle = button('', '', () => after(status === 'paused' ? 'aria2.unpause' : 'aria2.pause')());
  const remove = button('Remove', '', after('aria2.remove'));
  const set = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  const update = d => {
    const path = d.files[0]?.path || d.files[0]?.uris[0]?.uri || '';
    const name = path.split('/').pop();
    const whole = Number(d.totalLength), have = Number(d.completedLength);
    status = d.status;
    set(title, name);
    progress.setAttribute('aria-label', name);
    if (whole > 0) Object.assign(progress, { max: whole, value: have });
    const said = [whole > 0 ? `${size(have)} of ${size(whole)}, ${Math.floor(100 * have / whole)} %` : size(have)];
    said.push(status === 'active' ? `${number.format(Number(d.downloadSpeed) * 8 / 1e6)} Mbit/s` : status);
    set(facts, said.join(', '));
    set(links, (d.tributary?.links ?? []).map(l => `${l.link} ${size(Number(l.bytes))}`).join(' · '));
    set(toggle, status === 'paused' ? 'Resume' : 'Pause');
    for (const b of [toggle, remove]) b.setAttribute('aria-label', `${b.textContent}: ${name}`);
  };
  return { item: element('li', title, progress, facts, links, toggle, ' ', remove), update };
}

const rows = new Map(); // by GID

function list(all) {
  for (const gid of rows.keys()) {
    if (all.some(d => d.gid === gid)) continue;
    rows.get(gid).item.remove();
    rows.delete(gid);
  }
  const focused = document.activeElement;
  all.forEach((d, i) => {
    if (!rows.has(d.gid)) rows.set(d.gid, newRow(d.gid));
    const { item, update } = rows.get(d.gid);
    update(d);
    if (at('running').children[i] !== item) at('running').insertBefore(item, at('running').children[i] ?? null);
  });
  if (focused !== document.activeElement && focused.isConnected) focused.focus();
}

async function show() {
  const s = await settings();
  at('on').checked = s.on;
  let answers = false;
  try {
    if (s.token) {
      const all = [...await call('aria2.tellActive', keys), ...await call('aria2.tellWaiting', 0, 50, keys)];
      answers = true;
      list(all);
      at('nothing').hidden = all.length > 0;
    }
  } catch {
    list([]);
  }
  at('state').textContent = !s.token ? 'Not paired yet: see the options' : answers ? 'Connected' : 'Tributary does not answer, so the browser downloads itself';
  const { given } = await api.storage.local.get({ given: {} });
  const stuck = Object.entries(given).filter(([, g]) => g.failed || !answers);
  at('waiting-section').hidden = stuck.length === 0;
  at('waiting').replaceChildren(...stuck.map(([gid, g]) => element('li', element('strong', g.name),
    button('In the browser', g.name, () => api.runtime.sendMessage({ again: gid }).then(show, show)))));
}

at('on').addEventListener('change', () => change({ on: at('on').checked }));
at('options').addEventListener('click', () => api.runtime.openOptionsPage());
api.runtime.sendMessage({ look: true }).catch(() => {});
for (;;) {
  await show();
  await new Promise(done => setTimeout(done, 1000));
}
