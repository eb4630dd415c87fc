/** Nodes as the page shows them, whatever their dialect. */

import { kindOf, sizeOf, type Kind } from "./elements";
import { isObject, numbers, type Json, type JsonObject } from "./json";

export interface ArrayNode {
  type: "array";
  name: string;
  path: string;
  document: JsonObject;
  attributes: JsonObject;
  shape: number[];
  dimensions: (string | null)[];
  dataType: string;
  kind: Kind;
  /** The unit that is decoded: inner chunks where there are shards. */
  chunks: number[];
  shards: number[] | null;
  codecs: string[];
  /** True if stored numbers stand for others, or for missing ones, as the server says. */
  isPacked: boolean;
  /** The coarser levels of the multiscale image that it is a level of. */
  levels?: ArrayNode[];
  /** True if its channels are not red, green and blue: the image that it is a level of names other colours. */
  hasOwnColours?: boolean;
  dialect?: string;
}

export interface GroupNode {
  type: "group";
  name: string;
  path: string;
  document: JsonObject;
  attributes: JsonObject;
  /** The dialect, where it is not that of the group it is in. */
  dialect?: string;
}

/** A member whose documents cannot be read. */
export interface BrokenNode {
  type: "broken";
  name: string;
  path: string;
  document: JsonObject;
  attributes: JsonObject;
  reason: string;
}

export type Node = ArrayNode | GroupNode | BrokenNode;

export const join = (path: string, name: string) => (path ? `${path}/${name}` : name);
export const nameOf = (path: string) => path.split("/").pop() ?? "";
export const parentOf = (path: string) => path.split("/").slice(0, -1).join("/");

export function dialectOf(document: JsonObject): string {
  return document["zarr_format"] === 2 ? "v2" : document["zarr_format"] === 3 ? "v3" : "";
}

/** A node by its document, and the arrays that the server says are packed. */
export function describe(path: string, document: JsonObject, undecoded: Set<string>): Node {
  const attributes = isObject(document["attributes"]) ? document["attributes"] : {};
  const name = nameOf(path);
  const shape = numbers(document["shape"]);
  if (!shape || document["node_type"] === "group") return { type: "group", name, path, document, attributes };
  const dataType = typeName(document["data_type"] ?? document["dtype"]);
  const { chunks, shards } = chunkShapes(document, shape);
  return {
    type: "array",
    name,
    path,
    document,
    attributes,
    shape,
    dimensions: dimensionNames(document, attributes, shape.length),
    dataType,
    kind: kindOf(dataType),
    chunks,
    shards,
    codecs: codecNames(document),
    isPacked: undecoded.has(path),
  };
}

/** A data type in a few letters, as NumPy has them: `f4`, `u1`, `M8`. */
export function shortType(type: string): string {
  const found = /^(?:numpy\.)?(uint|int|float|complex|datetime|timedelta)_?(?:float)?(\d+)/.exec(type);
  if (!found) return type.replace(/^[<>|]/, "");
  const [, name, bits] = found;
  return ({ datetime: "M", timedelta: "m" }[name!] ?? name![0]!) + Number(bits) / 8;
}

/** The names of a struct's fields; empty for other types. */
export function fieldsOf({ document, dataType }: ArrayNode): string[] {
  const type = document["data_type"] ?? document["dtype"];
  const fields = Array.isArray(type) ? type : dataType === "struct" || dataType === "structured" ? configuration(type)["fields"] : null;
  return Array.isArray(fields) ? fields.map((field) => String(Array.isArray(field) ? field[0] : isObject(field) ? field["name"] : "")) : [];
}

/** Values with a meaning, by CF, of flags that exclude each other; those of booleans are false and true. */
export function flagsOf({ kind, attributes }: ArrayNode): { value: number; meaning: string }[] {
  if (kind === "bool") return [0, 1].map((value) => ({ value, meaning: String(!!value) }));
  const { flag_values: values, flag_masks: masks, flag_meanings: meanings } = attributes;
  const words = typeof meanings === "string" ? meanings.trim().split(/\s+/) : [];
  if (masks !== undefined || !Array.isArray(values) || values.length !== words.length || values.length > 24) return [];
  return values.map((value, at) => ({ value: Number(value), meaning: words[at]! }));
}

/** True if numbers are times, by CF. */
export const isTime = (node: Node) => /^\s*\w+\s+since\s/i.test(unitsOf(node) ?? "");

function typeName(type: Json | undefined): string {
  if (typeof type === "string") return type;
  if (isObject(type)) {
    if (typeof type["name"] === "string") return type["name"];
    if (typeof type["extension"] === "string") return typeof type["type"] === "string" ? type["type"] : type["extension"];
  }
  return Array.isArray(type) ? "struct" : "unknown";
}

function dimensionNames(document: JsonObject, attributes: JsonObject, rank: number): (string | null)[] {
  const names = document["dimension_names"] ?? attributes["_ARRAY_DIMENSIONS"];
  const list = Array.isArray(names) && names.length === rank ? names : [];
  return Array.from({ length: rank }, (_, at) => (typeof list[at] === "string" && list[at] !== "" ? (list[at] as string) : null));
}

function configuration(extension: Json | undefined): JsonObject {
  return isObject(extension) && isObject(extension["configuration"]) ? extension["configuration"] : {};
}

function chunkShapes(document: JsonObject, shape: number[]): { chunks: number[]; shards: number[] | null } {
  const grid = document["chunk_grid"];
  const found = numbers(document["chunks"]) ?? numbers(configuration(grid)["chunk_shape"]) ?? (isObject(grid) ? numbers(grid["chunk_shape"]) : null);
  const outer = (found?.length === shape.length ? found : shape).map((length, at) => Math.max(1, length || (shape[at] ?? 1)));
  const codecs = Array.isArray(document["codecs"]) ? document["codecs"] : [];
  const sharding = codecs.find((codec) => isObject(codec) && codec["name"] === "sharding_indexed");
  const inner = numbers(configuration(sharding)["chunk_shape"]);
  if (inner && inner.length === shape.length && inner.every((length) => length > 0)) return { chunks: inner, shards: outer };
  return { chunks: outer, shards: null };
}

function codecNames(document: JsonObject): string[] {
  const of = (codec: Json | undefined) => (isObject(codec) ? String(codec["name"] ?? codec["id"] ?? codec["codec"] ?? "") : typeof codec === "string" ? codec : "");
  const listed = Array.isArray(document["codecs"]) ? document["codecs"] : [];
  const filters = Array.isArray(document["filters"]) ? document["filters"] : [];
  return [...listed, ...filters, document["compressor"]].map(of).filter(Boolean);
}

export const count = (shape: number[]) => shape.reduce((product, length) => product * length, 1);
export const rawBytes = (array: ArrayNode) => count(array.shape) * sizeOf(array.dataType);

/** A dimension's name, or else its number, for people. */
export const dimensionLabel = (array: ArrayNode, at: number) => array.dimensions[at] ?? `dimension ${at}`;

/** The name of a dimension in queries: its name where that is the only one, else its number. */
export function dimensionKey(array: ArrayNode, at: number): string {
  const name = array.dimensions[at];
  return name != null && array.dimensions.filter((other) => other === name).length === 1 ? name : String(at);
}

export const attributeText = (node: Node, name: string) => (typeof node.attributes[name] === "string" ? (node.attributes[name] as string) : null);

export const unitsOf = (node: Node) => attributeText(node, "units");
