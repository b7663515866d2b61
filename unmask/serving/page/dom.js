// Elements: h() makes HTML, s() makes SVG. Properties that begin with "on" are listeners; "--name" sets a CSS variable.

function put(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  if (properties?.value !== undefined && element.tagName === "SELECT") element.value = properties.value; // after its options
  return element;
}

export const h = (name, properties, ...children) => put(document.createElement(name), properties, children);
export const s = (name, properties, ...children) =>
  put(document.createElementNS("http://www.w3.org/2000/svg", name), properties, children);

// Replace the content of an element. If what had the focus is drawn again (the same data-key), it gets the focus again.
export function show(element, ...children) {
  const before = document.activeElement;
  const key = element.contains(before) ? before.dataset.key : null;
  const caret = key && before.selectionStart;
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  const after = key && element.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!after) return;
  after.focus({ preventScroll: true });
  if (typeof caret === "number") after.setSelectionRange?.(caret, caret);
}

// Buttons of one group are one stop of the Tab key. The arrow keys move between them.
export function withArrows(group) {
  const all = [...group.querySelectorAll("button")];
  const first = all.find((one) => one.getAttribute("aria-pressed") === "true") ?? all[0];
  for (const one of all) one.tabIndex = one === first ? 0 : -1;
  group.addEventListener("keydown", (event) => {
    const at = all.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const to = { Home: 0, End: all.length - 1 }[event.key] ?? (step && at >= 0 ? (at + step + all.length) % all.length : -1);
    if (to < 0) return;
    event.preventDefault();
    all[at]?.setAttribute("tabindex", "-1");
    all[to].tabIndex = 0;
    all[to].focus();
  });
  group.addEventListener("focusin", (event) => {
    for (const one of all) one.tabIndex = one === event.target ? 0 : -1;
  });
  return group;
}
