// A page of the profiler in a browser, driven like a user would. Any request other than for the
// page itself, any console message and any uncaught error is a problem.

import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
}

// Opens a file and waits until `isReady()` is true in it.
export async function openFile(browser, file, isReady, settings = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...settings });
  const url = pathToFileURL(file).href;
  const problems = [];
  await context.route('**/*', (route) => {
    if (route.request().url() === url) {
      return route.continue();
    }
    problems.push(`request for ${route.request().url()}`);
    return route.abort();
  });
  const page = await context.newPage();
  page.on('console', (message) => problems.push(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('requestfailed', (request) => problems.push(`failed: ${request.url()}`));
  await page.goto(url);
  await page.waitForFunction(isReady);
  return { context, page, problems };
}

// The number of colours on a canvas.
export function colorsOf(page, selector) {
  return page.locator(selector).first().evaluate((canvas) => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    const words = new Uint32Array(data.buffer);
    const seen = new Set(words);
    seen.delete(0);
    return seen.size;
  });
}

const CHECK_MS_MAX = 180_000;

// Runs checks, each a function of `open`, and prints what is wrong; returns the number of those that
// failed. `problems()` takes what a check has found.
export async function runChecks(checks, wanted, openOne, problems) {
  let failedCount = 0;
  for (const [name, check] of checks.filter(([name]) => name.includes(wanted))) {
    const pages = [];
    const found = [];
    const isLate = new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error(`not done after ${CHECK_MS_MAX} ms`)), CHECK_MS_MAX).unref();
    });
    try {
      await Promise.race([isLate, check(async (...details) => {
        pages.push(await openOne(...details));
        return pages.at(-1);
      })]);
    } catch (error) {
      found.push(error.stack);
    }
    found.unshift(...problems());
    for (const page of pages) {
      found.push(...page.problems);
      await page.context.close();
    }
    console.log(`${found.length === 0 ? 'ok' : 'FAILED'}: ${name}`);
    found.slice(0, 20).forEach((problem) => console.log(`  ${problem}`));
    failedCount += found.length === 0 ? 0 : 1;
  }
  return failedCount;
}

export class ProfilePage {
  static async open(browser, file, settings) {
    const { context, page, problems } = await openFile(browser, file, () => document.getElementById('summary').textContent !== '', settings);
    return new ProfilePage(context, page, problems);
  }

  constructor(context, page, problems) {
    Object.assign(this, { context, page, problems });
  }

  close() {
    return this.context.close();
  }

  views() {
    return this.page.locator('#views button').evaluateAll((buttons) => buttons.map((button) => button.dataset.view));
  }

  choose(view) {
    return this.page.click(`#views button[data-view="${view}"]`);
  }

  option(label) {
    return this.page.locator('#graph-tools label', { hasText: label }).locator('input');
  }

  // Shows library frames, too.
  showAllFrames() {
    return this.option('own code only').uncheck();
  }

  // The exact weights in the summary: of A and B when two ranges are compared.
  async weights() {
    return JSON.parse(await this.page.locator('#summary').getAttribute('data-weights'));
  }

  summary() {
    return this.page.locator('#summary').textContent();
  }

  colors(selector) {
    return colorsOf(this.page, selector);
  }

  async search(text) {
    await this.page.fill('#search', text);
    const matched = this.page.locator('#matched');
    return { text: await matched.textContent(), weight: Number(await matched.getAttribute('data-weight')) };
  }

  // The centre of a block of the n-th heat map, with columns of a second and rows of 20 ms.
  async block(seconds, map = 0) {
    const canvas = this.page.locator('canvas.heat').nth(map);
    await canvas.scrollIntoViewIfNeeded();
    const bounds = await canvas.boundingBox();
    const columns = Number(await canvas.getAttribute('data-columns'));
    const row = Math.floor((seconds % 1) * 50 + 1e-6);
    return [bounds.x + (Math.floor(seconds) + 0.5) * (bounds.width / columns), bounds.y + (row + 0.5) * (bounds.height / 50)];
  }

  // Drags from the block at one time to the block at another.
  async drag(from, to, { isSecond = false, map = 0 } = {}) {
    const { mouse, keyboard } = this.page;
    await mouse.move(...(await this.block(from, map)));
    if (isSecond) {
      await keyboard.down('Control');
    }
    await mouse.down();
    await mouse.move(...(await this.block((from + to) / 2, map)));
    await mouse.move(...(await this.block(to, map)));
    await mouse.up();
    if (isSecond) {
      await keyboard.up('Control');
    }
  }

  // The range in microseconds in the inputs of A or B.
  async range(name) {
    const [from, to] = await Promise.all(['fromUs', 'toUs'].map((end) => this.page.inputValue(`#${name}-${end}`)));
    return [Number(from) * 1e6, Number(to) * 1e6];
  }

  // The names in a row of the flame graph, from the left; boxes of a few pixels may be missing.
  async row(level) {
    const canvas = this.page.locator('#flame');
    await canvas.scrollIntoViewIfNeeded();
    const bounds = await canvas.boundingBox();
    const boxes = [];
    for (let x = 1; x < bounds.width; x += 4) {
      await this.page.mouse.move(bounds.x + x, bounds.y + level * 19 + 9);
      if (await this.page.locator('#tooltip').isVisible()) {
        const name = await this.page.locator('#tooltip b').textContent();
        if (name !== boxes.at(-1)?.name) {
          boxes.push({ name, left: x, x: bounds.x + x, y: bounds.y + level * 19 + 9, lines: await this.page.locator('#tooltip div').allTextContents() });
        }
      }
    }
    return boxes;
  }

  // Red, green and blue of a canvas at a position.
  pixel(selector, x, y) {
    return this.page.locator(selector).first().evaluate((canvas, place) => {
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const [left, top] = place.map((value) => Math.round(value * devicePixelRatio));
      return [...copy.getImageData(left, top, 1, 1).data.slice(0, 3)];
    }, [x, y]);
  }

  // The description of the heat map's block under the pointer.
  async preview(seconds) {
    await this.page.mouse.move(...(await this.block(seconds)));
    return this.page.locator('#preview').textContent();
  }

  // Moves along a row of the flame graph until the tooltip's title is `name`; returns the tooltip's
  // lines and the position.
  async find(level, name) {
    const canvas = this.page.locator('#flame');
    await canvas.scrollIntoViewIfNeeded();
    const bounds = await canvas.boundingBox();
    const y = bounds.y + level * 19 + 9;
    for (let x = 2; x < bounds.width; x += 6) {
      await this.page.mouse.move(bounds.x + x, y);
      const title = await this.page.locator('#tooltip b').textContent({ timeout: 1000 }).catch(() => '');
      if (title === name) {
        const lines = await this.page.locator('#tooltip div').allTextContents();
        return { x: bounds.x + x, y, lines };
      }
    }
    throw new Error(`no ${name} in row ${level} of the flame graph`);
  }
}
