"""Where problems come from: platforms by address, addresses by number, and ids for rows that have none."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

_PLATFORMS = {
    "codeforces.com": "codeforces", "atcoder.jp": "atcoder", "leetcode.com": "leetcode", "leetcode.cn": "leetcode",
    "codechef.com": "codechef", "codewars.com": "codewars", "hackerrank.com": "hackerrank", "kattis.com": "kattis",
    "hackerearth.com": "hackerearth", "geeksforgeeks.org": "geeksforgeeks", "u-aizu.ac.jp": "aizu", "spoj.com": "spoj",
}  # fmt: skip


def platform(url: str) -> str:
    """The site's name, where it is known."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return next((name for site, name in _PLATFORMS.items() if host == site or host.endswith(f".{site}")), "")


def codeforces_url(contest: Any, index: Any) -> str:
    """Of problem B of contest 1873; nothing where either is not known."""
    known = str(contest or "").isdigit() and int(contest) > 0 and str(index or "").isalnum()
    return f"https://codeforces.com/problemset/problem/{contest}/{index}" if known else ""


def content_id(*parts: Any) -> str:
    """Twelve letters that stay the same as long as what a row says does."""
    whole = json.dumps(parts, sort_keys=True, default=str).encode()
    return hashlib.sha256(whole).hexdigest()[:12]
