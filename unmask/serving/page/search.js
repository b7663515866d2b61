// The view search: the nearest sentences of an index.

import { ask } from "./ask.js";
import { field, options } from "./draw.js";
import { h } from "./dom.js";
import { t } from "./words.js";

const COMMANDS = [
  "unmask adapt runs/bert my_texts/ --task embed --set loss=neighbour --out runs/vectors",
  "unmask index runs/vectors my_texts/ --out idx",
  "unmask serve runs/vectors --index idx",
];

export async function search({ state, choices, change, lead }) {
  lead("searchLead");
  if (!choices.indexes.length) return h("div", { class: "card" }, h("p", {}, t("noIndex")), h("div", { class: "commands" }, COMMANDS.map((one) => h("code", {}, one))));
  if (!state.text.trim()) return h("p", { class: "soft" }, t("noText"));
  const index = choices.indexes.includes(state.index) ? state.index : choices.indexes[0];
  const { found } = await ask("/search", { query: state.text, index, k: 10 });
  return [
    choices.indexes.length > 1 && h("div", { class: "card" }, field(t("index"), h("select", { "data-key": "index", value: index, onchange: (event) => change({ index: event.target.value }) }, options(choices.indexes.map((one) => [one, one]))))),
    h("section", { class: "card" }, h("h3", {}, t("inIndex", { name: index })), h("ol", { class: "found" }, found.map((one) =>
      h("li", {}, h("span", { class: "number" }, one.score.toFixed(3)), h("span", {}, one.text))))),
  ];
}
