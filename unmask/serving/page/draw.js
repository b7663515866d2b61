// Pictures and lists that several views use.

import { h, s, withArrows } from "./dom.js";
import { t } from "./words.js";

const SIGNS = { "\n": "⏎", "\t": "⇥", "\r": "⏎" };

// A token as it is shown: without the mark of a word's start or middle, and with visible white space.
export const shown = (text) =>
  text.replace(/^##/, "").replace(/^▁/, "").replace(/^ +| +$/g, "").replace(/[\n\t\r]/g, (sign) => SIGNS[sign]) || "␣";

export const percent = (share) => `${(100 * share).toFixed(share >= 0.0995 ? 0 : 1)}%`;

// Likely tokens with their probabilities. `right`: the token that stands in the text.
export function bars(guesses, right) {
  return h("ol", { class: "bars" }, guesses.map(({ token, probability }) => {
    const is = right !== undefined && shown(token).toLowerCase() === shown(right).toLowerCase();
    return h("li", { class: is && "right" },
      h("span", { class: "token" }, shown(token), is && h("span", { class: "tick", title: t("inText") }, " ✓")),
      h("span", { class: "bar", "aria-hidden": "true", "--share": probability }),
      h("span", { class: "number" }, percent(probability)));
  }));
}

// Tokens as buttons; one of them may be selected. `kinds`: a class for each. `weights`: how dark each one is, 0 to 1.
export function tokenButtons(labels, { kinds = [], selected, weights, titles = [], under = [], name, choose, key }) {
  return withArrows(h("div", { class: "tokens", role: "group", "aria-label": name }, labels.map((label, place) =>
    h("button", {
      type: "button", class: `chip ${kinds[place] ?? ""}${weights && weights[place] < LEAST ? " unseen" : ""}`,
      "aria-pressed": String(place === selected), title: titles[place], "data-key": `${key} ${place}`,
      "--weight": weights ? weights[place] : null, onclick: () => choose(place),
    }, under[place] && h("s", {}, under[place]), h("span", {}, label)))));
}

export const COLOURS = 8; // of lines
const LEVELS = 8; // of darkness
const LEAST = 0.1; // what is less is not drawn
const CELL = 18;

// A matrix: the token at the left sees, or reads from, the token above. `value(q, k)` is between 0 and 1.
export function matrix(labels, value, { kinds = [], selected, name, choose, small = false } = {}) {
  const count = labels.length;
  const cell = small ? 4 : CELL;
  const longest = Math.min(10, Math.max(...labels.map(width)));
  const left = small ? 0 : 7.4 * longest + 12;
  const paths = {}; // by the kind of the key and the level
  for (let q = 0; q < count; q++) for (let k = 0; k < count; k++) {
    const level = value(q, k) < LEAST ? -1 : Math.ceil(value(q, k) * LEVELS - 1e-9) - 1;
    const gap = small ? 0 : 1.5;
    const shade = `${Math.min(level, LEVELS - 1)} ${kinds[k] ?? ""}`;
    if (level >= 0) paths[shade] = `${paths[shade] ?? ""}M${k * cell + gap} ${q * cell + gap}h${cell - 2 * gap}v${cell - 2 * gap}h-${cell - 2 * gap}z`;
  }
  const size = count * cell;
  const drawn = [
    s("rect", { class: "ground", width: size, height: size, rx: small ? 1 : 3 }),
    !small && selected >= 0 && s("rect", { class: "row", y: selected * cell, width: size, height: cell }),
    Object.entries(paths).map(([shade, path]) => s("path", { d: path, class: `cells ${shade.split(" ")[1]}`, "fill-opacity": (parseInt(shade) + 1) / LEVELS })),
  ];
  if (small) return s("svg", { viewBox: `0 0 ${size} ${size}`, class: "matrix small", "aria-hidden": "true" }, drawn);
  const text = (label) => (width(label) > 10 ? `${label.slice(0, 8)}…` : label);
  const svg = s("svg", {
    viewBox: `${-left} ${-left} ${size + left} ${size + left}`, width: size + left, height: size + left, class: "matrix",
    role: "img", "aria-label": name,
    onclick: (event) => {
      const box = svg.getBoundingClientRect();
      const place = Math.floor((((event.clientY - box.top) / box.height) * (size + left) - left) / cell);
      if (choose && place >= 0 && place < count) choose(place);
    },
  }, drawn, labels.map((label, place) => [
    s("text", { class: kinds[place], x: -6, y: place * cell + 13, "text-anchor": "end" }, text(label)),
    s("text", { class: kinds[place], transform: `translate(${place * cell + 13} -6) rotate(-90)` }, text(label)),
  ]));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, svg);
}

// How wide a text is, in letters: a Chinese character counts two.
const width = (text) => [...text].reduce((sum, letter) => sum + (letter > "\u2e80" ? 1.8 : 1), 0);

// Lines over steps. Each: {name, points: [[x, y]], dashed, number}; the number chooses the colour.
export function curves(lines, { name, across, up }) {
  const points = lines.flatMap((line) => line.points);
  const W = Math.max(280, Math.min(1000, innerWidth - 50)), H = Math.min(360, 0.7 * W), L = 46, B = 40, T = 30, R = 14;
  const top = (values, pick) => pick(...values);
  const x1 = top(points.map(([x]) => x), Math.max), y0 = top(points.map(([, y]) => y), Math.min), y1 = top(points.map(([, y]) => y), Math.max);
  const low = Math.floor(y0), high = Math.max(Math.ceil(y1), low + 1);
  const X = (x) => L + ((W - L - R) * x) / (x1 || 1), Y = (y) => T + ((H - T - B) * (high - y)) / (high - low);
  const rows = ticks(low, high), columns = ticks(0, x1);
  return s("svg", { viewBox: `0 0 ${W} ${H}`, class: "curves", role: "img", "aria-label": name },
    rows.map((y) => [s("line", { class: "grid", x1: L, x2: W - R, y1: Y(y), y2: Y(y) }), s("text", { x: L - 8, y: Y(y) + 4, "text-anchor": "end" }, y)]),
    columns.map((x) => s("text", { x: X(x), y: H - B + 20, "text-anchor": "middle" }, x.toLocaleString("en"))),
    s("text", { x: W - R, y: H - 4, "text-anchor": "end" }, across), s("text", { x: L - 8, y: 12, "text-anchor": "end" }, up),
    lines.map((line) => s("polyline", {
      class: `line c${line.number % COLOURS}${line.dashed ? " dashed" : ""}`, points: line.points.map(([x, y]) => `${X(x).toFixed(1)},${Y(y).toFixed(1)}`).join(" "),
    })));
}

function ticks(low, high) {
  const rough = (high - low) / 5 || 1, ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * ten).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + 1e-9; at += step) found.push(Number(at.toPrecision(6)));
  return found;
}

// The answer of a task: bars if it has probabilities of labels, otherwise its values as the command line gives them.
export function answered(answer) {
  const shares = answer?.probabilities;
  if (shares && !Array.isArray(shares)) return bars(Object.entries(shares).map(([token, probability]) => ({ token, probability })).sort((a, b) => b.probability - a.probability));
  if (typeof answer !== "object" || answer === null) return h("p", {}, String(answer));
  return h("dl", {}, Object.entries(answer).map(([name, value]) => [h("dt", {}, name), h("dd", {}, typeof value === "object" ? h("code", {}, JSON.stringify(value)) : String(value))]));
}

// A field: its label, its control and a hint. `more`: what stands after the name of the label.
export function field(label, control, { hint, more } = {}) {
  const id = `field ${control.dataset.key}`.replaceAll(" ", "-");
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return h("div", { class: "field" }, h("label", { for: id }, label), more, control, hint && h("small", { id: `${id}-hint` }, hint));
}

export const options = (values, chosen) => values.map(([value, label]) => h("option", { value, selected: value === chosen }, label));
