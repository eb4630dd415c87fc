import { useEffect, useRef, useState } from "preact/hooks";
import { arrayUrl, request } from "./api";
import { integer } from "./format";
import { useAsync } from "./hooks";
import { described } from "./members";
import { join, type ArrayNode, type GroupNode } from "./node";
import { imageOf } from "./ome";
import { Failure, Name } from "./parts";

/** The longest side of a picture, in pixels. */
const SIDE = 1024;

/** The most levels that are looked at. */
const MAX_LEVELS = 20;

/** The most channels that are shown. */
const MAX_CHANNELS = 32;

/** An image of OME-Zarr with channels: their added colours, of the finest level that fits on a screen. */
export function Preview({ node, arrays }: { node: GroupNode; arrays: ArrayNode[] }) {
  const { axes, channels, levels: paths } = imageOf(node);
  // Levels may be in groups of their own.
  const { value } = useAsync(() => Promise.all(paths.slice(0, MAX_LEVELS).map((path) => levelAt(join(node.path, path), arrays))), [node, arrays.length]);
  const levels = value ?? [];
  const fits = (array: ArrayNode | null) => array?.shape.slice(-2).every((extent) => extent <= SIDE);
  const level = levels.findIndex(fits);
  const array = levels[level];
  const named = axes.findIndex(({ name, type }) => type === "channel" || name === "c");
  const at = named < 0 && array ? array.dimensions.findIndex((name) => name === "c" || name === "channel") : named;
  const count = array?.shape[at] ?? 0;
  const [wanted, setWanted] = useState<number[] | null>(null);
  useEffect(() => setWanted(null), [node.path]);
  if (!array || at < 0 || at > array.shape.length - 3) return null;
  const all = Array.from({ length: Math.min(count, MAX_CHANNELS) }, (_, index) => channels[index] ?? { label: `channel ${index}`, color: null, isActive: !channels.length });
  const active = all.flatMap(({ isActive }, index) => (isActive ? [index] : []));
  const shown = wanted ?? (active.length ? active : all.map((_, index) => index));
  // A plane in the middle of what is deep, at the first time.
  const select = array.shape.map((extent, axis) => (axis === at || axis >= array.shape.length - 2 ? ":" : axes[axis]?.type === "space" ? String(extent >> 1) : "0"));
  return (
    <section class="panel preview" aria-label="Image">
      {shown.length > 0 && <Picture url={`${arrayUrl(node.path)}?level=${level}&format=png&channels=${shown.join(",")}&select=${select.join(",")}`} />}
      <div class="channels">
        {all.map(({ label, color }, index) => (
          <label key={index} class="switch">
            <input type="checkbox" checked={shown.includes(index)} onChange={({ currentTarget }) => setWanted(currentTarget.checked ? [...shown, index].sort((a, b) => a - b) : shown.filter((other) => other !== index))} />
            {color && <span style={{ color }}>■</span>}
            <Name text={label} />
          </label>
        ))}
        {count > MAX_CHANNELS && <span class="faint">and {integer(count - MAX_CHANNELS)} more channels, which are not shown here</span>}
      </div>
    </section>
  );
}

async function levelAt(path: string, arrays: ArrayNode[]): Promise<ArrayNode | null> {
  const found = arrays.find((array) => array.path === path) ?? (await described(path).catch(() => null));
  return found?.type === "array" ? found : null;
}

function Picture({ url }: { url: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { value, error } = useAsync(async (signal) => createImageBitmap(await (await request(url, "image/png", signal)).blob()), [url]);
  useEffect(() => {
    if (!canvas.current || !value) return;
    [canvas.current.width, canvas.current.height] = [value.width, value.height];
    canvas.current.getContext("2d")?.drawImage(value, 0, 0);
  }, [value]);
  return error ? <Failure error={error} /> : <canvas ref={canvas} />;
}
