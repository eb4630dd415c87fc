/** Elements of an answer as typed arrays. */

import { floorOf } from "./floats";

type Words = Uint8Array | Int8Array | Uint16Array | Int16Array | Uint32Array | Int32Array | Float32Array | Float64Array | BigInt64Array | BigUint64Array;

export interface Elements {
  shape: number[];
  /** The data type by its v3 name. */
  type: string;
  kind: Kind;
  /** One word for each element, two for each complex number. */
  words: Words;
}

export type Kind = "bool" | "int" | "float" | "complex" | "time" | "other";

/** The kind of a data type: a name of v3, or a dtype of v2. */
export function kindOf(type: string): Kind {
  const dtype = /^[<>|=]?([biufcmMSUVO])(\d*)/.exec(type);
  const letter = /^[<>|=]/.test(type) ? dtype?.[1] : undefined;
  if (letter === "b" || type === "bool") return "bool";
  if (letter === "i" || letter === "u" || /^u?int(8|16|32|64)$/.test(type)) return "int";
  if (letter === "f" || /^(float(16|32|64)|bfloat16)$/.test(type)) return "float";
  if (letter === "c" || /^complex(64|128|_float32|_float64)$/.test(type)) return "complex";
  if (letter === "m" || letter === "M" || /(datetime|timedelta)64/.test(type)) return "time";
  return "other";
}

/** The size of a number in memory, in bytes. */
export function sizeOf(type: string): number {
  const dtype = /^[<>|=][a-zA-Z](\d+)/.exec(type);
  if (dtype) return Math.max(1, Number(dtype[1]));
  if (type === "bool") return 1;
  if (kindOf(type) === "time") return 8;
  const bits = Number(/(\d+)$/.exec(type)?.[1] ?? 64);
  return Math.max(1, (type.startsWith("complex_") ? 2 * bits : bits) / 8);
}

/** True for types whose elements are drawn as colours or lines. */
export const isDrawn = (kind: Kind) => kind === "bool" || kind === "int" || kind === "float" || kind === "complex";

function halves(buffer: ArrayBuffer, widen: (bits: number) => number): Float32Array {
  return Float32Array.from(new Uint16Array(buffer), widen);
}

function float16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const scratch = new DataView(new ArrayBuffer(4));

function bfloat16(bits: number): number {
  scratch.setUint32(0, bits * 65536);
  return scratch.getFloat32(0);
}

export function decodeElements(buffer: ArrayBuffer, type: string, shape: number[]): Elements {
  const kind = kindOf(type);
  return { shape, type, kind, words: kind === "other" ? new Uint8Array(buffer) : words(buffer, type) };
}

/** Words are little-endian, as the machines are that browsers run on. */
function words(buffer: ArrayBuffer, type: string): Words {
  if (kindOf(type) === "time") return new BigInt64Array(buffer);
  switch (type) {
    case "int8":
      return new Int8Array(buffer);
    case "int16":
      return new Int16Array(buffer);
    case "uint16":
      return new Uint16Array(buffer);
    case "int32":
      return new Int32Array(buffer);
    case "uint32":
      return new Uint32Array(buffer);
    case "int64":
      return new BigInt64Array(buffer);
    case "uint64":
      return new BigUint64Array(buffer);
    case "float16":
      return halves(buffer, float16);
    case "bfloat16":
      return halves(buffer, bfloat16);
    case "float32":
    case "complex64":
    case "complex_float32":
      return new Float32Array(buffer);
    case "float64":
    case "complex128":
    case "complex_float64":
      return new Float64Array(buffer);
    default:
      return new Uint8Array(buffer);
  }
}

export type Part = "magnitude" | "phase" | "real" | "imaginary";

/** The numbers to draw: of complex elements one part. */
export function drawn({ words, kind }: Elements, part: Part): Float32Array | Float64Array | Uint8Array {
  if (kind !== "complex") {
    if (words instanceof Float32Array || words instanceof Float64Array || words instanceof Uint8Array) return words;
    // Comparisons with thresholds are those of the integers.
    if (words instanceof BigInt64Array || words instanceof BigUint64Array) return Float64Array.from(words as unknown as ArrayLike<number>, (word) => floorOf(word as unknown as bigint));
    return Float64Array.from(words as unknown as ArrayLike<number>, Number);
  }
  const pairs = words as Float64Array;
  const out = new Float64Array(pairs.length / 2);
  for (let at = 0; at < out.length; at++) {
    const [re, im] = [pairs[2 * at]!, pairs[2 * at + 1]!];
    out[at] = part === "real" ? re : part === "imaginary" ? im : part === "phase" ? Math.atan2(im, re) : Math.hypot(re, im);
  }
  return out;
}

export const complexText = (re: string, im: string) => `${re} ${im.startsWith("-") ? "−" : "+"} ${im.replace(/^-/, "")}i`;

/** The shortest text that is this element and no other. */
export function elementText(elements: Elements, at: number): string {
  const { words, kind, type } = elements;
  const text = (value: number | bigint | undefined) =>
    typeof value === "number" && (words instanceof Float32Array) ? shortest(value, type) : value === undefined ? "" : Object.is(value, -0) ? "-0" : String(value);
  if (kind === "complex") {
    const [re, im] = [text(words[2 * at]), text(words[2 * at + 1])];
    return complexText(re, im);
  }
  if (kind === "bool") return words[at] ? "true" : "false";
  return text(words[at]);
}

/** The shortest decimal that rounds to a float of fewer than 64 bits. */
function shortest(value: number, type: string): string {
  if (!Number.isFinite(value) || Number.isInteger(value)) return Object.is(value, -0) ? "-0" : String(value);
  // Half the distance to the next number of the type.
  const [least, bits] = type === "float16" ? [-14, 10] : [-126, 7];
  const half = 2 ** (Math.max(least, Math.floor(Math.log2(Math.abs(value)))) - bits - 1);
  const isShort = type === "float16" || type === "bfloat16";
  for (let digits = 1; digits <= 9; digits++) {
    const text = value.toPrecision(digits);
    if (isShort ? Math.abs(Number(text) - value) < half : Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(value);
}
