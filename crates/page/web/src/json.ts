/** JSON as this server sends it: large integers keep their digits, and bare `NaN` and infinities become strings. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

interface Context {
  source?: string;
}

/** Integers that a double cannot hold become strings of their digits. */
function keepDigits(_: string, value: unknown, context?: Context): unknown {
  const exact = typeof value !== "number" || Number.isSafeInteger(value) || !Number.isInteger(value);
  return exact || !context?.source || !/^-?\d+$/.test(context.source) ? value : context.source;
}

export function parse(text: string): Json {
  // Integers below 16 digits fit into a double, and a reviver takes longer than all else.
  const reviver = /\d{16}/.test(text) ? (keepDigits as (this: unknown, key: string, value: unknown) => unknown) : undefined;
  try {
    return JSON.parse(text, reviver) as Json;
  } catch {
    // Python writes these words into attributes.
    const quoted = text.replace(/"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g, (found) => (found[0] === '"' ? found : `"${found}"`));
    return JSON.parse(quoted, reviver) as Json;
  }
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function numbers(value: Json | undefined): number[] | null {
  if (!Array.isArray(value)) return null;
  const all = value.map(Number);
  return all.every((number) => Number.isFinite(number) && number >= 0) ? all : null;
}
