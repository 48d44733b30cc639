// What checks of pages of the lab share.

export const PAGE_BYTES_MAX = 3e6;
export const DRAWN_MS_MAX = 1000;

export const isDrawn = () => document.documentElement.dataset.drawn === 'true';

// Opens a page until it was drawn fast, at most six times, as the machine may be busy.
export async function drawnMs(open, path) {
  const times = [];
  while (times.length < 6 && Math.min(...times, Infinity) > DRAWN_MS_MAX / 2) {
    const { page } = await open(path);
    times.push(await page.evaluate(() => performance.getEntriesByName('drawn')[0].duration));
  }
  console.log(`  drawn after ${times.map(Math.round).join(', ')} ms`);
  return times;
}

// Chooses the n-th time line and waits until the page shows it: it is decoded first.
export async function chooseLine(page, number) {
  await page.selectOption('#time-tools select', String(number));
  await page.waitForSelector(`#time-rows[data-shown="${number}"]`);
}

// Selects a range of seconds of a time line.
export async function dragOn(page, line, from, to, selector = '#latency') {
  const target = page.locator(selector).first();
  await target.scrollIntoViewIfNeeded();
  const box = await target.boundingBox();
  const x = (seconds) => box.x + (seconds / (line.length_ns / 1e9)) * box.width;
  await page.mouse.move(x(from), box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(x((from + to) / 2), box.y + box.height / 2);
  await page.mouse.move(x(to), box.y + box.height / 2);
  await page.mouse.up();
}

export const selected = async (page) => [Number(await page.inputValue('#time-from')), Number(await page.inputValue('#time-to'))];

// `which` is `selected`, `rest` or `whole`.
export const rangeFigures = async (page, which) => JSON.parse(await page.locator(`tr[data-range="range.${which}"]`).getAttribute('data-figures'));
