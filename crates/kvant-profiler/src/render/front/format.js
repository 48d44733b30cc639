// Numbers for display: three significant digits and a unit.

import { phrase } from './phrase.js';

const TIME_STEPS = [['s', 1e9], ['ms', 1e6], ['\u00b5s', 1e3], ['ns', 1]];
const BYTE_STEPS = [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10], ['B', 1]];

function digits(value) {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) {
    return Math.round(value).toLocaleString('en-US');
  }
  return value.toFixed(size >= 10 ? 1 : 2);
}

// `unit` is `time` (nanoseconds) or `bytes`.
export function amount(value, unit) {
  const steps = unit === 'bytes' ? BYTE_STEPS : TIME_STEPS;
  const [name, factor] = steps.find(([, size]) => Math.abs(value) >= size) ?? steps.at(-1);
  return value === 0 ? '0' : `${digits(value / factor)} ${name}`;
}

const FIELD_UNITS = { bytes: ['bytes', 1], ns: ['time', 1], us: ['time', 1e3], ms: ['time', 1e6], s: ['time', 1e9] };

// A field of an event. Its name ends with its unit.
export function fieldText([name, value]) {
  const unit = FIELD_UNITS[name.split('_').at(-1)];
  if (unit === undefined || !/^\d+$/.test(value)) {
    return `${name} ${/^\d{4,}$/.test(value) ? Number(value).toLocaleString('en-US') : value}`;
  }
  const shown = name.replace(/(^|_)(ns|us|ms|s)$/, '');
  return `${shown}${shown === '' ? '' : ' '}${amount(Number(value) * unit[1], unit[0])}`;
}

// An amount per second of the selected time. Time per time has no unit.
export function perSecond(value, view, seconds) {
  if (seconds <= 0) {
    return '';
  }
  return view.unit === 'bytes' ? `${amount(value / seconds, 'bytes')}/s` : `${digits(value / seconds / 1e9)} ${phrase(view.rate)}`;
}

// The same in short form, for comparisons.
export function rate(value, unit) {
  return unit === 'bytes' ? `${amount(value, 'bytes')}/s` : `${amount(value, 'time')}/s`;
}

export function percent(part, whole) {
  if (whole === 0) {
    return '0 %';
  }
  const value = (100 * part) / whole;
  return `${value !== 0 && Math.abs(value) < 0.1 ? value.toFixed(3) : value.toFixed(value >= 99.95 ? 0 : 2)} %`;
}

export function seconds(us) {
  return `${(us / 1e6).toFixed(us < 600e6 ? 2 : 0)} s`;
}

export function wallClock(recording, us) {
  return new Date(recording.facts.startedWallNs / 1e6 + us / 1e3).toISOString().slice(11, 23);
}

// The end of a path, without type parameters, for narrow boxes. In `<A as B>::f` the type A is
// used.
export function shortName(name) {
  const implemented = name.startsWith('<') ? name.slice(1, closing(name)) : '';
  const rest = implemented === '' ? name : name.slice(implemented.length + 2);
  const type = withoutParameters(implemented).split(' as ')[0];
  const parts = `${type}${withoutParameters(rest)}`.split('::').filter((part) => part !== '');
  const kept = parts.at(-1) === '{{closure}}' ? 3 : 2;
  return parts.slice(-kept).join('::');
}

// The position at which the text's opening bracket is closed.
function closing(text) {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    depth += text[at] === '<' ? 1 : text[at] === '>' && text[at - 1] !== '-' ? -1 : 0;
    if (depth === 0) {
      return at;
    }
  }
  return text.length;
}

function withoutParameters(text) {
  let flat = text;
  let before;
  do {
    before = flat;
    flat = flat.replace(/<[^<>]*>/g, '');
  } while (flat !== before);
  return flat;
}
