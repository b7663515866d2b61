// The state of the page is its address: every choice is a parameter, and a value that is not there has its default.

const NAMES = [
  "view", "model", "recipe", "text", "hide", "budget", "units", "see", "visit", "track", "stage", "at", "layer", "head",
  "other", "index", "question", "second", "tokens", "temperature", "seed", "go", "without", "lang", "theme",
];

// What belongs to one text or one model is forgotten when another one is chosen.
const FORGET = {
  text: ["hide", "at", "go"],
  model: ["budget", "units", "see", "track", "stage", "at", "layer", "head", "go"],
  recipe: ["budget", "units", "see", "track", "stage", "at"],
};

let listener = () => {};

export function read() {
  const given = new URLSearchParams(location.search);
  return Object.fromEntries(NAMES.filter((name) => given.has(name)).map((name) => [name, given.get(name)]));
}

// The address of the state with some changes. null removes a value.
export function address(changes) {
  const forgotten = Object.keys(changes).flatMap((name) => FORGET[name] ?? []);
  const next = { ...read(), ...Object.fromEntries(forgotten.map((name) => [name, null])), ...changes };
  const kept = NAMES.filter((name) => next[name] !== null && next[name] !== undefined);
  const query = new URLSearchParams(kept.map((name) => [name, String(next[name])])).toString();
  return query ? `/?${query}` : "/";
}

// Change the state. Small changes replace the address, so that the back button leaves the view.
export function change(changes, { push = false } = {}) {
  const to = address(changes);
  if (to !== location.pathname + location.search) history[push ? "pushState" : "replaceState"](null, "", to);
  listener();
}

export function listen(function_) {
  listener = function_;
  addEventListener("popstate", function_);
}
