// The view runs: the losses of runs during their training.

import { ask } from "./ask.js";
import { COLOURS, curves } from "./draw.js";
import { h } from "./dom.js";
import { t } from "./words.js";

export async function runs({ state, change, lead }) {
  lead("runsLead");
  const all = (await ask("/losses")).filter((one) => one.training.length);
  if (!all.length) return h("div", { class: "card" }, t("noRuns"));
  const without = new Set((state.without ?? "").split(",").filter(Boolean));
  const toggle = (name) => {
    without.has(name) ? without.delete(name) : without.add(name);
    change({ without: [...without].join(",") || null });
  };
  const lines = all.flatMap(({ name, training, held_out }, number) => without.has(name) ? [] : [
    { points: training, number }, ...(held_out.length > 1 ? [{ points: held_out, number, dashed: true }] : []),
  ]);
  const last = (points) => (points.length ? points.at(-1)[1].toFixed(3) : "");
  return [
    h("section", { class: "card" }, lines.length > 0 && curves(lines, { name: t("runs"), across: t("steps"), up: t("loss") })),
    h("section", { class: "card scroll", tabindex: "0", role: "region", "aria-label": t("runs") }, h("table", { class: "numbers" },
      h("thead", {}, h("tr", {}, ["run", "step", "training", "heldOut", "state"].map((name) => h("th", { scope: "col" }, t(name))))),
      h("tbody", {}, all.map(({ name, training, held_out, done }, number) => h("tr", {},
        h("td", { class: `key c${number % COLOURS}` }, h("label", { class: "row" }, h("input", { type: "checkbox", "data-key": `run ${name}`, checked: !without.has(name), onchange: () => toggle(name) }), h("span", {}, h("i"), name))),
        h("td", {}, training.at(-1)[0].toLocaleString("en")), h("td", {}, last(training)), h("td", {}, last(held_out)), h("td", {}, t(done ? "finished" : "going"))))))),
  ];
}
