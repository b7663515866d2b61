// The view row: what a recipe hides, sees and predicts in a text. The data is that of `unmask explain`.

import { ask } from "./ask.js";
import { field, matrix, options, percent, shown, tokenButtons } from "./draw.js";
import { h } from "./dom.js";
import { axisName, fromCode, t } from "./words.js";

const WAYS = ["mask", "random", "keep", "moved"];
const MOST_TARGETS = 24;
const SETTINGS = ["budget", "units", "see"];

export async function row(page) {
  const { state, lead } = page;
  lead("rowLead");
  if (!state.text.trim()) return h("p", { class: "soft" }, t("noText"));
  const tracks = Object.keys(state.source.tracks);
  const track = tracks.includes(state.track) ? state.track : tracks[0];
  const known = state.source.tracks[track];
  const names = { budget: known.budget, units: known.units, see: known.view };
  const settings = SETTINGS.filter((name) => state[name] && names[name]).map((name) => `${names[name].setting}=${state[name]}`);
  const body = { text: state.text, [state.model ? "model" : "recipe"]: state.model ?? state.recipe, settings, track, visit: Number(state.visit ?? 0) };
  if (state.stage) body.stage = Number(state.stage);
  const panel = controls(page, names, tracks, track);
  try {
    return [panel, result(page, await ask("/explain", body))];
  } catch (error) {
    if (!error.status || error.status === 401) throw error;
    return [panel, h("div", { class: "card problem", role: "alert" }, h("p", {}, error.message))];
  }
}

function aboutOf(several, name) {
  const about = several.find((one) => one.name === name)?.about;
  return about && code(about);
}

// A text that comes from the code.
function code(text, ...more) {
  const [words, lang] = fromCode(text);
  return h("span", { lang }, words, ...more);
}

function controls({ state, choices, change }, names, tracks, track) {
  const select = (name, values, chosen) => h("select", { "data-key": name, value: chosen, onchange: (event) => change({ [name]: event.target.value || null }) }, options(values, chosen));
  const parts = (name, several) => names[name] && field(t(name), select(name, [["", t("own", { value: names[name].value })], ...several.map((one) => [one.name, one.name])], state[name] ?? ""),
    { hint: aboutOf(several, state[name] || names[name].value) });
  const visit = Number(state.visit ?? 0);
  return h("div", { class: "card controls" },
    names.budget && budget(state, change, names.budget.value),
    parts("units", choices.units), parts("see", choices.views),
    field(t("visit"), h("input", { type: "number", min: 0, max: 999, "data-key": "visit", value: visit, onchange: (event) => change({ visit: Math.max(0, Math.floor(Number(event.target.value))) || null }) }), { hint: t("visitHint") }),
    tracks.length > 1 && field(t("track"), select("track", tracks.map((one) => [one, one]), track)),
    state.source.stages > 1 && field(t("stage"), select("stage", Array.from({ length: state.source.stages }, (_, i) => [String(i + 1), String(i + 1)]), state.stage ?? String(state.source.stages))),
    h("div", { class: "field" }, h("span", { class: "top" }), h("button", { class: "plain", type: "button", "data-key": "reset", onclick: () => change({ budget: null, units: null, see: null, visit: null, track: null, stage: null, at: null }) }, t("reset"))));
}

function budget(state, change, own) {
  const fixed = typeof own === "number";
  const value = Number(state.budget ?? (fixed ? own : 0.15));
  const words = (share) => (state.budget || fixed ? percent(share) : t("own", { value: t("curve") }));
  const label = h("output", {}, words(value));
  const slider = h("input", {
    type: "range", min: 0.05, max: 1, step: 0.05, value, "data-key": "budget", "aria-valuetext": words(value),
    oninput: () => { label.textContent = percent(Number(slider.value)); },
    onchange: () => change({ budget: slider.value }),
  });
  return field(t("budget"), slider, { more: label, hint: t("budgetHint") });
}

function result({ state, change }, found) {
  const { tokens, visible, units } = found;
  const kinds = tokens.map((token) => token.hidden ?? (token.special ? "special" : ""));
  const selected = state.at !== undefined && Number(state.at) < tokens.length ? Number(state.at) : -1;
  const choose = (place) => change({ at: place === selected ? null : place });
  const labels = tokens.map((token) => shown(token.text));
  const joined = tokens.map((token, place) => place > 0 && token.word >= 0 && token.word === tokens[place - 1].word);
  const hidden = tokens.filter((token) => token.hidden).length;
  const seen = selected >= 0 ? visible[selected].filter(Boolean).length : 0;
  return [
    found.misfit && h("div", { class: "card problem", role: "alert" }, h("h3", {}, t("misfit")), h("p", { lang: "en" }, found.misfit)),
    h("section", { class: "card" }, h("h3", {}, t("tokensTitle")),
      tokenButtons(labels, {
        kinds: kinds.map((kind, place) => `${kind}${joined[place] ? " joined" : ""}${selected >= 0 && !visible[selected][place] ? " unseen" : ""}`),
        under: tokens.map((token) => (token.hidden && token.original !== token.text ? shown(token.original) : "")),
        selected, choose, name: t("tokensTitle"), key: "token",
      }),
      h("p", { class: "legend" }, h("span", {}, hidden ? t("hiddenOf", { hidden, all: tokens.filter((token) => !token.special).length, units: units.length }) : t("noneHidden")),
        WAYS.filter((way) => kinds.includes(way)).map((way) => h("span", {}, h("i", { class: way }), t(way)))),
      h("p", { class: "soft" }, selected >= 0 ? t("seesCount", { token: labels[selected], count: seen, all: tokens.length }) : t("pickToken"))),
    h("div", { class: "columns beside" },
      h("section", { class: "card" }, h("h3", {}, t("seesTitle")), matrix(labels, (q, k) => (visible[q][k] ? 0.75 : 0), { kinds, selected, choose, name: t("matrixName") })),
      h("section", { class: "card" }, h("h3", {}, t("targetsTitle")), targets(found))),
    h("section", { class: "card" }, h("h3", {}, t("recipeTitle")), h("dl", {}, found.choices.map((one) => [h("dt", {}, axisName(one.axis)), h("dd", {}, code(one.meaning), h("code", { lang: "en" }, one.part))]),
      found.drawn.map((one) => [h("dt", {}, axisName(one.axis)), h("dd", {}, `${one.name}: `, code(one.meaning))]))),
    found.notes.length > 0 && h("details", { class: "card" }, h("summary", {}, t("notesTitle")), h("ul", { class: "notes" }, found.notes.map((note) => h("li", {}, code(note))))),
  ];
}

// If there is a decoder, it predicts, and places are places of its own row.
function targets({ targets: several, tokens, decoder, answers, questions }) {
  const read = decoder.length ? decoder : tokens;
  const all = [...several].sort((a, b) => a.place - b.place);
  const judged = questions.filter((one) => one.by === "discriminator");
  return [
    decoder.length > 0 && h("p", { class: "soft" }, t("decoder")),
    all.length
      ? h("table", {}, h("thead", {}, h("tr", {}, ["at", "reads", "sees", "predicts"].map((name) => h("th", { scope: "col" }, t(name))))),
        h("tbody", {}, all.slice(0, MOST_TARGETS).map((one) => h("tr", {}, h("td", {}, one.at), h("td", {}, one.blind ? t("nothing") : shown(read[one.at].text)),
          h("td", {}, t("ofAll", { count: one.sees, all: read.length })), h("td", {}, h("b", {}, [one.text, ...one.further].map(shown).join(" "))))))) 
      : h("p", { class: "soft" }, t("noTargets")),
    all.length > MOST_TARGETS && h("p", { class: "soft" }, t("more", { count: all.length - MOST_TARGETS })),
    answers.map((one) => h("p", {}, t("sentenceTask", { token: tokens[one.place].text, meaning: fromCode(one.meaning)[0] }))),
    judged.map((one) => h("p", { class: "soft" }, `${one.by}: ${one.meaning}`)),
  ];
}
