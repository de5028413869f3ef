// The daemon: settings, and calls by JSON-RPC (docs/EXTENSION.md).

export const api = globalThis.browser ?? globalThis.chrome;

// The settings until the user changes them. Sizes are in bytes.
const defaults = { on: true, port: 6800, token: '', least: 5_000_000, types: [], hosts: [], metered: false };

export const settings = () => api.storage.local.get(defaults);

export const change = values => api.storage.local.set(values);

// callTime limits a call, in milliseconds.
const callTime = 5000;

// Refused is an error reported by the daemon. Other errors mean that there was no answer.
export class Refused extends Error {}

// Stranger is the error of a connection to a process that does not know our secret: another program has the port, or the pairing
// has ended.
export class Stranger extends Error {}

const bytes = text => new TextEncoder().encode(text);
const hex = buffer => Array.from(new Uint8Array(buffer), b => b.toString(16).padStart(2, '0')).join('');

// host is a name of this machine that browsers do not look up (RFC 6761). They send cookies when they open a WebSocket, those for
// 127.0.0.1 whatever the port: nothing sets any for this name.
const host = 'tributary.localhost';

// proof returns what only a process that knows the secret can answer to a nonce.
async function proof(secret, nonce) {
  const hash = hex(await crypto.subtle.digest('SHA-256', bytes(secret)));
  const key = await crypto.subtle.importKey('raw', bytes(hash), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return hex(await crypto.subtle.sign('HMAC', key, bytes(`tributary.prove ${nonce}`)));
}

// dial opens a WebSocket, and lets the process at its other end prove that it knows a secret. Any user of the machine may listen on
// the port while the daemon does not run. So tokens, cookies and URLs are sent only over a connection whose other end has proved
// itself: a process that takes the port later is not at the end of this connection.
async function dial(port, secret, ended = () => {}) {
  const socket = new WebSocket(`ws://${host}:${port}/jsonrpc`);
  const waiting = new Map();
  let last = 0;
  const end = () => {
    socket.onclose = socket.onerror = null;
    socket.close();
    ended();
    for (const { fail } of waiting.values()) fail(new Error('the connection has ended'));
    waiting.clear();
  };
  // answer waits for the answer to a call, or for the connection as call 0.
  const answer = id => new Promise((done, fail) => {
    waiting.set(id, { done, fail });
    setTimeout(() => { if (waiting.has(id)) end(); }, callTime);
  });
  const call = (method, ...params) => {
    if (socket.readyState !== WebSocket.OPEN) throw new Error('the connection has ended');
    const id = ++last;
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return answer(id);
  };
  socket.onopen = () => { waiting.get(0)?.done(); waiting.delete(0); };
  socket.onclose = socket.onerror = end;
  socket.onmessage = ({ data }) => {
    const { id, result, error } = JSON.parse(data);
    const one = waiting.get(id);
    if (!one) return; // a notification
    waiting.delete(id);
    if (error) one.fail(new Refused(error.message));
    else one.done(result);
  };
  await answer(0);
  const nonce = hex(crypto.getRandomValues(new Uint8Array(32)));
  const proofs = await call('tributary.prove', nonce).catch(e => { if (e instanceof Refused) return []; throw e; });
  if (!secret || !Array.isArray(proofs) || !proofs.includes(await proof(secret, nonce))) {
    end();
    throw new Stranger('it does not know the secret');
  }
  return { call, end };
}

// line is the connection of this page, with the settings that it was made for.
let line = null;

// call calls a method with the token and returns its result.
export async function call(method, ...params) {
  const { port, token } = await settings();
  const made = `${port} ${token}`;
  let mine = line;
  if (mine?.made !== made) {
    mine?.to.then(to => to.end(), () => {});
    const forget = () => { if (line === mine) line = null; };
    mine = line = { made, to: dial(port, token, () => forget()) };
    mine.to.catch(forget);
  }
  return (await mine.to).call(method, `token:${token}`, ...params);
}

// pair exchanges the code that the user got from the daemon for a token of this extension's own.
export async function pair(port, code) {
  const secret = code.toUpperCase().replace(/[^A-Z2-7]/g, '');
  const to = await dial(port, secret);
  try {
    const { token } = await to.call('tributary.pair', secret);
    await change({ port, token });
  } finally {
    to.end();
  }
}

// keys are the fields of a download that are requested.
export const keys = ['gid', 'status', 'totalLength', 'completedLength', 'downloadSpeed', 'files', 'errorMessage', 'tributary'];
