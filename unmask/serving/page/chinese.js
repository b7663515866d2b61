// What comes from the code in English (the first lines of recipes and parts, and notes), in Chinese. A sentence that is not here stays English.

const SENTENCES = {
  // recipes
  "hide the second of two texts, see the whole first text, predict the second with a decoder": "遮住两段文本中的第二段，看见整个第一段，用解码器预测第二段",
  "hide the second of two texts, see the whole first text, predict the second with an LSTM and attention": "遮住两段文本中的第二段，看见整个第一段，用带注意力的 LSTM 预测第二段",
  "hide nothing, see the tokens before, predict the next token with an LSTM": "不遮住任何词元，看见前面的词元，用 LSTM 预测下一个词元",
  "hide nothing, see the tokens before, predict the next token": "不遮住任何词元，看见前面的词元，预测下一个词元",
  "hide nothing, see the left with one half and the right with the other, predict both neighbours": "不遮住任何词元，一半网络看见左边，另一半看见右边，预测两侧相邻的词元",
  "hide nothing, see the characters before, predict the next two characters": "不遮住任何字符，看见前面的字符，预测后面两个字符",
  "hide nothing, see the tokens before and a memory of earlier rows, predict the next token": "不遮住任何词元，看见前面的词元和之前各行的记忆，预测下一个词元",
  "hide 15% of tokens, see everything, predict them and whether B follows A": "遮住 15% 的词元，看见全部，预测它们，并判断 B 是否接在 A 之后",
  "hide 15% as tokens, phrases and entities, see everything, predict them and whether B follows A": "以词元、短语和实体为单元遮住 15%，看见全部，预测它们，并判断 B 是否接在 A 之后",
  "hide 15% of tokens and 20% of the links to entities, see everything, predict the tokens, the entities and whether B follows A": "遮住 15% 的词元和 20% 的实体链接，看见全部，预测词元和实体，并判断 B 是否接在 A 之后",
  "hide one window with half of the tokens, see everything else, predict the window with a decoder": "遮住含一半词元的一个窗口，看见其余全部，用解码器预测这个窗口",
  "hide 15% of tokens, see everything, a prefix, only the left or only the right, predict them and whether B follows A": "遮住 15% 的词元，看见全部、前缀、只看左边或只看右边，预测它们，并判断 B 是否接在 A 之后",
  "hide 15% as whole words, see everything, predict them and whether B follows A": "以整词为单元遮住 15%，看见全部，预测它们，并判断 B 是否接在 A 之后",
  "hide the tokens at the end of a random order, see the tokens that come earlier in it, predict them with a second stream": "遮住随机顺序中最后的词元，看见顺序中更早的词元，用第二条流预测它们",
  "hide 15% as tokens, phrases and entities, see everything, predict them and the answers of up to six more tasks": "以词元、短语和实体为单元遮住 15%，看见全部，预测它们，以及最多六个其他任务的答案",
  "hide 15% of tokens, different ones at every visit, see everything, predict them": "遮住 15% 的词元，每次读到时都不同，看见全部，预测它们",
  "hide 15% as spans of words, see everything, predict them at their positions and from the two tokens around a span": "以词的片段为单元遮住 15%，看见全部，在原位置并从片段两端的词元预测它们",
  "hide 15% of tokens and the order of 5% more, see everything, predict both and whether B follows A, precedes A or neither": "遮住 15% 的词元并打乱另外 5% 的顺序，看见全部，预测两者，并判断 B 在 A 之后、之前还是都不是",
  "hide 15% as n-grams of words, see everything, predict them and whether A and B are in order": "以词的 n 元组为单元遮住 15%，看见全部，预测它们，并判断 A 和 B 的顺序是否正确",
  "hide 30% of tokens in spans, each behind one mask, and the order of sentences, see everything, predict the whole text with a decoder": "遮住 30% 的词元（每个片段只留一个遮盖符）并打乱句子顺序，看见全部，用解码器预测整段文本",
  "hide 15% of tokens and let a generator fill them in, see everything, predict which tokens were replaced": "遮住 15% 的词元并让生成器填上，看见全部，预测哪些词元被替换了",
  "hide 15% as runs of one to three tokens, see everything by content and by distance, predict them with absolute positions added last": "以一到三个相邻词元为单元遮住 15%，按内容和距离看见全部，最后加上绝对位置来预测它们",
  "hide 30% of tokens, falling to 15%, or the future, see everything or the left, predict each token from the position before it": "遮住 30% 的词元（逐渐降到 15%）或后文，看见全部或左边，从前一个位置预测每个词元",
  "hide 30% of tokens, see everything in every third layer and a window in the others, predict them": "遮住 30% 的词元，每三层有一层看见全部，其余各层只看一个窗口，预测它们",
  "hide 30% of tokens, or the future, see everything or the left, predict the hidden tokens or the next one": "遮住 30% 的词元或后文，看见全部或左边，预测被遮住的词元或下一个词元",
  // units
  "The whole text of an example is a unit": "一个样本的整段文本是一个单元",
  "Each row takes one level: single tokens, phrases, or entities": "每行取一个层次：单个词元、短语或实体",
  "A token belongs to its largest unit": "词元属于包含它的最大单元",
  "Runs of a fixed number of neighbouring tokens": "固定数目的相邻词元",
  "The start of the first run is random in each row": "每行第一段的起点是随机的",
  "Every token of the second text is a unit": "第二段文本的每个词元是一个单元",
  "The special token that ends it is a unit too": "结束它的特殊词元也是一个单元",
  "Spans: runs of a random number of neighbouring words, or of tokens": "片段：随机数目的相邻词或词元",
  "Every token is a unit": "每个词元是一个单元",
  "Every word is a unit": "每个词是一个单元",
  // views
  "Every token sees its whole example (BERT)": "每个词元看见整个样本（BERT）",
  "Every token sees itself and the tokens before it (GPT)": "每个词元看见自己和前面的词元（GPT）",
  "Every token sees itself and the tokens after it": "每个词元看见自己和后面的词元",
  "Tokens are read in a random order, and each sees those before it in this order (XLNet)": "词元按随机顺序读取，每个词元看见顺序中在它之前的词元（XLNet）",
  "The first text sees all of itself": "第一段文本看见自己的全部",
  "The second sees the first, and its own tokens from left to right (UniLM)": "第二段看见第一段，并从左到右看见自己的词元（UniLM）",
  // arrangements
  "Each document is a pair of a source and a target (Transformer)": "每个文档是一对原文和译文（Transformer）",
  "All documents end to end; every stream reads its own part of them, row after row (Transformer-XL)": "所有文档首尾相接；每条流逐行读自己的一段（Transformer-XL）",
  "All documents end to end, cut into full rows at any token (GPT-2)": "所有文档首尾相接，在任意词元处切成满行（GPT-2）",
  "Full sentences until the next one does not fit; a block may continue in the next document (RoBERTa)": "放入整句，直到下一句放不下；一块可以延续到下一个文档（RoBERTa）",
  "Pairs of texts; the second follows the first, or comes from another document (BERT)": "两段文本；第二段接在第一段之后，或来自另一个文档（BERT）",
  "Pairs of texts; the second follows the first, comes before it, or comes from another document (StructBERT)": "两段文本；第二段在第一段之后、之前，或来自另一个文档（StructBERT）",
  "Pairs of texts that follow each other; some are swapped (ALBERT)": "前后相接的两段文本；有些被交换（ALBERT）",
  "Rows that begin with text for the memory and end with two texts; the second follows the first or not (XLNet)": "每行以供记忆的文本开头，以两段文本结尾；第二段接或不接在第一段之后（XLNet）",
  // hiding
  "Hide units of text and predict them": "遮住文本的单元并预测它们",
  "In their place: [MASK], a random token, or the token itself": "原处换成 [MASK]、随机词元或词元本身",
  "In their place: the tokens themselves: nothing is replaced": "原处仍是词元本身：什么都不替换",
  "In their place: the tokens of each unit in a random order": "原处是每个单元打乱顺序后的词元",
  "In their place: one [MASK] instead of each span": "每个片段换成一个 [MASK]",
  "The model must find out how many tokens are missing": "模型要自己判断缺了几个词元",
  "Every token predicts the one after it; see must hide the future": "每个词元预测它后面的一个；视野必须挡住后文",
  "Every token predicts the one before it; the past must be hidden": "每个词元预测它前面的一个；前文必须挡住",
  "The encoder reads the first of two texts, and a decoder writes the second from left to right": "编码器读两段文本中的第一段，解码器从左到右写第二段",
  "A decoder writes the text as it is now, from left to right": "解码器从左到右写出此刻的文本",
  "Later rules change only what the encoder reads": "之后的规则只改变编码器读到的内容",
  "All sentences of each example in a random order": "每个样本的所有句子打乱顺序",
  "One window of neighbouring tokens in each example is hidden, and a decoder predicts it": "每个样本遮住一个由相邻词元组成的窗口，由解码器预测",
  "Hide nothing: only the label of an example is predicted": "不遮住任何内容：只预测样本的标签",
  // predictions
  "The token at each target": "每个目标处的词元",
  "The generator: the token at each target": "生成器：每个目标处的词元",
  "The discriminator: whether each token is the original, or was replaced by a generator": "判别器：每个词元是原文，还是被生成器替换过",
  "The class of an example, predicted from one vector": "样本的类别，由一个向量预测",
  "The next and the previous token, with one softmax for both directions": "下一个和上一个词元，两个方向共用一个 softmax",
  "Each hidden token, from the nearest visible tokens left and right of its span and its place in the span": "每个被遮住的词元，由片段左右最近的可见词元和它在片段中的位置预测",
  "The same prediction from every layer except the last": "除最后一层外，每一层都做同样的预测",
  "Each layer has its own output weights, unless they are tied": "每一层有自己的输出权重，除非共享",
  "Here: it follows, it comes from elsewhere": "这里是：接在后面、来自别处",
  "Here: it follows, it goes before, it comes from elsewhere": "这里是：接在后面、在前面、来自别处",
  "Here: in order, swapped": "这里是：顺序正确、被交换",
  "it follows": "接在后面", "it comes from elsewhere": "来自别处", "it goes before": "在前面", "in order": "顺序正确", "swapped": "被交换",
  // networks
  "A stack of Transformer layers (BERT, GPT); with shared layers and narrow embeddings, ALBERT": "多层 Transformer（BERT、GPT）；各层共享并用窄词向量时是 ALBERT",
  "A stack of layers with relative positions and a memory (Transformer-XL, XLNet)": "带相对位置和记忆的多层网络（Transformer-XL、XLNet）",
  "A Transformer that reads and a Transformer that writes (BART, MASS)": "一个读的 Transformer 和一个写的 Transformer（BART、MASS）",
  "Both share the token embeddings": "两者共享词向量",
  "A stack of LSTM layers that read in one direction (AWD-LSTM)": "朝一个方向读的多层 LSTM（AWD-LSTM）",
  "Two stacks of LSTM layers that share only the embeddings (ELMo)": "两叠 LSTM 层，只共享词向量（ELMo）",
};

// notes below a training row; {} is a number or a name
const NOTES = {
  "tokenizer: the one given, of {} tokens": "分词器：给定的那个，{} 个词元",
  "tokenizer: a {} of {} tokens": "分词器：{}，{} 个词元",
  "tokenizer: a {} of {} tokens, trained on this text and on Python's documentation": "分词器：{}，{} 个词元，用这段文本和 Python 的文档训练",
  "no lexicon was given, so words are hidden instead of phrases and entities: give one with --lexicon FILE; each line is an entry, a tab, and phrase or entity": "没有给出词典，所以遮住的是词，而不是短语和实体：用 --lexicon FILE 给出一个；每行是一个条目、一个制表符，以及 phrase 或 entity",
  "entities come from the graph of prepared data, so none is linked here: the row is that of a text without any": "实体来自已准备数据的图谱，所以这里没有链接任何实体：这一行与没有实体的文本相同",
  "rjieba is not installed, so every Chinese character is a word: pip install 'unmask[zh]'": "没有安装 rjieba，所以每个汉字是一个词：pip install 'unmask[zh]'",
  "the text is one document, so a built-in example text is used where a second document is needed: separate documents by a blank line": "文本只有一个文档，所以需要第二个文档的地方用了内置的例文：请用空行分隔文档",
  "the first sentence is the source and the rest is the target: to give both, put a blank line between": "第一句是原文，其余是译文：要分别给出，请在两者之间空一行",
  "the text fills {} rows of {} tokens: this is the first": "这段文本占 {} 行，每行 {} 个词元：这是第一行",
  "every token also sees a memory of earlier rows, in the cells of the network": "每个词元还看见之前各行的记忆，存在网络的单元里",
  "every token also sees a memory of earlier rows, up to {} tokens": "每个词元还看见之前各行的记忆，最多 {} 个词元",
  "the matrix shows both halves of a vector together: the first half sees only its own token and the tokens before, and predicts the next one; the second half sees only its own token and those after, and predicts the previous one": "矩阵把向量的两半合在一起显示：前一半只看见自己的词元和前面的词元，预测下一个；后一半只看见自己的词元和后面的词元，预测上一个",
  "the matrix shows the encoder; a token of the decoder sees itself, those before it, and the encoder's whole example": "矩阵显示编码器；解码器的词元看见自己、前面的词元，以及编码器的整个样本",
  "the matrix shows the stream that reads the tokens; a second stream predicts: at each place it sees what the token there sees, but not that token itself": "矩阵显示读取词元的那条流；预测由第二条流完成：它在每个位置看见该处词元所看见的，但看不见该词元本身",
  "sentences longer than a row, split: {}": "比一行长而被切开的句子：{}",
  "documents of one sentence, skipped by the sentence task: {}": "只有一句、被句子任务跳过的文档：{}",
  "documents with too few sentences, skipped by {}: {}": "句子太少、被 {} 跳过的文档：{}",
  "tokens left out: sentences longer than their part of a row lose their ends: {}": "略去的词元（句子超出行中属于它的部分时，末尾被去掉）：{}",
  "tokens left out: a pair of texts longer than a row loses the ends of its longer text, as in BERT's code: {}": "略去的词元（两段文本超过一行时，较长的一段两端被去掉，与 BERT 的代码相同）：{}",
  "tokens in all pairs of texts before the cut: {}": "截断之前所有文本对的词元：{}",
  "first texts that end within a sentence, because the sentence is too long: {}": "因句子太长而在句中结束的第一段文本：{}",
  "pairs with a source or target of more than {} tokens, of which the end is cut: {}": "原文或译文超过 {} 个词元、末尾被截断的文本对：{}",
  "pairs without a source or without a target, skipped: {}": "缺少原文或译文而被跳过的文本对：{}",
};
const PATTERNS = Object.entries(NOTES).map(([english, chinese]) => [new RegExp(`^${english.replace(/[[\]().*+?|^$\\]/g, "\\$&").replaceAll("{}", "([\\w,-]+)")}$`), chinese]);

const AXES = { arrange: "排列", hide: "遮住", see: "看见", predict: "预测", backbone: "网络", weight: "权重", generator: "生成器", track: "轨道", level: "层次" };

// A text in Chinese; null if one of its sentences is not known.
export function inChinese(text) {
  const several = text.replace(/\.$/, "").split(/\. /).map((one) => SENTENCES[one]);
  return several.every(Boolean) ? several.join("。") + (text.endsWith(".") ? "。" : "") : null;
}

// A note in Chinese; null if it is not known.
export function noteInChinese(text) {
  for (const [pattern, chinese] of PATTERNS) {
    const values = text.match(pattern)?.slice(1);
    if (values) return chinese.replaceAll("{}", () => values.shift());
  }
  return null;
}

// The name of an axis, such as "predict tokens".
export function axisInChinese(name) {
  const [first, ...rest] = name.split(" ");
  return [AXES[first] ?? first, ...rest].join(" ");
}
