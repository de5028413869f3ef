// The popup: what runs, and how much each link brought.
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

function row(d) {
  const path = d.files[0]?.path || d.files[0]?.uris[0]?.uri || '';
  const name = path.split('/').pop();
  const whole = Number(d.totalLength), have = Number(d.completedLength);
  const progress = document.createElement('progress');
  progress.setAttribute('aria-label', name);
  if (whole > 0) Object.assign(progress, { max: whole, value: have });
  const links = (d.tributary?.links ?? []).map(l => `${l.link} ${size(Number(l.bytes))}`).join(' · ');
  return element('li', element('strong', name), progress,
    element('p', `${size(have)}${whole > 0 ? ` of ${size(whole)}` : ''}, ${number.format(Number(d.downloadSpeed) * 8 / 1e6)} Mbit/s`),
    element('p', links), button('Remove', name, () => call('aria2.remove', d.gid).then(show, show)));
}

async function show() {
  const s = await settings();
  at('on').checked = s.on;
  let answers = false;
  try {
    if (s.token) {
      const all = await call('aria2.tellActive', keys);
      answers = true;
      at('running').replaceChildren(...all.map(row));
      at('nothing').hidden = all.length > 0;
    }
  } catch {
    at('running').replaceChildren();
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
