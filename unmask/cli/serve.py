"""The verb serve: trained models behind HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

import unmask
from unmask import screen
from unmask.cli import output
from unmask.cli.options import Device, Fast
from unmask.cli.program import verb
from unmask.errors import require

KEYS = "UNMASK_KEYS"


@verb("unmask serve runs/bert-sst2 runs/gpt2 runs/ner")
def serve(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...", help="Run folders. A model has the name of its folder, or NAME in NAME=FOLDER."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on. Other machines reach 0.0.0.0; keys are needed then.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 chooses a free one.")] = 8000,
    keys: Annotated[
        Path | None,
        typer.Option(
            help=f"A file with a key on each line. Clients send one as a bearer token. Or set {KEYS}, with spaces between keys."
        ),
    ] = None,
    cors: Annotated[
        list[str], typer.Option(help="A web page that may read answers, such as https://example.com.")
    ] = [],  # noqa: B006
    folder: Annotated[
        Path | None, typer.Option("--runs", help="A folder of runs that clients may load and unload by name.")
    ] = None,
    index: Annotated[
        list[Path], typer.Option(help="A folder that 'unmask index' wrote, for /search; may be given several times.")
    ] = [],  # noqa: B006
    limit_body: Annotated[int | None, typer.Option(help="Most bytes of a request; 4,000,000 by default.")] = None,
    limit_texts: Annotated[int | None, typer.Option(help="Most texts of a request; 1,024 by default.")] = None,
    limit_tokens: Annotated[
        int | None, typer.Option(help="Most tokens of a text; by default what the model reads.")
    ] = None,
    limit_generated: Annotated[int | None, typer.Option(help="Most new tokens of a text; 4,096 by default.")] = None,
    limit_requests: Annotated[int | None, typer.Option(help="Most requests at once; 256 by default.")] = None,
    limit_queue: Annotated[int | None, typer.Option(help="Most texts that wait; 8,192 by default.")] = None,
    device: Device = None,
    fast: Fast = False,
    half: Annotated[
        bool, typer.Option("--half", help="Compute in bfloat16: faster on a GPU, and on a CPU that has it.")
    ] = False,
    openapi: Annotated[bool, typer.Option("--openapi", help="Print the description of all routes, and exit.")] = False,
) -> None:
    """Answer HTTP requests with trained models, by the interfaces of OpenAI, Hugging Face and Text Embeddings Inference.

    A line of JSON is logged for each request, without its texts. SIGTERM finishes what was accepted, then ends."""
    from unmask.serving.limits import Limits

    if openapi:
        from unmask.serving.routes import openapi as description

        output.as_json(description())
        return

    given = {
        "body": limit_body, "texts": limit_texts, "tokens": limit_tokens, "generated": limit_generated,
        "requests": limit_requests, "queue": limit_queue,
    }  # fmt: skip
    limits = Limits(**{name: value for name, value in given.items() if value is not None})
    unmask.serve(
        runs or [], host=host, port=port, keys=_keys(keys), origins=cors, folder=folder, indexes=index, limits=limits, device=device,
        fast=fast, half=half, tell=output.Said(json_=False),
        ready=lambda url: screen.done(f"answering at {url}; open it in a browser, or try: curl {url}/v1/models"),
    )  # fmt: skip


def _keys(file: Path | None) -> list[str]:
    """The keys of the file and of the environment."""
    require(file is None or file.is_file(), "--keys must be a file with a key on each line, got {file}", file=file)
    own = file.read_text(encoding="utf-8").split() if file is not None else []
    require(file is None or bool(own), "{file} holds no key: write a key on each line", file=file)
    return [*own, *os.environ.get(KEYS, "").split()]
