"""What the docs site is made of besides docs/: pages generated from the code, and files of the repository's root.

mkdocs calls the hooks (mkdocs.yml names this file):

1. `reference/commands.md` and `reference/settings.md` are written from the commands' help and from the settings.
2. CHANGELOG.md, CONTRIBUTING.md, SECURITY.md and benchmarks/README.md become pages; links to them lead there.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {  # a file of the repository: the page that it becomes
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "benchmarks/gpu/README.md": "project/benchmarks-gpu.md",
}


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    pages = {"reference/commands.md": commands(), "reference/settings.md": settings()}
    pages |= {page: (ROOT / source).read_text(encoding="utf-8") for source, page in OUTSIDE.items()}
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links between docs/ and the rest of the repository to the pages that the files become."""
    here = page.file.src_uri
    source = next((source for source, target in OUTSIDE.items() if target == here), f"docs/{here}")

    def lead(match: re.Match[str]) -> str:
        path, anchor = match[1], match[2] or ""
        if "://" in path or path.startswith("mailto:"):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        target = OUTSIDE.get(target, target.removeprefix("docs/") if target.startswith("docs/") else "")
        if not target:  # not a page: mkdocs names it as a dead link
            return match[0]
        return f"]({posixpath.relpath(target, posixpath.dirname(here) or '.')}{anchor})"

    return re.sub(r"\]\(([^)#\s]+)(#[^)\s]*)?\)", lead, markdown)


def settings() -> str:
    """The page of settings: a table for each section, and the settings of `data run` as a file."""
    from microcoder.config import Config, expected, toml_value
    from microcoder.config import settings as every

    lines = [
        "# Settings",
        "",
        "Every setting of `microcoder train`, as `section.key=value` on the command line or under `[section]` in a "
        "TOML file. `microcoder config` prints the same as a file. This page is generated from the code.",
    ]
    for section, about in Config.model_fields.items():
        lines += [
            "",
            f"## {section}",
            "",
            about.description or "",
            "",
            "| key | default | takes | meaning |",
            "|---|---|---|---|",
        ]
        for name, field in every(section):
            words = [
                f"`{toml_value(field.default)}`",
                expected(field.annotation, field.metadata),
                field.description or "",
            ]
            lines.append(f"| `{name}` | " + " | ".join(map(_cell, words)) + " |")
    lines += ["", "## Settings of `microcoder data run`", "", "```toml", _printed("data", "config"), "```"]
    return "\n".join(lines) + "\n"


def commands() -> str:
    """The page of commands: each one's help as the terminal shows it."""
    from microcoder.cli import cli

    lines = [
        "# Commands",
        "",
        "What `microcoder COMMAND --help` prints. Exit status: 0 done, 1 done with faults that were named, 2 asked for "
        "in a wrong way, 130 Ctrl-C. This page is generated from the code.",
    ]
    for words, about in _commands(cli, ()):
        lines += ["", f"{'#' * (1 + len(words))} microcoder {' '.join(words)}", "", "```text", about, "```"]
    return "\n".join(lines) + "\n"


def _commands(group: Any, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    import click

    context = click.Context(group, info_name=" ".join(("microcoder", *above)))
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        words = (*above, name)
        if command is None or command.hidden:
            continue
        runs = command.get_command(context, "run") if isinstance(command, click.Group) else None
        default = runs if runs is not None and runs.hidden else None  # `eval MODEL` is the hidden `eval run MODEL`
        shown = default or command
        path = click.Context(
            click.Group("microcoder"), info_name="microcoder " + " ".join(above) if above else "microcoder"
        )
        inner = click.Context(shown, info_name=name, parent=path, max_content_width=96, terminal_width=96)
        yield words, shown.get_help(inner).strip()
        if isinstance(command, click.Group):
            yield from _commands(command, words)


def _printed(*words: str) -> str:
    from click.testing import CliRunner

    from microcoder.cli import cli

    done = CliRunner().invoke(cli, list(words), catch_exceptions=False)
    return done.output.rstrip()


def _cell(text: str) -> str:
    text = text.replace("|", "\\|").replace("\n", " ")
    return re.sub(r"<(?=\w)", "&lt;", text)


if __name__ == "__main__":
    os.write(1, {"settings": settings, "commands": commands}[sys.argv[1]]().encode())
