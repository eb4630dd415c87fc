/** Colour maps as 256 colours and the 255 thresholds between them. */

import { order, ordered } from "./floats";
import { mapColours } from "./maps";

export type Scale = "linear" | "log" | "symlog";
export const SCALES: Scale[] = ["linear", "log", "symlog"];

/** Those of the server, and a cyclic one for angles. */
export const MAPS = ["viridis", "magma", "cividis", "RdBu", "RdBu_r", "grey", "phase"] as const;
export type MapName = (typeof MAPS)[number];

const PHASE = "e2d9e2 91b2c7 6276ba 592a8f 2f1436 7b2450 b2614f c9a390 e2d9e2";

/** Values below and above the limits, where they are marked. */
export const UNDER = 0xffe6b422;
export const OVER = 0xffb43cf0;
/** Stored values that stand for missing ones: seen through, so that they are no colour of any map. */
export const FILL = 0x70808080;

/** A pixel as canvases hold it on little-endian machines: 0xAABBGGRR. */
const pixel = (red: number, green: number, blue: number) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

const cache = new Map<MapName, Uint32Array>();

function levelsOf(name: MapName): number[][] {
  if (name === "grey") return Array.from({ length: 256 }, (_, at) => [at, at, at]);
  if (name === "RdBu_r") return mapColours("RdBu").reverse();
  if (name !== "phase") return mapColours(name);
  const stops = PHASE.split(" ").map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, at) => {
    const position = (at / 255) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(position));
    return [0, 1, 2].map((c) => Math.round(stops[low]![c]! + (stops[low + 1]![c]! - stops[low]![c]!) * (position - low)));
  });
}

/** The 256 colours of a map. */
export function colours(name: MapName): Uint32Array {
  const known = cache.get(name);
  if (known) return known;
  const levels = levelsOf(name);
  const found = Uint32Array.from({ length: 256 }, (_, at) => {
    const [red, green, blue] = levels[at]!;
    return pixel(red!, green!, blue!);
  });
  cache.set(name, found);
  return found;
}

export interface Colouring {
  map: MapName;
  scale: Scale;
  low: number;
  high: number;
  /** True to mark values outside of the limits. */
  outside: boolean;
  /** Values that stand for missing ones. */
  missing: number[];
  /** The values at which colours begin, as the server has them, where its logarithms are not those of the browser. */
  exact: Float64Array | null;
}

interface Curve {
  forward: (value: number) => number;
  back: (value: number) => number;
}

/** As matplotlib's scales transform values: of `symlog`, one decade is as wide as the linear part on either side. */
function curve({ scale, low, high }: Colouring): Curve {
  if (scale === "log") return { forward: Math.log10, back: (value) => 10 ** value };
  if (scale === "linear") return { forward: (value) => value, back: (value) => value };
  const unit = Math.max(Math.abs(low), Math.abs(high)) / 1000 || 1;
  const width = 1 / (1 - 1 / 10);
  return {
    forward: (value) => (Math.abs(value) <= unit ? value * width : Math.sign(value) * unit * (width + Math.log(Math.abs(value) / unit) / Math.log(10))),
    back: (value) => (Math.abs(value) <= unit * width ? value / width : Math.sign(value) * unit * 10 ** (Math.abs(value) / unit - width)),
  };
}

/** Limits around a single number. */
function around(value: number): [number, number] {
  const half = Math.max(0.5, Math.abs(value) * 2 ** -20);
  return [value - half, value + half];
}

/** The limits that a scale can have: those of a logarithm are positive. */
export function usable(colouring: Colouring): Colouring {
  let { low, high } = colouring;
  if (colouring.scale === "log") {
    high = high > 0 ? high : 1;
    low = low > 0 && low < high ? low : high / 1000;
  }
  if (!(low < high)) [low, high] = around(low);
  return { ...colouring, low, high };
}

/** The number of the colour of a value between the limits. */
function levelAt({ map, low, high }: Colouring, { forward }: Curve): (value: number) => number {
  const [from, to] = [forward(low), forward(high)];
  const range = to - from;
  return (value) => {
    const part = Number.isFinite(range) ? (forward(value) - from) / range : (forward(value) / 2 - from / 2) / (to / 2 - from / 2);
    return Math.min(255, map === "grey" ? Math.round(part * 255) : Math.floor(part * 256));
  };
}

let latest: { key: string; found: Float64Array } | null = null;

/** The 255 values at which one colour ends and the next begins: each the least number that has the next colour. */
export function thresholds(colouring: Colouring): Float64Array {
  if (colouring.exact) return colouring.exact;
  const { map, scale, low, high } = colouring;
  const key = `${map === "grey"} ${scale} ${low} ${high}`;
  if (latest?.key !== key) latest = { key, found: bisected(colouring) };
  return latest.found;
}

function bisected(colouring: Colouring): Float64Array {
  const { map, low, high } = colouring;
  const scaled = curve(colouring);
  const level = levelAt(colouring, scaled);
  const [from, to] = [scaled.forward(low), scaled.forward(high)];
  const end = order(high) + 1n;
  let least = order(low);
  return Float64Array.from({ length: 255 }, (_, at) => {
    let [start, stop] = [least, end];
    const has = (key: bigint) => level(ordered(key)) > at;
    // The inverse is off by few of the numbers that there are.
    const guess = scaled.back(from + (to - from) * (map === "grey" ? (at + 0.5) / 255 : (at + 1) / 256));
    if (guess > low && guess < high) {
      const [before, after] = [order(guess) - 32n, order(guess) + 32n];
      if (before > start && !has(before)) start = before;
      if (after < stop && after > start && has(after)) stop = after;
    }
    while (start < stop) {
      const middle = start + (stop - start) / 2n;
      if (has(middle)) stop = middle;
      else start = middle + 1n;
    }
    least = start;
    return ordered(start);
  });
}

/** A position between 0 and 1 of a value, for legends. */
export function position(colouring: Colouring, value: number): number {
  const { forward } = curve(colouring);
  const [from, to] = [forward(colouring.low), forward(colouring.high)];
  return (forward(value) - from) / (to - from);
}

/** The value at a position between 0 and 1. */
export function valueAt(colouring: Colouring, at: number): number {
  const { forward, back } = curve(colouring);
  const [from, to] = [forward(colouring.low), forward(colouring.high)];
  return back(from + (to - from) * at);
}

/** The number of thresholds that a value has reached. */
function reached(limits: Float64Array, value: number, guess: number): number {
  let at = guess < 0 ? 0 : guess > 255 ? 255 : guess;
  while (at < 255 && value >= limits[at]!) at++;
  while (at > 0 && value < limits[at - 1]!) at--;
  return at;
}

/**
 * Draws numbers as pixels. What is missing stays transparent. `isAbove` is asked where a number equals the upper limit
 * and may be a larger integer, rounded down.
 */
export function paint(values: ArrayLike<number>, out: Uint32Array, colouring: Colouring, isAbove?: (at: number) => boolean): void {
  const table = colours(colouring.map);
  const limits = thresholds(colouring);
  const { low, high, outside, missing, scale } = colouring;
  const factor = 256 / (high - low);
  const hidden = missing.length ? new Set(missing) : null;
  let last = 128;
  for (let at = 0; at < out.length; at++) {
    const value = values[at]!;
    if (value !== value || hidden?.has(value)) {
      out[at] = value !== value ? 0 : FILL;
    } else if (outside && value < low) {
      out[at] = UNDER;
    } else if (outside && (value > high || (value === high && isAbove?.(at)))) {
      out[at] = OVER;
    } else {
      last = reached(limits, value, scale === "linear" ? Math.floor((value - low) * factor) : last);
      out[at] = table[last]!;
    }
  }
}

export const css = (colour: number) => `rgb(${colour & 255},${(colour >> 8) & 255},${(colour >> 16) & 255})`;

export interface Spread {
  count: number;
  missing: number;
  low: number;
  high: number;
  /** The 2nd and 98th percentile. */
  robust: [number, number];
  mean: number;
  std: number;
  /** 48 bins between `low` and `high`. */
  bins: number[];
}

const BINS = 48;

/** The numbers of which quantiles are found. */
const SAMPLE = 40_000;

/** The distribution of numbers: quantiles of a regular sample where there are many, the rest of all. */
export function spread(parts: ArrayLike<number>[], missing: number[]): Spread | null {
  const hidden = missing.length ? new Set(missing) : null;
  const total = parts.reduce((sum, part) => sum + part.length, 0);
  const step = Math.max(1, Math.ceil(total / SAMPLE));
  const sample = new Float64Array(Math.ceil(total / step));
  let [low, high, sum, squares, count, absent, next, taken] = [Infinity, -Infinity, 0, 0, 0, 0, 0, 0];
  let origin = NaN;
  for (const part of parts)
    for (let at = 0; at < part.length; at++) {
      const value = part[at]!;
      const isDue = next-- <= 0;
      if (value !== value || hidden?.has(value)) absent++;
      else if (value - value === 0) {
        if (count++ === 0) origin = value;
        if (value < low) low = value;
        if (value > high) high = value;
        sum += value - origin;
        squares += (value - origin) ** 2;
        if (isDue && taken < sample.length) [sample[taken++], next] = [value, step - 1];
      }
    }
  if (!count) return null;
  const sorted = sample.subarray(0, taken).sort();
  const quantile = (q: number) => sorted[Math.round(q * (taken - 1))]!;
  const mean = sum / count;
  const bins = new Array<number>(BINS).fill(0);
  for (const value of sorted) bins[Math.min(BINS - 1, Math.floor(((value - low) / (high - low || 1)) * BINS))]!++;
  return { count, missing: absent, low, high, robust: [quantile(0.02), quantile(0.98)], mean: origin + mean, std: Math.sqrt(Math.max(0, squares / count - mean * mean)), bins };
}

/** Limits for a distribution. Those of a diverging map are symmetric. */
export function limitsFor(found: Spread, mode: "robust" | "full", symmetric: boolean): [number, number] {
  let [low, high] = mode === "full" ? [found.low, found.high] : found.robust;
  if (!(low < high)) [low, high] = [found.low, found.high];
  if (symmetric && low < 0 && high > 0) {
    const size = Math.max(-low, high);
    [low, high] = [-size, size];
  }
  return low < high ? [low, high] : around(low);
}
