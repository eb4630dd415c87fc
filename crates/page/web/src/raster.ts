/** A plane on a canvas: tiles, and the pointer, wheel, fingers and keys that move it. */

import type { Cost } from "./api";
import { paint, type Colouring } from "./colour";
import type { ArrayNode } from "./node";
import { AUTOMATIC_WORK, planeOf, sampleAt, sourceOf, Tiles, work, type Tile } from "./tiles";
import type { Box, View } from "./view";

export interface Probe {
  x: number;
  y: number;
  text: string | null;
  /** True if the text is of another element nearby, since the picture is thinned out. */
  isSample: boolean;
}

export interface Status {
  loading: boolean;
  tiles: number;
  of: number;
  bytes: number;
  milliseconds: number;
  chunks: number;
  storedBytes: number | null;
  step: [number, number];
  /** The level that is read instead of the array. */
  level: string | null;
  /** True if the elements are thinned out otherwise than asked for. */
  isNearest: boolean;
  error: Error | null;
  /** The bytes that would be decoded, if that is too much to begin unasked. */
  work: number | null;
}

export interface Events {
  box(box: Box): void;
  probe(probe: Probe | null): void;
  pin(x: number, y: number): void;
  status(status: Status): void;
  /** The numbers on the screen; `complete` once all of them have arrived. */
  numbers(parts: ArrayLike<number>[], complete: boolean): void;
  drawn(): void;
}

/** The largest size of an element on the screen. */
const MAX_SCALE = 96;

export class Raster {
  #array!: ArrayNode;
  #view!: View;
  #box: Box = [0, 1, 0, 1];
  #colouring: Colouring | null = null;
  #flip = false;
  #previous: string | null = null;
  #plane = "";
  #level: Tile[] = [];
  #approved = "";
  /** The tiles whose numbers were told, whether more were missing, and the status that was told. */
  #told = "";
  #isUnsettled = true;
  #reported = "";
  /** What is on the canvas. */
  #drawing = "";
  #telling: ReturnType<typeof setTimeout> | undefined;
  #frame = 0;
  #pointers = new Map<number, { x: number; y: number }>();
  #moved = 0;
  readonly #tiles = new Tiles((tile) => this.#arrived(tile));
  readonly #observer: ResizeObserver;
  readonly #abort = new AbortController();

  constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly events: Events,
  ) {
    this.#observer = new ResizeObserver(() => this.#resize());
    this.#observer.observe(canvas);
    const options = { signal: this.#abort.signal, passive: false };
    canvas.addEventListener("wheel", (event) => this.#wheel(event), options);
    canvas.addEventListener("pointerdown", (event) => this.#down(event), options);
    canvas.addEventListener("pointermove", (event) => this.#move(event), options);
    for (const end of ["pointerup", "pointercancel"] as const) canvas.addEventListener(end, (event) => this.#up(event), options);
    canvas.addEventListener("pointerleave", () => this.events.probe(null), options);
    canvas.addEventListener("dblclick", (event) => (event.preventDefault(), this.zoom(event.shiftKey ? 2 : 0.5, event.offsetX, event.offsetY)), options);
    canvas.addEventListener("keydown", (event) => this.#key(event), options);
  }

  destroy(): void {
    this.#observer.disconnect();
    this.#abort.abort();
    this.#tiles.stop();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#telling);
  }

  show(array: ArrayNode, view: View, box: Box, flip: boolean, version: string): void {
    const plane = planeOf(array, view, version);
    if (plane !== this.#plane) {
      // The old picture stays until the new one arrives, unless it is of other axes.
      const isSame = this.#array?.path === array.path && this.#view?.x === view.x && this.#view?.y === view.y && this.#view?.kind === view.kind;
      this.#previous = isSame ? this.#plane : null;
      this.#plane = plane;
    }
    [this.#array, this.#view, this.#box, this.#flip] = [array, view, box, flip];
    this.#request();
  }

  colour(colouring: Colouring | null): void {
    this.#colouring = colouring;
    this.#redraw();
  }

  /** Tells the numbers on the screen once more. */
  retell(): void {
    this.#told = "";
    if (this.#array) this.#tellNumbers();
  }

  /** Reads what is on the screen, whatever it takes. */
  approve(): void {
    this.#approved = `${this.#plane}|${this.#box}`;
    this.#request();
  }

  /** Reads in parts of at most so many elements, as far as elements are drawn one by one. */
  narrow(columns: number, rows: number): void {
    const [first] = this.#level;
    this.#tiles.narrow(Math.ceil(columns / (first?.stepX ?? 1)), Math.ceil(rows / (first?.stepY ?? 1)));
    this.#request();
  }

  get #size(): [number, number] {
    return [this.canvas.clientWidth || 1, this.canvas.clientHeight || 1];
  }

  #resize(): void {
    const [width, height] = this.#size;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      [this.canvas.width, this.canvas.height] = [w, h];
      this.#drawing = "";
    }
    if (this.#array) this.#request();
  }

  #request(): void {
    if (!this.#array || !this.canvas.width || this.#view.x < 0 || this.#view.y < 0) return;
    const box = this.#box;
    const step = (span: number, pixels: number) => 2 ** Math.max(0, Math.floor(Math.log2(span / pixels) + 0.35));
    const stepX = step(box[1] - box[0], this.canvas.width);
    const stepY = step(box[3] - box[2], this.canvas.height);
    const needed = work(this.#array, this.#view, box, sourceOf(this.#array, this.#view, stepX, stepY));
    if (needed > AUTOMATIC_WORK && this.#approved !== `${this.#plane}|${box}`) {
      this.#tiles.stop();
      this.#level = [];
      this.#redraw();
      this.#report(needed);
      return;
    }
    this.#level = this.#tiles.show(this.#array, this.#view, this.#plane, box, stepX, stepY);
    this.#redraw();
    this.#report(null);
    this.#tellNumbers();
  }

  #arrived(tile: Tile): void {
    // Colours are found while the screen is not due yet.
    if (tile.plane === this.#plane) this.#painted(tile);
    // Drawn tiles are those kept, which may be others than those that were asked for before.
    this.#redraw();
    this.#report(null);
    this.#tellNumbers();
  }

  #tellNumbers(): void {
    const parts = this.#level.flatMap((tile) => (tile.numbers ? [tile.numbers] : []));
    const complete = this.#level.length > 0 && this.#level.every((tile) => tile.numbers || tile.error);
    if (complete) this.#previous = null;
    const told = `${this.#level.filter((tile) => tile.numbers).map((tile) => tile.key)}`;
    if (!parts.length || (told === this.#told && !this.#isUnsettled)) return;
    this.#told = told;
    this.#isUnsettled = !complete;
    if (!this.#colouring) return this.events.numbers(parts, complete);
    clearTimeout(this.#telling);
    this.#telling = setTimeout(() => this.events.numbers(parts, complete), 30);
  }

  #report(needed: number | null): void {
    const sum = (pick: (tile: Tile) => number) => this.#level.reduce((total, tile) => total + pick(tile), 0);
    const first = this.#level[0];
    const done = this.#level.filter((tile) => tile.numbers || tile.error);
    const status: Status = {
      loading: needed === null && done.length < this.#level.length,
      tiles: done.length,
      of: this.#level.length,
      bytes: sum((tile) => tile.cost?.bytes ?? 0),
      milliseconds: elapsed(this.#level.flatMap((tile) => tile.cost ?? [])),
      chunks: sum((tile) => tile.cost?.chunks ?? 0),
      storedBytes: this.#level.some((tile) => tile.cost?.storedBytes === null) ? null : sum((tile) => tile.cost?.storedBytes ?? 0),
      step: [first?.stepX ?? 1, first?.stepY ?? 1],
      level: first && first.source.array.path !== this.#array.path ? `${first.source.array.name}, ${first.source.x} × ${first.source.y} times coarser` : null,
      isNearest: this.#level.some((tile) => tile.numbers && tile.thinning !== this.#view.thinning),
      error: this.#level.find((tile) => tile.error)?.error ?? null,
      work: needed,
    };
    const reported = JSON.stringify({ ...status, error: status.error?.message });
    if (reported === this.#reported) return;
    this.#reported = reported;
    this.events.status(status);
  }

  #redraw(): void {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#draw()) this.events.drawn();
    });
  }

  /** Draws what is at hand, unless that is on the canvas already. */
  #draw(): boolean {
    const context = this.canvas.getContext("2d");
    if (!context || !this.#array) return false;
    const { width, height } = this.canvas;
    const [x0, x1, y0, y1] = this.#box;
    const [scaleX, scaleY] = [width / (x1 - x0), height / (y1 - y0)];
    const planes = this.#previous ? [this.#previous, this.#plane] : [this.#plane];
    const layers = planes.flatMap((plane) => this.#tiles.drawable(plane)).flatMap((tile) => {
      const [left, right] = tile.x.map((edge) => Math.round((edge - x0) * scaleX)) as [number, number];
      const [top, low] = tile.y.map((edge) => Math.round((edge - y0) * scaleY)) as [number, number];
      if (right <= 0 || left >= width || low <= 0 || top >= height) return [];
      const source = this.#painted(tile);
      return source ? [{ tile, source, left, right, top, low }] : [];
    });
    const drawing = `${width},${height},${this.#box},${this.#flip} ${layers.map(({ tile }) => tile.key + tile.painted).join(" ")}`;
    if (drawing === this.#drawing) return false;
    this.#drawing = drawing;
    context.clearRect(0, 0, width, height);
    context.imageSmoothingEnabled = false;
    if (this.#flip) context.setTransform(1, 0, 0, -1, 0, height);
    for (const { tile, source, left, right, top, low } of layers) {
      context.save();
      // The last samples may stand for elements beyond the tile.
      context.beginPath();
      context.rect(left, top, right - left, low - top);
      context.clip();
      context.clearRect(left, top, right - left, low - top);
      const [w, h] = [Math.round((tile.x[0] + tile.columns * tile.stepX - x0) * scaleX) - left, Math.round((tile.y[0] + tile.rows * tile.stepY - y0) * scaleY) - top];
      context.drawImage(source, left, top, w, h);
      context.restore();
    }
    context.resetTransform();
    return true;
  }

  /** The pixels of a tile in the current colours. */
  #painted(tile: Tile): OffscreenCanvas | null {
    if (!tile.numbers || !tile.columns || !tile.rows) return null;
    const isColour = this.#view.kind === "rgb";
    if (!this.#colouring) return tile.canvas;
    const { low, high } = this.#colouring;
    const key = isColour ? `rgb ${low} ${high}` : JSON.stringify({ ...this.#colouring, exact: !!this.#colouring?.exact });
    if (tile.canvas && tile.painted === key) return tile.canvas;
    tile.canvas ??= new OffscreenCanvas(tile.columns, tile.rows);
    const image = new ImageData(tile.columns, tile.rows);
    const pixels = new Uint32Array(image.data.buffer);
    if (isColour) paintColours(tile, image.data, low, high);
    else paint(tile.numbers, pixels, this.#colouring, largeIntegers(tile, high));
    tile.canvas.getContext("2d")?.putImageData(image, 0, 0);
    tile.painted = key;
    return tile.canvas;
  }

  /** The element below a point of the canvas. */
  elementAt(px: number, py: number): { x: number; y: number } {
    const [width, height] = this.#size;
    const [x0, x1, y0, y1] = this.#box;
    const down = this.#flip ? height - py : py;
    return { x: x0 + (px / width) * (x1 - x0), y: y0 + (down / height) * (y1 - y0) };
  }

  probeAt(px: number, py: number): Probe | null {
    const { x, y } = this.elementAt(px, py);
    const [nx, ny] = [this.#array.shape[this.#view.x]!, this.#array.shape[this.#view.y]!];
    if (!(x >= 0 && y >= 0 && x < nx && y < ny)) return null;
    const [column, row] = [Math.floor(x), Math.floor(y)];
    for (const tile of this.#tiles.drawable(this.#plane).reverse()) {
      const sample = sampleAt(tile, column, row);
      if (!sample || column >= tile.x[1] || row >= tile.y[1]) continue;
      return { x: column, y: row, text: sample.text, isSample: tile.stepX > 1 || tile.stepY > 1 };
    }
    return { x: column, y: row, text: null, isSample: false };
  }

  #setBox(box: Box): void {
    const limit = (from: number, to: number, length: number): [number, number] => {
      let span = to - from;
      // Half a view of nothing may be seen at each side.
      const most = length * 1.25;
      if (span > most) {
        const middle = (from + to) / 2;
        [from, to] = [middle - most / 2, middle + most / 2];
        span = most;
      }
      const shift = Math.min(length - span / 2, Math.max(-span / 2, from)) - from;
      return [from + shift, to + shift];
    };
    const [width, height] = this.#size;
    const isTooNear = width / (box[1] - box[0]) > MAX_SCALE && height / (box[3] - box[2]) > MAX_SCALE;
    if (isTooNear && box[1] - box[0] < this.#box[1] - this.#box[0]) return;
    const [nx, ny] = [this.#array.shape[this.#view.x]!, this.#array.shape[this.#view.y]!];
    this.#box = [...limit(box[0], box[1], nx), ...limit(box[2], box[3], ny)];
    this.#request();
    this.events.box(this.#box);
  }

  zoom(factor: number, px?: number, py?: number): void {
    const [width, height] = this.#size;
    const { x, y } = this.elementAt(px ?? width / 2, py ?? height / 2);
    const [x0, x1, y0, y1] = this.#box;
    this.#setBox([x + (x0 - x) * factor, x + (x1 - x) * factor, y + (y0 - y) * factor, y + (y1 - y) * factor]);
  }

  #pan(dx: number, dy: number): void {
    const [width, height] = this.#size;
    const [x0, x1, y0, y1] = this.#box;
    const [sx, sy] = [(dx / width) * (x1 - x0), (dy / height) * (y1 - y0) * (this.#flip ? -1 : 1)];
    this.#setBox([x0 - sx, x1 - sx, y0 - sy, y1 - sy]);
  }

  #wheel(event: WheelEvent): void {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 100 : 1;
    this.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY * lines)) * 0.0025), event.offsetX, event.offsetY);
  }

  #down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.#moved = 0;
  }

  #move(event: PointerEvent): void {
    const before = this.#pointers.get(event.pointerId);
    const now = { x: event.offsetX, y: event.offsetY };
    if (!before) return this.events.probe(this.probeAt(now.x, now.y));
    this.#moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.#pointers.set(event.pointerId, now);
    if (!other) {
      if (this.#moved > 3) this.#pan(now.x - before.x, now.y - before.y);
      return;
    }
    const apart = (point: { x: number; y: number }) => Math.hypot(point.x - other.x, point.y - other.y) || 1;
    this.zoom(apart(before) / apart(now), (now.x + other.x) / 2, (now.y + other.y) / 2);
    this.#pan((now.x - before.x) / 2, (now.y - before.y) / 2);
  }

  #up(event: PointerEvent): void {
    const point = this.#pointers.get(event.pointerId);
    this.#pointers.delete(event.pointerId);
    if (!point || this.#moved > 3 || event.type === "pointercancel") return;
    const probe = this.probeAt(point.x, point.y);
    this.events.probe(probe);
    if (probe) this.events.pin(probe.x, probe.y);
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [width, height] = this.#size;
    const far = event.shiftKey ? 0.5 : 0.1;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.#pan(width * far, 0),
      ArrowRight: () => this.#pan(-width * far, 0),
      ArrowUp: () => this.#pan(0, height * far),
      ArrowDown: () => this.#pan(0, -height * far),
      "+": () => this.zoom(1 / 1.5),
      "=": () => this.zoom(1 / 1.5),
      "-": () => this.zoom(1.5),
      Enter: () => {
        const probe = this.probeAt(width / 2, height / 2);
        if (probe) (this.events.probe(probe), this.events.pin(probe.x, probe.y));
      },
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

/** The time in which tiles were read, from the first request to the last answer that belong together. */
function elapsed(costs: Cost[]): number {
  const sorted = [...costs].sort((a, b) => a.started - b.started);
  let [total, end] = [0, -Infinity];
  for (const { started, milliseconds } of sorted) {
    total += Math.max(0, started + milliseconds - Math.max(end, started));
    end = Math.max(end, started + milliseconds);
  }
  return total;
}

/** Tells which integers are above a limit that they were rounded down to. */
function largeIntegers({ elements, columns, index }: Tile, high: number): ((at: number) => boolean) | undefined {
  const words = elements?.words;
  if (!(words instanceof BigInt64Array || words instanceof BigUint64Array)) return undefined;
  return (at) => words[index(Math.floor(at / columns), at % columns)]! > BigInt(high);
}

/** Draws channels between two limits, and opacity by the range of its type. */
function paintColours(tile: Tile, out: Uint8ClampedArray, low: number, high: number): void {
  const numbers = tile.numbers!;
  const { channels } = tile;
  const type = tile.elements?.type ?? "";
  const opacity = /float/.test(type) ? 255 : /16/.test(type) ? 255 / 65535 : 1;
  const factor = 255 / (high - low);
  for (let at = 0; at < tile.columns * tile.rows; at++) {
    for (let c = 0; c < 3; c++) out[4 * at + c] = (numbers[at * channels + c]! - low) * factor;
    out[4 * at + 3] = channels > 3 ? numbers[at * channels + 3]! * opacity : 255;
  }
}
