"""The verb attend: what the tokens of a text read from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import unmask
from unmask import screen
from unmask.cli import output
from unmask.cli.options import Font, Json, OwnRecipe, Run
from unmask.cli.program import verb


@verb('unmask attend runs/transformer "Two men are outside." "Zwei Männer sind draußen." --picture weights.png')
def attend(
    run: Run,
    source: Annotated[str, typer.Argument(help="A text.")],
    target: Annotated[
        str | None, typer.Argument(help="A text that the decoder writes from SOURCE: what its tokens read there.")
    ] = None,
    layer: Annotated[int | None, typer.Option(help="Which layer, counted from 1; by default the last.")] = None,
    head: Annotated[int | None, typer.Option(help="Which head, counted from 1; by default the mean of all.")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the weights into this .png, .svg or .pdf file.")
    ] = None,
    font: Font = None,
    recipe_file: OwnRecipe = None,
    json_: Json = False,
) -> None:
    """Show which tokens each token reads from: in a text, or from a text to its source."""
    said = output.Said(json_)
    model = unmask.load(run, device="cpu", recipe=recipe_file, tell=said)
    found = unmask.attended(model.attention(source, target, tell=said), layer, head)
    said.show_notes()
    if picture is not None:
        found.draw(picture, font=font, tell=said)
    if json_:
        output.as_json(
            {
                "layer": found.layer,
                "head": found.head,
                "rows": found.rows,
                "columns": found.columns,
                "weights": found.weights.tolist(),
            }
        )
        return
    rows = [[token, "  ".join(f"{name} {weight:.2f}" for name, weight in most)] for token, most in found.most()]
    shown = "mean of all heads" if found.head is None else f"head {found.head}"
    screen.table(
        f"layer {found.layer}, {shown}",
        ["token", "reads most from"],
        [[cell.replace("[", r"\[") for cell in row] for row in rows],
    )
    if picture is not None:
        screen.done(f"drawn into {picture}")
