// Pages for Chromium, and Chromium itself with its DevTools protocol.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";

const types = { ".js": "text/javascript", ".wasm": "application/wasm" };
const options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server"];

// Serves pages by path, each a text or a handler, and the installed packages. Returns the origin and a function that stops.
export async function serve(pages) {
  const server = createServer(async (request, response) => {
    const page = pages[request.url];
    if (typeof page === "function") return page(request, response);
    if (page !== undefined) return response.setHeader("Content-Type", "text/html").end(page);
    try {
      const file = await readFile(new URL(`.${request.url}`, import.meta.url));
      response.setHeader("Content-Type", types[extname(request.url)] ?? "application/octet-stream").end(file);
    } catch {
      response.writeHead(404).end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => { server.close(); server.closeAllConnections(); };
  return { origin: `http://127.0.0.1:${server.address().port}`, close };
}

// Opens a URL, and returns the first of `result` and the end of Chromium, which is an error.
export async function open(profile, url, result) {
  const chromium = spawn("chromium", [...options, `--user-data-dir=${profile}`, url], { stdio: "ignore" });
  const ended = once(chromium, "exit");
  try {
    return await Promise.race([result, ended.then(([code]) => { throw new Error(`Chromium ended with ${code}`); }), patience(300)]);
  } finally {
    chromium.kill();
    await ended;
  }
}

// Opens an empty tab, and runs `use` with it.
export async function openTab(profile, use) {
  const pipe = ["ignore", "ignore", "ignore", "pipe", "pipe"];
  const chromium = spawn("chromium", [...options, "--remote-debugging-pipe", `--user-data-dir=${profile}`], { stdio: pipe });
  const ended = once(chromium, "exit");
  try {
    const used = Tab.open(chromium).then(use);
    return await Promise.race([used, ended.then(([code]) => { throw new Error(`Chromium ended with ${code}`); }), patience(300)]);
  } finally {
    chromium.kill();
    await ended;
  }
}

// A tab, controlled through the DevTools protocol: JSON objects on file descriptors 3 and 4, each followed by a zero.
class Tab {
  #input;
  #session;
  #count = 0;
  #calls = new Map();
  #listeners = new Map();

  static async open(chromium) {
    const tab = new Tab();
    tab.#input = chromium.stdio[3];
    let rest = "";
    chromium.stdio[4].setEncoding("utf8").on("data", (text) => {
      const messages = (rest + text).split("\0");
      rest = messages.pop();
      messages.forEach((message) => tab.#receive(JSON.parse(message)));
    });
    const { targetId } = await tab.send("Target.createTarget", { url: "about:blank" });
    tab.#session = (await tab.send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
    return tab;
  }

  #receive({ id, method, params, result, error }) {
    if (id === undefined) return this.#listeners.get(method)?.(params);
    const { resolve, reject } = this.#calls.get(id);
    this.#calls.delete(id);
    error ? reject(new Error(error.message)) : resolve(result);
  }

  // Calls a method of the protocol.
  send(method, params = {}) {
    const id = ++this.#count;
    this.#input.write(`${JSON.stringify({ id, method, params, sessionId: this.#session })}\0`);
    return new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
  }

  // Sets the listener of an event.
  on(event, listener) {
    this.#listeners.set(event, listener);
  }

  // Navigates to a URL, and waits until it is loaded.
  async navigate(url) {
    const loaded = new Promise((resolve) => this.on("Page.loadEventFired", resolve));
    await this.send("Page.enable");
    await this.send("Page.navigate", { url });
    await loaded;
  }

  // Evaluates an expression in the page, and returns the value of its promise.
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
}

function patience(seconds) {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(`nothing within ${seconds} s`)), 1000 * seconds).unref());
}
