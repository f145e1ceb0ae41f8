"""CodeEnv: reset and step; what a model is told, and what it is never told unless asked for."""

from __future__ import annotations

import pytest
from faulty_judge import Faulty

import microcoder as mc
from microcoder.prompts import SHOWN, feedback
from microcoder.rewards import CodeEnv

ONE = {"workers": 1}
SECRET = mc.Problem("secret", statement="Say it.", tests=[mc.Test("7", "31337")])
ASSERT = mc.Problem("a", kind="assert", asserts=["assert f(1) == 31337"], entry_point="f")
RIGHT, WRONG = "```python\nprint(31337)\n```", "```python\nprint(1)\n```"
RAISES = "```python\nraise ValueError('so it is')\n```"


def test_one_turn_is_judged_and_ends():
    env = CodeEnv([SECRET], judge=ONE)
    prompt, info = env.reset()
    assert prompt[0]["content"].startswith("Say it.") and info == {"id": "secret"}
    messages, reward, terminated, truncated, info = env.step(WRONG)
    assert (reward, terminated, truncated, info["verdict"].verdict) == (0.0, True, False, "wrong_answer")
    assert messages == [*prompt, {"role": "assistant", "content": WRONG}]
    with pytest.raises(RuntimeError, match="reset"):
        env.step(RIGHT)


def test_a_second_turn_follows_a_failure_and_gets_the_reward():
    env = CodeEnv([SECRET], turns=2, judge=ONE)
    env.reset()
    messages, reward, terminated, truncated, _ = env.step(WRONG)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert messages[-1]["role"] == "user" and "gives a wrong answer" in messages[-1]["content"]
    messages, reward, terminated, _, info = env.step(RIGHT)
    assert (reward, terminated, info["turn"], len(messages)) == (1.0, True, 2, 4)


def test_a_right_first_try_needs_no_second():
    env = CodeEnv([SECRET], turns=2, judge=ONE)
    env.reset()
    assert env.step(RIGHT)[1:4] == (1.0, True, False)


def test_a_fault_of_the_judge_ends_the_episode_without_a_reward():
    env = CodeEnv([SECRET], turns=2, judge=Faulty())
    env.reset()
    assert env.step(RIGHT)[1:4] == (None, False, True)


@pytest.mark.parametrize("problem", [SECRET, ASSERT])
@pytest.mark.parametrize("show", SHOWN)
def test_what_is_expected_is_told_only_where_the_difference_is_asked_for(problem, show):
    env = CodeEnv([problem], turns=2, show=show, judge=ONE)
    env.reset()
    wrong = WRONG if problem is SECRET else "```python\ndef f(n): return 1\n```"
    messages, *_, info = env.step(wrong)
    assert "31337" in info["verdict"].message
    assert ("31337" in messages[-1]["content"]) == (show == "difference")


@pytest.mark.parametrize(
    ("show", "told"), [("nothing", False), ("verdict", False), ("error", True), ("difference", True)]
)
def test_the_programs_own_exception_is_told_from_error_on(show, told):
    env = CodeEnv([SECRET], turns=2, show=show, judge=ONE)
    env.reset()
    said = env.step(RAISES)[0][-1]["content"]
    assert ("so it is" in said) == told
    assert ("fails while it runs" in said) == (show != "nothing")


def test_of_an_assert_problem_no_exception_is_told_since_it_may_quote_the_assert():
    verdict = mc.Verdict("runtime_error", message="test 0: AssertionError in `assert f(1) == 31337`")
    assert "31337" not in feedback(ASSERT, verdict, "error")


def test_problems_are_drawn_by_seed_or_chosen():
    problems = [mc.Problem(str(n), tests=[mc.Test("", "")]) for n in range(50)]
    one, other = CodeEnv(problems, judge=ONE, seed=3), CodeEnv(problems, judge=ONE)
    drawn = [one.reset()[1]["id"] for _ in range(5)]
    assert [other.reset(seed=3)[1]["id"], *(other.reset()[1]["id"] for _ in range(4))] == drawn
    assert other.reset(options={"id": "7"})[1] == other.reset(options={"id": 7})[1] == {"id": "7"}
    with pytest.raises(KeyError, match="there is no problem"):
        other.reset(options={"id": "x"})


@pytest.mark.parametrize(
    ("settings", "message"), [({"turns": 0}, "turns is 0"), ({"show": "diference"}, "did you mean 'difference'")]
)
def test_settings_that_cannot_work_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        CodeEnv([SECRET], **settings)
    with pytest.raises(ValueError, match="problems is empty"):
        CodeEnv([])
