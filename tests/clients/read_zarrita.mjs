// Reads the data of write_zarr_python.py with zarrita: read_zarrita.mjs DIR [suffix]
//
// With `suffix`, shard indexes are requested by a suffix range; zarrita's default is HEAD and an ordinary range.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as zarr from "zarrita";
import { bytesOf, cOrder } from "./elements.mjs";

const [directory, suffix] = process.argv.slice(2);
const options = suffix ? { useSuffixRequest: true } : {};
const manifest = JSON.parse(readFileSync(join(directory, "manifest.json"), "utf8"));
// JavaScript does not support such elements, and zarrita no bz2.
const none = new Set(["complex64", "complex128", ...(globalThis.Float16Array ? [] : ["float16"])]);
const readable = (entry) => !none.has(entry.dtype) && !entry.url.endsWith("/bz2");
const version = JSON.parse(readFileSync(new URL("node_modules/zarrita/package.json", import.meta.url), "utf8")).version;

let compared = 0;
let sharded = 0;
for (const entry of manifest.filter(readable)) {
  const wanted = readFileSync(join(directory, entry.file));
  const store = new zarr.FetchStore(entry.url, options);
  const array = await (entry.format === 2 ? zarr.open.v2 : zarr.open.v3)(store, { kind: "array" });
  const same = (name, found, bytes) => {
    if (!bytesOf(found).equals(bytes)) throw new Error(`${entry.url}: ${name} differs`);
  };
  if (entry.shape.length === 0) {
    // Its only chunk is its only element.
    same("the element", (await array.getChunk([])).data, wanted);
  } else {
    const all = await zarr.get(array);
    if (all.shape.join() !== entry.shape.join()) throw new Error(`${entry.url}: the shape is ${all.shape}`);
    const width = wanted.length / entry.shape.reduce((a, b) => a * b);
    same("the array", cOrder(all, width), wanted);
    // A row, whose bytes are contiguous.
    const row = Math.floor(entry.shape[0] / 2);
    const rest = entry.shape.slice(1);
    const size = width * rest.reduce((a, b) => a * b, 1);
    const part = await zarr.get(array, [row, ...rest.map(() => null)]);
    same("a row", cOrder(part, width), wanted.subarray(row * size, (row + 1) * size));
  }
  compared += 1;
  sharded += entry.sharded;
}

// Groups, and the error for missing nodes.
const manifestRoot = manifest[0].url.replace(/\/v2\.zarr\/.*/, "");
for (const format of [2, 3]) {
  const store = new zarr.FetchStore(`${manifestRoot}/v${format}.zarr`);
  const group = await zarr.open(store, { kind: "group" });
  if (group.attrs.title !== `Zarr v${format} über HTTP`) throw new Error(`the attributes are ${group.attrs}`);
  const missing = await zarr.open(group.resolve("nothing"), { kind: "array" }).catch((error) => error);
  if (!/not\s*found/i.test(`${missing.name} ${missing.message}`)) throw new Error(`not "not found" but ${missing}`);
}
console.log(`zarrita ${version} compared ${compared} arrays, ${sharded} of them sharded`);
