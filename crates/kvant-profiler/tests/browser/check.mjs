// Opens pages of the profiler in a browser and compares what they show with sums over their
// recordings.
//
// Usage: node check.mjs DIR [PART OF A CHECK'S NAME], with the files of `cargo xtask profile-check`
// in DIR. Writes pictures beside DIR. Exits with 0 if everything agrees, otherwise prints the
// differences and exits with 1.

import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ProfilePage, launch, runChecks } from './page.mjs';
import { additions } from './additions.mjs';
import { takePictures } from './pictures.mjs';
import { has, notSampled, readRecordings, total, weight } from './truth.mjs';

const PAGE_BYTES_MAX = 2e6;
const VIEWS = ['cpu', 'alloc', 'live', 'contention', 'holder', 'backpressure', 'io', 'idle', 'scheduler'];
const [dir, wanted = ''] = process.argv.slice(2);
const pagePath = join(dir, 'made-up.html');
const differencePath = join(dir, 'made-up-difference.html');
const [base, other] = await readRecordings(join(dir, 'made-up.json'));

const problems = [];
let checkedCount = 0;

function expect(what, isTrue) {
  checkedCount += 1;
  if (!isTrue) {
    problems.push(what);
  }
}

// Sums in different orders differ in their last digits.
function expectNear(what, found, wanted) {
  expect(`${what}: found ${found}, expected ${wanted}`, Math.abs(found - wanted) <= 1e-9 * Math.abs(wanted) + 1e-3);
}

const names = (pattern) => (sample, stack) => stack.some((name) => pattern.test(name));

const CHECKS = {
  async 'the page is small and draws'(open) {
    for (const path of [pagePath, differencePath]) {
      const { size } = await stat(path);
      console.log(`  ${path}: ${size} bytes`);
    }
    expect('page of a minute under 2 MB', (await stat(pagePath)).size < PAGE_BYTES_MAX);
    const page = await open(pagePath);
    const drawnMs = await page.page.evaluate(() => performance.now());
    console.log(`  drawn after at most ${Math.round(drawnMs)} ms`);
    for (const canvas of ['#flame', 'canvas.heat', 'canvas.lanes']) {
      const count = await page.colors(canvas);
      expect(`${canvas} shows ${count} colours`, count >= 5);
    }
  },

  async 'every view has the weight of its samples'(open) {
    const page = await open(pagePath);
    expect('views', JSON.stringify(await page.views()) === JSON.stringify(VIEWS.filter((id) => has(base, id))));
    for (const id of await page.views()) {
      await page.choose(id);
      expectNear(`total of ${id}`, (await page.weights())[0], total(base, id));
      expect(`${id}: heat map drawn`, (await page.colors('canvas.heat')) >= 5);
    }
  },

  async 'a search finds matching samples'(open) {
    const page = await open(pagePath);
    for (const id of ['cpu', 'alloc', 'contention']) {
      await page.choose(id);
      const whole = total(base, id);
      for (const pattern of ['memtable::', '^<alloc::vec', 'seek_|_next', 'nothing is called so']) {
        const wanted = weight(base, id, 0, Infinity, names(new RegExp(pattern, 'i')));
        const { text, weight: found } = await page.search(pattern);
        expectNear(`${id} matching ${pattern}`, found, wanted);
        const shown = Number(text.match(/([\d.]+) %/)[1]);
        expect(`${id} matching ${pattern}: shown as ${text}`, Math.abs(shown - (100 * wanted) / whole) < 0.051);
      }
    }
    const { text } = await page.search('(');
    expect(`a broken expression is reported: ${text}`, text.includes('not a regular expression'));
    await page.search('compaction|flush');
    await page.page.check('text=only matching');
    await page.choose('cpu');
    expectNear('only matching', (await page.weights())[0], weight(base, 'cpu', 0, Infinity, names(/compaction|flush/)));
  },

  async 'a click zooms in and Escape zooms out'(open) {
    const page = await open(pagePath);
    await page.showAllFrames();
    const name = 'kvant_server::selector::run';
    const wanted = weight(base, 'cpu', 0, Infinity, (sample, stack) => stack[4] === name);
    const { x, y, lines } = await page.find(5, name);
    const shown = Number(lines.join(' ').match(/\(([\d.]+) %\)/)[1]);
    expect(`tooltip of ${name}: ${lines}`, Math.abs(shown - (100 * wanted) / total(base, 'cpu')) < 0.01);
    await page.page.mouse.click(x, y);
    expect('zoomed', (await page.summary()).includes(`zoomed into ${name}`));
    await page.page.keyboard.press('Escape');
    expect('back', !(await page.summary()).includes('zoomed'));
  },

  async 'stacks are grouped by thread and activity'(open) {
    const page = await open(pagePath);
    const group = page.page.locator('label', { hasText: 'Group by' }).locator('select');
    await group.selectOption('activity');
    const wanted = weight(base, 'cpu', 0, Infinity, (sample) => sample.activity === 'compaction');
    const { lines } = await page.find(1, 'compaction');
    const shown = Number(lines.join(' ').match(/\(([\d.]+) %\)/)[1]);
    expect(`compaction: ${lines}`, Math.abs(shown - (100 * wanted) / total(base, 'cpu')) < 0.01);
    await group.selectOption('thread');
    await page.find(1, 'worker-0 (4245)');
  },

  async 'a reversed graph starts with the innermost functions'(open) {
    const page = await open(pagePath);
    await page.page.click('#tab-reversed');
    const heaviest = new Map();
    for (const sample of base.samples.filter(({ kind }) => kind === 'cpu')) {
      const leaf = base.stacks[sample.stack].at(-1);
      heaviest.set(leaf, (heaviest.get(leaf) ?? 0) + sample.weight);
    }
    const [name, wanted] = [...heaviest].sort((a, b) => b[1] - a[1])[0];
    const { lines } = await page.find(1, name);
    const shown = Number(lines.join(' ').match(/\(([\d.]+) %\)/)[1]);
    expect(`${name}: ${lines}`, Math.abs(shown - (100 * wanted) / total(base, 'cpu')) < 0.01);
  },

  async 'a dragged range has the weight of its time'(open) {
    const page = await open(pagePath);
    for (const id of ['cpu', 'alloc', 'contention', 'io', 'idle']) {
      await page.choose(id);
      await page.drag(12.34, 15.6);
      const [from, to] = await page.range('A');
      expect(`${id}: dragged 12.34 to 15.62, selected ${from} to ${to}`, from === 12.34e6 && to === 15.62e6);
      expectNear(`${id} in the range`, (await page.weights())[0], weight(base, id, from, to));
    }
    await page.page.click('#whole');
    expectNear('the whole again', (await page.weights())[0], weight(base, 'idle'));
    await page.page.fill('#A-fromUs', '20.5');
    await page.page.fill('#A-toUs', '21.25');
    await page.page.keyboard.press('Enter');
    expectNear('a typed range', (await page.weights())[0], weight(base, 'idle', 20.5e6, 21.25e6));
  },

  async 'a second range is compared with the first'(open) {
    const page = await open(pagePath);
    const a = [8, 9.98];
    const b = [11.5, 13.48];
    const weights = (range) => weight(base, 'cpu', range[0] * 1e6, (range[1] + 0.02) * 1e6);
    await page.drag(...a);
    await page.drag(...b, { isSecond: true });
    let found = await page.weights();
    expectNear('A', found[0], weights(a));
    expectNear('B', found[1], weights(b));
    expect('the difference has colours', (await page.colors('#flame')) >= 5);
    await page.page.hover('#flame', { position: { x: 100, y: 30 } });
    const tooltip = await page.page.locator('#tooltip').textContent();
    expect(`the tooltip tells both: ${tooltip}`, /A: .*B: .*\u2192/.test(tooltip));
    await page.page.click('#swap');
    found = await page.weights();
    expectNear('A after the exchange', found[0], weights(b));
    expectNear('B after the exchange', found[1], weights(a));
    await page.page.click('#whole');
    expect('one range again', (await page.weights()).length === 1);
  },

  async 'columns of one and five minutes have larger blocks'(open) {
    const page = await open(pagePath);
    const column = page.page.locator('label', { hasText: 'Column' }).locator('select');
    for (const [scale, blockUs] of [['minute', 1e6], ['five', 5e6], ['second', 2e4]]) {
      await column.selectOption(scale);
      await page.page.focus('canvas.heat');
      await page.page.keyboard.press('ArrowDown');
      await page.page.keyboard.press('Enter');
      const [from, to] = await page.range('A');
      expect(`a block of ${scale} is ${from} to ${to}`, to - from === blockUs && from % blockUs === 0);
      expectNear(`its weight`, (await page.weights())[0], weight(base, 'cpu', from, to));
    }
  },

  async 'every control redraws without changing the weights'(open) {
    const page = await open(pagePath);
    const whole = total(base, 'cpu');
    for (const [label, values] of [['Colours', ['linear', 'log', 'auto']], ['Narrowest', ['0.02', '0']], ['Group by', ['activity', 'none']]]) {
      for (const value of values) {
        await page.page.locator('label', { hasText: label }).locator('select').selectOption(value);
        expectNear(`${label} ${value}`, (await page.weights())[0], whole);
        expect(`${label} ${value}: drawn`, (await page.colors('#flame')) >= 5 && (await page.colors('canvas.heat')) >= 5);
      }
    }
    for (const label of ['lines', 'names', 'own code only', 'root at bottom']) {
      await page.option(label).click();
      expectNear(label, (await page.weights())[0], whole);
      expect(`${label}: drawn`, (await page.colors('#flame')) >= 5);
    }
  },

  async 'shares and amounts give different comparisons'(open) {
    const page = await open(pagePath);
    await page.drag(8, 9.98);
    await page.page.click('text=Compare');
    await page.drag(11.5, 15.98);
    const found = await page.weights();
    expectNear('A, half as long', found[0], weight(base, 'cpu', 8e6, 10e6));
    expectNear('B', found[1], weight(base, 'cpu', 11.5e6, 16e6));
    const tooltip = async () => {
      await page.page.hover('#flame', { position: { x: 100, y: 10 } });
      return page.page.locator('#tooltip').textContent();
    };
    const perSecond = await tooltip();
    await page.page.locator('#compare-by select').selectOption('total');
    const shares = await tooltip();
    expect(`by amounts "${perSecond}", by shares "${shares}"`, perSecond !== shares);
  },

  async 'rows of tables link to the graph'(open) {
    const page = await open(pagePath);
    await page.page.click('#tab-table');
    const event = page.page.locator('#tables table').last().locator('tr', { has: page.page.locator('button') }).first();
    const startUs = Number((await event.locator('td').nth(1).textContent()).replace(' s', '')) * 1e6;
    await event.locator('button').click();
    const [from, to] = await page.range('A');
    expect(`an event from ${startUs}: ${from} to ${to}`, Math.abs(from - startUs) < 1e4 && to > from);
    expectNear('its weight', (await page.weights())[0], weight(base, 'cpu', from, to));
    await page.page.click('#whole');
    const name = page.page.locator('#tables table').nth(1).locator('button').first();
    const text = await name.textContent();
    await name.click();
    const { weight: found } = await page.search(await page.page.inputValue('#search'));
    expectNear(`${text} from the table`, found, text === '[not sampled]' ? notSampled(base)
      : weight(base, 'cpu', 0, Infinity, (sample, stack) => stack.includes(text)));
  },

  async 'the page can be used without a mouse'(open) {
    const page = await open(pagePath);
    const { keyboard } = page.page;
    await page.page.focus('canvas.heat');
    await keyboard.press('ArrowRight');
    await keyboard.press('Shift+ArrowRight');
    await keyboard.press('Enter');
    const [from, to] = await page.range('A');
    expect(`selected by keyboard: ${from} to ${to}`, from === 1e6 && to === 2.02e6);
    await page.showAllFrames();
    await page.page.focus('#flame');
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter']) {
      await keyboard.press(key);
    }
    expect(`zoomed by keyboard: ${await page.summary()}`, (await page.summary()).includes('zoomed into start_thread'));
    await keyboard.press('Escape');
    await keyboard.press('Control+f');
    await keyboard.type('kvant_engine');
    expect('searched by keyboard', (await page.page.locator('#matched').textContent()).includes('%'));
    await keyboard.press('Alt+3');
    expect('tables by keyboard', await page.page.locator('#tables table').first().isVisible());
  },

  async 'tables agree with the samples'(open) {
    const page = await open(pagePath);
    await page.drag(30, 39.98);
    await page.page.click('#tab-table');
    const row = page.page.locator('#tables table').first().locator('tr', { hasText: 'compaction' });
    const shown = Number(await row.locator('td small').first().textContent().then((text) => text.replace(' %', '')));
    const range = [30e6, 40e6];
    const wanted = weight(base, 'cpu', ...range, (sample) => sample.activity === 'compaction') / weight(base, 'cpu', ...range);
    expect(`compaction's share ${shown}, expected ${100 * wanted}`, Math.abs(shown - 100 * wanted) <= 0.051);
    const locks = await page.page.locator('#tables table').nth(2).textContent();
    expect('locks are named', locks.includes('commit queue') && locks.includes('memtable list'));
  },

  async 'two recordings are compared'(open) {
    const page = await open(differencePath);
    let found = await page.weights();
    expectNear('A', found[0], total(base, 'cpu'));
    expectNear('B', found[1], total(other, 'cpu'));
    expect('two heat maps', (await page.page.locator('canvas.heat').count()) === 2);
    await page.drag(5, 9.98, { map: 1 });
    found = await page.weights();
    expectNear('A stays', found[0], total(base, 'cpu'));
    expectNear('a range of B', found[1], weight(other, 'cpu', 5e6, 10e6));
    await page.choose('alloc');
    expectNear('bytes of B', (await page.weights())[1], weight(other, 'alloc', 5e6, 10e6));
  },

  async 'with their rates, two recordings are compared by the request'(open) {
    const page = await open(differencePath);
    const factor = async () => {
      const { lines } = await page.find(0, 'all');
      return Number(lines.find((line) => line.includes('times')).match(/([\d.]+) times/)[1]);
    };
    const perRequest = await factor();
    await page.page.locator('#compare-by select').selectOption('second');
    const perSecond = await factor();
    // A had twice as many requests per second.
    expect(`${perRequest} by request, ${perSecond} by second`, Math.abs(perRequest / perSecond - 2) < 0.02);
  },
};

const more = additions({ dir, base, other, expect, expectNear });

const browser = await launch();
const all = [...Object.entries(CHECKS), ...Object.entries(more), ['pictures', (open) => takePictures(open, dir)]];
const failedCount = await runChecks(all, wanted, (...details) => ProfilePage.open(browser, ...details), () => problems.splice(0));
await browser.close();
console.log(`${checkedCount} figures compared, ${failedCount} checks failed`);
process.exit(failedCount === 0 ? 0 : 1);
