// The views hide and compare: a word is hidden, and models say what they would put there.

import { does, otherModels } from "./able.js";
import { ask } from "./ask.js";
import { answered, bars, field, options } from "./draw.js";
import { h, withArrows } from "./dom.js";
import { t } from "./words.js";

const fills = does("fill-mask");
const canGuess = (model) => fills(model) || model.continues;
const HOW = "unmask pretrain bert my_texts/ --out runs/bert";
const TOP = 8;
const MOST = 4; // words that are hidden at once

// The words of a text: [{start, end, tokens}], in characters of the text.
async function wordsOf(model, text) {
  const tokens = await ask(`/models/${encodeURIComponent(model)}/words`, { text });
  const points = [...text]; // the service counts characters, JavaScript counts halves of some
  const words = [];
  for (const token of tokens) {
    if (token.end <= token.start) continue; // white space only
    if (words.at(-1)?.number !== token.word) words.push({ number: token.word, start: token.start, end: token.end, tokens: [] });
    words.at(-1).tokens.push(token);
    words.at(-1).end = token.end;
  }
  for (const word of words) word.text = points.slice(word.start, word.end).join("");
  return { words, points, tokens };
}

// The hidden words in the address: "4-10,20-25". If it says nothing, the longest word is hidden; if there are some, of one token.
function hiddenIn(state, words) {
  if (state.hide === undefined) {
    const letters = words.filter((word) => /\p{L}/u.test(word.text));
    const whole = letters.filter((word) => word.tokens.length === 1);
    const longest = (whole.some((word) => word.text.length > 3) ? whole : letters).reduce((best, word) => (word.text.length > (best?.text.length ?? 0) ? word : best), null);
    return longest ? [longest] : [];
  }
  const ranges = state.hide.split(",").map((one) => one.split("-").map(Number));
  return words.filter((word) => ranges.some(([start, end]) => word.start < end && word.end > start)).slice(0, MOST);
}

// What a model puts in the place of each token of the hidden words: [{word, token, number, guesses}].
async function guessesOf(model, found, hidden) {
  if (!hidden.length) return [];
  return fills(model) ? fill(model, found, hidden) : expect(model, found, hidden);
}

async function fill(model, { points }, hidden) {
  let text = "", at = 0;
  for (const word of hidden) {
    text += points.slice(at, word.start).join("") + "[MASK]".repeat(word.tokens.length);
    at = word.end;
  }
  text += points.slice(at).join("");
  const answer = await ask(`/models/${encodeURIComponent(model.name)}/fill-mask`, { inputs: text, parameters: { top_k: TOP } });
  const gaps = Array.isArray(answer[0]) ? answer : [answer];
  return hidden.flatMap((word) => word.tokens.map((token, number) => ({ word, token, number }))).map((gap, place) => ({
    ...gap, guesses: (gaps[place] ?? []).map((one) => ({ token: one.token_str, probability: one.score })),
  }));
}

async function expect(model, { points, tokens }, hidden) {
  const body = { model: model.name, prompt: points.join(""), max_tokens: 0, echo: true, logprobs: TOP };
  const { logprobs } = (await ask("/v1/completions", body)).choices[0];
  return hidden.flatMap((word) => word.tokens.map((token, number) => {
    const most = logprobs.top_logprobs[tokens.indexOf(token)] ?? {};
    const guesses = Object.entries(most).map(([name, log]) => ({ token: name, probability: Math.exp(log) }));
    return { word, token, number, guesses: guesses.sort((a, b) => b.probability - a.probability) };
  }));
}

// The sentence with a button for each word.
function sentence({ change }, { words, points }, hidden, gaps) {
  const toggle = (word) => {
    const next = hidden.includes(word) ? hidden.filter((one) => one !== word) : [...hidden, word].slice(-MOST);
    change({ hide: next.sort((a, b) => a.start - b.start).map((one) => `${one.start}-${one.end}`).join(",") });
  };
  let at = 0;
  const drawn = words.flatMap((word) => {
    const before = points.slice(at, word.start).join("");
    at = word.end;
    const best = joined(gaps.filter((one) => one.word === word).map((one) => one.guesses[0]?.token ?? ""));
    const is = hidden.includes(word);
    if (!/[\p{L}\p{N}]/u.test(word.text)) return [before, word.text]; // a sign, not a word
    return [before, h("button", {
      type: "button", class: `word${is && best ? " two" : ""}`, "aria-pressed": String(is), "data-key": `word ${word.start}`, onclick: () => toggle(word),
    }, is && best ? [h("s", {}, word.text), h("span", {}, best)] : word.text)];
  });
  return withArrows(h("div", { class: "sentence", role: "group", "aria-label": t("words") }, drawn, points.slice(at).join("")));
}

// Tokens as text: a piece of a word ("##ed") joins the one before, and so does a Chinese character.
const joined = (tokens) => tokens.reduce((text, one) => text + (text && /^[\p{L}\p{N}]/u.test(one) && one < "\u2e80" ? " " : "") + one.replace(/^##/, ""), "").trim();

function cards(gaps) {
  if (!gaps.length) return h("p", { class: "soft" }, t("nothingHidden"));
  return h("div", { class: "columns" }, gaps.map(({ word, token, number, guesses: several }) => h("section", { class: "card" },
    h("h3", {}, word.tokens.length > 1 ? t("piece", { word: word.text, number: number + 1, count: word.tokens.length }) : t("insteadOf", { word: word.text })),
    several.length ? bars(several, token.text) : h("p", { class: "soft" }, t("nothingBefore")))));
}

export async function hide(page) {
  const { state, lead } = page;
  const other = otherModels(page, canGuess, HOW);
  lead(other || fills(state.source) ? "hideLead" : "nextLead");
  if (other) return other;
  if (!state.text.trim()) return h("p", { class: "soft" }, t("noText"));
  const found = await wordsOf(state.model, state.text);
  const hidden = hiddenIn(state, found.words);
  const gaps = await guessesOf(state.source, found, hidden);
  const named = fills(state.source) ? gaps : [];
  return [h("div", { class: "card" }, sentence(page, found, hidden, named)), cards(gaps)];
}

export async function compare(page) {
  const { state, choices, change, lead } = page;
  lead("compareLead");
  if (!state.text.trim()) return h("p", { class: "soft" }, t("noText"));
  const known = choices.models.map((one) => one.name);
  if (!known.length) return otherModels(page, () => true, HOW);
  const first = state.model ?? known[0];
  const second = known.includes(state.other) ? state.other : (known.find((one) => one !== first) ?? first);
  const found = await wordsOf(first, state.text);
  const hidden = hiddenIn(state, found.words);
  const both = await Promise.all([first, second].map((name) => column(choices.models.find((one) => one.name === name), state.text, hidden)));
  const pick = (name, label, chosen) => field(label, h("select", { "data-key": name, value: chosen, onchange: (event) => change({ [name]: event.target.value, ...(name === "model" ? { recipe: null } : {}) }) }, options(known.map((one) => [one, one]))));
  return [
    h("div", { class: "card" }, sentence(page, found, hidden, [])),
    h("div", { class: "columns" }, [pick("model", t("first"), first), pick("other", t("other"), second)].map((select, side) =>
      h("section", { class: "card stack", "aria-label": [first, second][side] }, select, both[side]))),
  ];
}

// What one model makes of the sentence.
async function column(model, text, hidden) {
  const found = await wordsOf(model.name, text);
  const own = found.words.filter((word) => hidden.some((one) => word.start < one.end && word.end > one.start));
  const [read, gaps] = await Promise.all([
    ask("/compare", { text, models: [model.name] }),
    canGuess(model) ? guessesOf(model, found, own) : [],
  ]);
  const { tokens, answer, score } = read.models[0];
  return [
    h("p", { class: "soft" }, t("tokenCount", { count: tokens.length }), score === undefined ? "" : ` · ${t("score", { score: score.toFixed(1) })}`),
    answer !== undefined && h("div", {}, h("h3", {}, t("answer")), answered(answer)),
    gaps.map(({ word, token, number, guesses: several }) => h("div", {},
      h("h3", {}, word.tokens.length > 1 ? t("piece", { word: word.text, number: number + 1, count: word.tokens.length }) : t("insteadOf", { word: word.text })),
      several.length ? bars(several, token.text) : h("p", { class: "soft" }, t("nothingBefore")))),
  ];
}
