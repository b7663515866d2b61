// The page: the sentence, the choice of a model or recipe, and one of several views. The state is in the address.

import { Problem, ask, setKey } from "./ask.js";
import { field, options } from "./draw.js";
import { h, show } from "./dom.js";
import { address, change, listen, read } from "./state.js";
import { fromCode, setLanguage, t } from "./words.js";
import { answers } from "./answers.js";
import { attention } from "./attention.js";
import { compare, hide } from "./guess.js";
import { row } from "./row.js";
import { runs } from "./runs.js";
import { search } from "./search.js";
import { write } from "./write.js";

const VIEWS = { hide, row, attention, compare, write, answers, search, runs };
const EXAMPLES = [
  ["en", "The doctor examined the patient in the hospital. The nurse treated the wound with great care."],
  ["zh", "医生在医院里检查了病人。护士手术以后治好了伤口。"],
];
const place = (name) => document.querySelector(name);
let choices = null;
let number = 0; // of the last drawing: an answer that comes after a newer drawing began is not shown

// The state with the values that the address leaves out.
function full() {
  const given = read();
  const state = { lang: setLanguage(given.lang), ...given };
  const model = choices.models.find((one) => one.name === state.model);
  const recipe = choices.recipes.find((one) => one.name === state.recipe);
  state.source = model ?? recipe ?? choices.models[0] ?? choices.recipes[0];
  state.model = choices.models.includes(state.source) ? state.source.name : null;
  state.recipe = state.model === null ? state.source.name : null;
  state.text ??= EXAMPLES[state.lang === "zh" ? 1 : 0][1];
  state.view = state.view in VIEWS ? state.view : firstView(state.source);
  return state;
}

// The view that a visitor sees first: one that the model can do.
function firstView({ uses, continues }) {
  if (!uses) return "row"; // a recipe
  if (uses.includes("fill-mask") || continues) return "hide";
  return uses.includes("answer") ? "answers" : "attention";
}

function idea(text) {
  const [words, lang] = fromCode(text);
  return h("p", { class: "soft", lang }, words);
}

async function draw() {
  const mine = ++number;
  if (choices === null) {
    setLanguage(read().lang);
    drawHeader(read());
    try {
      choices = await ask("/choices");
    } catch (error) {
      show(place("#view"), problem(error));
      place("#view").setAttribute("aria-busy", "false");
      return;
    }
  }
  const state = full();
  document.documentElement.dataset.theme = state.theme ?? "";
  drawHeader(state);
  drawSentence(state);
  drawNavigation(state);
  drawFooter();
  const view = place("#view");
  view.classList.add("waiting");
  view.setAttribute("aria-busy", "true");
  const lead = h("div", { class: "lead" }, h("h2", {}, t(state.view)));
  let drawn;
  try {
    drawn = await VIEWS[state.view]({ state, choices, change, lead: (name) => lead.append(h("p", {}, t(name))) });
  } catch (error) {
    drawn = problem(error);
  }
  if (mine !== number) return;
  view.classList.remove("waiting");
  view.setAttribute("aria-busy", "false");
  show(view, lead, drawn);
  const first = view.querySelector(".card h3, .problem p");
  const likely = view.querySelector("ol.bars li");
  place("[role=status]").textContent = [t(state.view), first?.textContent, likely?.innerText].filter(Boolean).join(": "); // for screen readers
}

function problem(error) {
  if (!(error instanceof Problem)) throw error;
  if (error.status === 401) return keyForm();
  return h("div", { class: "card problem", role: "alert" }, h("p", {}, error.status ? error.message : t("unreachable")));
}

function keyForm() {
  const key = h("input", { type: "password", autocomplete: "off", "data-key": "key" });
  const use = (event) => {
    event.preventDefault();
    setKey(key.value);
    draw();
  };
  return h("form", { class: "card row", onsubmit: use }, field(t("key"), key), h("button", { class: "primary" }, t("keySend")));
}

function drawHeader(state) {
  const dark = state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const other = document.documentElement.lang === "en" ? "zh" : "en";
  document.title = `Unmask: ${state.view in VIEWS ? t(state.view) : t("title")}`;
  place(".skip").textContent = t("skip");
  show(place("header"),
    h("h1", {}, "Un", h("i", {}, "mask")),
    h("p", {}, t("title")),
    h("div", { class: "switches" },
      h("button", { class: "plain small", type: "button", "data-key": "language", lang: other === "zh" ? "zh-CN" : "en", "aria-label": t("languageLong"), onclick: () => change({ lang: other }) }, t("language")),
      h("button", { class: "plain small", type: "button", "data-key": "theme", onclick: () => change({ theme: dark ? "light" : "dark" }) }, dark ? t("light") : t("dark"))));
}

let typing;
function drawSentence(state) {
  const box = place("#sentence");
  const text = box.querySelector("textarea");
  if (text && document.activeElement === text && box.dataset.lang === state.lang) return; // the visitor is typing
  box.dataset.lang = state.lang;
  const area = h("textarea", {
    rows: 3, spellcheck: "false", "data-key": "text", value: state.text,
    oninput: () => {
      clearTimeout(typing);
      typing = setTimeout(() => change({ text: area.value }), 350);
    },
  });
  const select = h("select", {
    "data-key": "source", value: state.model ? `model ${state.model}` : `recipe ${state.recipe}`,
    onchange: () => {
      const [kind, name] = select.value.split(/ (.*)/);
      change({ model: null, recipe: null, [kind]: name }, { push: true });
    },
  },
  h("optgroup", { label: t("models") }, options(choices.models.map((one) => [`model ${one.name}`, `${one.name} · ${one.recipe} ${one.size}`]))),
  h("optgroup", { label: t("recipes") }, options(choices.recipes.map((one) => [`recipe ${one.name}`, one.year ? `${one.name} · ${one.year}` : one.name]))));
  show(box,
    field(t("yourText"), area),
    h("div", {}, field(t("choose"), select), state.source.idea && idea(state.source.idea)),
    h("div", { class: "row examples" }, h("span", { class: "soft" }, t("examples")), EXAMPLES.map(([lang, words]) =>
      h("button", { class: "plain small", type: "button", lang: lang === "zh" ? "zh-CN" : "en", "data-key": `example ${lang}`, onclick: () => change({ text: words }) }, `${words.slice(0, lang === "zh" ? 12 : 24)}…`))));
}

function drawNavigation(state) {
  const go = (name) => (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    change({ view: name }, { push: true });
  };
  place("nav").setAttribute("aria-label", t("views"));
  show(place("nav"), h("ul", {}, Object.keys(VIEWS).map((name) => h("li", {}, h("a", {
    href: address({ view: name }), "aria-current": name === state.view ? "page" : null, "data-key": `view ${name}`, onclick: go(name),
  }, t(name))))));
}

function drawFooter() {
  show(place("footer"), h("p", {}, t("link")), h("p", {}, `${t("footer")} `, h("a", { href: "/openapi.json" }, "/openapi.json")));
}

listen(draw);
draw();
