import { useState } from "preact/hooks";
import * as api from "./api";
import { MAPS, SCALES, type Colouring, type Spread } from "./colour";
import { textOf, type Coordinate } from "./coordinates";
import { digitsOf, integer, number } from "./format";
import { complexText } from "./elements";
import { useAsync } from "./hooks";
import { Histogram } from "./image";
import { isObject, type Json, type JsonObject } from "./json";
import { Plot, series } from "./line";
import { count, dimensionLabel, flagsOf, isTime, type ArrayNode } from "./node";
import { Choice, Name, Switch, useTicks } from "./parts";
import type { Probe } from "./raster";
import { axisName, channelOf, isScaled, reduction, shownUnits, type View } from "./view";

type Change = (patch: Partial<View>, isStep: boolean) => void;

/** The axes, and a slider for every other dimension. */
export function Dimensions({ array, view, coordinates, isBusy, change }: { array: ArrayNode; view: View; coordinates: (Coordinate | null)[]; isBusy: boolean; change: Change }) {
  const channel = view.kind === "rgb" ? channelOf(array) : -1;
  const options = array.shape.map((_, at) => at).filter((at) => at !== channel).map((at) => [String(at), dimensionLabel(array, at)] as const);
  const swap = (axis: "x" | "y", at: number) => {
    const other = axis === "x" ? "y" : "x";
    const patch: Partial<View> = { [axis]: at, box: null, low: null, high: null };
    if (view[other] === at) patch[other] = view[axis];
    change(patch, true);
  };
  const rest = array.shape.map((_, at) => at).filter((at) => at !== view.x && at !== view.y && at !== channel);
  if (options.length < 2 && !rest.length) return null;
  return (
    <section class="panel" aria-label="Dimensions">
      <h2>Dimensions</h2>
      {options.length > 1 && (
        <div class="pair">
          <Choice label="Across" value={String(view.x)} options={options} onChange={(at) => swap("x", Number(at))} />
          {view.y >= 0 && <Choice label="Down" value={String(view.y)} options={options} onChange={(at) => swap("y", Number(at))} />}
        </div>
      )}
      {rest.map((at) => (
        <Slider key={at} array={array} at={at} view={view} coordinate={coordinates[at] ?? null} isBusy={isBusy} change={change} />
      ))}
    </section>
  );
}

function Slider({ array, at, view, coordinate, isBusy, change: patch }: { array: ArrayNode; at: number; view: View; coordinate: Coordinate | null; isBusy: boolean; change: Change }) {
  const [isPlaying, setPlaying] = useState(false);
  const index = view.at[at] ?? 0;
  const isReduced = view.over.includes(at);
  const change = (index: number, isStep: boolean) => patch({ at: view.at.map((old, other) => (other === at ? index : old)) }, isStep);
  const reduce = (by: api.Reduction | "index") => {
    const others = view.over.filter((other) => other !== at);
    patch({ over: by === "index" ? others : [...others, at], by: by === "index" ? view.by : by, low: null, high: null }, true);
  };
  const length = array.shape[at]!;
  const last = Math.max(0, length - 1);
  // A plane is shown before the next one is asked for.
  useTicks(isPlaying && !isReduced, 400, () => isBusy || change(index >= last ? 0 : index + 1, false));
  const label = textOf(coordinate, index);
  const name = dimensionLabel(array, at);
  const canReduce = api.supports("coarsen") && view.kind !== "table" && view.kind !== "rgb" && array.kind !== "complex" && (!!view.decode || !array.isPacked);
  return (
    <div class="slider">
      <div class="slider-head">
        <span>
          <Name text={name} /> <span class="faint">{integer(length)}</span>
        </span>
        {canReduce && <Ways name={name} value={isReduced ? view.by : "index"} onChange={reduce} />}
      </div>
      {!isReduced && (
      <div class="slider-head">
        <output>
          {label !== undefined && (
            <strong>
              <Name text={label + (coordinate?.units ? ` ${coordinate.units}` : "")} />
            </strong>
          )}
          <input
            type="number"
            min={0}
            max={last}
            value={index}
            aria-label={`Index along ${name}`}
            onChange={(event) => change(Math.max(0, Math.min(last, Math.round(Number(event.currentTarget.value)) || 0)), true)}
          />
        </output>
      </div>
      )}
      {!isReduced && (
      <div class="slider-body">
        <button type="button" class="quiet play" aria-pressed={isPlaying} aria-label={isPlaying ? `Stop ${name}` : `Play along ${name}`} disabled={last === 0} onClick={() => setPlaying(!isPlaying)}>
          {isPlaying ? "❚❚" : "▶"}
        </button>
        <input
          type="range"
          min={0}
          max={last}
          value={index}
          disabled={last === 0}
          aria-label={name}
          aria-valuetext={label ? `${index}: ${label}` : undefined}
          onInput={(event) => change(Number(event.currentTarget.value), false)}
          onChange={(event) => change(Number(event.currentTarget.value), true)}
        />
      </div>
      )}
    </div>
  );
}

/** The ways in which a dimension that is no axis is left out. */
function Ways({ name, value, onChange }: { name: string; value: api.Reduction | "index"; onChange: (by: api.Reduction | "index") => void }) {
  return (
    <select class="ways" aria-label={`One index of ${name}, or a function over all`} value={value} onChange={(event) => onChange(event.currentTarget.value as api.Reduction | "index")}>
      <option value="index">one index</option>
      {api.REDUCTIONS.map((by) => (
        <option key={by} value={by}>
          {by} of all
        </option>
      ))}
    </select>
  );
}

const PART_NAMES = [
  ["magnitude", "Magnitude"],
  ["phase", "Phase"],
  ["real", "Real part"],
  ["imaginary", "Imaginary part"],
] as const;

export function Part({ view, change }: { view: View; change: Change }) {
  return <Choice label="Part" value={view.part} options={PART_NAMES} onChange={(part) => change({ part, low: null, high: null }, true)} />;
}

export function Decoding({ array, view, change }: { array: ArrayNode; view: View; change: Change }) {
  if (!(array.isPacked || (isTime(array) && view.kind === "table")) || !api.supports("decode")) return null;
  const options = [
    ["none", "as stored"],
    ["cf", "decoded (CF)"],
  ] as const;
  return <Choice label="Values" value={view.decode ?? "none"} options={options} onChange={(value) => change({ decode: value === "cf" ? "cf" : undefined, low: null, high: null }, true)} />;
}

export function Colours(props: { array: ArrayNode; view: View; colouring: Colouring | null; found: Spread | null; change: Change }) {
  const { array, view, colouring, found, change } = props;
  const limit = (which: "low" | "high", text: string) => {
    const value = Number(text);
    if (!Number.isFinite(value) || !colouring) return;
    const next = { low: colouring.low, high: colouring.high, [which]: value };
    if (next.low < next.high) change({ ...next, limits: "fixed" }, true);
  };
  const isPicture = view.kind === "image";
  const digits = colouring ? digitsOf(Math.max(Math.abs(colouring.low), Math.abs(colouring.high)), colouring.high - colouring.low) + 2 : 6;
  return (
    <section class="panel" aria-label="Colour">
      <h2>Colour</h2>
      {isPicture && <div class="pair">
        <Choice label="Map" value={view.map} options={[["auto", "Suitable"], ...MAPS.map((map) => [map, map] as const)]} onChange={(map) => change({ map }, true)} />
        <Choice label="Scale" value={view.scale} options={SCALES.map((scale) => [scale, scale] as const)} onChange={(scale) => change({ scale }, true)} />
      </div>}
      <Choice
        label="Limits"
        value={view.limits}
        options={[
          ["robust", "2nd to 98th percentile"],
          ["full", "Least to greatest"],
          ["fixed", "Fixed"],
        ]}
        onChange={(limits) => change(limits === "fixed" ? { limits } : { limits, low: null, high: null }, true)}
      />
      {colouring && (
        <div class="pair">
          {(["low", "high"] as const).map((which) => (
            <label key={which} class="field">
              <span>{which === "low" ? "From" : "To"}</span>
              <input type="number" step="any" value={Number(colouring[which].toPrecision(Math.min(17, digits)))} onChange={(event) => limit(which, event.currentTarget.value)} />
            </label>
          ))}
        </div>
      )}
      <div class="row-of">
        {isPicture && <Switch label="Mark what is outside" on={view.outside} onChange={(outside) => change({ outside }, true)} />}
        {view.limits !== "fixed" && (
          <button type="button" class="quiet" onClick={() => change({ low: null, high: null }, true)}>
            Fit to view
          </button>
        )}
      </div>
      {array.kind !== "bool" && array.kind !== "complex" && api.supports("coarsen") && (
        <Choice
          label="Where elements share a pixel"
          value={view.thinning}
          options={[
            ["nearest", "one of them"],
            ["mean", "their mean"],
            ["min", "their least"],
            ["max", "their greatest"],
          ]}
          onChange={(thinning) => change({ thinning }, true)}
        />
      )}
      {found && <Histogram found={found} colouring={isPicture ? colouring : null} />}
      {found && <Numbers found={found} />}
    </section>
  );
}

function Numbers({ found }: { found: Spread }) {
  const digits = Math.max(6, digitsOf(Math.max(Math.abs(found.low), Math.abs(found.high)), found.high - found.low));
  const rows: [string, string][] = [
    ["least", number(found.low, digits)],
    ["greatest", number(found.high, digits)],
    ["mean", number(found.mean, digits)],
    ["std", number(found.std, 4)],
    ["missing", integer(found.missing)],
  ];
  return (
    <>
      <dl class="numbers">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p class="faint small">Of the samples on the screen.</p>
    </>
  );
}

function statisticsRows(value: JsonObject): [string, string][] {
  const text = (item: Json | undefined) => (typeof item === "number" ? (Number.isInteger(item) ? integer(item) : number(item, 8)) : String(item));
  const single = Object.entries(value).flatMap(([name, item]): [string, string][] => (typeof item === "number" || typeof item === "string" ? [[name, text(item)]] : []));
  const quantiles = Array.isArray(value["quantiles"]) ? value["quantiles"] : [];
  return [...single, ...quantiles.flatMap((pair): [string, string][] => (Array.isArray(pair) ? [[`quantile ${text(pair[0])}`, text(pair[1])]] : []))];
}

/** The meaning of a flag, by CF: of masks, those of all that are set. */
function meaning(array: ArrayNode, value: string): string | null {
  const { flag_values: values, flag_masks: masks, flag_meanings: meanings } = array.attributes;
  if (array.kind === "bool") return null;
  const number = Number(value);
  if (!Array.isArray(masks)) return flagsOf(array).find((flag) => flag.value === number)?.meaning ?? null;
  const isSet = (at: number) => (Array.isArray(values) ? (number & Number(masks[at])) === Number(values[at]) : (number & Number(masks[at])) !== 0);
  return typeof meanings === "string" && Number.isInteger(number) ? meanings.trim().split(/\s+/).filter((_, at) => isSet(at)).join(", ") : null;
}

/** Statistics that the server computes of the whole plane. */
export function Statistics({ array, view, select }: { array: ArrayNode; view: View; select: string[] }) {
  const [asked, setAsked] = useState<{ key: string; select: string } | null>(null);
  const all = select.join(",");
  const key = `${array.path}?${all}${view.decode ?? ""}`;
  const part = asked?.key === key ? asked.select : null;
  const { value, error } = useAsync<JsonObject | null>((signal) => (part ? api.stats(array.path, { select: part.split(","), decode: view.decode }, signal) : Promise.resolve(null)), [part, key]);
  if (!api.supports("stats")) return null;
  const ask = (select: string, text: string) => (
    <button type="button" class="quiet" onClick={() => setAsked({ key, select })}>
      {text}
    </button>
  );
  const smaller = error instanceof api.Problem ? error.smaller : null;
  return (
    <div class="exact">
      {!part ? (
        ask(all, "Exact statistics of all of it")
      ) : error ? (
        <>
          <p class="faint small">
            <Name text={error.message} />
          </p>
          {smaller && smaller !== part && ask(smaller, `Of ${smaller.replaceAll(",", ", ")} instead`)}
        </>
      ) : !value ? (
        <p class="faint small">Computing…</p>
      ) : (
        <>
          <dl class="numbers">
            {statisticsRows(value).map(([name, text]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
          <Bars histogram={value["histogram"]} />
          {part !== all && <p class="faint small">Of {part.replaceAll(",", ", ")}.</p>}
        </>
      )}
    </div>
  );
}

/** The histogram that the server counted. */
function Bars({ histogram }: { histogram: Json | undefined }) {
  const [edges, bins] = ["edges", "counts"].map((name) => (isObject(histogram) && Array.isArray(histogram[name]) ? histogram[name].map(Number) : [])) as [number[], number[]];
  if (!bins.length) return null;
  return <Histogram found={{ low: edges[0]!, high: edges[bins.length]!, bins }} colouring={null} />;
}

/** The query of one element of what is shown. */
function pinnedQuery(array: ArrayNode, view: View, pin: number[]): api.Query {
  const reduced = reduction(view, array);
  const channel = view.kind === "rgb" ? channelOf(array) : -1;
  const select = pin.map((index, at) => (view.over.includes(at) || at === channel ? ":" : String(index)));
  const decode = api.supports("decode") && !api.undecodable.has(array.path) ? view.decode : undefined;
  return { select, decode, ...(reduced && { reduce: api.withoutNan(reduced.by), axis: reduced.axis }) };
}

/** The elements of a chunk that is read for a pointer that rests. */
const RESTED = 1 << 24;

function exactText(array: ArrayNode, view: View, value: Json): string {
  // Without the digits that arithmetic adds: 270.48 instead of 270.47999999999996.
  if (typeof value === "number" && view.decode && isScaled(array)) return String(Number(value.toPrecision(15)));
  if (!Array.isArray(value)) return String(value);
  if (array.kind === "complex" && value.length === 2) return complexText(String(value[0]), String(value[1]));
  return value.map(String).join(", ");
}

/** What lies below the pointer, or at the pinned element. */
export function ProbePanel({ array, view, probe, version, coordinates, change }: { array: ArrayNode; view: View; probe: Probe | null; version: string; coordinates: (Coordinate | null)[]; change: Change }) {
  const indices = view.pin ?? (probe ? array.shape.map((_, at) => (at === view.x ? probe.x : at === view.y ? probe.y : view.at[at]!)) : null);
  // Where a sample is drawn for many elements, the one below the pointer is read once it rests.
  const isRead = !!view.pin || (!!probe?.isSample && indices !== null && count(array.chunks) < RESTED);
  const wanted = isRead ? indices!.join() : "";
  const exact = useAsync(
    async (signal) => {
      if (!wanted) return null;
      if (!view.pin) await api.pause(150, signal);
      return (await api.values(array.path, pinnedQuery(array, view, wanted.split(",").map(Number)), signal)).value;
    },
    [array, version, wanted, view.decode, view.over.join(), view.by, view.kind],
  );
  const isExact = isRead && !exact.isStale && exact.value !== null;
  const value = isExact ? exactText(array, view, exact.value) : view.pin ? (!exact.isStale && exact.error ? exact.error.message : "…") : (probe?.text ?? "…");
  const channel = view.kind === "rgb" ? channelOf(array) : -1;
  return (
    <section class="panel probe" aria-label="Element">
      <h2>Element</h2>
      {!indices && <p class="faint small">Point at the picture to read an element; click to pin it.</p>}
      {indices && (
        <>
          <p class="value" aria-live="polite">
            <Name text={value} />
            {meaning(array, value) && (
              <span class="faint">
                {" "}
                <Name text={meaning(array, value)!} />
              </span>
            )}
            {shownUnits(array, view) && (
              <span class="faint">
                {" "}
                <Name text={shownUnits(array, view)!} />
              </span>
            )}
          </p>
          {!view.pin && probe?.isSample && !isExact && <p class="faint small">Of a sample nearby: not every element is drawn.</p>}
          <dl class="numbers">
            {indices.map((index, at) => at !== channel && (
              <div key={at}>
                <dt>
                  <Name text={dimensionLabel(array, at)} />
                </dt>
                <dd>
                  {view.over.includes(at) ? `${view.by} of all` : integer(index)}
                  {!view.over.includes(at) && textOf(coordinates[at], index) !== undefined && (
                    <span class="faint">
                      {" "}
                      <Name text={textOf(coordinates[at], index)! + (coordinates[at]!.units ? ` ${coordinates[at]!.units}` : "")} />
                    </span>
                  )}
                </dd>
              </div>
            ))}
          </dl>
        </>
      )}
      {view.pin && <Profile array={array} view={view} version={version} coordinates={coordinates} change={change} />}
    </section>
  );
}

function Profile({ array, view, version, coordinates, change }: { array: ArrayNode; view: View; version: string; coordinates: (Coordinate | null)[]; change: Change }) {
  const along = Math.min(view.profile, array.shape.length - 1);
  const coordinate = coordinates[along] ?? null;
  const { value, error } = useAsync((signal) => series(array, view, view.pin!, along, [0, array.shape[along]!], coordinate, signal), [array, version, view.pin, along, view.part, view.decode, coordinate]);
  return (
    <>
      <div class="row-of">
        <Choice label="Profile along" value={String(along)} options={array.shape.map((_, at) => [String(at), dimensionLabel(array, at)] as const)} onChange={(at) => change({ profile: Number(at) }, true)} />
        <button type="button" class="quiet" onClick={() => change({ pin: null }, true)}>
          Unpin
        </button>
      </div>
      {error && <p class="faint small">{error.message}</p>}
      {value && <Plot series={value} height={180} label={`${array.name} along ${axisName(array, along)} at the pinned element`} />}
      {value && value.step > 1 && <p class="faint small">{value.isEnvelope ? "The least and greatest" : "One"} of every {integer(value.step)} elements.</p>}
    </>
  );
}
