/** What the attributes of a group say of an image of OME-Zarr. */

import { isObject, type Json } from "./json";
import type { GroupNode } from "./node";

/** The paths of the levels of an image: of OME-Zarr, or of the extension `multiscale-arrays`. */
export function levelsOf(node: GroupNode): string[] {
  const ome = node.attributes["ome"];
  const scales = isObject(ome) ? ome["multiscales"] : node.attributes["multiscales"];
  const extensions = Array.isArray(node.document["extensions"]) ? node.document["extensions"].filter(isObject) : [];
  const extension = extensions.find(({ name }) => name === "example.multiscale-arrays")?.["configuration"];
  const scale = Array.isArray(scales) ? scales[0] : isObject(extension) ? extension["multiscale"] : null;
  const datasets = isObject(scale) && Array.isArray(scale["datasets"]) ? scale["datasets"] : [];
  return datasets.flatMap((level) => {
    const path = isObject(level) ? level["path"] : level;
    return typeof path === "string" ? [path] : [];
  });
}

const SCREEN = ["FF0000", "00FF00", "0000FF"];

/** True if an OME-Zarr image names colours of its channels that are not red, green and blue, in this order. */
export function hasOwnColours(node: GroupNode): boolean {
  const ome = node.attributes["ome"];
  const omero = isObject(ome) ? ome["omero"] : node.attributes["omero"];
  const channels = isObject(omero) && Array.isArray(omero["channels"]) ? omero["channels"].filter(isObject) : [];
  return channels.some(({ color }, at) => typeof color === "string" && at < SCREEN.length && color.replace(/^#/, "").toUpperCase() !== SCREEN[at]);
}

interface Channel {
  label: string;
  color: string | null;
  isActive: boolean;
}

/** The axes and the channels of an image. */
export function imageOf(node: GroupNode): { axes: { name: string; type: string }[]; channels: Channel[] } {
  const { ome } = node.attributes;
  const members = isObject(ome) ? ome : node.attributes;
  const list = (json: Json | undefined) => (Array.isArray(json) ? json : []);
  const text = (json: Json | undefined) => (typeof json === "string" ? json : "");
  const { multiscales, omero } = members;
  const image = list(multiscales)[0];
  const axes = list(isObject(image) ? image["axes"] : []).map((axis) => (isObject(axis) ? { name: text(axis["name"]), type: text(axis["type"]) } : { name: text(axis), type: "" }));
  const channels = list(isObject(omero) ? omero["channels"] : []).map((channel, index) => {
    const { label, color, active } = isObject(channel) ? channel : ({} as Record<string, Json>);
    const digits = text(color).replace(/^#/, "");
    return { label: text(label) || `channel ${index}`, color: /^[0-9a-f]{6}$/i.test(digits) ? `#${digits}` : null, isActive: active !== false };
  });
  return { axes, channels };
}
