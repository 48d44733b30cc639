// The library's texts in the language of a page. Their keys are their English forms.

let translate = (text) => text;

// `translation(text)` returns a text in the page's language, with the same places `{0}`, `{1}`.
export function setTranslation(translation) {
  translate = translation;
}

export function phrase(text, ...values) {
  return translate(text).replace(/\{(\d)\}/g, (place, index) => values[index]);
}
