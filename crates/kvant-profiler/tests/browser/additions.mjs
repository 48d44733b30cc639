// Checks of the reading aids: folding, searching, removing, noise, help, narrow screens.
// Figures are compared with sums that are computed without code of the page.

import { join } from 'node:path';
import { chance, notSampled, total, weight } from './truth.mjs';

const GAP = '[not sampled]';
// The program's own code in synthetic recordings.
const isOwn = (name) => /^<?kvant_/.test(name);
// A stack as "own code only" shows it: own frames, and the innermost one.
const folded = (stack) => stack.filter((name, index) => isOwn(name) || index === stack.length - 1);
const percentOf = (lines) => Number(lines.join(' ').match(/\(([\d.]+) %\)/)[1]);

// The samples' weight in a block of 20 ms, spread over their time as the page does.
function blockWeight(recording, block, isWanted) {
  return weight(recording, 'cpu', block * 2e4, (block + 1) * 2e4, isWanted);
}

// Sums of CPU time by a key of stacks, largest first.
function sums(recording, keyOf) {
  const found = new Map();
  for (const sample of recording.samples.filter(({ kind }) => kind === 'cpu')) {
    const key = keyOf(recording.stacks[sample.stack], sample);
    found.set(key, (found.get(key) ?? 0) + sample.weight);
  }
  return [...found].sort((a, b) => b[1] - a[1]);
}

// Three significant digits, as in texts.
const isShownAs = (text, ns) => {
  const [, number, unit] = text.match(/([\d.,]+) (s|ms|µs|ns)/) ?? [];
  const shown = Number(number?.replaceAll(',', '')) * { s: 1e9, ms: 1e6, 'µs': 1e3, ns: 1 }[unit];
  return Math.abs(shown - ns) <= 0.006 * ns;
};

export function additions({ dir, base, other, expect, expectNear }) {
  const [made, difference, short] = ['made-up', 'made-up-difference', 'made-up-short'].map((name) => join(dir, `${name}.html`));
  const whole = total(base, 'cpu');

  return {
    async 'CPU time without samples has its own box and row'(open) {
      const page = await open(made);
      const gap = notSampled(base);
      expect('some is missing', gap > 0);
      const { lines } = await page.find(1, GAP);
      expect(`${GAP}: ${lines}`, Math.abs(percentOf(lines) - (100 * gap) / whole) < 0.01);
      await page.page.click('#tab-table');
      const row = await page.page.locator('#tables table').first().locator('tr', { hasText: GAP }).textContent();
      expect(`by activity: ${row}`, isShownAs(row, gap));
      const functions = await page.page.locator('#tables table').nth(1).locator('tr', { hasText: GAP }).textContent();
      expect(`functions: ${functions}`, isShownAs(functions, gap));
      await page.page.click('#tab-flame');
      await page.drag(12.34, 15.6);
      expect('a range has none', !(await page.row(1)).some(({ name }) => name === GAP));
      const pair = await open(difference);
      const { lines: both } = await pair.find(1, GAP);
      expect(`both recordings have theirs: ${both}`, isShownAs(both.find((line) => line.startsWith('A:')), gap)
        && isShownAs(both.find((line) => line.startsWith('B:')), notSampled(other)));
    },

    async 'own code only is on and folds library frames'(open) {
      const page = await open(made);
      expect('it is on', await page.option('own code only').isChecked());
      for (const depth of [1, 2, 3]) {
        const byPath = sums(base, (stack) => folded(stack).slice(0, depth).join('\n'));
        const [path, wanted] = byPath.find(([key]) => key.split('\n').length === depth);
        const { lines } = await page.find(depth, path.split('\n').at(-1));
        expect(`${path}: ${lines}`, Math.abs(percentOf(lines) - (100 * wanted) / whole) < 0.01);
      }
      const { lines } = await page.find(1, 'kvant_server::selector::run');
      expect(`how many are folded: ${lines}`, lines.some((line) => line.includes('up to 4 frames of libraries folded')));
      expectNear('nothing is lost', (await page.weights())[0], whole);
      await page.showAllFrames();
      expect('all frames', (await page.row(1)).some(({ name }) => name === 'clone3'));
      expectNear('the same weight', (await page.weights())[0], whole);
    },

    async 'a search finds folded frames too'(open) {
      const page = await open(made);
      const wanted = weight(base, 'cpu', 0, Infinity, (sample, stack) => stack.includes('start_thread'));
      const { weight: found } = await page.search('^start_thread$');
      expectNear('in no box, and yet matched', found, wanted);
      await page.page.click('#next-match');
      const count = await page.page.locator('#matched').getAttribute('data-match');
      expect(`boxes below which it is folded: ${count}`, /^1 of [1-9]/.test(count));
    },

    async 'a search in the view of the scheduler finds its threads'(open) {
      const page = await open(made);
      await page.choose('scheduler');
      const wanted = weight(base, 'scheduler');
      expect('there are waits', wanted > 0);
      // All names of threads end with their numbers.
      const { weight: found } = await page.search('\\(\\d+\\)$');
      expectNear('of all threads', found, wanted);
    },

    async 'a block of the heat map says from how many samples it is'(open) {
      const page = await open(made);
      const ofBlock = (block) => chance(base, 'cpu', block * 2e4, (block + 1) * 2e4, () => true).samples;
      const blocks = Array.from({ length: 3000 }, (_, block) => block);
      const [one, several] = [blocks.find((block) => ofBlock(block) === 1), blocks.find((block) => ofBlock(block) > 1)];
      const none = blocks.find((block) => ofBlock(block) === 0);
      for (const [block, words] of [[one, ' from 1 sample,'], [several, ` from ${ofBlock(several)} samples,`]]) {
        const text = await page.preview((block + 0.5) / 50);
        expect(`block ${block}: ${text}, expected${words}`, text.includes(words));
      }
      expect('none without samples', none === undefined || !(await page.preview((none + 0.5) / 50)).includes(' from '));
    },

    async 'a search colours the heat map by the matching weight'(open) {
      const page = await open(made);
      await page.page.locator('label', { hasText: 'Colours' }).locator('select').selectOption('log');
      await page.search('compaction|flush');
      const isWanted = (sample, stack) => stack.some((name) => /compaction|flush/i.test(name));
      const blocks = Array.from({ length: 3000 }, () => 0);
      for (const sample of base.samples.filter(({ kind }) => kind === 'cpu')) {
        blocks[Math.floor(sample.start_ns / 2e7)] += isWanted(sample, base.stacks[sample.stack]) ? sample.weight : 0;
      }
      const most = blocks.indexOf(Math.max(...blocks));
      const none = blocks.findIndex((sum, block) => sum === 0 && blockWeight(base, block, () => true) > 0);
      for (const block of [most, 60, 1000, 2000]) {
        const text = await page.preview((block + 0.5) / 50);
        const matching = blockWeight(base, block, isWanted);
        expect(`block ${block}: ${text}, expected ${matching}`, matching === 0 ? text.endsWith(': 0') || text.includes(': 0;') : isShownAs(text.split('UTC')[1], matching));
      }
      const width = (await page.page.locator('canvas.heat').boundingBox()).width / 60;
      const color = (block) => page.pixel('canvas.heat', (Math.floor(block / 50) + 0.7) * width, (block % 50) * 5 + 1.5);
      await page.page.mouse.move(2, 2);
      const [dark, grey] = [await color(most), await color(none)];
      expect(`most is ${dark}`, Math.hypot(dark[0] - 68, dark[1] - 1, dark[2] - 84) < 45);
      expect(`none is ${grey}`, grey.join() === '233,233,230');
    },

    async 'the map of a short recording is as wide as the page'(open) {
      for (const viewport of [{ width: 390, height: 844 }, { width: 1280, height: 800 }, { width: 1920, height: 1080 }]) {
        const page = await open(short, { viewport });
        const [map, space] = await Promise.all(['canvas.heat', '.map .scroller'].map((selector) => page.page.locator(selector).boundingBox()));
        expect(`${map.width} of ${space.width} px`, map.width > 0.97 * space.width && map.width <= space.width);
      }
    },

    async 'boxes whose difference may be due to chance are faded'(open) {
      const page = await open(made);
      const [a, b] = [[8e6, 10e6], [20e6, 22e6]];
      await page.drag(8, 9.98);
      await page.drag(20, 21.98, { isSecond: true });
      await page.page.locator('label', { hasText: 'Group by' }).locator('select').selectOption('activity');
      const seen = new Set();
      for (const { name, lines, left } of await page.row(1)) {
        const isWanted = (sample) => sample.activity === name;
        const [before, after] = [a, b].map((range) => ({ sum: weight(base, 'cpu', ...range, isWanted), ...chance(base, 'cpu', ...range, isWanted) }));
        const isNoise = Math.abs(after.sum - before.sum) < 2 * Math.sqrt(after.square + before.square);
        const line = lines.at(-1);
        expect(`${name}: ${line}`, line === `${isNoise ? 'within the noise of ' : ''}${before.samples} and ${after.samples} samples`);
        await page.page.mouse.move(2, 2);
        const least = Math.min(...(await page.pixel('#flame', left, 19 + 2)));
        const isStrong = before.samples > 0 && Math.abs(after.sum - before.sum) > 0.5 * Math.max(after.sum, before.sum);
        expect(`${name} drawn with ${least}`, isNoise ? least >= 150 : !isStrong || least < 150);
        seen.add(isNoise);
      }
      expect('some are chance, some not', seen.size === 2);
    },

    async 'the reversed graph is sorted by weight'(open) {
      const page = await open(made);
      await page.page.click('#tab-reversed');
      const heaviest = [...sums(base, (stack) => stack.at(-1)), [GAP, notSampled(base)]].sort((x, y) => y[1] - x[1]);
      const names = (await page.row(1)).map(({ name }) => name);
      const wanted = heaviest.slice(0, 6).map(([name]) => name);
      expect(`${names.slice(0, 6)}; expected ${wanted}`, names.slice(0, 6).join('\n') === wanted.join('\n'));
    },

    async 'help explains the keys and the views'(open) {
      const page = await open(made);
      await page.page.click('#help-button');
      const help = page.page.locator('#help');
      const text = await help.textContent();
      for (const word of ['Alt+click', 'Shift+N', 'Contention', 'Holders', 'Backpressure', 'I/O', 'Idle', 'Scheduler', 'another thread held']) {
        expect(`help has ${word}`, text.includes(word));
      }
      await page.page.keyboard.press('Escape');
      expect('closed', !(await help.isVisible()));
      await page.page.focus('#flame');
      await page.page.keyboard.press('?');
      expect('by key', await help.isVisible());
    },

    async 'bytes and times of events have units'(open) {
      const page = await open(made);
      await page.page.click('#tab-table');
      const text = await page.page.locator('#tables table').last().textContent();
      expect('a field of 64 MiB', base.spans.some((fields) => fields.some(([, value]) => value === '67108864')));
      const sized = base.spans.flat().filter(([name]) => name === 'input_bytes').map(([, value]) => `${(value / 2 ** 20).toFixed(0)} MiB`);
      expect(`bytes: ${text.slice(0, 200)}`, !/\d{7}/.test(text) && sized.some((size) => text.includes(`input_bytes ${size}`)));
    },

    async 'a function can be removed and restored'(open) {
      const page = await open(made);
      const name = 'kvant_server::selector::run';
      const isLeft = (sample, stack) => !stack.includes(name);
      const left = weight(base, 'cpu', 0, Infinity, isLeft) + notSampled(base);
      const { x, y } = await page.find(1, name);
      await page.page.keyboard.down('Alt');
      await page.page.mouse.click(x, y);
      await page.page.keyboard.up('Alt');
      expectNear('without it', (await page.weights())[0], left);
      const text = await page.preview(20.5);
      expect(`the map is without it: ${text}`, isShownAs(text.split('UTC')[1], blockWeight(base, 1025, isLeft)));
      expect('it is named', (await page.page.locator('#removed').textContent()).includes(name));
      await page.page.mouse.move(2, 2);
      await page.page.keyboard.press('u');
      expectNear('brought back', (await page.weights())[0], whole);
      const gap = await page.find(1, GAP);
      await page.page.mouse.click(gap.x, gap.y);
      await page.page.click('#remove');
      expectNear(`without ${GAP}`, (await page.weights())[0], whole - notSampled(base));
      const again = await page.find(1, name);
      await page.page.mouse.move(again.x, again.y);
      await page.page.focus('#flame');
      await page.page.mouse.move(again.x + 1, again.y);
      await page.page.keyboard.press('Delete');
      expectNear('without both', (await page.weights())[0], left - notSampled(base));
      await page.page.click('#restore');
      expectNear('all again', (await page.weights())[0], whole);
    },

    async 'matches are visited one by one'(open) {
      const page = await open(made);
      await page.showAllFrames();
      await page.search('memtable::');
      const places = [];
      for (const key of ['n', 'n', 'N', 'N']) {
        await page.page.locator('h1').first().click();
        await page.page.keyboard.press(key);
        const title = await page.page.locator('#tooltip b').textContent();
        expect(`${key}: ${title}`, title.includes('memtable::') && await page.page.locator('#tooltip').isVisible());
        places.push(await page.page.locator('#matched').getAttribute('data-match'));
      }
      const [, count] = places[0].split(' of ');
      expect(`places: ${places}`, places.join() === [1, 2, 1, count].map((place) => `${place} of ${count}`).join() && count > 2);
      await page.page.focus('#search');
      await page.page.keyboard.press('Enter');
      expect('Enter goes on', (await page.page.locator('#matched').getAttribute('data-match')) === `1 of ${count}`);
    },

    async 'a narrow screen needs no horizontal scrolling'(open) {
      for (const path of [made, difference, short]) {
        const page = await open(path, { viewport: { width: 390, height: 844 } });
        const fits = async (what) => {
          const width = await page.page.evaluate(() => document.scrollingElement.scrollWidth);
          expect(`${path}, ${what}: ${width} px`, width <= 390);
        };
        for (const view of await page.views()) {
          await page.choose(view);
          await fits(view);
        }
        await page.choose('cpu');
        await page.search('kvant_engine::memtable');
        await fits('search');
        const box = (await page.row(2))[0];
        await page.page.mouse.click(box.x, box.y);
        await fits('tooltip and zoom');
        await page.page.click('#remove');
        await fits('removed');
        for (const tab of ['reversed', 'table']) {
          await page.page.click(`#tab-${tab}`);
          await fits(tab);
        }
        await page.page.click('#help-button');
        await fits('help');
      }
    },
  };
}
