// Requests to the service.

export class Problem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const KEY = "unmask key"; // kept until the tab is closed
const kept = new Map(); // answers that do not change: the same question is asked once

export const setKey = (key) => sessionStorage.setItem(KEY, key);

async function send(path, body, signal) {
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.authorization = `Bearer ${key}`;
  const options = body === undefined ? { headers, signal } : { method: "POST", headers, signal, body: JSON.stringify(body) };
  const answer = await fetch(path, options).catch((error) => {
    throw error.name === "AbortError" ? error : new Problem(0, "");
  });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Problem(answer.status, said.error?.message ?? said.error ?? answer.statusText);
}

export async function ask(path, body) {
  const question = path + JSON.stringify(body ?? null);
  if (kept.has(question)) return kept.get(question);
  const found = await (await send(path, body)).json();
  if (body !== undefined) {
    if (kept.size > 60) kept.delete(kept.keys().next().value);
    kept.set(question, found);
  }
  return found;
}

// The events of a stream, one after another.
export async function* events(path, body, signal) {
  const reader = (await send(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    waiting += value;
    const parts = waiting.split("\n\n");
    waiting = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const found = JSON.parse(data);
      if (found.error) throw new Problem(500, found.error.message);
      yield found;
    }
  }
}
