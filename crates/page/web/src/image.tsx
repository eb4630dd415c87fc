import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { colours, css, FILL, limitsFor, OVER, paint, position, spread, UNDER, usable, valueAt, type Colouring, type MapName, type Spread } from "./colour";
import { isAscending, numberOf, textOf, type Coordinate } from "./coordinates";
import { thresholds, undecodable, type ChunkMap } from "./api";
import { integer, labels, number, ticks } from "./format";
import { useAsync, useSize } from "./hooks";
import { missingPath } from "./lens";
import { named, widthOf } from "./line";
import { axisName, channelOf, shownUnits, type Box, type View } from "./view";
import { Raster, type Probe, type Status } from "./raster";
import { firstBox } from "./tiles";
import { flagsOf, type ArrayNode } from "./node";
import { Name } from "./parts";

/** Above this ratio of extents, the two axes have scales of their own. */
const MAX_RATIO = 12;
/** The time after which a picture that was moved rests, in milliseconds. */
const REST = 120;

/** True if elements are levels of a screen's colours. */
export const isByte = ({ dataType }: ArrayNode) => /^(uint8|\|u1)$/.test(dataType);

export function missingOf(array: ArrayNode, view: View): number[] {
  if (view.decode && !undecodable.has(array.path)) return [];
  return ["_FillValue", "missing_value"].flatMap((name) => {
    const value = array.attributes[name];
    return (Array.isArray(value) ? value : [value]).filter((item) => typeof item === "number") as number[];
  });
}

/** The colours of a view, once limits are known. The map that suits follows from the limits alone. */
export function colouringOf(array: ArrayNode, view: View, low: number, high: number): Colouring {
  const diverges = low < 0 && low === -high && array.kind !== "bool";
  const automatic: MapName = array.kind === "complex" && view.part === "phase" ? "phase" : diverges ? "RdBu_r" : "viridis";
  const map = view.map === "auto" ? automatic : view.map;
  return usable({ map, scale: view.scale, low, high, outside: view.outside, missing: missingOf(array, view), exact: null });
}

/** Limits that suit a distribution. Temperatures in Celsius have no zero that means something. */
export function suitableLimits(array: ArrayNode, view: View, found: Spread): [number, number] {
  if (array.kind === "bool") return [0, 1];
  if (view.kind === "rgb") return isByte(array) ? [0, 255] : /f/.test(array.dataType) && found.low >= 0 && found.high <= 1 ? [0, 1] : limitsFor(found, view.limits === "full" ? "full" : "robust", false);
  const flags = view.over.length ? [] : flagsOf(array).map(({ value }) => value);
  if (flags.length > 1) return [Math.min(...flags), Math.max(...flags)];
  if (array.kind === "complex" && view.part === "phase") return [-Math.PI, Math.PI];
  const mode = view.limits === "full" ? "full" : "robust";
  const [low, high] = limitsFor(found, mode, false);
  const hasZero = !/^(deg(rees?)?_?C|°C|celsius)$/i.test(String(array.attributes["units"] ?? ""));
  const crosses = low < 0 && high > 0 && Math.min(-low, high) > 0.1 * Math.max(-low, high);
  return limitsFor(found, mode, view.map === "RdBu" || view.map === "RdBu_r" || (view.map === "auto" && hasZero && crosses && view.scale !== "log"));
}

/** True if larger indices are above smaller ones: north is on top. */
export function isFlipped(coordinates: (Coordinate | null)[], view: View): boolean {
  const northing = coordinates[view.y];
  return !!northing?.isNorthing && isAscending(northing);
}

const BYTES: [number, number] = [0, 255];

interface Props {
  array: ArrayNode;
  view: View;
  version: string;
  coordinates: (Coordinate | null)[];
  chunks: ChunkMap | null;
  /** True if elements on the screen have no value. */
  hasMissing: boolean;
  change: (patch: Partial<View>, isStep: boolean) => void;
  onProbe: (probe: Probe | null) => void;
  onStatus: (status: Status) => void;
  onSpread: (found: Spread | null) => void;
  handle: (raster: Raster | null) => void;
}

export function Image(props: Props) {
  const { array, view, version, coordinates } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const raster = useRef<Raster | null>(null);
  const [frame, size] = useSize<HTMLDivElement>();
  const [provisional, setProvisional] = useState<[number, number] | null>(null);
  const [drawnBox, setDrawnBox] = useState<Box | null>(null);

  const [nx, ny] = [array.shape[view.x] ?? 0, array.shape[view.y] ?? 0];
  const isEmpty = nx === 0 || ny === 0 || array.shape.some((length) => length === 0);
  const start = useMemo(() => firstBox(array, view), [array, view.x, view.y, view.kind, view.over.join()]);
  const isEqual = Math.max(nx / ny, ny / nx) <= MAX_RATIO;
  const height = plotHeight(size.width, start.box, isEqual);
  const box = useMemo(() => fitted(view.box ?? start.box, size.width, height, isEqual), [view.box, start, size.width, height, isEqual]);
  const flip = isFlipped(coordinates, view);

  const rest = useRef<ReturnType<typeof setTimeout>>();
  const given = useRef<Box | null>(null);
  const latest = useRef(props);
  latest.current = props;

  // Effects that wait for a frame would cost one.
  useLayoutEffect(() => {
    if (!canvas.current) return;
    const made = new Raster(canvas.current, {
      // Ticks follow at once, and the rest of the page when the picture rests.
      box: (box) => {
        setDrawnBox(box);
        clearTimeout(rest.current);
        rest.current = setTimeout(() => {
          rest.current = undefined;
          latest.current.change({ box }, false);
        }, REST);
      },
      probe: (probe) => latest.current.onProbe(probe),
      pin: (x, y) => {
        const { array, view } = latest.current;
        const pin = array.shape.map((_, at) => (at === view.x ? x : at === view.y ? y : (view.at[at] ?? 0)));
        latest.current.change({ pin }, true);
      },
      status: (status) => latest.current.onStatus(status),
      numbers: (parts, complete) => {
        const { array, view } = latest.current;
        // With limits at hand, the picture comes first.
        if (view.low !== null && !complete) return;
        // The fourth channel is no colour.
        const isOpaque = view.kind !== "rgb" || array.shape[channelOf(array)] === 3;
        const found = spread(isOpaque ? parts : parts.map((part) => Array.from(part).filter((_, at) => at % 4 !== 3)), missingOf(array, view));
        latest.current.onSpread(found);
        if ((view.kind === "rgb" && isByte(array)) || view.limits === "fixed" || view.low !== null) return;
        const limits = found ? suitableLimits(array, view, found) : ([0, 1] as [number, number]);
        setProvisional(limits);
        if (complete && found) latest.current.change({ low: limits[0], high: limits[1] }, false);
      },
      drawn: () => canvas.current?.setAttribute("data-drawn", String(Number(canvas.current.getAttribute("data-drawn") ?? 0) + 1)),
    });
    raster.current = made;
    latest.current.handle(made);
    return () => {
      clearTimeout(rest.current);
      latest.current.handle(null);
      made.destroy();
    };
  }, []);

  const known = view.low !== null && view.high !== null ? ([view.low, view.high] as [number, number]) : provisional;
  const limits = view.kind === "rgb" && isByte(array) ? BYTES : known;
  const colouring = useMemo(
    () => (!limits ? null : colouringOf(array, view, limits[0], limits[1])),
    [array, view.kind, view.map, view.scale, view.outside, view.decode, view.part, limits?.[0], limits?.[1]],
  );
  const exact = useExact(array, view.low === null || view.kind === "rgb" ? null : colouring);

  useLayoutEffect(() => {
    if (!size.width || isEmpty) return;
    // A picture that is being moved is ahead of the view, unless that was moved by other means.
    const isMoving = rest.current !== undefined && given.current === view.box && drawnBox !== null;
    if (!isMoving) {
      clearTimeout(rest.current);
      rest.current = undefined;
    }
    given.current = view.box;
    raster.current?.show(array, view, isMoving ? drawnBox : box, flip, version);
    if (!isMoving) setDrawnBox(box);
  }, [array, version, view.kind, view.x, view.y, view.at, view.over.join(), view.by, view.part, view.decode, view.thinning, box, flip, size.width]);
  // Limits that were given up are found again, in what is on the screen.
  useLayoutEffect(() => {
    if (view.low === null && view.limits !== "fixed") raster.current?.retell();
  }, [view.low, view.limits, view.map]);
  useLayoutEffect(() => raster.current?.colour(colouring && { ...colouring, exact }), [colouring, exact]);

  const seen = drawnBox ?? box;
  const pin = view.pin && size.width ? pinned(view.pin[view.x]! + 0.5, view.pin[view.y]! + 0.5, seen, flip) : null;
  const name = `${array.name}: ${axisName(array, view.y)} downwards by ${axisName(array, view.x)} across`;
  return (
    <div class="plane">
      <div class="axis-y" aria-hidden="true">
        <span class="axis-name turned">
          <Name text={named(axisName(array, view.y), coordinates[view.y]?.units)} />
        </span>
        <Ticks from={seen[2]} to={seen[3]} length={height} coordinate={coordinates[view.y] ?? null} extent={ny} isVertical flip={flip} />
      </div>
      <div class="frame" ref={frame} style={{ height }}>
        <canvas
          ref={canvas}
          class={`plot${isEmpty ? " empty" : ""}`}
          tabIndex={0}
          role="application"
          aria-roledescription="picture"
          aria-label={`${name}. Arrows move, plus and minus zoom, Enter pins the middle.`}
          data-box={seen.join(",")}
          data-flip={flip ? "1" : undefined}
        />
        {pin && (
          <>
            <div class="hair across" style={{ top: `${pin.y * 100}%` }} />
            <div class="hair down" style={{ left: `${pin.x * 100}%` }} />
          </>
        )}
        {view.lens && !isEmpty && <Grid array={array} view={view} chunks={props.chunks} box={seen} flip={flip} />}
        {isEmpty && <p class="overlay">This array has no elements.</p>}
      </div>
      <div class="axis-x" aria-hidden="true">
        <Ticks from={seen[0]} to={seen[1]} length={size.width} coordinate={coordinates[view.x] ?? null} extent={nx} flip={false} />
        <span class="axis-name">
          <Name text={named(axisName(array, view.x), coordinates[view.x]?.units)} />
        </span>
      </div>
      {colouring && view.kind === "image" && <Legend array={array} view={view} colouring={colouring} hasMissing={props.hasMissing} />}
    </div>
  );
}

/** The thresholds of the server, for scales whose functions it may round otherwise than a browser. */
function useExact(array: ArrayNode, colouring: Colouring | null): Float64Array | null {
  const isOwn = !colouring || colouring.scale === "linear" || colouring.map === "phase" || array.kind === "complex";
  const { map, scale, low, high } = colouring ?? {};
  const key = isOwn ? "" : `${map} ${scale} ${low} ${high}`;
  const { value } = useAsync(async (signal) => ({ key, found: isOwn ? null : await thresholds(array, colouring, signal) }), [array.path, key]);
  return value?.key === key ? value.found : null;
}

function plotHeight(width: number, [x0, x1, y0, y1]: Box, isEqual: boolean): number {
  if (!width) return 320;
  const most = Math.max(260, Math.min(720, innerHeight * 0.68));
  const natural = isEqual ? (width * (y1 - y0)) / (x1 - x0) : width * 0.6;
  return Math.round(Math.max(isEqual ? 140 : 200, Math.min(most, natural || 320)));
}

/** Widens a box to the shape of the screen where both axes have one scale. */
function fitted([x0, x1, y0, y1]: Box, width: number, height: number, isEqual: boolean): Box {
  if (!isEqual || !width || !height) return [x0, x1, y0, y1];
  const scale = Math.min(width / (x1 - x0), height / (y1 - y0));
  const [halfX, halfY] = [width / scale / 2, height / scale / 2];
  const [cx, cy] = [(x0 + x1) / 2, (y0 + y1) / 2];
  const near = (a: number, b: number) => Math.abs(a - b) < 0.01 * Math.abs(b);
  return [near(2 * halfX, x1 - x0) ? x0 : cx - halfX, near(2 * halfX, x1 - x0) ? x1 : cx + halfX, near(2 * halfY, y1 - y0) ? y0 : cy - halfY, near(2 * halfY, y1 - y0) ? y1 : cy + halfY];
}

function pinned(x: number, y: number, [x0, x1, y0, y1]: Box, flip: boolean): { x: number; y: number } | null {
  const [px, py] = [(x - x0) / (x1 - x0), (y - y0) / (y1 - y0)];
  return px >= 0 && px <= 1 && py >= 0 && py <= 1 ? { x: px, y: flip ? 1 - py : py } : null;
}

interface TicksProps {
  from: number;
  to: number;
  length: number;
  coordinate: Coordinate | null;
  extent: number;
  isVertical?: boolean;
  flip: boolean;
}

/** Where a value lies between elements, by the neighbours of a monotonic coordinate. */
function elementOf(values: Float64Array, step: number, value: number): number | null {
  const rises = values[values.length - 1]! > values[0]!;
  let [low, high] = [0, values.length - 1];
  if ((rises ? value < values[low]! || value > values[high]! : value > values[low]! || value < values[high]!)) return null;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (rises ? values[middle]! <= value : values[middle]! >= value) low = middle;
    else high = middle;
  }
  const span = values[high]! - values[low]!;
  return (low + (span ? (value - values[low]!) / span : 0)) * step + 0.5;
}

function tickList({ from, to, length, coordinate, extent, isVertical }: TicksProps): { at: number; text: string }[] {
  const [first, last] = [Math.max(0, Math.floor(from)), Math.min(extent - 1, Math.ceil(to) - 1)];
  if (!(last >= first)) return [];
  const widest = coordinate?.numbers && !coordinate.isTime ? 0 : widthOf([first, (first + last) >> 1].map((element) => textOf(coordinate, element) ?? "")) + 16;
  const most = Math.max(2, Math.floor(length / (isVertical ? 52 : Math.max(96, widest))));
  const values = coordinate?.numbers;
  if (values && !coordinate.isTime && values.length === Math.ceil(extent / coordinate.step) && values.length > 1) {
    const [a, b] = [numberOf(coordinate, first) ?? NaN, numberOf(coordinate, last) ?? NaN];
    for (const wanted of [most, 2 * most]) {
      const round = ticks(Math.min(a, b), Math.max(a, b), wanted);
      const texts = labels(round);
      const found = round.flatMap((value, index) => {
        const at = elementOf(values, coordinate.step, value);
        return at === null ? [] : [{ at, text: texts[index]! }];
      });
      if (found.length > 1) return found;
    }
  }
  return ticks(first, last, most)
    .filter(Number.isInteger)
    .map((index) => ({ at: index + 0.5, text: textOf(coordinate, index) ?? integer(index) }));
}

function Ticks(props: TicksProps) {
  const { from, to, isVertical, flip, length } = props;
  if (!length) return null;
  return (
    <>
      {tickList(props).map(({ at, text }) => {
        const share = (at - from) / (to - from);
        if (share < 0 || share > 1) return null;
        const place = `${(flip ? 1 - share : share) * 100}%`;
        return (
          <span key={at} class="tick" style={isVertical ? { top: place } : { left: place }}>
            {text}
          </span>
        );
      })}
    </>
  );
}

/** The chunk grid over the picture, as far as its lines are apart, and the chunks that are not stored. */
function Grid({ array, view, chunks, box, flip }: { array: ArrayNode; view: View; chunks: ChunkMap | null; box: Box; flip: boolean }) {
  const lines = (length: number, extent: number, from: number, to: number) => {
    if ((to - from) / length > 120) return [];
    const found: number[] = [];
    for (let edge = Math.ceil(Math.max(0, from) / length) * length; edge <= Math.min(extent, to); edge += length) found.push((edge - from) / (to - from));
    return found;
  };
  const absent = chunks ? missingPath(array, view, chunks, box, flip) : "";
  const draw = (lengths: number[], kind: string) => (
    <g class={kind}>
      {lines(lengths[view.x]!, array.shape[view.x]!, box[0], box[1]).map((x) => (
        <line key={`x${x}`} x1={`${x * 100}%`} x2={`${x * 100}%`} y1="0" y2="100%" />
      ))}
      {lines(lengths[view.y]!, array.shape[view.y]!, box[2], box[3]).map((share) => {
        const y = `${(flip ? 1 - share : share) * 100}%`;
        return <line key={`y${share}`} x1="0" x2="100%" y1={y} y2={y} />;
      })}
    </g>
  );
  return (
    <svg class="grid" aria-hidden="true">
      {absent && (
        <svg class="absent" viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%">
          <path d={absent} />
        </svg>
      )}
      {draw(array.chunks, "chunk")}
      {array.shards && draw(array.shards, "shard")}
    </svg>
  );
}

/** The colour of a value. */
function colourOf(colouring: Colouring, value: number): string {
  const pixel = new Uint32Array(1);
  paint([value], pixel, { ...colouring, missing: [] });
  return css(pixel[0]!);
}

export function Legend({ array, view, colouring, hasMissing }: { array: ArrayNode; view: View; colouring: Colouring; hasMissing: boolean }) {
  const flags = view.over.length || (view.thinning === "mean" && array.kind !== "bool") ? [] : flagsOf(array);
  const units = array.kind === "complex" && view.part === "phase" ? "rad" : shownUnits(array, view);
  const bar = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const canvas = bar.current;
    const context = canvas?.getContext("2d");
    if (!canvas || !context) return;
    const image = context.createImageData(256, 1);
    paint(Float64Array.from({ length: 256 }, (_, at) => valueAt(colouring, (at + 0.5) / 256)), new Uint32Array(image.data.buffer), colouring);
    context.putImageData(image, 0, 0);
  }, [colouring]);
  const { low, high, scale } = colouring;
  const round = ticks(low, high, 6).filter((value) => value >= low && value <= high);
  let values = scale !== "linear" ? [0, 0.25, 0.5, 0.75, 1].map((at) => valueAt(colouring, at)) : round.length > 1 ? round : [low, high];
  // Long numbers have room at the ends only.
  if (scale === "linear" && labels(values).join("").length > 42) values = [values[0]!, values[values.length - 1]!];
  const texts = scale === "linear" ? labels(values) : values.map((value) => number(value, 3));
  if (flags.length)
    return (
      <p class="keys legend">
        {flags.map(({ value, meaning }) => (
          <Key key={value} colour={colourOf(colouring, value)} text={meaning} />
        ))}
      </p>
    );
  return (
    <div class="legend">
      <canvas ref={bar} class="bar" width={256} height={1} role="img" aria-label={`Colours from ${number(low)} to ${number(high)}`} />
      <div class="scale">
        {values.map((value, index) => {
          const at = position(colouring, value);
          return at < -0.001 || at > 1.001 ? null : (
            <span key={value} class="tick" style={{ left: `${at * 100}%` }}>
              {texts[index]}
            </span>
          );
        })}
      </div>
      {units && (
        <span class="units">
          <Name text={units} />
        </span>
      )}
      {(colouring.outside || colouring.missing.length > 0 || hasMissing) && (
        <p class="keys">
          {colouring.outside && <Key colour={css(UNDER)} text={`below ${number(low)}`} />}
          {colouring.outside && <Key colour={css(OVER)} text={`above ${number(high)}`} />}
          {hasMissing && !colouring.missing.length && <Key text="no value" />}
          {[...new Set(colouring.missing)].map((value) => (
            <Key key={value} colour={`${css(FILL).replace("rgb", "rgba").replace(")", "")},${(FILL >>> 24) / 255})`} text={`stands for missing: ${number(value, 9)}`} />
          ))}
        </p>
      )}
    </div>
  );
}

const Key = ({ colour, text }: { colour?: string; text: string }) => (
  <span class="key">
    <i class={colour ? "" : "blank"} style={{ background: colour }} /> <Name text={text} />
  </span>
);

export function Histogram({ found, colouring }: { found: Pick<Spread, "low" | "high" | "bins">; colouring: Colouring | null }) {
  const most = Math.max(...found.bins, 1);
  const table = colouring ? colours(colouring.map) : null;
  const width = 100 / found.bins.length;
  return (
    <svg class="histogram" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`Histogram from ${number(found.low)} to ${number(found.high)}`}>
      {found.bins.map((size, at) => {
        const value = found.low + ((at + 0.5) / found.bins.length) * (found.high - found.low);
        const share = colouring ? Math.min(1, Math.max(0, position(colouring, value))) : 0;
        const height = size ? Math.max(0.6, (size / most) * 40) : 0;
        return <rect key={at} x={at * width} y={40 - height} width={width * 0.9} height={height} fill={table ? css(table[Math.min(255, Math.floor((share || 0) * 256))]!) : undefined} />;
      })}
    </svg>
  );
}
