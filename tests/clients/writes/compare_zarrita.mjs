// Reads the arrays of mirror.py with zarrita, and compares each element with the notes of the original writer:
// compare_zarrita.mjs URL NOTES
//
// URL is that of the server's /store, with the originals below /original. Only numbers are compared, since JavaScript
// does not support the elements of other types. Every array that zarrita rejects must be explained by a rule with the
// text of the error, and so must every array that it misreads (`misread`), for which the originals are misread too. The
// last line contains the numbers of compared arrays, and of the others by reason, as JSON.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import * as zarr from "zarrita";
import { bytesOf, cOrder } from "./elements.mjs";

const [url, notes] = process.argv.slice(2);
const version = JSON.parse(readFileSync(new URL("node_modules/zarrita/package.json", import.meta.url), "utf8")).version;
const numbers = /^(bool|u?int(8|16|32|64)|float(16|32|64))$/;
const entries = JSON.parse(readFileSync(resolve(notes, "mirrored.json"), "utf8"));
const wanted = entries.filter((entry) => entry.kind === "fixed" && !entry.region && numbers.test(entry.dtype));

const configuration = (extension) => extension?.configuration ?? {};
const chain = (codecs) =>
  codecs.flatMap((codec) => [codec, ...(codec.name === "sharding_indexed" ? chain(codec.configuration.codecs) : [])]);

// The codecs of a document, including those within shards, by their v3 names.
function codecsOf({ zarr_format, codecs, filters, compressor }) {
  if (zarr_format === 3) return chain(codecs);
  const all = [...(filters ?? []), ...(compressor ? [compressor] : [])];
  return all.map(({ id, ...rest }) => ({ name: /^(blosc|gzip|zstd|zlib)$/.test(id) ? id : `numcodecs.${id}`, configuration: rest }));
}

const unknown = /^numcodecs\.(adler32|astype|bz2|crc32c?|fixedscaleoffset|fletcher32|jenkins_lookup3|lzma|packbits|quantize)$/;

// The reason why zarrita rejects an array, and the text of its error.
function rejection({ dtype }, document, stored) {
  const codecs = codecsOf(document);
  const shard = codecs.find(({ name }) => name === "sharding_indexed");
  if (document.shape.includes(0)) return ["an extent of 0", /Input contains an empty iterator/];
  if (document.chunk_grid && document.chunk_grid.name !== "regular") return ["chunk grid rectilinear", /Cannot read properties of undefined/];
  if (dtype === "float16") return ["data type float16", /Unknown or unsupported dataType: float16/];
  if (document.codecs?.slice(0, -1).some(({ name }) => name === "sharding_indexed")) return ["shards that are compressed as a whole", /416 Range Not Satisfiable/];
  if (shard?.configuration.index_location === "start")
    return ["an index at the start of shards", /416 Range Not Satisfiable|Unknown codec: sharding_indexed|Failed to decode chunk/];
  if (codecs.filter(({ name }) => name === "sharding_indexed").length > 1) return ["shards in shards", /Unknown codec: sharding_indexed/];
  const codec = codecs.find(({ name }) => unknown.test(name));
  // It resolves a codec when it reads a chunk.
  if (codec && stored) return [`codec ${codec.name}`, new RegExp(`Unknown codec: ${codec.name}`)];
  if (dtype === "bool" && codecs.some(({ name }) => name === "numcodecs.delta")) return ["delta of booleans", /Delta codec does not support data type: bool/];
  if (codecs.some(({ name, configuration }) => name === "scale_offset" && !configuration)) return ["scale_offset without a configuration", /reading 'scale'/];
  return null;
}

// The reason why zarrita misreads some elements.
function misreading({ dtype }, document, width) {
  const codecs = codecsOf(document);
  const { fill_value: fill } = document;
  const names = codecs.map(({ name }) => name);
  if (codecs.some(({ name, configuration }) => name === "numcodecs.shuffle" && configuration.elementsize !== width))
    return "a shuffle of other elements than the array's";
  if (codecs.some(({ name, configuration }) => name === "numcodecs.delta" && configuration.astype && configuration.astype !== configuration.dtype))
    return "differences of another type than the elements";
  if (/^0x/.test(fill)) return "a fill value of hexadecimal digits";
  if (/int64/.test(dtype) && fill !== null && !Number.isSafeInteger(fill)) return "a fill value beyond 2⁵³";
  if (names.includes("transpose") && names.includes("sharding_indexed")) return "shards that are transposed";
  if (names.filter((name) => name === "transpose").length > 1) return "elements that are transposed twice";
  if (/^float/.test(dtype) && names.includes("numcodecs.delta")) return "floats that are stored as differences";
  return null;
}

// The elements of a .npy file, whose header contains its length.
function elements(file) {
  const npy = readFileSync(resolve(notes, file));
  return npy.subarray(npy[6] === 1 ? 10 + npy.readUInt16LE(8) : 12 + npy.readUInt32LE(8));
}

async function read(entry, place, width) {
  const store = new zarr.FetchStore(`${place}/${entry.name}`);
  const array = await (entry.format === 2 ? zarr.open.v2 : zarr.open.v3)(store, { kind: "array" });
  if (array.shape.join() !== entry.shape.join()) throw new Error(`the shape is ${array.shape}`);
  // The only chunk of an array without dimensions is its only element.
  return entry.shape.length === 0 ? bytesOf((await array.getChunk([])).data) : cOrder(await zarr.get(array), width);
}

// Compares one array; returns `compared`, or the reason why it is rejected or misread; throws on differences.
async function compare(entry) {
  const expected = elements(entry.file);
  const width = expected.length / entry.shape.reduce((a, b) => a * b, 1);
  const why = rejection(entry, entry.document, expected.some((byte) => byte !== 0));
  const [found, error] = await read(entry, url, width).then(
    (found) => [found, null],
    (error) => [null, error],
  );
  if (error && !why?.[1].test(error.message)) throw new Error(`rejected, ${why?.[0]}: ${error.message}`);
  if (why && !error) throw new Error(`it was not rejected, though: ${why[0]}`);
  if (error) return ["unread", why[0]];
  const wrong = misreading(entry, entry.document, width);
  if (found.equals(expected)) return ["compared", "compared"];
  if (!wrong) throw new Error(`${found.subarray(0, 40).toString("hex")} instead of ${expected.subarray(0, 40).toString("hex")}`);
  if (!found.equals(await read(entry, `${url}/original`, width))) throw new Error("it is read otherwise than the original");
  return ["misread", wrong];
}

const counts = { compared: {}, misread: {}, unread: {} };
const different = [];
for (const entry of wanted) {
  try {
    const [what, why] = await compare(entry);
    counts[what][why] = (counts[what][why] ?? 0) + 1;
  } catch (error) {
    different.push(`different: ${entry.name} ${error.message}`);
  }
}
for (const line of different.slice(0, process.env.SHOWN ?? 10)) console.log(line.slice(0, 300));
console.log(`zarrita ${version} compared ${counts.compared.compared} arrays; ${different.length} differ`);
console.log(JSON.stringify({ arrays: wanted.length, compared: counts.compared.compared, misread: counts.misread, unread: counts.unread }));
process.exit(different.length ? 1 : 0);
