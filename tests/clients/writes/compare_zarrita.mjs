// Reads what mirror.py wrote with zarrita, and compares each element: compare_zarrita.mjs URL NOTES
//
// URL is that of the server's /store, which has the originals below /original. Only numbers are compared: of other types JavaScript has no such elements. What zarrita
// takes for other elements (fill values beyond 2⁵³, shards that are transposed inside) has to be what it takes the originals for. Floats that are
// stored as differences are left out: whoever writes what was read of them loses something else, so that there is nothing here to compare with.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as zarr from "zarrita";
import { bytesOf, cOrder } from "./elements.mjs";

const [url, notes] = process.argv.slice(2);
const version = JSON.parse(readFileSync(new URL("node_modules/zarrita/package.json", import.meta.url), "utf8")).version;
const numbers = /^(bool|u?int(8|16|32|64)|float(16|32|64))$/;
const entries = JSON.parse(readFileSync(join(notes, "mirrored.json"), "utf8"));
const areSums = (entry) => /^float/.test(entry.dtype) && entry.name.includes("delta");
const wanted = entries.filter(
  (entry) => entry.kind === "fixed" && !entry.region && numbers.test(entry.dtype) && !areSums(entry),
);

// The elements of a .npy file, whose head has its own length.
function elements(file) {
  const npy = readFileSync(join(notes, file));
  return npy.subarray(npy[6] === 1 ? 10 + npy.readUInt16LE(8) : 12 + npy.readUInt32LE(8));
}

async function read(entry, place, width) {
  const store = new zarr.FetchStore(`${place}/${entry.name}`);
  const array = await (entry.format === 2 ? zarr.open.v2 : zarr.open.v3)(store, { kind: "array" });
  if (array.shape.join() !== entry.shape.join()) throw new Error(`the shape is ${array.shape}`);
  // The only chunk of an array without dimensions is its only element.
  return entry.shape.length === 0 ? bytesOf((await array.getChunk([])).data) : cOrder(await zarr.get(array), width);
}

let compared = 0;
let alike = 0;
const unread = new Map();
const different = [];
for (const entry of wanted) {
  const expected = elements(entry.file);
  const width = expected.length / entry.shape.reduce((a, b) => a * b, 1);
  try {
    const found = await read(entry, url, width);
    const same = found.equals(expected);
    if (same || found.equals(await read(entry, `${url}/original`, width))) compared += 1;
    else different.push(entry.name);
    alike += same ? 0 : 1;
  } catch (error) {
    const reason = String(error.message).slice(0, 60);
    unread.set(reason, [...(unread.get(reason) ?? []), entry.name]);
  }
}
for (const [reason, names] of unread) console.log(`not read: ${names.length} such as ${names[0]}: ${reason}`);
for (const name of different.slice(0, 20)) console.log(`different: ${name}`);
const count = [...unread.values()].reduce((sum, names) => sum + names.length, 0);
console.log(
  `zarrita ${version} compared ${compared} arrays, ${alike} of them with what it reads of the original; ${count} not read, ${different.length} differ`,
);
