"""The program in an answer, as each suite's own runner takes it."""

from __future__ import annotations

import random

import pytest

from microcoder.evaluation.completions import code_of
from microcoder.prompts import STYLES
from microcoder.schema import Problem

PROMPT = 'from typing import List\n\n\ndef f(xs: List[int]) -> int:\n    """ Add them. """\n'
SETUP = "from typing import List"
HUMANEVAL = Problem("HumanEval/0", "assert", entry_point="f", starter_code=PROMPT, setup=SETUP, asserts=["..."])
MBPP = Problem("mbpp/11", "assert", entry_point="f", asserts=["assert f([1]) == 1"])
NAMELESS = Problem("mbpp/12", "assert", asserts=["assert 1"])
STDIN = Problem("abc_a")
DEF = "def f(xs):\n    return sum(xs)"


def fenced(code: str, tag: str = "python") -> str:
    return f"```{tag}\n{code}\n```"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"So:\n{fenced('print(1)')}\nThat is it.", "print(1)"),
        (f"{fenced('print(1)')}\nNo, rather:\n{fenced('print(2)')}", "print(2)"),
        (fenced("puts 1", "ruby"), "puts 1"),  # its rule does not look at the language
        ("say ``` here\nprint(3)\nand ``` there", "print(3)"),  # nor for fences, only for backticks
        (f"{fenced('print(1)')}\nand\n```", "and"),  # three fences: what stands between the last two
        (f"{fenced('a = 1')}\r\n".replace("\n", "\r\n"), "a = 1"),
        ("```python\nprint(1)", None),  # never closed
        ("print(1)", None),
        ("", None),
        (fenced("  \n\t"), None),
    ],
)
def test_livecodebench_takes_what_stands_between_the_last_two_fences(text, code):
    assert code_of("livecodebench", STDIN, text) == code


def test_our_own_style_takes_the_last_complete_python_block_as_training_does():
    text = f"{fenced('print(1)')}\n{fenced('{}', 'json')}\n```python\nprint(2"
    assert code_of("code", STDIN, text) == "print(1)"
    assert code_of("code", STDIN, "print(1)") is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"[BEGIN]\n{DEF}\n[DONE]\n[BEGIN]\nno\n[DONE]", f"\n{DEF}\n"),
        (f"[BEGIN]\n{fenced(DEF)}\n[DONE]", DEF),
        (f"[BEGIN]\n{fenced(DEF)}", DEF),  # never done: the fence counts
        (f"Here:\n{fenced('x = 1')}\n{fenced(DEF)}", DEF),
        (DEF, DEF),
        ("[DONE] def", None),
        ("def g(xs): return 0", None),
        ("def ff(xs): return 0", None),
        ("I would add them.", None),
        ("[BEGIN] \n [DONE]", None),
    ],
)
def test_mbpp_takes_what_is_marked_then_what_is_fenced_then_text_that_defines_the_function(text, code):
    assert code_of("mbpp", MBPP, text) == code


def test_without_a_name_any_function_is_an_answer_to_mbpp():
    assert code_of("mbpp", NAMELESS, "def anything(): ...") == "def anything(): ..."
    assert code_of("mbpp", NAMELESS, "no function") is None


@pytest.mark.parametrize(
    "text",
    [
        fenced(DEF),
        f"Sure!\n{fenced(DEF)}\nFor example:\n{fenced('print(f([1]))')}",  # the first block is the answer
        f"1. So:\n   ```python\n   {DEF.replace(chr(10), chr(10) + '   ')}\n   ```",  # in a list item
        fenced(DEF, "Python"),
        fenced(DEF, "py"),
        f"{fenced('pip install', 'bash')}\n{fenced(DEF, '')}",
        DEF,
    ],
)
def test_a_whole_function_for_humaneval_gets_what_stood_above_it_in_the_prompt(text):
    assert code_of("humaneval", HUMANEVAL, text) == f"{SETUP}\n\n{DEF}"


def test_helpers_above_and_below_the_function_stay():
    code = f"LIMIT = 9\n\ndef helper(x):\n    return x\n\n{DEF}\n\nprint(f([LIMIT]))"
    assert code_of("humaneval", HUMANEVAL, fenced(code)) == f"{SETUP}\n\n{code}"


def test_a_future_import_stays_the_first_statement():
    code = f"from __future__ import annotations\n{DEF}"
    compile(code_of("humaneval", HUMANEVAL, fenced(code)), "answer", "exec")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("    return sum(xs)", "    return sum(xs)\n"),
        ("    return g(xs)\n\n\n# adds\n@cache\ndef g(xs):\n    return sum(xs)", None),  # further functions stay
        ("    return sum(xs)\n\nprint(f([1]))\ndef g(): ...", "    return sum(xs)\n\n"),
        ("    return sum(xs)\n\nif __name__ == '__main__':\n    main()", "    return sum(xs)\n\n"),
        ("    return sum(xs)\n```\nThis adds them.", "    return sum(xs)\n"),
        ("    return sum(xs)\n\ndef f(xs):\n    return 0", None),  # a base model that goes round
        ("\n    return sum(xs)\n", "\n    return sum(xs)\n\n"),
        (fenced("    return sum(xs)"), "    return sum(xs)\n"),
    ],
)
def test_a_body_for_humaneval_goes_on_from_the_prompt_up_to_calls_and_chatter(text, kept):
    code = code_of("humaneval", HUMANEVAL, text)
    assert code == PROMPT + (f"{text}\n" if kept is None else kept)
    compile(code, "answer", "exec")


@pytest.mark.parametrize("text", ["", "  \n ", "I cannot do that.", "return sum(xs)", fenced("")])
def test_an_answer_without_code_is_none_for_humaneval(text):
    assert code_of("humaneval", HUMANEVAL, text) is None


HOSTILE = [
    "`" * 1_000_000,
    "```\n" * 250_000,
    "```python\n" * 100_000,
    "~~~\n```py\n" * 100_000,
    "[BEGIN]" * 140_000,
    "[BEGIN]\n```" * 90_000,
    "def " * 250_000,
    "def f" * 200_000,
    "def f\n" * 170_000,
    " " * 1_000_000,
    "\n" * 1_000_000,
    "    x\n" * 160_000,
    "from __future__ \n" * 60_000,
    "\x00\ud800\r\u2028" * 250_000,
    "(" * 1_000_000,
]


@pytest.mark.long
@pytest.mark.parametrize("style", STYLES)
def test_a_megabyte_made_to_be_slow_is_read_in_one_pass(style):
    for text in HOSTILE:  # one pass takes a fraction of a second; anything quadratic would not come back today
        code = code_of(style, HUMANEVAL, text)
        assert code is None or code.strip()


@pytest.mark.parametrize("style", STYLES)
def test_it_never_raises_and_never_gives_blank_code(style):
    rng = random.Random(0)
    pieces = ["```", "python", "\n", "\r\n", " ", "    ", "def f(", "[BEGIN]", "[DONE]", "x", "~~~", "#", ":", "\ud800"]
    for _ in range(3000):
        code = code_of(style, HUMANEVAL, "".join(rng.choices(pieces, k=rng.randrange(30))))
        assert code is None or code.strip()
