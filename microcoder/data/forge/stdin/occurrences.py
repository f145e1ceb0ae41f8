"""What a sentence says of single letters: how often one stands in a word or a grid, and what stands at which place.

    "S contains at least one /."   "S contains at least K 1-blocks."   "There are at least two floor cells."
    "The first character of S is not 0."   "S_{i,1} and S_{i,W} are # for every 1 ≤ i ≤ H."

Each is a check, and a way to mend values that were drawn without regard to it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..reading.terms import Expression, Unknown, expression
from .guarantees import Guarantees
from .letters import alphabet
from .limits import Spot, StatedLimits
from .shape import InputLine, Scope, block_at, scopes

_NUMERALS = {"a": "1", "an": "1", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5"}
_ORDINALS = {"first": "1", "second": "2", "third": "3", "fourth": "4", "fifth": "5", "last": "0"}
_AMOUNT = re.compile(
    r"\b(?P<how>at least|exactly|at most|no more than) (?P<number>an?|one|two|three|four|five|\d{1,6}|[A-Za-z]) "
    r"(?P<what>[^.]*?\S\.?)$"
)
_SAID = re.compile(
    r"(?:occurrences? of |instances? of |characters? |letters? |cells? (?:with|containing|that (?:is|are)) )?"
    r"['\"]?(?P<letter>\S)['\"]?(?P<many>s|-blocks?| characters?| cells?| letters?)?"
    r"(?: in (?:the grid|the input|total|\S))?\.?$"
)
_ROWS_OF = re.compile(r"(?:(?:^|,| and )\s*(?P<number>\S{1,4}) (?P<letter>[^\W_])s(?=[,.]| and|$))")
_AT = re.compile(
    r"(?P<at>first|second|third|fourth|fifth|last)(?P<on> and subsequent)? (?:characters?|letters?|digits?) (?:of|in) "
    r"(?:each |every )?(?P<name>[A-Za-z](?:_\w)?) (?:is|are)(?: always)? (?P<no>not )?(?P<what>.+)$"
)
_CELL = re.compile(r"(?P<name>[A-Za-z])_\{(?P<row>[^{},]{1,8}), ?(?P<column>[^{},]{1,8})\}")
_CELLS = re.compile(
    rf"^(?:{re.sub('[?]P<[a-z]+>', '', _CELL.pattern)}(?:, | and )?)+ ?(?:is|are|=) ?'?(?P<letter>\S)'?(?: for .*)?\.?$"
)


@dataclass(frozen=True, slots=True)
class Occurrences:
    """How often a letter stands in a word, or in all rows of a grid. `blocks`: runs of the letter are counted."""

    place: Spot
    grid: bool
    letter: str
    least: Expression
    most: Expression | None
    blocks: bool
    others: str  # the letters that may stand in its place

    def _number(self, words: list[str]) -> int:
        if self.blocks:
            return sum(len(re.findall(re.escape(self.letter) + "+", word)) for word in words)
        return sum(word.count(self.letter) for word in words)

    def kept(self, scope: Scope) -> bool:
        for around, rows in _words(self.place, self.grid, scope):
            number = self._number([row[self.place.field.name] for row in rows])
            if number < _value(self.least, around) or (self.most and number > _value(self.most, around)):
                return False
        return True

    def mend(self, scope: Scope, rng: random.Random) -> None:
        name = self.place.field.name
        for around, rows in _words(self.place, self.grid, scope):
            words = [row[name] for row in rows]
            number, least = self._number(words), _value(self.least, around)
            most = _value(self.most, around) if self.most else number
            if least <= number <= most:
                continue
            if self.blocks:
                if not self.grid and 2 * least - 1 <= len(words[0]) and self.others:
                    starts = sorted(rng.sample(range(len(words[0]) - least + 1), least))
                    own = {start + n for n, start in enumerate(starts)}
                    rows[0][name] = "".join(
                        self.letter if n in own else rng.choice(self.others) for n in range(len(words[0]))
                    )
                continue
            more = number < least
            spots = [(r, c) for r, w in enumerate(words) for c, x in enumerate(w) if (x == self.letter) != more]
            if not more and not self.others:
                continue
            change = least - number if more else number - most
            for r, c in rng.sample(spots, min(len(spots), change)):
                letter = self.letter if more else rng.choice(self.others)
                words[r] = words[r][:c] + letter + words[r][c + 1 :]
            for row, word in zip(rows, words, strict=True):
                row[name] = word


@dataclass(frozen=True, slots=True)
class Standing:
    """Letters that stand at places of a word or a grid. A row or column that is no number stands for all of them."""

    place: Spot
    grid: bool
    row: Expression | None
    column: Expression | None
    on: bool  # and all columns after it
    letters: str

    def _cells(self, around: Scope, rows: list[Scope]) -> Iterator[tuple[Scope, int]]:
        chosen = _chosen(self.row, around, len(rows), False)
        for row in chosen:
            for column in _chosen(self.column, around, len(rows[row][self.place.field.name]), self.on):
                yield rows[row], column

    def kept(self, scope: Scope) -> bool:
        return all(
            row[self.place.field.name][column] in self.letters
            for around, rows in _words(self.place, self.grid, scope)
            for row, column in self._cells(around, rows)
        )

    def mend(self, scope: Scope, rng: random.Random) -> None:
        name = self.place.field.name
        for around, rows in _words(self.place, self.grid, scope):
            for row, column in list(self._cells(around, rows)):
                if row[name][column] not in self.letters:
                    row[name] = row[name][:column] + rng.choice(self.letters) + row[name][column + 1 :]


def _value(count: Expression, scope: Scope) -> int:
    try:
        return count.value(scope.look)
    except (Unknown, TypeError, ValueError):
        return 0


def _chosen(index: Expression | None, around: Scope, number: int, on: bool) -> list[int]:
    """The positions, counted from 0, that an index (counted from 1; 0: the last) stands for."""
    if index is None:
        return list(range(number))
    try:
        at = index.value(around.look)
    except (Unknown, TypeError, ValueError):
        return list(range(number))
    at = number if at == 0 else at
    if on:
        return list(range(at - 1, number))
    return [at - 1] if 1 <= at <= number else []


def _words(place: Spot, grid: bool, scope: Scope) -> Iterator[tuple[Scope, list[Scope]]]:
    """(the scope around, the scopes of the words): all rows of a grid together, or each word alone."""
    if grid:
        for one in scopes(scope, place.path[:-1]):
            yield one, one[place.path[-1]]
    else:
        for one in scopes(scope, place.path):
            if place.field.name in one:
                yield one, [one]


def is_grid(place: Spot, limits: StatedLimits) -> bool:
    """Whether the place is the only one of a block's only line."""
    block = block_at(limits.layout.body, place.path)
    if block is None or len(block.body) != 1 or not isinstance(block.body[0], InputLine):
        return False
    return len(block.body[0].fields) == 1


def read_occurrences(sentence: str, limits: StatedLimits, found: Guarantees, samples: list[Scope]) -> bool:
    """Keep what a sentence says of single letters, if the samples keep to it; whether it says anything."""
    needs: list[Occurrences | Standing] = []
    for place in limits.places:
        if place.field.kind == "word" and place.field.count is None:
            grid = is_grid(place, limits)
            found_rows = [row for scope in samples for _, rows in _words(place, grid, scope) for row in rows]
            used = {letter for row in found_rows for letter in row[place.field.name]}
            letters = found.alphabet.get(place) or "".join(sorted(used))
            needs += _amounts(sentence, place, grid, letters, used, samples, limits)
            needs += _standing(sentence, place, grid, letters)
    if not needs or not all(need.kept(scope) for need in needs for scope in samples):
        return False
    found.needs += needs
    return True


def _amounts(
    sentence: str, place: Spot, grid: bool, letters: str, used: set[str], samples: list[Scope], limits: StatedLimits
) -> Iterator[Occurrences]:
    named = re.search(rf"(?<![A-Za-z]){re.escape(place.name)}(?![A-Za-z])", limits.prepared(sentence))
    words = [p for p in limits.places if p.field.kind == "word"]
    if said := re.search(r"(?:consist(?:s|ing)? of|contains?) (?:exactly )?(.{3,60})$", sentence):
        amounts = list(_ROWS_OF.finditer(said[1].rstrip(".")))
        if named and amounts and {one["letter"] for one in amounts} == used:
            for one in amounts:
                count = _amount(one["number"], limits)
                if count is not None:
                    yield Occurrences(place, grid, one["letter"], count, count, False, "".join(used - {one["letter"]}))
            return
    amount = _AMOUNT.search(sentence)
    if not amount or not re.search(r"\bcontains?\b|\bthere (?:is|are)\b|\bhas\b|\bhave\b|\binclud", sentence, re.I):
        return
    count = _amount(amount["number"], limits)
    if count is None or not (named or len(words) == 1):
        return
    how = amount["how"]
    least = count if how in ("at least", "exactly") else expression("0")
    most = count if how != "at least" else None
    if (spoken := _SAID.match(amount["what"])) and spoken["letter"] in letters:
        others, blocks = letters.replace(spoken["letter"], ""), "block" in (spoken["many"] or "")
        yield Occurrences(place, grid, spoken["letter"], least, most, blocks, others)
    elif grid and how != "at most" and len(letters) <= 6 and re.search(r"cell|square|block|tile|position", sentence):
        for letter in letters:  # a cell of a kind: which letter it is need not be known, where all can be had
            need = Occurrences(place, grid, letter, least, most, False, letters.replace(letter, ""))
            if all(need.kept(scope) for scope in samples):
                yield need


def _amount(text: str, limits: StatedLimits) -> Expression | None:
    text = _NUMERALS.get(text, text)
    return expression(text) if text.isdigit() or text in limits.names else None


def _standing(sentence: str, place: Spot, grid: bool, letters: str) -> Iterator[Standing]:
    if (at := _AT.search(sentence)) and at["name"].partition("_")[0] == place.name:
        what = at["what"].rstrip(".").strip("'\"") if len(at["what"]) < 5 else at["what"]
        said = what if len(what) == 1 else alphabet(at["what"])
        wanted = "".join(sorted(set(letters) - set(said))) if at["no"] else said
        if said and wanted:
            yield Standing(place, False, None, expression(_ORDINALS[at["at"]]), bool(at["on"]), wanted)
    if grid and (cells := _CELLS.match(sentence)) and cells["letter"] in letters:
        for cell in _CELL.finditer(sentence):
            if cell["name"] == place.name:
                try:
                    row, column = expression(cell["row"]), expression(cell["column"])
                except ValueError:
                    continue
                yield Standing(place, True, row, column, False, cells["letter"])
