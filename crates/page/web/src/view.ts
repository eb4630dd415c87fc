/** What is shown of an array: the state in the address. */

import { MAPS, SCALES, type MapName, type Scale } from "./colour";
import { isDrawn, type Part } from "./elements";
import { REDUCTIONS, type Reduction, type Thinning } from "./api";
import { dimensionKey, dimensionLabel, isTime, unitsOf, type ArrayNode } from "./node";

export type Kind = "image" | "rgb" | "line" | "table";
export type Box = [x0: number, x1: number, y0: number, y1: number];

export interface View {
  kind: Kind;
  /** The dimension across, and downwards; -1 for none. */
  x: number;
  y: number;
  /** The index along every other dimension. */
  at: number[];
  /** The dimensions that are reduced, and by what. */
  over: number[];
  by: Reduction;
  /** The part of the plane that is shown, in elements; `null` for all, or as much as is sensible. */
  box: Box | null;
  map: MapName | "auto";
  scale: Scale;
  limits: "robust" | "full" | "fixed";
  low: number | null;
  high: number | null;
  outside: boolean;
  part: Part;
  decode: "cf" | undefined;
  thinning: Thinning;
  /** A pinned element, and the dimension of its profile. */
  pin: number[] | null;
  profile: number;
  lens: boolean;
  follow: boolean;
}

const KINDS: Kind[] = ["image", "rgb", "line", "table"];
const PARTS: Part[] = ["magnitude", "phase", "real", "imaginary"];
const THINNINGS: Thinning[] = ["nearest", "mean", "min", "max"];

/** The dimension of colour channels, or -1. Channels of more than 8 bits are measured ones, each with limits of its own. */
export function channelOf({ shape, dimensions, dataType, hasOwnColours }: ArrayNode): number {
  if (shape.length < 3 || hasOwnColours || !/^(uint8|[|]u1)$/.test(dataType)) return -1;
  const isChannel = (at: number) => [3, 4].includes(shape[at]!) && /^(c|ch|channels?|rgba?|bands?|colou?r)$/i.test(dimensions[at] ?? "");
  const named = shape.findIndex((_, at) => isChannel(at));
  const last = shape.length - 1;
  return named >= 0 ? named : [3, 4].includes(shape[last]!) && dimensions[last] == null ? last : -1;
}

export function kindsOf(array: ArrayNode): Kind[] {
  if (!isDrawn(array.kind)) return ["table"];
  const kinds: Kind[] = array.shape.length >= 2 ? ["image"] : [];
  if (channelOf(array) >= 0) kinds.unshift("rgb");
  if (array.shape.length >= 1) kinds.push("line");
  return [...kinds, "table"];
}

export function initial(array: ArrayNode): View {
  const rank = array.shape.length;
  const kind = rank === 0 ? "table" : kindsOf(array)[0]!;
  const channel = kind === "rgb" ? channelOf(array) : -1;
  const free = array.shape.map((_, at) => at).filter((at) => at !== channel);
  // Dimensions of one element show nothing.
  const wide = free.filter((at) => array.shape[at]! > 1);
  const shown = wide.length >= 2 ? wide : free;
  return {
    kind,
    x: shown[shown.length - 1] ?? -1,
    y: kind === "line" ? -1 : (shown[shown.length - 2] ?? -1),
    at: array.shape.map(() => 0),
    over: [],
    by: "mean",
    box: null,
    map: "auto",
    scale: "linear",
    limits: "robust",
    low: null,
    high: null,
    outside: false,
    part: "magnitude",
    // Units are those of decoded elements.
    decode: (array.isPacked || isTime(array)) && isDrawn(array.kind) ? "cf" : undefined,
    thinning: "nearest",
    pin: null,
    profile: 0,
    lens: false,
    follow: false,
  };
}

/** The state as a query; what is as in the beginning is left out. */
export function render(view: View, array: ArrayNode): string {
  const start = initial(array);
  const query = new URLSearchParams();
  const name = (at: number) => (at < 0 ? "none" : String(at));
  const set = (key: string, value: string, isDefault: boolean) => !isDefault && query.set(key, value);
  set("view", view.kind, view.kind === start.kind);
  set("x", name(view.x), view.x === start.x);
  set("y", name(view.y), view.y === start.y || view.kind === "line");
  set("at", view.at.join(","), view.at.every((index) => index === 0));
  set("over", view.over.join(","), view.over.length === 0);
  set("by", view.by, view.over.length === 0);
  if (view.box) query.set("box", view.box.map((edge) => Number(edge.toFixed(3))).join(","));
  set("map", view.map, view.map === "auto");
  set("scale", view.scale, view.scale === "linear");
  set("limits", view.limits, view.limits === "robust");
  if (view.low !== null && view.high !== null) query.set("range", `${view.low},${view.high}`);
  set("outside", "mark", !view.outside);
  set("part", view.part, view.part === "magnitude");
  set("decode", view.decode ?? "none", view.decode === start.decode);
  set("thin", view.thinning, view.thinning === start.thinning);
  if (view.pin) query.set("pin", view.pin.join(","));
  set("profile", name(view.profile), !view.pin || view.profile === 0);
  set("lens", "on", !view.lens);
  set("follow", "on", !view.follow);
  return query.toString().replaceAll("%2C", ",");
}

/** Reads the state of a query. What is unknown or impossible is left as in the beginning, and noted. */
export function read(search: string, array: ArrayNode): { view: View; notes: string[] } {
  const view = initial(array);
  const notes: string[] = [];
  const rank = array.shape.length;
  const kinds = kindsOf(array);
  for (const [key, text] of new URLSearchParams(search)) {
    const refuse = () => notes.push(`${key}=${text.slice(0, 80)}`);
    const choice = <T extends string>(choices: readonly T[], use: (value: T) => void) =>
      choices.includes(text as T) ? use(text as T) : refuse();
    const list = text.split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
    const finite = (length: number) => list.length === length && list.every(Number.isFinite);
    const isIndex = (value: number, at: number) => Number.isSafeInteger(value) && value >= 0 && value < Math.max(1, array.shape[at]!);
    const dimension = (use: (at: number) => void) => {
      const named = array.dimensions.indexOf(text);
      const at = text === "none" ? -1 : /^\d+$/.test(text) ? Number(text) : named;
      at < rank && (at >= 0 || text === "none") ? use(at) : refuse();
    };
    switch (key) {
      case "view":
        choice(KINDS.filter((kind) => kinds.includes(kind)), (kind) => (view.kind = kind));
        break;
      case "x":
        dimension((at) => (view.x = at));
        break;
      case "y":
        dimension((at) => (view.y = at));
        break;
      case "at":
        finite(rank) && list.every(isIndex) ? (view.at = list) : refuse();
        break;
      case "over":
        list.length <= rank && list.every((at) => Number.isInteger(at) && at >= 0 && at < rank) ? (view.over = list) : refuse();
        break;
      case "by":
        choice(REDUCTIONS, (by) => (view.by = by));
        break;
      case "box":
        finite(4) && list[0]! < list[1]! && list[2]! < list[3]! && list.every((edge) => Math.abs(edge) < 2 ** 53) ? (view.box = list as Box) : refuse();
        break;
      case "map":
        choice(["auto", ...MAPS] as const, (map) => (view.map = map));
        break;
      case "scale":
        choice(SCALES, (scale) => (view.scale = scale));
        break;
      case "limits":
        choice(["robust", "full", "fixed"] as const, (limits) => (view.limits = limits));
        break;
      case "range":
        finite(2) && list[0]! < list[1]! ? ([view.low, view.high] = list as [number, number]) : refuse();
        break;
      case "outside":
        choice(["mark"] as const, () => (view.outside = true));
        break;
      case "part":
        choice(PARTS, (part) => (view.part = part));
        break;
      case "decode":
        choice(["cf", "none"] as const, (decode) => (view.decode = decode === "cf" ? "cf" : undefined));
        break;
      case "thin":
        choice(THINNINGS, (thinning) => (view.thinning = thinning));
        break;
      case "pin":
        finite(rank) && list.every(isIndex) ? (view.pin = list) : refuse();
        break;
      case "profile":
        dimension((at) => (at >= 0 ? (view.profile = at) : refuse()));
        break;
      case "lens":
        choice(["on"] as const, () => (view.lens = true));
        break;
      case "follow":
        choice(["on"] as const, () => (view.follow = true));
        break;
      default:
        refuse();
    }
  }
  return { view: consistent(view, array), notes };
}

/** The nearest view that makes sense: two dimensions for planes, one for lines. */
export function consistent(view: View, array: ArrayNode): View {
  const start = initial(array);
  const rank = array.shape.length;
  let { x, y, kind } = view;
  if (rank === 0) return { ...view, kind: "table", x: -1, y: -1, box: null };
  const channel = kind === "rgb" ? channelOf(array) : -1;
  const fits = (at: number) => at >= 0 && at < rank && at !== channel;
  if (!fits(x)) x = start.x === channel ? rank - 1 - Number(channel === rank - 1) : start.x;
  if (kind === "line" || rank === 1) y = -1;
  else if (!fits(y) || y === x) y = [...Array(rank).keys()].reverse().find((at) => fits(at) && at !== x) ?? -1;
  const at = view.at.map((index, d) => Math.min(index, Math.max(0, array.shape[d]! - 1)));
  const isFree = (d: number) => d !== x && d !== y && d !== channel && d < rank;
  const over = view.kind === "table" ? [] : [...new Set(view.over)].filter(isFree).sort((a, b) => a - b);
  return { ...view, kind, x, y, at, over };
}

/** The view as it is read: times are drawn as the numbers that are stored. */
export const asRead = (view: View, array: ArrayNode): View => (view.decode && view.kind !== "table" && isTime(array) ? { ...view, decode: undefined } : view);

/** The reduction of a view. */
export function reduction(view: View, array: ArrayNode): { by: Reduction; axis: string } | undefined {
  return view.over.length ? { by: view.by, axis: view.over.map((at) => dimensionKey(array, at)).join(",") } : undefined;
}

/** One item of `select` for each dimension. */
export function selection(view: View, array: ArrayNode, ranges: Map<number, string>): string[] {
  return array.shape.map((_, at) => ranges.get(at) ?? (view.over.includes(at) ? ":" : String(view.at[at] ?? 0)));
}

export const axisName = (array: ArrayNode, at: number) => (at < 0 ? "" : dimensionLabel(array, at));

/** True if elements are numbers times a factor, or plus an offset. */
export const isScaled = (array: ArrayNode) => "scale_factor" in array.attributes || "add_offset" in array.attributes;
/** The units of the numbers that are shown: those of packed elements are of decoded ones. */
export const shownUnits = (array: ArrayNode, view: View) => (view.decode || !isScaled(array) ? unitsOf(array) : null);
