"""Draw values for a layout: counts by size, numbers in several styles, words, permutations, trees and graphs.

Small inputs come in large numbers, so they differ in style rather than in size: all equal, few different values, the
ends of a range, sorted, around zero. Inputs at the limits spend the budget of elements that a size allows.
"""

from __future__ import annotations

import math
import random
import re
from typing import Any

from ..reading.relations import names, value
from .edges import Edges, drawn_edges
from .guarantees import Guarantees
from .limits import ENDLESS, Env, Spot, StatedLimits, gather
from .shape import Block, Field, InputLine, Layout, Misfit, Node, Retry, Scope, block_at, count_names, counted, spelled
from .styles import Hull, Styles

ELEMENTS = 200_000  # values in an input at the limits


class Draw(Styles):
    """One input in the making."""

    def __init__(
        self, layout: Layout, limits: StatedLimits, known: Guarantees, hull: Hull, rng: random.Random, size: float
    ) -> None:
        super().__init__(known, hull, rng)
        self.layout, self.limits, self.size = layout, limits, size
        self.places = {(place.path, place.field.name): place for place in limits.places}
        self.budget = max(3, round(math.exp(math.log(4) + size * (math.log(ELEMENTS) - math.log(4)))))
        self.counts = count_names(layout.body)
        for edges in known.edges:  # the number of vertices is a size, even where no list is as long as it
            for relation in limits.about[edges.ends[0]] + limits.about[edges.ends[1]]:
                if relation.op in ("<=", "<") and relation.right in limits.names:
                    self.counts.setdefault(relation.right, set())
        self.left = {id(one): one.most for one in known.sums}
        self.cases, self.made = 1, 0

    def scope(self) -> Scope:
        top = Scope()
        self.fill(self.layout.body, top, (), {})
        self.mend(top)
        return top

    def mend(self, scope: Scope) -> None:
        """Put letters where guarantees want them."""
        for need in [*self.known.needs, *self.known.needs]:
            need.mend(scope, self.rng)

    def fill(self, nodes: tuple[Node, ...], scope: Scope, path: tuple[str, ...], env: Env) -> None:
        scope.env = env
        for node in nodes:
            if isinstance(node, Block):
                self.block(node, scope, path, env)
                continue
            if isinstance(node, InputLine):
                line = node
            else:
                scope[node.key] = self.rng.randrange(len(node.lines))
                line = node.lines[scope[node.key]]
            for field in line.fields:
                if field.kind != "tag" and field.name not in scope:
                    scope[field.name] = env[spelled(field.name)] = self.one(
                        self.places[path, field.name], field, env, scope
                    )

    def block(self, node: Block, scope: Scope, path: tuple[str, ...], env: Env) -> None:
        try:
            number = counted(node.count, scope)
        except Misfit:
            raise Retry from None
        self.made += number
        if self.made > max(1000, 20 * self.budget):  # far more than was asked for
            raise Retry
        inner = (*path, node.key)
        given = next((self.edges(e, number, env) for e in self.known.edges if e.path == inner), None)
        given = self.columns(node, inner, number, env, given)
        children: list[Scope] = []
        scope[node.key] = children
        whole = any(isinstance(one, Block) for one in node.body) or len(node.body) > 1
        before: Env = {}
        follows = any("__prev" in r.right for p in self.limits.places if p.path == inner for r in self.limits.about[p])
        if whole:
            self.cases = max(1, number)
        for k in range(number):
            child, around = Scope(scope), dict(env)
            around.update(before)
            if given:
                for name, one in given[k].items():
                    child[name] = around[spelled(name)] = one
            if whole and self.rng.random() < 0.5:
                self.style.clear()
                self.fixed.clear()
            self.fill(node.body, child, inner, around)
            if whole:
                self.cases = max(1, number - k - 1)
                self.spend(child, inner)
            elif follows:
                before = {f"{name}__prev": around[name] for name in around if name not in env and "__" not in name}
            children.append(child)
        for row in self.known.together:
            if row[0].path == inner:
                self.apart(row, node, children, env)
        for place in self.limits.places:
            if place.path == inner and place.field.count is None and number > 1:
                self.arrange(place, children)
        gather(env, node, children)

    def columns(
        self, node: Block, path: tuple[str, ...], number: int, env: Env, given: list[dict[str, Any]] | None
    ) -> list[dict[str, Any]] | None:
        """The rows of a block with the numbers whose bounds are the same in every row; one draw for each column."""
        if number < 2 or len(node.body) > 1 or not isinstance(node.body[0], InputLine):
            return given
        before: set[str] = set()
        rows: list[dict[str, Any]] = given or [{} for _ in range(number)]
        for field in node.body[0].fields:
            place = self.places.get((path, field.name))
            if place is None or field.name in rows[0]:
                continue
            if field.kind == "int" and field.count is None and place.name not in self.counts:
                if not self.depends(place, before):
                    low, high, unequal = self.range(place, env)
                    column = self.values(place, self.styled(place), low, high, unequal, number)
                    for one, found in zip(rows, column, strict=True):
                        one[field.name] = found
                    self.differ(place, rows, low, high)
            before.add(place.name)
        return rows

    def differ(self, place: Spot, rows: list[dict[str, Any]], low: float, high: float) -> None:
        """Draw a number again where it is equal to another one of its row and must not be."""
        name = place.field.name
        for relation in self.limits.about[place]:
            if relation.op != "!=" or relation.right not in self.limits.names:
                continue
            other = self.limits.names[relation.right][0]
            if other.path == place.path and other.field.name in rows[0]:
                for row in rows:
                    if row[name] == row[other.field.name]:
                        row[name] = self.value(place, "wide", low, high, [row[name]])

    def depends(self, place: Spot, before: set[str], depth: int = 0) -> bool:
        """Whether the bounds of a number depend on the row that it stands in: on what is drawn before it."""
        hull = self.hull
        if any(before & set(found.get(place, ())) for found in (hull.under, hull.over, hull.unlike)):
            return True
        for relation in self.limits.about[place]:
            if relation.op == "!=" and relation.right in before:
                continue  # `differ` sees to it
            used = names(relation.right)
            if "__" in relation.right or "[" in relation.right or used & before:
                return True
            for name in used & set(self.limits.names):
                other = self.limits.names[name][0]
                if depth < 3 and other.path == place.path and self.depends(other, before, depth + 1):
                    return True
        return False

    def apart(self, row: tuple[Spot, ...], node: Block, children: list[Scope], env: Env) -> None:
        """Draw rows again that are equal to one before them."""
        fields = [place.field.name for place in row]
        seen: set[tuple[Any, ...]] = set()
        left: list[tuple[int, ...]] | None = None
        for child in children:
            key = tuple(child[name] for name in fields)
            for _ in range(20):
                if key not in seen:
                    break
                around = dict(child.env)
                for place in row:
                    del child[place.field.name], around[place.name]
                self.style.update(dict.fromkeys(row, "wide"))
                self.fill(node.body, child, row[0].path, around)
                key = tuple(child[name] for name in fields)
            if key in seen:
                if left is None:
                    taken = seen | {tuple(one[name] for name in fields) for one in children}
                    left = [one for one in self.pairs(row, env) if one not in taken]
                    self.rng.shuffle(left)
                if not left:
                    raise Retry
                key = left.pop()
                for name, place, one in zip(fields, row, key, strict=True):
                    child[name] = child.env[place.name] = one
            seen.add(key)

    def pairs(self, row: tuple[Spot, ...], env: Env) -> list[tuple[int, ...]]:
        """Every pair of values that two fields of a row may have; nothing where these are too many."""
        if len(row) != 2:
            return []
        low, high, _ = self.range(row[0], env)
        if high - low > 2000:
            return []
        found: list[tuple[int, ...]] = []
        for first in range(int(low), int(high) + 1):
            try:
                least, most, unequal = self.range(row[1], {**env, row[0].name: first})
            except Retry:
                continue
            if most - least > 2000 or len(found) > 500_000:
                return []
            found += [(first, second) for second in range(int(least), int(most) + 1) if second not in unequal]
        return found

    def spend(self, child: Scope, path: tuple[str, ...]) -> None:
        for one in self.known.sums:
            if one.path == path:
                try:
                    self.left[id(one)] -= int(value(one.term, child.env))
                except Exception:  # a term that has no value here
                    continue

    def arrange(self, place: Spot, children: list[Scope]) -> None:
        """Put a column in order, or make it a permutation or distinct."""
        order = self.known.rising.get(place)
        if place in self.known.permutation or place in self.known.distinct or order:
            values = [child[place.field.name] for child in children]
            low, high = 0.0, 0.0  # of words, which need none
            if place.field.kind != "word":
                own = {k: v for k, v in children[0].env.items() if not k.endswith("__prev")}
                low, high, _ = self.range(place, own)
            values = self.shaped(place, values, low, high)
            for child, one in zip(children, values, strict=True):
                child[place.field.name] = child.env[place.name] = one

    # --- one field

    def one(self, place: Spot, field: Field, env: Env, scope: Scope) -> Any:
        if field.kind == "real":
            if field.count is not None:
                raise Retry
            return self.real(place)
        if field.count is None:
            return self.word(place, env, scope) if field.kind == "word" else self.number(place, env)
        try:
            number = counted(field.count, scope)
        except Misfit:
            raise Retry from None
        if field.kind == "word":
            return self.shaped(place, [self.word(place, env, scope) for _ in range(number)], 0, 0)
        low, high, unequal = self.range(place, env)
        indexed = [r for r in self.limits.about[place] if "[" in r.right]
        style = self.styled(place)
        if indexed:
            values: list[int] = []
            env = dict(env)
            env[place.name] = values
            index = {name for r in indexed for name in _indices(r.right)}
            for k in range(number):
                env.update(dict.fromkeys(index, k))
                here = self.range(place, env)
                values.append(self.value(place, style, *here))
        elif field.start == 2 and any(r.right in ("i", "j", "v") for r in self.limits.about[place]):
            values = [self.rng.choice((1, k + 1, self.rng.randint(1, k + 1))) for k in range(number)]  # parents
            return values
        else:
            values = self.values(place, style, low, high, unequal, number)
        values = self.shaped(place, values, low, high)
        if not indexed and place not in self.known.rising and place not in self.known.permutation:
            order = self.rng.choice(("", "", "", "", "rising", "falling"))
            if order:
                values.sort(reverse=order == "falling")
        return values

    def shaped(self, place: Spot, values: list[Any], low: float, high: float) -> list[Any]:
        """The list as the guarantees want it."""
        rng = self.rng
        if place in self.known.permutation:
            start = 0 if self.hull.low.get(place) == 0 and low <= 0 else 1
            values = list(range(start, start + len(values)))
            kind = rng.random()
            if kind < 0.6:
                rng.shuffle(values)
            elif kind < 0.7:
                values.reverse()
            elif kind < 0.85 and len(values) > 1:
                a, b = rng.sample(range(len(values)), 2)
                values[a], values[b] = values[b], values[a]
        if place in self.known.distinct or self.known.rising.get(place) in ("<", ">"):
            values = self.different(place, values, low, high)
        order = self.known.rising.get(place)
        if order:
            values = sorted(values, reverse=order in (">", "≥"))
        return values

    def range(self, place: Spot, env: Env) -> tuple[float, float, list[Any]]:
        """Bounds of a number; the hull of the existing tests where the statement has none."""
        low, high, unequal = self.limits.bounds(place, env)
        if place in self.known.permutation:
            return max(low, 0), min(high, ELEMENTS), unequal
        if low == -ENDLESS or high == ENDLESS:
            self.hull.used.add(place.field.name)
            if low == -ENDLESS:
                low = min(self.hull.low.get(place, 0), high)
                if place.name in self.counts:
                    low = max(low, 0)
            if high == ENDLESS:
                high = max(self.hull.high.get(place, 1), low)
            high = min([high, *(env[name] for name in self.hull.under.get(place, ()) if name in env)])
            low = max([low, *(env[name] for name in self.hull.over.get(place, ()) if name in env)])
            unequal = [*unequal, *(env[name] for name in self.hull.unlike.get(place, ()) if name in env)]
        if low > high:
            raise Retry
        return low, high, unequal

    def number(self, place: Spot, env: Env) -> int:
        low, high, unequal = self.range(place, env)
        if place.name in self.counts:
            return self.count(place, int(low), int(high), env)
        return self.value(place, self.styled(place), low, high, unequal)

    def count(self, place: Spot, low: int, high: int, env: Env) -> int:
        """How many: within what the size allows, shared with the counts that it multiplies with."""
        rng = self.rng
        room = self.budget
        for other in self.counts[place.name]:
            if isinstance(env.get(other), int) and other != place.name:
                room = max(1, room // max(1, env[other]))
        for one in self.known.sums:
            if place.name in one.term and one.path == place.path:
                spare = max(0, self.left[id(one)])
                high = min(high, spare // self.cases if rng.random() < 0.7 else spare - low * (self.cases - 1))
        for edges in self.known.edges:
            if edges.simple and not edges.tree and place.name in self.block_count(edges):
                ends = [self.limits.bounds(end, env) for end in edges.ends]
                vertices = int(min(ends[0][1] - ends[0][0], 10**6)) + 1
                high = min(high, vertices * (vertices - 1) // 2)
            if edges.connected and place.name in self.block_count(edges):
                ends = [self.limits.bounds(end, env) for end in edges.ends]
                low = max(low, int(min(ends[0][1] - ends[0][0], 10**6)))
        if self.is_cases(place):
            most = min(high, max(low, room))
            if self.size < 0.5:
                few = rng.choice((1, 2, 3, rng.randint(1, 10), rng.randint(10, 60)))
                return max(low, min(high, few))
            return rng.choice((max(low, 1), most, max(low, min(most, 10)))) if low <= most else low
        if low > high:
            raise Retry
        most = max(low, min(high, room))
        least = low if self.size < 0.7 or rng.random() < 0.2 else max(low, int(most * 0.9))
        return rng.choice((most, rng.randint(least, most), rng.randint(least, most), least))

    def edges(self, edges: Edges, number: int, env: Env) -> list[dict[str, int]]:
        ends = [self.limits.bounds(end, env) for end in edges.ends]
        low, high = min(end[0] for end in ends), max(end[1] for end in ends)
        if low == -ENDLESS or high == ENDLESS:
            raise Retry
        about = self.limits.about[edges.ends[0]]
        rising = any(r.op in ("<", "<=") and r.right == edges.ends[1].name for r in about)
        return drawn_edges(edges, number, int(low), int(min(high - low + 1, ELEMENTS)), rising, self.rng)

    def block_count(self, edges: Edges) -> str:
        block = block_at(self.layout.body, edges.path)
        return block.count.text if block else ""

    def is_cases(self, place: Spot) -> bool:
        return (
            any(
                isinstance(node, Block)
                and node.count.text.strip() == place.field.name
                and (len(node.body) > 1 or any(isinstance(one, Block) for one in node.body))
                for node in self.layout.body
            )
            and not place.path
        )

    # --- words

    def word(self, place: Spot, env: Env, scope: Scope) -> str:
        rng = self.rng
        if place.field.name in self.hull.used and place in self.hull.refers:
            pool = self.hull.pool(place, self.hull.refers[place], scope)
            pool = [word for word in pool or () if all(env.get(n) != word for n in self.hull.unlike.get(place, ()))]
            if not pool:
                raise Retry
            return rng.choice(pool)
        if place in self.known.choices:
            return rng.choice(self.known.choices[place])
        if place.field.length is not None:
            try:
                long = counted(place.field.length, scope)
            except Misfit:
                raise Retry from None
        else:
            low, high, _ = self.limits.bounds(place, env, quantity=f"len({place.name})")
            if low == -ENDLESS:
                low = self.hull.low.get(place, 1)
                self.hull.used.add(place.field.name)
            if high == ENDLESS:
                high = max(low, self.hull.high.get(place, 1))
                self.hull.used.add(place.field.name)
            for one in self.known.sums:
                if place.name in one.term:
                    high = min(high, max(low, self.left[id(one)] // self.cases))
            high = max(low, min(high, self.budget))
            long = rng.choice((int(high), rng.randint(int(low), int(high)), rng.randint(int(low), int(high)), int(low)))
        return self.spelt(place, long)


def _indices(source: str) -> set[str]:
    return set(re.findall(r"\[(\w+)(?:\s?[-+]\s?\d+)?\]", source))
