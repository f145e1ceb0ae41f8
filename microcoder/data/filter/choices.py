"""Words of which one template makes many problems: the minimum or the maximum, a square or a rhombus, easy or hard.

Of each line, two different problems may name one word each where they otherwise say the same. So two texts whose
difference is such a pair are two problems, however similar they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection

CHOICES = """
    minimum maximum
    min max
    minimize maximize
    minimal maximal
    smallest largest
    least most
    lowest highest
    shortest longest
    smaller larger bigger
    lower higher upper
    fewer more
    less greater
    sum product difference quotient division
    add subtract multiply divide
    addition subtraction multiplication division
    even odd
    first second third last
    left right
    top bottom
    front back
    start end
    starting ending
    begin end
    before after
    increasing decreasing
    ascending descending
    row column
    rows columns
    horizontal vertical
    clockwise counterclockwise anticlockwise
    prefix suffix substring
    subarray subsequence substring
    inorder preorder postorder
    uppercase lowercase
    positive negative
    profit loss
    push pop
    insert delete
    union intersection
    mean median mode
    binary octal decimal hexadecimal
    celsius fahrenheit
    area perimeter volume circumference diameter
    square rectangle rhombus rombus triangle circle trapezium parallelogram pentagon hexagon octagon
    cube cuboid cone cylinder sphere
    triangular pentagonal hexagonal heptagonal octagonal nonagonal decagonal tetrahedral
    one two three four five six seven eight nine ten
    easy_version simple_version easier_version medium_version hard_version harder_version extreme_version
"""
_LINES = [line.split() for line in CHOICES.strip().splitlines()]
_BIT = {word: n for n, word in enumerate(dict.fromkeys(word for line in _LINES for word in line))}
_MASKS = [sum(1 << _BIT[word] for word in line) for line in _LINES]
_VERSION = re.compile(r"\bthis is (?:an?|the) (\w+ version)\b")
BYTES = 32


def choices(words: Collection[str], text: str) -> int:
    """The words of the table that a text makes use of, as bits; `text` in lower case, for what version it is."""
    versions = {version.replace(" ", "_") for version in _VERSION.findall(text)}
    return sum(1 << _BIT[word] for word in _BIT.keys() & {*words, *versions})


def choose_differently(a: int, b: int) -> bool:
    """Each has a word that the other has not, and both are of one line."""
    return any(a & ~b & mask and b & ~a & mask for mask in _MASKS)
