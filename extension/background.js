// Hands downloads over. A download belongs to the browser until the daemon has received an answer of the same size and type; only
// then is the browser's download cancelled. Anything that happens earlier leaves it unchanged.
import { api, call, keys, Refused, settings } from './daemon.js';

const maxSeen = 300; // number of remembered requests
const seenTime = 5 * 60_000; // milliseconds
const answerTime = 20_000; // milliseconds within which the daemon must have an answer
const step = 200; // milliseconds between two polls

const http = url => /^https?:/i.test(url ?? '');
const pause = ms => new Promise(done => setTimeout(done, ms));

// seen holds the most recent requests by URL: their methods and the fields that the browser sent. It is kept in memory only.
const seen = new Map();

function remember(details) {
  const fields = Object.fromEntries((details.requestHeaders ?? []).map(h => [h.name.toLowerCase(), h.value]));
  const before = seen.get(details.url);
  const get = details.method === 'GET' && (!before || before.get || details.timeStamp - before.at > seenTime);
  seen.delete(details.url);
  seen.set(details.url, { get, at: details.timeStamp, fields });
  for (const url of seen.keys()) {
    if (seen.size <= maxSeen) break;
    seen.delete(url);
  }
}

// Chromium shows cookies and the referrer only if extraHeaders is requested, which Firefox does not know.
const extra = api.webRequest.OnSendHeadersOptions?.EXTRA_HEADERS;
{
  const filter = { urls: ['http://*/*', 'https://*/*'], types: ['main_frame', 'sub_frame', 'other'] };
  api.webRequest.onSendHeaders.addListener(remember, filter, extra ? ['requestHeaders', extra] : ['requestHeaders']);
}

// The records, by GID, in the extension's storage: `open` may still have to be removed from the daemon, `given` belong to it.
// Changes run one after another.
let changes = Promise.resolve();
function record(kind, to) {
  const run = changes.then(async () => {
    const all = (await api.storage.local.get({ [kind]: {} }))[kind];
    to(all);
    await api.storage.local.set({ [kind]: all });
  });
  changes = run.catch(() => {});
  return run;
}

// asked holds the URLs that the user sent to Tributary from the menu, with the page: size and type do not matter.
const asked = new Map();
// kept holds the URLs that must stay in the browser because the daemon failed to download them.
const kept = new Set();

function wanted(s, url, type, size, name) {
  const host = new URL(url).hostname;
  if (s.hosts.some(h => host === h || host.endsWith(`.${h}`))) return false;
  if (size < s.least) return false;
  const ending = /\.([a-z0-9]+)$/i.exec(name || new URL(url).pathname)?.[1].toLowerCase();
  return s.types.length === 0 || s.types.some(t => (t.includes('/') ? type === t || (t.endsWith('/*') && type.startsWith(t.slice(0, -1))) : ending === t));
}

async function find(id) {
  return (await api.downloads.search({ id }))[0];
}

// sized waits until the browser knows the size. Firefox reports a download before it knows.
async function sized(item) {
  for (let i = 0; i < 25 && item?.state === 'in_progress' && !(item.totalBytes > 0); i++) {
    await pause(step);
    item = await find(item.id);
  }
  return item?.state === 'in_progress' && item.totalBytes > 0 ? item : null;
}

// requested waits for the request of a download. If Firefox has to restart this script first, it reports the download before the
// request.
async function requested(url) {
  for (let i = 0; i < 25 && !seen.has(url); i++) await pause(step);
  return seen.get(url);
}

const origin = url => { try { return new URL(url).origin; } catch { return ''; } };

// ordered returns the request that Chromium sends for a download started by this script, since Chromium does not report such
// requests. A page chooses its links and where they lead. So only the link's own server gets cookies, and those that are only for
// requests of its own pages only if the link was on one of them.
async function ordered(item, url, page) {
  let cookies = origin(item.url) === origin(url) ? await api.cookies.getAll({ url }) : [];
  if (origin(page) !== origin(url)) cookies = cookies.filter(c => c.sameSite !== 'strict');
  return { get: true, fields: cookies.length > 0 ? { cookie: cookies.map(c => `${c.name}=${c.value}`).join('; ') } : {} };
}

const plain = type => (type ?? '').split(';')[0].trim().toLowerCase();
const unsaid = new Set(['', 'application/octet-stream', 'binary/octet-stream', 'application/x-download', 'application/force-download', 'application/unknown']);

// alike reports whether two types may belong to the same answer: a browser may know better what the server labels vaguely.
const alike = (theirs, ours) => theirs === ours || (unsaid.has(theirs) && !ours.startsWith('text/html')) || unsaid.has(ours) && theirs !== 'text/html';

async function consider(item) {
  const url = item.finalUrl || item.url;
  if (!http(url) || item.incognito || item.state !== 'in_progress') return;
  if (item.danger && item.danger !== 'safe') return; // the browser has a warning about it
  if (kept.delete(item.url)) return;
  const s = await settings();
  const page = asked.get(item.url);
  const menu = asked.delete(item.url);
  const sent = menu && extra ? await ordered(item, url, page) : await requested(url);
  if (!s.token || !sent?.get) return; // not a GET request, or one that was not seen
  if (!menu && (!s.on || (item.byExtensionId && item.byExtensionId !== api.runtime.id))) return;
  const known = await sized(item);
  if (known && (menu || wanted(s, url, plain(known.mime), known.totalBytes, known.filename))) await handOver(known, url, sent, menu || s.metered);
}

// handOver orders a download from the daemon. Pages can begin downloads by themselves, so only the user may let one cost money.
async function handOver(item, url, sent, metered) {
  const gid = Array.from(crypto.getRandomValues(new Uint8Array(8)), b => b.toString(16).padStart(2, '0')).join('');
  await record('open', all => { all[gid] = Date.now(); });
  let same = false;
  try {
    const header = [];
    for (const [name, field] of [['cookie', 'Cookie'], ['authorization', 'Authorization'], ['accept-language', 'Accept-Language']]) {
      if (sent.fields[name]) header.push(`${field}: ${sent.fields[name]}`);
    }
    const options = { gid, header, 'tributary-unmetered': String(!metered) };
    if (sent.fields.referer) options.referer = sent.fields.referer;
    options['user-agent'] = sent.fields['user-agent'] ?? navigator.userAgent;
    // Cookies are for one origin: the first URL is requested with them only if it has the same origin.
    const urls = http(item.url) && item.url !== url && new URL(item.url).origin === new URL(url).origin ? [url, item.url] : [url];
    await call('aria2.addUri', urls, options);
    same = await confirmed(gid, item);
  } catch (e) {
    if (!(e instanceof Refused)) await show(false);
  }
  const still = await find(item.id);
  if (!same || still?.state !== 'in_progress') return undo([gid]);
  // Record it before cancelling: if this worker dies in between, both downloads continue.
  await record('given', all => { all[gid] = { url: item.url, name: base(item.filename) || url, at: Date.now() }; });
  await record('open', all => { delete all[gid]; });
  await api.downloads.cancel(item.id);
  const now = await find(item.id);
  if (now?.state === 'complete') {
    await record('open', all => { all[gid] = Date.now(); });
    await record('given', all => { delete all[gid]; });
    return undo([gid]);
  }
  await api.downloads.erase({ id: item.id });
  await look();
}

const base = path => (path ?? '').split(/[/\\]/).pop();

// confirmed waits for the daemon's first answer, and reports whether it matches the browser's download.
async function confirmed(gid, item) {
  for (const end = Date.now() + answerTime; Date.now() < end; await pause(step)) {
    const d = await call('aria2.tellStatus', gid, keys);
    if (!['active', 'waiting', 'complete'].includes(d.status)) return false;
    if (Number(d.totalLength) > 0) return Number(d.totalLength) === item.totalBytes && alike(d.tributary.type, plain(item.mime));
    if ((await find(item.id))?.state !== 'in_progress') return false;
  }
  return false;
}

// undo removes downloads that stay in the browser from the daemon. If the daemon does not answer, that happens later.
async function undo(gids) {
  for (const gid of gids) {
    try {
      await call('aria2.remove', gid);
    } catch (e) {
      if (!(e instanceof Refused)) break; // the daemon does not answer now
    }
    await record('open', all => { delete all[gid]; });
  }
}

// show sets the icon: whether the daemon answers, and how many of its downloads run.
async function show(answers, running = 0, failed = 0) {
  const paired = (await settings()).token !== '';
  const text = answers ? (failed ? '!' : running ? String(running) : '') : 'off';
  await api.action.setBadgeText({ text });
  await api.action.setBadgeBackgroundColor({ color: answers && !failed ? '#0072b2' : '#6b7280' });
  const title = answers ? (failed ? 'Tributary: a download failed' : 'Tributary') : paired ? 'Tributary does not answer, so the browser downloads itself' : 'Tributary is not paired yet: see the options';
  await api.action.setTitle({ title });
}

// look asks the daemon for its state and for the progress of the downloads handed over.
async function look() {
  if (!(await settings()).token) return show(false);
  try {
    const running = (await call('aria2.tellActive', ['gid'])).length;
    await changes;
    const { given } = await api.storage.local.get({ given: {} });
    let failed = 0;
    for (const gid of Object.keys(given)) {
      let status = 'lost';
      try {
        status = (await call('aria2.tellStatus', gid, ['status'])).status;
      } catch (e) {
        if (!(e instanceof Refused)) throw e;
      }
      if (status === 'complete' || status === 'removed') await record('given', all => { delete all[gid]; });
      if (status === 'error' || status === 'lost') {
        failed++;
        await record('given', all => { if (all[gid]) all[gid].failed = true; });
      }
    }
    await show(true, running, failed);
    return true;
  } catch {
    await show(false);
  }
}

// tidy also removes what an earlier run of this worker left behind, but not while this run hands a download over.
async function tidy() {
  if (!await look() || handing) return;
  await changes;
  await undo(Object.keys((await api.storage.local.get({ open: {} })).open));
}

// again makes the browser download what the daemon failed to download.
async function again(gid) {
  await changes;
  const one = (await api.storage.local.get({ given: {} })).given[gid];
  if (!one) return;
  kept.add(one.url);
  await api.downloads.download({ url: one.url });
  await record('open', all => { all[gid] = Date.now(); });
  await record('given', all => { delete all[gid]; });
  await undo([gid]);
}

let handing = 0;
async function created(item) {
  handing++;
  try {
    await consider(item);
  } finally {
    handing--;
  }
}

api.downloads.onCreated.addListener(item => { created(item).catch(e => console.warn(e)); });
api.alarms.onAlarm.addListener(() => { tidy(); });
async function order(url, page) {
  if (!http(url)) return;
  asked.set(url, page);
  await api.downloads.download({ url }); // starts in the browser like any other
}
api.contextMenus.onClicked.addListener(click => { order(click.linkUrl ?? click.srcUrl, click.frameUrl ?? click.pageUrl); });
api.runtime.onMessage.addListener(message => {
  if (message.again) again(message.again);
  if (message.look) tidy();
});
api.runtime.onInstalled.addListener(async ({ reason }) => {
  api.contextMenus.removeAll(() => api.contextMenus.create({ id: 'download', title: 'Download with Tributary', contexts: ['link', 'image', 'video', 'audio'] }));
  if (reason === 'install') await api.runtime.openOptionsPage();
});
api.alarms.create('look', { periodInMinutes: 1 });
tidy();
