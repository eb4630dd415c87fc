/** Programs that read a node, for people to copy. */

import { absolute, arrayUrl, elementsUrl, nodeUrl, queryString, storeUrl, type Query } from "./api";
import { dialectOf, join, type Node } from "./node";
import { API, IS_SHARED, S3, token } from "./session";

export interface Snippet {
  name: string;
  language: string;
  text: string;
}

/** A string of Python and of JavaScript. */
const quoted = (text: string) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
/** An argument of a shell. */
const argument = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

const TOKEN = "zarrd_…";

/** Programs that read a node; `isImage` if it is one of OME-Zarr. */
export function snippets(node: Node, isImage = false): Snippet[] {
  const store = absolute(storeUrl(node.path));
  const hasToken = token() !== null;
  const options = hasToken ? `, storage_options={"client_kwargs": {"headers": {"Authorization": "Bearer ${TOKEN}"}}}` : "";
  const found: Snippet[] = [];
  const add = (name: string, language: string, lines: string[]) => found.push({ name, language, text: lines.join("\n") });
  if (node.type !== "array") {
    add("xarray", "python", ["import xarray as xr", "", `dataset = xr.open_zarr(${quoted(store)}, chunks=None${options})`, "print(dataset)"]);
    add("zarr-python", "python", ["import zarr", "", `group = zarr.open_group(${quoted(store)}, mode="r"${options})`, "print(group.attrs.asdict())"]);
    add("curl", "sh", [`curl ${curlOptions(hasToken)}${argument(absolute(nodeUrl(node.path)))}`]);
    found.push(...s3Snippets(node));
    // They send no tokens; share links need none.
    if (isImage && !hasToken) {
      add("napari", "sh", [`napari --plugin napari-ome-zarr ${argument(store)}`]);
      add("vizarr", "text", [`https://hms-dbmi.github.io/vizarr/?source=${encodeURIComponent(store)}`]);
      add("neuroglancer", "text", [`zarr://${store}`]);
    }
    return found;
  }
  const rank = node.shape.length;
  const first = rank ? Array(rank).fill("0").join(", ") : "...";
  add("zarr-python", "python", ["import zarr", "", `array = zarr.open_array(${quoted(store)}, mode="r"${options})`, "print(array)", `print(array[${first}])`]);
  if (node.dimensions.every((name) => name !== null) && rank) {
    const parent = store.slice(0, store.lastIndexOf("/"));
    add("xarray", "python", ["import xarray as xr", "", `dataset = xr.open_zarr(${quoted(parent)}, chunks=None${options})`, `print(dataset[${quoted(node.name)}])`]);
  }
  const driver = dialectOf(node.document) === "v2" ? "zarr" : "zarr3";
  const headers = hasToken ? [`                "headers": ["Authorization: Bearer ${TOKEN}"],`] : [];
  add("tensorstore", "python", [
    "import tensorstore",
    "",
    "array = tensorstore.open({",
    `    "driver": "${driver}",`,
    `    "kvstore": {"driver": "http", "base_url": ${quoted(absolute(`${API}/store/`))},`,
    ...headers,
    // tensorstore encodes it.
    `                "path": ${quoted(node.path && `${node.path}/`)}},`,
    "}, open=True).result()",
    "print(array.domain, array.dtype)",
  ]);
  const requestOptions = hasToken ? `, { overrides: { headers: { Authorization: "Bearer ${TOKEN}" } } }` : "";
  add("zarrita", "javascript", [
    'import * as zarr from "zarrita";',
    "",
    `const store = new zarr.FetchStore(${quoted(store)}${requestOptions});`,
    'const array = await zarr.open(store, { kind: "array" });',
    "console.log(array.shape, array.dtype);",
  ]);
  add("NumPy", "python", numpy({ select: Array<string>(rank).fill("0:1") }, node.path, hasToken));
  add("curl", "sh", [`curl ${curlOptions(hasToken)}-g ${argument(absolute(`${arrayUrl(node.path)}?select=${Array(rank).fill("0:1").join(",")}&format=json`))}`]);
  return [...found, ...s3Snippets(node)];
}

/** A program that reads a node over S3, and how to get its keys. The first segment of a path is the bucket. */
function s3Snippets({ path, type }: Node): Snippet[] {
  if (!S3 || IS_SHARED || !/^[\w.-]+(\/|$)/.test(path)) return [];
  const hasToken = token() !== null;
  const keys = hasToken ? '"key": "…", "secret": "…"' : '"key": "zarrd", "secret": "zarrd"';
  const text = ["import zarr", "", `options = {"endpoint_url": ${quoted(S3)}, ${keys}}`, `print(zarr.open_${type}(${quoted(`s3://${path}`)}, mode="r", storage_options=options))`].join("\n");
  return [
    { name: "S3", language: "python", text },
    ...(hasToken ? [{ name: "S3 keys", language: "sh", text: `zarrd token create --name … --allow ${argument(`read:${path}/`)} --s3 ${argument(S3)}` }] : []),
  ];
}

/** Programs that put data below a group. */
export function writingSnippets(path: string): Snippet[] {
  const hasToken = token() !== null;
  const [node, array] = [nodeUrl(join(path, "first")), arrayUrl(join(path, "first"))].map(absolute) as [string, string];
  const credential = hasToken ? `ZARRD_TOKEN=${TOKEN} ` : "";
  const header = hasToken ? `"Authorization": "Bearer ${TOKEN}", ` : "";
  const into = path ? ` ${argument(`${path}/data.zarr`)}` : "";
  const document = `{"zarr_format": 3, "node_type": "array", "shape": [2, 3], "dimension_names": ["y", "x"], "data_type": "float32", "fill_value": 0, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}, "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]}`;
  const put = (url: string, body: string) => `curl ${curlOptions(hasToken)}-X PUT -H 'Content-Type: application/json' ${argument(url)} -d ${argument(body)}`;
  return [
    { name: "a folder", language: "sh", text: `${credential}zarrd import data.zarr${into} --server ${argument(absolute(`${API}/`).replace(/\/$/, ""))}` },
    { name: "curl", language: "sh", text: [put(node, document), put(array, "[[1, 2, 3], [4, 5, 6]]")].join("\n") },
    {
      name: "NumPy",
      language: "python",
      text: [
        "import json, urllib.request as http, numpy as np",
        `put = lambda url, body, kind: http.urlopen(http.Request(url, body, {${header}"Content-Type": "application/" + kind}, method="PUT"))`,
        "values = np.random.rand(2, 3).astype('<f4')",
        `put(${quoted(node)}, json.dumps(${document}).encode(), "json")`,
        `put(${quoted(array)}, values.tobytes(), "octet-stream")`,
      ].join("\n"),
    },
  ];
}

const curlOptions = (hasToken: boolean) => (hasToken ? `-H 'Authorization: Bearer ${TOKEN}' ` : "");

function numpy(query: Query, path: string, hasToken: boolean): string[] {
  const url = absolute(elementsUrl(path, query, "npy"));
  const open = hasToken ? [`request = urllib.request.Request(url, headers={"Authorization": "Bearer ${TOKEN}"})`, "values = np.load(io.BytesIO(urllib.request.urlopen(request).read()))"] : ["values = np.load(io.BytesIO(urllib.request.urlopen(url).read()))"];
  return ["import io, urllib.request", "import numpy as np", "", `url = ${quoted(url)}`, ...open, "print(values.shape, values.dtype)"];
}

/** The request of exactly what is shown, as URL, curl and Python. */
export function requestSnippets(path: string, query: Query): Snippet[] {
  const hasToken = token() !== null;
  const url = absolute(elementsUrl(path, query, "npy"));
  return [
    { name: "URL", language: "text", text: `${absolute(arrayUrl(path))}?${queryString(query)}` },
    { name: "curl", language: "sh", text: `curl ${curlOptions(hasToken)}-g -o selection.npy ${argument(url)}` },
    { name: "Python", language: "python", text: numpy(query, path, hasToken).join("\n") },
  ];
}
