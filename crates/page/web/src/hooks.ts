import { useEffect, useRef, useState } from "preact/hooks";
import type { Cell } from "./session";

export function useCell<T>(cell: Cell<T>): T {
  const [value, setValue] = useState(cell.value);
  useEffect(() => {
    setValue(() => cell.value);
    return cell.subscribe(() => setValue(() => cell.value));
  }, [cell]);
  return value;
}

export interface Loaded<T> {
  value: T | null;
  error: Error | null;
  /** True while this is the result of earlier inputs. */
  isStale: boolean;
}

/** The result of an asynchronous function, which is aborted when its inputs change. The old result stays until then. */
export function useAsync<T>(start: (signal: AbortSignal) => Promise<T>, inputs: unknown[]): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "isStale"> & { of: unknown[] }>({ value: null, error: null, of: [] });
  useEffect(() => {
    const abort = new AbortController();
    start(abort.signal).then(
      (value) => !abort.signal.aborted && setState({ value, error: null, of: inputs }),
      (error: Error) => !abort.signal.aborted && setState({ value: null, error, of: inputs }),
    );
    return () => abort.abort();
  }, inputs);
  return { value: state.value, error: state.error, isStale: state.of.length !== inputs.length || inputs.some((input, at) => input !== state.of[at]) };
}

/** The size of an element. */
export function useSize<E extends HTMLElement>(): [preact.RefObject<E>, { width: number; height: number }] {
  const ref = useRef<E>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, size];
}
