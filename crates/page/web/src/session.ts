/** The tab's credential, and what the user has to know about the connection. */

type Listener = () => void;

/** A value with listeners. */
export class Cell<T> {
  #listeners = new Set<Listener>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (value === this.current) return;
    this.current = value;
    for (const listener of [...this.#listeners]) listener();
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

const content = (name: string) => document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";

/** The beginning of the path of every request: empty, or with a leading slash. */
export const API = content("zarrd-api");
export const VERSION = content("zarrd-version");
/** The URL for S3 clients; empty if there is none. Its host is that of the page unless it has one. */
export const S3 = content("zarrd-s3").replace("://:", `://${location.hostname}:`);
/** True if the page was opened through a share link, which is its credential. */
export const IS_SHARED = /(^|\/)s\/[^/]+$/.test(API);

/** The reason for which a token is asked; `null` while none is needed. */
export const tokenNeeded = new Cell<string | null>(null);
/** True while the server does not answer. */
export const unreachable = new Cell(false);

const KEY = `zarrd-token:${API}`;
let waiting: Listener[] = [];

export function token(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function setToken(text: string): void {
  try {
    sessionStorage.setItem(KEY, text.trim());
  } catch {
    // Without storage the token is asked for again.
  }
  tokenNeeded.set(null);
  const woken = waiting;
  waiting = [];
  for (const wake of woken) wake();
}

export function forgetToken(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // There is none.
  }
}

/** Asks for a token unless there is one, and resolves when one was given. */
export function askForToken(reason: string, signal?: AbortSignal): Promise<void> {
  // It may have been given since the request was refused that asks.
  if (token() !== null) return Promise.resolve();
  // The first reason stays: that of a request that had no token any more says less.
  if (tokenNeeded.value === null) tokenNeeded.set(reason);
  return new Promise((resolve, reject) => {
    waiting.push(resolve);
    signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}
