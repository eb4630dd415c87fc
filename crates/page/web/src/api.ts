/** All requests to the server. Each feature is one function; each says what a server without it falls back to. */

import type { Colouring } from "./colour";
import { isObject, parse, type Json, type JsonObject } from "./json";
import { decodeElements, type Elements } from "./elements";
import { API, askForToken, forgetToken, IS_SHARED, token, unreachable } from "./session";

/** The limit of one answer, in bytes. */
export const MAX_ANSWER = 4 << 20;
/** The members of one page of a group. */
export const PAGE_SIZE = 1000;

/** An error that the server named. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    readonly title: string,
    readonly detail: string,
    readonly members: JsonObject,
  ) {
    super(detail || title);
  }

  /** A part of the selection that the server would answer. */
  get smaller(): string | null {
    const smaller = this.members["smaller"];
    return typeof smaller === "string" ? smaller : null;
  }
}

/** An answer that is not of the array that was described before. */
export class Changed extends Error {
  constructor() {
    super("The array has changed since it was described.");
  }
}

/** What an answer cost. */
export interface Cost {
  bytes: number;
  milliseconds: number;
  /** When it was asked for, by the page's clock. */
  started: number;
  chunks: number;
  /** `null` where the server does not know it. */
  storedBytes: number | null;
}

/** A value in a group that is no Zarr, or a prefix of some, which ends in `/` and has no size. */
export interface FileEntry {
  key: string;
  size: number | null;
  isDamaged: boolean;
}

export interface Page {
  node: JsonObject;
  files: FileEntry[];
  /** The paths of the arrays whose stored numbers stand for others, or for missing ones. */
  undecoded: Set<string>;
  /** The paths of mounts whose members are unknown. */
  unlisted: Set<string>;
  cursor: string | null;
  broken: number;
  dialect: string;
  etag: string | null;
  other: number;
}

const segment = (text: string) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

export const encodePath = (path: string) => path.split("/").filter(Boolean).map(segment).join("/");
export const nodeUrl = (path: string) => `${API}/node/${encodePath(path)}`;
export const arrayUrl = (path: string) => `${API}/array/${encodePath(path)}`;
export const browseUrl = (path: string) => `${API}/browse/${encodePath(path)}`;
export const storeUrl = (path: string) => `${API}/store/${encodePath(path)}`;
export const absolute = (url: string) => new URL(url, location.href).href;

export const pause = (milliseconds: number, signal?: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason as Error)), { once: true });
  });

async function problem(response: Response): Promise<Problem> {
  let members: Json = null;
  try {
    members = parse(await response.text());
  } catch {
    // Not a problem document.
  }
  const found = isObject(members) ? members : {};
  const text = (name: string) => (typeof found[name] === "string" ? (found[name] as string) : "");
  const kind = text("type").split("/").pop() ?? "";
  return new Problem(response.status, kind, text("title") || `Status ${response.status}`, text("detail"), found);
}

/** What is done where a token is needed and there is none: it is asked for, or the request fails. */
type WithoutToken = "ask" | "fail";

/** Sends a request until it is answered: waits for a server that went away, and asks for a token that is missing. */
export async function request(url: string, accept: string, signal?: AbortSignal, method = "GET", withoutToken: WithoutToken = "ask"): Promise<Response> {
  let broken = 0;
  for (let attempt = 0; ; attempt++) {
    const headers: Record<string, string> = { Accept: accept };
    const bearer = token();
    if (bearer && !IS_SHARED) headers["Authorization"] = `Bearer ${bearer}`;
    let response: Response | null = null;
    try {
      response = await fetch(url, { method, headers, credentials: "omit", signal: signal ?? null, referrerPolicy: "no-referrer" });
      response = new Response(await response.arrayBuffer(), response);
    } catch (error) {
      if (signal?.aborted) throw error;
      // A server that goes away ends its answers early, and so does one that cannot read an element.
      if (response && ++broken > 2) {
        unreachable.set(false);
        throw new Error("The answer ended before it was complete.");
      }
      unreachable.set(true);
      await pause(Math.min(5000, 500 * 2 ** Math.min(attempt, 4)), signal);
      continue;
    }
    unreachable.set(false);
    if (response.ok) return response;
    const error = await problem(response);
    if (error.status === 401 && !IS_SHARED && (bearer || withoutToken === "ask")) {
      // Another request may have got a new token meanwhile.
      if (token() === bearer) {
        forgetToken();
        await askForToken(bearer ? "The token is not accepted." : "This server asks for a token.", signal);
      }
      continue;
    }
    if ((error.status === 429 || error.status === 503) && attempt < 6) {
      await pause(1000 * Math.min(5, Number(response.headers.get("retry-after")) || 1), signal);
      continue;
    }
    throw error;
  }
}

/** A node, and one page of its members; without a token what everybody may read. */
export async function members(path: string, cursor: string | null, signal?: AbortSignal): Promise<Page> {
  return described(await request(membersUrl(path, cursor), "application/json", signal, "GET", "fail"));
}

const membersUrl = (path: string, cursor: string | null) => `${nodeUrl(path)}?include=files&limit=${PAGE_SIZE}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`;

/** The entity tag of elements, which is another one once they have changed. */
export async function version(path: string, query: Query): Promise<string | null> {
  return (await request(elementsUrl(path, query, "raw"), "*/*", undefined, "HEAD")).headers.get("etag");
}

/** A node by itself. */
export async function node(path: string, signal?: AbortSignal): Promise<Page> {
  return described(await request(`${nodeUrl(path)}?include=source&depth=0`, "application/json", signal));
}

async function described(response: Response): Promise<Page> {
  const body = parse(await response.text());
  const { node, undecoded, unlisted, files } = isObject(body) ? body : {};
  const paths = (listed: Json | undefined) => new Set(Array.isArray(listed) ? listed.map((path) => String(path).replace(/^\//, "")) : []);
  return {
    node: isObject(node) ? node : {},
    files: (Array.isArray(files) ? files : []).filter(isObject).map(({ key, size, damaged }) => ({ key: String(key), size: size === undefined ? null : Number(size), isDamaged: !!damaged })),
    undecoded: paths(undecoded),
    unlisted: paths(unlisted),
    cursor: response.headers.get("zarr-cursor"),
    broken: Number(response.headers.get("zarr-broken") ?? 0),
    dialect: response.headers.get("zarr-dialect") ?? "",
    etag: response.headers.get("etag"),
    other: Number(response.headers.get("zarr-other-dialects") ?? 0),
  };
}

export interface Hidden {
  broken: { path: string; reason: string }[];
  others: string[];
}

/** What a page of a node's members leaves out: those that cannot be read, and those of other dialects. */
export async function hidden(path: string, cursor: string | null): Promise<Hidden> {
  const body = parse(await (await request(membersUrl(path, cursor), "application/json")).text());
  const listed = (name: string) => (isObject(body) && Array.isArray(body[name]) ? body[name].filter(isObject) : []);
  return {
    broken: listed("broken").map(({ path, problem }) => ({ path: String(path), reason: isObject(problem) ? `${problem["key"]}: ${problem["reason"]}` : "" })),
    others: listed("other_dialects").map(({ path }) => String(path)),
  };
}

/** The names directly below a prefix: the way to what a caller may read, where `/node` is forbidden. */
export async function prefixes(path: string, signal?: AbortSignal): Promise<string[]> {
  const inner = encodePath(path);
  const response = await request(`${API}/store/${inner ? `${inner}/` : ""}?list=dir`, "application/json", signal, "GET", "fail");
  const body = parse(await response.text());
  const listed = isObject(body) && Array.isArray(body["prefixes"]) ? body["prefixes"] : [];
  return listed.filter((name): name is string => typeof name === "string").map((name) => name.replace(/\/$/, "").split("/").pop() ?? name);
}

/** A document as it is stored; `null` if there is none. */
export async function stored(key: string, signal?: AbortSignal): Promise<string | null> {
  try {
    return await (await request(storeUrl(key), "*/*", signal)).text();
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null;
    throw error;
  }
}

/** What is asked of an array. */
export interface Query {
  /** One item for each dimension, as in `select`. */
  select: string[];
  /** Windows by the name or number of their dimension. */
  coarsen?: { dimension: string; size: number }[];
  reduce?: string;
  axis?: string;
  decode?: "cf" | undefined;
}

export function queryString(query: Query): string {
  const parts: string[] = [];
  if (query.select.length) parts.push(`select=${query.select.join(",")}`);
  if (query.decode) parts.push(`decode=${query.decode}`);
  for (const { dimension, size } of query.coarsen ?? []) parts.push(`coarsen.${encodeURIComponent(dimension)}=${size}`);
  if (query.axis) parts.push(`axis=${encodeURIComponent(query.axis)}`);
  if (query.reduce) parts.push(`reduce=${query.reduce}`);
  return parts.join("&");
}

export const elementsUrl = (path: string, query: Query, format: string) =>
  `${arrayUrl(path)}?${[queryString(query), `format=${format}`].filter(Boolean).join("&")}`;

type Feature = "labels" | "decode" | "coarsen" | "stats" | "chunks";

/** The features that the description of the server documents, as of when the page was built into it. */
declare const DOCUMENTED: Feature[];
/** Those that it refused as unknown nevertheless, as an older one behind the same proxy does. */
const missing = new Set<Feature>();

export const supports = (feature: Feature) => DOCUMENTED.includes(feature) && !missing.has(feature);

const isUnknown = (error: unknown) => error instanceof Problem && error.kind === "unknown-parameter";

function cost(response: Response, bytes: number, started: number): Cost {
  const read = Object.fromEntries((response.headers.get("zarr-read") ?? "").split(/[,;]\s*/).map((part) => part.split("=")));
  return {
    bytes,
    milliseconds: performance.now() - started,
    started,
    chunks: Number(read["chunks"] ?? 0) || 0,
    storedBytes: read["bytes"] === undefined ? null : Number(read["bytes"]),
  };
}

/** Elements in the format `raw`, decoded. */
export async function elements(path: string, query: Query, signal?: AbortSignal): Promise<Elements & { cost: Cost }> {
  const started = performance.now();
  const response = await request(elementsUrl(path, query, "raw"), "application/octet-stream", signal);
  const buffer = await response.arrayBuffer();
  const shape = (response.headers.get("zarr-shape") ?? "").split(",").filter(Boolean).map(Number);
  const type = response.headers.get("zarr-data-type") ?? "";
  return { ...decodeElements(buffer, type, shape), cost: cost(response, buffer.byteLength, started) };
}

/** Elements as JSON, for types that have no simple bytes. */
export async function values(path: string, query: Query, signal?: AbortSignal): Promise<{ value: Json; shape: number[]; cost: Cost }> {
  const started = performance.now();
  const response = await request(elementsUrl(path, query, "json"), "application/json", signal);
  const text = await response.text();
  const shape = (response.headers.get("zarr-shape") ?? "").split(",").filter(Boolean).map(Number);
  return { value: parse(text), shape, cost: cost(response, text.length, started) };
}

/** How elements are thinned out for the screen. */
export type Thinning = "nearest" | "mean" | "min" | "max";

/** The functions by which dimensions are reduced. Missing elements do not count. */
export const REDUCTIONS = ["mean", "min", "max", "std", "sum", "count"] as const;
export type Reduction = (typeof REDUCTIONS)[number];

/** The name of a function that leaves out NaN. */
export const withoutNan = (name: string) => (name === "count" ? name : `nan${name}`);

export interface Window {
  select: string[];
  /** Steps by dimension, above 1 where elements are thinned out. */
  steps: { position: number; dimension: string; size: number }[];
  thinning: Thinning;
  decode?: "cf" | undefined;
  /** The function and the dimensions of a reduction, which leaves them out. */
  reduce?: { by: Reduction; axis: string } | undefined;
}

/** The arrays that the server could not decode. */
export const undecodable = new Set<string>();

/**
 * A window of an array, thinned out: by `coarsen`, else by steps in the selection. A server or a type that refuses
 * windows answers with every n-th element, and `thinning` of the result says so.
 */
export async function thinned(path: string, window: Window, signal?: AbortSignal): Promise<Elements & { cost: Cost; thinning: Thinning }> {
  const steps = window.steps.filter((step) => step.size > 1);
  const { decode } = window;
  if (!window.reduce && steps.length && window.thinning !== "nearest" && supports("coarsen")) {
    const query = { select: window.select, coarsen: steps.map(({ dimension, size }) => ({ dimension, size })), reduce: withoutNan(window.thinning), decode };
    try {
      return { ...(await elements(path, query, signal)), thinning: window.thinning };
    } catch (error) {
      if (isUnknown(error)) missing.add("coarsen");
      else if (!(error instanceof Problem) || error.status >= 500 || error.status === 413 || error.status === 404) throw error;
    }
  }
  const select = window.select.map((item, position) => {
    const step = steps.find((step) => step.position === position);
    return step ? `${item}:${step.size}` : item;
  });
  const reduce = window.reduce ? { reduce: withoutNan(window.reduce.by), axis: window.reduce.axis } : {};
  return { ...(await decoded(path, { select, decode, ...reduce }, signal)), thinning: steps.length ? "nearest" : window.thinning };
}

/** Elements decoded by CF, or as stored where the server does not decode. */
async function decoded(path: string, query: Query, signal?: AbortSignal): Promise<Elements & { cost: Cost }> {
  const asStored = { ...query, decode: undefined };
  if (!query.decode || !supports("decode") || undecodable.has(path)) return elements(path, asStored, signal);
  try {
    return await elements(path, query, signal);
  } catch (error) {
    if (isUnknown(error)) missing.add("decode");
    else if (error instanceof Problem && /^(unsuitable-format|unsupported-calendar|invalid-metadata)$/.test(error.kind)) undecodable.add(path);
    else throw error;
    return elements(path, asStored, signal);
  }
}

/** The least and greatest element of each window along a dimension; `null` where the server does not tell. */
export async function envelope(path: string, query: Query, signal?: AbortSignal): Promise<(Elements & { cost: Cost }) | null> {
  if (!supports("coarsen")) return null;
  try {
    return await elements(path, { ...query, reduce: "nanmin,nanmax" }, signal);
  } catch (error) {
    if (isUnknown(error)) missing.add("coarsen");
    else if (!(error instanceof Problem) || error.status >= 500 || error.status === 413) throw error;
    return null;
  }
}

/** The labels along a dimension of a selection, decoded; `null` where the server does not tell. */
export async function labels(path: string, dimension: string, select: string[], length: number, signal?: AbortSignal): Promise<Json[] | null> {
  if (!supports("labels")) return null;
  try {
    const url = `${arrayUrl(path)}?select=${select.join(",")}&labels=${encodeURIComponent(dimension)}&format=json`;
    const value = parse(await (await request(url, "application/json", signal)).text());
    return Array.isArray(value) && value.length === length && !value.some(Array.isArray) ? value : null;
  } catch (error) {
    if (isUnknown(error)) missing.add("labels");
    else if (!(error instanceof Problem)) throw error;
    return null;
  }
}

/** Exact statistics of a selection; `null` where the server does not compute them. */
export async function stats(path: string, query: Query, signal?: AbortSignal): Promise<JsonObject | null> {
  if (!supports("stats")) return null;
  try {
    const url = `${arrayUrl(path)}?${[queryString(query), "stats&bins=48"].filter(Boolean).join("&")}`;
    const value = parse(await (await request(url, "application/json", signal)).text());
    return isObject(value) ? value : null;
  } catch (error) {
    if (!isUnknown(error)) throw error;
    missing.add("stats");
    return null;
  }
}

/** The values at which colours begin, from the second on; `null` where the server does not tell. No element is read. */
export async function thresholds(array: { path: string; shape: number[] }, colouring: Colouring, signal?: AbortSignal): Promise<Float64Array | null> {
  const { map, scale, low, high } = colouring;
  try {
    const select = array.shape.map(() => "0:0").join(",");
    const url = `${arrayUrl(array.path)}?select=${select}&thresholds&cmap=${map}&scale=${scale}&min=${low}&max=${high}`.replaceAll("+", "%2B");
    const value = parse(await (await request(url, "application/json", signal)).text());
    const found = isObject(value) && Array.isArray(value["thresholds"]) ? value["thresholds"].map(Number) : [];
    return found.length === 256 ? Float64Array.from(found.slice(1)) : null;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return null;
  }
}

/** The chunks that a selection touches, counted in bins along up to two dimensions. */
export interface ChunkMap {
  touched: number;
  stored: number;
  bytes: number;
  /** The decoded size of a chunk. */
  chunkBytes: number | null;
  /** The shape of inner chunks, if the chunks are shards. */
  innerShape: number[] | null;
  axes: { dimension: number; starts: number[]; chunks: number[] }[];
  others: number;
  /** The stored chunks in each bin, in C order. */
  perBin: number[];
}

async function chunks(path: string, query: string, signal?: AbortSignal): Promise<JsonObject | null> {
  if (!supports("chunks")) return null;
  try {
    const value = parse(await (await request(`${arrayUrl(path)}?chunks&${query}`, "application/json", signal)).text());
    return isObject(value) ? value : null;
  } catch (error) {
    if (!isUnknown(error)) throw error;
    missing.add("chunks");
    return null;
  }
}

const list = (value: Json | undefined): number[] => (Array.isArray(value) ? value.map(Number) : []);
const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);

/** The chunks that a selection touches; `null` where the server does not tell. */
export async function chunkMap(path: string, select: string[], size: number, axes: number[], signal?: AbortSignal): Promise<ChunkMap | null> {
  const parts = [`bins=${size}`, ...(select.length ? [`select=${select.join(",")}`] : []), ...(axes.length ? [`axis=${[...axes].sort((a, b) => a - b).join(",")}`] : [])];
  const value = await chunks(path, parts.join("&"), signal);
  const bins = value?.["bins"];
  if (!value || !isObject(bins)) return null;
  const perBin = list(bins["stored"]);
  return {
    touched: Number(value["touched"]),
    stored: sum(perBin),
    bytes: sum(list(bins["bytes"])),
    chunkBytes: value["chunk_bytes"] === null ? null : Number(value["chunk_bytes"]),
    innerShape: Array.isArray(value["inner_chunk_shape"]) ? list(value["inner_chunk_shape"]) : null,
    axes: (Array.isArray(bins["axes"]) ? bins["axes"] : []).filter(isObject).map((axis) => ({ dimension: Number(axis["dimension"]), starts: list(axis["starts"]), chunks: list(axis["chunks"]) })),
    others: Number(bins["others"]),
    perBin,
  };
}

/** The chunk of an element. */
export async function chunkOf(path: string, index: number[], signal?: AbortSignal): Promise<{ index: number[]; key: string | null; bytes: number | null } | null> {
  const value = await chunks(path, `limit=1${index.length ? `&select=${index.join(",")}` : ""}`, signal);
  const found = Array.isArray(value?.["chunks"]) ? value["chunks"][0] : null;
  if (!isObject(found)) return null;
  return { index: list(found["index"]), key: typeof found["key"] === "string" ? found["key"] : null, bytes: found["bytes"] === null ? null : Number(found["bytes"]) };
}

/** The lifetime of a link for a download. */
const LINK_MINUTES = 5;

/** A URL that a browser can download from: without a token the usual one, else one through a link of five minutes. */
export async function downloadUrl(path: string, url: string): Promise<string> {
  const bearer = token();
  if (!bearer || IS_SHARED) return url;
  const expires = new Date(Date.now() + LINK_MINUTES * 60_000).toISOString().replace(/\.\d+Z$/, "Z");
  const response = await fetch(`${API}/share`, {
    method: "POST",
    headers: { "Authorization": `Bearer ${bearer}`, "Content-Type": "application/json", "Accept": "application/json" },
    credentials: "omit",
    body: JSON.stringify({ name: "download", prefix: path ? `${path}/` : "", expires }),
  });
  if (!response.ok) throw await problem(response);
  const created = parse(await response.text());
  const link = isObject(created) && typeof created["link"] === "string" ? created["link"] : "";
  return `${API}${link}${url.slice(API.length)}`;
}
