import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import * as api from "./api";
import { drawn, sizeOf } from "./elements";
import { numberOf, partOf, textOf, type Coordinate } from "./coordinates";
import { integer, labels, number, visible } from "./format";
import { useAsync, useSize } from "./hooks";
import { missingOf } from "./image";
import { dimensionKey, dimensionLabel, type ArrayNode } from "./node";
import { Failure } from "./parts";
import { axisName, reduction, selection, shownUnits, type View } from "./view";

/** The windows of an envelope, and the elements up to which all are drawn. */
const WINDOWS = 1500;
const MAX_POINTS = 12_000;

export interface Series {
  x: Float64Array;
  /** One line, or the least and the greatest of each window. */
  lines: Float64Array[];
  isTime: boolean;
  /** True if the x values are indices. */
  isIndex: boolean;
  /** The label of each x value. */
  text: (at: number) => string | undefined;
  step: number;
  isEnvelope: boolean;
  cost: api.Cost;
  /** The names of the axes, with their units. */
  names: [string, string];
}

/** The elements along a dimension between two indices, at fixed indices of the others. */
export async function series(array: ArrayNode, view: View, at: number[], along: number, range: [number, number], coordinate: Coordinate | null, signal: AbortSignal): Promise<Series> {
  const [from, to] = range;
  const length = to - from;
  const points = Math.min(MAX_POINTS, Math.floor(api.MAX_ANSWER / sizeOf(array.dataType)));
  const step = length <= points ? 1 : Math.ceil(length / WINDOWS);
  const select = selection({ ...view, at, over: at === view.at ? view.over : [] }, array, new Map([[along, `${from}:${to}`]]));
  const coarsen = [{ dimension: dimensionKey(array, along), size: step }];
  const reduce = along === view.x && at === view.at ? reduction(view, array) : undefined;
  const both = step > 1 && array.kind !== "complex" && !reduce && (view.decode || !array.isPacked) ? await api.envelope(array.path, { select, coarsen, decode: api.undecodable.has(array.path) ? undefined : view.decode }, signal) : null;
  const single = both ?? (await api.thinned(array.path, { select, steps: [{ position: along, dimension: dimensionKey(array, along), size: step }], thinning: "nearest", decode: view.decode, reduce }, signal));
  const missing = new Set(missingOf(array, view));
  const numbers = Float64Array.from(drawn(single, view.part), (value) => (missing.has(value) ? NaN : value));
  const count = Math.ceil(length / step);
  const lines = both ? [numbers.subarray(0, count), numbers.subarray(count)] : [numbers];
  const part = await partOf(coordinate, array, along, range, step, signal);
  const isPart = part !== coordinate;
  const known = part?.numbers ? part : null;
  const x = Float64Array.from({ length: count }, (_, index) => {
    const element = Math.min(to - 1, from + index * step);
    const value = (isPart ? known?.numbers?.[index] : known && numberOf(known, element)) ?? element;
    return known?.isTime ? value / 1000 : value;
  });
  const text = (at: number) => (isPart ? part?.texts[at] : textOf(part, from + at * step));
  const units = shownUnits(array, view);
  const names: [string, string] = [named(dimensionLabel(array, along), known?.isTime ? "UTC" : known?.units), named(array.kind === "complex" ? view.part : array.name, array.kind === "complex" && view.part === "phase" ? "rad" : units)];
  return { x, lines, isTime: !!known?.isTime, isIndex: !known, text, step, isEnvelope: !!both, cost: single.cost, names };
}

/** A name with units in parentheses. */
export const named = (name: string, units: string | null | undefined) => visible(units ? `${name} (${units})` : name);

/** Texts of ticks by their distance in seconds, and what is added where a year, a month, a day or a minute begins. */
const TIMES = [
  [31_536_000, "{YYYY}", null, null, null, null, null, null, 1],
  [2_419_200, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [86_400, "{MMM} {D}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [0.001, "{ss}.{fff}", "\n{YYYY}-{MM}-{DD} {HH}:{mm}", null, "\n{MM}-{DD} {HH}:{mm}", null, "\n{HH}:{mm}", null, 1],
] as uPlot.Axis.Values;

/** The widest text in pixels, about. */
export const widthOf = (texts: string[]) => 7 * Math.max(...texts.map(({ length }) => length), 3);
const WHOLE = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((factor) => factor * 10 ** power)).flat();

const color = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Plot(props: { series: Series; height: number; label: string; onZoom?: (low: number, high: number) => void; onCursor?: (index: number | null) => void }) {
  const { series, height, label } = props;
  const [frame, size] = useSize<HTMLDivElement>();
  const latest = useRef(props);
  latest.current = props;
  const [isDark, setDark] = useState(matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const update = () => setDark(query.matches);
    query.addEventListener("change", update);
    return () => query.removeEventListener("change", update);
  }, []);
  useEffect(() => {
    if (!frame.current || !size.width) return;
    const axis = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const line = { stroke: color("--accent"), width: 1.5, points: { show: series.x.length <= 40, size: 5 }, spanGaps: false };
    // Descending coordinates are drawn from left to right as well.
    const descends = series.x.length > 1 && series.x[0]! > series.x[series.x.length - 1]!;
    const order = (values: Float64Array) => (descends ? values.slice().reverse() : values);
    const gaps = (values: Float64Array) => Array.from(order(values), (value) => (Number.isFinite(value) ? value : null));
    const text = (_: uPlot, splits: number[]) => (series.isIndex ? splits.map((value) => (Number.isInteger(value) ? integer(value) : "")) : labels(splits));
    const sizes = (_: uPlot, splits: number[]) => labels(splits);
    const name = (label: string) => ({ label, labelSize: 20, labelGap: 2, labelFont: axis.font });
    const plot = new uPlot(
      {
        width: size.width,
        height,
        legend: { show: false },
        cursor: { y: false, drag: { x: !!props.onZoom, y: false }, points: { size: 7 } },
        scales: { x: { time: series.isTime } },
        axes: [
          { ...axis, size: 34, ...name(series.names[0]), ...(series.isTime ? { values: TIMES } : { values: text, space: (self: uPlot, _: number, low: number, high: number) => widthOf(text(self, [low, high])) + 24 }), ...(series.isIndex && { incrs: WHOLE }) },
          { ...axis, ...name(series.names[1]), values: sizes, size: (_, texts) => Math.max(40, widthOf(texts ?? []) + 14) },
        ],
        series: [{}, ...series.lines.map(() => line)],
        ...(series.isEnvelope ? { bands: [{ series: [2, 1] as [number, number], fill: color("--band") }] } : {}),
        tzDate: (timestamp) => uPlot.tzDate(new Date(timestamp * 1000), "Etc/UTC"),
        hooks: {
          setSelect: [
            (self) => {
              if (self.select.width < 4) return;
              const [low, high] = [self.posToIdx(self.select.left), self.posToIdx(self.select.left + self.select.width)];
              self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              const last = series.x.length - 1;
              latest.current.onZoom?.(descends ? last - high : low, descends ? last - low : high);
            },
          ],
          setCursor: [(self) => latest.current.onCursor?.(self.cursor.idx == null ? null : descends ? series.x.length - 1 - self.cursor.idx : self.cursor.idx)],
        },
      },
      [order(series.x), ...series.lines.map(gaps)] as unknown as uPlot.AlignedData,
      frame.current,
    );
    plot.ctx.canvas.setAttribute("role", "img");
    plot.ctx.canvas.setAttribute("aria-label", label);
    return () => plot.destroy();
  }, [series, size.width, height, label, isDark]);
  return <div class="chart" ref={frame} style={{ minHeight: height }} />;
}

interface Props {
  array: ArrayNode;
  view: View;
  version: string;
  coordinates: (Coordinate | null)[];
  change: (patch: Partial<View>, isStep: boolean) => void;
  onCost: (text: string, cost: api.Cost | null) => void;
}

export function Line({ array, view, version, coordinates, change, onCost }: Props) {
  const length = array.shape[view.x] ?? 0;
  const from = Math.max(0, Math.min(length - 1, Math.floor(view.box?.[0] ?? 0)));
  const to = Math.max(from + 1, Math.min(length, Math.ceil(view.box?.[1] ?? length)));
  const coordinate = coordinates[view.x] ?? null;
  const [attempt, setAttempt] = useState(0);
  const [cursor, setCursor] = useState<number | null>(null);
  const isEmpty = array.shape.some((extent) => extent === 0);
  const { value, error, isStale } = useAsync<Series | null>(
    (signal) => (isEmpty ? Promise.resolve(null) : series(array, view, view.at, view.x, [from, to], coordinate, signal)),
    [array, version, view.x, view.at, view.over.join(), view.by, view.part, view.decode, from, to, coordinate, attempt],
  );
  useEffect(() => {
    if (!value || isStale) return onCost("", null);
    const thin = value.step > 1 ? (value.isEnvelope ? `The least and greatest of every ${integer(value.step)} elements` : `One of every ${integer(value.step)} elements`) : "All elements";
    onCost(thin, value.cost);
  }, [value, isStale]);
  if (isEmpty) return <p class="notice">This array has no elements.</p>;
  const isWhole = from === 0 && to === length;
  const probe = () => {
    if (!value || cursor === null) return "Move over the line to read values; drag across it to zoom.";
    const element = from + cursor * value.step;
    const label = value.text(cursor);
    const values = value.lines.map((line) => number(line[cursor] ?? NaN, 8)).join(" to ");
    return `${axisName(array, view.x)} ${integer(element)}${label ? ` (${label})` : ""}: ${values}`;
  };
  return (
    <div class="line-view">
      {error && <Failure error={error} retry={() => setAttempt(attempt + 1)} smaller={to - from > 2 ? () => change({ box: [from, from + Math.ceil((to - from) / 4), 0, 1] }, true) : undefined} />}
      {value && (
        <Plot
          series={value}
          height={Math.max(240, Math.min(460, innerHeight * 0.5))}
          label={`${array.name} along ${axisName(array, view.x)}`}
          onZoom={(low, high) => change({ box: [from + low * value.step, Math.min(to, from + (high + 1) * value.step), 0, 1] }, true)}
          onCursor={setCursor}
        />
      )}
      <p class="probe-line">
        <bdi>{probe()}</bdi>
        {!isWhole && (
          <button type="button" class="quiet" onClick={() => change({ box: null }, true)}>
            Show all
          </button>
        )}
      </p>
    </div>
  );
}
