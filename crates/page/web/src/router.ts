/** The node and the state in the address. */

import { browseUrl } from "./api";
import { API, Cell } from "./session";

export interface Place {
  /** The path of the node, without a leading slash. */
  path: string;
  search: string;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function current(): Place {
  const inner = location.pathname.startsWith(API) ? location.pathname.slice(API.length) : location.pathname;
  const rest = inner.startsWith("/browse/") ? inner.slice("/browse/".length) : "";
  return { path: rest.split("/").filter(Boolean).map(decode).join("/"), search: location.search };
}

export const place = new Cell<Place>(current());

addEventListener("popstate", () => {
  // What was not written yet is of the place that was left.
  clearTimeout(timer);
  pending = null;
  place.set(current());
});

export const href = (path: string) => browseUrl(path);

export function go(path: string): void {
  flush();
  history.pushState(null, "", href(path));
  place.set(current());
  scrollTo(0, 0);
}

let pending: { search: string; isStep: boolean } | null = null;
let timer = 0;

function flush(): void {
  clearTimeout(timer);
  if (!pending) return;
  const url = `${location.pathname}${pending.search ? `?${pending.search}` : ""}`;
  if (pending.isStep) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  pending = null;
}

/** Writes the state into the address: a step back leads to the state before; anything else replaces it, once it rests. */
export function write(search: string, isStep: boolean): void {
  const query = location.search.replace(/^\?/, "");
  if (search === (pending?.search ?? query)) return;
  clearTimeout(timer);
  pending = { search, isStep: isStep || (pending?.isStep ?? false) };
  if (isStep) return flush();
  timer = setTimeout(flush, 150) as unknown as number;
}

/** Follows links to nodes without loading the page again. */
export function follow(event: MouseEvent, path: string): void {
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(path);
}
