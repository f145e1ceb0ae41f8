"""Neighbouring inputs with different answers, and typical mistakes with numbers that are cut short."""

from __future__ import annotations

import random

from microcoder.data.forge.borders import borders
from microcoder.data.forge.mistakes import mistakes


def answer(text: str) -> str | None:
    a, b = map(int, text.split())
    return "equal" if a == 3 * b else "more" if a > 3 * b else "less"


def known(ask) -> list[tuple[str, str]]:
    rng = random.Random(2)
    texts = [f"{rng.randint(0, 900)}\n{rng.randint(0, 300)}\n" for _ in range(40)]
    return [(text, ask(text)) for text in texts]


def found(ask, valid=lambda text: True) -> list[str]:
    return borders(known(ask), lambda texts: [ask(text) for text in texts], valid, random.Random(7))


def test_borders_lie_next_to_a_change_of_the_answer():
    texts = found(answer)
    assert len(texts) > 20
    for text in texts:
        a, b = map(int, text.split())
        assert text == f"{a}\n{b}\n" and 0 < abs(a - 3 * b) <= 3  # not at equality, which is a single point


def test_no_borders_where_every_answer_is_another_or_inputs_are_not_allowed():
    assert found(lambda text: text) == []
    assert found(answer, valid=lambda text: False) == []
    assert all(
        int(text.split()[1]) % 2 == 0 for text in found(answer, valid=lambda text: int(text.split()[1]) % 2 == 0)
    )


def test_inputs_of_many_numbers_have_no_borders():
    rows = [(" ".join([str(n)] * 9), "yes" if n > 5 else "no") for n in range(10)]
    assert borders(rows, lambda texts: ["no" for _ in texts], lambda text: True, random.Random(1)) == []


def test_pi_is_cut_short():
    made = mistakes("import math\nr = int(input())\nprint(math.pi * r * r)\n", prints=True)
    codes = [one.code for one in made if one.kind == "rounded"]
    assert any("3.14 * r" in code for code in codes) and any("3 * r" in code for code in codes)
    assert not [one for one in mistakes("print(tau.pi)\n", prints=True) if one.kind == "rounded"]
