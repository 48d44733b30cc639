// Opens the reports of runs in a browser: they are small, draw in a second, load nothing, write
// nothing to the console, and a range of each time line can be selected.
//
// Usage: node lab-runs.mjs DIR [PART OF A NAME], with the directories of runs in DIR. Exits with 0
// if everything holds, otherwise prints what does not and exits with 1.

import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { launch, openFile, runChecks } from './page.mjs';
import { PAGE_BYTES_MAX, chooseLine, dragOn, isDrawn, rangeFigures, selected } from './lab-page.mjs';

const [dir, wanted = ''] = process.argv.slice(2);
const problems = [];
let lineCount = 0;

function expect(what, isTrue) {
  if (!isTrue) {
    problems.push(what);
  }
}

const requests = (columns) => columns.reduce((sum, column) => sum + column.completed, 0);

async function checkSelection(page, line, name) {
  const whole = await rangeFigures(page, 'whole');
  expect(`${name}: ${whole.completed} requests, expected ${requests(line.columns)}`, whole.completed === requests(line.columns));
  const length = line.length_ns / 1e9;
  await dragOn(page, line, 0.25 * length, 0.75 * length);
  const [from, to] = await selected(page);
  const inside = line.columns.filter((column) => column.start_ns >= from * 1e9 - 1 && column.end_ns <= to * 1e9 + 1);
  expect(`${name}: selected ${from} to ${to} of ${length}`, inside.length > 0 && inside.length < line.columns.length);
  const found = (await rangeFigures(page, 'selected')).completed;
  expect(`${name}: ${found} requests from ${from} to ${to}, expected ${requests(inside)}`, found === requests(inside));
  const rest = (await rangeFigures(page, 'rest')).completed;
  expect(`${name}: ${rest} requests in the rest`, rest === whole.completed - found);
}

async function checkRun(open, name) {
  const path = join(dir, name, 'report.html');
  const report = JSON.parse(await readFile(join(dir, name, 'report.json'), 'utf8'));
  const { size } = await stat(path);
  console.log(`  ${size} bytes`);
  expect(`${name} has ${size} bytes`, size < PAGE_BYTES_MAX);

  const { page } = await open(path);
  expect(`${name}: the title`, (await page.locator('h1').innerText()).includes(report.run.title));
  const embedded = await page.locator('script.time-line').count();
  expect(`${name}: ${embedded} of ${report.time_lines.length} time lines`, (embedded > 0) === (report.time_lines.length > 0));
  for (let index = 0; index < embedded; index += 1) {
    if (index > 0) {
      await chooseLine(page, index);
    }
    await checkSelection(page, report.time_lines[index], `${name}, time line ${index}`);
    lineCount += 1;
  }
}

const names = (await readdir(dir, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name).sort();
const browser = await launch();
const checks = names.map((name) => [name, (open) => checkRun(open, name)]);
const failedCount = await runChecks(checks, wanted, (path, settings) => openFile(browser, path, isDrawn, settings), () => problems.splice(0));
await browser.close();
console.log(`${names.length} reports, ${lineCount} time lines, ${failedCount} checks failed`);
process.exit(failedCount === 0 ? 0 : 1);
