/** The members of groups, read page by page and shared by the tree and the pages of groups. */

import * as api from "./api";
import { isObject } from "./json";
import { describe, dialectOf, join, nameOf, type GroupNode, type Node } from "./node";
import { askForToken, Cell, token } from "./session";

export interface Group {
  /** `null` where the caller may only pass through. */
  node: Node | null;
  members: Node[];
  files: api.FileEntry[];
  unlisted: Set<string>;
  cursor: string | null;
  isLoading: boolean;
  error: Error | null;
  broken: number;
  other: number;
  dialect: string;
}

const groups = new Map<string, Cell<Group>>();
const EMPTY: Group = { node: null, members: [], files: [], unlisted: new Set(), cursor: null, isLoading: false, error: null, broken: 0, other: 0, dialect: "" };
/** More members are not read. */
const MAX_MEMBERS = 1_000_000;

export function group(path: string): Cell<Group> {
  let cell = groups.get(path);
  if (!cell) {
    cell = new Cell<Group>(EMPTY);
    groups.set(path, cell);
  }
  return cell;
}

/** Reads the first page of a node, unless it has been read. */
export function open(path: string): void {
  const cell = group(path);
  if (cell.value === EMPTY) void more(path);
}

/** True if there may be members that have not been read, and reading has not failed. */
export function isPartial(path: string): boolean {
  const { value } = group(path);
  return value === EMPTY || value.isLoading || (value.cursor !== null && !value.error && value.members.length < MAX_MEMBERS);
}

/** Forgets what has been read of a node. */
export function reload(path: string): void {
  group(path).set(EMPTY);
  open(path);
}

/** A node by itself. */
export async function described(path: string): Promise<Node> {
  const { node, undecoded } = await api.node(path);
  return describe(path, node, undecoded);
}

/** The path of a node that was found to be another than it was described as, and is shown anew. */
export const changed = new Cell<string | null>(null);

/** Looks at a node again after an answer that does not fit to it. True if it has changed, or is gone. */
export async function recheck(path: string): Promise<boolean> {
  const cell = group(path);
  const before = cell.value.node;
  try {
    const next = await described(path);
    const document = (node: Node | null) => JSON.stringify({ ...node?.document, members: undefined });
    if (cell.value.node !== before || document(next) === document(before)) return false;
    changed.set(path);
    cell.set({ ...cell.value, node: next });
  } catch (error) {
    if (!(error instanceof api.Problem)) return false;
    cell.set({ ...cell.value, node: null, members: [], error });
  }
  return true;
}

/**
 * The member of a group, as far as its members have been read: `undefined` where that is not known. A page of members
 * that is being read is waited for.
 */
export async function member(path: string, name: string): Promise<Node | null | undefined> {
  const cell = group(path);
  open(path);
  if (cell.value.isLoading) await new Promise<void>((resolve) => {
    const stop = cell.subscribe(() => {
      if (!cell.value.isLoading) resolve(stop() as unknown as void);
    });
  });
  const { members, cursor, error, node } = cell.value;
  const found = members.find((member) => member.name === name);
  return found ?? (cursor || error || !node ? undefined : null);
}

/** Reads the next page of a group's members. */
export async function more(path: string): Promise<void> {
  const cell = group(path);
  const { isLoading, cursor, members } = cell.value;
  if (isLoading || (cursor === null && cell.value !== EMPTY) || members.length >= MAX_MEMBERS) return;
  cell.set({ ...cell.value, isLoading: true });
  try {
    const page = await api.members(path, cursor);
    const node = describe(path, page.node, page.undecoded);
    const listed = isObject(page.node["members"]) ? page.node["members"] : {};
    const added = Object.entries(listed).flatMap(([name, document]) => (isObject(document) ? [describe(join(path, name), document, page.undecoded)] : []));
    const more = page.broken || page.other ? await hidden(path, cursor).catch(() => []) : [];
    if (more.length) added.push(...more), added.sort((a, b) => (a.name < b.name ? -1 : 1));
    cell.set({
      node,
      members: [...members, ...added],
      files: [...cell.value.files, ...page.files],
      unlisted: new Set([...cell.value.unlisted, ...page.unlisted]),
      cursor: page.cursor,
      isLoading: false,
      error: null,
      broken: cell.value.broken + page.broken,
      other: cell.value.other + page.other - more.filter(({ type }) => type !== "broken").length,
      dialect: page.dialect || dialectOf(page.node),
    });
  } catch (error) {
    const status = error instanceof api.Problem ? error.status : 0;
    const passing = status === 403 || status === 401 ? await way(path) : null;
    // What needs no token is shown in place of the rest, unless one was given meanwhile.
    if (status !== 401 || (passing?.members.length && token() === null)) {
      cell.set(passing ?? { ...cell.value, isLoading: false, error: error as Error });
      return;
    }
    await askForToken("This needs a token.");
    cell.set({ ...cell.value, isLoading: false });
    if (cell.value.cursor === null) reload(path);
    else await more(path);
  }
}

/** More members of other dialects on a page are not looked at one by one. */
const MAX_OTHERS = 50;

/** The members that a page leaves out. */
async function hidden(path: string, cursor: string | null): Promise<Node[]> {
  const { broken, others } = await api.hidden(path, cursor);
  const inner = (path: string) => path.split("/").filter(Boolean).join("/");
  const known = await Promise.all(
    others.map(inner).map(async (path, at): Promise<Node> => {
      const page = at < MAX_OTHERS ? await api.node(path).catch(() => null) : null;
      return { ...describe(path, page?.node ?? {}, page?.undecoded ?? new Set()), dialect: page?.dialect ?? "" } as GroupNode;
    }),
  );
  return [...broken.map(({ path, reason }): Node => ({ type: "broken", name: nameOf(inner(path)), path: inner(path), document: {}, attributes: {}, reason })), ...known];
}

/** The way to what the caller may read, through a group that the caller may not. */
async function way(path: string): Promise<Group | null> {
  try {
    const names = await api.prefixes(path);
    const member = (name: string): GroupNode => ({ type: "group", name, path: join(path, name), document: {}, attributes: {} });
    return { ...EMPTY, members: names.map(member) };
  } catch {
    return null;
  }
}
