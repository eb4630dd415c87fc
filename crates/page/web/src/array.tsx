import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import * as api from "./api";
import type { Spread } from "./colour";
import { coordinate, type Coordinate } from "./coordinates";
import { bytes, integer, milliseconds } from "./format";
import { useAsync, useCell } from "./hooks";
import { Details, Program, Shape } from "./group";
import { colouringOf, Image, isByte, isFlipped, suitableLimits } from "./image";
import { Lens, useChunks } from "./lens";
import { Line } from "./line";
import { described, group, member, recheck, reload } from "./members";
import { attributeText, describe, dimensionLabel, nameOf, parentOf, rawBytes, unitsOf, type ArrayNode } from "./node";
import { hasOwnColours, imageOf } from "./ome";
import { Colours, Decoding, Dimensions, Part, ProbePanel, Statistics } from "./panels";
import { Failure, Link, Name, Section, Switch, useTicks } from "./parts";
import type { Probe, Raster, Status } from "./raster";
import { place, write } from "./router";
import { requestSnippets } from "./snippets";
import { Table } from "./table";
import { firstBox } from "./tiles";
import { asRead, channelOf, consistent, kindsOf, read, reduction, render, selection, type Kind, type View } from "./view";

const KIND_NAMES: Record<Kind, string> = { image: "Heatmap", rgb: "RGB", line: "Line", table: "Table" };

export function ArrayPage({ array: given }: { array: ArrayNode }) {
  const image = useImage(given);
  const array = useMemo(() => {
    const { levels, hasOwnColours } = image;
    const isCoarser = ({ path, dataType, shape }: ArrayNode) => path !== given.path && dataType === given.dataType && shape.length === given.shape.length;
    return { ...given, ...(levels.length ? { levels: levels.filter(isCoarser) } : {}), ...(hasOwnColours ? { hasOwnColours } : {}) };
  }, [given, image]);
  const where = useCell(place);
  const [state, setState] = useState(() => read(where.search, array));
  const [version, setVersion] = useState("");
  const [probe, setProbe] = useState<Probe | null>(null);
  const [status, setStatus] = useState<Status | null>(null);
  const [found, setFound] = useState<Spread | null>(null);
  const [cost, setCost] = useState<{ text: string; cost: api.Cost } | null>(null);
  const told = (text: string, cost: api.Cost | null) => setCost(cost && { text, cost });
  const raster = useRef<Raster | null>(null);
  const { notes } = state;
  const view = useMemo(() => asRead(state.view, array), [state.view, array]);

  // The address leads, except where the page itself has just written it.
  const shape = array.shape.join(",");
  const first = useRef(true);
  useEffect(() => {
    if (first.current) first.current = false;
    else setState(read(where.search, array));
  }, [where, array.path, array.hasOwnColours]);

  // An array of other extents has the nearest view of those that were.
  useEffect(() => setState((old) => ({ ...old, view: consistent(old.view, array) })), [shape]);

  const change = useCallback(
    (patch: Partial<View>, isStep: boolean) =>
      setState((old) => {
        const view = consistent({ ...old.view, ...patch }, array);
        write(render(view, array), isStep);
        return { view, notes: isStep ? [] : old.notes };
      }),
    [array],
  );

  const { value: coordinates } = useAsync<(Coordinate | null)[]>(() => Promise.all(array.shape.map((_, at) => coordinate(array, at))), [array.path, shape]);
  const known = coordinates && coordinates.length === array.shape.length ? coordinates : NONE;

  useRecheck(array, status?.error ?? null);

  const choose = (kind: Kind) => {
    const base = consistent({ ...state.view, kind, y: kind === "line" ? -1 : view.y, box: null, low: null, high: null }, array);
    change({ ...base, pin: view.pin }, true);
  };
  const isEmpty = array.shape.some((length) => length === 0);
  const hasStatistics = (view.kind === "image" || view.kind === "line") && !isEmpty && array.kind !== "bool" && array.kind !== "complex" && !view.over.length && (!!view.decode || !array.isPacked);
  const isPlane = view.kind === "image" || view.kind === "rgb";
  const statistics = hasStatistics && <Statistics array={array} view={view} select={selection(view, array, new Map([[view.x, ":"], [view.y, ":"]]))} />;
  const limits = view.low !== null && view.high !== null ? ([view.low, view.high] as const) : found ? suitableLimits(array, view, found) : null;
  const colouring = useMemo(() => (limits && isPlane ? colouringOf(array, view, limits[0], limits[1]) : null), [array, view, limits?.[0], limits?.[1]]);
  const select = useMemo(() => shownSelection(array, view), [array, view]);
  const isLarge = isPlane && firstBox(array, view).isWindow;
  useFollow(array, view, select, change, setVersion);
  const chunks = useChunks(array, view, select, view.lens || isLarge, version);
  const longName = attributeText(array, "long_name") ?? attributeText(array, "standard_name");

  return (
    <>
      <header class="title">
        <h1>{array.path ? <Name text={array.name} /> : "The root array"}</h1>
        <p class="facts">
          <span>
            <Name text={array.dataType} />
          </span>
          <span>
            <Shape array={array} />
          </span>
          {array.kind !== "other" && <span>{bytes(rawBytes(array))}</span>}
          {unitsOf(array) && (
            <span>
              <Name text={unitsOf(array)!} />
            </span>
          )}
        </p>
        {longName && (
          <p class="lead">
            <Name text={longName} />
          </p>
        )}
      </header>
      {notes.length > 0 && (
        <p class="notice" role="status">
          The address asked for what this array does not have (<Name text={notes.join(", ")} />
          ); the nearest view is shown.
        </p>
      )}
      <div class="toolbar">
        <div class="tabs" role="group" aria-label="View">
          {kindsOf(array).map((kind) => (
            <button key={kind} type="button" aria-pressed={view.kind === kind} onClick={() => choose(kind)}>
              {array.shape.length === 0 ? "Value" : KIND_NAMES[kind]}
            </button>
          ))}
        </div>
        {array.kind === "complex" && view.kind !== "table" && <Part view={view} change={change} />}
        <Decoding array={array} view={view} change={change} />
        <span class="spring" />
        {array.shape.length > 0 && <Switch label="Chunks" on={view.lens} onChange={(lens) => change({ lens }, true)} />}
        {array.shape.length > 0 && <Switch label="Follow" on={view.follow} onChange={(follow) => change({ follow }, true)} />}
        {isPlane && (
          <span class="zoom">
            <button type="button" class="quiet" aria-label="Zoom out" onClick={() => raster.current?.zoom(1.5)}>
              −
            </button>
            <button type="button" class="quiet" aria-label="Zoom in" onClick={() => raster.current?.zoom(1 / 1.5)}>
              +
            </button>
            <button type="button" class="quiet" disabled={!view.box} onClick={() => change({ box: null }, true)}>
              Whole
            </button>
          </span>
        )}
      </div>
      <div class="array">
        <div class="main">
          {isPlane && status?.work != null && <TooMuch status={status} approve={() => raster.current?.approve()} narrow={() => change({ box: firstBox(array, view).box }, true)} />}
          {isPlane && status?.error && <Failure error={status.error} retry={() => reload(array.path)} {...smallerPart(array, view, status.error, raster.current, change)} />}
          {isPlane && (
            <Image
              key={`${array.path}|${view.kind}`}
              array={array}
              view={view}
              version={version}
              coordinates={known}
              chunks={chunks.shown}
              hasMissing={!!found?.missing}
              change={change}
              onProbe={setProbe}
              onStatus={setStatus}
              onSpread={setFound}
              handle={(made) => (raster.current = made)}
            />
          )}
          {view.kind === "line" && <Line array={array} view={view} version={version} coordinates={known} change={change} onCost={told} />}
          {view.kind === "table" && <Table array={array} view={view} version={version} coordinates={known} change={change} onCost={told} />}
          <p class="cost" role="status" data-loading={String(!isEmpty && (isPlane ? (status?.loading ?? true) : !cost))}>
            {isEmpty ? "" : isPlane ? planeCost(array, view, status) : cost ? `${spent(cost.cost, cost.cost.bytes)}. ${cost.text}` : ""}
          </p>
          {!isPlane && statistics}
        </div>
        <aside class="side" aria-label="What is shown">
          <Levels array={array} all={image.levels} />
          <Dimensions array={array} view={view} coordinates={known} isBusy={isPlane && !!status?.loading} change={change} />
          {isPlane && <ProbePanel array={array} view={view} probe={probe} version={version} coordinates={known} change={change} />}
          {isPlane && (view.kind === "image" || !isByte(array)) && <Colours array={array} view={view} colouring={colouring} found={found} change={change} />}
          {isPlane && statistics}
        </aside>
      </div>
      {(view.lens || (isLarge && chunks.all)) && <Lens array={array} view={view} {...chunks} flip={isFlipped(known, view)} change={change} />}
      <Export array={array} view={view} select={select} />
      <Details node={array} />
    </>
  );
}

/** What the image that an array is a level of says: its levels, and the colours of its channels. */
interface Image {
  levels: ArrayNode[];
  hasOwnColours: boolean;
}

const NO_IMAGE: Image = { levels: [], hasOwnColours: false };

function useImage(array: ArrayNode): Image {
  const { value } = useAsync(async () => {
    const parent = parentOf(array.path);
    const node = (await member(parentOf(parent), nameOf(parent))) ?? (parent ? await described(parent) : group("").value.node);
    if (node?.type !== "group") return NO_IMAGE;
    const image = imageOf(node);
    const paths = image.levels;
    const levels = await Promise.all(paths.slice(0, 20).map((path) => (path.includes("/") ? null : member(parent, path))));
    const found = levels.flatMap((level) => (level?.type === "array" ? [level] : []));
    const isLevel = paths.includes(nameOf(array.path));
    return { levels: found.length > 1 && found.some((level) => level.path === array.path) ? found : [], hasOwnColours: isLevel && hasOwnColours(image) };
  }, [array.path]);
  return value ?? NO_IMAGE;
}

function Levels({ array, all }: { array: ArrayNode; all: ArrayNode[] }) {
  if (!all.length) return null;
  return (
    <section class="panel" aria-label="Levels">
      <h2>Levels</h2>
      <ul class="levels">
        {all.map((level) => (
          <li key={level.path}>
            <Link path={level.path} aria-current={level.path === array.path ? "page" : undefined}>
              <Name text={level.name} /> <span class="faint">{level.shape.join(" × ")}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

const NONE: (Coordinate | null)[] = [];

/** The most chunks whose elements are followed; beyond that only the shape is. */
const FOLLOWED = 2000;

/** Looks again every second, and shows what was appended or written. */
function useFollow(array: ArrayNode, view: View, select: string[], change: (patch: Partial<View>, isStep: boolean) => void, setVersion: (version: string) => void): void {
  const seen = useRef<string | null>(null);
  useEffect(() => {
    seen.current = null;
  }, [array.path]);
  useTicks(view.follow, 1000, () => {
    const spans = select.map((item, at) => (item === ":" ? array.shape[at]! : Math.max(1, (Number(item.split(":")[1]) || 0) - (Number(item.split(":")[0]) || 0))));
    const isFew = spans.reduce((product, span, at) => product * (Math.ceil(span / (array.shards ?? array.chunks)[at]!) + 1), 1) <= FOLLOWED;
    // An array may grow before its new elements are written.
    const elements = isFew && !array.shape.includes(0) ? api.version(array.path, { select }).catch(() => "") : "";
    void Promise.all([api.node(array.path), elements]).then(([page, elements]) => {
      const etag = `${page.etag ?? JSON.stringify(page.node)}${elements}`;
      const before = seen.current;
      seen.current = etag;
      const next = describe(array.path, page.node, page.undecoded);
      if (next.type !== "array") return;
      const grew = next.shape.join() !== array.shape.join();
      if (!grew && (before === null || before === etag)) return;
      setVersion(etag);
      group(array.path).set({ ...group(array.path).value, node: next });
      // An index at the end stays at the end.
      const at = view.at.map((index, d) => (index === array.shape[d]! - 1 && next.shape[d]! > array.shape[d]! ? next.shape[d]! - 1 : index));
      if (grew && next.shape.length === array.shape.length) change({ at }, false);
    }, () => undefined);
  });
}

/** The selection of what is shown. */
function shownSelection(array: ArrayNode, view: View): string[] {
  const box = view.box ?? (view.kind === "line" || view.x < 0 ? null : firstBox(array, view).box);
  const range = (at: number, from: number, to: number) => {
    const [low, high] = [Math.max(0, Math.floor(from)), Math.min(array.shape[at]!, Math.ceil(to))];
    return low === 0 && high === array.shape[at]! ? ":" : `${low}:${Math.max(low, high)}`;
  };
  const ranges = new Map<number, string>();
  if (view.x >= 0) ranges.set(view.x, box ? range(view.x, box[0], box[1]) : ":");
  if (view.y >= 0) ranges.set(view.y, box ? range(view.y, box[2], box[3]) : ":");
  if (view.kind === "table") for (const at of [view.x, view.y]) if (at >= 0) ranges.set(at, ":");
  const channel = view.kind === "rgb" ? channelOf(array) : -1;
  if (channel >= 0) ranges.set(channel, ":");
  return selection(view, array, ranges);
}

/** What an answer took: "12 chunks, 3.1 MiB, 41 ms". */
function spent({ chunks, storedBytes, milliseconds: time }: Pick<api.Cost, "chunks" | "storedBytes" | "milliseconds">, received: number): string {
  const read = chunks ? [`${integer(chunks)} ${chunks === 1 ? "chunk" : "chunks"}`, ...(storedBytes === null ? [] : [bytes(storedBytes)])] : [bytes(received)];
  return [...read, milliseconds(time)].join(", ");
}

function planeCost(array: ArrayNode, view: View, status: Status | null): string {
  if (!status || status.work !== null) return "";
  const parts = [`${spent(status, status.bytes)}. ${integer(status.tiles)}${status.loading ? ` of ${integer(status.of)}` : ""} ${status.of === 1 ? "tile" : "tiles"}`, `${bytes(status.bytes)} received`];
  const [stepX, stepY] = status.step;
  if (stepX > 1 || stepY > 1) {
    if (status.level) parts.push(`of level ${status.level}`);
    const how = status.isNearest || view.thinning === "nearest" ? "one sample for" : `the ${view.thinning} of`;
    parts.push(`${how} ${stepX} × ${stepY} elements`);
  }
  if (api.undecodable.has(array.path) && view.decode) parts.push("as stored, since this array cannot be decoded");
  if (view.over.length) parts.push(`the ${view.by} of all along ${view.over.map((at) => dimensionLabel(array, at)).join(", ")}`);
  if (status.isNearest) parts.push(`this server does not compute the ${view.thinning} here`);
  const whole = array.shape.reduce((product, length, at) => (at === view.x || at === view.y ? product * length : product), 1);
  if (!view.box && firstBox(array, view).isWindow) parts.push(`a first window of ${integer(whole)} elements`);
  return parts.join(", ");
}

/** Looks at the array again if the server refuses what it should have. */
function useRecheck(array: ArrayNode, error: Error | null): void {
  useEffect(() => {
    if (error instanceof api.Changed || (error instanceof api.Problem && [400, 404, 409, 422].includes(error.status))) void recheck(array.path);
  }, [array, error]);
}

/** The part of a plane that the server would answer. */
function smallerPart(array: ArrayNode, view: View, error: Error, raster: Raster | null, change: (patch: Partial<View>, isStep: boolean) => void): { smaller: () => void; part?: string } {
  const items = error instanceof api.Problem ? (error.smaller?.split(",") ?? []) : [];
  const [x, y] = [view.x, view.y].map((at) => /^(\d*):(\d+)/.exec(items[at] ?? "")?.slice(1).map(Number));
  if (items.length !== array.shape.length || !x || !y || x[1]! <= x[0]! || y[1]! <= y[0]!) return { smaller: () => raster?.zoom(0.25) };
  const smaller = () => {
    raster?.narrow(x[1]! - x[0]!, y[1]! - y[0]!);
    change({ box: [x[0]!, x[1]!, y[0]!, y[1]!] }, true);
  };
  return { smaller, part: items.join(", ") };
}

function TooMuch({ status, approve, narrow }: { status: Status; approve: () => void; narrow: () => void }) {
  return (
    <div class="notice" role="status">
      <strong>This view takes {bytes(status.work ?? 0)} of elements to read.</strong>
      <p class="actions">
        <button type="button" onClick={narrow}>
          Show a window instead
        </button>
        <button type="button" class="quiet" onClick={approve}>
          Read it all
        </button>
      </p>
    </div>
  );
}

function Export({ array, view, select }: { array: ArrayNode; view: View; select: string[] }) {
  const [error, setError] = useState<Error | null>(null);
  const reduced = reduction(view, array);
  const query: api.Query = {
    select,
    decode: api.supports("decode") && !api.undecodable.has(array.path) ? view.decode : undefined,
    ...(reduced && { reduce: api.withoutNan(reduced.by), axis: reduced.axis }),
  };
  const save = (url: string, name: string) => {
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
  };
  const fetchAs = (format: string) => {
    setError(null);
    const name = `${array.name || "array"}.${format}`;
    api.downloadUrl(array.path, api.elementsUrl(array.path, query, format)).then((url) => save(url, name), setError);
  };
  const picture = () => {
    const canvas = document.querySelector<HTMLCanvasElement>("canvas.plot");
    canvas?.toBlob((blob) => {
      if (!blob) return;
      const url = URL.createObjectURL(blob);
      save(url, `${array.name || "array"}.png`);
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    });
  };
  const isFlat = select.filter((item) => item.includes(":")).length - view.over.length <= 2;
  return (
    <Section title="Export what is shown">
      <p class="actions">
        {(view.kind === "image" || view.kind === "rgb") && (
          <button type="button" onClick={picture}>
            PNG as seen
          </button>
        )}
        <button type="button" onClick={() => fetchAs("npy")}>
          npy
        </button>
        {isFlat && (
          <button type="button" onClick={() => fetchAs("csv")}>
            csv
          </button>
        )}
      </p>
      {error && <Failure error={error} />}
      <div class="snippets">
        <Program name="Address of this view" text={location.href} />
        {requestSnippets(array.path, query).map(({ name, text }) => (
          <Program key={name} name={name} text={text} />
        ))}
      </div>
    </Section>
  );
}
