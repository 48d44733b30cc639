// Reads pprof files and collapsed stacks with other programs, and compares their figures with each
// other and with the page.
//
// Usage: node foreign.mjs DIR, with the files of `cargo xtask profile-check` in DIR. Exits with 0
// if everything agrees, otherwise prints the differences and exits with 1.

import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { Profile } from 'pprof-format';
import { ProfilePage, launch } from './page.mjs';

const dir = process.argv[2];
// View of the page, kind of the collapsed stacks, value of the pprof file. Live bytes are part of a
// kind.
const VIEWS = [
  ['cpu', 'cpu', 'cpu'], ['alloc', 'alloc', 'alloc_space'], ['live', null, 'inuse_space'], ['contention', 'contention', 'delay'],
  ['idle', 'idle', 'idle'], ['backpressure', 'backpressure', 'backpressure'], ['io', 'io', 'io'], ['scheduler', 'scheduler', 'scheduler'],
  ['holder', 'holder', 'holder'],
];
const problems = [];
let comparedCount = 0;

// The sum of each value, and for each function the CPU time of stacks that contain it.
async function readPprof(name) {
  const bytes = await readFile(join(dir, `${name}.pb.gz`)).catch(async () =>
    Buffer.from(await readFile(join(dir, `${name}.pb.gz.base64`), 'utf8'), 'base64'));
  const profile = Profile.decode(gunzipSync(bytes));
  const text = (index) => profile.stringTable.strings[Number(index)];
  const names = profile.sampleType.map(({ type }) => text(type));
  const sums = new Map(names.map((value, index) => [value, profile.sample.reduce((sum, { value: values }) => sum + Number(values[index]), 0)]));
  const functions = new Map(profile.function.map(({ id, name: index }) => [Number(id), text(index)]));
  const locations = new Map(profile.location.map(({ id, line }) => [Number(id), line.map(({ functionId }) => functions.get(Number(functionId)))]));
  const cpu = new Map();
  for (const { locationId, value } of profile.sample) {
    for (const called of new Set(locationId.flatMap((id) => locations.get(Number(id))))) {
      cpu.set(called, (cpu.get(called) ?? 0) + Number(value[names.indexOf('cpu')] ?? 0));
    }
  }
  return { bytes, sums, cpu };
}

// The output of `go tool pprof` by function: the CPU time of stacks that contain it. Null without
// Go.
async function readWithGo(bytes) {
  const path = join(dir, 'go.pb.gz');
  await writeFile(path, bytes);
  const options = ['-top', '-nodecount=0', '-nodefraction=0', '-edgefraction=0', '-sample_index=cpu', '-unit=ns'];
  let text;
  try {
    text = execFileSync('go', ['tool', 'pprof', ...options, path], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 28 });
  } catch (error) {
    if (error.code === 'ENOENT') {
      return null;
    }
    throw error;
  }
  const cpu = new Map();
  for (const [, weight, name] of text.matchAll(/^ *\S+ +\S+ +\S+ +(\d+)(?:ns)? +\S+ {2}(.*)$/gm)) {
    const called = name.replace(/ \((partial-)?inline\)$/, '');
    cpu.set(called, (cpu.get(called) ?? 0) + Number(weight));
  }
  return cpu;
}

// Opens collapsed stacks in speedscope and reads its export: the sum of all weights, and by
// function the weight of stacks that contain it.
async function readCollapsed(browser, path) {
  const release = join(dirname(createRequire(import.meta.url).resolve('speedscope/package.json')), 'dist', 'release');
  const context = await browser.newContext({ acceptDownloads: true });
  const page = await context.newPage();
  await page.goto(pathToFileURL(join(release, 'index.html')).href);
  await page.setInputFiles('input[type=file]', path);
  await page.waitForSelector('canvas');
  // It draws before it has read the file, and ignores keys until then.
  let download = null;
  for (let press = 0; press < 60 && download === null; press += 1) {
    [download] = await Promise.all([page.waitForEvent('download', { timeout: 1000 }).catch(() => null), page.keyboard.press('Control+s')]);
  }
  const { shared, profiles } = JSON.parse(await readFile(await download.path(), 'utf8'));
  await context.close();
  // Boxes that open and close along an axis of weight.
  const [{ events, startValue, endValue }] = profiles;
  const byName = new Map();
  const open = [];
  let at = startValue;
  for (const event of events) {
    if (event.at > at) {
      for (const name of new Set(open)) {
        byName.set(name, (byName.get(name) ?? 0) + event.at - at);
      }
      at = event.at;
    }
    if (event.type === 'O') {
      // Marks of inlined and kernel functions are part of the names here.
      open.push(shared.frames[event.frame].name.replace(/_\[[ik]\]$/, ''));
    } else {
      open.pop();
    }
  }
  return { sum: endValue - startValue, byName };
}

function compare(what, found, wanted) {
  comparedCount += 1;
  if (Math.abs(found - wanted) > 1e-9 * Math.abs(wanted)) {
    problems.push(`${what}: ${found}, in the pprof file ${wanted}`);
  }
}

const browser = await launch();
for (const name of ['made-up', 'real']) {
  const pprof = await readPprof(name);
  const go = await readWithGo(pprof.bytes);
  console.log(`  ${name}: go tool pprof ${go === null ? 'is not here' : `shows ${go.size} functions`}`);
  if (go !== null) {
    // There, equal names in different files are different functions.
    [...pprof.cpu].filter(([, weight]) => weight > 0).forEach(([called, weight]) => compare(`${called} in go tool pprof`, go.get(called) ?? 0, weight));
  }
  const page = await ProfilePage.open(browser, join(dir, `${name}.html`));
  const onPage = await page.views();
  for (const [view, kind, value] of VIEWS) {
    const sum = pprof.sums.get(value) ?? 0;
    console.log(`  ${name} ${view}: ${sum}`);
    if (onPage.includes(view)) {
      await page.choose(view);
      compare(`${name}.html, ${view}`, (await page.weights())[0], sum);
    } else {
      compare(`${name}.html has no ${view}`, 0, sum);
    }
    if (kind !== null && sum > 0) {
      const collapsed = await readCollapsed(browser, join(dir, `${name}.${kind}.collapsed`));
      compare(`${name}.${kind}.collapsed in speedscope`, collapsed.sum, sum);
      if (kind === 'cpu') {
        const heaviest = [...pprof.cpu].sort((a, b) => b[1] - a[1]).slice(0, 200);
        heaviest.forEach(([called, weight]) => compare(`${called} in speedscope`, collapsed.byName.get(called.replaceAll(';', ',')) ?? 0, weight));
      }
    }
  }
  problems.push(...page.problems);
  await page.page.screenshot({ path: join(dir, '..', 'pictures', `${name}-first.png`), fullPage: true });
  await page.close();
}
await browser.close();
problems.slice(0, 40).forEach((problem) => console.log(problem));
console.log(`${comparedCount} sums of other programs compared, ${problems.length} differ`);
process.exit(problems.length === 0 && comparedCount > 0 ? 0 : 1);
