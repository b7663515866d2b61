"""The texts, recipes and screen of these tests."""

from io import StringIO

from rich.console import Console

from unmask import recipes
from unmask.axes import rules
from unmask.explanation import Explanation
from unmask.explanation.screen import render
from unmask.recipe import Recipe

PAIR = "The doctor examined the patient carefully. She prescribed antibiotics for the infection."
CHINESE = "哈尔滨是黑龙江的省会，国际冰雪文化名城。她为感染开了抗生素。"
LEXICON = (
    "examined the patient\tphrase\nantibiotics\tentity\n哈尔滨\tentity\n黑龙江\tentity\n国际冰雪文化名城\tphrase\n"
)
NAMES = tuple(recipes.names())
MASKED = tuple(  # the recipes that predict the tokens that they hide in place
    name
    for name in NAMES
    if any(rule.in_place and "targets:tokens" in rule.gives for rule in rules(recipes.get(name).hide))
)


def tiny(name: str, *settings: str) -> Recipe:
    return recipes.get(name, size="tiny", settings=settings)


def screen(explanation: Explanation, width: int = 80) -> str:
    console = Console(width=width, file=StringIO())
    console.print(render(explanation))
    return console.file.getvalue()  # type: ignore[attr-defined]
