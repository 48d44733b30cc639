// The page: switches, and what follows them.

import { Tooltip, byId, element } from '../front/controls.js';
import { changeTheme, onThemeChange } from '../front/colors.js';
import { unpack } from '../front/data.js';
import { drawCharts } from './chart.js';
import { Curves } from './curves.js';
import { chosenLanguage, onLanguageChange, said, say, sayAgain, setLanguage } from './say.js';
import { Spectra } from './spectra.js';
import { Times } from './times.js';

const THEMES = ['auto', 'light', 'dark'];

async function decodeJson(base64) {
  return JSON.parse(new TextDecoder().decode(await unpack(base64)));
}

function buildSwitches() {
  const language = element('button', { 'data-label': 'language.aria', id: 'language', click: () => setLanguage(chosenLanguage() === 'ru' ? 'en' : 'ru') });
  const showLanguage = () => {
    language.textContent = chosenLanguage() === 'ru' ? 'English' : 'Русский';
  };
  showLanguage();
  onLanguageChange(showLanguage);
  const { dataset } = document.documentElement;
  const theme = said('theme.auto', 'button', { 'data-label': 'theme.aria', id: 'theme', click: () => {
    const next = THEMES[(THEMES.indexOf(dataset.theme ?? 'auto') + 1) % THEMES.length];
    if (next === 'auto') {
      delete dataset.theme;
    } else {
      dataset.theme = next;
    }
    theme.dataset.say = `theme.${next}`;
    theme.textContent = say(theme.dataset.say);
    changeTheme();
  } });
  byId('switches').append(language, theme);
}

// Rows of the table of figures: each word of the filter begins one of theirs.
function buildFilter() {
  const rows = [...document.querySelectorAll('#figures tbody tr')];
  const input = element('input', { type: 'search', id: 'figure-filter', 'data-label': 'figures.filter', input: () => {
    const wanted = input.value.toLowerCase().split(/\s+/);
    let isShown = true;
    for (const row of rows) {
      if (!row.classList.contains('part')) {
        const known = row.cells[0].innerText.toLowerCase().split(/[^\p{L}\p{N}.]+/u);
        isShown = wanted.every((word) => known.some((other) => other.startsWith(word)));
      }
      row.hidden = !isShown;
    }
  } });
  byId('figure-tools')?.append(element('label', {}, said('figures.filter'), ' ', input));
}

function buildCopying() {
  for (const block of document.querySelectorAll('.block')) {
    const button = said('wrk2.copy', 'button', { class: 'copy', click: async () => {
      const text = block.querySelector('pre').textContent;
      try {
        await navigator.clipboard.writeText(text);
        button.dataset.say = 'wrk2.copied';
        button.textContent = say('wrk2.copied');
      } catch {
        getSelection().selectAllChildren(block.querySelector('pre'));
      }
    } });
    block.prepend(button);
  }
}

// A link to a row inside of closed details opens them.
function openTarget() {
  const target = location.hash.length > 1 ? byId(location.hash.slice(1)) : null;
  const details = target?.closest('details');
  if (details) {
    details.open = true;
    target.scrollIntoView({ block: 'center' });
  }
}

// The time line with its data, which are decoded when they are shown.
async function openTimes(data, tooltip) {
  const scripts = (name) => [...document.querySelectorAll(`script.${name}`)];
  const lines = scripts('time-line').map((script) => ({ index: script.dataset.index, case: Number(script.dataset.case), decode: () => decodeJson(script.textContent) }));
  if (lines.length === 0) {
    return null;
  }
  const recordings = new Map(scripts('recording').map(({ dataset, textContent }) =>
    [dataset.index, { text: textContent, offsetUs: Number(dataset.offsetUs), factor: Number(dataset.factor) }]));
  const { linesLeftOut, recordingsLeftOut } = document.querySelector('script.head').dataset;
  const times = new Times({ lines, recordings, leftOut: [Number(linesLeftOut), Number(recordingsLeftOut)] }, data, tooltip);
  await times.open(0);
  document.querySelectorAll('#observations a').forEach((link) => link.addEventListener('click', () => times.openCase(Number(link.dataset.case))));
  return times;
}

async function start() {
  buildSwitches();
  buildFilter();
  buildCopying();
  document.querySelectorAll('.scripted').forEach((each) => {
    each.hidden = false;
  });
  const data = await decodeJson(document.querySelector('script.head').textContent);
  const subjects = [...new Set(data.cases.map(({ subject }) => subject))];
  document.querySelectorAll('.tile').forEach((tile) => tile.style.setProperty('--own', `var(--series-${subjects.indexOf(tile.dataset.subject) % 8})`));
  const tooltip = new Tooltip(byId('tooltip'));
  if (data.curves.length > 0) {
    new Curves(data, subjects, tooltip);
  }
  if (data.spectra.length > 0) {
    new Spectra(data, tooltip);
  }
  const times = await openTimes(data, tooltip);
  sayAgain();
  drawCharts();
  onLanguageChange(drawCharts);
  onThemeChange(drawCharts);
  let resized;
  addEventListener('resize', () => {
    clearTimeout(resized);
    resized = setTimeout(() => {
      drawCharts();
      times?.draw();
    }, 100);
  });
  addEventListener('hashchange', openTarget);
  openTarget();
  performance.measure('drawn');
  document.documentElement.dataset.drawn = 'true';
}

await start();
