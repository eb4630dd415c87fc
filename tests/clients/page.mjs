// The page in Chromium: each check is a function of a server's origin, named by the first argument after it.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [chromiumPath, origin, check, ...rest] = process.argv.slice(2);
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

async function send(method, path, body, type = "application/json") {
  const answer = await fetch(origin + path, { method, body: ArrayBuffer.isView(body) ? body : JSON.stringify(body), headers: { "Content-Type": type } });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.text()}`);
}

const json = async (path) => (await fetch(origin + path)).json();

function array(shape, type, chunks, { names, attributes = {}, fill = 0, codecs } = {}) {
  const bytes = type === "string" ? { name: "vlen-utf8" } : /^(bool|u?int8)$/.test(type) ? { name: "bytes" } : { name: "bytes", configuration: { endian: "little" } };
  return {
    zarr_format: 3, node_type: "array", shape, data_type: type, fill_value: fill, attributes,
    chunk_grid: { name: "regular", configuration: { chunk_shape: chunks } },
    chunk_key_encoding: { name: "default" }, codecs: codecs ?? [bytes],
    ...(names && { dimension_names: names }),
  };
}

async function put(path, values, shape, type, chunks, options) {
  await send("PUT", `/node/${path}`, array(shape, type, chunks, options));
  await send("PUT", `/array/${path}`, values, "application/octet-stream");
}

// Runs `use` with a page, and fails if anything was reported to the console, violated the policy or left the server.
async function browse(use, options = {}) {
  const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox", "--disable-gpu", "--no-proxy-server", "--disable-quic"] });
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    const reported = [];
    const answers = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && reported.push(message.text()));
    page.on("pageerror", (error) => reported.push(String(error)));
    page.on("dialog", (dialog) => (reported.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
    page.on("request", (request) => {
      const isOwn = [origin, options.baseURL].some((own) => request.url().startsWith(`${own}/`)) || /^(blob|data):/.test(request.url());
      if (!isOwn) reported.push(`request to ${request.url()}`);
    });
    page.on("requestfinished", async (request) => {
      const sizes = await request.sizes().catch(() => null);
      answers.push({ url: request.url(), size: sizes?.responseBodySize ?? 0 });
    });
    await use(page, { reported, answers, context });
    assert.deepEqual(reported, []);
  } finally {
    await browser.close();
  }
}

// What holds requests back until it is opened.
function gate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { open, opened };
}

async function settled(page) {
  await page.waitForSelector("h1", { timeout: 30_000 });
  await page.waitForFunction(() => {
    const cost = document.querySelector(".cost");
    return document.querySelector("[role=alert]") || !cost || cost.dataset.loading === "false";
  }, null, { timeout: 60_000 });
  // The address is written, and the last frame drawn, once it rests.
  await page.waitForTimeout(500);
}

const open = async (page, path) => (await page.goto(origin + path), settled(page));

// The canvas's pixels in the middle of each element, as `[r, g, b, a]` by row and column.
const pixels = (page, rows, columns) =>
  page.evaluate(([rows, columns]) => {
    const canvas = document.querySelector("canvas.plot");
    const [x0, x1, y0, y1] = canvas.dataset.box.split(",").map(Number);
    const { width, height } = canvas;
    const image = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    return Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (_, column) => {
      const x = Math.floor(((column + 0.5 - x0) / (x1 - x0)) * width);
      const down = ((row + 0.5 - y0) / (y1 - y0)) * height;
      const y = Math.floor(canvas.dataset.flip ? height - down : down);
      return [...image.slice(4 * (y * width + x), 4 * (y * width + x) + 4)];
    }));
  }, [rows, columns]);

// The pixels of a picture of the server, as `[r, g, b, a]` row by row.
const picturePixels = (page, url) =>
  page.evaluate(async (url) => {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(await answer.text());
    const bitmap = await createImageBitmap(await answer.blob(), { premultiplyAlpha: "none", colorSpaceConversion: "none" });
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const image = context.getImageData(0, 0, bitmap.width, bitmap.height).data;
    return Array.from({ length: image.length / 4 }, (_, at) => [...image.slice(4 * at, 4 * at + 4)]);
  }, origin + url);

// All that controls show, and the picture.
const snapshot = (page) =>
  page.evaluate(() => ({
    controls: [...document.querySelectorAll("main select, main input, main [aria-pressed]")].map((control) => `${control.closest("label")?.textContent.slice(0, 20) ?? control.ariaLabel ?? control.textContent}: ${control.type === "checkbox" ? control.checked : (control.ariaPressed ?? control.value)}`),
    sections: [...document.querySelectorAll("main h2")].map((title) => title.textContent),
    element: document.querySelector(".probe .value")?.textContent ?? "",
    picture: document.querySelector("canvas.plot")?.toDataURL() ?? "",
  }));

// Downloads what a button exports.
async function exported(page, name) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).click()]);
  return readFile(await download.path());
}

const screen = (page) => page.evaluate(() => document.querySelector("canvas.plot").toDataURL());

const checks = {
  // Grey has one level for each colour, so a pixel is the number of thresholds that its value has reached.
  async pixels() {
    const [rows, columns] = [20, 30];
    const values = Float32Array.from({ length: rows * columns }, (_, at) => Math.sin(at * 1.7) * 10 ** ((at % 7) - 3));
    for (const at of [0, 31, 599]) values[at] = NaN;
    await put("pixels", values, [rows, columns], "float32", [7, 11], { fill: "NaN" });
    const scales = {
      linear: { range: [-3, 5], curve: (value) => value },
      log: { range: [0.01, 50], curve: Math.log },
      symlog: { range: [-40, 80], curve: (value) => (Math.abs(value) <= 0.08 ? value / 0.9 : Math.sign(value) * 0.08 * (1 / 0.9 + Math.log10(Math.abs(value) / 0.08))) },
    };
    await browse(async (page) => {
      for (const [scale, { range: [low, high], curve }] of Object.entries(scales)) {
        await open(page, `/browse/pixels?scale=${scale}&map=grey&limits=fixed&range=${low},${high}`);
        const found = await pixels(page, rows, columns);
        let compared = 0;
        values.forEach((value, at) => {
          const pixel = found[Math.floor(at / columns)][at % columns];
          if (Number.isNaN(value)) return assert.deepEqual(pixel, [0, 0, 0, 0]);
          const clipped = Math.min(high, Math.max(low, value));
          // Greys are rounded to the nearest.
          const position = 255 * (curve(clipped) - curve(low)) / (curve(high) - curve(low)) + 0.5;
          const level = Math.min(255, Math.floor(position));
          // Within rounding of a threshold both neighbours are right.
          if (value > low && value < high && Math.abs(position - Math.round(position)) < 1e-9) return;
          assert.deepEqual(pixel, [level, level, level, 255], `${scale} ${value}`);
          compared++;
        });
        assert.ok(compared > 500, `${compared}`);
      }
    });
  },

  // Each pixel is the one of the PNG route, for every map and scale, at all values at which colours begin and just below.
  async colours() {
    const maps = ["grey", "viridis", "magma", "cividis", "RdBu", "RdBu_r"];
    const ranges = { linear: [-3, 5], log: [0.01, 50], symlog: [-40, 80] };
    const [rows, columns] = [26, 20];
    const below = (value) => {
      const number = Float64Array.of(value);
      const bits = new BigInt64Array(number.buffer);
      if (value === 0) return -5e-324;
      bits[0] += value > 0 ? -1n : 1n;
      return number[0];
    };
    for (const [scale, [min, max]] of Object.entries(ranges))
      for (const map of ["grey", "viridis"]) {
        const path = `${scale}_${map}`;
        await send("PUT", `/node/${path}`, array([rows, columns], "float64", [9, 20], { fill: "NaN" }));
        const { thresholds } = await json(`/array/${path}?thresholds&cmap=${map}&scale=${scale}&min=${min}&max=${max}`);
        const values = Float64Array.from([...thresholds.flatMap((value) => [value, below(value)]), NaN, Infinity, -Infinity, max, min, 2 * max, -2 * max, 0]);
        assert.equal(values.length, rows * columns);
        await send("PUT", `/array/${path}`, values, "application/octet-stream");
      }
    const wide = BigInt64Array.from({ length: 400 }, (_, at) => 2n ** 60n + BigInt(at * 64 - 12_800));
    await put("wide", wide, [20, 20], "int64", [20, 20]);
    await put("bytes", Uint8Array.from({ length: 400 }, (_, at) => at), [20, 20], "uint8", [20, 7]);
    await put("flags", Uint8Array.from({ length: 400 }, (_, at) => at % 3 === 0), [20, 20], "bool", [20, 7]);
    await put("packed", Int16Array.from({ length: 400 }, (_, at) => (at % 7 ? at : -999)), [20, 20], "int16", [20, 7], { attributes: { _FillValue: -999 } });
    const cases = Object.entries(ranges).flatMap(([scale, range]) => maps.map((map, at) => ({ path: `${scale}_${map === "grey" ? map : "viridis"}`, scale, map, range, size: [rows, columns], mark: at % 2 === 0 })));
    for (const mark of [true, false]) cases.push({ path: "wide", scale: "linear", map: "viridis", range: [2 ** 60 - 9000, 2 ** 60 + 9000], size: [20, 20], mark });
    cases.push({ path: "bytes", scale: "log", map: "magma", range: [3, 200], size: [20, 20], mark: true });
    cases.push({ path: "flags", scale: "linear", map: "cividis", range: [0, 1], size: [20, 20], mark: false });
    cases.push({ path: "packed", scale: "symlog", map: "RdBu_r", range: [-300, 300], size: [20, 20], mark: true, fill: -999 });
    let compared = 0;
    await browse(async (page) => {
      for (const { path, scale, map, range: [low, high], size: [rows, columns], mark, fill } of cases) {
        await open(page, `/browse/${path}?scale=${scale}&map=${map}&limits=fixed&range=${low},${high}${mark ? "&outside=mark" : ""}${fill ? "&decode=none" : ""}`);
        const drawn = (await pixels(page, rows, columns)).flat();
        const picture = await picturePixels(page, `/array/${path}?format=png&cmap=${map}&scale=${scale}&min=${low}&max=${high}${mark ? "&under=22b4e6&over=f03cb4" : ""}`);
        const values = fill ? (await json(`/array/${path}`)).flat() : [];
        assert.equal(picture.length, rows * columns);
        picture.forEach((pixel, at) => {
          if (values[at] === fill && fill) return assert.ok(drawn[at][3] > 0 && drawn[at][3] < 255, `${path} ${at}: ${drawn[at]}`);
          assert.deepEqual(drawn[at], pixel, `${path} ${scale} ${map} ${at}`);
          compared += pixel[3] === 255;
        });
      }
    });
    console.log(`${compared} opaque pixels of ${cases.length} pictures`);
    assert.ok(compared > 10_000, `${compared}`);
  },

  // Which chunks are stored, in numbers, in the picture and on the plan; what a view took; what a group stores.
  async lens() {
    await send("PUT", "/node/lab", { zarr_format: 3, node_type: "group" });
    await send("PUT", "/node/lab/some", array([40, 30], "float32", [10, 10], { fill: "NaN" }));
    for (const [row, column] of [[0, 0], [0, 1], [1, 1], [3, 0], [3, 2]])
      await send("PUT", `/array/lab/some?select=${10 * row}:${10 * row + 10},${10 * column}:${10 * column + 10}`, Float32Array.from({ length: 100 }, (_, at) => at + 1), "application/octet-stream");
    const inner = { chunk_shape: [5, 5], codecs: [{ name: "bytes", configuration: { endian: "little" } }], index_codecs: [{ name: "bytes", configuration: { endian: "little" } }], index_location: "end" };
    await send("PUT", "/node/lab/shards", array([40, 40], "uint16", [20, 20], { codecs: [{ name: "sharding_indexed", configuration: inner }] }));
    await send("PUT", "/array/lab/shards?select=0:20,0:20", Uint16Array.from({ length: 400 }, (_, at) => at + 1), "application/octet-stream");
    await browse(async (page) => {
      const facts = async () => Object.fromEntries(await page.evaluate(() => [...document.querySelectorAll(".lens .attributes > div")].map((row) => [row.children[0].textContent, row.children[1].textContent])));
      const absent = () => page.evaluate(() => (document.querySelector(".absent path")?.getAttribute("d").match(/M/g) ?? []).length);
      await open(page, "/browse/lab/some?lens=on&pin=15,15");
      await page.getByText("at the pinned element").waitFor();
      let told = await facts();
      assert.equal(told["in this view"], "5 of 12 chunks stored, 7 missing: 2.0 KiB, of 2.0 KiB decoded");
      assert.equal(told["at the pinned element"], "lab/some/c/1/1: 400 B");
      assert.equal(told["grid"], "4 × 3 = 12 chunks");
      assert.equal(await absent(), 7);
      const plan = await page.evaluate(() => {
        const canvas = document.querySelector(".map canvas");
        const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return [canvas.width, canvas.height, ...Array.from({ length: canvas.width * canvas.height }, (_, at) => Number(image[4 * at + 3] > 0))];
      });
      assert.deepEqual(plan, [3, 4, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1]);
      assert.match(await page.locator(".cost").innerText(), /^12 chunks, 2\.0 KiB, \d+ ms\. /);
      // A part of the plane has its own numbers, and a click on the plan moves it.
      await open(page, "/browse/lab/some?lens=on&box=0,10,0,10&x=1&y=0");
      await page.locator(".map canvas").click({ position: { x: 2, y: 2 } });
      await settled(page);
      told = await facts();
      assert.ok(told["in this plane"].startsWith("5 of 12"), JSON.stringify(told));
      assert.match(page.url(), /box=0,/);
      await open(page, "/browse/lab/shards?lens=on");
      told = await facts();
      assert.equal(told["in this view"].split(":")[0], "1 of 4 shards stored, 3 missing");
      assert.equal(told["in shards of"], "20 × 20, 800 B decoded");
      assert.equal(await absent(), 3);
      await open(page, "/browse/lab");
      const row = (name) => page.locator("table.arrays tr", { hasText: name }).innerText();
      await page.getByText("5 of 12 chunks").waitFor();
      assert.match(await row("some"), /2\.0 KiB\s+5 of 12 chunks/);
      assert.match(await row("shards"), /1 of 4 chunks/);
    });
  },

  // Zoomed out, the level is read that has as many elements as are drawn, and named; zoomed in, the array itself.
  async levels() {
    const multiscales = [{ version: "0.4", datasets: ["s0", "s1", "s2"].map((path) => ({ path })) }];
    const groups = {
      ome: { attributes: { ome: { version: "0.5", multiscales } } },
      linked: { attributes: {}, extensions: [{ name: "example.multiscale-arrays", must_understand: false, configuration: { multiscale: { datasets: ["s0", "s1", "s2"] } } }] },
    };
    await browse(async (page, { answers }) => {
      for (const [name, members] of Object.entries(groups)) {
        await send("PUT", `/node/${name}`, { zarr_format: 3, node_type: "group", ...members });
        for (const [level, length] of [[0, 4096], [1, 2048], [2, 1024]]) await put(`${name}/s${level}`, new Uint8Array(length * length).fill(10 * (level + 1)), [length, length], "uint8", [256, 256]);
        const view = `/browse/${name}/s0?map=grey&limits=fixed&range=0,255`;
        await open(page, view);
        await page.getByText("of level s2, 4 × 4 times coarser").waitFor();
        await page.waitForTimeout(300);
        const middle = async () => {
          const canvas = await page.locator("canvas.plot").boundingBox();
          return page.evaluate(([x, y]) => [...document.querySelector("canvas.plot").getContext("2d").getImageData(x, y, 1, 1).data], [canvas.width / 2, canvas.height / 2].map(Math.floor));
        };
        assert.deepEqual(await middle(), [30, 30, 30, 255], name);
        answers.length = 0;
        await open(page, `${view}&box=0,300,0,300`);
        assert.ok(!(await page.locator(".cost").innerText()).includes("of level"));
        assert.deepEqual(await middle(), [10, 10, 10, 255]);
        // Functions of the elements are those of the array.
        await open(page, `${view}&thin=max`);
        assert.deepEqual(await middle(), [10, 10, 10, 255]);
      }
    });
  },

  // A refusal offers the part that the server would answer.
  async smaller() {
    await put("plane", Float32Array.from({ length: 600 * 600 }, (_, at) => at), [600, 600], "float32", [300, 300]);
    await browse(async (page, { reported }) => {
      await page.goto(`${origin}/browse/plane`);
      const offer = page.getByRole("button", { name: /^Show \d/ });
      await offer.waitFor();
      const text = await offer.innerText();
      await offer.click();
      await page.waitForFunction(() => !document.querySelector("[role=alert]"));
      await settled(page);
      assert.equal(await page.locator("[role=alert]").count(), 0);
      const [rows] = text.replace("Show ", "").split(", ").map((item) => item.split(":").map(Number));
      const box = new URL(page.url()).searchParams.get("box").split(",").map(Number);
      assert.ok(box[3] <= rows[1] + 1 && box[2] >= rows[0] - 1, `${text} ${box}`);
      assert.ok((await pixels(page, 2, 2)).flat().every((pixel) => pixel[3] === 255));
      assert.ok(reported.length && reported.every((line) => /413/.test(line)), String(reported));
      reported.length = 0;
    });
  },

  // A server that goes away is said to be away, and what was asked for is shown once it is back.
  async outage() {
    await climate();
    await browse(async (page, { reported }) => {
      await open(page, "/browse/climate/t");
      const before = await screen(page);
      await page.route("**/array/**", (route) => route.abort("connectionrefused"));
      await page.getByRole("slider", { name: "time" }).fill("3");
      await page.getByText("The server does not answer").waitFor();
      assert.ok((await screen(page)) === before, "the old picture stays");
      await page.unroute("**/array/**");
      await page.waitForFunction(() => !document.querySelector("[role=alert]"));
      await settled(page);
      const after = await screen(page);
      await page.reload();
      await settled(page);
      assert.ok((await screen(page)) === after && after !== before);
      assert.ok(reported.every((line) => /ERR_CONNECTION_REFUSED/.test(line)), String(reported));
      reported.length = 0;
    });
    // An answer that ends early is asked for again, and not for ever.
    let broken = 1;
    const proxy = createServer(async (request, response) => {
      const answer = await fetch(origin + request.url, { headers: { Accept: request.headers.accept } });
      const body = Buffer.from(await answer.arrayBuffer());
      const { "content-encoding": _, "content-length": __, "transfer-encoding": ___, ...headers } = Object.fromEntries(answer.headers);
      const isCut = request.url.includes("format=raw") && broken-- > 0;
      response.writeHead(answer.status, { ...headers, "content-length": body.length });
      if (!isCut) return response.end(body);
      response.write(body.subarray(0, 100), () => response.destroy());
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const own = `http://127.0.0.1:${proxy.address().port}`;
    try {
      await browse(async (page, { reported }) => {
        const isAskedAgain = page.waitForResponse(() => broken === -1);
        await page.goto(`${own}/browse/climate/t`);
        await isAskedAgain;
        // Until then, the page says that the server does not answer, so it is settled too early.
        await page.waitForFunction(() => !document.querySelector("[role=alert]"));
        await settled(page);
        assert.ok((await pixels(page, 18, 36)).flat().every((pixel) => pixel[3] === 255));
        assert.equal(broken, -1);
        broken = 1e9;
        await page.getByRole("slider", { name: "time" }).fill("3");
        await page.getByText("The answer ended before it was complete").waitFor();
        broken = 0;
        await page.getByRole("button", { name: "Try again" }).click();
        await page.waitForFunction(() => !document.querySelector("[role=alert]"));
        await settled(page);
        assert.ok((await pixels(page, 18, 36)).flat().every((pixel) => pixel[3] === 255));
        assert.ok(reported.every((line) => /ERR_CONTENT_LENGTH_MISMATCH/.test(line)), String(reported));
        reported.length = 0;
      }, { baseURL: own });
    } finally {
      proxy.close();
      proxy.closeAllConnections();
    }
  },

  // Members that the tree cannot show as arrays and groups are marked: with what is wrong, or with their dialect.
  async members_left_out() {
    await send("PUT", "/node/mixed", { zarr_format: 3, node_type: "group" });
    await put("mixed/fine", Int16Array.of(1, 2, 3), [3], "int16", [3]);
    await put("mixed/old", Int32Array.of(1, 2, 3, 4), [4], "int32", [2]);
    await send("PUT", "/store/mixed/README.md", new TextEncoder().encode("# mixed"), "text/markdown");
    await send("PUT", "/store/mixed/figures/1.png", new Uint8Array(3), "image/png");
    await send("PUT", "/store/mixed/bad/zarr.json", new TextEncoder().encode("{not json"), "application/octet-stream");
    await send("DELETE", "/node/mixed/old", {});
    await send("PUT", "/store/mixed/old/.zarray", { zarr_format: 2, shape: [4], chunks: [2], dtype: "<i4", compressor: null, fill_value: 0, order: "C", filters: null });
    await browse(async (page) => {
      await open(page, "/browse/mixed/fine");
      const row = (name) => page.locator(".row", { hasText: name });
      await row("bad").waitFor();
      assert.match(await row("bad").innerText(), /broken/);
      assert.match(await row("bad").getAttribute("title"), /mixed\/bad\/zarr\.json: the document is not JSON/);
      assert.match(await row("fine").innerText(), /i2 3/);
      assert.match(await row("old").innerText(), /v2 i4 4/);
      assert.match(await row("mixed").innerText(), /v3/);
      await open(page, "/browse/mixed");
      assert.match(await page.locator(".notice").innerText(), /One node below cannot be read\s+bad mixed\/bad\/zarr\.json: the document is not JSON/);
      // Files and folders that are no Zarr are listed, with sizes and links.
      assert.deepEqual(await page.locator("table.files tr").allInnerTexts(), ["README.md\t7 B", "figures/\tfolder"]);
      const links = await page.locator("table.files a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
      assert.deepEqual(links.map((href) => href.replace(/^.*(?=\/store\/)/, "")), ["/store/mixed/README.md", "/store/mixed/figures/"]);
      await page.locator("table.arrays a", { hasText: "old" }).click();
      await settled(page);
      assert.match(await page.locator(".facts").innerText(), /^<i4\s+4/);
    });
  },

  // Axes, legends and fields have the digits that tell their numbers apart, and names with units.
  async labels() {
    const [rows, columns] = [20, 30];
    await send("PUT", "/node/precise", { zarr_format: 3, node_type: "group" });
    const names = { names: ["y", "x"], attributes: { units: "Pa" } };
    await put("precise/p", Float64Array.from({ length: rows * columns }, (_, at) => 101325 + at / 1000), [rows, columns], "float64", [rows, columns], names);
    await put("precise/y", Float64Array.from({ length: rows }, (_, at) => 4_500_000 + at / 4), [rows], "float64", [rows], { names: ["y"], attributes: { units: "m" } });
    const lengths = 60_000;
    await put("precise/time", Float64Array.from({ length: lengths }, (_, at) => at * 10), [lengths], "float64", [lengths], { names: ["time"], attributes: { units: "seconds since 2024-03-01" } });
    await put("precise/log", Float32Array.from({ length: lengths }, (_, at) => at % 7), [lengths], "float32", [lengths], { names: ["time"], attributes: { units: "V" } });
    // A year of 12 months of 30 days has a 30 February, which no axis of this calendar has.
    await put("precise/day", Float64Array.from({ length: 90 }, (_, at) => at), [90], "float64", [90], { names: ["day"], attributes: { units: "days since 2000-01-01", calendar: "360_day" } });
    await put("precise/d", Float64Array.from({ length: 90 }, (_, at) => at), [90], "float64", [90], { names: ["day"] });
    await browse(async (page) => {
      const read = async (text) => {
        const line = page.locator(".probe-line");
        // A line is drawn anew when its coordinate arrives.
        for (let turn = 0; turn < 40 && !(await line.innerText()).startsWith(text); turn++) {
          await page.locator(".u-over").hover({ position: { x: 2 + (turn % 2), y: 50 } });
          await page.waitForTimeout(100);
        }
        assert.ok((await line.innerText()).startsWith(text), await line.innerText());
      };
      const distinct = (texts, least) => assert.ok(texts.length >= least && new Set(texts).size === texts.length, texts.join(" | "));
      await open(page, "/browse/precise/p");
      distinct(await page.locator(".legend .tick").allInnerTexts(), 2);
      distinct(await page.locator(".axis-y .tick").allInnerTexts(), 3);
      distinct(await page.locator(".axis-x .tick").allInnerTexts(), 3);
      assert.equal(await page.locator(".axis-y .axis-name").innerText(), "y (m)");
      assert.equal(await page.locator(".legend .units").innerText(), "Pa");
      for (const [field, value] of [["From", 101325 + 0.012], ["To", 101325 + 0.587]]) {
        const shown = Number(await page.getByLabel(field, { exact: true }).inputValue());
        assert.ok(Math.abs(shown - value) < 0.002, `${field} ${shown}`);
      }
      // A coordinate too long to be read as a whole: what is shown of it is exact.
      const time = await json("/array/precise/log?labels=time&select=1234:1284&format=json");
      await open(page, "/browse/precise/log?view=table&box=1234,1235,0,1");
      const heads = await page.locator(".elements tbody th").allInnerTexts();
      assert.deepEqual(heads, time.map((text) => text.replace(/\.0+$/, "").replace(/T00:00:00$/, "")));
      await open(page, "/browse/precise/log?box=1234,1284,0,1");
      await read("time 1\u202f234 (2024-03-01T03:25:40): 2");
      await open(page, "/browse/precise/day?view=table&box=59,60,0,1");
      assert.match(await page.locator(".elements tbody tr").first().innerText(), /2000-02-30\s+2000-02-30T00:00:00/);
      await open(page, "/browse/precise/d?box=59,70,0,1");
      assert.equal(await page.locator("[role=alert]").count(), 0);
      await read("day 59 (2000-02-30): 59");
    });
  },

  // Flags have names, structs columns, and colours of a screen a picture, with the values of all channels. Channels of more
  // bits, and those that an image gives other colours, are shown one at a time.
  async meanings() {
    const flags = { flag_values: [0, 1, 4], flag_meanings: "ocean land ice" };
    await put("kinds", Uint8Array.of(0, 1, 4, 1, 0, 4), [2, 3], "uint8", [2, 3], { attributes: flags });
    await put("bits", Uint8Array.of(0, 1, 2, 3, 4, 7), [2, 3], "uint8", [2, 3], { attributes: { flag_masks: [1, 2, 4], flag_meanings: "wet cold high" } });
    const [rows, columns] = [6, 8];
    const values = Uint8Array.from({ length: rows * columns * 3 }, (_, at) => 100 + at);
    await put("camera", values, [rows, columns, 3], "uint8", [rows, columns, 3], { names: ["y", "x", "rgb"] });
    const measured = (channels) => Uint16Array.from({ length: channels * rows * columns }, (_, at) => 100 + 20 * at);
    for (const channels of [3, 4]) await put(`microscope${channels}`, measured(channels), [channels, rows, columns], "uint16", [channels, rows, columns], { names: ["c", "y", "x"] });
    const colours = (...all) => ({ multiscales: [{ version: "0.4", datasets: [{ path: "s0" }] }], omero: { channels: all.map((color) => ({ color })) } });
    for (const [name, ome] of Object.entries({ stained: colours("0000FF", "00FF00", "FF0000"), screen: colours("FF0000", "00FF00", "0000FF") })) {
      await send("PUT", `/node/${name}`, { zarr_format: 3, node_type: "group", attributes: { ome: { version: "0.5", ...ome } } });
      await put(`${name}/s0`, Uint8Array.from({ length: 3 * rows * columns }, (_, at) => at), [3, rows, columns], "uint8", [3, rows, columns], { names: ["c", "y", "x"] });
    }
    await browse(async (page) => {
      const meaning = async (path) => (await open(page, path), page.locator(".probe .value").innerText());
      await open(page, "/browse/kinds");
      assert.deepEqual(await page.locator(".legend .key").allInnerTexts(), ["ocean", "land", "ice"].map((text) => ` ${text}`).map((text) => text.trim()));
      const [swatch] = await page.locator(".legend .key i").evaluateAll((keys) => keys.map((key) => getComputedStyle(key).backgroundColor));
      assert.equal(swatch, `rgb(${(await pixels(page, 2, 3))[0][0].slice(0, 3).join(", ")})`);
      assert.match(await meaning("/browse/kinds?pin=0,2"), /^4\s+ice/);
      assert.match(await meaning("/browse/bits?pin=1,2"), /^7\s+wet, cold, high/);
      assert.match(await meaning("/browse/bits?pin=1,1"), /^4\s+high/);
      // Levels of a screen are shown as they are.
      await open(page, "/browse/camera?pin=2,3,0");
      assert.deepEqual((await pixels(page, rows, columns)).flat().flatMap((pixel) => pixel.slice(0, 3)), [...values]);
      const at = 3 * (2 * columns + 3);
      await page.waitForFunction((text) => document.querySelector(".probe .value").textContent.trim() === text, values.slice(at, at + 3).join(", "));
      for (const [path, isColour] of [["microscope3", false], ["microscope4", false], ["stained/s0", false], ["screen/s0", true]]) {
        await open(page, `/browse/${path}`);
        // One channel in one colour map, and a control that chooses the channel. What the image says arrives after its level.
        await page.waitForFunction((isColour) => {
          const views = [...document.querySelectorAll("[aria-label=View] button")].map((button) => button.textContent);
          const sliders = document.querySelectorAll('input[type=range][aria-label="c"]').length;
          return views.length > 0 && views.includes("RGB") === isColour && sliders === (isColour ? 0 : 1);
        }, isColour);
      }
    });
  },

  // An array that was replaced or deleted since it was described is shown as it is now.
  async changed() {
    const values = (length) => Float64Array.from({ length }, (_, at) => at);
    await put("mutable", values(400), [4, 10, 10], "float64", [1, 10, 10]);
    await browse(async (page, { reported }) => {
      await open(page, "/browse/mutable");
      await send("DELETE", "/node/mutable", {});
      await put("mutable", values(4 * 6 * 20), [4, 6, 20], "float64", [1, 6, 20]);
      await page.getByRole("slider", { name: "dimension 0" }).fill("2");
      await page.getByText("This array has changed").waitFor();
      await settled(page);
      assert.match(await page.locator(".facts").innerText(), /6 × 20/);
      assert.equal(await page.locator("[role=alert]").count(), 0);
      assert.ok((await pixels(page, 6, 20)).flat().every((pixel) => pixel[3] === 255));
      // Of another number of dimensions and another type, it is shown from the beginning.
      await send("DELETE", "/node/mutable", {});
      await put("mutable", Uint8Array.from({ length: 120 }, (_, at) => at), [12, 10], "uint8", [12, 10]);
      await page.getByRole("slider", { name: "dimension 0" }).fill("3");
      await page.waitForFunction(() => /^uint8/.test(document.querySelector(".facts").innerText));
      await settled(page);
      assert.equal(await page.locator("[role=alert]").count(), 0);
      assert.ok((await pixels(page, 12, 10)).flat().every((pixel) => pixel[3] === 255));
      await send("DELETE", "/node/mutable", {});
      await page.getByLabel("Chunks", { exact: true }).click();
      await page.locator("canvas.plot").focus();
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Table" }).click();
      await page.getByRole("alert").first().waitFor();
      assert.equal(await page.locator("canvas.plot").count(), 0);
      assert.ok(reported.every((line) => /40[04]/.test(line)), String(reported));
      reported.length = 0;
    });
  },

  // A token that expires while one looks: the picture stays, and a new token continues where one was.
  async expiry() {
    const [program, access, long] = rest;
    const document = array([4, 9, 9], "uint16", [1, 9, 9]);
    const bearer = { Authorization: `Bearer ${long}` };
    await fetch(`${origin}/node/lab/a`, { method: "PUT", body: JSON.stringify(document), headers: { ...bearer, "Content-Type": "application/json" } });
    await fetch(`${origin}/array/lab/a`, { method: "PUT", body: Uint16Array.from({ length: 324 }, (_, at) => at * at), headers: { ...bearer, "Content-Type": "application/octet-stream" } });
    await browse(async (page, { reported }) => {
      await page.goto(`${origin}/browse/lab/a`);
      await page.getByLabel("Token", { exact: true }).waitFor();
      // Its time begins when the page is there.
      const short = execFileSync(program, ["token", "create", "--access", access, "--name", "short", "--allow", "read:/", "--expires", "20s"], { encoding: "utf8" }).trim();
      await page.getByLabel("Token", { exact: true }).fill(short);
      await page.keyboard.press("Enter");
      await page.waitForSelector("canvas.plot");
      await settled(page);
      const before = await screen(page);
      for (let turn = 0; turn < 120; turn++) {
        if ((await fetch(`${origin}/node/lab/a`, { headers: { Authorization: `Bearer ${short}` } })).status === 401) break;
        await page.waitForTimeout(500);
      }
      await page.getByRole("slider", { name: "dimension 0" }).fill("2");
      await page.getByText("The token is not accepted").waitFor();
      assert.ok((await screen(page)) === before, "the picture stays");
      await page.getByLabel("Token", { exact: true }).fill(long);
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => !document.querySelector("form.token"));
      await settled(page);
      const after = await screen(page);
      await page.reload();
      await settled(page);
      assert.ok((await screen(page)) === after && after !== before);
      assert.ok(reported.every((line) => /401/.test(line)), String(reported));
      reported.length = 0;
    });
  },

  // Every array opens without an error, and its table shows what `/array` says.
  async sample() {
    const paths = [];
    const walk = async (path) => {
      const { members = {} } = await json(`/node/${path}?limit=1000`);
      for (const [name, document] of Object.entries(members)) {
        const below = path ? `${path}/${name}` : name;
        if (document.shape) paths.push(below);
        else await walk(below);
      }
    };
    await walk("");
    assert.equal(paths.length, Number(rest[0]));
    let cells = 0;
    await browse(async (page) => {
      for (const path of paths) {
        await open(page, `/browse/${path}`);
        assert.equal(await page.locator("[role=alert]").count(), 0, path);
        await open(page, `/browse/${path}?view=table`);
        assert.equal(await page.locator("[role=alert]").count(), 0, path);
        const shown = await page.evaluate(() => [...document.querySelectorAll("table.elements tbody tr")].map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent)));
        const { shape } = await json(`/node/${path}`);
        if (shape.includes(0) || !shape.length) continue;
        const wide = shape.filter((length) => length > 1).length >= 2 ? shape.map((length) => length > 1) : shape.map(() => true);
        const kept = shape.map((_, at) => at).filter((at) => wide[at]).slice(-2);
        const select = shape.map((_, at) => (kept.includes(at) ? "0:50" : "0"));
        if (kept.length === 2) select[kept[1]] = "0:16";
        const told = await json(`/array/${path}?select=${select.join(",")}&format=json`);
        // The fields of structs are columns.
        const isStruct = kept.length < 2 && Array.isArray(told[0]) && shown[0].length > 1;
        const rows = kept.length === 2 || isStruct ? told : told.map((value) => [value]);
        assert.equal(shown.length, rows.length, path);
        rows.forEach((row, r) => row.forEach((value, c) => {
          const text = shown[r][c];
          const same = Array.isArray(value) ? cellOf(value, text) : typeof value === "number" ? Number(text) === value : text === String(value);
          assert.ok(same, `${path} ${r},${c}: ${text} is not ${JSON.stringify(value)}`);
          cells++;
        }));
      }
    });
    assert.ok(cells > 500, `${cells}`);
    console.log(`${paths.length} arrays, ${cells} cells`);
  },

  // The state is in the address: the same pixels after a reload, in another tab, and on the way back and forward.
  async state() {
    await climate();
    await browse(async (page, { context }) => {
      await open(page, "/browse/climate/t");
      await page.mouse.move(500, 400);
      await page.mouse.wheel(0, -400);
      await settled(page);
      await page.getByRole("slider", { name: "time" }).fill("3");
      await settled(page);
      const before = await screen(page);
      await page.reload();
      await settled(page);
      assert.ok((await screen(page)) === before, "reload");
      const other = await context.newPage();
      await open(other, page.url().slice(origin.length));
      assert.ok((await screen(other)) === before, "another tab");
      await other.close();
      await page.getByLabel("Map").selectOption("magma");
      await settled(page);
      const magma = await screen(page);
      assert.ok(magma !== before);
      await page.goBack();
      await settled(page);
      assert.ok((await screen(page)) === before, "back");
      await page.goForward();
      await settled(page);
      assert.ok((await screen(page)) === magma, "forward");
      // What was not written into the address yet is not written into another one.
      await page.locator("canvas.plot").focus();
      await page.keyboard.press("+");
      await page.waitForTimeout(150);
      const left = page.url();
      await page.goBack();
      await settled(page);
      assert.ok((await screen(page)) === before, `back: ${page.url()} from ${left}`);
      await page.goForward();
      await settled(page);
      // Limits that are given up are found again.
      const limits = () => page.getByLabel("From", { exact: true }).inputValue();
      const robust = await limits();
      await page.getByLabel("Limits").selectOption("full");
      await settled(page);
      assert.ok(Number(await limits()) < Number(robust), `${await limits()} ${robust}`);
      await page.getByLabel("Limits").selectOption("robust");
      await settled(page);
      assert.equal(await limits(), robust);
      // What is unknown or impossible is said, and the nearest view shown.
      await open(page, "/browse/climate/t?x=9&at=1,2&map=rainbow&box=1,0,0,1&%3Cb%3E=1&view=rgb");
      const note = await page.locator(".notice").innerText();
      for (const part of ["x=9", "at=1,2", "map=rainbow", "box=1,0,0,1", "<b>=1", "view=rgb"]) assert.ok(note.includes(part), note);
      assert.equal(await page.locator("canvas.plot").count(), 1);
    });
  },

  // Whatever an address asks for, a picture or a table is shown, and what cannot be is named.
  async broken() {
    await climate();
    await put("waves", Float32Array.from({ length: 1200 }, (_, at) => Math.sin(at)), [20, 30], "complex64", [20, 30], { fill: [0, 0] });
    await put("flags", Uint8Array.from({ length: 600 }, (_, at) => at % 2), [20, 30], "bool", [10, 10], { fill: false });
    await send("PUT", "/node/words", array([2, 2], "string", [2, 2], { fill: "" }));
    await send("PUT", "/node/scalar", array([], "float32", []));
    await send("PUT", "/node/empty", array([0, 30], "float32", [10, 10]));
    const big = String(2n ** 63n);
    const refused = {
      "climate/t": [`at=${big},0,0`, "at=-1,0,0", "at=6,0,0", "at=1.5,0,0", "at=,,", "box=0,0,0,0", `box=0,${big},0,1`, "box=0,NaN,0,1", "box=0,1", "range=1,0", "range=1,1", "range=NaN,1", "range=Infinity,1", "over=7", "over=0.5", "over=-1", "over=0,1,2,0", "by=median", "thin=mode", "pin=0,0", `pin=0,0,${big}`, "profile=none", "profile=3", "x=-1", `y=${big}`, "view=cube", "scale=sqrt", "part=none", "decode=yes", "lens=1", "follow=maybe", "limits=best", "outside=1", "%00=%00"],
      words: ["view=image", "view=line"],
      scalar: ["view=image", "x=0", "at=0"],
      flags: ["view=rgb"],
      empty: ["pin=0,-3", "at=1,1"],
    };
    const shown = {
      "climate/t": ["x=0&y=0", "x=none&y=none", "over=0,1,2", "over=1,2", "at=5,17,35&box=-1000,-900,-1000,-900", `box=${-(2 ** 52)},${2 ** 52},0,1`, "box=5,5.000001,5,5.000001", "range=-1e-320,1e-320", "range=-1e308,1e308", "scale=log&range=-2,-1", "scale=log&range=-2,5", "part=phase", "view=line&y=1&over=0", "view=table&over=0&box=1e6,1e7,1e6,1e7", "view=line&box=1e6,2e6,0,1"],
      waves: ["thin=max", "over=0&by=mean", "part=phase&scale=log", "view=line&over=0"],
      flags: ["thin=mean", "scale=log", "over=0&by=std", "limits=fixed&range=5,6"],
      words: ["over=0&by=mean", "thin=max&map=magma&decode=cf"],
      scalar: ["map=grey", "over="],
      empty: ["lens=on", "view=line", "view=table"],
    };
    // An address that the page follows without being loaded, as from the way back.
    const follow = async (page, path) => {
      await page.evaluate((path) => {
        history.pushState(null, "", path);
        dispatchEvent(new PopStateEvent("popstate"));
      }, path);
      await page.waitForTimeout(60);
      await page.waitForFunction(() => document.querySelector("[role=alert]") || document.querySelector(".cost")?.dataset.loading === "false");
    };
    await browse(async (page) => {
      await open(page, "/browse/climate/t?map=rainbow");
      const usable = async (view) => {
        assert.equal(await page.locator("[role=alert]").count(), 0, `${view}: ${await page.locator("[role=alert]").allInnerTexts()}`);
        const shown = page.locator("canvas.plot, .uplot, table.elements, .scalar, .main > .notice");
        await shown.first().waitFor();
        assert.equal(await shown.count(), 1, view);
      };
      for (const [path, queries] of Object.entries(refused))
        for (const query of queries) {
          await follow(page, `/browse/${path}?${query}`);
          await usable(query);
          const note = await page.locator(".notice").innerText();
          assert.ok(note.includes(query.replaceAll("%00", "⟨U+0000⟩")), `${query}: ${note}`);
        }
      for (const [path, queries] of Object.entries(shown))
        for (const query of queries) {
          await follow(page, `/browse/${path}?${query}`);
          await usable(`${path} ${query}`);
        }
    });
  },

  // Work beyond the limit of a server is refused with a part of which it would be done: one click away.
  async work() {
    await put("deep", Float32Array.from({ length: 64 * 256 * 256 }, (_, at) => at % 1009), [64, 256, 256], "float32", [64, 16, 16]);
    await browse(async (page, { reported }) => {
      await open(page, "/browse/deep");
      await page.getByRole("button", { name: "Exact statistics of all of it" }).click();
      await page.getByText("--max-work").waitFor();
      const offer = page.getByRole("button", { name: /^Of .* instead$/ });
      const select = (await offer.innerText()).replace(/^Of | instead$/g, "").replaceAll(" ", "");
      await offer.click();
      await page.getByText(`Of ${select.replaceAll(",", ", ")}.`).waitFor();
      const { count } = await json(`/array/deep?select=${select}&stats`);
      assert.ok(count > 0 && count < 256 * 256, String(count));
      const told = await page.locator(".exact .numbers").innerText();
      assert.ok(told.replace(/\s+/g, " ").includes(`count ${count.toLocaleString("en-US").replaceAll(",", " ")}`), told);
      assert.ok(reported.length && reported.every((line) => /413/.test(line)), String(reported));
      reported.length = 0;
    });
  },

  // Whatever a control changes is there after a reload, and what it was is there one step back.
  async controls() {
    await climate();
    await put("waves", Float32Array.from({ length: 1200 }, (_, at) => Math.sin(at)), [20, 30], "complex64", [20, 30], { fill: [0, 0] });
    await put("packed", Int16Array.from({ length: 600 }, (_, at) => (at % 9 ? at : -1)), [20, 30], "int16", [10, 10], { attributes: { _FillValue: -1, scale_factor: 0.5 } });
    const choose = (label, value) => (page) => page.getByRole("combobox", { name: label, exact: true }).selectOption(value);
    const press = (name) => (page) => page.getByRole("button", { name, exact: true }).click();
    const check = (name) => (page) => page.getByLabel(name, { exact: true }).click();
    const actions = {
      "climate/t": [
        choose("Map", "cividis"), choose("Scale", "symlog"), choose("Limits", "full"), choose("Where elements share a pixel", "max"), check("Mark what is outside"), check("Chunks"), check("Follow"),
        (page) => page.getByLabel("To", { exact: true }).fill("7.5").then(() => page.keyboard.press("Enter")), press("Zoom in"), choose("Across", "0"), choose("Down", "0"), press("Line"), press("Table"),
        choose("One index of time, or a function over all", "mean"), choose("One index of time, or a function over all", "std"), (page) => page.getByRole("slider", { name: "time" }).fill("4"),
        (page) => page.locator("canvas.plot").click({ position: { x: 300, y: 100 } }),
      ],
      "climate/t?pin=1,2,3": [choose("Profile along", "1"), press("Unpin")],
      waves: [choose("Part", "phase"), choose("Part", "imaginary")],
      packed: [choose("Values", "none")],
    };
    await browse(async (page) => {
      for (const [path, changes] of Object.entries(actions))
        for (const [number, change] of changes.entries()) {
          await open(page, `/browse/${path}`);
          const start = await snapshot(page);
          await change(page);
          await settled(page);
          const changed = await snapshot(page);
          assert.notDeepEqual(changed, start, `${path} ${number} changes nothing`);
          await page.mouse.move(0, 0);
          await page.reload();
          await settled(page);
          await page.waitForFunction((text) => (document.querySelector(".probe .value")?.textContent ?? "") === text, changed.element);
          assert.deepEqual(await snapshot(page), changed, `${path} ${number}: ${page.url()}`);
          await page.goBack();
          await settled(page);
          await page.waitForFunction((text) => (document.querySelector(".probe .value")?.textContent ?? "") === text, start.element);
          assert.deepEqual(await snapshot(page), start, `${path} ${number}, back: ${page.url()}`);
        }
    });
  },

  // Requests for what is no longer seen are aborted, and never shown.
  async abort() {
    await climate();
    await browse(async (page) => {
      await open(page, "/browse/climate/t");
      const slider = page.getByRole("slider", { name: "time" });
      const failed = page.waitForEvent("requestfailed");
      let release;
      const released = new Promise((resolve) => (release = resolve));
      await page.route(/select=3,/, async (route) => (await released, route.continue().catch(() => {})));
      const [asked] = await Promise.all([page.waitForRequest(/select=3,/), slider.fill("3")]);
      await slider.fill("5");
      const ended = await failed;
      assert.deepEqual([ended.url(), ended.failure().errorText], [asked.url(), "net::ERR_ABORTED"]);
      release();
      await settled(page);
      const shown = await screen(page);
      await page.reload();
      await settled(page);
      assert.ok((await screen(page)) === shown);
    });
  },

  // What is exported is what is shown: its selection, decoded or reduced as it is, and its pixels.
  async exports() {
    await climate();
    await put("packed", Int16Array.from({ length: 600 }, (_, at) => (at % 9 ? at : -1)), [20, 30], "int16", [10, 10], { attributes: { _FillValue: -1, scale_factor: 0.5 } });
    const cases = [
      ["climate/t?at=2,0,0&box=3,9,2,7", "select=2,2:7,3:9"],
      ["climate/t?over=0&by=std", "reduce=nanstd&axis=time"],
      ["climate/t?view=line&y=none&at=2,5,0", "select=2,5,:"],
      ["packed", "decode=cf"],
      ["packed?decode=none", ""],
    ];
    await browse(async (page) => {
      for (const [view, query] of cases) {
        await open(page, `/browse/${view}`);
        await page.getByText("Export what is shown").click();
        const path = view.split("?")[0];
        for (const format of ["npy", "csv"]) {
          const told = Buffer.from(await (await fetch(`${origin}/array/${path}?${query}&format=${format}`)).arrayBuffer());
          assert.ok((await exported(page, format)).equals(told), `${view} ${format}`);
        }
        if (view.includes("line")) continue;
        const url = `data:image/png;base64,${(await exported(page, "PNG as seen")).toString("base64")}`;
        assert.ok((await screen(page)) === url, view);
      }
    });
  },

  // Elements, labels and directions are those of the array and of its coordinates.
  async probe() {
    await climate();
    await browse(async (page) => {
      for (const name of ["t", "rising"]) {
        await open(page, `/browse/climate/${name}?at=2,0,0`);
        const values = await json(`/array/climate/${name}?select=2`);
        const { latitude, longitude } = await page.evaluate(() => ({ latitude: [], longitude: [] }));
        assert.deepEqual([latitude, longitude], [[], []]);
        for (const [row, column] of [[0, 0], [17, 35], [9, 20]]) {
          const point = await page.evaluate(([row, column]) => {
            const canvas = document.querySelector("canvas.plot");
            const [x0, x1, y0, y1] = canvas.dataset.box.split(",").map(Number);
            const box = canvas.getBoundingClientRect();
            const down = (row + 0.5 - y0) / (y1 - y0);
            return [box.left + ((column + 0.5 - x0) / (x1 - x0)) * box.width, box.top + (canvas.dataset.flip ? 1 - down : down) * box.height];
          }, [row, column]);
          await page.mouse.move(...point);
          const panel = page.getByRole("region", { name: "Element" });
          await page.waitForFunction((row) => document.querySelector(".probe dd:nth-child(2)")?.textContent !== "" && document.querySelectorAll(".probe .numbers dd")[1]?.textContent.startsWith(String(row)), row);
          const value = values[row][column];
          assert.equal(await panel.locator(".value bdi").first().innerText(), String(value));
          const labels = await panel.locator(".numbers dd").allInnerTexts();
          const latitudes = await json(`/array/climate/${name === "t" ? "lat" : "up"}`);
          assert.ok(labels[0].includes("2021-01-03"), labels[0]);
          assert.ok(labels[1].includes(String(latitudes[row]).replace("-", "−")), labels[1]);
        }
        // North is on top, in whichever order latitudes are stored.
        const flip = await page.locator("canvas.plot").getAttribute("data-flip");
        assert.equal(flip, name === "t" ? null : "1");
      }
      // A click pins an element, and shows its profile.
      await page.locator("canvas.plot").click();
      await page.waitForSelector(".probe .chart canvas");
      assert.ok(page.url().includes("pin="));
    });
  },

  // Of an array that nobody can read as a whole, a window opens soon, in tiles of whole chunks, none of them large.
  async huge() {
    await send("PUT", "/node/sparse", array([1_000_000, 1_000_000], "float32", [1000, 1000], { fill: "NaN" }));
    await send("PUT", "/node/long", array([1_000_000, 3000], "float32", [500, 1000], { fill: 0 }));
    const block = Float32Array.from({ length: 2000 * 3000 }, (_, at) => Math.sin(at / 5000));
    await send("PUT", "/array/long?select=0:2000,:", block, "application/octet-stream");
    await browse(async (page, { answers }) => {
      for (const [name, chunks] of [["sparse", [1000, 1000]], ["long", [500, 1000]]]) {
        answers.length = 0;
        await open(page, `/browse/${name}`);
        assert.equal(await page.locator("[role=alert]").count(), 0);
        assert.match(await page.locator(".cost").innerText(), /first window/);
        // The plan shows where anything is stored, and leads there.
        await page.locator(".map canvas").waitFor();
        if (name === "long") assert.match(await page.locator(".lens").innerText(), /12 of 6.000 chunks stored, 5.988 missing/);
        const tiles = answers.filter(({ url }) => url.includes("/array/")).map(({ url }) => new URL(url).searchParams.get("select"));
        assert.ok(tiles.length > 0);
        for (const select of tiles)
          select.split(",").forEach((item, at) => {
            const [from, to] = item.split(":").map(Number);
            assert.equal(from % chunks[at], 0, select);
            assert.ok(to % chunks[at] === 0 || to === 3000, select);
          });
        // Further out it asks before it reads.
        for (let turn = 0; turn < 30; turn++) await page.getByRole("button", { name: "Zoom out" }).click();
        await page.getByRole("button", { name: "Show a window instead" }).click();
        await settled(page);
        assert.equal(await page.getByRole("button", { name: "Read it all" }).count(), 0);
        for (const { url, size } of answers) assert.ok(size <= 4 << 20, `${url}: ${size}`);
      }
      const heap = await page.evaluate(() => performance.memory.usedJSHeapSize);
      assert.ok(heap < 150 << 20, `${heap}`);
    });
  },

  // Of 12 GB of stored elements a window opens, with what it took; moved far, the page keeps a bounded part of it.
  async dense() {
    const chunks = [500, 1000];
    await browse(async (page, { answers, context }) => {
      await open(page, "/browse/dense");
      assert.match(await page.locator(".cost").innerText(), /^\d+ chunks, \d+(\.\d)? MiB, \d.* first window/);
      await page.locator(".map canvas").waitFor();
      assert.match(await page.locator(".lens").innerText(), /6.000 chunks, all stored/);
      const tools = await context.newCDPSession(page);
      const move = (at) => page.evaluate((at) => {
        history.pushState(null, "", `?limits=fixed&range=-1,1&box=0,1200,${at},${at + 800}`);
        dispatchEvent(new PopStateEvent("popstate"));
      }, at);
      const opaque = () => page.evaluate(() => {
        const canvas = document.querySelector("canvas.plot");
        return canvas.getContext("2d").getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data[3];
      });
      // Each step shows some 8 MiB of elements and their pixels that were not there before.
      for (let step = 0; step < 40; step++) {
        await move(1500 + 20_000 * step);
        await page.waitForFunction((at) => document.querySelector("canvas.plot").dataset.box.split(",")[2] === String(at) && document.querySelector(".cost").dataset.loading === "false", 1500 + 20_000 * step);
      }
      await settled(page);
      assert.equal(await opaque(), 255);
      await tools.send("HeapProfiler.collectGarbage");
      const { usedSize, backingStorageSize } = await tools.send("Runtime.getHeapUsage");
      console.log(`${Math.round(usedSize / 2 ** 20)} MiB in objects, ${Math.round(backingStorageSize / 2 ** 20)} MiB in buffers`);
      // Pixels are as large as the elements, and not counted: half of the limit is theirs.
      assert.ok(usedSize + backingStorageSize <= 75 << 20, `${usedSize} ${backingStorageSize}`);
      // What was seen last is at hand; what was seen first is read again.
      const asked = () => answers.filter(({ url }) => url.includes("format=raw")).length;
      const before = asked();
      await move(1500 + 20_000 * 38);
      await settled(page);
      assert.equal(asked(), before);
      await move(1500);
      await settled(page);
      assert.ok(asked() > before);
      for (const { url, size } of answers) {
        assert.ok(size <= 4 << 20, `${url}: ${size}`);
        const select = new URL(url).searchParams.get("select");
        if (!url.includes("format=raw")) continue;
        select.split(",").forEach((item, at) => {
          const [from, to] = item.split(":").map(Number);
          // Tiles are of whole chunks, or of halves of one.
          for (const edge of [from, to]) assert.ok(edge % chunks[at] === 0 || (to - from === chunks[at] / 2 && edge % (chunks[at] / 2) === 0), select);
        });
      }
    });
  },

  // Names, attributes and values of strangers are text.
  async hostile() {
    const names = ["<img src=x onerror=alert(1)>", "\u202egnp.exe", "🙂 é", "a#b?c&d=%41", "{{script}}", "'\"`${1}", "javascript:alert(1)"];
    await send("PUT", "/node/", { zarr_format: 3, node_type: "group", attributes: { title: "<script>alert(1)</script>", "<b>": { "</script>": ["<i>", null, 1e400] } } });
    for (const name of names) {
      const document = array([3, 2], "string", [3, 2], { names: [name, "</td>"], attributes: { units: name, long_name: `<b>${name}` }, fill: "" });
      await send("PUT", `/node/${encodeURIComponent(name)}`, document);
      await send("PUT", `/array/${encodeURIComponent(name)}`, [[name, "<script>alert(1)</script>"], ["\u0000\n\u2066", "🙂"], ["", "&amp;"]]);
    }
    await browse(async (page, { reported }) => {
      await page.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective}`)));
      for (const path of ["", ...names.map(encodeURIComponent)]) {
        await open(page, `/browse/${path}`);
        for (const title of await page.locator("summary").all()) await title.click();
        await settled(page);
        assert.equal(await page.evaluate(() => document.querySelectorAll("main script, main img, main i, main b").length), 0);
        // Characters that change the direction of text, or cannot be seen, are shown as what they are.
        const shown = await page.evaluate(() => [document.title, ...[...document.querySelectorAll("main h1, main dt, main th, main td, .path li, .row .label")].map((element) => element.textContent)].join(" "));
        assert.doesNotMatch(shown, /[\u0000-\u0008\u202a-\u202e\u2066-\u2069]/, path);
        assert.ok(shown.includes("⟨U+202E⟩"), path);
      }
      assert.deepEqual(reported, []);
      // The policy is in force: a script of a string would be reported.
      await page.evaluate(() => { try { document.body.innerHTML = "<img src=https://example.org/x>"; } catch {} });
      assert.ok(reported.some((text) => /policy|TrustedHTML/.test(text)), String(reported));
      reported.length = 0;
    });
  },

  // A keyboard suffices; axe finds nothing; 390 px are enough.
  async access() {
    await climate();
    await put("packed", Int16Array.from({ length: 600 }, (_, at) => (at % 9 ? at : -1)), [20, 30], "int16", [10, 10], { attributes: { _FillValue: -1, scale_factor: 0.5 } });
    const multiscales = [{ axes: ["z", "y", "x"].map((name) => ({ name, type: "space", unit: "micrometer" })), datasets: [{ path: "0", coordinateTransformations: [{ type: "scale", scale: [1, 0.5, 0.25] }] }] }];
    await send("PUT", "/node/words", array([2], "string", [2], { fill: "", attributes: { ome: { version: "0.5", multiscales, omero: { channels: [{ label: "DAPI", window: { start: 0, end: 4000 } }] } } } }));
    await put("kinds", Uint8Array.of(0, 1, 4, 1, 0, 4), [2, 3], "uint8", [2, 3], { attributes: { flag_values: [0, 1, 4], flag_meanings: "ocean land ice" } });
    await browse(async (page, { reported }) => {
      for (const path of ["/", "/browse/climate", "/browse/climate/t?pin=1,2,3&lens=on", "/browse/climate/time", "/browse/climate/t?view=table", "/browse/climate/t?view=line", "/browse/packed?decode=none&lens=on&outside=mark", "/browse/words", "/browse/kinds?pin=1,1&outside=mark", "/browse/none"]) {
        await page.goto(origin + path);
        if (path.endsWith("none")) await page.waitForSelector("[role=alert]");
        else await settled(page);
        await page.evaluate(() => document.querySelectorAll("details").forEach((section) => (section.open = true)));
        for (const [colorScheme, width] of [["light", 1280], ["dark", 390]]) {
          await page.emulateMedia({ colorScheme });
          await page.setViewportSize({ width, height: 844 });
          await page.waitForTimeout(300);
          const { violations } = await page.evaluate(`${axe}; axe.run()`);
          const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")}`);
          assert.deepEqual(found, [], `${path} ${colorScheme} ${width}: ${found.join("\n")}`);
          assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${path} ${width}`);
        }
      }
      // Chromium reports the answer about the node that is not there.
      assert.ok(reported.every((text) => /404/.test(text)), String(reported));
      reported.length = 0;
    });
    await browse(async (page) => {
      await open(page, "/");
      const tabTo = async (selector) => {
        for (let turn = 0; turn < 60; turn++) {
          await page.keyboard.press("Tab");
          if (await page.evaluate((selector) => document.activeElement.matches(selector), selector)) return;
        }
        assert.fail(`no way to ${selector}`);
      };
      // Where the hierarchy covers the page, Escape closes it.
      await page.setViewportSize({ width: 390, height: 844 });
      await tabTo(".menu");
      await page.keyboard.press("Enter");
      await page.locator(".tree").waitFor();
      await page.keyboard.press("Escape");
      await page.locator(".tree").waitFor({ state: "hidden" });
      await page.setViewportSize({ width: 1280, height: 900 });
      await tabTo("[role=tree]");
      for (const key of ["Home", "ArrowRight", "ArrowDown", "End", "ArrowUp", "ArrowUp", "Home"]) await page.keyboard.press(key), await page.waitForTimeout(150);
      const row = async () => page.evaluate(() => document.getElementById(document.activeElement.getAttribute("aria-activedescendant"))?.innerText ?? "");
      for (let turn = 0; turn < 20 && !/^t\s/.test((await row()).replace(/^[▾▸\s]*/, "")); turn++) await page.keyboard.press("ArrowDown"), await page.waitForTimeout(60);
      await page.keyboard.press("Enter");
      await settled(page);
      assert.match(page.url(), /browse\/climate\/t/);
      await tabTo("canvas.plot");
      const before = await screen(page);
      await page.keyboard.press("+");
      await page.keyboard.press("ArrowRight");
      await settled(page);
      assert.ok((await screen(page)) !== before);
      await page.keyboard.press("Enter");
      await page.waitForSelector(".probe .chart");
    });
  },

  // 100,000 members have a bounded number of elements on the page.
  async members() {
    const group = { zarr_format: 3, node_type: "group" };
    const names = Array.from({ length: 100_000 }, (_, at) => `n${String(at).padStart(6, "0")}`);
    // One document has at most as many nodes, the group among them.
    await send("PUT", "/node/big", { ...group, members: Object.fromEntries(names.slice(1).map((name) => [name, group])) });
    await send("PUT", `/node/big/${names[0]}`, group);
    await browse(async (page) => {
      await open(page, "/browse/big");
      const count = () => page.evaluate(() => document.querySelectorAll("*").length);
      const start = await count();
      assert.ok(start < 1500, `${start}`);
      await page.evaluate(() => document.querySelector("[role=tree]").focus());
      const twist = page.locator(".row", { hasText: "big" }).locator(".twist");
      await twist.click();
      const height = () => page.evaluate(() => document.querySelector(".rows").scrollHeight);
      const slowest = await page.evaluate(async () => {
        const rows = document.querySelector(".rows");
        let slowest = 0;
        // A browser and a server without optimizations on a busy machine are slow; the number of elements is not.
        const deadline = performance.now() + 600_000;
        while (rows.scrollHeight < 100_000 * 30 && performance.now() < deadline) {
          rows.scrollTop = rows.scrollHeight;
          const started = performance.now();
          await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
          slowest = Math.max(slowest, performance.now() - started);
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        return slowest;
      });
      assert.ok((await height()) >= 100_000 * 30, `${await height()}`);
      assert.ok((await count()) < 1500, `${await count()}`);
      await page.getByRole("searchbox").fill("n099999");
      await page.waitForFunction(() => /^1 |^2 |^3 /.test(document.querySelector(".total").textContent));
      assert.ok(await page.locator(".row", { hasText: "n099999" }).count());
      console.log(`${start} elements, ${Math.round(slowest)} ms for the slowest step`);
    });
  },

  // What is appended is shown while following, and exports are the bytes of `/array`.
  async follow() {
    await send("PUT", "/node/log", array([10], "float64", [10]));
    await send("PUT", "/array/log", Float64Array.from({ length: 10 }, (_, at) => at), "application/octet-stream");
    await browse(async (page) => {
      await open(page, "/browse/log?follow=on");
      await page.waitForTimeout(2000);
      await send("POST", "/array/log?append=0", Float64Array.of(7, 8, 9), "application/octet-stream");
      const started = Date.now();
      await page.waitForFunction(() => document.querySelector(".facts").textContent.includes("13"));
      await settled(page);
      console.log(`shown after ${Date.now() - started} ms`);
      assert.ok(Date.now() - started < 4000);
      // Other programs let an array grow first, and write afterwards; and they write again.
      const last = () => page.locator(".elements tbody tr").last().innerText();
      await open(page, "/browse/log?follow=on&view=table");
      await page.waitForTimeout(1800);
      const document = await json("/node/log");
      await send("PUT", "/store/log/zarr.json", { ...document, shape: [16] });
      await page.waitForFunction(() => document.querySelectorAll(".elements tbody tr").length === 16);
      assert.match(await last(), /^15\s+0/);
      for (const value of [4, 5]) {
        await send("PUT", "/array/log?select=15:16", Float64Array.of(value), "application/octet-stream");
        await page.waitForFunction((text) => document.querySelector(".elements tbody tr:last-child td").textContent === text, String(value), { timeout: 4000 });
      }
      await open(page, "/browse/log?follow=on");
      await page.getByText("Export what is shown").click();
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "npy" }).click()]);
      const saved = await readFile(await download.path());
      const told = Buffer.from(await (await fetch(`${origin}/array/log?format=npy`)).arrayBuffer());
      assert.ok(saved.equals(told));
    });
  },

  // A token is asked for once, kept in the tab, and sent with requests alone; a share link needs none.
  async token() {
    const [token, link] = rest;
    const bearer = { Authorization: `Bearer ${token}` };
    const document = array([4, 4], "uint8", [4, 4]);
    const made = await fetch(`${origin}/node/lab/a`, { method: "PUT", body: JSON.stringify(document), headers: { ...bearer, "Content-Type": "application/json" } });
    assert.ok(made.ok, await made.text());
    await browse(async (page, { reported, context }) => {
      await page.goto(`${origin}/browse/lab/a`);
      await page.getByLabel("Token", { exact: true }).waitFor();
      // What is refused for want of a token while one is given is asked for again, with that token.
      const [refused, given] = [gate(), gate()];
      await page.route(/node\/lab\/a\?/, (route) => refused.opened.then(() => route.continue()));
      await page.route(/list=dir/, (route) => given.opened.then(() => route.continue()));
      await page.getByLabel("Token", { exact: true }).fill("wrong");
      await page.keyboard.press("Enter");
      await page.getByText("The token is not accepted").waitFor();
      const listed = page.waitForRequest(/store\/lab\/a\/\?list=dir/);
      refused.open();
      await listed;
      await page.getByLabel("Token", { exact: true }).fill(token);
      await page.keyboard.press("Enter");
      given.open();
      await page.waitForSelector("canvas.plot");
      assert.equal(await page.locator("form.token").count(), 0);
      await settled(page);
      assert.equal(await page.locator("[role=alert]").count(), 0);
      assert.ok(!page.url().includes(token));
      await page.reload();
      await settled(page);
      assert.equal(await page.locator("canvas.plot").count(), 1);
      await page.getByText("Export what is shown").click();
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "npy" }).click()]);
      assert.ok((await readFile(await download.path())).subarray(1, 6).equals(Buffer.from("NUMPY")));
      // A 401 of a script opens no dialog; Chromium only reports it.
      assert.ok(reported.length > 0 && reported.every((text) => /401/.test(text)), String(reported));
      reported.length = 0;
      // Another tab has none, and so has this one in another session.
      const other = await context.newPage();
      await other.goto(`${origin}/browse/lab/a`);
      await other.getByLabel("Token", { exact: true }).waitFor();
      await other.close();
      const { cookies, origins } = await context.storageState({ indexedDB: true });
      assert.deepEqual([cookies, origins], [[], []]);
      const shared = await context.newPage();
      await shared.goto(`${origin}${link}/browse/lab/a`);
      await settled(shared);
      assert.equal(await shared.locator("canvas.plot").count(), 1);
      assert.match(await shared.locator(".path a").first().getAttribute("href"), new RegExp(`^${link}/browse/`));
      await shared.close();
    });
  },

  // A visitor sees what everybody may read, and is asked for a token only where one is needed.
  async visitor() {
    const [token] = rest;
    const bearer = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    for (const path of ["public/a", "public/deep/b", "hidden/c"]) {
      const made = await fetch(`${origin}/node/${path}`, { method: "PUT", body: JSON.stringify(array([4, 4], "uint8", [4, 4])), headers: bearer });
      assert.ok(made.ok, await made.text());
    }
    await browse(async (page, { reported }) => {
      await page.goto(`${origin}/browse/`);
      await page.getByText("The rest needs a token").waitFor();
      assert.deepEqual(await page.locator("[aria-label=Groups] li").allInnerTexts(), ["public"]);
      await page.locator("[role=treeitem]", { hasText: "public" }).waitFor();
      assert.equal(await page.locator("form.token").count(), 0);
      await page.locator("[aria-label=Groups] a", { hasText: "public" }).click();
      await page.getByRole("link", { name: "a", exact: true }).first().click();
      await page.waitForSelector("canvas.plot");
      await settled(page);
      assert.equal(await page.locator("form.token").count(), 0);
      await page.goto(`${origin}/browse/hidden/c`);
      await page.getByText("This needs a token").waitFor();
      await page.goto(`${origin}/browse/`);
      await page.getByRole("button", { name: "Enter a token" }).click();
      await page.getByLabel("Token", { exact: true }).fill(token);
      await page.keyboard.press("Enter");
      await page.locator("[aria-label=Groups] li", { hasText: "hidden" }).waitFor();
      assert.ok(reported.every((text) => /401/.test(text)), String(reported));
      reported.length = 0;
    });
  },

  // A filter searches groups that have not been opened, a number of them at a time.
  async filter() {
    const group = (members) => ({ zarr_format: 3, node_type: "group", members });
    const numbered = (letter, count, member) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`${letter}${String(at).padStart(3, "0")}`, member]));
    await send("PUT", "/node/big", group(numbered("g", 250, group(numbered("a", 20, array([4], "uint8", [4]))))));
    await browse(async (page) => {
      await open(page, "/browse/");
      const filter = page.getByLabel("Filter names");
      const total = page.locator(".tree [role=status]");
      const found = (text) => page.waitForFunction((text) => document.querySelector(".tree [role=status]").textContent === text, text, { timeout: 120_000 });
      await filter.fill("A007");
      await found("199 found");
      await page.getByRole("button", { name: "51 groups were not searched. Search on" }).click();
      await found("250 found");
      assert.equal(await page.getByRole("button", { name: /not searched/ }).count(), 0);
      const shown = await page.locator(".tree .row").allInnerTexts();
      assert.match(shown.slice(0, 3).join(" "), /big.*g000.*a007/s);
      await page.locator(".tree .row", { hasText: "a007" }).first().click();
      await page.waitForURL(/browse\/big\/g000\/a007/);
      await filter.fill("no such name");
      await found("0 found");
      await filter.fill("");
      assert.equal(await total.textContent(), "");
    });
  },

  // An empty server says how to fill it, with its own address.
  async nothing() {
    await browse(async (page) => {
      await open(page, "/browse/");
      await page.getByText("This store is empty. Put data in").waitFor();
      const texts = await page.locator(".program code").allInnerTexts();
      assert.equal(texts.filter((text) => text.includes(origin)).length, 3);
      execFileSync("sh", ["-c", texts.find((text) => text.startsWith("curl"))], { stdio: "ignore" });
      await page.reload();
      await page.getByRole("link", { name: "first", exact: true }).first().click();
      await page.waitForSelector("canvas.plot");
    });
    assert.deepEqual(await json("/array/first"), [[1, 2, 3], [4, 5, 6]]);
  },

  // An image whose level is in a group, as ngff-zarr writes them. Of a hundred channels without windows some are shown, and of the wells of a large plate; the page says that there are more.
  async manyMembers() {
    const axes = [{ name: "c", type: "channel" }, { name: "y", type: "space" }, { name: "x", type: "space" }];
    const ome = { version: "0.5", multiscales: [{ axes, datasets: [{ path: "scale0/image" }] }], omero: { channels: Array.from({ length: 100 }, () => ({})) } };
    await send("PUT", "/node/many", { zarr_format: 3, node_type: "group", attributes: { ome } });
    await put("many/scale0/image", Uint16Array.from({ length: 400 }, (_, at) => at % 4), [100, 2, 2], "uint16", [100, 2, 2]);
    const wells = Array.from({ length: 20_000 }, (_, at) => ({ path: `${"ABCD"[at % 4]}/${at >> 2}`, rowIndex: at % 4, columnIndex: at >> 2 }));
    const members = Object.fromEntries([..."ABCD"].map((row) => [row, { zarr_format: 3, node_type: "group" }]));
    await send("PUT", "/node/plate", { zarr_format: 3, node_type: "group", attributes: { ome: { version: "0.5", plate: { wells } } }, members });
    await browse(async (page) => {
      await open(page, "/browse/many");
      await page.waitForFunction(() => document.querySelector(".preview canvas")?.width === 2);
      assert.equal(await page.locator(".preview input").count(), 32);
      await page.getByText("and 68 more channels").waitFor();
      await open(page, "/browse/plate");
      await page.getByRole("list", { name: "Groups" }).getByText("D", { exact: true }).waitFor();
      await page.getByText(/and 19.800 more/).waitFor();
      await page.getByRole("heading", { name: "plate" }).waitFor();
    });
  },

  // The channels of an image in their colours, of which each can be left out.
  async channels() {
    const axes = [{ name: "c", type: "channel" }, { name: "y", type: "space" }, { name: "x", type: "space" }];
    const window = { start: 0, end: 200 };
    const channels = [{ label: "DAPI", color: "0000FF", window, active: true }, { label: "GFP", color: "00FF00", window, active: true }, { label: "off", color: "FF0000", window, active: false }];
    const ome = { version: "0.5", multiscales: [{ axes, datasets: [{ path: "0" }] }], omero: { channels } };
    await send("PUT", "/node/cells", { zarr_format: 3, node_type: "group", attributes: { ome } });
    await put("cells/0", Uint16Array.of(200, 0, 0, 100, 0, 200, 0, 200, 200, 200, 200, 200), [3, 2, 2], "uint16", [3, 2, 2]);
    await browse(async (page, { reported }) => {
      await open(page, "/browse/cells");
      const drawn = (pixel) =>
        page.waitForFunction((pixel) => {
          const canvas = document.querySelector(".preview canvas");
          return canvas?.width === 2 && String([...canvas.getContext("2d").getImageData(1, 1, 1, 1).data]) === pixel;
        }, pixel);
      await drawn("0,255,128,255");
      await page.getByLabel("GFP").uncheck();
      await drawn("0,0,128,255");
      await page.getByLabel("off").check();
      await drawn("255,0,128,255");
      for (const name of ["napari", "vizarr", "neuroglancer"]) await page.locator(`pre[aria-label=${name}]`).waitFor({ state: "attached" });
      // The check itself reads pixels again and again.
      assert.ok(reported.every((line) => /willReadFrequently/.test(line)), String(reported));
      reported.length = 0;
    });
  },

  // The programs of "Use it" and of "Export", as JSON, for others to run.
  async snippets() {
    await climate();
    const odd = "o'dd \"name\" é #1?";
    await put(encodeURIComponent(odd), Uint8Array.of(1, 2, 3), [3], "uint8", [3], {});
    await send("PUT", "/node/old", { zarr_format: 2, shape: [4], chunks: [2], dtype: "<i4", compressor: null, fill_value: 0, order: "C", filters: null });
    await send("PUT", "/array/old", Int32Array.of(1, 2, 3, 4), "application/octet-stream");
    const found = [];
    await browse(async (page) => {
      for (const path of ["climate", "climate/t", encodeURIComponent(odd), "old"]) {
        await open(page, `/browse/${path}`);
        await page.evaluate(() => document.querySelectorAll("details").forEach((section) => (section.open = true)));
        const programs = await page.evaluate(() => [...document.querySelectorAll(".program")].map((program) => ({ name: program.querySelector("figcaption").firstChild.textContent.trim(), text: program.querySelector("code").textContent })));
        found.push(...programs.filter(({ name }) => !/^(URL|Address|zarr\.json|\.z|as )/.test(name)).map((program) => ({ path, ...program })));
      }
    });
    console.log(JSON.stringify(found));
  },

  // Behind a proxy that serves the server below a path, all URLs are below it.
  async prefix() {
    const [base] = rest;
    await fetch(`${origin}${base}/node/a`, { method: "PUT", body: JSON.stringify(array([4, 4], "uint8", [4, 4])), headers: { "Content-Type": "application/json" } });
    await browse(async (page, { answers }) => {
      await open(page, `${base}/browse/a`);
      assert.equal(await page.locator("canvas.plot").count(), 1);
      await page.waitForTimeout(300);
      for (const { url } of answers) assert.ok(url.startsWith(`${origin}${base}/`), url);
      await page.locator(".mark").click();
      await settled(page);
      assert.ok(page.url().startsWith(`${origin}${base}/browse`));
    });
  },
};

// A cell of several parts: a complex number, or the fields of a struct.
function cellOf(value, text) {
  const numbers = text.replace(/\p{L}\w*: /gu, "").replace(/−/g, "-").replace(/\+ /g, "").replace(/- /g, "-").replace(/i$/, "").split(/,? /).map(Number);
  return value.every((part, at) => numbers[at] === Number(part)) || text === value.join(", ");
}

// A group with coordinates: latitudes from north to south, and from south to north.
async function climate() {
  const [T, Y, X] = [6, 18, 36];
  const lat = (rises) => Float32Array.from({ length: Y }, (_, at) => (rises ? -85 : 85) + (rises ? 10 : -10) * at);
  await send("PUT", "/node/climate", { zarr_format: 3, node_type: "group", attributes: { Conventions: "CF-1.8" } });
  await put("climate/lat", lat(false), [Y], "float32", [Y], { names: ["lat"], attributes: { units: "degrees_north" } });
  await put("climate/up", lat(true), [Y], "float32", [Y], { names: ["up"], attributes: { units: "degrees_north" } });
  await put("climate/lon", Float32Array.from({ length: X }, (_, at) => at * 10), [X], "float32", [X], { names: ["lon"], attributes: { units: "degrees_east" } });
  await put("climate/time", Float64Array.from({ length: T }, (_, at) => at * 24), [T], "float64", [T], { names: ["time"], attributes: { units: "hours since 2021-01-01" } });
  const values = Float64Array.from({ length: T * Y * X }, (_, at) => Math.round(1e4 * Math.sin(at / 50)) / 1e3);
  await put("climate/t", values, [T, Y, X], "float64", [2, 9, 18], { names: ["time", "lat", "lon"], attributes: { units: "K" } });
  await put("climate/rising", values, [T, Y, X], "float64", [2, 9, 18], { names: ["time", "up", "lon"] });
}

await checks[check]();
