// What to show if the chosen model cannot do what a view needs.

import { h } from "./dom.js";
import { t } from "./words.js";

// Models that can do one of these uses. "any": every model can.
export const able = (choices, uses) =>
  choices.models.filter((one) => uses.includes("any") || one.uses.some((use) => uses.includes(use)));

// Buttons for the models that can, if the chosen one cannot; otherwise null.
export function otherModels({ state, choices, change }, uses, how) {
  const many = able(choices, uses);
  if (many.some((one) => one.name === state.model)) return null;
  if (!many.length) return h("div", { class: "card" }, h("p", {}, t("noneCan", { how })));
  return h("div", { class: "card" }, h("p", {}, t("cannot", { model: state.model ?? state.recipe })), h("div", { class: "row" }, many.map((one) =>
    h("button", { class: "plain", type: "button", onclick: () => change({ model: one.name, recipe: null }, { push: true }) }, one.name))));
}
