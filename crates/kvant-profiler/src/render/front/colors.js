// Colours. Scales vary monotonically in lightness, so that they can be read without distinguishing
// red from green.

const DARK = matchMedia('(prefers-color-scheme: dark)');

const themeColors = new Map();
const themeListeners = [];
DARK.addEventListener('change', () => changeTheme());

export function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme === undefined ? DARK.matches : theme === 'dark';
}

export function onThemeChange(redraw) {
  themeListeners.push(redraw);
}

// Redraws in the theme that the browser prefers, or in the one that `data-theme` of the root names.
export function changeTheme() {
  themeColors.clear();
  themeListeners.forEach((redraw) => redraw());
}

// A colour of the style sheet.
export function themeColor(name) {
  if (!themeColors.has(name)) {
    themeColors.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return themeColors.get(name);
}

// Viridis, from dark to light.
const SCALE = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];

// Larger values contrast more with the page: darker on a light page, lighter on a dark one. `part`
// is 0 to 1.
export function heatColor(part) {
  const at = (isDark() ? 0.08 + 0.92 * part : 0.94 * (1 - part)) * (SCALE.length - 1);
  const low = SCALE[Math.floor(at)];
  const high = SCALE[Math.min(Math.floor(at) + 1, SCALE.length - 1)];
  const mixed = low.map((value, index) => Math.round(value + (high[index] - value) * (at % 1)));
  return `rgb(${mixed.join(' ')})`;
}

// Hue, and saturation and lightness in per cent, by origin (see ORIGINS), for light and dark pages.
const ORIGIN_COLORS = {
  light: [[36, 92, 68], [203, 68, 74], [328, 48, 79], [162, 42, 64], [0, 0, 80], [48, 14, 86], [54, 88, 68]],
  dark: [[28, 72, 36], [206, 55, 34], [325, 32, 38], [164, 48, 25], [0, 0, 32], [48, 8, 27], [48, 78, 31]],
};

// Functions of one origin differ slightly; inlined ones are paler.
export function originColor(origin, name, isInlined) {
  const [hue, saturation, lightness] = ORIGIN_COLORS[isDark() ? 'dark' : 'light'][origin];
  let hash = 0;
  for (let at = 0; at < name.length; at += 1) {
    hash = (hash * 31 + name.charCodeAt(at)) | 0;
  }
  const shade = (hash & 7) - 3.5;
  const pale = isInlined ? (isDark() ? 7 : 9) : 0;
  return `hsl(${hue} ${isInlined ? saturation * 0.75 : saturation}% ${lightness + shade + pale}%)`;
}

// For comparisons: blue is less, orange more, grey the same. `change` is -1 to 1.
export function changeColor(change) {
  const strength = Math.abs(change);
  const [hue, saturation] = change > 0 ? [22, 95] : [210, 85];
  const grey = isDark() ? 27 : 86;
  const full = isDark() ? 45 : 60;
  return `hsl(${hue} ${saturation * Math.min(1, strength * 1.6)}% ${grey + (full - grey) * strength}%)`;
}

export function newColor() {
  return isDark() ? 'hsl(320 45% 42%)' : 'hsl(320 62% 76%)';
}

const LANE_COLORS = { flush: '#009e73', compaction: '#0072b2', stall: '#d55e00', fsync: '#cc79a7', overload: '#b59b00' };

export function laneColor(kind) {
  return LANE_COLORS[kind] ?? '#888888';
}
