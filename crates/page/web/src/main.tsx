import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "./page.css";
import { ArrayPage } from "./array";
import { visible } from "./format";
import { GroupPage } from "./group";
import { useCell } from "./hooks";
import { changed, group, open, reload } from "./members";
import { Failure, Link, Name } from "./parts";
import { place } from "./router";
import { API, forgetToken, IS_SHARED, setToken, token, tokenNeeded, unreachable, VERSION } from "./session";
import { Tree } from "./tree";

function Page() {
  const { path } = useCell(place);
  const [isOpen, setOpen] = useState(false);
  const isDown = useCell(unreachable);
  const reason = useCell(tokenNeeded);
  useEffect(() => {
    document.title = path ? `${visible(path)} – zarrd` : "zarrd";
    open(path);
    return () => changed.set(null);
  }, [path]);
  useEffect(() => {
    const close = (event: KeyboardEvent) => event.key === "Escape" && setOpen(false);
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, []);
  const segments = path.split("/").filter(Boolean);
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => (event.preventDefault(), document.getElementById("content")?.focus())}>
        Skip to the content
      </a>
      <header class="top">
        <button type="button" class="quiet menu" aria-expanded={isOpen} aria-controls="hierarchy" onClick={() => setOpen(!isOpen)}>
          ☰<span class="hidden-text"> Hierarchy</span>
        </button>
        <Link path="" class="mark">
          zarrd
        </Link>
        <nav class="path" aria-label="Path">
          <ol>
            {segments.map((name, at) => (
              <li key={at}>
                {at < segments.length - 1 ? (
                  <Link path={segments.slice(0, at + 1).join("/")}>
                    <Name text={name} />
                  </Link>
                ) : (
                  <span aria-current="page">
                    <Name text={name} />
                  </span>
                )}
              </li>
            ))}
          </ol>
        </nav>
        {token() && !IS_SHARED && (
          <button type="button" class="quiet" onClick={() => (forgetToken(), location.reload())}>
            Forget token
          </button>
        )}
      </header>
      <div class={`body${isOpen ? " open" : ""}`}>
        <div class="hierarchy" id="hierarchy">
          <Tree path={path} onChoose={() => setOpen(false)} />
        </div>
        {isOpen && <div class="shade" onClick={() => setOpen(false)} />}
        <main id="content" tabIndex={-1}>
          {isDown && (
            <p class="notice bad" role="alert">
              The server does not answer. Trying again…
            </p>
          )}
          {reason !== null && <TokenForm reason={reason} />}
          <NodePage path={path} isWaiting={reason !== null} />
          <footer>
            zarrd {VERSION} · <a href={`${API}/openapi.yaml`}>HTTP interface</a>
          </footer>
        </main>
      </div>
    </>
  );
}

function NodePage({ path, isWaiting }: { path: string; isWaiting: boolean }) {
  const { node, error, members } = useCell(group(path));
  const isChanged = useCell(changed) === path;
  // What was read before a token expired stays.
  if (isWaiting && !node && !members.length) return null;
  if (error && !members.length)
    return (
      <>
        <header class="title">
          <h1>
            <Name text={path.split("/").pop() || "This store"} />
          </h1>
        </header>
        <Failure error={error} retry={() => reload(path)} />
      </>
    );
  if (node?.type === "array")
    return (
      <>
        {isChanged && (
          <p class="notice" role="status">
            This array has changed since it was read first. It is shown as it is now.
          </p>
        )}
        <ArrayPage key={`${path}|${node.shape.length}|${node.dataType}`} array={node} />
      </>
    );
  return <GroupPage key={path} path={path} />;
}

function TokenForm({ reason }: { reason: string }) {
  const [text, setText] = useState("");
  return (
    <form
      class="token"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim()) setToken(text);
      }}
    >
      <h1>Token</h1>
      <p>{reason} It is kept in this tab only.</p>
      <label class="field">
        <span>Token</span>
        <input type="password" autocomplete="off" spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <button type="submit">Continue</button>
    </form>
  );
}

const root = document.getElementById("page");
if (root) render(<Page />, root);
