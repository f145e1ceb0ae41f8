"""Verdict words: YES for Yes. A closed list, because anywhere else letter case may be the answer.

On the list are words that a statement offers as the verdict on an input, where no other verdict is spelled with the
same letters. Names (Alice), ordinals and units are left out: they are also data.
"""

from __future__ import annotations

import re

VERDICT_WORDS = frozenset(
    {b"yes", b"no", b"true", b"false", b"possible", b"impossible", b"valid", b"invalid", b"correct", b"incorrect"}
)
_LONGEST = max(map(len, VERDICT_WORDS))
_LETTERS = re.compile(rb"[a-z]+")


class Words:
    """Decides for one test whether a word may differ in case."""

    def __init__(self, expected: bytes, test_input: bytes) -> None:
        self.expected, self.input = expected, test_input
        self.free: dict[bytes, bool] = {}

    def same(self, got: bytes, expected: bytes) -> bool:
        if len(got) != len(expected) or len(got) > _LONGEST:
            return False
        word = expected.lower()
        if word not in VERDICT_WORDS or got.lower() != word:
            return False
        if word not in self.free:
            self.free[word] = self._is_free(word)
        return self.free[word]

    def _is_free(self, word: bytes) -> bool:
        """Not where the input holds the word (its case may be asked for), nor where the answer has it in two cases."""
        whole = re.compile(rb"(?<![A-Za-z])" + word + rb"(?![A-Za-z])", re.IGNORECASE)
        return not whole.search(self.input) and len(set(whole.findall(self.expected))) == 1


def verdicts_in_order(text: bytes) -> list[bytes]:
    """The verdict words of a text in lower case, in the order in which they stand, quoted or not."""
    return [word for word in _LETTERS.findall(text.lower()) if word in VERDICT_WORDS]
