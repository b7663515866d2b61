// What to show if the chosen model cannot do what a view needs.

import { h } from "./dom.js";
import { t } from "./words.js";

// Whether a model has a use.
export const does = (use) => (model) => model.uses.includes(use);

// Buttons for the models that can, if the chosen one cannot; otherwise null. `can`: whether a model can.
export function otherModels({ state, choices, change }, can, how) {
  const many = choices.models.filter(can);
  if (many.some((one) => one.name === state.model)) return null;
  if (!many.length) return h("div", { class: "card" }, h("p", {}, t("noneCan", { how })));
  return h("div", { class: "card" }, h("p", {}, t("cannot", { model: state.model ?? state.recipe })), h("div", { class: "row" }, many.map((one) =>
    h("button", { class: "plain", type: "button", onclick: () => change({ model: one.name, recipe: null }, { push: true }) }, one.name))));
}
