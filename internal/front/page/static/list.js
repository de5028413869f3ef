// The list of downloads, which aria2's methods show and change (docs/RPC.md). It works only at the address that `tributary rpc page`
// prints. Everything goes over one connection, which is never opened again: after it has ended, another program may listen there.
import { at, duration, element, mbit, size } from '/live/page.js';

const keys = ['gid', 'status', 'totalLength', 'completedLength', 'downloadSpeed', 'files', 'errorMessage'];
const most = 200; // downloads of each kind that are shown
const callTime = 10_000; // milliseconds
const states = { active: 'running', waiting: 'waiting', paused: 'paused', complete: 'complete', error: 'failed', removed: 'removed' };

// The address has a code once. The token that it is exchanged for outlives a reload, and is of no use after the proxy's end.
const code = location.hash.slice(1);
if (code) history.replaceState(null, '', location.pathname);
addEventListener('hashchange', () => location.reload()); // another code was opened here

let socket = null, token = sessionStorage.getItem('token'), last = 0;
const waiting = new Map();

function connect() {
  socket = new WebSocket(`ws://${location.host}/jsonrpc`);
  socket.onmessage = ({ data }) => {
    const { id, result, error } = JSON.parse(data);
    const one = waiting.get(id); // none: a notification
    waiting.delete(id);
    if (error) one?.fail(new Error(error.message));
    else one?.done(result);
  };
  return new Promise((done, fail) => {
    socket.onopen = done;
    socket.onclose = () => {
      const ended = new Error('the connection to Tributary has ended.');
      fail(ended);
      for (const one of waiting.values()) one.fail(ended);
      waiting.clear();
      lose(ended);
    };
  });
}

function send(method, params) {
  if (socket.readyState !== WebSocket.OPEN) return Promise.reject(new Error('the connection to Tributary has ended.'));
  const id = ++last;
  socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  return new Promise((done, fail) => {
    waiting.set(id, { done, fail });
    setTimeout(() => { if (waiting.has(id)) socket.close(); }, callTime);
  });
}

const call = (method, ...params) => send(method, [`token:${token}`, ...params]);

// lose ends the connection, and shows why, and which command opens the list again.
function lose({ message }) {
  socket.onclose = null;
  socket.close();
  const why = message === 'Unauthorized' ? 'Another window took control.' : message[0].toUpperCase() + message.slice(1);
  at('list-reason').textContent = `${why} To change downloads here again,`;
  at('list-open').hidden = true;
  at('list-closed').hidden = false;
}

// act makes a call that the user wants, says what became of it, and shows the list.
async function act(done, method, ...params) {
  try {
    await call(method, ...params);
    at('said').textContent = done;
  } catch (e) {
    at('said').textContent = `Not done: ${e.message}`;
  }
  await show().catch(() => {});
}

const rows = new Map(); // by GID: they stay, so that buttons keep the focus

const set = (node, text) => { if (node.textContent !== text) node.textContent = text; };

function button(text, act) {
  const b = element('button', { type: 'button' }, text);
  b.addEventListener('click', act);
  return b;
}

// newRow returns the item of a download, and a function that shows its state.
function newRow(gid) {
  let name = '', status = '';
  const title = element('h4', {}), progress = element('progress', {}), facts = element('p', { class: 'facts' }), reason = element('p', { class: 'reason' });
  const toggle = button('', () => (status === 'paused' ? act(`${name} goes on.`, 'aria2.unpause', gid) : act(`${name} is paused.`, 'aria2.pause', gid)));
  const move = (text, by) => button(text, () => act(`${name} has moved.`, 'aria2.changePosition', gid, by, 'POS_CUR'));
  const up = move('Up', -1), down = move('Down', 1);
  const remove = button('Remove', () => act(`${name} is ${stopped() ? 'cleared' : 'removed'}.`, stopped() ? 'aria2.removeDownloadResult' : 'aria2.remove', gid));
  const item = element('li', {}, title, progress, facts, reason, element('p', { class: 'buttons' }, toggle, up, down, remove));
  const stopped = () => ['complete', 'error', 'removed'].includes(status);
  return { item, update: d => {
    const uri = d.files[0].uris[0]?.uri ?? '', whole = Number(d.totalLength), have = Number(d.completedLength), rate = Number(d.downloadSpeed);
    name = d.files[0].path.split('/').pop() || uri;
    status = d.status;
    set(title, name);
    title.title = stopped() ? d.files[0].path : uri;
    progress.hidden = stopped() || !(whole > 0) && status !== 'active';
    if (whole > 0) Object.assign(progress, { max: whole, value: have });
    else progress.removeAttribute('value');
    const said = [states[status] ?? status];
    if (whole > 0 && !stopped()) said.push(`${Math.floor(100 * have / whole)} %`);
    said.push(whole > 0 && status !== 'complete' ? `${size(have)} of ${size(whole)}` : size(have));
    if (status === 'active') said.push(`${mbit(rate)} Mbit/s`);
    if (status === 'active' && whole > 0 && rate > 0) said.push(`${duration((whole - have) / rate)} left`);
    if (facts.textContent !== said.join('')) facts.replaceChildren(...said.map(f => element('span', {}, f)));
    set(reason, status === 'error' ? d.errorMessage : '');
    set(remove, stopped() ? 'Clear' : 'Remove');
    set(toggle, status === 'paused' ? 'Resume' : 'Pause');
    toggle.hidden = stopped();
    up.hidden = down.hidden = status !== 'waiting' && status !== 'paused';
    for (const b of [toggle, up, down, remove]) b.setAttribute('aria-label', `${b.textContent}: ${name}`);
    progress.setAttribute('aria-label', name);
  } };
}

// place shows downloads in a list.
function place(list, all) {
  all.forEach((d, i) => {
    if (!rows.has(d.gid)) rows.set(d.gid, newRow(d.gid));
    const { item, update } = rows.get(d.gid);
    update(d);
    if (list.children[i] !== item) list.insertBefore(item, list.children[i] ?? null);
  });
}

async function show() {
  const multi = [['aria2.tellActive', keys], ['aria2.tellWaiting', 0, most, keys], ['aria2.tellStopped', -1, most, keys], ['aria2.getGlobalStat']];
  const [[active], [waits], [stopped], [stat]] = await send('system.multicall', [multi.map(([methodName, ...params]) => ({ methodName, params: [`token:${token}`, ...params] }))])
    .then(all => { const e = all.find(a => !Array.isArray(a)); if (e) throw new Error(e.message); return all; });
  const focused = document.activeElement;
  const listed = [...active, ...waits];
  const known = new Set([...listed, ...stopped].map(d => d.gid));
  for (const [gid, { item }] of rows) {
    if (known.has(gid)) continue;
    item.remove();
    rows.delete(gid);
  }
  place(at('list'), listed);
  place(at('finished'), stopped);
  at('list-empty').hidden = listed.length > 0;
  const more = Number(stat.numWaiting) - waits.length;
  at('list-more').textContent = more > 0 ? `${more} more wait.` : '';
  at('finished-part').hidden = stopped.length === 0;
  if (focused !== document.activeElement) (focused.isConnected && focused.checkVisibility() ? focused : at('list-title')).focus();
}

at('add').addEventListener('submit', async event => {
  event.preventDefault();
  const url = at('url').value.trim();
  await act(`${url} is added.`, 'aria2.addUri', [url]);
  if (!at('said').textContent.startsWith('Not done')) at('url').value = '';
});
at('clear').addEventListener('click', () => act('The finished downloads are cleared. Their files stay.', 'aria2.purgeDownloadResult'));

async function run() {
  if (!code && !token) return;
  try {
    await connect();
    if (code) {
      // A code that was used may be opened again in its own window, which has the token.
      token = (await send('tributary.pair', [code]).catch(e => { if (token) return { token }; throw e; })).token;
      sessionStorage.setItem('token', token);
    }
    await show();
    at('list-closed').hidden = true;
    at('list-open').hidden = false;
    while (socket.readyState === WebSocket.OPEN) {
      await new Promise(done => setTimeout(done, 1000));
      if (!document.hidden) await show();
    }
  } catch (e) {
    lose(e);
  }
}
run();
