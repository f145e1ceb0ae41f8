"""The program in a completion, and the thoughts that are no part of it."""

from __future__ import annotations

import random

import pytest

from microcoder.judge.extract import answer, code_block

DRAFT, RIGHT = "```python\nprint('draft')\n```", "```python\nprint('right')\n```"
PROGRAM = "print('right')"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"<think>{DRAFT}</think>\n{RIGHT}", PROGRAM),
        (f"<think>\nFirst\n{DRAFT}\n</think>\n\nI am done.", None),
        (f"<think>\n{DRAFT}\nNo, wait", None),  # cut in the thought
        (f" \n<think>\n{RIGHT}", None),
        (f"Sure. <think>\n{DRAFT}", None),
        (f"so it is\n{DRAFT}\n</think>\n{RIGHT}", PROGRAM),  # the prompt opened the thought
        (f"so it is\n{DRAFT}\n</think>\nI am done.", None),
        ("```python\nprint('draft')\n</think>\nSo:\n```\nprint('right')\n```", PROGRAM),  # a draft that is never closed
        (f"<think>\n```python\nprint(\n</think>\n{RIGHT}", PROGRAM),
        (f"<think>a</think>{RIGHT}", PROGRAM),
        (f"<think>a</think><think>{DRAFT}</think>{RIGHT}", PROGRAM),
        (f"Well <think>a</think>{RIGHT}", PROGRAM),
        (f"{RIGHT}\n<think>Or rather\n{DRAFT}\n</think>\nNo.", PROGRAM),  # thinks again after the answer
        (f"{RIGHT}\n<think>Or rather\n{DRAFT}", PROGRAM),
        (f"<think>a</think>\n{DRAFT}\n<think>b</think>\n{RIGHT}", PROGRAM),
        (f"<think>a <think> b</think>\n{RIGHT}", PROGRAM),  # the first </think> ends it
        (f"<think></think>\n{RIGHT}", PROGRAM),
        (f"<think>\r\n{DRAFT}\r\n</think>\r\n{RIGHT}".replace("\n", "\r\n"), PROGRAM),
        (f"<think>It must print '</think>'\n{DRAFT}\n</think>\n{RIGHT}", PROGRAM),  # named, not meant
        (f"I use no `<think>` here.\n{RIGHT}", PROGRAM),
        (f"<think>\n{DRAFT}```</think>```python\n{PROGRAM}\n```", PROGRAM),
        (f"<THINK>\n{RIGHT}", PROGRAM),  # another word
    ],
)
def test_what_is_thought_is_no_answer(text, code):
    assert code_block(text) == code


@pytest.mark.parametrize(
    "program",
    [
        'print("</think>")',
        'print("<think>")',
        'print("so <think> so")',
        'text = """\n<think>\n"""\nprint(text.replace("<think>", "</think>x"))',
        "# <think>\nprint(1)\n# </think>",
    ],
)
@pytest.mark.parametrize("before", ["<think>a</think>\n", "a\n</think>\n", "<think>\n</think>\nSo:\n"])
def test_tags_in_a_program_after_the_thought_are_its_text(program, before):
    assert code_block(f"{before}```python\n{program}\n```\nDone.") == program
    assert code_block(f"{before}~~~python\n{program}\n~~~") == program


@pytest.mark.parametrize("program", ['print("</think>")', 'print("<think>")', 'print("a <think> b")', "# <think>"])
def test_tags_in_a_program_without_a_thought_are_its_text_too(program):
    assert code_block(f"So:\n```python\n{program}\n```") == program


def test_of_an_answer_that_reasons_first_the_last_complete_block_is_the_program():
    quoted = "The examples are\n```\n5\n```\nand a first try\n```python\nprint(0)\n```\nis too slow."
    assert code_block(f"{quoted} So:\n{RIGHT}\nIt is linear.") == PROGRAM


OUTPUT = "```\n5\n```"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{RIGHT}\nFor the example it prints\n{OUTPUT}", PROGRAM),
        (f"{OUTPUT}\n{RIGHT}\nIt prints\n{OUTPUT}", PROGRAM),
        (f"{DRAFT}\nThat is too slow.\n{RIGHT}\n{OUTPUT}", PROGRAM),
        (f"```c++\nreturn 0;\n```\n```\n{PROGRAM}\n```", PROGRAM),  # no block has the tag
        (f"```\nprint(0)\n```\n```{{}}\n{PROGRAM}\n```", PROGRAM),  # nor any tag: the last one
        (f"```python\n```\n{OUTPUT}", None),  # the program is empty
        (f"```python\n{PROGRAM}", None),
        (f"{OUTPUT}\n```python\n{PROGRAM}", "5"),  # never closed
    ],
)
def test_a_block_without_a_tag_counts_only_where_none_has_the_tag(text, code):
    assert code_block(text) == code


def test_a_completion_without_thoughts_is_its_own_answer():
    assert answer(f"a\r\nb {RIGHT}") == f"a\nb {RIGHT}"


def test_nothing_of_a_thought_is_left_and_nothing_else_is_lost():
    rng = random.Random(0)
    for _ in range(2000):
        words = [rng.choice(("A ", "B\n", f"\n{RIGHT}\n")) for _ in range(rng.randrange(6))]
        thoughts = [f"<think>{rng.choice(('x', DRAFT, '```python', '<think>'))}\n</think>" for _ in words]
        text = "".join(word + rng.choice(("", thought)) for word, thought in zip(words, thoughts, strict=True))
        assert answer(text).split() == "".join(words).split()


HOSTILE = [
    "<think>" * 35_000,
    "</think>" * 30_000,
    "<think></think>" * 16_000,
    "<think>\n</think>" * 15_000,
    "```<think></think>" * 13_000,
    "```\n<think></think>" * 13_000,
    "'<think>" * 30_000,
    "'<think>'" * 27_000,
    "a </think> <think> b\n" * 11_000,
    "<" * 1_000_000,
    "<think" * 40_000,
    "<pad>" * 200_000,
    "<pad> " * 200_000 + "x",
    "```" + " " * 1_000_000,
]


def test_a_text_made_to_be_slow_is_read_in_one_pass():
    for text in HOSTILE:  # a fraction of a second each; anything quadratic would not come back today
        for whole in (text, f"{text}</think>", f"```\n{text}"):
            found = code_block(whole)
            assert found is None or found.strip()


@pytest.mark.parametrize(
    "end", ["<|im_end|>", "<|im_end|>\n<|endoftext|> ", "</s>", "<eos><pad><pad>", "<｜end▁of▁sentence｜>"]
)
def test_end_tokens_are_no_part_of_an_answer(end):
    assert code_block(f"```python\nprint(1)\n```{end}") == "print(1)"


@pytest.mark.parametrize("end", ["<b>", "<|two words|>", "x<|im_end", "<" + "|" * 100 + ">"])
def test_other_signs_after_a_fence_keep_it_from_closing(end):
    assert code_block(f"```python\nprint(1)\n```{end}") is None
