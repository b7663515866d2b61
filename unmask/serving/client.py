"""Client: ask a service from Python. It needs nothing but the standard library and NumPy, and gives what the API gives."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from unmask.errors import UserError

SECONDS = 60.0


class Client:
    """A service at an address. `key`: if the service needs one. `timeout`: seconds to wait for an answer."""

    def __init__(self, url: str, *, key: str | None = None, timeout: float = SECONDS) -> None:
        self.url, self.timeout = url.rstrip("/"), timeout
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})

    def __repr__(self) -> str:
        return f"<Client {self.url}>"

    def models(self) -> list[dict[str, Any]]:
        """The models of the service: the name of each, its recipe, and what it can do."""
        found: list[dict[str, Any]] = self._asked("/v1/models")["data"]
        return found

    def embed(
        self, texts: str | Sequence[str], *, model: str, dims: int | None = None, truncate: bool = False
    ) -> np.ndarray:
        """One vector per text, as by `Model.embed`."""
        given = [texts] if isinstance(texts, str) else list(texts)
        body = {"model": model, "input": given, "dimensions": dims, "truncate": truncate}
        return np.array([one["embedding"] for one in self._asked("/v1/embeddings", body)["data"]], np.float32)

    def predict(self, examples: Sequence[Any], *, model: str, top: int = 1, truncate: bool = False) -> list[Any]:
        """The answer to each example of the model's task, as `unmask predict --json` gives it."""
        found: list[Any] = self._asked(
            f"/models/{_quoted(model)}/answer", {"examples": list(examples), "top": top, "truncate": truncate}
        )
        return found

    def fill(self, sentence: str, *, model: str, top: int = 5) -> list[list[dict[str, Any]]]:
        """The most likely tokens at each [MASK]."""
        found = self._asked(f"/models/{_quoted(model)}/fill-mask", {"inputs": sentence, "parameters": {"top_k": top}})
        return found if found and isinstance(found[0], list) else [found]

    def generate(self, prompt: str, *, model: str, tokens: int = 50, seed: int = 0, **options: Any) -> str:
        """The prompt and what the model writes after it. `options`: other fields of /v1/completions."""
        body = {"model": model, "prompt": prompt, "max_tokens": tokens, "seed": seed, "echo": True} | options
        text: str = self._asked("/v1/completions", body)["choices"][0]["text"]
        return text

    def stream(self, prompt: str, *, model: str, tokens: int = 50, seed: int = 0, **options: Any) -> Iterator[str]:
        """The same text, piece by piece while it is written."""
        body = {"model": model, "prompt": prompt, "max_tokens": tokens, "seed": seed, "echo": True, "stream": True}
        with self._opened("/v1/completions", body | options) as answer:
            for line in answer:
                event = line.removeprefix(b"data: ").strip()
                if event == b"[DONE]":
                    return
                if event:
                    yield self._checked(json.loads(event))["choices"][0]["text"]

    def rerank(self, query: str, texts: Sequence[str], *, model: str) -> list[dict[str, Any]]:
        """The texts, the best answer to the query first: index and score of each."""
        found: list[dict[str, Any]] = self._asked(
            f"/models/{_quoted(model)}/rerank", {"query": query, "texts": list(texts)}
        )
        return found

    def search(
        self, query: str, *, index: str | None = None, k: int = 10, rerank: str | None = None
    ) -> list[dict[str, Any]]:
        """The texts of an index that are nearest to a query."""
        found: list[dict[str, Any]] = self._asked(
            "/search", {"query": query, "index": index, "k": k, "rerank": rerank}
        )["found"]
        return found

    def explain(
        self, text: str, *, recipe: str | None = None, model: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """What a recipe or the recipe of a model hides, sees and predicts in a text. `options`: other fields of /explain."""
        found: dict[str, Any] = self._asked("/explain", {"text": text, "recipe": recipe, "model": model} | options)
        return found

    def compare(self, text: str, models: Sequence[str]) -> list[dict[str, Any]]:
        """What several models make of one text."""
        found: list[dict[str, Any]] = self._asked("/compare", {"text": text, "models": list(models)})["models"]
        return found

    def load(self, model: str) -> list[str]:
        """Open a model of the service's folder of runs, or open it again; returns the names of all models."""
        found: list[str] = self._asked("/models/load", {"model": model})["models"]
        return found

    def unload(self, model: str) -> list[str]:
        """Close a model; returns the names of all models."""
        found: list[str] = self._asked("/models/unload", {"model": model})["models"]
        return found

    def _asked(self, path: str, body: dict[str, Any] | None = None) -> Any:
        with self._opened(path, body) as answer:
            return json.loads(answer.read())

    def _opened(self, path: str, body: dict[str, Any] | None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        try:
            return urllib.request.urlopen(
                urllib.request.Request(self.url + path, content, self._headers), timeout=self.timeout
            )
        except urllib.error.HTTPError as error:
            with error:
                raise UserError("{url}: {why}", url=self.url, why=_why(error.read())) from None
        except urllib.error.URLError as error:
            raise UserError(
                "no service answers at {url} ({why}): start one with 'unmask serve'", url=self.url, why=error.reason
            ) from None

    def _checked(self, event: dict[str, Any]) -> dict[str, Any]:
        if "error" in event:
            raise UserError("{url}: {why}", url=self.url, why=event["error"]["message"])
        return event


def _why(body: bytes) -> str:
    """The message of an error."""
    try:
        found = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return body[:200].decode(errors="replace")
    return str(found["message"] if isinstance(found, dict) else found)


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")
