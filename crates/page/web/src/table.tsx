import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import { elementText, type Elements } from "./elements";
import { partOf, textOf, type Coordinate } from "./coordinates";
import { integer } from "./format";
import { useAsync } from "./hooks";
import type { Json } from "./json";
import { fieldsOf, isTime, type ArrayNode } from "./node";
import { Failure, Name } from "./parts";
import { axisName, selection, type View } from "./view";

const ROWS = 50;
const COLUMNS = 16;

interface Cells {
  columns: number;
  rows: number;
  text: (row: number, column: number) => string;
  /** The labels of rows and columns, where these are too many to be known. */
  heads: (Coordinate | null)[];
  cost: api.Cost;
}

interface Props {
  array: ArrayNode;
  view: View;
  version: string;
  coordinates: (Coordinate | null)[];
  change: (patch: Partial<View>, isStep: boolean) => void;
  onCost: (text: string, cost: api.Cost | null) => void;
}

const cellText = (value: Json | undefined): string => (typeof value === "string" ? value : value === undefined ? "" : Array.isArray(value) ? value.map(cellText).join(", ") : String(value));

export function Table({ array, view, version, coordinates, change, onCost }: Props) {
  const isScalar = array.shape.length === 0;
  // Of a single dimension the elements run downwards.
  const [across, down] = view.y < 0 ? [-1, view.x] : [view.x, view.y];
  const [nx, ny] = [across < 0 ? 1 : array.shape[across]!, down < 0 ? 1 : array.shape[down]!];
  const clip = (value: number, length: number) => Math.max(0, Math.min(length - 1, Math.floor(value)));
  const column = clip(across < 0 ? 0 : (view.box?.[0] ?? 0), nx);
  const row = clip((across < 0 ? view.box?.[0] : view.box?.[2]) ?? 0, ny);
  const [columns, rows] = [Math.min(COLUMNS, nx - column), Math.min(ROWS, ny - row)];
  const isEmpty = array.shape.some((length) => length === 0);
  const [attempt, setAttempt] = useState(0);
  const { value, error, isStale } = useAsync<Cells | null>(
    async (signal) => {
      if (isEmpty) return null;
      const part = (at: number, from: number, count: number) => partOf(coordinates[at] ?? null, array, at, [from, from + count], 1, signal).catch(() => null);
      const [cells, ...heads] = await Promise.all([load(array, view, [across, down], [column, columns], [row, rows], signal), part(down, row, rows), part(across, column, columns)]);
      return { ...cells, heads };
    },
    [array, version, view.at, view.decode, across, down, column, row, columns, rows, attempt, coordinates],
  );
  useEffect(() => {
    if (!value || isStale) onCost("", null);
    else onCost(`All elements of the table${isTime(array) ? ", decoded to times" : ""}`, value.cost);
  }, [value, isStale]);
  if (isEmpty) return <p class="notice">This array has no elements.</p>;
  if (error) return <Failure error={error} retry={() => setAttempt(attempt + 1)} />;
  if (isScalar)
    return (
      <p class="scalar">
        <Name text={value?.text(0, 0) ?? "…"} />
      </p>
    );
  const move = (nextColumn: number, nextRow: number) => {
    const box: View["box"] = across < 0 ? [nextRow, nextRow + 1, 0, 1] : [nextColumn, nextColumn + 1, nextRow, nextRow + 1];
    change({ box: nextColumn === 0 && nextRow === 0 ? null : box }, true);
  };
  const head = (at: number, index: number) => {
    const [known, part, from] = [coordinates[at], value?.heads[at === down ? 0 : 1], at === down ? row : column];
    return (part && part !== known ? part.texts[index - from] : textOf(known, index)) ?? String(index);
  };
  // The fields of structs are the columns of a table of one dimension.
  const fields = across < 0 ? fieldsOf(array) : [];
  const isText = array.kind === "other" && !fields.length;
  return (
    <div class="table-view">
      <div class="pager">
        <Pager label={axisName(array, down)} from={row} count={rows} length={ny} size={ROWS} go={(next) => move(column, next)} />
        {across >= 0 && <Pager label={axisName(array, across)} from={column} count={columns} length={nx} size={COLUMNS} go={(next) => move(next, row)} />}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Elements">
        <table class="elements">
          <thead>
            <tr>
              <th scope="col">
                <Name text={axisName(array, down)} />
              </th>
              {Array.from({ length: fields.length || columns }, (_, at) => (
                <th key={at} scope="col" class={isText ? "text" : ""}>
                  <Name text={fields[at] ?? (across < 0 ? array.name || "value" : head(across, column + at))} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {value &&
              Array.from({ length: value.rows }, (_, r) => (
                <tr key={r}>
                  <th scope="row">
                    <Name text={head(down, row + r)} />
                  </th>
                  {Array.from({ length: fields.length || value.columns }, (_, c) => (
                    <td key={c} class={isText ? "text" : ""}>
                      <Name text={value.text(r, c)} />
                    </td>
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Pager({ label, from, count, length, size, go }: { label: string; from: number; count: number; length: number; size: number; go: (from: number) => void }) {
  if (length <= size) return null;
  return (
    <span class="page">
      <button type="button" class="quiet" disabled={from === 0} aria-label={`Before, along ${label}`} onClick={() => go(Math.max(0, from - size))}>
        ‹
      </button>
      <span>
        <Name text={label} /> {integer(from)}–{integer(from + count - 1)} of {integer(length)}
      </span>
      <button type="button" class="quiet" disabled={from + size >= length} aria-label={`After, along ${label}`} onClick={() => go(from + size)}>
        ›
      </button>
    </span>
  );
}

async function load(array: ArrayNode, view: View, [across, down]: [number, number], [column, columns]: [number, number], [row, rows]: [number, number], signal: AbortSignal): Promise<Omit<Cells, "heads">> {
  const ranges = new Map<number, string>();
  if (across >= 0) ranges.set(across, `${column}:${column + columns}`);
  if (down >= 0) ranges.set(down, `${row}:${row + rows}`);
  const select = selection(view, array, ranges);
  // The first of the two dimensions in the array is that of the answer.
  const isTurned = across >= 0 && across < down;
  if (array.kind === "other" || array.kind === "time" || isTime(array)) {
    const read = (decode?: "cf") => api.values(array.path, { select, decode }, signal);
    // Times that no calendar knows are shown as stored.
    const { value, cost } = await (isTime(array) && view.decode !== undefined ? read("cf").catch((error) => (error instanceof api.Problem ? read() : Promise.reject(error))) : read());
    const list = (json: Json | undefined) => (Array.isArray(json) ? json : []);
    const fields = fieldsOf(array);
    const named = (cell: Json | undefined) => (fields.length ? fields.map((name, at) => `${name}: ${cellText(list(cell)[at])}`).join(", ") : cellText(cell));
    const text = (r: number, c: number) => {
      if (down < 0) return named(value);
      if (across < 0) return cellText(fields.length ? list(list(value)[r])[c] : list(value)[r]);
      return named(isTurned ? list(list(value)[c])[r] : list(list(value)[r])[c]);
    };
    return { columns, rows, text, cost };
  }
  const found: Elements & { cost: api.Cost } = await api.thinned(array.path, { select, steps: [], thinning: "nearest", decode: view.decode }, signal);
  const text = (r: number, c: number) => elementText(found, isTurned ? c * rows + r : r * columns + c);
  return { columns, rows, text, cost: found.cost };
}
