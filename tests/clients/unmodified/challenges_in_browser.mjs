// Requests of pages to a closed server open no login dialog in Chromium, and a navigation opens one:
// challenges_in_browser.mjs URL PROFILE TOKEN
//
// The server has the arrays below `lab/`. TOKEN is the password for the dialog.
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { openTab, serve } from "./chromium.mjs";

const [url, profile, token] = process.argv.slice(2);
const value = `${url}/store/lab/v3.zarr/zarr.json`;
const picture = `${url}/array/lab/v3.zarr/image?format=png`;
const { origin, close } = await serve({
  "/": "<!doctype html><title>of another origin</title>",
  "/basic": (request, response) => response.writeHead(401, { "WWW-Authenticate": 'Basic realm="control"' }).end(),
});
// What a request in the page results in: the status, or the name of the error event.
const send = (to, init = {}) => `fetch(${JSON.stringify(to)}, ${JSON.stringify(init)}).then((answer) => answer.status, (error) => error.name)`;
const show = (to) => `new Promise((resolve) => {
  const image = document.body.appendChild(new Image());
  image.onload = image.onerror = (event) => resolve(event.type);
  image.src = ${JSON.stringify(to)};
})`;

// The dialogs that Chromium would open for the tab, and what both sides sent, by request.
const dialogs = [];
const exchanges = new Map();
const record = (id, known) => exchanges.set(id, { ...exchanges.get(id), ...known });

async function watch(tab) {
  tab.on("Fetch.requestPaused", ({ requestId }) => tab.send("Fetch.continueRequest", { requestId }));
  tab.on("Fetch.authRequired", ({ requestId, authChallenge: { scheme, realm } }) => {
    dialogs.push(`${scheme} ${realm}`);
    const credentials = { response: "ProvideCredentials", username: "any", password: tab.password };
    tab.send("Fetch.continueWithAuth", { requestId, authChallengeResponse: tab.password ? credentials : { response: "CancelAuth" } });
    // A wrong password would make it ask for ever.
    tab.password = undefined;
  });
  tab.on("Network.requestWillBeSent", ({ requestId, request: { url, method } }) => record(requestId, { url, method }));
  tab.on("Network.requestWillBeSentExtraInfo", ({ requestId, headers }) => record(requestId, { mode: headers["Sec-Fetch-Mode"] }));
  tab.on("Network.responseReceivedExtraInfo", ({ requestId, statusCode, headers }) =>
    record(requestId, { status: statusCode, challenge: new Headers(headers).get("WWW-Authenticate") }));
  await tab.send("Network.enable");
  await tab.send("Fetch.enable", { handleAuthRequests: true });
}

// Runs an action of the tab; returns its result with the exchange of a URL, except a preflight, and the dialogs.
async function observe(to, action) {
  exchanges.clear();
  dialogs.length = 0;
  const result = await action();
  // Events about the exchange may arrive later than its result.
  for (let round = 0; round < 3000; round++) {
    const { url, mode, status, challenge } =
      Array.from(exchanges.values()).find(({ url, method }) => url === to && method !== "OPTIONS") ?? {};
    if (url && mode && status) return { result, mode, status, challenge, dialogs: [...dialogs] };
    await setTimeout(10);
  }
  throw new Error(`no exchange of ${to} within 30 s`);
}

const wrong = ["Bearer zarrd_1_x_y", `Basic ${btoa("any:zarrd_1_x_y")}`];
let refused = 0;
await openTab(profile, async (tab) => {
  await watch(tab);
  for (const page of [`${origin}/`, `${url}/healthz`]) {
    const isOwn = page.startsWith(url);
    await tab.navigate(page);
    for (const [to, expression, result, mode] of [
      [value, send(value), 401, "cors"],
      ...wrong.map((Authorization) => [value, send(value, { headers: { Authorization } }), 401, "cors"]),
      // Pages of other origins cannot read a response to a request with cookies.
      [value, send(value, { credentials: "include" }), isOwn ? 401 : "TypeError", "cors"],
      [value, send(value, { mode: "no-cors" }), isOwn ? 401 : 0, "no-cors"],
      [picture, send(picture), 401, "cors"],
      [picture, show(picture), "error", "no-cors"],
    ]) {
      const found = await observe(to, () => tab.evaluate(expression));
      const wanted = { result, mode, status: 401, challenge: 'Bearer realm="zarrd"', dialogs: [] };
      assert.deepEqual(found, wanted, `${page}: ${expression}`);
      refused++;
    }
  }

  // A server that challenges scripts and images with Basic makes Chromium ask.
  await tab.navigate(`${origin}/`);
  for (const expression of [send(`${origin}/basic`), show(`${origin}/basic`)]) {
    const found = await observe(`${origin}/basic`, () => tab.evaluate(expression));
    assert.deepEqual(found.dialogs, ["basic control"], expression);
  }

  // So does a navigation, whose dialog takes the token as password.
  const cancelled = await observe(value, () => tab.navigate(value));
  assert.deepEqual([cancelled.mode, cancelled.dialogs], ["navigate", ["basic zarrd"]]);
  tab.password = token;
  const listing = await observe(`${url}/store/lab/`, () => tab.navigate(`${url}/store/lab/`));
  assert.deepEqual([listing.mode, listing.dialogs], ["navigate", ["basic zarrd"]]);
  assert.equal(await tab.evaluate(`document.querySelector('a[href="v3.zarr/"]')?.textContent`), "v3.zarr/");
});
close();
console.log(`no dialog for ${refused} requests of pages, one for each of 2 navigations`);
