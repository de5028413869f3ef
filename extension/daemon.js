// The daemon: settings, and calls by JSON-RPC (docs/EXTENSION.md).

export const api = globalThis.browser ?? globalThis.chrome;

// The settings until the user changes them. Sizes are in bytes.
const defaults = { on: true, port: 6800, token: '', least: 5_000_000, types: [], hosts: [] };

export const settings = () => api.storage.local.get(defaults);

export const change = values => api.storage.local.set(values);

const base = port => `http://127.0.0.1:${port}`;

export const pairPage = port => `${base(port)}/pair`;

// callTime limits a call, in milliseconds.
const callTime = 5000;

async function post(url, body) {
  return fetch(url, { method: 'POST', body: JSON.stringify(body), credentials: 'omit', cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(callTime) });
}

// Refused is an error reported by the daemon. Other errors mean that there was no answer.
export class Refused extends Error {}

// call calls a method with the token and returns its result.
export async function call(method, ...params) {
  const { port, token } = await settings();
  const answer = await (await post(`${base(port)}/jsonrpc`, { jsonrpc: '2.0', id: 1, method, params: [`token:${token}`, ...params] })).json();
  if (answer.error) throw new Refused(answer.error.message);
  return answer.result;
}

// pair exchanges the code that the daemon shows for a token of this extension's own.
export async function pair(port, code) {
  const answer = await post(`${base(port)}/pair`, { code: code.replace(/\D/g, '') });
  if (!answer.ok) throw new Refused(await answer.text());
  await change({ port, token: (await answer.json()).token });
}

// keys are the fields of a download that are requested.
export const keys = ['gid', 'status', 'totalLength', 'completedLength', 'downloadSpeed', 'files', 'errorMessage', 'tributary'];
