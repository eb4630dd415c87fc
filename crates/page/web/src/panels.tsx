import { useState } from "preact/hooks";
import * as api from "./api";
import { MAPS, SCALES, type Colouring, type Spread } from "./colour";
import type { Coordinate } from "./coordinates";
import { integer, number } from "./format";
import { useAsync } from "./hooks";
import { Histogram } from "./image";
import type { Json, JsonObject } from "./json";
import { Plot, series } from "./line";
import { dimensionLabel, isPacked, type ArrayNode } from "./node";
import { Choice, Name, Switch, useTicks } from "./parts";
import type { Probe } from "./raster";
import { axisName, channelOf, reduction, shownUnits, type View } from "./view";

type Change = (patch: Partial<View>, isStep: boolean) => void;

/** The axes, and a slider for every other dimension. */
export function Dimensions({ array, view, coordinates, change }: { array: ArrayNode; view: View; coordinates: (Coordinate | null)[]; change: Change }) {
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
        <Slider key={at} array={array} at={at} view={view} coordinate={coordinates[at] ?? null} change={change} />
      ))}
    </section>
  );
}

function Slider({ array, at, view, coordinate, change: patch }: { array: ArrayNode; at: number; view: View; coordinate: Coordinate | null; change: Change }) {
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
  useTicks(isPlaying && !isReduced, 400, () => change(index >= last ? 0 : index + 1, false));
  const label = coordinate?.texts[index];
  const name = dimensionLabel(array, at);
  const canReduce = api.supports("coarsen") && view.kind !== "table" && view.kind !== "rgb" && array.kind !== "complex" && (!!view.decode || !isPacked(array));
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
  if (!isPacked(array) || !api.supports("decode")) return null;
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
  return (
    <section class="panel" aria-label="Colour">
      <h2>Colour</h2>
      <div class="pair">
        <Choice label="Map" value={view.map} options={[["auto", "Suitable"], ...MAPS.map((map) => [map, map] as const)]} onChange={(map) => change({ map }, true)} />
        <Choice label="Scale" value={view.scale} options={SCALES.map((scale) => [scale, scale] as const)} onChange={(scale) => change({ scale }, true)} />
      </div>
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
              <input type="number" step="any" value={Number(colouring[which].toPrecision(6))} onChange={(event) => limit(which, event.currentTarget.value)} />
            </label>
          ))}
        </div>
      )}
      <div class="row-of">
        <Switch label="Mark what is outside" on={view.outside} onChange={(outside) => change({ outside }, true)} />
        {view.limits !== "fixed" && (
          <button type="button" class="quiet" onClick={() => change({ low: null, high: null }, true)}>
            Fit to view
          </button>
        )}
      </div>
      {array.kind !== "bool" && api.supports("coarsen") && (
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
      {found && <Histogram found={found} colouring={colouring} />}
      {found && <Numbers found={found} />}
    </section>
  );
}

function Numbers({ found }: { found: Spread }) {
  const rows: [string, string][] = [
    ["least", number(found.low, 6)],
    ["greatest", number(found.high, 6)],
    ["mean", number(found.mean, 6)],
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

/** The meaning of a flag, by CF. */
function meaning(array: ArrayNode, value: string): string | null {
  const { flag_values: values, flag_meanings: meanings } = array.attributes;
  if (!Array.isArray(values) || typeof meanings !== "string") return null;
  const at = values.findIndex((flag) => String(flag) === value || (typeof flag === "number" && flag === Number(value)));
  return meanings.split(/\s+/)[at] ?? null;
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
          {part !== all && <p class="faint small">Of {part.replaceAll(",", ", ")}.</p>}
        </>
      )}
    </div>
  );
}

/** The query of one element of what is shown. */
function pinnedQuery(array: ArrayNode, view: View, pin: number[]): api.Query {
  const reduced = reduction(view, array);
  const select = pin.map((index, at) => (view.over.includes(at) ? ":" : String(index)));
  const decode = api.supports("decode") && !api.undecodable.has(array.path) ? view.decode : undefined;
  return { select, decode, ...(reduced && { reduce: api.withoutNan(reduced.by), axis: reduced.axis }) };
}

/** What lies below the pointer, or at the pinned element. */
export function ProbePanel({ array, view, probe, version, coordinates, change }: { array: ArrayNode; view: View; probe: Probe | null; version: string; coordinates: (Coordinate | null)[]; change: Change }) {
  const indices = view.pin ?? (probe ? array.shape.map((_, at) => (at === view.x ? probe.x : at === view.y ? probe.y : view.at[at]!)) : null);
  const exact = useAsync(async (signal) => (view.pin ? (await api.values(array.path, pinnedQuery(array, view, view.pin), signal)).value : null), [array, version, view.pin, view.decode, view.over.join(), view.by]);
  const value = view.pin ? (exact.value === null ? (exact.error ? exact.error.message : "…") : Array.isArray(exact.value) ? exact.value.map(String).join(", ") : String(exact.value)) : (probe?.text ?? "…");
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
          {!view.pin && probe?.isSample && <p class="faint small">Of a sample nearby: not every element is drawn.</p>}
          <dl class="numbers">
            {indices.map((index, at) => (
              <div key={at}>
                <dt>
                  <Name text={dimensionLabel(array, at)} />
                </dt>
                <dd>
                  {view.over.includes(at) ? `${view.by} of all` : integer(index)}
                  {!view.over.includes(at) && coordinates[at]?.texts[index] !== undefined && (
                    <span class="faint">
                      {" "}
                      <Name text={coordinates[at]!.texts[index]! + (coordinates[at]!.units ? ` ${coordinates[at]!.units}` : "")} />
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
      {value && <Plot series={value} height={150} label={`${array.name} along ${axisName(array, along)} at the pinned element`} />}
      {value && value.step > 1 && <p class="faint small">{value.isEnvelope ? "The least and greatest" : "One"} of every {integer(value.step)} elements.</p>}
    </>
  );
}
