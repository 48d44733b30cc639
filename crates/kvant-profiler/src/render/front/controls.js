// Building blocks of the page: elements, labelled inputs, the tooltip.

export const byId = (id) => document.getElementById(id);

// Makes an element: element('td', { class: 'words' }, 'text', child ...). Attributes that are
// functions become listeners.
export function element(tag, attributes, ...contents) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') {
      made.addEventListener(name, value);
    } else if (typeof value === 'boolean') {
      made.toggleAttribute(name, value);
    } else {
      made.setAttribute(name, value);
    }
  }
  made.append(...contents);
  return made;
}

export function select(label, options, chosen, onChange) {
  const input = element('select', { change: (event) => onChange(event.target.value) });
  for (const [value, text] of options) {
    input.append(element('option', { value, selected: value === chosen }, text));
  }
  return element('label', {}, `${label} `, input);
}

export function checkbox(label, title, isOn, onChange) {
  const input = element('input', { type: 'checkbox', checked: isOn, change: (event) => onChange(event.target.checked) });
  return element('label', { title }, input, ` ${label}`);
}

export class Tooltip {
  constructor(box) {
    this.box = box;
  }

  show([title, ...lines], x, y) {
    this.box.replaceChildren(element('b', {}, title), ...lines.map((line) => element('div', {}, line)));
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    const left = Math.max(4, Math.min(x + 14, innerWidth - width - 8));
    const top = y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18;
    this.box.style.left = `${left}px`;
    this.box.style.top = `${top}px`;
  }

  hide() {
    this.box.hidden = true;
  }
}
