// Builds ../dist from src: one script, one style sheet, the icon and the document. Fails above the limit of size.
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const LIMIT = 70 << 10;
const dist = new URL("../dist/", import.meta.url);
const local = (name) => new URL(`./src/${name}`, import.meta.url).pathname;

// What is documented of `/array` is used.
const contract = await readFile(new URL("../../../openapi.yaml", import.meta.url), "utf8");
const documented = ["labels", "decode", "coarsen", "stats", "chunks"].filter((name) => new RegExp(`^ +name: ['"]?${name}\\b`, "m").test(contract));

// Of uPlot, what the page does not draw is left out: its legend, all kinds of paths but lines and points, and functions
// for others.
const UNUSED = /^\t?(uPlot\.(?!tzDate)\w+ += \w+;|\(paths\.\w+ += \w+\);)$/gm;
const LEGEND = "const showLegend = legend.show;";
const lines = {
  name: "lines",
  setup: (build) =>
    build.onLoad({ filter: /uPlot\.esm\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      if (text.match(UNUSED)?.length !== 16 || !text.includes(LEGEND)) throw new Error("uPlot is not as it was");
      return { contents: text.replace(UNUSED, "").replace(LEGEND, "").replace(/\b(showLegend|legend\.live)\b/g, "false") };
    }),
};

await mkdir(dist, { recursive: true });
await build({
  entryPoints: { page: local("main.tsx") },
  bundle: true,
  define: { DOCUMENTED: JSON.stringify(documented) },
  minify: true,
  plugins: [lines],
  legalComments: "none",
  charset: "utf8",
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  outdir: dist.pathname,
  absWorkingDir: new URL(".", import.meta.url).pathname,
});
await copyFile(local("icon.svg"), new URL("icon.svg", dist));
await copyFile(local("index.html"), new URL("index.html", dist));

let total = 0;
for (const name of ["page.js", "page.css", "icon.svg", "index.html"]) {
  const size = gzipSync(await readFile(new URL(name, dist)), { level: 9 }).length;
  total += size;
  console.log(`${name}: ${size} bytes with gzip`);
}
console.log(`${total} of ${LIMIT} bytes`);
if (total > LIMIT) {
  console.error("the page is too large");
  process.exit(1);
}
