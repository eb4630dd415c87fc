import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./api";
import { integer, visible } from "./format";
import type { Json } from "./json";
import { follow, href } from "./router";

/** A name of strangers: isolated, so that its direction stays its own. */
export const Name = ({ text }: { text: string }) => <bdi>{visible(text)}</bdi>;

export function Link({ path, children, ...rest }: { path: string; children: ComponentChildren; class?: string; "aria-current"?: "page" }) {
  return (
    <a href={href(path)} onClick={(event) => follow(event, path)} {...rest}>
      {children}
    </a>
  );
}

export function Choice<T extends string>(props: { label: string; value: T; options: readonly (readonly [T, string])[]; onChange: (value: T) => void }) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value as T)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Switch(props: { label: string; on: boolean; onChange: (on: boolean) => void }) {
  return (
    <label class="switch">
      <input type="checkbox" checked={props.on} onChange={(event) => props.onChange(event.currentTarget.checked)} />
      <span>{props.label}</span>
    </label>
  );
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isDone, setDone] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without HTTPS there is no clipboard but the old one.
      area.current?.select();
      document.execCommand("copy");
    }
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <>
      <button type="button" class="quiet" onClick={() => void copy()}>
        {isDone ? "Copied" : label}
      </button>
      <textarea ref={area} class="hidden" tabIndex={-1} aria-hidden="true" readOnly value={text} />
    </>
  );
}

export function Failure({ error, retry, smaller, part }: { error: Error; retry?: () => void; smaller?: (() => void) | undefined; part?: string }) {
  const problem = error instanceof Problem ? error : null;
  return (
    <div class="notice bad" role="alert">
      <strong>{problem ? problem.title : "This cannot be shown"}</strong>
      <p>
        <Name text={problem ? problem.detail : error.message} />
      </p>
      <p class="actions">
        {smaller && problem?.status === 413 && (
          <button type="button" onClick={smaller}>
            {part ? `Show ${part}` : "Show a smaller part"}
          </button>
        )}
        {retry && (
          <button type="button" class="quiet" onClick={retry}>
            Try again
          </button>
        )}
      </p>
    </div>
  );
}

const isFlat = (value: Json) => typeof value !== "object" || value === null || (Array.isArray(value) && value.every((item) => typeof item !== "object" || item === null));
const flatText = (value: Json) => (Array.isArray(value) ? value.slice(0, 200).map(String).join(", ") + (value.length > 200 ? ", …" : "") : String(value));

/** A value on one line: of an object, its members if they are few; `null` if it has too many parts. */
function lineOf(value: Json): string | null {
  if (isFlat(value)) return flatText(value);
  const text = Object.entries(value as object).map(([name, item]) => (isFlat(item) ? `${name}: ${flatText(item)}` : "\n")).join(", ");
  return Array.isArray(value) || text.length > 90 || text.includes("\n") ? null : text || "{}";
}

/** The most entries of a value that are shown. */
const SHOWN = 200;

function Value({ value, depth }: { value: Json; depth: number }) {
  const line = lineOf(value);
  if (line !== null) return <Name text={line} />;
  const entries = Object.entries(value as object);
  return (
    <>
      <Attributes entries={entries.slice(0, SHOWN)} depth={depth + 1} />
      {entries.length > SHOWN && <p class="faint">and {integer(entries.length - SHOWN)} more</p>}
    </>
  );
}

export function Attributes({ entries, depth = 0 }: { entries: [string, Json][]; depth?: number }) {
  if (depth > 12) return <span class="faint">…</span>;
  return (
    <dl class="attributes">
      {entries.map(([name, value]) => (
        <div key={name} class={lineOf(value) === null ? "nested" : ""}>
          <dt>
            <Name text={name} />
          </dt>
          <dd>
            <Value value={value} depth={depth} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function Section(props: { title: string; open?: boolean; children: ComponentChildren; onOpen?: () => void }) {
  return (
    <details class="section" open={props.open} onToggle={(event) => event.currentTarget.open && props.onOpen?.()}>
      <summary>
        <h2>{props.title}</h2>
      </summary>
      {props.children}
    </details>
  );
}

/** Runs an effect each time a duration has passed, while it is on. */
export function useTicks(isOn: boolean, milliseconds: number, tick: () => void): void {
  const latest = useRef(tick);
  latest.current = tick;
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => latest.current(), milliseconds);
    return () => clearInterval(timer);
  }, [isOn, milliseconds]);
}
