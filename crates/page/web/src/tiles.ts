/** Tiles of a plane: chunk-aligned windows, thinned out by powers of two. */

import * as api from "./api";
import { drawn, elementText, sizeOf, type Elements, type Part } from "./elements";
import { dimensionKey, type ArrayNode } from "./node";
import { channelOf, reduction, selection, type Box, type View } from "./view";

/** The extent of a tile on the screen, in samples: where little is read for each, and where more is. */
const EXTENTS = [512, 256] as const;
/** A view that decodes more than this, in bytes, is read on request only. */
export const AUTOMATIC_WORK = 512 << 20;
/** The bytes that a first window decodes. */
const WINDOW_WORK = 48 << 20;
/** The bytes of all tiles that are kept. */
const MAX_KEPT = 96 << 20;

/** Intervals along one dimension that begin and end with chunks, or divide them evenly. */
export class Axis {
  readonly #perChunk: number;
  readonly #width: number;
  /** The chunks in one interval. */
  readonly #chunks: number;

  constructor(
    readonly length: number,
    readonly chunk: number,
    readonly step: number,
    extent: number,
  ) {
    const target = extent * step;
    this.#perChunk = chunk > target ? Math.ceil(chunk / target) : 1;
    this.#chunks = Math.max(1, Math.round(target / chunk));
    // Parts of a chunk begin at multiples of the step.
    this.#width = this.#perChunk > 1 ? Math.ceil(chunk / this.#perChunk / step) * step : chunk * this.#chunks;
  }

  /** The number of the interval that contains an element. */
  at(element: number): number {
    if (this.#perChunk === 1) return Math.floor(element / this.#width);
    const chunk = Math.floor(element / this.chunk);
    return chunk * this.#perChunk + Math.min(this.#perChunk - 1, Math.floor((element - chunk * this.chunk) / this.#width));
  }

  range(interval: number): [number, number] {
    if (this.#perChunk === 1) return [interval * this.#width, Math.min(this.length, (interval + 1) * this.#width)];
    const chunk = Math.floor(interval / this.#perChunk);
    const end = Math.min(this.length, (chunk + 1) * this.chunk);
    const start = chunk * this.chunk + (interval % this.#perChunk) * this.#width;
    return [start, Math.min(end, start + this.#width)];
  }
}

/** The array that is read for a tile, and the elements that one of its elements stands for. */
export interface Source {
  array: ArrayNode;
  x: number;
  y: number;
}

/** The coarsest level that has as many elements as are drawn, where one of them is enough; else the array itself. */
export function sourceOf(array: ArrayNode, view: View, stepX: number, stepY: number): Source {
  const found = { array, x: 1, y: 1 };
  if (thinningOf(array, view) !== "nearest" || view.over.length || array.isPacked) return found;
  for (const level of array.levels ?? []) {
    const factor = (at: number) => Math.round(array.shape[at]! / level.shape[at]!);
    const [x, y] = [factor(view.x), factor(view.y)];
    const fits = array.shape.every((length, at) => (at === view.x || at === view.y ? Math.abs(length / factor(at) - level.shape[at]!) < 1 : length === level.shape[at]));
    if (fits && stepX % x === 0 && stepY % y === 0 && x * y > found.x * found.y) Object.assign(found, { array: level, x, y });
  }
  return found;
}

export interface Tile {
  source: Source;
  key: string;
  plane: string;
  stepX: number;
  stepY: number;
  x: [number, number];
  y: [number, number];
  /** The samples across and downwards. */
  columns: number;
  rows: number;
  elements: Elements | null;
  /** The numbers to draw, row by row; of colours, the channels of each pixel. */
  numbers: ArrayLike<number> | null;
  canvas: OffscreenCanvas | null;
  painted: string;
  used: number;
  cost: api.Cost | null;
  thinning: api.Thinning;
  error: Error | null;
  index: (row: number, column: number, channel?: number) => number;
  channels: number;
}

/** What the tiles of a view have in common. */
export function planeOf(array: ArrayNode, view: View, version: string): string {
  const fixed = view.at.map((index, at) => (at === view.x || at === view.y || view.over.includes(at) ? "" : index));
  return [array.path, version, view.kind === "rgb", view.x, view.y, fixed, view.part, view.decode ?? "", view.thinning, view.over.length ? `${view.by} ${view.over}` : ""].join("|");
}

/** The bytes that reading a region of a plane decodes. */
export function work(full: ArrayNode, view: View, edges: Box, { array, x, y }: Source = { array: full, x: 1, y: 1 }): number {
  const box: Box = [edges[0] / x, edges[1] / x, edges[2] / y, edges[3] / y];
  const whole = (at: number, from: number, to: number) => {
    const chunk = Math.min(array.chunks[at]!, array.shape[at]!);
    return (Math.ceil(Math.min(to, array.shape[at]!) / chunk) - Math.floor(Math.max(0, from) / chunk)) * chunk;
  };
  return array.shape.reduce((product, length, at) => {
    if (at === view.x) return product * Math.max(1, whole(at, box[0], box[1]));
    if (at === view.y) return product * Math.max(1, whole(at, box[2], box[3]));
    if (view.over.includes(at)) return product * Math.max(1, whole(at, 0, length));
    return product * Math.min(array.chunks[at]!, Math.max(1, length));
  }, sizeOf(array.dataType));
}

/** All of a plane, or a first window of chunks where all of it would take too long. */
export function firstBox(array: ArrayNode, view: View): { box: Box; isWindow: boolean } {
  const [nx, ny] = [array.shape[view.x] ?? 1, view.y < 0 ? 1 : (array.shape[view.y] ?? 1)];
  const all: Box = [0, nx, 0, ny];
  // A screen has a thousand pixels or so.
  const step = (length: number) => 2 ** Math.max(0, Math.floor(Math.log2(length / 1000)));
  if (work(array, view, all, view.y < 0 ? undefined : sourceOf(array, view, step(nx), step(ny))) <= AUTOMATIC_WORK) return { box: all, isWindow: false };
  let box: Box = [0, Math.min(nx, array.chunks[view.x]!), 0, Math.min(ny, array.chunks[view.y]!)];
  for (;;) {
    const [wide, tall] = [box[1] < nx && (box[1] <= box[3] || box[3] >= ny), box[3] < ny];
    const next: Box = wide ? [0, Math.min(nx, box[1] * 2), 0, box[3]] : [0, box[1], 0, tall ? Math.min(ny, box[3] * 2) : box[3]];
    if ((!wide && !tall) || work(array, view, next) > WINDOW_WORK) return { box, isWindow: true };
    box = next;
  }
}

export class Tiles {
  readonly #kept = new Map<string, Tile>();
  readonly #running = new Map<string, { abort: AbortController; tile: Tile }>();
  #wanted: Tile[] = [];
  /** The extents of a tile, in samples, as far as the server has not asked for smaller ones. */
  #extents: [number, number] = [EXTENTS[0], EXTENTS[0]];
  #bytes = 0;
  #clock = 0;

  constructor(private readonly changed: (tile: Tile) => void) {}

  /** The tiles of a level that a box touches, those in the middle first. */
  #level(array: ArrayNode, view: View, plane: string, box: Box, stepX: number, stepY: number): Tile[] {
    const source = sourceOf(array, view, stepX, stepY);
    // Tiles have at most four thirds of the extent, and numbers that are computed 8 bytes: no answer is above its limit.
    const sample = sizeOf(array.dataType) * (view.kind === "rgb" ? array.shape[channelOf(array)]! : 1);
    const most = EXTENTS[sample > 8 || stepX * stepY > 4 ? 1 : 0]!;
    const axis = (at: number, step: number, extent: number) => new Axis(source.array.shape[at]!, source.array.chunks[at]!, step, Math.min(extent, most));
    const [axisX, axisY] = [axis(view.x, stepX / source.x, this.#extents[0]), axis(view.y, stepY / source.y, this.#extents[1])];
    const clip = (value: number, axis: Axis, factor: number) => axis.at(Math.min(axis.length - 1, Math.max(0, Math.floor(value / factor))));
    const range = (interval: number, axis: Axis, at: number, factor: number): [number, number] => {
      const [from, to] = axis.range(interval);
      return [from * factor, to >= axis.length ? array.shape[at]! : to * factor];
    };
    const found: Tile[] = [];
    const [x0, x1, y0, y1] = [clip(box[0], axisX, source.x), clip(Math.ceil(box[1]) - 1, axisX, source.x), clip(box[2], axisY, source.y), clip(Math.ceil(box[3]) - 1, axisY, source.y)];
    for (let j = y0; j <= y1 && found.length < 4096; j++)
      for (let i = x0; i <= x1 && found.length < 4096; i++) {
        const [x, y] = [range(i, axisX, view.x, source.x), range(j, axisY, view.y, source.y)];
        if (x[0] >= x[1] || y[0] >= y[1]) continue;
        const key = `${plane}|${source.array.path}|${stepX},${stepY}|${x},${y}`;
        found.push(this.#kept.get(key) ?? this.#coming(key) ?? blank(key, plane, source, stepX, stepY, x, y));
      }
    const [cx, cy] = [(box[0] + box[1]) / 2, (box[2] + box[3]) / 2];
    const distance = (tile: Tile) => Math.abs((tile.x[0] + tile.x[1]) / 2 - cx) / (box[1] - box[0]) + Math.abs((tile.y[0] + tile.y[1]) / 2 - cy) / (box[3] - box[2]);
    return found.sort((a, b) => distance(a) - distance(b));
  }

  /** A tile that is being read. */
  #coming(key: string): Tile | undefined {
    const running = this.#running.get(key);
    return running && !running.abort.signal.aborted ? running.tile : undefined;
  }

  /** Sets what is to be seen. Requests for anything else are aborted. Returns the tiles. */
  show(array: ArrayNode, view: View, plane: string, box: Box, stepX: number, stepY: number): Tile[] {
    const tiles = this.#level(array, view, plane, box, stepX, stepY);
    const keys = new Set(tiles.map((tile) => tile.key));
    for (const [key, { abort }] of this.#running) if (!keys.has(key)) abort.abort();
    for (const tile of tiles) tile.used = ++this.#clock;
    this.#wanted = tiles.filter((tile) => !tile.numbers && !tile.error && !this.#coming(tile.key));
    this.#next(array, view);
    return tiles;
  }

  /** The tiles at hand that can be drawn: the coarse ones first. */
  drawable(plane: string): Tile[] {
    const found = [...this.#kept.values()].filter((tile) => tile.numbers && tile.plane === plane);
    return found.sort((a, b) => b.stepX * b.stepY - a.stepX * a.stepY);
  }

  get isLoading(): boolean {
    return this.#running.size > 0 || this.#wanted.length > 0;
  }

  /** Makes tiles no larger than so many samples, and forgets errors. */
  narrow(columns: number, rows: number): void {
    const least = (extent: number, samples: number) => Math.max(1, Math.min(extent, samples));
    this.#extents = [least(this.#extents[0], columns), least(this.#extents[1], rows)];
    for (const [key, tile] of this.#kept) if (tile.error) this.#kept.delete(key);
  }

  stop(): void {
    this.#wanted = [];
    for (const { abort } of this.#running.values()) abort.abort();
  }

  #next(array: ArrayNode, view: View): void {
    while (this.#running.size < 5 && this.#wanted.length) {
      const tile = this.#wanted.shift()!;
      const abort = new AbortController();
      this.#running.set(tile.key, { abort, tile });
      void load(array, view, tile, abort.signal)
        .then(() => this.#keep(tile))
        .catch((error: unknown) => {
          if (abort.signal.aborted) return;
          tile.error = error instanceof Error ? error : new Error(String(error));
          this.#kept.set(tile.key, tile);
        })
        .finally(() => {
          if (this.#running.get(tile.key)?.tile === tile) this.#running.delete(tile.key);
          if (abort.signal.aborted) return;
          this.changed(tile);
          this.#next(array, view);
        });
    }
  }

  #keep(tile: Tile): void {
    this.#kept.set(tile.key, tile);
    tile.used = ++this.#clock;
    this.#bytes += weight(tile);
    if (this.#bytes <= MAX_KEPT) return;
    for (const old of [...this.#kept.values()].sort((a, b) => a.used - b.used)) {
      if (this.#bytes <= MAX_KEPT * 0.75 || old === tile) break;
      this.#kept.delete(old.key);
      this.#bytes -= weight(old);
    }
  }
}

const weight = (tile: Tile) => (tile.elements?.words.byteLength ?? 0) * (tile.numbers === tile.elements?.words ? 1 : 2) + tile.columns * tile.rows * 4;

/** The elements of its source that a tile has. */
const extent = (source: Source, [from, to]: [number, number], factor: number, at: number): [number, number] => [from / factor, Math.min(source.array.shape[at] ?? Infinity, Math.ceil(to / factor))];

function blank(key: string, plane: string, source: Source, stepX: number, stepY: number, x: [number, number], y: [number, number]): Tile {
  return { key, plane, source, stepX, stepY, x, y, columns: 0, rows: 0, elements: null, numbers: null, canvas: null, painted: "", used: 0, cost: null, thinning: "nearest", error: null, index: () => 0, channels: 1 };
}

/** Windows over packed elements that are not decoded would take markers of missing ones for numbers. */
export const thinningOf = (array: ArrayNode, view: View) => (array.isPacked && !view.decode ? "nearest" : view.thinning);

async function load(full: ArrayNode, view: View, tile: Tile, signal: AbortSignal): Promise<void> {
  const { source } = tile;
  const { array } = source;
  const [stepX, stepY] = [tile.stepX / source.x, tile.stepY / source.y];
  const [x, y] = [extent(source, tile.x, source.x, view.x), extent(source, tile.y, source.y, view.y)];
  const samples = ([from, to]: [number, number], step: number) => Math.ceil((to - from) / step);
  [tile.columns, tile.rows] = [samples(x, stepX), samples(y, stepY)];
  const ranges = new Map([
    [view.x, `${x[0]}:${x[1]}`],
    [view.y, `${y[0]}:${y[1]}`],
  ]);
  const channel = view.kind === "rgb" ? channelOf(array) : -1;
  if (channel >= 0) ranges.set(channel, ":");
  const step = (at: number, size: number) => ({ position: at, dimension: dimensionKey(array, at), size });
  const steps = [step(view.x, stepX), step(view.y, stepY)];
  const window = { select: selection(view, array, ranges), steps, thinning: thinningOf(full, view), decode: view.decode, reduce: reduction(view, array) };
  const found = await api.thinned(array.path, window, signal);
  const extents = [view.x, view.y].sort((a, b) => a - b).map((at) => (at === view.x ? tile.columns : tile.rows));
  if (String(found.shape.filter((_, at) => at !== channelAt(array, view, channel))) !== String(extents)) throw new api.Changed();
  arrange(array, view, tile, found, channel);
  tile.cost = found.cost;
  tile.thinning = found.thinning;
}

/** The dimension of colours in an answer, or -1. */
const channelAt = (array: ArrayNode, view: View, channel: number) => array.shape.map((_, at) => at).filter((at) => [view.x, view.y, channel].includes(at)).indexOf(channel);

/** Brings the elements into the order of the screen. */
function arrange(array: ArrayNode, view: View, tile: Tile, found: Elements, channel: number): void {
  const kept = array.shape.map((_, at) => at).filter((at) => at === view.x || at === view.y || at === channel);
  const strides = kept.map((_, at) => found.shape.slice(at + 1).reduce((product, length) => product * length, 1));
  const stride = (at: number) => strides[kept.indexOf(at)] ?? 0;
  const [sx, sy, sc] = [stride(view.x), stride(view.y), stride(channel)];
  tile.columns = found.shape[kept.indexOf(view.x)] ?? tile.columns;
  tile.rows = found.shape[kept.indexOf(view.y)] ?? tile.rows;
  const numbers = drawn(found, view.part as Part);
  const channels = channel < 0 ? 1 : (found.shape[kept.indexOf(channel)] ?? 1);
  tile.elements = found;
  tile.index = (row, column, channel = 0) => row * sy + column * sx + channel * sc;
  tile.channels = channels;
  if (sx === channels && sy === tile.columns * channels && (channels === 1 || sc === 1)) {
    tile.numbers = numbers;
    return;
  }
  const out = new Float64Array(tile.columns * tile.rows * channels);
  for (let row = 0, at = 0; row < tile.rows; row++)
    for (let column = 0; column < tile.columns; column++)
      for (let c = 0; c < channels; c++, at++) out[at] = numbers[row * sy + column * sx + c * sc]!;
  tile.numbers = out;
}

/** The text of a sample, and the first element it stands for. */
export function sampleAt(tile: Tile, x: number, y: number): { text: string; x: number; y: number; number: number } | null {
  const column = Math.floor((x - tile.x[0]) / tile.stepX);
  const row = Math.floor((y - tile.y[0]) / tile.stepY);
  if (!tile.elements || column < 0 || row < 0 || column >= tile.columns || row >= tile.rows) return null;
  const number = tile.numbers && tile.numbers.length === tile.columns * tile.rows ? tile.numbers[row * tile.columns + column]! : NaN;
  const text = Array.from({ length: tile.channels }, (_, channel) => elementText(tile.elements!, tile.index(row, column, channel))).join(", ");
  return { text, x: tile.x[0] + column * tile.stepX, y: tile.y[0] + row * tile.stepY, number };
}
