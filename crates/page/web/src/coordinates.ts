/** Coordinates: the values along a dimension. */

import * as api from "./api";
import { drawn } from "./elements";
import { number } from "./format";
import { described, member } from "./members";
import { attributeText, join, parentOf, type ArrayNode, type Node } from "./node";
import type { Json } from "./json";

export interface Coordinate {
  /** Numbers to draw with, of every `step`-th element; of times, milliseconds since 1970. */
  numbers: Float64Array | null;
  texts: string[];
  /** Above 1 where a coordinate is too long to be read as a whole. */
  step: number;
  isTime: boolean;
  units: string | null;
  /** True if larger values belong on top. */
  isNorthing: boolean;
}

/** Of longer coordinates a part is read. */
const MAX_LENGTH = 50_000;
const SAMPLES = 5000;
const UNITS: Record<string, number> = { microsecond: 1e-3, millisecond: 1, msec: 1, second: 1e3, sec: 1e3, s: 1e3, minute: 6e4, min: 6e4, hour: 3.6e6, hr: 3.6e6, h: 3.6e6, day: 8.64e7, d: 8.64e7, week: 6.048e8 };

/** The factor and the origin of a CF time unit, in milliseconds; `null` if a browser's calendar is not the right one. */
export function timeUnit(units: string | null, calendar: string | null): { factor: number; origin: number } | null {
  const found = /^\s*(\w+)\s+since\s+(-?\d{1,6})-(\d{1,2})-(\d{1,2})(?:[T\s]+(\d{1,2})(?::(\d{1,2}))?(?::(\d{1,2}(?:\.\d+)?))?)?\s*(?:Z|UTC|[+-]00:?00)?\s*$/i.exec(units ?? "");
  if (!found || !["standard", "gregorian", "proleptic_gregorian"].includes((calendar ?? "standard").toLowerCase())) return null;
  const factor = UNITS[found[1]!.toLowerCase()] ?? UNITS[found[1]!.toLowerCase().replace(/s$/, "")];
  const [year, month, day, hour, minute, second] = found.slice(2).map((part) => Number(part ?? 0));
  if (!factor || (year! < 1583 && calendar !== "proleptic_gregorian")) return null;
  return { factor, origin: Date.UTC(year!, month! - 1, day!, hour!, minute!, 0) + second! * 1000 };
}

export function isoTime(milliseconds: number): string {
  if (!Number.isFinite(milliseconds) || Math.abs(milliseconds) > 8.64e15) return "NaT";
  return new Date(milliseconds).toISOString().replace(/\.000Z$/, "").replace(/Z$/, "").replace(/T00:00:00$/, "");
}

const cache = new Map<string, Promise<Coordinate | null>>();

/** The coordinate along a dimension; `null` if there is none. */
export function coordinate(array: ArrayNode, at: number): Promise<Coordinate | null> {
  const name = array.dimensions[at];
  const length = array.shape[at] ?? 0;
  if (name == null || length === 0) return Promise.resolve(null);
  const key = `${array.path}\n${at}\n${length}`;
  let found = cache.get(key);
  if (!found) {
    // A failure is not remembered.
    found = load(array, at, name, [0, length], length > MAX_LENGTH ? Math.ceil(length / SAMPLES) : 1).catch(() => (cache.delete(key), null));
    cache.set(key, found);
  }
  return found;
}

/** The part of a coordinate that a view shows, where all of it is too long; else the coordinate. */
export async function partOf(known: Coordinate | null, array: ArrayNode, at: number, range: [number, number], step: number, signal: AbortSignal): Promise<Coordinate | null> {
  return known && known.step > 1 ? load(array, at, array.dimensions[at]!, range, step, signal) : known;
}

async function load(array: ArrayNode, at: number, name: string, [from, to]: [number, number], step: number, signal?: AbortSignal): Promise<Coordinate | null> {
  const node = array.path === join(parentOf(array.path), name) && array.shape.length === 1 ? array : await sibling(array, at, name);
  const select = array.shape.map((_, other) => (other === at ? `${from}:${to}:${step}` : "0"));
  // Without such an array the server would refuse to tell labels.
  const isEmpty = array.shape.some((length) => length === 0);
  const told = isEmpty || !node ? null : await api.labels(array.path, name, select, Math.ceil((to - from) / step), signal);
  if (told) return fromLabels(told, node, step);
  return node ? fromArray(node, `${from}:${to}:${step}`, step) : null;
}

/** The label of an element: beside those that were read, an estimate, which says so. */
export function textOf(coordinate: Coordinate | null | undefined, element: number): string | undefined {
  if (!coordinate) return undefined;
  const { texts, step, isTime } = coordinate;
  if (element % step === 0) return texts[element / step];
  const value = numberOf(coordinate, element);
  return value === undefined ? undefined : `≈ ${isTime ? isoTime(Math.round(value)) : number(value, 8)}`;
}

/** The number of an element, or one between those of its neighbours. */
export function numberOf({ numbers, step }: Coordinate, element: number): number | undefined {
  const at = Math.floor(element / step);
  const [low, high] = [numbers?.[at], numbers?.[at + 1]];
  if (low === undefined || element % step === 0) return low;
  const slope = high === undefined ? low - (numbers![at - 1] ?? NaN) : high - low;
  return low + (slope * (element % step)) / step;
}

/** The one-dimensional array of a dimension's name, in the group or one above it. */
async function sibling(array: ArrayNode, at: number, name: string): Promise<ArrayNode | null> {
  if (name.includes("/")) return null;
  for (let path = parentOf(array.path); ; path = parentOf(path)) {
    try {
      const known = await member(path, name);
      const node = known === undefined ? await described(join(path, name)) : known;
      if (node && node.type === "array" && node.shape.length === 1 && node.shape[0] === array.shape[at]) return node;
    } catch (error) {
      if (!(error instanceof api.Problem)) throw error;
    }
    if (!path) return null;
  }
}

const isNorth = (node: Node | null) =>
  !!node && (/^degrees?_?n(orth)?$/i.test(attributeText(node, "units") ?? "") || node.attributes["axis"] === "Y" || /^(latitude|projection_y_coordinate)$/.test(attributeText(node, "standard_name") ?? ""));

const shortTime = (text: string) => (/^-?\d{4,}-\d\d-\d\dT/.test(text) ? text.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "").replace(/T00:00:00$/, "") : text);

/** Milliseconds since 1970. Dates of other calendars, such as a 30 February, which a browser takes for 1 March, have none. */
function timeOf(text: string): number {
  const found = /^-?\d{4,}-\d\d(?:-(\d\d)(?:T[\d:]+(\.\d+)?)?)?$/.exec(text);
  if (!found) return NaN;
  const time = Date.parse(text.replace(/(\.\d{3})\d+/, "$1") + (text.includes("T") ? "Z" : ""));
  return found[1] === undefined || new Date(time).getUTCDate() === Number(found[1]) ? time : NaN;
}

function fromLabels(labels: Json[], node: ArrayNode | null, step: number): Coordinate | null {
  const numeric = labels.every((label) => typeof label === "number");
  const times = numeric ? null : Float64Array.from(labels, (label) => timeOf(String(label)));
  const isTime = !!times && times.length > 0 && times.every(Number.isFinite);
  return {
    step,
    numbers: numeric ? Float64Array.from(labels as number[]) : isTime ? times : null,
    texts: labels.map((label) => (typeof label === "number" ? number(label, 8) : shortTime(String(label)))),
    isTime,
    units: isTime || !node ? null : attributeText(node, "units"),
    isNorthing: isNorth(node),
  };
}

async function fromArray(node: ArrayNode, part: string, step: number): Promise<Coordinate | null> {
  const units = attributeText(node, "units");
  if (node.kind === "other" || node.kind === "time") {
    const { value } = await api.values(node.path, { select: [part] });
    return Array.isArray(value) ? fromLabels(value, node, step) : null;
  }
  const read = await api.elements(node.path, { select: [part] });
  const stored = Float64Array.from(drawn(read, "real"));
  const time = timeUnit(units, attributeText(node, "calendar"));
  const numbers = time ? stored.map((value) => value * time.factor + time.origin) : stored;
  const texts = Array.from(numbers, (value) => (time ? isoTime(value) : number(value, 8)));
  return { step, numbers, texts, isTime: !!time, units: time ? null : units, isNorthing: isNorth(node) };
}

/** True if the values rise. */
export function isAscending({ numbers }: Coordinate): boolean {
  return !!numbers && numbers.length > 1 && numbers[numbers.length - 1]! > numbers[0]!;
}
