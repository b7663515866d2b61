// The view write: a text that the model continues, token by token, with what else was likely at each one.

import { does, otherModels } from "./able.js";
import { Problem, events } from "./ask.js";
import { bars, field, shown } from "./draw.js";
import { h, show, withArrows } from "./dom.js";
import { t } from "./words.js";

const TOP = 6;
let last = null; // what was written: {key, tokens, done}; another view and back does not write it again
let going = null; // stops the writing under way

export async function write(page) {
  const { state, change, lead } = page;
  const continues = state.source.continues ?? true; // otherwise the sentence is the source of another text
  lead(continues ? "writeLead" : "sourceLead");
  const other = otherModels(page, does("text-generation"), "unmask pretrain gpt2 my_texts/ --out runs/gpt2");
  if (other) return other;
  const value = (name, usual) => (state[name] === undefined ? usual : Number(state[name]));
  const asked = { model: state.model, prompt: state.text, max_tokens: value("tokens", 40), temperature: value("temperature", 0.8), seed: value("seed", 0) };
  const key = JSON.stringify(asked);
  const output = h("div", {});
  if (state.go && last?.key !== key) begin(asked, key, page, output, continues ? asked.prompt : "");
  if (last?.key === key) { last.output = output; result(page, output); }
  const number = (name, usual, least, most, step) => field(t(name), h("input", { type: "number", min: least, max: most, step, "data-key": name, value: value(name, usual), onchange: (event) => change({ [name]: event.target.value, go: null }) }));
  return [
    h("div", { class: "card controls" },
      number("tokens", 40, 1, 400, 1), number("temperature", 0.8, 0, 3, 0.1), number("seed", 0, 0, 1e6, 1),
      h("div", { class: "row" },
        h("button", { class: "primary", type: "button", "data-key": "begin", onclick: () => { last = null; change({ go: 1, at: null }); } }, t("begin")),
        h("button", { class: "plain", type: "button", "data-key": "stop", onclick: () => going?.abort() }, t("stop")))),
    output,
  ];
}

// `before`: what the written text continues.
async function begin(asked, key, page, output, before) {
  going?.abort();
  const mine = { key, before, tokens: [], done: false, output };
  const stop = new AbortController();
  [last, going] = [mine, stop];
  try {
    for await (const event of events("/v1/completions", { ...asked, stream: true, logprobs: TOP }, stop.signal)) {
      for (const choice of event.choices) add(mine, choice);
      if (last === mine) result(page, mine.output);
    }
  } catch (error) {
    if (error instanceof Problem) mine.problem = error.message || t("unreachable");
    else if (error.name !== "AbortError") throw error;
  }
  mine.done = true;
  if (last === mine) result(page, mine.output);
}

function add(written, { text, logprobs }) {
  logprobs.tokens.forEach((token, i) => written.tokens.push({
    text: i === 0 ? text : "", name: token, probability: Math.exp(logprobs.token_logprobs[i] ?? -Infinity),
    most: Object.entries(logprobs.top_logprobs[i] ?? {}).map(([name, log]) => ({ token: name, probability: Math.exp(log) })).sort((a, b) => b.probability - a.probability),
  }));
  if (!logprobs.tokens.length && text && written.tokens.length) written.tokens.at(-1).text += text;
}

function result({ state, change }, output) {
  const { before, tokens, done, problem } = last;
  const at = Number(new URLSearchParams(location.search).get("at") ?? -1);
  const selected = tokens[at];
  show(output, h("div", { class: "columns" },
    h("section", { class: "card" }, h("h3", {}, t("written")),
      withArrows(h("div", { class: "written", role: "group", "aria-label": t("written") }, h("span", {}, before), tokens.map((token, place) => h("button", {
        type: "button", class: "new", "aria-pressed": String(place === at), "aria-label": shown(token.text || token.name), "--weight": token.probability, "data-key": `token ${place}`,
        onclick: () => change({ at: place }),
      }, token.text || "\u200b")))),
      h("p", { class: "soft", role: "status" }, problem ?? (done ? t("stopped", { count: tokens.length }) : t("writing")))),
    selected && h("section", { class: "card" }, h("h3", {}, t("alternatives", { token: shown(selected.name) })), bars(selected.most, selected.name))));
}
