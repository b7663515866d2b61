"""Draw every recipe on one text into docs/pictures/, and write docs/recipes.md around the pictures."""

from __future__ import annotations

import ast
import importlib
import inspect
import shutil
import tempfile
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

from unmask import explain, list_recipes, recipes
from unmask.axes import columns_of
from unmask.errors import UserError
from unmask.explanation import Explanation
from unmask.explanation.picture import MOST_TOKENS, draw
from unmask.fonts import notice
from unmask.recipe import MAIN, Recipe
from unmask.recipes import Entry
from unmask.settings import flat
from unmask.system import cost

ENGLISH = "The doctor examined the patient carefully. She prescribed antibiotics for the infection."
CHINESE = "哈尔滨是黑龙江的省会，国际冰雪文化名城。冬天的冰灯吸引了许多游客。"
# tracks that take turns need sentences of one document, a connective between two of them, and a title
DOCUMENT = "The Old Bridge of Avignon. The bridge was built in 1185. However, the river destroyed it many times. Today it is a museum."
LEXICON = (
    "examined the patient\tphrase\nantibiotics\tentity\n哈尔滨\tentity\n黑龙江\tentity\n国际冰雪文化名城\tphrase\n"
)
MOST_VALUES = 10  # of a variant
VISITS = 48  # of each text; the one that shows most is drawn
DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures" / "recipes"

HEAD = f"""# The recipes, oldest first

`make docs` writes this page. Every recipe is shown on the same text: two sentences in English. A recipe that hides words,
phrases or entities is also shown on a Chinese text. Each picture is what `unmask explain` draws: the tokens and which of them
are hidden, who sees whom, and what is predicted. A recipe with several tracks has one picture for each track. The tokenizer is
a small one that is trained for these pictures. Each visit of a text hides other tokens; the picture shows a visit on which
much can be seen.

The recipes that hide phrases and entities use this `lexicon.tsv`:

```
{LEXICON}```

To measure what a recipe does on average on your own data: `unmask explain RECIPE --statistics DATA`.
"""


def main() -> None:
    shutil.rmtree(PICTURES, ignore_errors=True)  # a recipe or a track may be gone
    PICTURES.mkdir(parents=True)
    draw(explain("bert", ENGLISH, visit=1), DOCS / "pictures" / "bert.png")  # for the tour, which describes it
    with tempfile.TemporaryDirectory() as folder:
        lexicon = Path(folder) / "lexicon.tsv"
        lexicon.write_text(LEXICON, encoding="utf-8")
        parts = [HEAD, *("\n".join(_section(entry, lexicon)) for entry in list_recipes())]
    (DOCS / "recipes.md").write_text("\n".join(parts), encoding="utf-8")


def _section(entry: Entry, lexicon: Path) -> Iterator[str]:
    recipe, module = recipes.get(entry.name), _module(entry.name)
    more = (inspect.getdoc(module) or "").partition("\n\n")[2]
    yield f"## {entry.name}\n\n{entry.paper}: {entry.idea}\n"
    if more:
        yield f"{more}\n"
    yield f"[unmask/recipes/{Path(module.__file__ or '').name}](../unmask/recipes/{Path(module.__file__ or '').name})\n"
    shown = list(_shown(recipe, lexicon))
    yield "| axis | choice | meaning |\n|---|---|---|"
    yield from (f"| {axis} | {part} | {meaning} |" for axis, part, meaning in _choices([one for _, one, _ in shown]))
    yield f"\nSizes: {', '.join(_sizes(entry.name))}.\n"
    if len(module.VARIANTS) > 1:
        yield "Variants:\n\n" + "\n".join(_variants(entry.name)) + "\n"
    for name, found, command in shown:
        if lacking := draw(found, PICTURES / f"{name}.png"):
            print(f"{name}: {notice(lacking)}")
        yield f"```\n{command} --picture {name}.png\n```\n\n![{entry.name}: {entry.idea}](pictures/recipes/{name}.png)\n"


def _choices(shown: list[Explanation]) -> Iterator[tuple[str, str, str]]:
    """What the recipe chose; then, for each of its other tracks, what the track chose instead."""
    main = shown[0]  # of the last stage
    yield from main.choices
    for other in shown[1:]:
        if other.track != main.track:
            own = [choice for choice in other.choices if choice not in main.choices]
            yield from ((f"track {other.track}: {axis}", part, meaning) for axis, part, meaning in own)


def _shown(recipe: Recipe, lexicon: Path) -> Iterator[tuple[str, Explanation, str]]:
    """The name of a picture, what is on it and the command that makes it."""
    hides = [recipe.all_tracks(stage)[MAIN].hide for stage in recipe.schedule]
    columns = {column for hide in hides for column in columns_of(hide)}
    stages = range(1, len(hides) + 1) if len({str(hide) for hide in hides}) > 1 else [len(hides)]
    known = [lexicon] if columns & {"phrase", "entity"} else []
    for text in [DOCUMENT] if recipe.takes_turns else [ENGLISH, CHINESE] if columns else [ENGLISH]:
        for stage in stages if text == CHINESE else stages[-1:]:
            for track in recipe.all_tracks():
                found = _best(recipe, track, text, known, stage)
                marks = [
                    f"-{track}" * bool(recipe.tracks),
                    f"-stage-{stage}" * (stage < len(hides) and len(stages) > 1),
                ]
                name = recipe.name + "".join(marks) + "-zh" * (text == CHINESE)
                words = ["unmask explain", recipe.name, f'"{text}"', "--lexicon lexicon.tsv" * bool(known)]
                words += [f"--track {track}" * (track != MAIN), f"--stage {stage}" * (stage < len(hides))]
                words += [f"--visit {found.visit}" * bool(found.visit)]
                yield name, found, " ".join(filter(None, words))


def _best(recipe: Recipe, track: str, text: str, lexicon: list[Path], stage: int) -> Explanation:
    """The visit that shows most. On some visits, a track that draws sentences makes no row of so short a text."""
    found = []
    for visit in range(VISITS):
        with suppress(UserError):
            found.append(explain(recipe, text, track=track, lexicon=lexicon, stage=stage, visit=visit))
    return max(found, key=_worth)


def _worth(found: Explanation) -> tuple[float, ...]:
    """Readable: whole, one example, not too much hidden. Then a lexicon's unit, a long one, many ways to hide."""
    hidden = sum(token.hidden is not None for token in found.tokens)
    readable = len(found.tokens) <= MOST_TOKENS and found.tokens[-1].example == 0 and hidden <= len(found.tokens) / 3
    ways = {token.hidden for token in found.tokens} - {None}
    levels = {drawn.name for drawn in found.drawn}
    known = any(unit.level in levels and unit.how == "mask" for unit in found.units)
    words = max((unit.words for unit in found.units), default=0)
    several = any(unit.end > unit.start for unit in found.units)
    return readable, "mask" in ways, known, words > 1, several, len(ways), -hidden


def _module(name: str) -> Any:
    return importlib.import_module(f"unmask.recipes.{name.replace('-', '_')}")


def _sizes(name: str) -> Iterator[str]:
    for size in _module(name).SIZES:
        recipe = recipes.get(name, size=size)
        backbone = recipe.system.backbone
        count = cost(recipe, recipe.tokenizer.vocab)["kept"] / 1e6
        yield f"{size} ({backbone.layers} x {backbone.width}, {count:.3g}M)"


def _variants(name: str) -> Iterator[str]:
    """Every variant but the first, what the recipe's file says of it, and the values that differ."""
    module, usual = _module(name), flat(recipes.get(name))
    remarks = _remarks(inspect.getsource(module))
    for variant in list(module.VARIANTS)[1:]:
        values = flat(recipes.get(name, variant=variant))
        told = [f"{key}={_short(value)}" for key, value in values.items() if _tells(key, value, usual)]
        remark = f": {remarks[variant]}" if variant in remarks else ""
        rest = (
            f" and {len(told) - MOST_VALUES} more: `unmask show {name} --variant {variant}`"
            if len(told) > MOST_VALUES
            else ""
        )
        yield f"- `{variant}`{remark} (`{'`, `'.join(told[:MOST_VALUES])}`{rest})"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _tells(key: str, value: Any, usual: dict[str, Any]) -> bool:
    """Whether a value differs, and is not just a part of something that does."""
    owner = key.rpartition(".")[0]
    known = not owner or any(name == owner or name.startswith(f"{owner}.") for name in usual)
    return key != "variant" and value != {} and usual.get(key) != value and known


def _remarks(source: str) -> dict[str, str]:
    """The comments behind the entries of VARIANTS."""
    comments = {t.start[0]: t.string.lstrip("# ") for t in tokenize.generate_tokens(StringIO(source).readline)
                if t.type == tokenize.COMMENT and "fmt:" not in t.string}  # fmt: skip
    found = {}
    for node in ast.walk(ast.parse(source)):
        target = getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "VARIANTS" and isinstance(node.value, ast.Dict):  # type: ignore[attr-defined]
            for key, value in zip(node.value.keys, node.value.values, strict=True):  # type: ignore[attr-defined]
                if value.end_lineno in comments:
                    found[ast.literal_eval(key)] = comments[value.end_lineno]
    return found


if __name__ == "__main__":
    main()
