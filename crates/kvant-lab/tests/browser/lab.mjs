// Opens pages of the lab in a browser and compares what they show with the report and its
// recordings.
//
// Usage: node lab.mjs DIR [PART OF A CHECK'S NAME], with the files of `cargo xtask lab-check` in
// DIR. Writes pictures beside DIR. Exits with 0 if everything agrees, otherwise prints the
// differences and exits with 1.

import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { colorsOf, launch, openFile, runChecks } from './page.mjs';
import { PAGE_BYTES_MAX, chooseLine, dragOn, drawnRatio, isDrawn, rangeFigures, selected } from './lab-page.mjs';
import { takePictures } from './lab-pictures.mjs';

const [dir, wanted = ''] = process.argv.slice(2);
const english = join(dir, 'report.html');
const russian = join(dir, 'report-ru.html');
const report = JSON.parse(await readFile(join(dir, 'report.json'), 'utf8'));
const recording = JSON.parse(await readFile(join(dir, 'recording.json'), 'utf8'));
const [line] = report.time_lines;
const phone = { viewport: { width: 390, height: 844 } };

const problems = [];
let checkedCount = 0;

function expect(what, isTrue) {
  checkedCount += 1;
  if (!isTrue) {
    problems.push(what);
  }
}

function expectNear(what, found, wantedValue) {
  expect(`${what}: found ${found}, expected ${wantedValue}`, Math.abs(found - wantedValue) <= 1e-9 * Math.abs(wantedValue) + 1e-3);
}

// ---- What the page should show, computed without its code.

// Requests, errors, percentiles of the columns in a range of seconds.
function figures(from, to) {
  const inside = line.columns.filter((column) => column.start_ns >= from * 1e9 - 1 && column.end_ns <= to * 1e9 + 1);
  const values = inside.flatMap(({ counts }) => counts).sort((a, b) => a[0] - b[0]);
  const total = values.reduce((sum, [, count]) => sum + count, 0);
  const merged = new Map();
  values.forEach(([row, count]) => merged.set(row, (merged.get(row) ?? 0) + count));
  const percentile = (part) => {
    let below = 0;
    for (const [row, count] of merged) {
      if (below + count >= part * total) {
        const [low, high] = [Math.log(line.rows_ns[row]), Math.log(line.rows_ns[row + 1])];
        return Math.exp(low + ((high - low) * (part * total - below)) / count);
      }
      below += count;
    }
    return null;
  };
  return {
    completed: inside.reduce((sum, column) => sum + column.completed, 0),
    errors: inside.reduce((sum, column) => sum + column.errors, 0),
    percentiles: [0.5, 0.9, 0.99, 0.999].map(percentile),
    maxNs: Math.max(...inside.map((column) => column.max_ns)),
  };
}

// The weight of a kind of samples between two times of the time line, in seconds.
function weight(kind, from, to) {
  let sum = 0;
  for (const [of, startNs, endNs, each] of recording.samples) {
    if (of === kind) {
      const [start, end] = [startNs, endNs].map((ns) => Math.floor(ns / 1e3) + recording.offset_ns / 1e3);
      const [a, b] = [from * 1e6, to * 1e6];
      sum += each * (start === end ? Number(start >= a && start < b) : Math.max(0, Math.min(end, b) - Math.max(start, a)) / (end - start));
    }
  }
  return sum;
}

// ---- Driving the page.

const drag = (page, from, to, selector) => dragOn(page, line, from, to, selector);
const weights = async (page) => JSON.parse(await page.locator('#flame-summary').getAttribute('data-weights'));

function expectFigures(what, found, expected) {
  expect(`${what}: ${found.completed} requests, expected ${expected.completed}`, found.completed === expected.completed);
  expect(`${what}: errors`, found.errors === expected.errors);
  expect(`${what}: the greatest`, found.maxNs === expected.maxNs);
  expected.percentiles.forEach((ns, index) => expectNear(`${what}: percentile ${index}`, found.percentiles[index], ns));
}

const scrollWidth = (page) => page.evaluate(() => document.scrollingElement.scrollWidth);
// Text below the window is laid out later, and has no `innerText` before.
const layOutAll = (page) => page.addStyleTag({ content: 'section { content-visibility: visible !important; }' });
// The texts that can be seen.
async function visibleTexts(page, selector) {
  await layOutAll(page);
  return page.locator(selector).evaluateAll((each) => each.filter((one) => one.checkVisibility()).map((one) => one.innerText.trim()));
}

const CHECKS = {
  async 'the page is small and soon drawn'(open) {
    for (const path of [english, russian]) {
      const { size } = await stat(path);
      console.log(`  ${path}: ${size} bytes`);
      expect(`${path} has ${size} bytes`, size < PAGE_BYTES_MAX);
    }
    // About 4 when this was written.
    const ratio = await drawnRatio(open, english);
    expect(`drawn after ${ratio} of the time without scripts`, ratio < 8);
  },

  async 'every chart is drawn, in light and dark'(open) {
    for (const colorScheme of ['light', 'dark']) {
      const { page } = await open(english, { colorScheme });
      for (const canvas of ['#curve-latency canvas', '#curve-rate canvas', '#curve-law canvas', '#spectrum canvas', '#latency', '#time-rows canvas.lanes',
        '#time-rows .chart canvas', '[data-kinds="times.cpu"]', '[data-kinds="times.alloc"]', '[data-kinds="times.waits"]', '#flame']) {
        const count = await colorsOf(page, canvas);
        expect(`${colorScheme}: ${canvas} has ${count} colours`, count >= 5);
      }
      const charts = await page.locator('#time-rows .chart canvas').count();
      expect(`${charts} charts`, charts === 2 + line.series.length);
    }
  },

  async 'the theme can be chosen'(open) {
    const { page } = await open(english, { colorScheme: 'dark' });
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const pixel = () => page.locator('#latency').evaluate((canvas) => canvas.toDataURL());
    const [dark, darkPixel] = [await ground(), await pixel()];
    await page.click('#theme');
    const [light, lightPixel] = [await ground(), await pixel()];
    expect(`${dark}, ${light}`, dark !== light && darkPixel !== lightPixel);
    await page.click('#theme');
    expect('dark again', (await ground()) === dark && (await pixel()) === darkPixel);
  },

  async 'figures in tables are those of the report'(open) {
    const { page } = await open(english);
    const figure = report.figures.find(({ errors_part: errors }) => errors.median > 0);
    const row = page.locator(`#figures tr[data-case="${figure.case}"]`).first();
    const cells = await row.locator('td').allTextContents();
    const heads = await visibleTexts(page, '#figures thead th');
    const cell = (head) => cells[heads.indexOf(head)];
    const number = (text) => Number(text.replaceAll(',', '').match(/[\d.]+/)[0]);
    const near = (text, value) => Math.abs(number(text) / value - 1) < 0.006;
    expect(`achieved ${cell('achieved/s')}`, near(cell('achieved/s'), figure.achieved_per_s.median));
    for (const name of ['p50', 'p90', 'p99', 'p99.9', 'max']) {
      const [, { median }] = figure.response_ns.find(([known]) => known === name);
      const factor = { ns: 1, 'µs': 1e3, ms: 1e6, s: 1e9 }[cell(name).split(' ')[1]];
      expect(`${name} ${cell(name)}`, near(cell(name), median / factor));
    }
    expect(`errors ${cell('errors')}`, cell('errors') === `${(100 * figure.errors_part.median).toFixed(3)} %`);
    expect('all cases', (await page.locator('#figures tbody tr').count()) === report.figures.length);
    for (const [index, sweep] of report.sweeps.entries()) {
      const table = page.locator('#sweeps table').nth(index);
      const best = await table.locator('td.best').count();
      expect(`best cells of sweep ${index}: ${best}`, best === 1);
      expect(`cells of sweep ${index}`, (await table.locator('td').count()) === sweep.cells.length);
    }
    expect('tiles', (await page.locator('.tile').count()) === 4);
  },

  async 'the filter hides other cases'(open) {
    const { page } = await open(english);
    await page.fill('#figure-filter', 'selectors put hold workers 4');
    const shown = await visibleTexts(page, '#figures tbody tr');
    expect(`${shown.length} rows`, shown.length === 4 && shown.every((text) => text.includes('selectors') && text.includes('workers 4')));
  },

  async 'a dragged range has its percentiles and its flame graph'(open) {
    const { page } = await open(english);
    const end = line.length_ns / 1e9;
    expectFigures('the whole', await rangeFigures(page, 'whole'), figures(0, end));
    const rows = ['#latency', '[data-kinds="times.cpu"]', '#time-rows .chart:nth-child(2) .u-over'];
    for (const [index, [from, to]] of [[2.44, 4.76], [20.02, 31.18], [50.05, 51.93]].entries()) {
      await drag(page, from, to, rows[index]);
      const [a, b] = await selected(page);
      expect(`dragged ${from} to ${to} on ${rows[index]}, selected ${a} to ${b}`, Math.abs(a - from) <= 0.21 && Math.abs(b - to) <= 0.21 && Math.abs(a * 10 - Math.round(a * 10)) < 1e-6);
      expectFigures(`${a} to ${b}`, await rangeFigures(page, 'selected'), figures(a, b));
      const whole = figures(0, end);
      expect('the rest', (await rangeFigures(page, 'rest')).completed === whole.completed - figures(a, b).completed);
      for (const kind of ['cpu', 'alloc', 'contention', 'io']) {
        await page.click(`[data-view="${kind}"]`);
        await page.click('[data-mode="range"]');
        expectNear(`${kind} from ${a} to ${b}`, (await weights(page))[0], weight(kind, a, b));
        await page.click('[data-mode="difference"]');
        const [rest, inside] = await weights(page);
        expectNear(`${kind}: B`, inside, weight(kind, a, b));
        expectNear(`${kind}: A, the rest`, rest, weight(kind, -10, a) + weight(kind, b, end + 10));
        expect(`${kind}: the difference has colours`, (await colorsOf(page, '#flame')) >= 5);
      }
      await page.click('[data-mode="range"]');
    }
    await page.click('#time-whole');
    expectFigures('the whole again', await rangeFigures(page, 'whole'), figures(0, end));
    expect('nothing selected', (await page.inputValue('#time-from')) === '');
  },

  async 'ranges are typed, and chosen by events'(open) {
    const { page } = await open(english);
    await page.fill('#time-from', '12.3');
    await page.fill('#time-to', '14.5');
    await page.keyboard.press('Enter');
    expectFigures('typed', await rangeFigures(page, 'selected'), figures(12.3, 14.5));
    await page.fill('#time-to', '3');
    await page.keyboard.press('Tab');
    expect('an empty range is rejected', (await page.locator('#time-to').getAttribute('aria-invalid')) === 'true');
    const [start, end] = line.lanes.find(({ name }) => name === 'compaction').spans[1];
    const lanes = page.locator('#time-rows canvas.lanes');
    await lanes.scrollIntoViewIfNeeded();
    const box = await lanes.boundingBox();
    await page.mouse.click(box.x + ((start + end) / 2 / line.length_ns) * box.width, box.y + 16);
    const [a, b] = await selected(page);
    expect(`a compaction from ${start} to ${end}: ${a} to ${b}`, a * 1e9 <= start && start < (a + 0.1) * 1e9 + 1 && b * 1e9 >= end - 1 && end > (b - 0.1) * 1e9 - 1);
    expect('its name is told', (await page.locator('#range').textContent()).includes('compaction 1'));
  },

  async 'the page can be used without a mouse'(open) {
    const { page } = await open(english);
    const { keyboard } = page;
    await keyboard.press('Tab');
    expect('the first stop skips', await page.evaluate(() => document.activeElement.className === 'skip' && document.activeElement.getBoundingClientRect().left >= 0));
    // Every control that can be seen is reached by Tab, and shows that it is.
    const controls = await page.evaluate(() => {
      document.querySelectorAll('details').forEach((each) => {
        each.open = true;
      });
      const all = [...document.querySelectorAll('a[href], button:not(:disabled), input, select, [tabindex="0"]')].filter((each) => each.checkVisibility());
      all.forEach((each, index) => {
        each.dataset.stop = index;
      });
      return all.length;
    });
    const reached = new Set(['0']);
    let hidden = 0;
    for (let press = 0; press < controls + 40 && reached.size < controls; press += 1) {
      await keyboard.press('Tab');
      const [stop, outline] = await page.evaluate(() => [document.activeElement.dataset.stop, getComputedStyle(document.activeElement).outlineStyle]);
      if (stop !== undefined) {
        reached.add(stop);
        hidden += outline === 'none' ? 1 : 0;
      }
    }
    expect(`${reached.size} of ${controls} controls reached`, reached.size === controls);
    expect(`${hidden} without visible focus`, hidden === 0);
    await page.focus('#latency');
    for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight', 'Shift+ArrowRight', 'Shift+ArrowRight', 'Enter']) {
      await keyboard.press(key);
    }
    const [from, to] = await selected(page);
    expect(`selected by keys: ${from} to ${to}`, from === 0.3 && to === 0.6);
    expectFigures('by keys', await rangeFigures(page, 'selected'), figures(0.3, 0.6));
    await keyboard.press('Escape');
    expect('Escape clears', (await page.inputValue('#time-from')) === '');
    await page.focus('#flame');
    await keyboard.press('ArrowDown');
    await keyboard.press('ArrowDown');
    await keyboard.press('Enter');
    expect('zoomed by keys', await page.locator('text=Zoom out').isEnabled());
  },

  async 'another case can be chosen'(open) {
    const { page } = await open(english);
    const choices = page.locator('#time-tools select option');
    expect('time lines', (await choices.count()) === (await page.locator('script.time-line').count()));
    const last = (await choices.count()) - 1;
    await chooseLine(page, last);
    expect('no flame graph', (await page.locator('#flame').count()) === 0);
    const found = (await rangeFigures(page, 'whole')).completed;
    expect(`requests of case ${last}: ${found}`, found === report.time_lines[last].columns.reduce((sum, column) => sum + column.completed, 0));
    const link = page.locator('#observations a').first();
    const id = await link.getAttribute('data-case');
    await link.click();
    await page.waitForFunction((wantedCase) => document.querySelector(`#case-${wantedCase}`).checkVisibility(), id);
    expect('the case is in view', await page.locator(`#case-${id}`).isVisible());
  },

  async 'a report with little in it draws'(open) {
    const { page } = await open(join(dir, 'report-sparse.html'));
    expect('it says that it was interrupted', (await page.locator('.facts').innerText()).includes('interrupted: Ctrl-C'));
    const legend = await page.locator('#curve-legend').innerText();
    expect(`both servers are in one chart: ${legend}`, legend.includes('pool') && legend.includes('selectors') && !(await page.locator('#curve-tools').isVisible()));
    await chooseLine(page, 1);
    const inside = line.columns.slice(200, 300).reduce((sum, column) => sum + column.completed, 0);
    expect('requests of its columns', (await rangeFigures(page, 'whole')).completed === inside);
    await drag(page, 22.32, 24.98);
    expect(`a range: ${await selected(page)}`, (await selected(page)).join() === '22.3,25');
    expectFigures('a range', await rangeFigures(page, 'selected'), figures(22.3, 25));
    await chooseLine(page, 2);
    expect('its recording is missing', (await page.locator('#flames .note').innerText()).includes('not embedded'));
  },

  async 'what was left out is told'(open) {
    const { page } = await open(english);
    const lines = report.time_lines.length - (await page.locator('script.time-line').count());
    const recordings = report.time_lines.filter(({ recording: file }) => file !== null).length - (await page.locator('script.recording').count());
    const text = await page.locator('#time-left-out').textContent();
    expect(`${lines} time lines, ${recordings} recordings: ${text}`, recordings > 0 && text.includes(`recordings: ${recordings}`) && text.includes('time lines') === lines > 0);
    const thinned = await page.locator('script.recording').evaluateAll((all) => all.findIndex(({ dataset }) => dataset.factor > 1));
    expect('one is thinned', thinned >= 0);
    const factor = await page.locator('script.recording').nth(thinned).getAttribute('data-factor');
    await chooseLine(page, thinned);
    expect('its factor is told', (await page.locator('#time-left-out').textContent()).includes(`: ${factor}`));
    const { weights: kept } = { weights: await weights(page) };
    const all = weight('cpu', -10, 100);
    expect(`CPU of a thinned recording ${kept[0]}, of all samples ${all}`, Math.abs(kept[0] / all - 1) < 0.06);
  },

  async 'both languages are inside'(open) {
    const { page } = await open(russian);
    const isRussian = (text) => /[а-я]/i.test(text);
    let heads = await visibleTexts(page, 'h2');
    expect(`${heads}`, heads.every(isRussian));
    const said = await visibleTexts(page, '[data-say]:not([data-say^="figure."]):not(option)');
    expect('words in Russian', said.filter((text) => text !== '' && !isRussian(text)).length === 0);
    const legend = await page.locator('#flames .legend').textContent();
    expect(`the legend of the flame graph: ${legend}`, isRussian(legend) && !legend.includes('libraries'));
    const sentences = await visibleTexts(page, '.sentences p');
    expect('the verdict', sentences.length === 3 && sentences.every(isRussian));
    await drag(page, 2, 5);
    const figuresBefore = await rangeFigures(page, 'selected');
    await page.click('#language');
    heads = await visibleTexts(page, 'h2, .sentences p, .row-title b, nav a, .note, #flames .legend span');
    expect(`${heads.filter(isRussian)}`, heads.length > 20 && !heads.some(isRussian));
    expect('the selection stays', (await rangeFigures(page, 'selected')).completed === figuresBefore.completed);
    expect('the document says its language', (await page.evaluate(() => document.documentElement.lang)) === 'en');
  },

  async 'curves and spectra can be chosen'(open) {
    const { page } = await open(english);
    const shot = (id) => page.locator(`${id} canvas`).first().evaluate((canvas) => canvas.toDataURL());
    const before = await shot('#curve-latency');
    await page.selectOption('#curve-tools select', { index: 1 });
    expect('another curve', (await shot('#curve-latency')) !== before);
    const spectra = await shot('#spectrum');
    await page.locator('#spectrum-cases input').first().click();
    expect('one spectrum less', (await shot('#spectrum')) !== spectra);
    const checked = page.locator('#spectrum-cases input:checked');
    while ((await checked.count()) > 0) {
      await checked.first().click();
    }
    await page.selectOption('#spectrum-tools select >> nth=1', 'linear');
    await page.locator('#spectrum').hover({ position: { x: 300, y: 100 } });
    await page.locator('#curve-latency').hover({ position: { x: 300, y: 100 } });
    expect('a tooltip tells figures', (await page.locator('#tooltip').textContent()).includes('p99.9'));
  },

  async 'wrk2 text can be copied'(open) {
    const { page, context } = await open(english);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.locator('#wrk2 summary').first().click();
    await page.locator('#wrk2 .copy').first().click();
    await page.locator('#wrk2 .copy', { hasText: 'Copied' }).waitFor();
    const text = await page.evaluate(() => navigator.clipboard.readText());
    expect('the text', text === report.wrk2[0].text);
  },

  async 'a narrow screen needs no horizontal scrolling'(open) {
    for (const path of [english, russian]) {
      const { page } = await open(path, phone);
      const fits = async (what) => {
        const width = await scrollWidth(page);
        expect(`${path}, ${what}: ${width} px`, width <= 390);
      };
      await fits('at first');
      await page.evaluate(() => document.querySelectorAll('details').forEach((each) => {
        each.open = true;
      }));
      await fits('all details');
      await drag(page, 2, 5);
      await fits('selected');
      await page.click('[data-mode="difference"]');
      await page.locator('#flame').hover({ position: { x: 100, y: 30 } });
      await fits('difference');
    }
  },

  async 'without scripts the main figures are there'(open) {
    const { page } = await open(english, { javaScriptEnabled: false });
    const text = await page.locator('main').textContent();
    for (const part of ['36,400', 'p99.9', 'JavaScript', 'Breaking points', report.observations[0].text.en.slice(0, 40), report.known[0].source]) {
      expect(`"${part}" is there`, text.includes(part));
    }
    const languages = await page.locator('span[lang]').evaluateAll((each) => new Set(each.filter((one) => one.checkVisibility()).map(({ lang }) => lang)).size);
    expect(`${languages} languages can be seen`, languages === 1);
    expect('no places of charts', (await page.locator('#time-rows').isVisible()) === false);
  },
};

const browser = await launch();
// Without scripts nothing tells when a page is drawn.
const openOne = (path, settings = {}) => openFile(browser, path, settings.javaScriptEnabled === false ? () => true : isDrawn, settings);
const all = [...Object.entries(CHECKS), ['pictures', (open) => takePictures(open, dir, drag)]];
const failedCount = await runChecks(all, wanted, openOne, () => problems.splice(0));
await browser.close();
console.log(`${checkedCount} figures compared, ${failedCount} checks failed`);
process.exit(failedCount === 0 ? 0 : 1);
