// The options page.
import { api, call, change, pair, Refused, settings, Stranger } from './daemon.js';

const at = id => document.getElementById(id);
const words = text => text.toLowerCase().split(/[\s,]+/).map(w => w.replace(/^\.+/, '')).filter(Boolean);
const port = () => Math.min(Math.max(Math.trunc(Number(at('port').value)) || 6800, 1), 65535);

async function show() {
  const s = await settings();
  at('port').value = s.port;
  at('least').value = s.least / 1e6;
  at('types').value = s.types.join(' ');
  at('hosts').value = s.hosts.join(' ');
  at('metered').checked = s.metered;
  await state();
}

async function state() {
  let text = 'Not paired yet.';
  if ((await settings()).token) {
    text = await call('aria2.getVersion').then(v => `Paired with Tributary ${v.tributary}.`,
      e => (e instanceof Stranger || e instanceof Refused ? 'What answers does not know the pairing: pair again.' : 'Tributary does not answer.'));
  }
  at('state').textContent = text;
}

at('pair').addEventListener('submit', async event => {
  event.preventDefault();
  // In Firefox the user grants access to sites when it is first needed. The request must be made directly in the click.
  const allowed = await api.permissions.request({ origins: ['http://*/*', 'https://*/*'] });
  at('said').textContent = '';
  try {
    if (!allowed) throw new Refused('Without access to sites it does not see their downloads.');
    await pair(port(), at('code').value);
    at('code').value = '';
  } catch (e) {
    at('said').textContent = e instanceof Refused ? e.message
      : e instanceof Stranger ? 'The code is wrong, or older than five minutes: run "tributary rpc pair" again. If that does not help, another program has this port.'
      : `Nothing answers at port ${port()}: is Tributary running, with rpc in its configuration?`;
  }
  await state();
  api.runtime.sendMessage({ look: true }).catch(() => {});
});

at('save').addEventListener('click', async () => {
  await change({ port: port(), least: Math.max(Number(at('least').value) || 0, 0) * 1e6, types: words(at('types').value), hosts: words(at('hosts').value), metered: at('metered').checked });
  await show();
  at('saved').textContent = 'Saved.';
});

await show();
