"""The demo says so where pretraining does not win, and why; it ends with how to go on."""

from pathlib import Path

from unmask import demo


def results(gain: float, steps: int) -> dict:
    row = {
        "task": "8 labels",
        "mean": 0.5 + gain,
        "high": 0.55 + gain,
        "start": 0.6,
        "untrained": 0.5,
        "gain": {"mean": gain},
    }
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
    assert demo._rows(results(0.2, 1500)) == [["8 labels", "70.0 ± 5.0", "60.0", "50.0", "+20.0"]]


def test_the_demo_ends_by_saying_how_to_open_its_model_in_the_page(capsys):
    demo._show(results(0.2, 1500) | {"written": [], "seconds": 9.0}, Path("demo"), Path("demo/run"))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("or in a browser: unmask serve demo/run, then open http://127.0.0.1:8000/?view=write")
