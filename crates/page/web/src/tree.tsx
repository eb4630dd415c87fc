import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { integer, visible } from "./format";
import { useCell, useSize } from "./hooks";
import { group, isPartial, more, open, type Group } from "./members";
import { dialectOf, parentOf, shortType, type Node } from "./node";
import { Name } from "./parts";
import { follow, go, href } from "./router";
import { Cell } from "./session";

const ROW = 30;

interface Row {
  node: Node;
  level: number;
  isOpen: boolean;
  /** Its position among its siblings. */
  position: number;
  size: number;
  note?: string;
}

const opened = new Cell<ReadonlySet<string>>(new Set([""]));

export function toggle(path: string, isOpen: boolean): void {
  const next = new Set(opened.value);
  if (isOpen) next.add(path);
  else next.delete(path);
  opened.set(next);
  if (isOpen) open(path);
}

/** Rows below a path, those of open groups with their members. */
function rowsOf(path: string, level: number, into: Row[], watched: Map<string, Group>): void {
  const known = group(path).value;
  watched.set(path, known);
  const { members, cursor, isLoading, error, node } = known;
  members.forEach((member, at) => {
    const isOpen = member.type === "group" && opened.value.has(member.path);
    into.push({ node: member, level, isOpen, position: at + 1, size: cursor ? -1 : members.length });
    if (isOpen) rowsOf(member.path, level + 1, into, watched);
  });
  const note = error ? error.message : cursor || isLoading ? "…" : !members.length && node?.type === "group" && level > 1 ? "empty" : "";
  if (note) into.push(noteOf(path, level, note));
}

/** A row of text below a group. */
const noteOf = (path: string, level: number, note: string): Row => ({ node: { type: "group", name: "", path, document: {}, attributes: {} }, level, isOpen: false, position: 0, size: 0, note });

/** What a filter has found so far. */
interface Found {
  rows: Row[];
  /** The number of names that match. */
  count: number;
  /** The groups that have not been searched, or not to the end. */
  rest: string[];
  watched: Map<string, Group>;
}

/** A filter reads the members of so many groups, and as many more each time that it is asked to go on. */
const SEARCHED = 200;
/** It reads so many at a time. */
const AT_ONCE = 4;

/** Rows of all names that match, below the groups that lead to them. */
function matches(filter: string): Found {
  const found: Found = { rows: [], count: 0, rest: [], watched: new Map() };
  const search = (path: string, level: number): Row[] => {
    const known = group(path).value;
    found.watched.set(path, known);
    if (isPartial(path)) found.rest.push(path);
    const blocks = known.members.flatMap((member) => {
      const below = member.type === "group" ? search(member.path, level + 1) : [];
      const isMatch = member.name.toLowerCase().includes(filter);
      if (isMatch) found.count++;
      return isMatch || below.length ? [[{ node: member, level, isOpen: below.length > 0, position: 0, size: 0 }, ...below]] : [];
    });
    const rows = blocks.flatMap(([row, ...below], at) => [{ ...row!, position: at + 1, size: blocks.length }, ...below]);
    return known.error ? [...rows, noteOf(path, level, known.error.message)] : rows;
  };
  found.rows = search("", 1);
  return found;
}

export function Tree({ path, onChoose }: { path: string; onChoose: () => void }) {
  const [filter, setFilter] = useState("");
  const [scroll, setScroll] = useState(0);
  const [active, setActive] = useState(path);
  const [box, size] = useSize<HTMLDivElement>();
  const [version, setVersion] = useState(0);
  const open_ = useCell(opened);
  const needle = filter.trim().toLowerCase();
  const watched = useRef(new Map<string, Group>());

  // The groups above the shown node are open.
  useEffect(() => {
    const segments = path.split("/").filter(Boolean);
    for (let length = 0; length < segments.length; length++) toggle(segments.slice(0, length).join("/"), true);
    open("");
    setActive(path);
  }, [path]);

  const [limit, setLimit] = useState(SEARCHED);
  const { rows, count, rest } = useMemo(() => {
    const found = needle ? matches(needle) : { rows: [], count: 0, rest: [], watched: new Map<string, Group>() };
    if (!needle) rowsOf("", 1, found.rows, found.watched);
    watched.current = found.watched;
    return found;
  }, [needle, version, open_]);
  const searched = useRef(new Set<string>());
  const isReading = rest.some((path) => group(path).value.isLoading) || (rest.length > 0 && searched.current.size < limit);

  useEffect(() => {
    const next = () => setVersion((version) => version + 1);
    const stops = [...watched.current.keys()].map((path) => group(path).subscribe(next));
    // What changed since the rows were made.
    if ([...watched.current].some(([path, known]) => group(path).value !== known)) next();
    return () => stops.forEach((stop) => stop());
  }, [rows]);

  const first = Math.max(0, Math.floor(scroll / ROW) - 4);
  const last = Math.min(rows.length, first + Math.ceil(size.height / ROW) + 10);
  const shown = rows.slice(first, last);

  // Pages are read as they come into sight.
  useEffect(() => {
    for (const row of shown) if (row.note === "…") void more(row.node.path);
  }, [first, last, rows]);

  // A filter reads groups to their ends, up to a number.
  useEffect(() => {
    let free = AT_ONCE - rest.filter((path) => group(path).value.isLoading).length;
    for (const path of rest) {
      if (free <= 0) break;
      if (group(path).value.isLoading || (!searched.current.has(path) && searched.current.size >= limit)) continue;
      searched.current.add(path);
      free--;
      void more(path);
    }
  }, [rest, limit]);

  const at = Math.max(0, rows.findIndex((row) => row.node.path === active && !row.note));
  const activate = (index: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    if (!row || row.note) return;
    setActive(row.node.path);
    const top = rows.indexOf(row) * ROW;
    const element = box.current;
    if (element && top < element.scrollTop) element.scrollTop = top;
    else if (element && top + ROW > element.scrollTop + element.clientHeight) element.scrollTop = top + ROW - element.clientHeight;
  };
  const key = (event: KeyboardEvent) => {
    const row = rows[at];
    if (!row) return;
    const page = Math.max(1, Math.floor(size.height / ROW) - 1);
    const isGroup = row.node.type === "group";
    const parent = () => rows.slice(0, at).map((row) => row.level).lastIndexOf(row.level - 1);
    const actions: Record<string, () => void> = {
      ArrowDown: () => activate(at + 1),
      ArrowUp: () => activate(at - 1),
      PageDown: () => activate(at + page),
      PageUp: () => activate(at - page),
      Home: () => activate(0),
      End: () => activate(rows.length - 1),
      ArrowRight: () => (isGroup && !row.isOpen && !needle ? toggle(row.node.path, true) : activate(at + 1)),
      ArrowLeft: () => (row.isOpen && !needle ? toggle(row.node.path, false) : parent() >= 0 && activate(parent())),
      Enter: () => (go(row.node.path), onChoose()),
      " ": () => (go(row.node.path), onChoose()),
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };

  const root = group("").value;
  return (
    <nav class="tree" aria-label="Hierarchy">
      <input
        type="search"
        class="filter"
        placeholder="Filter names"
        aria-label="Filter names"
        value={filter}
        onInput={(event) => setFilter(event.currentTarget.value)}
      />
      <div
        ref={box}
        class="rows"
        role="tree"
        aria-label="Nodes"
        tabIndex={0}
        aria-activedescendant={rows[at] && at >= first && at < last ? `row-${at}` : undefined}
        onKeyDown={key}
        onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
      >
        <div class="space" role="presentation" style={{ height: rows.length * ROW }}>
          {shown.map((row, offset) => (
            <TreeRow
              key={`${row.node.path}${row.note ? "\n" : ""}`}
              row={row}
              index={first + offset}
              isCurrent={row.node.path === path && !row.note}
              isActive={first + offset === at}
              onChoose={onChoose}
            />
          ))}
        </div>
      </div>
      <p class="faint total" role="status">
        {needle ? `${integer(count)} found${isReading ? ", searching…" : ""}` : summary(root)}
      </p>
      {needle && !isReading && rest.length > 0 && (
        <p class="total">
          <button type="button" class="quiet" onClick={() => setLimit(limit + SEARCHED)}>
            {integer(rest.length)} {rest.length === 1 ? "group was" : "groups were"} not searched. Search on
          </button>
        </p>
      )}
    </nav>
  );
}

function summary(root: Group): string {
  if (root.error) return "";
  if (root.isLoading && !root.members.length) return "Reading…";
  return root.members.length ? "" : "This store is empty.";
}

/** The dialect where it says something, the type and the shape. */
function glance(node: Node): string {
  if (node.type === "broken") return "broken";
  const dialect = ("dialect" in node && node.dialect) || dialectOf(node.document);
  if (node.type === "group") return dialect;
  const shape = node.shape.join("×") || "scalar";
  return `${dialect === group(parentOf(node.path)).value.dialect || group(parentOf(node.path)).value.dialect === "draft" ? "" : `${dialect} `}${shortType(node.dataType)} ${shape}`;
}

function TreeRow(props: { row: Row; index: number; isCurrent: boolean; isActive: boolean; onChoose: () => void }) {
  const { row, index, isCurrent, isActive } = props;
  const { node } = row;
  const style = { top: index * ROW, paddingLeft: 4 + (Math.min(row.level, 12) - 1) * 14 };
  if (row.note)
    return (
      <div class="row note" role="presentation" style={style}>
        <span class="twist" />
        <Name text={row.note} />
      </div>
    );
  const choose = (event: MouseEvent) => {
    follow(event, node.path);
    if (event.defaultPrevented) props.onChoose();
  };
  return (
    <div
      id={`row-${index}`}
      class={`row${node.type === "broken" ? " broken" : ""}${isCurrent ? " current" : ""}${isActive ? " active" : ""}`}
      role="treeitem"
      aria-level={row.level}
      aria-posinset={row.position}
      aria-setsize={row.size}
      aria-selected={isCurrent}
      aria-expanded={node.type === "group" ? row.isOpen : undefined}
      style={style}
      title={visible(`${node.name}: ${node.type === "broken" ? node.reason : glance(node)}`)}
    >
      {node.type === "group" ? (
        <span class="twist" aria-hidden="true" onClick={() => toggle(node.path, !row.isOpen)}>
          {row.isOpen ? "▾" : "▸"}
        </span>
      ) : (
        <span class="twist" />
      )}
      <a href={href(node.path)} tabIndex={-1} onClick={choose}>
        <span class="label">
          <Name text={node.name} />
        </span>
        <span class="faint shape">{glance(node)}</span>
      </a>
    </div>
  );
}
