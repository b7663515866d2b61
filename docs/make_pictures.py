"""Draw every recipe on one sentence into docs/pictures/."""

from pathlib import Path

from unmask import explain, list_recipes
from unmask.explanation_picture import draw

SENTENCE = "The doctor examined the patient carefully. She prescribed antibiotics for the infection."

if __name__ == "__main__":
    folder = Path(__file__).parent / "pictures"
    folder.mkdir(exist_ok=True)
    for entry in list_recipes():
        draw(explain(entry.name, SENTENCE, visit=1), folder / f"{entry.name}.png")
