// What checks of pages of the lab share.

export const PAGE_BYTES_MAX = 3e6;
export const isDrawn = () => document.documentElement.dataset.drawn === 'true';

const medianOf = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

// How much longer a page takes to open than without its scripts, which is parsing and layout: a
// ratio, as the speed of a machine changes from hour to hour. Medians of interleaved openings.
export async function drawnRatio(open, path) {
  const [drawnMs, plainMs] = [[], []];
  for (let round = 0; round < 5; round += 1) {
    const drawn = await open(path);
    drawnMs.push(await drawn.page.evaluate(() => performance.getEntriesByName('drawn')[0].duration));
    await drawn.context.close();
    const plain = await open(path, { javaScriptEnabled: false });
    plainMs.push(await plain.page.evaluate(() => performance.getEntriesByType('navigation')[0].loadEventEnd));
    await plain.context.close();
  }
  console.log(`  drawn after ${drawnMs.map(Math.round).join(', ')} ms; without scripts ${plainMs.map(Math.round).join(', ')} ms`);
  return medianOf(drawnMs) / medianOf(plainMs);
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
