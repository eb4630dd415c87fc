import { useEffect, useRef } from "preact/hooks";
import * as api from "./api";
import { bytes, integer } from "./format";
import { useAsync } from "./hooks";
import { count, type ArrayNode } from "./node";
import { Failure, Name, Section } from "./parts";
import { firstBox } from "./tiles";
import type { Box, View } from "./view";

/** The most bins along a dimension, as the server has them. */
const BINS = 512;
/** The most chunks of a view that are marked one by one. */
const MARKED = 20_000;

/** The chunks of a view, if they are asked for: `null` until they are known, or where the server does not tell. */
export function useChunks(array: ArrayNode, view: View, select: string[], isAsked: boolean, version: string): { shown: api.ChunkMap | null; all: api.ChunkMap | null; error: Error | null } {
  const axes = [view.x, view.y].filter((at) => at >= 0);
  const isOn = isAsked && array.shape.length > 0 && !array.shape.includes(0);
  const whole = select.map((item, at) => (axes.includes(at) ? ":" : item));
  const isPart = select.join() !== whole.join();
  const read = (select: string[], isAsked: boolean) => (signal: AbortSignal) => (isAsked ? api.chunkMap(array.path, select, BINS, axes, signal) : Promise.resolve(null));
  const part = useAsync(read(select, isOn && isPart), [isOn, array, version, select.join(), axes.join()]);
  const all = useAsync(read(whole, isOn), [isOn, array, version, whole.join(), axes.join()]);
  // Of a view of all, one answer suffices.
  const shown = isPart ? part : all;
  return isOn ? { shown: shown.value, all: all.value, error: shown.error ?? all.error } : { shown: null, all: null, error: null };
}

const ratio = (raw: number, stored: number) => {
  const found = raw / stored;
  return found >= 1.05 ? `${found < 10 ? found.toFixed(1) : integer(Math.round(found))} times smaller than ${bytes(raw)}` : `of ${bytes(raw)} decoded`;
};

/** The numbers of a map in words. */
function summary(map: api.ChunkMap): string {
  const unit = map.innerShape ? "shards" : "chunks";
  if (map.stored === 0) return `none of ${integer(map.touched)} ${unit} is stored: all elements have the fill value`;
  const missing = map.touched - map.stored;
  const parts = [missing ? `${integer(map.stored)} of ${integer(map.touched)} ${unit} stored, ${integer(missing)} missing` : `${integer(map.touched)} ${map.touched === 1 ? unit.slice(0, -1) : unit}, all stored`];
  parts.push(bytes(map.bytes) + (map.chunkBytes && map.bytes ? `, ${ratio(map.stored * map.chunkBytes, map.bytes)}` : ""));
  return parts.join(": ");
}

/** The chunks of the view and of the whole plane, and the one of the pinned element. */
export function Lens({ array, view, shown, all, error, flip, change }: { array: ArrayNode; view: View; shown: api.ChunkMap | null; all: api.ChunkMap | null; error: Error | null; flip: boolean; change: (patch: Partial<View>, isStep: boolean) => void }) {
  const grid = array.shape.map((length, at) => Math.ceil(length / array.chunks[at]!));
  const pinned = useAsync((signal) => (view.pin ? api.chunkOf(array.path, view.pin, signal) : Promise.resolve(null)), [array, view.pin]);
  const size = all?.innerShape ? null : (all?.chunkBytes ?? null);
  const rows: [string, string][] = [["chunks of", `${array.chunks.join(" × ") || "one element"}${size ? `, ${bytes(size)} decoded` : ""}`]];
  if (array.shards) rows.push(["in shards of", `${array.shards.join(" × ")}${all?.chunkBytes ? `, ${bytes(all.chunkBytes)} decoded` : ""}`]);
  rows.push(["grid", `${grid.map(integer).join(" × ") || "1"} = ${integer(count(grid))} ${array.shards ? "inner chunks" : "chunks"}`]);
  if (array.codecs.length) rows.push(["codecs", array.codecs.join(", ")]);
  if (shown) rows.push(["in this view", summary(shown)]);
  if (all && shown && all.touched !== shown.touched) rows.push(["in this plane", summary(all)]);
  const chunk = pinned.value;
  const found = all && shown && !shown.stored && view.x >= 0 && view.y >= 0 ? firstStored(array, view, all) : null;
  if (view.pin && chunk) rows.push(["at the pinned element", `${chunk.key ?? chunk.index.join(", ")}: ${chunk.bytes === null ? "not stored" : bytes(chunk.bytes)}`]);
  return (
    <Section title="Chunks" open>
      <div class="lens">
        {all && view.x >= 0 && view.y >= 0 && view.kind !== "table" && <Plan array={array} view={view} map={all} flip={flip} change={change} />}
        <div>
          {error && <Failure error={error} />}
          {found && (
            <button type="button" onClick={() => change({ box: found, ...(view.limits !== "fixed" && { low: null, high: null }) }, true)}>
              Show what is stored
            </button>
          )}
          <dl class="attributes">
            {rows.map(([name, text]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>
                  <Name text={text} />
                </dd>
              </div>
            ))}
          </dl>
        </div>
      </div>
    </Section>
  );
}

/** The bins along a dimension, and their strides among all. */
function axisOf(map: api.ChunkMap, at: number): { starts: number[]; chunks: number[]; stride: number } {
  const number = map.axes.findIndex((axis) => axis.dimension === at);
  const found = map.axes[number];
  if (!found) return { starts: [0], chunks: [1], stride: 0 };
  const stride = map.axes.slice(number + 1).reduce((product, axis) => product * axis.starts.length, 1);
  return { ...found, stride };
}

/** A window of the size that is shown around the first stored chunk. */
function firstStored(array: ArrayNode, view: View, map: api.ChunkMap): Box | null {
  const [across, down] = [axisOf(map, view.x), axisOf(map, view.y)];
  const box = view.box ?? firstBox(array, view).box;
  for (let j = 0; j < down.starts.length; j++)
    for (let i = 0; i < across.starts.length; i++)
      if (map.perBin[j * down.stride + i * across.stride]) {
        const lengths = array.shards ?? array.chunks;
        const [x, y] = [across.starts[i]! * lengths[view.x]!, down.starts[j]! * lengths[view.y]!];
        return [x, x + box[1] - box[0], y, y + box[3] - box[2]];
      }
  return null;
}

/** Which chunks of a plane are stored: the darker, the more of those that share a pixel. A click goes there. */
function Plan({ array, view, map, flip, change }: { array: ArrayNode; view: View; map: api.ChunkMap; flip: boolean; change: (patch: Partial<View>, isStep: boolean) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [across, down] = [axisOf(map, view.x), axisOf(map, view.y)];
  const [nx, ny] = [array.shape[view.x]!, array.shape[view.y]!];
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const image = context.createImageData(across.starts.length, down.starts.length);
    down.chunks.forEach((tall, j) =>
      across.chunks.forEach((wide, i) => {
        const stored = map.perBin[j * down.stride + i * across.stride] ?? 0;
        const row = flip ? down.starts.length - 1 - j : j;
        const share = stored / (wide * tall * Math.max(1, map.others));
        image.data.set([58, 134, 176, stored ? 70 + Math.round(185 * Math.min(1, share)) : 0], 4 * (row * across.starts.length + i));
      }),
    );
    context.putImageData(image, 0, 0);
  }, [map, view.x, view.y, flip]);
  const box = view.box ?? firstBox(array, view).box;
  const share = (value: number, length: number) => Math.min(1, Math.max(0, value / length));
  const [left, right, top, bottom] = [share(box[0], nx), share(box[1], nx), share(box[2], ny), share(box[3], ny)];
  const place = (event: MouseEvent) => {
    const [x, y] = [event.offsetX / canvas.current!.clientWidth, event.offsetY / canvas.current!.clientHeight];
    const [wide, tall] = [box[1] - box[0], box[3] - box[2]];
    const from = (at: number, span: number, length: number) => Math.max(0, Math.min(length - span, at * length - span / 2));
    const [x0, y0] = [from(x, wide, nx), from(flip ? 1 - y : y, tall, ny)];
    change({ box: [x0, x0 + wide, y0, y0 + tall] as Box }, true);
  };
  return (
    <figure class="map">
      <div class="map-frame" style={{ aspectRatio: String(Math.min(3, Math.max(0.6, nx / ny))) }}>
        <canvas ref={canvas} width={across.starts.length} height={down.starts.length} onClick={place} role="img" aria-label={`Stored chunks: ${summary(map)}`} />
        <div class="map-view" style={{ left: `${100 * left}%`, width: `${100 * (right - left)}%`, top: `${100 * (flip ? 1 - bottom : top)}%`, height: `${100 * (bottom - top)}%` }} />
      </div>
      <figcaption class="faint small">Stored chunks of this plane. Hatched: not stored. A click moves the view there.</figcaption>
    </figure>
  );
}

/** The chunks of a view that are not stored, as a path in shares of its box. */
export function missingPath(array: ArrayNode, view: View, map: api.ChunkMap, box: Box, flip: boolean): string {
  const [across, down] = [axisOf(map, view.x), axisOf(map, view.y)];
  if (across.starts.length * down.starts.length > MARKED || [...across.chunks, ...down.chunks].some((chunks) => chunks > 1)) return "";
  const lengths = array.shards ?? array.chunks;
  const share = (chunk: number, at: number, low: number, high: number) => (1000 * (Math.min(array.shape[at]!, chunk * lengths[at]!) - low)) / (high - low);
  let path = "";
  down.starts.forEach((y, j) =>
    across.starts.forEach((x, i) => {
      if (map.perBin[j * down.stride + i * across.stride]) return;
      const [left, right, top, bottom] = [share(x, view.x, box[0], box[1]), share(x + 1, view.x, box[0], box[1]), share(y, view.y, box[2], box[3]), share(y + 1, view.y, box[2], box[3])];
      path += `M${left} ${flip ? 1000 - bottom : top}h${right - left}v${bottom - top}H${left}z`;
    }),
  );
  return path;
}
