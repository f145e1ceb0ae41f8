"""Other words for a text: synonyms, other names, another language. Written for this benchmark.

No translator is at hand, so a translation is imitated: every sentence becomes one of a few of another language, with
the numbers, formulas, names and quoted words of the sentence that it stands for. Code and samples are left alone. What
a duplicate can be known by (tests, solution, samples, numbers) is what a true translation keeps; the wording is not.
"""

from __future__ import annotations

import re
from random import Random

from microcoder.data.process.samples import on_prose

LANGUAGES = {
    "ru": [
        "Дано {0}, и требуется найти ответ на поставленную задачу для {1}",
        "В этой задаче рассматривается последовательность, в которой заданы {0} и также {1}",
        "Напишите функцию, которая возвращает результат, если известно {0}, а также {1}",
        "Гарантируется, что все значения удовлетворяют условиям {0} и {1}",
        "Если решения не существует, выведите {0}, иначе выведите {1}",
        "Обратите внимание, что порядок элементов важен: {0}, затем {1}",
    ],
    "zh": [
        "给定 {0}，请你找出满足条件的答案 {1}",
        "在这个问题中，我们考虑一个由 {0} 组成的序列，以及 {1}",
        "请编写一个函数，返回所求的结果，其中 {0} 表示输入，{1} 表示范围",
        "题目保证所有的数都满足 {0} 和 {1}",
        "如果不存在这样的方案，则输出 {0}，否则输出 {1}",
        "注意元素的顺序很重要：先是 {0}，然后是 {1}",
    ],
    "es": [
        "Dados los valores {0}, hay que encontrar la respuesta correcta para {1}",
        "En este problema se considera una secuencia formada por {0} y también por {1}",
        "Escriba una función que devuelva el resultado cuando se conocen {0} y además {1}",
        "Se garantiza que todos los valores cumplen las condiciones {0} y {1}",
        "Si no existe ninguna solución, imprima {0}; en caso contrario, imprima {1}",
        "Tenga en cuenta que el orden de los elementos es importante: primero {0}, después {1}",
    ],
    "ja": [
        "{0} が与えられるので、条件を満たす答え {1} を求めてください",
        "この問題では、{0} からなる数列と {1} を考えます",
        "{0} と {1} を受け取り、結果を返す関数を書いてください",
        "すべての値は {0} および {1} を満たすことが保証されます",
        "解が存在しない場合は {0} を、そうでなければ {1} を出力してください",
        "要素の順序は重要です。まず {0}、次に {1} となります",
    ],
}
SYNONYMS = {
    line.split()[0]: [word.replace("_", " ") for word in line.split()[1:]]
    for line in """
        given provided_with supplied_with
        return give_back deliver
        returns gives_back delivers
        find determine work_out
        write produce compose
        print display emit
        array sequence list_of_values
        list collection sequence
        string text piece_of_text
        integer whole_number
        integers whole_numbers
        number value
        numbers values
        number, value,
        function routine procedure
        elements items entries
        element item entry
        contains holds includes
        each every
        every each
        equal identical
        total overall
        check verify test
        check, verify,
        whether if
        answer result solution
        possible feasible achievable
        choose select pick
        operation step move
        operations steps moves
        perform carry_out execute
        want wish would_like
        need have_to
        because since
        between among
        distinct different
        different distinct
        exactly precisely
        consists is_made_up
        calculate compute evaluate
        compute calculate evaluate
        count tally
        remove delete drop
        way manner
        ways manners
        large big huge
        small little tiny
        using by_means_of
        specified stated named
        following next
        guaranteed assured certain
        note observe remember
        such like
        same identical
        using with
        denotes stands_for
        represents stands_for
        must has_to
        can is_able_to
        where in_which
        line row_of_text
        lines rows_of_text
        test trial
        cases instances
        students pupils
        people persons
        city town
        cities towns
        game contest
        player participant
        house building
    """.strip().splitlines()
}
_KEPT = re.compile(r"`[^`\n]+`|\$[^$\n]+\$|\"[^\"\n]+\"|\b\w*\d\w*\b|\b[a-zA-Z]\b|\b[a-z]+(?:_\w+|[A-Z]\w*)\b")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_WORD = re.compile(r"\b[a-z]+\b")
_FILLER = ["Consider the following.", "Here is the task.", "Read on carefully.", "In other words:", "Put differently:"]


def translated(text: str, draw: Random, language: str) -> str:
    """The prose in another language: see above."""
    return on_prose(text, lambda prose: _SENTENCE.sub(lambda match: _foreign(match.group(), draw, language), prose))


def reworded(text: str, draw: Random) -> str:
    """The same said in other words: synonyms wherever there are any, sentences led in differently."""
    chosen = {word: draw.choice(others) for word, others in SYNONYMS.items()}

    def change(prose: str) -> str:
        said = _WORD.sub(lambda match: chosen.get(match.group(), match.group()), prose)
        return _SENTENCE.sub(lambda match: _led_in(match.group(), draw), said)

    return on_prose(text, change, within=True)


def _led_in(sentence: str, draw: Random) -> str:
    long = len(sentence.split()) > 5 and draw.random() < 0.4
    return f" {draw.choice(_FILLER)} {sentence.strip()}" if long else sentence


def _foreign(sentence: str, draw: Random, language: str) -> str:
    if len(_WORD.findall(sentence)) < 3:
        return sentence
    kept = _KEPT.findall(sentence) or [str(len(sentence))]
    middle = (len(kept) + 1) // 2
    said = draw.choice(LANGUAGES[language]).format(" ".join(kept[:middle]), " ".join(kept[middle:]) or "0")
    return f" {said}{'。' if language in ('zh', 'ja') else '.'}"
