"""The demo says so where pretraining does not win, and why."""

from unmask import demo


def results(gain: float, steps: int) -> dict:
    row = {"task": "8 labels", "mean": 0.5 + gain, "high": 0.55 + gain, "untrained": 0.5, "gain": {"mean": gain}}
    loss = {"task": "held-out loss", "gain": None}
    return {"summary": [loss, row], "runs": [{"steps": steps}]}


def test_a_demo_that_wins_says_nothing_more():
    assert demo._about_losing(results(0.2, 1500)) == ""


def test_a_demo_that_loses_says_so_and_why():
    said = demo._about_losing(results(-0.06, 145))
    assert "did not win" in said
    assert "145 steps" in said
    assert "slow or busy" in said
    assert "usually enough" in demo._about_losing(results(-0.06, 1500))


def test_the_table_has_a_row_for_each_number_of_labels():
    assert demo._rows(results(0.2, 1500)) == [["8 labels", "70.0 ± 5.0", "50.0", "+20.0"]]
