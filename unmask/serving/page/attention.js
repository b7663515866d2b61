// The view attention: how much each token reads from the others, by layer and head.

import { otherModels } from "./able.js";
import { ask } from "./ask.js";
import { bars, field, matrix, options, shown, tokenButtons } from "./draw.js";
import { h, withArrows } from "./dom.js";
import { t } from "./words.js";

const MEAN = "mean";
const TOP = 8;

export async function attention(page) {
  const { state, change, lead } = page;
  lead("attentionLead");
  const other = otherModels(page, () => true, "unmask pretrain bert my_texts/ --out runs/bert");
  if (other) return other;
  if (!state.text.trim()) return h("p", { class: "soft" }, t("noText"));
  const found = await ask(`/models/${encodeURIComponent(state.model)}/attention`, { text: state.text, layer: Number(state.layer ?? 1) });
  const labels = found.tokens.map(shown);
  const head = state.head && Number(state.head) <= found.heads ? Number(state.head) : MEAN;
  const weights = head === MEAN ? mean(found.weights) : found.weights[head - 1];
  const selected = state.at !== undefined && Number(state.at) < labels.length ? Number(state.at) : Math.min(1, labels.length - 1);
  const choose = (place) => change({ at: place });
  const read = labels.map((token, place) => ({ token: `${token}`, probability: weights[selected][place] })).sort((a, b) => b.probability - a.probability);
  const name = head === MEAN ? t("mean") : t("headOf", { number: head });
  return [
    h("div", { class: "card controls" },
      field(t("layer"), h("select", { "data-key": "layer", value: String(found.layer), onchange: (event) => change({ layer: event.target.value }) }, options(Array.from({ length: found.layers }, (_, i) => [String(i + 1), String(i + 1)])))),
      field(t("headNumber"), h("select", { "data-key": "head", value: String(head), onchange: (event) => change({ head: event.target.value === MEAN ? null : event.target.value }) },
        options([[MEAN, t("mean")], ...found.weights.map((_, i) => [String(i + 1), String(i + 1)])])))),
    h("section", { class: "card" }, h("h3", {}, t("reader", { token: labels[selected] })),
      tokenButtons(labels, { kinds: labels.map(() => "read"), weights: weights[selected].map(strength), selected, choose, name: t("tokensTitle"), key: "token" })),
    h("div", { class: "columns beside" },
      h("section", { class: "card" }, h("h3", {}, name), matrix(labels, (q, k) => strength(weights[q][k]), { selected, choose, name: t("attentionName") })),
      h("section", { class: "card" }, h("h3", {}, t("reader", { token: labels[selected] })), bars(read.slice(0, TOP)))),
    h("section", { class: "card" }, h("h3", {}, `${t("layer")} ${found.layer}`),
      withArrows(h("div", { class: "heads", role: "group", "aria-label": t("headNumber") }, found.weights.map((one, i) =>
        h("button", { type: "button", "aria-pressed": String(head === i + 1), "data-key": `head ${i + 1}`, onclick: () => change({ head: head === i + 1 ? null : i + 1 }) },
          matrix(labels, (q, k) => strength(one[q][k]), { small: true }), t("headOf", { number: i + 1 })))))),
  ];
}

// How strong the colour of a weight is: its square root, so that small weights of long texts differ too.
const strength = Math.sqrt;
const mean = (heads) => heads[0].map((row, q) => row.map((_, k) => heads.reduce((sum, one) => sum + one[q][k], 0) / heads.length));
