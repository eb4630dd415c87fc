import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import { bytes, integer } from "./format";
import { useAsync, useCell } from "./hooks";
import type { Json } from "./json";
import { group, more } from "./members";
import { attributeText, dimensionLabel, dialectOf, join, nameOf, rawBytes, type ArrayNode, type BrokenNode, type GroupNode, type Node } from "./node";
import { imageOf } from "./ome";
import { Preview } from "./preview";
import { Attributes, Copy, Failure, Link, Name, Section } from "./parts";
import { askForToken, IS_SHARED, token } from "./session";
import { snippets, writingSnippets, type Snippet } from "./snippets";

const SHOWN = 200;

export function GroupPage({ path }: { path: string }) {
  const { node, members, files, unlisted, cursor, isLoading, broken, other, dialect } = useCell(group(path));
  const [limit, setLimit] = useState(SHOWN);
  useEffect(() => setLimit(SHOWN), [path]);
  if (!node && !members.length) return <p class="faint">Reading…</p>;
  const arrays = members.filter((member): member is ArrayNode => member.type === "array");
  const unreadable = members.filter((member) => member.type === "broken");
  const groups = members.filter((member) => member.type === "group");
  const shown = arrays.slice(0, limit);
  const title = node ? attributeText(node, "title") : null;
  return (
    <>
      <header class="title">
        <h1>{path ? <Name text={node?.name || path.split("/").pop() || ""} /> : "Everything in this store"}</h1>
        <p class="facts">
          <span>Group</span>
          {dialect && <span>Zarr {dialect}</span>}
          <span>
            {integer(arrays.length)}
            {cursor ? "+" : ""} {arrays.length === 1 ? "array" : "arrays"}
          </span>
          {groups.length > 0 && (
            <span>
              {integer(groups.length)}
              {cursor ? "+" : ""} {groups.length === 1 ? "group" : "groups"}
            </span>
          )}
          {node && conventions(node as GroupNode).map((text) => <span key={text}>{text}</span>)}
        </p>
        {title && (
          <p class="lead">
            <Name text={title} />
          </p>
        )}
        {!node && (
          <div class="notice">
            <p>{token() || IS_SHARED ? "You may not read this group itself, only what is below these names." : "Everybody may read what is below these names. The rest needs a token."}</p>
            {!token() && !IS_SHARED && (
              <p class="actions">
                <button type="button" onClick={() => void askForToken("The rest needs a token.").then(() => location.reload())}>
                  Enter a token
                </button>
              </p>
            )}
          </div>
        )}
      </header>
      {node?.type === "group" && imageOf(node).levels.length > 0 && <Preview node={node} arrays={arrays} />}
      {broken > 0 && <Broken nodes={unreadable} count={broken} />}
      {other > 0 && <p class="notice">{integer(other)} members are of another dialect and are not listed here.</p>}
      {groups.length > 0 && (
        <ul class="groups" aria-label="Groups">
          {groups.slice(0, limit).map((member) => (
            <li key={member.name}>
              <Link path={member.path}>
                <Name text={member.name} />
                {member.type === "group" && member.dialect && <span class="faint"> {member.dialect}</span>}
                {unlisted.has(member.path) && <span class="faint"> not listed</span>}
              </Link>
            </li>
          ))}
        </ul>
      )}
      {arrays.length > 0 && <Arrays arrays={shown} />}
      {files.length > 0 && <Files files={files.slice(0, limit)} unlisted={unlisted} />}
      {(Math.max(arrays.length, groups.length, files.length) > limit || cursor) && (
        <p>
          <button type="button" disabled={isLoading} onClick={() => (setLimit(limit + 1000), cursor && void more(path))}>
            Show more
          </button>
        </p>
      )}
      {!members.length && !files.length && !isLoading && !broken && <Empty path={path} />}
      <Dimensions arrays={arrays} />
      {node && <Details node={node} />}
    </>
  );
}

/** What is in a group and no Zarr. */
const Files = ({ files, unlisted }: { files: api.FileEntry[]; unlisted: Set<string> }) => (
  <table class="files" aria-label="Files">
    <tbody>
      {files.map(({ key, size, isDamaged }) => (
        <tr key={key} class={isDamaged ? "damaged" : undefined}>
          <th scope="row">
            <a href={`${api.storeUrl(key)}${size === null ? "/" : ""}`}>
              <Name text={nameOf(key.replace(/\/$/, ""))} />
              {size === null && "/"}
            </a>
          </th>
          <td class="number">{isDamaged ? "damaged" : size !== null ? bytes(size) : unlisted.has(key.slice(0, -1)) ? "not listed" : "folder"}</td>
        </tr>
      ))}
    </tbody>
  </table>
);

/** A group without members, and how to fill it. */
function Empty({ path }: { path: string }) {
  return (
    <section class="empty" aria-label="Put data in">
      <p>
        {path ? "This group is empty." : "This store is empty."}
        {!IS_SHARED && " Put data in with one of these, then reload:"}
      </p>
      {!IS_SHARED && <Programs programs={writingSnippets(path)} />}
    </section>
  );
}

/** What a group says it is. */
function conventions(node: GroupNode): string[] {
  const found: string[] = [];
  const stated = attributeText(node, "Conventions");
  if (stated) found.push(stated);
  if (imageOf(node).levels.length) found.push("multiscale image");
  return found;
}

function Broken({ nodes, count }: { nodes: BrokenNode[]; count: number }) {
  return (
    <div class="notice bad">
      <strong>{count === 1 ? "One node below cannot be read" : `${integer(count)} nodes below cannot be read`}</strong>
      <ul>
        {nodes.slice(0, 50).map(({ name, reason }) => (
          <li key={name}>
            <Name text={name} /> <span class="faint">{<Name text={reason} />}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Arrays with at most so many chunks, together, are counted unasked. */
const COUNTED = 20_000;

/** What is stored of arrays, by path: an error where the server does not tell. */
function useStored(arrays: ArrayNode[]): { stored: Map<string, api.ChunkMap | null>; isAsked: boolean; ask: () => void } {
  const [stored, setStored] = useState(new Map<string, api.ChunkMap | null>());
  const [isWanted, setWanted] = useState(false);
  const chunks = arrays.reduce((sum, { shape, chunks }) => sum + shape.reduce((product, length, at) => product * Math.ceil(length / chunks[at]!), 1), 0);
  const isAsked = isWanted || (arrays.length <= 12 && chunks <= COUNTED);
  useEffect(() => {
    if (!isAsked) return;
    const abort = new AbortController();
    const rest = arrays.filter((array) => !stored.has(array.path));
    const next = async (): Promise<void> => {
      const array = rest.shift();
      if (!array || abort.signal.aborted) return;
      const found = await api.chunkMap(array.path, [], 1, [], abort.signal).catch(() => null);
      if (abort.signal.aborted) return;
      setStored((old) => new Map(old).set(array.path, found));
      return next();
    };
    for (let turn = 0; turn < 4; turn++) void next();
    return () => abort.abort();
  }, [isAsked, arrays.map(({ path }) => path).join("\n")]);
  return { stored, isAsked, ask: () => setWanted(true) };
}

function Stored({ map, isAsked }: { map: api.ChunkMap | null | undefined; isAsked: boolean }) {
  if (!map) return <span class="faint">{isAsked && map === undefined ? "…" : "–"}</span>;
  return (
    <>
      {bytes(map.bytes)}
      <span class="faint sub">
        {map.stored === map.touched ? integer(map.touched) : `${integer(map.stored)} of ${integer(map.touched)}`} {map.touched === 1 ? "chunk" : "chunks"}
      </span>
    </>
  );
}

function Arrays({ arrays }: { arrays: ArrayNode[] }) {
  const { stored, isAsked, ask } = useStored(arrays);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Arrays">
      <table class="arrays">
        <thead>
          <tr>
            <th scope="col">Array</th>
            <th scope="col">Dimensions</th>
            <th scope="col">Type</th>
            <th scope="col">Chunks</th>
            <th scope="col" class="number">
              Raw
            </th>
            {api.supports("chunks") && (
              <th scope="col" class="number">
                {isAsked ? (
                  "Stored"
                ) : (
                  <button type="button" class="quiet" onClick={ask}>
                    Count what is stored
                  </button>
                )}
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {arrays.map((array) => (
            <tr key={array.name}>
              <th scope="row">
                <Link path={array.path}>
                  <Name text={array.name} />
                </Link>
                {attributeText(array, "long_name") && (
                  <span class="faint sub">
                    <Name text={attributeText(array, "long_name")!} />
                  </span>
                )}
              </th>
              <td>
                <Shape array={array} />
              </td>
              <td>
                <Name text={array.dataType} />
              </td>
              <td class="faint">{array.chunks.map(integer).join(" × ") || "–"}</td>
              <td class="number">{array.kind === "other" ? "–" : bytes(rawBytes(array))}</td>
              {api.supports("chunks") && (
                <td class="number">
                  <Stored map={stored.get(array.path)} isAsked={isAsked} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Shape({ array }: { array: ArrayNode }) {
  if (!array.shape.length) return <>scalar</>;
  return (
    <>
      {array.shape.map((length, at) => (
        <span key={at} class="extent">
          {array.dimensions[at] != null && (
            <span class="faint">
              <Name text={dimensionLabel(array, at)} />{" "}
            </span>
          )}
          {integer(length)}
          {at < array.shape.length - 1 ? " × " : ""}
        </span>
      ))}
    </>
  );
}

/** The dimensions that arrays share, as xarray lists them. */
function Dimensions({ arrays }: { arrays: ArrayNode[] }) {
  const sizes = new Map<string, Set<number>>();
  for (const array of arrays)
    array.dimensions.forEach((name, at) => {
      if (name !== null) sizes.set(name, (sizes.get(name) ?? new Set()).add(array.shape[at]!));
    });
  const names = arrays.flatMap((array) => array.dimensions.filter((name) => name !== null));
  if (sizes.size > 40 || names.length === sizes.size) return null;
  const isCoordinate = (array: ArrayNode) => array.shape.length === 1 && array.dimensions[0] === array.name;
  const coordinates = arrays.filter(isCoordinate);
  const listed = (found: ArrayNode[]) =>
    found.slice(0, 30).map((array) => (
      <span key={array.name} class="item">
        <Link path={array.path}>
          <Name text={array.name} />
        </Link>
      </span>
    ));
  return (
    <dl class="summary">
      <div>
        <dt>Dimensions</dt>
        <dd>
          {[...sizes].map(([name, lengths]) => (
            <span key={name} class="item">
              <Name text={name} /> <span class="faint">{[...lengths].map(integer).join(" or ")}</span>
            </span>
          ))}
        </dd>
      </div>
      {coordinates.length > 0 && (
        <div>
          <dt>Coordinates</dt>
          <dd>{listed(coordinates)}</dd>
        </div>
      )}
      <div>
        <dt>Variables</dt>
        <dd>{listed(arrays.filter((array) => !isCoordinate(array)))}</dd>
      </div>
    </dl>
  );
}

/** What both kinds of nodes have: attributes, programs and stored documents. */
export function Details({ node }: { node: Node }) {
  const attributes = Object.entries(node.attributes);
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {attributes.length > 0 && (
        <Section title="Attributes" open>
          <Attributes entries={attributes.slice(0, 500)} />
        </Section>
      )}
      <Section title="Use it">
        <Programs programs={snippets(node, node.type === "group" && imageOf(node).levels.length > 0)} />
      </Section>
      {node.type === "group" && !IS_SHARED && (
        <Section title="Put data in">
          <Programs programs={writingSnippets(node.path)} />
        </Section>
      )}
      <Section title="Stored documents" onOpen={() => setOpen(true)}>
        {isOpen && <Documents node={node} />}
      </Section>
    </>
  );
}

const Programs = ({ programs }: { programs: Snippet[] }) => (
  <div class="snippets">
    {programs.map(({ name, text }) => (
      <Program key={name} name={name} text={text} />
    ))}
  </div>
);

export function Program({ name, text }: { name: string; text: string }) {
  return (
    <figure class="program">
      <figcaption>
        {name} <Copy text={text} />
      </figcaption>
      <pre tabIndex={0} aria-label={name}>
        <code>{text}</code>
      </pre>
    </figure>
  );
}

/** The names of a node's documents. Those of the draft are elsewhere, and shown as the server describes them. */
function documentNames(node: Node): string[] {
  if (group(node.path).value.dialect === "draft") return [];
  if (dialectOf(node.document) !== "v2") return ["zarr.json"];
  return [node.type === "array" ? ".zarray" : ".zgroup", ...(Object.keys(node.attributes).length ? [".zattrs"] : [])];
}

function Documents({ node }: { node: Node }) {
  const names = documentNames(node);
  const { value, error } = useAsync(
    async (signal) => {
      const texts = await Promise.all(names.map((name) => api.stored(join(node.path, name), signal)));
      return names.flatMap((name, at) => (texts[at] === null ? [] : [{ name, text: texts[at]! }]));
    },
    [node],
  );
  if (error) return <Failure error={error} />;
  if (!value) return <p class="faint">Reading…</p>;
  const described = { name: "as /node describes it", text: JSON.stringify(node.document as Json, null, 2) };
  return (
    <div class="snippets">
      {(value.length ? value : [described]).map(({ name, text }) => (
        <Program key={name} name={name} text={text.slice(0, 200_000)} />
      ))}
    </div>
  );
}
