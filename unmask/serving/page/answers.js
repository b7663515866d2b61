// The view answers: labels, tags and answer spans of models that were adapted to a task.

import { does, otherModels } from "./able.js";
import { ask } from "./ask.js";
import { answered, bars, field, percent } from "./draw.js";
import { h } from "./dom.js";
import { t } from "./words.js";

const COLOURS = 4;

export async function answers(page) {
  const { state, lead } = page;
  lead("answersLead");
  const other = otherModels(page, does("answer"), "unmask adapt runs/bert train.jsonl --out runs/mine");
  if (other) return other;
  if (!state.text.trim()) return h("p", { class: "soft" }, t("noText"));
  const { uses } = state.source;
  const to = (task) => `/models/${encodeURIComponent(state.model)}/${task}`;
  if (uses.includes("question-answering")) return spans(page, to("question-answering"));
  if (uses.includes("token-classification")) return tags(state.text, await ask(to("token-classification"), { inputs: state.text }));
  if (uses.includes("text-classification") && !state.source.pairs) {
    const [found] = await ask(to("text-classification"), { inputs: state.text });
    return h("section", { class: "card" }, h("h3", {}, t("labels")), bars(found.map((one) => ({ token: one.label, probability: one.score }))));
  }
  return other_tasks(page, to("answer"));
}

function input({ state, change }, name, label, hint) {
  return h("div", { class: "card" }, field(label, h("input", { type: "text", "data-key": name, value: state[name] ?? "", onchange: (event) => change({ [name]: event.target.value }) }), { hint }));
}

async function spans(page, route) {
  const { state } = page;
  const ask_for = input(page, "question", t("question"), t("context"));
  if (!state.question) return [ask_for, h("div", { class: "card sentence" }, state.text)];
  const found = [await ask(route, { inputs: { question: state.question, context: state.text }, parameters: { top_k: 5 } })].flat();
  const [best, ...others] = found;
  return [
    ask_for,
    h("div", { class: "card sentence" }, best.answer ? marked(state.text, [{ ...best, label: percent(best.score) }]) : [state.text, h("p", { class: "soft" }, t("noAnswer"))]),
    others.length > 0 && h("section", { class: "card" }, h("h3", {}, t("otherAnswers")), bars(others.map((one) => ({ token: one.answer || t("nothing"), probability: one.score })))),
  ];
}

function tags(text, found) {
  const kinds = [...new Set(found.map((one) => one.entity_group))];
  const several = found.map((one) => ({ ...one, label: one.entity_group, colour: kinds.indexOf(one.entity_group) % COLOURS }));
  return h("div", { class: "card sentence" }, marked(text, several), !found.length && h("p", { class: "soft" }, t("noTags")));
}

// The text with marks. The service counts characters.
function marked(text, several) {
  const points = [...text];
  let at = 0;
  return [
    [...several].sort((a, b) => a.start - b.start).flatMap(({ start, end, label, colour = 0 }) => {
      const before = points.slice(at, start).join("");
      at = end;
      return [before, h("mark", { class: `c${colour}` }, points.slice(start, end).join(""), h("small", {}, label))];
    }),
    points.slice(at).join(""),
  ];
}

// Any other task: probabilities of labels, or its answer as the command line gives it.
async function other_tasks(page, route) {
  const { state } = page;
  const second = state.source.pairs ? input(page, "second", t("secondText")) : null;
  if (second && !state.second) return second;
  const [found] = await ask(route, { examples: [second ? [state.text, state.second] : state.text], top: 3 });
  return [second, h("section", { class: "card" }, h("h3", {}, t("answer")), answered(found))];
}
