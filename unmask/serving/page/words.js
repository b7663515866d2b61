// The words of the page, in English and in Chinese.

import { axisInChinese, inChinese, noteInChinese } from "./chinese.js";

const WORDS = {
  title: ["What a model hides, sees and predicts", "模型遮住什么、看见什么、预测什么"],
  skip: ["Skip to the result", "跳到结果"],
  language: ["中文", "English"],
  languageLong: ["用中文显示", "Show in English"],
  dark: ["Dark", "深色"],
  light: ["Light", "浅色"],
  yourText: ["Your sentence", "你的句子"],
  choose: ["Model or recipe", "模型或方法"],
  models: ["Loaded models", "已载入的模型"],
  recipes: ["Recipes (not trained)", "方法（未训练）"],
  examples: ["Try", "试试"],
  views: ["Views", "视图"],
  hide: ["Guess", "猜词"],
  row: ["Training row", "训练样本"],
  attention: ["Attention", "注意力"],
  compare: ["Side by side", "对比"],
  write: ["Write", "续写"],
  answers: ["Answers", "回答"],
  search: ["Nearest", "检索"],
  runs: ["Losses", "损失曲线"],
  hideLead: ["Click a word to hide it. The model says what it would put there.", "点一个词把它遮住，看看模型会填上什么。"],
  nextLead: ["Click a word. The model, which reads only the words before it, says what it expects there.", "点一个词。模型只读它前面的词，说出它预期的下一个词。"],
  rowLead: ["One row of training: what is hidden, who sees whom, and what must be predicted.", "一条训练样本：遮住了什么，谁能看见谁，要预测什么。"],
  attentionLead: ["Choose a token. The stronger the colour of another token, the more is read from it.", "选一个词元。另一个词元的颜色越浓，从它读取得越多。"],
  compareLead: ["The same sentence, read by two models. Click a word to hide it from both.", "两个模型读同一句话。点一个词，对两个模型同时遮住。"],
  writeLead: ["The model continues your sentence. The stronger the colour of a token, the less likely it was. Choose one to see what else was likely there.", "模型接着你的句子往下写。词元的颜色越深，当时它的概率越低。点一个词元，看看当时还有哪些可能。"],
  sourceLead: ["The model writes a text from your sentence. The stronger the colour of a token, the less likely it was. Choose one to see what else was likely there.", "模型根据你的句子写出另一段文本。词元的颜色越深，当时它的概率越低。点一个词元，看看当时还有哪些可能。"],
  answersLead: ["What a model that was adapted to a task answers.", "针对某个任务微调过的模型给出的回答。"],
  searchLead: ["The sentences of an index whose vectors are nearest to your sentence.", "索引里向量与你的句子最接近的句子。"],
  runsLead: ["How the loss fell in training: of the runs that are served, and of all runs in the folder --runs. A dashed line is held-out text. Compare only runs of one kind: losses of different tasks mean different things.", "训练中损失的下降：已载入的运行，以及 --runs 文件夹里的所有运行。虚线是留出的文本。只比较同一类运行：不同任务的损失含义不同。"],
  loss: ["loss", "损失"],
  words: ["The words of your sentence", "句子里的词"],
  insteadOf: ["Instead of “{word}”", "“{word}”的位置"],
  piece: ["“{word}”, piece {number} of {count}", "“{word}”，第 {number}／{count} 个词元"],
  inText: ["as in the text", "原文就是它"],
  nothingHidden: ["No word is hidden. Click one.", "还没有遮住词。点一个试试。"],
  nothingBefore: ["Nothing is read before the first token, so nothing is expected there.", "第一个词元前面没有内容，所以没有预期。"],
  cannot: ["{model} cannot do this. Choose one that can:", "{model} 做不了这件事。请选择能做的模型："],
  noneCan: ["No loaded model can do this. Load one that can: {how}", "已载入的模型都做不了这件事。请载入一个：{how}"],
  noText: ["Write a sentence first.", "请先写一句话。"],
  budget: ["Budget", "预算"],
  budgetHint: ["How much of the text is hidden.", "遮住文本的多少。"],
  units: ["Units", "单元"],
  see: ["View", "视野"],
  visit: ["Visit", "重读次数"],
  visitHint: ["How often the text was read before.", "这段文本之前读过几次。"],
  track: ["Track", "轨道"],
  stage: ["Stage", "阶段"],
  own: ["{value} (recipe)", "{value}（原值）"],
  curve: ["a curve", "曲线"],
  reset: ["As in the recipe", "恢复原值"],
  tokensTitle: ["The text as tokens", "文本变成词元"],
  seesTitle: ["Who sees whom", "谁能看见谁"],
  targetsTitle: ["What is predicted", "预测什么"],
  recipeTitle: ["The choices of the recipe", "方法的选择"],
  notesTitle: ["Notes", "说明"],
  hiddenOf: ["{hidden} of {all} tokens of the text are hidden, in {units} units.", "文本的 {all} 个词元里遮住了 {hidden} 个，共 {units} 个单元。"],
  noneHidden: ["No token of the text is hidden or replaced.", "文本里没有词元被遮住或替换。"],
  mask: ["masked", "遮住"],
  random: ["replaced at random", "随机替换"],
  keep: ["kept", "保留"],
  moved: ["put in another order", "打乱顺序"],
  special: ["special token", "特殊词元"],
  seesCount: ["“{token}” sees {count} of {all} tokens.", "“{token}”能看见 {all} 个词元中的 {count} 个。"],
  pickToken: ["Choose a token to see what it sees.", "选一个词元，看它能看见什么。"],
  matrixName: ["Matrix: the token at the left sees the tokens above whose cell is filled", "矩阵：左边的词元能看见上方格子被填充的词元"],
  attentionName: ["Matrix: how much the token at the left reads from each token above", "矩阵：左边的词元从上方每个词元读取多少"],
  at: ["At", "位置"],
  reads: ["reads", "读到"],
  sees: ["sees", "看见"],
  predicts: ["predicts", "预测"],
  nothing: ["nothing", "无"],
  ofAll: ["{count} of {all}", "{all} 个中的 {count} 个"],
  more: ["and {count} more", "还有 {count} 个"],
  sentenceTask: ["From {token} it also predicts: “{meaning}”.", "还要从 {token} 预测：“{meaning}”。"],
  decoder: ["A decoder predicts. It sees the whole row above, and of its own row the tokens before.", "由解码器预测。它能看见上面的整条样本，以及自己已经写出的词元。"],
  misfit: ["These parts cannot be trained together", "这些部件不能一起训练"],
  noTargets: ["No token is predicted in this row.", "这一条里没有要预测的词元。"],
  layer: ["Layer", "层"],
  headNumber: ["Head", "头"],
  headOf: ["Head {number}", "第 {number} 头"],
  mean: ["Mean of all heads", "所有头的平均"],
  reader: ["“{token}” reads from:", "“{token}”读取："],
  first: ["First model", "第一个模型"],
  other: ["Second model", "第二个模型"],
  tokenCount: ["{count} tokens", "{count} 个词元"],
  score: ["log probability of the sentence: {score}", "句子的对数概率：{score}"],
  answer: ["Answer", "回答"],
  begin: ["Write", "续写"],
  stop: ["Stop", "停止"],
  tokens: ["Tokens", "词元数"],
  temperature: ["Temperature", "温度"],
  seed: ["Seed", "种子"],
  written: ["What the model wrote", "模型写的内容"],
  alternatives: ["Instead of “{token}”, likely were:", "除了“{token}”，还有这些可能："],
  writing: ["The model is writing.", "模型正在写。"],
  stopped: ["{count} tokens.", "共 {count} 个词元。"],
  question: ["Question", "问题"],
  context: ["The answer is looked for in your sentence.", "在你的句子里找答案。"],
  secondText: ["Second text", "第二段文本"],
  otherAnswers: ["Other answers", "其他答案"],
  noTags: ["No word has a tag.", "没有词被标注。"],
  noAnswer: ["The text holds no answer.", "文本里没有答案。"],
  labels: ["Labels", "标签"],
  index: ["Index", "索引"],
  inIndex: ["In the index “{name}”", "索引“{name}”里"],
  noIndex: ["The service has no index. Make one from your texts, and start the service with it:", "服务没有索引。请先用你的文本建一个索引，再带上它启动服务："],
  training: ["training", "训练"],
  heldOut: ["held-out", "留出"],
  steps: ["steps", "步"],
  noRuns: ["No run has a log of its training.", "没有带训练日志的运行。"],
  run: ["Run", "运行"],
  lastLoss: ["Last loss", "最后的损失"],
  step: ["Step", "步数"],
  state: ["State", "状态"],
  finished: ["finished", "已完成"],
  going: ["not finished", "未完成"],
  unreachable: ["The service does not answer. Is it still running?", "服务没有响应。它还在运行吗？"],
  key: ["This service needs a key", "这个服务需要密钥"],
  keySend: ["Use this key", "使用这个密钥"],
  footer: ["Every answer on this page comes from a route of this service:", "本页的每个答案都来自这个服务的接口："],
  link: ["The address of this page holds all that you chose. Copy it to share this view.", "本页的地址包含你的所有选择，复制它就能分享这个视图。"],
};

const LANGUAGES = ["en", "zh"];
let language = "en";

export function setLanguage(given) {
  const browser = navigator.language.startsWith("zh") ? "zh" : "en";
  language = LANGUAGES.includes(given) ? given : browser;
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  return language;
}

// A text that comes from the code, in the chosen language if it is known there: [text, language].
export function fromCode(text) {
  const found = language === "zh" ? inChinese(text) ?? noteInChinese(text) : null;
  return found ? [found, "zh-CN"] : [text, "en"];
}

export const axisName = (name) => (language === "zh" ? axisInChinese(name) : name);

// A text in the chosen language, with values in the place of {names}.
export function t(name, values = {}) {
  const text = WORDS[name][LANGUAGES.indexOf(language)];
  return text.replace(/\{(\w+)\}/g, (_, key) => values[key]);
}
