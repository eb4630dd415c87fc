// Opens a page in Chromium that reads with zarrita from a server of another origin:
// read_in_browser.mjs URL DIR PAGE PROFILE
//
// PAGE is the text of the page; the packages are served next to it without a bundler. DIR contains the expected elements.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";

const [url, directory, page, profile] = process.argv.slice(2);
const shapes = { image: [60, 80], "deep/relief": [60, 80], "deep/counts": [7, 8, 9], unwritten: [10, 20], sharded: [64, 64] };
const paths = ["v2.zarr", "v3.zarr"].flatMap((root) =>
  Object.keys(shapes).filter((name) => root === "v3.zarr" || name !== "sharded").map((name) => `${root}/${name}`));
const imports = { zarrita: "/node_modules/zarrita/dist/src/index.js", "@zarrita/storage/fetch": "/node_modules/@zarrita/storage/dist/src/fetch.js" };
for (const codec of ["blosc", "gzip", "lz4", "zlib", "zstd"]) imports[`numcodecs/${codec}`] = `/node_modules/numcodecs/dist/${codec}.js`;
const text = (await readFile(page, "utf8"))
  .replace("IMPORTS", JSON.stringify(imports)).replace("SERVER", url).replace("PATHS", JSON.stringify(paths));

const types = { ".js": "text/javascript", ".wasm": "application/wasm" };
let report;
const reported = new Promise((resolve) => { report = resolve; });
const server = createServer(async (request, response) => {
  if (request.url === "/") return response.setHeader("Content-Type", "text/html").end(text);
  if (request.url === "/result") {
    const parts = [];
    for await (const part of request) parts.push(part);
    report(Buffer.concat(parts).toString());
    return response.end();
  }
  try {
    const file = await readFile(new URL(`.${request.url}`, import.meta.url));
    response.setHeader("Content-Type", types[extname(request.url)] ?? "application/octet-stream").end(file);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${server.address().port}`;
assert.notEqual(origin, url);

const options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server", `--user-data-dir=${profile}`];
const chromium = spawn("chromium", [...options, `${origin}/`], { stdio: "ignore" });
const ended = new Promise((resolve) => chromium.on("exit", resolve));
const shown = await Promise.race([reported, ended.then((code) => `{"failed": "Chromium ended with ${code}"}`), patience(300)]);
chromium.kill();
await ended;
server.close();
server.closeAllConnections();
const result = JSON.parse(shown);
assert.equal(result.failed, undefined);
assert.equal(result.origin, origin);

for (const kind of ["plain", "suffix"]) {
  assert.deepEqual(Object.keys(result[kind]), paths);
  for (const path of paths) {
    const [root, ...rest] = path.split("/");
    const wanted = await readFile(`${directory}/../expected/${path}.raw`);
    const digest = createHash("sha256").update(wanted).digest("hex");
    assert.deepEqual(result[kind][path], { title: `Über ${root.slice(0, 2)}`, shape: shapes[rest.join("/")], digest }, path);
  }
}
const counts = new BigInt64Array(new Uint8Array(await readFile(`${directory}/../expected/v3.zarr/deep/counts.raw`)).buffer);
const elements = [1, 2].flatMap((z) => [0, 2, 4, 6].map((y) => String(counts[(z * 8 + y) * 9 + 8])));
assert.deepEqual(result.slice, { shape: "2,4", type: "int64", elements });
assert.deepEqual(result.part, { status: 206, range: "bytes 25-29/30", text: "%.txt" });
assert.deepEqual(result.prefixes, ["deep", "empty", "image", "sharded", "unwritten"].map((name) => `lab/v3.zarr/${name}/`));
// The key is missing, and a cross-origin page must not write: Chromium hides the response.
assert.match(result.missing, /NotFound/);
assert.equal(result.rejected, "TypeError");
console.log(`zarrita in Chromium compared ${2 * paths.length} arrays`);

function patience(seconds) {
  return new Promise((resolve) => setTimeout(resolve, 1000 * seconds, `{"failed": "nothing within ${seconds} s"}`).unref());
}
