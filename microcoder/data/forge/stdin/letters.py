"""What a sentence says of words: the letters they are made of, and lists of words to choose from."""

from __future__ import annotations

import re
import string

from .guarantees import Guarantees
from .limits import StatedLimits
from .shape import Scope, listed, scopes


def read_letters(sentence: str, limits: StatedLimits, found: Guarantees, samples: list[Scope]) -> bool:
    """Keep the alphabets and the lists of words that a sentence gives; whether it gives any."""
    understood = False
    for place in limits.places:
        if place.field.kind != "word":
            continue
        seen = {
            word
            for scope in samples
            for one in scopes(scope, place.path)
            if place.field.name in one
            for word in listed(one[place.field.name])
        }
        used = set("".join(seen))
        text = limits.prepared(sentence)
        direct = re.search(rf"(?<![A-Za-z]){re.escape(place.name)}(?![A-Za-z])", text)
        if not direct and not re.search(r"string|character|letter|symbol|digit|word|grid|cell", sentence, re.I):
            continue
        if place not in found.choices and direct and seen and max(map(len, seen)) <= 12:
            said = re.split(r"(?:\b(?:is|are|one of|either|be|∈|=)\s)", sentence, maxsplit=1)[-1]
            said = re.sub(r"^(?:one of|either|the)\s+", "", said)
            offered = [w.strip("'\"`.{}()\\ ") for w in re.split(r",|\bor\b|\band\b|/", said)]
            offered = [w for w in offered if w and " " not in w]
            if seen <= set(offered) and 2 <= len(offered) <= 12:
                found.choices[place] = list(dict.fromkeys(offered))
                understood = True
                continue
        letters = alphabet(sentence)
        if letters and re.search(r"\bsymbols\b", sentence) and not set(string.punctuation).isdisjoint(used):
            letters += "".join(sorted(used & set(string.punctuation) - set(letters)))  # those that the tests show
        if letters and place.field.spaces and re.search(r"\bspaces\b", sentence):
            letters = " " + letters
        if letters and used <= set(letters) and (direct or place not in found.alphabet):
            found.alphabet[place] = letters
            understood = True
    return understood


_SIGNS = ((r"\b(?:dots|full stops|periods)\b", "."), (r"\bunderscores\b", "_"), (r"\bhyphens\b", "-"))


def alphabet(sentence: str) -> str:
    """The characters that a sentence allows; "" if it speaks of none."""
    low = sentence.lower()
    found: set[str] = set()
    if re.search(r"lower-? ?case|small (?:latin|english)", low):
        found |= set(string.ascii_lowercase)
    if re.search(r"upper-? ?case|capital|upper (?:and|or) lower-? ?case", low):
        found |= set(string.ascii_uppercase)
    if re.search(r"lower (?:and|or) upper-? ?case", low):
        found |= set(string.ascii_lowercase)
    if not found and re.search(r"(?:latin|english) (?:letters|alphabet|characters)|alphabetic(?:al)? letters", low):
        found |= set(string.ascii_letters)
    if span := re.search(r"(?<!\w)'?([A-Za-z])'?(?: (?:to|through|-) |-)'?([A-Za-z])'?(?![A-Za-z])", sentence):
        if (
            span[1] < span[2]
            and (span[1].islower() == span[2].islower())
            and ord(span[2]) - ord(span[1]) < 26
            and "letter" not in low
        ):
            found |= {chr(n) for n in range(ord(span[1]), ord(span[2]) + 1)}
    if span := re.search(r"'?(\d)'? (?:to|through|and) '?(\d)'?", sentence):
        if "digit" in low and span[1] < span[2]:
            found |= {chr(n) for n in range(ord(span[1]), ord(span[2]) + 1)}
    elif re.search(r"\bdigits\b", low):
        found |= set(string.digits)
    if found and not re.search(r"\b(?:no|not|without|except|represents?|denotes?)\b", low):
        for word, sign in _SIGNS:
            found |= set(sign) if re.search(word, low) else set()
    if found and (own := re.search(r"\beither an? [\w ]{0,30}(?:letter|digit) or ([^\w\s])\.?$", sentence)):
        found.add(own[1])
    if re.search(r"binary string", low):
        found |= set("01")
    if re.search(r"bracket|parenthes", low) and "'" not in sentence and not found:
        found |= set("()")
    for quoted in re.findall(r"['\"`“‘](.{1,3}?)['\"`”’]", sentence):
        found |= set(quoted.replace(" ", ""))
    bare = re.sub(r"\.? ?\(\d ≤ .{1,40}\)\.?$", "", sentence)
    said = list(
        re.finditer(
            (
                r"(?:consist(?:s|ing)?(?: only)? of|contain(?:s|ing)?(?: only)?|\bis"
                r"|\bare|either|one of|string of|characters?|∈)\s"
            ),
            bare,
        )
    )
    if not found and said:
        rest = bare[said[-1].end() :]
        rest = rest.removesuffix(".") if not rest.endswith((" .", "., .")) or rest.endswith("..") else rest
        rest = re.sub(r"^(?:the |only |of |characters? |letters? |one of |symbols? )*", "", rest)
        parts = [
            p.strip(" {}")
            for p in re.split(r",\s|\s(?:and|or)\s|,$", rest.replace(", and ", ", ").replace(", or ", ", "))
        ]
        if len(parts) > 1 and all(len(p) == 1 for p in parts):
            found |= set(parts)
    return "".join(sorted(found))
