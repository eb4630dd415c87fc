/** What the attributes of a group say of an image of OME-Zarr. */

import { isObject, type Json, type JsonObject } from "./json";
import type { GroupNode } from "./node";

interface Channel {
  label: string;
  /** Six digits after `#`. */
  color: string | null;
  isActive: boolean;
}

interface Image {
  /** The paths of the levels: of OME-Zarr, or of the extension `multiscale-arrays`. */
  levels: string[];
  axes: { name: string; type: string }[];
  channels: Channel[];
}

/** The most levels and channels that are looked at. */
const MAX_LISTED = 1024;

const list = (json: Json | undefined) => (Array.isArray(json) ? json.slice(0, MAX_LISTED) : []);
const object = (json: Json | undefined): JsonObject => (isObject(json) ? json : {});
const text = (json: Json | undefined) => (typeof json === "string" ? json : "");

/** The image that a group is; without levels if it is none. */
export function imageOf(node: GroupNode): Image {
  const { ome } = node.attributes;
  const { multiscales, omero } = isObject(ome) ? ome : node.attributes;
  const extension = list(node.document["extensions"]).map(object).find(({ name }) => name === "example.multiscale-arrays");
  const scale = object(list(multiscales)[0] ?? object(extension?.["configuration"])["multiscale"]);
  return {
    levels: list(scale["datasets"]).flatMap((level) => text(isObject(level) ? level["path"] : level) || []),
    axes: list(scale["axes"]).map((axis) => (isObject(axis) ? { name: text(axis["name"]), type: text(axis["type"]) } : { name: text(axis), type: "" })),
    channels: list(object(omero)["channels"]).map((channel, index) => {
      const { label, color, active } = object(channel);
      const digits = text(color).replace(/^#/, "");
      return { label: text(label) || `channel ${index}`, color: /^[0-9a-f]{6}$/i.test(digits) ? `#${digits}` : null, isActive: active !== false };
    }),
  };
}

const SCREEN = ["#FF0000", "#00FF00", "#0000FF"];

/** True if an image names colours of its channels that are not red, green and blue, in this order. */
export const hasOwnColours = ({ channels }: Image) => channels.some(({ color }, at) => color !== null && at < SCREEN.length && color.toUpperCase() !== SCREEN[at]);
