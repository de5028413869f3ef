// A browser as far as the extension needs one. It reads what happens from the variable SCENARIO, and prints what became of it.
const scenario = JSON.parse(process.env.SCENARIO);

const Socket = globalThis.WebSocket;
let dialed = 0;
globalThis.WebSocket = class extends Socket {
  constructor(url) {
    url = url.replace('tributary.localhost', '127.0.0.1'); // node asks the system's resolver for it
    if (dialed++ > 0 && scenario.later) url = url.replace(/:\d+/, `:${scenario.later}`); // another process has taken the port
    super(url, { headers: { origin: scenario.origin } });
  }
};

const event = () => {
  const listeners = [];
  return { addListener: f => listeners.push(f), fire: (...what) => listeners.forEach(f => f(...what)) };
};
const stored = { port: scenario.port, token: scenario.token ?? '', ...scenario.settings };
const list = new Map(); // downloads, by ID
const did = { canceled: [], erased: [], failed: '' };
const given = new Set(); // downloads that were handed over, by GID
const none = async () => {};

globalThis.navigator ??= { userAgent: 'Browser/1' };
globalThis.chrome = {
  storage: { local: { get: async keys => ({ ...keys, ...structuredClone(stored) }), set: async values => {
    Object.assign(stored, structuredClone(values));
    for (const gid of Object.keys(values.given ?? {})) given.add(gid);
  } } },
  webRequest: { OnSendHeadersOptions: { EXTRA_HEADERS: 'extraHeaders' }, onSendHeaders: event() },
  cookies: { getAll: async ({ url }) => scenario.cookies?.[new URL(url).origin] ?? [] },
  downloads: {
    onCreated: event(),
    search: async ({ id }) => (list.has(id) ? [list.get(id)] : []),
    download: async ({ url }) => begin({ ...scenario.menu.item, url }),
    cancel: async id => { did.canceled.push(id); list.get(id).state = 'interrupted'; },
    erase: async ({ id }) => { did.erased.push(id); list.delete(id); },
  },
  alarms: { onAlarm: event(), create: () => {} },
  contextMenus: { onClicked: event(), removeAll: f => f(), create: () => {} },
  runtime: { id: 'own', onMessage: event(), onInstalled: event(), openOptionsPage: none, getURL: path => path },
  action: { setBadgeText: none, setBadgeBackgroundColor: none, setTitle: none },
};

function begin(item) {
  const one = { id: list.size + 1, state: 'in_progress', incognito: false, danger: 'safe', finalUrl: item.url, ...item };
  list.set(one.id, one);
  chrome.downloads.onCreated.fire(one);
}

const { call, pair } = await import('./daemon.js');
try {
  if (scenario.code) await pair(scenario.port, scenario.code);
} catch (e) {
  did.failed = `${e.constructor.name}: ${e.message}`;
}
await import('./background.js');
if (scenario.page) {
  const { item, headers } = scenario.page;
  const requestHeaders = Object.entries(headers ?? {}).map(([name, value]) => ({ name, value }));
  chrome.webRequest.onSendHeaders.fire({ url: item.finalUrl ?? item.url, method: 'GET', timeStamp: Date.now(), requestHeaders });
  begin(item);
}
if (scenario.menu) chrome.contextMenus.onClicked.fire({ linkUrl: scenario.menu.link, pageUrl: scenario.menu.page });
for (const end = Date.now() + scenario.wait; Date.now() < end; await new Promise(done => setTimeout(done, 50))) {
  if (given.size > 0 && did.erased.length > 0) break;
}
const options = {};
for (const gid of given) options[gid] = await call('aria2.getOption', gid);
console.log(JSON.stringify({ ...did, stored, options }));
process.exit(0);
