// Opens a page in Chromium that reads with zarrita from a server of another origin:
// read_in_browser.mjs URL DIR PAGE PROFILE [TOKEN]
//
// PAGE is the text of the page; the packages are served next to it without a bundler. DIR contains the expected elements.
// With TOKEN, which may write, the page sends it as bearer token.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { open, serve } from "./chromium.mjs";

const [url, directory, page, profile, token] = process.argv.slice(2);
const shapes = { image: [60, 80], "deep/relief": [60, 80], "deep/counts": [7, 8, 9], unwritten: [10, 20], sharded: [64, 64] };
const paths = ["v2.zarr", "v3.zarr"].flatMap((root) =>
  Object.keys(shapes).filter((name) => root === "v3.zarr" || name !== "sharded").map((name) => `${root}/${name}`));
const imports = { zarrita: "/node_modules/zarrita/dist/src/index.js", "@zarrita/storage/fetch": "/node_modules/@zarrita/storage/dist/src/fetch.js" };
for (const codec of ["blosc", "gzip", "lz4", "zlib", "zstd"]) imports[`numcodecs/${codec}`] = `/node_modules/numcodecs/dist/${codec}.js`;
const headers = token ? { Authorization: `Bearer ${token}` } : {};
const values = { IMPORTS: JSON.stringify(imports), SERVER: url, PATHS: JSON.stringify(paths), HEADERS: JSON.stringify(headers) };
const content = (await readFile(page, "utf8")).replace(/\b(IMPORTS|SERVER|PATHS|HEADERS)\b/g, (name) => values[name]);

let report;
const reported = new Promise((resolve) => { report = resolve; });
const { origin, close } = await serve({
  "/": content,
  async "/result"(request, response) {
    report(await text(request));
    response.end();
  },
});
assert.notEqual(origin, new URL(url).origin);
const shown = await open(profile, `${origin}/`, reported);
close();
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
// The key is missing, and a cross-origin page must not write without a token: Chromium hides the response.
assert.match(result.missing, /NotFound/);
assert.equal(result.rejected, "TypeError");
assert.equal(result.written, token ? 201 : "TypeError");
console.log(`zarrita in Chromium compared ${2 * paths.length} arrays`);
