// The page's words in the chosen language.

import { byId, element } from '../front/controls.js';
import { setTranslation } from '../front/phrase.js';

const WORDS = JSON.parse(byId('words').textContent);
const languageListeners = [];

export function chosenLanguage() {
  return document.documentElement.lang;
}

const inLanguage = ([en, ru]) => (chosenLanguage() === 'ru' ? ru : en);

export function say(key) {
  return inLanguage(WORDS[key]);
}

// The word for a name of plans or servers, if there is one.
export function sayName(prefix, name) {
  return `${prefix}.${name}` in WORDS ? say(`${prefix}.${name}`) : name;
}

// The texts of the front-end library.
setTranslation((text) => sayName('phrase', text));

// A text of the report.
export function sayText({ en, ru }) {
  return inLanguage([en, ru]);
}

// An element whose text follows the language.
export function said(key, tag = 'span', attributes = {}) {
  return element(tag, { ...attributes, 'data-say': key }, say(key));
}

export function onLanguageChange(redraw) {
  languageListeners.push(redraw);
}

export function setLanguage(language) {
  document.documentElement.lang = language;
  sayAgain();
  languageListeners.forEach((redraw) => redraw());
}

export function sayAgain() {
  document.querySelectorAll('[data-say]').forEach((each) => {
    each.textContent = say(each.dataset.say);
  });
  document.querySelectorAll('[data-label]').forEach((each) => each.setAttribute('aria-label', say(each.dataset.label)));
}

// The axes' names with the values of a cell, without axes that do not concern it.
export function cellParts(sweep, cell) {
  return cell.map((value, index) => (value === '' ? '' : `${sweep[index].name} ${value}`)).filter((part) => part !== '');
}
