"""The names a function problem may use without importing them, as on LeetCode, and its node classes."""

from typing import Any

_STARS = "typing collections heapq bisect itertools functools operator string math copy".split()
_MODULES = "sys os math re string collections heapq bisect itertools functools operator json copy typing".split()


class ListNode:
    def __init__(self, val: Any = 0, next: Any = None) -> None:
        self.val = val
        self.next = next


class TreeNode:
    def __init__(self, val: Any = 0, left: Any = None, right: Any = None) -> None:
        self.val = val
        self.left = left
        self.right = right


def make() -> dict[str, Any]:
    """Return a fresh set of these names. Built-in functions keep their names (operator and math both have a `pow`)."""
    import builtins

    names: dict[str, Any] = {}
    for module in reversed(_STARS):
        exec(f"from {module} import *", names)
    for module in _MODULES:
        names[module] = __import__(module)
    names |= {"ListNode": ListNode, "TreeNode": TreeNode}
    return {k: v for k, v in names.items() if not hasattr(builtins, k) and not k.startswith("__")}


def linked_list(cls: Any, values: Any) -> Any:
    """[1, 2] -> 1 -> 2, with the candidate's own class if it has one."""
    if not isinstance(values, list):
        return values
    head = None
    for value in reversed(values):
        node = cls(value)
        node.next = head
        head = node
    return head


def tree(cls: Any, values: Any) -> Any:
    """Level order with None for a missing child, as LeetCode writes trees."""
    if not isinstance(values, list) or not values or values[0] is None:
        return None if isinstance(values, list) else values
    root = cls(values[0])
    waiting = [root]
    rest = iter(values[1:])
    for node in waiting:
        for side in ("left", "right"):
            value = next(rest, None)
            child = None if value is None else cls(value)
            setattr(node, side, child)
            if child is not None:
                waiting.append(child)
    return root
