"""Entries of a comparison: what a user writes, and what is refused."""

import pytest

from unmask.comparison.entry import ablations, check_entries, parse, read_settings, write_settings
from unmask.comparison.request import parse_asked
from unmask.errors import UserError

JOINT = "ernie-2+variant=joint"


def entry(text, **more):
    return parse(text, size="tiny", **more)


def test_an_entry_has_a_recipe_a_size_a_variant_and_settings():
    found = entry("roberta+size=mini+variant=static+hide.budget=0.4", settings=["optimise.rate=1e-3"])
    assert (found.recipe, found.size, found.variant) == ("roberta", "mini", "static")
    assert found.settings == ("optimise.rate=1e-3", "hide.budget=0.4")  # its own come last, and win
    assert found.made().hide.budget == 0.4
    assert found.name == "roberta+size=mini+variant=static+hide.budget=0.4"


def test_an_entry_may_choose_its_name(tmp_path):
    plain, named = entry("bart+hide.2.budget=0.2"), entry("bart+name=a fifth hidden+hide.2.budget=0.2")
    assert (named.name, named.folder) == ("a fifth hidden", "a_fifth_hidden")
    assert named.settings == plain.settings
    assert named.made() == plain.made()
    with pytest.raises(UserError, match="two entries have the name x"):
        check_entries([entry("bert+name=x"), entry("gpt2+name=x")])
    with pytest.raises(UserError, match="empty name"):
        entry("bert+name= ")


def test_ablations_of_a_named_entry_have_names_of_their_own():
    texts = ablations("ernie-2+variant=joint+name=joint", size="tiny")
    found = [entry(text).name for text in texts]
    assert len(set(found)) == len(found) > 3
    assert found[0] == "joint"
    assert all(name.startswith("joint with") for name in found[1:])


def test_a_plus_sign_in_a_number_is_no_joint():
    assert entry("bert+optimise.rate=1e+0").settings == ("optimise.rate=1e+0",)


@pytest.mark.parametrize("text", ["roberta+hide.budget", "+hide.budget=0.4", "bert+size"])
def test_a_setting_without_a_value_is_refused_with_an_example(text):
    with pytest.raises(UserError, match=r"RECIPE\+NAME=VALUE"):
        entry(text)


def test_entries_that_cannot_be_told_apart_are_refused():
    with pytest.raises(UserError, match="two entries have the name bert"):
        check_entries([entry("bert"), entry("bert")])
    with pytest.raises(UserError, match=r"roberta and roberta\+hide.budget=0.15 are the same recipe"):
        check_entries([entry("roberta"), entry("roberta+hide.budget=0.15")])
    with pytest.raises(UserError, match="at least one recipe"):
        check_entries([])


def test_a_file_of_settings_gives_the_entry_back(tmp_path):
    made = entry("gpt2+optimise.rate=2e-3")
    write_settings(made, tmp_path / "best" / "gpt2.json", {"chosen_by": "loss"})
    found = read_settings(tmp_path / "best" / "gpt2.json")
    assert (found.recipe, found.size, found.variant, found.settings) == ("gpt2", "tiny", "paper", made.settings)
    assert entry(str(tmp_path / "best" / "gpt2.json")).made() == made.made()


@pytest.mark.parametrize("content", ["", "[]", '{"recipe": "bert"}', '{"recipe": 1, "size": "tiny", "variant": "paper", "settings": []}'])  # fmt: skip
def test_a_file_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UserError, match=r"x\.json"):
        read_settings(tmp_path / "x.json")
    with pytest.raises(UserError, match="no such file"):
        read_settings(tmp_path / "none.json")


def test_long_names_have_short_folders_that_differ():
    long = "bert+" + "+".join(f"optimise.betas=(0.9,0.{digits})" for digits in range(900, 930))
    one, other = entry(long), entry(long + "+optimise.clip=1.0")
    assert len(one.folder) < 120
    assert one.folder != other.folder


def test_the_number_of_seeds_of_an_entry_is_no_part_of_its_name():
    def asked(text):
        return parse_asked(text, size="tiny", budgets=("1m",), seeds=1)

    assert [asked(text).seeds for text in ("bert", "bert+seeds=2", "bert+seeds=3+hide.budget=0.4")] == [1, 2, 3]
    assert asked("bert+seeds=2").entry == asked("bert").entry
    assert asked("bert+seeds=3+hide.budget=0.4").entry == entry("bert+hide.budget=0.4")
    with pytest.raises(UserError, match="one whole number of seeds"):
        asked("bert+seeds=two")


def test_ablations_leave_out_each_track_that_takes_turns_and_read_each_alone():
    found = ablations(JOINT, size="tiny")
    made = [entry(text).made() for text in found]
    check_entries([entry(text) for text in found])
    tracks = [{name for name, track in recipe.all_tracks().items() if track.share > 0} for recipe in made]
    assert len(tracks[0]) == 7
    assert tracks[1:8] == [tracks[0] - alone for alone in tracks[8:]]
    assert [len(alone) for alone in tracks[8:]] == [1] * 7


def test_ablations_keep_the_seeds_of_their_entry():
    found = [
        parse_asked(one, size="tiny", budgets=("1m",), seeds=1) for one in ablations(f"{JOINT}+seeds=3", size="tiny")
    ]
    assert [one.seeds for one in found] == [3] * 15
    assert [one.entry for one in found] == [entry(text) for text in ablations(JOINT, size="tiny")]


@pytest.mark.parametrize("text, message", [("bert", "bert has none"), ("ernie-2", "a stage has no other")])
def test_what_cannot_be_ablated_is_refused_with_what_can(text, message):
    with pytest.raises(UserError, match=message):
        ablations(text, size="tiny")
