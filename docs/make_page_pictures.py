"""Take the pictures of the page for docs/serve.md, of small models that this script trains on made-up sentences.

    python docs/make_page_pictures.py [--runs FOLDER] [--bert 4m] [--gpt2 1m]

It needs Chromium and `pip install '.[dev]'`. Runs that are in the folder already are used again. The sentences come from a small
grammar, English and Chinese: every topic has its own people, things and places, so that a model of a few minutes knows which fit.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

PICTURES = Path(__file__).parent / "pictures"
PORT = 8765
SENTENCES = 60_000

# people; verbs; things; places
ENGLISH = [
    (
        "doctor nurse surgeon",
        "examined treated healed tested",
        "patient wound infection injury",
        "hospital clinic ward",
    ),
    ("judge lawyer witness", "opened closed defended read", "case trial letter contract", "court office station"),
    ("teacher student pupil", "read wrote explained studied", "book lesson letter story", "school library classroom"),
    ("cook baker farmer", "cooked tasted prepared cut", "bread soup meat cake", "kitchen market farm"),
    (
        "engineer mechanic worker",
        "repaired built tested opened",
        "engine machine bridge car",
        "factory workshop garage",
    ),
]
ENDS = ["with great care", "before the evening", "in the old house", "without a word", "for the first time"]
ADJECTIVES = ["old", "young", "new", "small", "great"]
CHINESE = [
    ("医生 护士 大夫", "检查 治好 治疗", "病人 伤口 伤员", "医院 诊所 病房", "手术"),
    ("法官 律师 证人", "审理 打开 宣读", "案件 合同 信件", "法院 法庭 办公室", "开庭"),
    ("老师 学生 校长", "朗读 讲解 写好", "课本 文章 故事", "学校 教室 图书馆", "下课"),
    ("厨师 农民 店主", "准备 品尝 切好", "面包 蔬菜 牛肉", "厨房 市场 农场", "晚饭"),
    ("工人 司机 师傅", "修好 检查 组装", "机器 汽车 发动机", "工厂 车间 车库", "下班"),
]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=Path, default=Path("page_runs"))
    options.add_argument("--bert", default="4m", help="the budget of BERT")
    options.add_argument("--gpt2", default="1m", help="the budget of GPT-2")
    chosen = options.parse_args()
    chosen.runs.mkdir(parents=True, exist_ok=True)
    text = chosen.runs / "sentences.txt"
    text.write_text("\n".join(sentences(SENTENCES)), encoding="utf-8")
    for recipe, budget in (("bert", chosen.bert), ("gpt2", chosen.gpt2)):
        if not (chosen.runs / recipe).exists():
            words = [
                "--size",
                "tiny",
                "--set",
                "tokenizer.vocab=2000",
                "--budget",
                budget,
                "--out",
                str(chosen.runs / recipe),
            ]
            unmask("pretrain", recipe, str(text), *words).wait()
    service = unmask("serve", str(chosen.runs / "bert"), str(chosen.runs / "gpt2"), "--port", str(PORT))
    try:
        assert service.stderr is not None
        next(line for line in service.stderr if b"answering at" in line)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            take(browser)
    finally:
        service.terminate()
        service.wait()


def unmask(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "unmask", *words], stderr=subprocess.PIPE)


def sentences(count: int) -> list[str]:
    """Two sentences of one topic in each line; a blank line ends a document."""
    dice, found = random.Random(0), []
    for number in range(count):
        found.append(_chinese(dice) if number % 3 == 0 else _english(dice))
        if number % 5 == 4:
            found.append("")
    return found


def _english(dice: random.Random) -> str:
    people, verbs, things, places = (words.split() for words in dice.choice(ENGLISH))

    def thing() -> str:
        return f"{dice.choice(ADJECTIVES)} {dice.choice(things)}" if dice.random() < 0.3 else dice.choice(things)

    first = f"The {dice.choice(people)} {dice.choice(verbs)} the {thing()} in the {dice.choice(places)}."
    return f"{first} The {dice.choice(people)} {dice.choice(verbs)} the {thing()} {dice.choice(ENDS)}."


def _chinese(dice: random.Random) -> str:
    people, verbs, things, places, event = (words.split() for words in dice.choice(CHINESE))
    first = f"{dice.choice(people)}在{dice.choice(places)}里{dice.choice(verbs)}了{dice.choice(things)}。"
    return f"{first}{dice.choice(people)}{event[0]}以后{dice.choice(verbs)}了{dice.choice(things)}。"


def take(browser: Browser) -> None:
    source = "The doctor examined the patient. The nurse treated the wound in the hospital."
    shot(browser, "page_guess", height=870, model="bert", hide="11-19")
    shot(browser, "page_row", height=1_400, view="row", recipe="unilm", track="prefix", text=source, at=5)
    shot(browser, "page_attention", height=1_020, dark=True, view="attention", model="bert", lang="zh", layer=2)
    shot(browser, "page_compare", height=950, view="compare", model="bert", other="gpt2", hide="11-19")
    shot(browser, "page_losses", height=900, view="runs")
    narrow = {"width": 320, "height": 1_180}
    shot(browser, "left", **narrow, model="bert", hide="11-19")
    shot(browser, "right", **narrow, dark=True, view="write", model="gpt2", text="The judge", go=1, at=2)
    beside("page_narrow", "left", "right")


def shot(browser: Browser, name: str, *, width: int = 1_040, height: int, dark: bool = False, **state: object) -> None:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
    page.goto(f"http://127.0.0.1:{PORT}/?{urlencode({'lang': 'en'} | state)}")
    page.wait_for_selector("#view[aria-busy=false]")
    page.wait_for_timeout(1_500)  # a text is written, and bars grow
    page.screenshot(path=PICTURES / f"{name}.png")
    page.close()
    with Image.open(PICTURES / f"{name}.png") as found:
        smaller(found, name)


def smaller(picture: Image.Image, name: str) -> None:
    """Save a picture with few colours: the page has few, and the file is a third as large."""
    picture.convert("RGB").quantize(96, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)


def beside(name: str, *parts: str) -> None:
    """One picture of two, with a gap."""
    files = [PICTURES / f"{part}.png" for part in parts]
    several = [Image.open(file) for file in files]
    joined = Image.new("RGB", (sum(one.width for one in several) + 24, several[0].height), "white")
    for number, one in enumerate(several):
        joined.paste(one, (number * (one.width + 24), 0))
    smaller(joined, name)
    for file in files:
        file.unlink()


if __name__ == "__main__":
    main()
