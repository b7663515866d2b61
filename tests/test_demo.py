"""The demo says so where pretraining does not win, and why."""

from unmask import demo


def results(pretrained: float, steps: int) -> dict:
    ways = {"pretrained": [pretrained] * 3, "untrained": [0.5, 0.5, 0.5]}
    return {"accuracy": {"8": ways, "32": ways}, "steps": steps}


def test_a_demo_that_wins_says_nothing_more():
    assert demo._about_losing(results(0.7, 1500)) == ""


def test_a_demo_that_loses_says_so_and_why():
    said = demo._about_losing(results(0.44, 145))
    assert "did not win" in said
    assert "145 steps" in said
    assert "slow or busy" in said
    assert "usually enough" in demo._about_losing(results(0.44, 1500))
