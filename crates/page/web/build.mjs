// Builds ../dist from src: one script, one style sheet, the icon and the document. Fails above the limit of size.
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

// Images of OME-Zarr, and the programs that show them, took the last two KiB.
const LIMIT = 72 << 10;
const dist = new URL("../dist/", import.meta.url);
const local = (name) => new URL(`./src/${name}`, import.meta.url).pathname;

// What is documented of `/array` is used.
const contract = await readFile(new URL("../../../openapi.yaml", import.meta.url), "utf8");
const documented = ["labels", "decode", "coarsen", "stats", "chunks"].filter((name) => new RegExp(`^ +name: ['"]?${name}\\b`, "m").test(contract));

// Of uPlot, what the page does not draw is left out: legends, scales that are not linear, data of scatter plots, all
// kinds of paths but lines and points, and functions for others. Each edit has so many places.
const EDITS = [
  [16, /^\t?(uPlot\.(?!tzDate)\w+ += \w+;|\(paths\.\w+ += \w+\);)$/gm, ""],
  [1, /const showLegend = legend\.show;/g, ""],
  [16, /\b(showLegend|legend\.live)\b/g, "false"],
  [2, /^\tfunction (initLegendRow|setLegendValues)\(.*?^\t\}$/gms, ""],
  [36, /\b(\w+\.)?\w*[dD]istr (== +(2|3|4|100)|>= 3)(?!\w)/g, "false"],
  [15, /\bmode == 2\b/g, "false"],
  [16, /\bmode == 1\b/g, "true"],
];
const lines = {
  name: "lines",
  setup: (build) =>
    build.onLoad({ filter: /uPlot\.esm\.js$/ }, async ({ path }) => {
      let contents = await readFile(path, "utf8");
      for (const [places, pattern, replacement] of EDITS) {
        const found = contents.match(pattern)?.length;
        if (found !== places) throw new Error(`uPlot is not as it was: ${found} places of ${pattern}`);
        contents = contents.replace(pattern, replacement);
      }
      return { contents };
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
