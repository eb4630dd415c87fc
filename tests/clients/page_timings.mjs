// Timings of the page in Chromium, in milliseconds, as JSON: of the measurement that the third argument names.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [chromiumPath, origin, measurement, ...rest] = process.argv.slice(2);

const settled = (page) =>
  page.waitForFunction(() => document.querySelector("[role=alert]") || document.querySelector(".cost")?.dataset.loading === "false", null, { timeout: 60_000 });

// Runs `use` with a page of a new profile.
async function fresh(browser, use) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  try {
    return await use(await context.newPage());
  } finally {
    await context.close();
  }
}

// In the page: sets sliders to indices, and takes the time from each to the last drawing of what it asked for.
const steps = ([label, indices]) =>
  (async () => {
    const slider = document.querySelector(`input[type=range][aria-label="${label}"]`);
    const pause = (duration) => new Promise((resolve) => setTimeout(resolve, duration));
    let drawn = 0;
    new MutationObserver(() => (drawn = performance.now())).observe(document.querySelector("canvas.plot"), { attributeFilter: ["data-drawn"] });
    const found = [];
    for (const index of indices) {
      const started = performance.now();
      slider.value = String(index);
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      do await pause(50);
      while (drawn < started || performance.now() - drawn < 250 || document.querySelector(".cost").dataset.loading !== "false");
      found.push(drawn - started);
    }
    return found;
  })();

const measurements = {
  // From the navigation to the first contents, without anything in the browser's cache.
  async paint(browser) {
    const [path, count] = rest;
    const found = [];
    for (let turn = 0; turn < Number(count); turn++)
      found.push(await fresh(browser, async (page) => {
        await page.goto(origin + path);
        await settled(page);
        return page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
      }));
    return found;
  },

  // From a step of a slider to the picture of that plane.
  async planes(browser) {
    const [path, dimension, ...indices] = rest;
    return fresh(browser, async (page) => {
      await page.goto(origin + path);
      await settled(page);
      await page.waitForTimeout(500);
      return page.evaluate(steps, [dimension, indices.map(Number)]);
    });
  },

  // From the navigation to the map of chunks.
  async chunks(browser) {
    const [path, count] = rest;
    const found = [];
    for (let turn = 0; turn < Number(count); turn++)
      found.push(await fresh(browser, async (page) => {
        await page.addInitScript(() => new MutationObserver((_, observer) => {
          if (!document.querySelector(".map canvas")) return;
          observer.disconnect();
          requestAnimationFrame(() => (globalThis.seen = performance.now()));
        }).observe(document, { childList: true, subtree: true }));
        await page.goto(origin + path);
        await page.waitForFunction(() => globalThis.seen);
        return page.evaluate(() => globalThis.seen);
      }));
    return found;
  },

  // From the navigation to the first tile, and to all of them.
  async tiles(browser) {
    const [path, count] = rest;
    const found = [];
    for (let turn = 0; turn < Number(count); turn++)
      found.push(await fresh(browser, async (page) => {
        await page.addInitScript(() => {
          const paint = CanvasRenderingContext2D.prototype.drawImage;
          CanvasRenderingContext2D.prototype.drawImage = function (...given) {
            globalThis.seen ??= performance.now();
            return paint.apply(this, given);
          };
        });
        await page.goto(origin + path);
        await settled(page);
        return page.evaluate(() => globalThis.seen);
      }));
    return found;
  },

  // The steps of scrolling through the members of a group in the tree, as they are read.
  async members(browser) {
    const [name, count] = rest;
    return fresh(browser, async (page) => {
      await page.goto(`${origin}/browse/${name}`);
      await page.waitForSelector("h1");
      await page.locator(".row", { hasText: name }).locator(".twist").click();
      return page.evaluate(async (count) => {
        const rows = document.querySelector(".rows");
        const found = [];
        while (rows.scrollHeight < count * 30) {
          const started = performance.now();
          rows.scrollTop = rows.scrollHeight;
          await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
          found.push(performance.now() - started);
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        return found;
      }, Number(count));
    });
  },

  // From an append, as it is answered, to its being shown while following.
  async append(browser) {
    const [name, count] = rest;
    return fresh(browser, async (page) => {
      await page.goto(`${origin}/browse/${name}?follow=on`);
      await settled(page);
      await page.waitForTimeout(2000);
      const found = [];
      for (let turn = 0; turn < Number(count); turn++) {
        const answer = await fetch(`${origin}/array/${name}?append=0`, { method: "POST", body: Float64Array.of(turn), headers: { "Content-Type": "application/octet-stream" } });
        assert.ok(answer.ok, await answer.text());
        const started = performance.now();
        const { shape } = await (await fetch(`${origin}/node/${name}`)).json();
        await page.waitForFunction((length) => document.querySelector(".facts").textContent.includes(String(length)), shape[0], { polling: 20 });
        found.push(performance.now() - started);
        await page.waitForTimeout(400 * (turn % 4));
      }
      return found;
    });
  },

  // The frames of moving a picture whose tiles are at hand, and the memory of the page afterwards, in MiB.
  async panning(browser) {
    const [path, count] = rest;
    return fresh(browser, async (page) => {
      await page.goto(origin + path);
      await settled(page);
      await page.waitForTimeout(500);
      const box = await page.locator("canvas.plot").boundingBox();
      await page.evaluate((count) => {
        globalThis.frames = [];
        let before = performance.now();
        const next = () => {
          const now = performance.now();
          globalThis.frames.push(now - before);
          before = now;
          if (globalThis.frames.length < count) requestAnimationFrame(next);
        };
        requestAnimationFrame(next);
      }, Number(count));
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await page.mouse.down();
      for (let step = 0; (await page.evaluate(() => globalThis.frames.length)) < Number(count); step++)
        await page.mouse.move(box.x + box.width / 2 + 60 * Math.sin(step / 9), box.y + box.height / 2 + 60 * Math.sin(step / 7));
      await page.mouse.up();
      return page.evaluate(() => globalThis.frames.slice(1));
    });
  },
};

const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox", "--disable-gpu", "--no-proxy-server"] });
try {
  console.log(JSON.stringify(await measurements[measurement](browser)));
} finally {
  await browser.close();
}
