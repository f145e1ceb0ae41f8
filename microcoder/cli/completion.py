"""`microcoder completion`: the script that completes our commands in a shell, and the words that it offers.

Where we differ from click, whose scripts these were:

1. A word that ends in `=` or `/` is not followed by a space, since more belongs to it.
2. bash cuts words at `=` and `:`. The whole line is read here instead, and the part that bash cut off is left out of
   the answer.
3. Names and files are offered together: `microcoder train` takes either.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from .shown import echo

Words = list[CompletionItem]

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' type value
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" COMP_BREAKS="$COMP_WORDBREAKS" \
%(complete_var)s=bash_complete "$1")
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace
    fi
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a names described open response
    (( ! $+commands[%(prog_name)s] )) && return 1

    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete \
%(prog_name)s)}")

    for type key descr in ${response}; do
        if [[ "$type" == "dir" ]]; then
            _path_files -/
        elif [[ "$type" == "file" ]]; then
            _path_files -f
        elif [[ "$key" == *[=/] ]]; then
            open+=("$key")
        elif [[ "$descr" == "_" ]]; then
            names+=("$key")
        else
            described+=("${key//:/\\\\:}:$descr")
        fi
    done

    (( $#described )) && _describe -V unsorted described -U
    (( $#names )) && compadd -U -V unsorted -a names
    (( $#open )) && compadd -U -V unsorted -S '' -a open
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""


class Bash(BashComplete):
    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Read the words before the cursor, and the one that it stands in."""
        if "COMP_LINE" not in os.environ:
            return super().get_completion_args()
        line = os.environ["COMP_LINE"].encode()[: int(os.environ["COMP_POINT"])].decode(errors="ignore")
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1:].isspace() else ""
        breaks = re.escape(os.environ.get("COMP_BREAKS", "").translate(dict.fromkeys(map(ord, " \t\n\"'<>;|&(@"))))
        cut = re.match(f".*[{breaks}]", incomplete, re.DOTALL) if breaks else None
        self._cut = len(cut[0]) if cut else 0  # characters that bash takes for another word
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        value = item.value[getattr(self, "_cut", 0) :] if item.type == "plain" else item.value
        quoted = re.sub(r"([^\w@%+=:,./~-])", r"\\\1", value)  # a blank in a file's name, say
        return f"{item.type},{quoted}"


class Zsh(ZshComplete):
    source_template = _ZSH


for _shell in (Bash, Zsh):  # fish needs no change: it adds no space after `=` and `/`
    add_completion_class(_shell)


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for your shell. To install it, once:

    \b
    bash:  echo 'eval "$(microcoder completion bash)"' >> ~/.bashrc
    zsh:   echo 'eval "$(microcoder completion zsh)"' >> ~/.zshrc
    fish:  microcoder completion fish > ~/.config/fish/completions/microcoder.fish
    """
    from . import cli

    maker = get_completion_class(shell)
    assert maker is not None  # the choice above holds exactly the shells that click knows
    echo(maker(cli, {}, "microcoder", "_MICROCODER_COMPLETE").source())


# ---- what commands offer for a word, as click's `shell_complete`


def complete_setting(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Complete `section.key=value`."""
    return list(_settings(incomplete))


def complete_config(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Complete a configuration's name, a TOML file, a run, and after it the settings."""
    if ctx.params.get(param.name or "") or "=" in incomplete:
        return list(_settings(incomplete))
    return [*_recipes(incomplete), *_paths(incomplete, ".toml"), *(_settings(incomplete) if incomplete else ())]


def complete_recipe(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Complete a configuration's name."""
    return list(_recipes(incomplete))


def complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Complete a model's name, a run, a model's folder or file, and the settings."""
    if "=" in incomplete:
        return list(_settings(incomplete))
    return [*_models(incomplete), *_paths(incomplete, ".gguf"), *(_settings(incomplete) if incomplete else ())]


def complete_suite(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Complete a suite's name, or a file of problems."""
    return [*_named(incomplete, SUITES), *_paths(incomplete, *PROBLEM_FILES)]


def complete_study(ctx: click.Context, param: click.Parameter, incomplete: str) -> Words:
    """Complete a study's name, a study file, and the settings."""
    if "=" in incomplete:
        return list(_settings(incomplete))
    from ..study.plan import ORDER

    names = _named(incomplete, (*ORDER, "all"))
    return [*names, *_paths(incomplete, ".toml"), *(_settings(incomplete) if incomplete else ())]


SUITES = {
    "livecodebench": "contest problems by release and date; --release v6 is the slice of the paper's Table 1",
    "humaneval": "164 functions from their docstrings",
    "mbpp": "500 short tasks with three asserts each",
    "humanevalplus": "EvalPlus: HumanEval with many more tests; --data names its file",
    "mbppplus": "EvalPlus: 378 tasks of MBPP with many more tests; --data names its file",
    "starter": "100 held-out starter problems",
}
PROBLEM_FILES = (".jsonl", ".json", ".parquet", ".jsonl.gz", ".json.gz")


def _settings(incomplete: str) -> Iterator[CompletionItem]:
    """Offer the settings, or after `=` the values that one takes."""
    from ..config import settings

    key, equals, value = incomplete.partition("=")
    for name, field in settings():
        if not equals and name.startswith(key):
            yield CompletionItem(f"{name}=", help=field.description)
        elif equals and name == key:
            found = list(_values(name, value)) or _named(value, _choices(field.annotation))
            yield from (CompletionItem(f"{key}={item.value}", help=item.help) for item in found)


def _values(name: str, value: str) -> Iterator[CompletionItem]:
    """Offer names and files for the settings whose type does not say what they mean."""
    if name == "grpo.preset":
        from ..config import ABOUT

        yield from _named(value, ABOUT)
    elif name == "model.name":
        yield from [*_models(value), *_paths(value, ".gguf")]
    elif name in ("data.train", "data.test"):
        names = ("none", "held-out", *SUITES) if name == "data.test" else ("starter",)
        yield from [*_named(value, names), *_paths(value, *PROBLEM_FILES)]


def _choices(annotation: Any) -> dict[str, None]:
    """List the values of a type that has few: `Literal`, `bool`, and unions with them."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return dict.fromkeys(str(value) for value in args if value != "")
    if annotation is bool:
        return {"true": None, "false": None}
    if origin is Annotated:
        return _choices(args[0])
    if origin in (Union, UnionType):
        return {choice: None for part in args for choice in _choices(part)}
    return {}


def _named(incomplete: str, names: Iterable[str]) -> Iterator[CompletionItem]:
    about = names if isinstance(names, Mapping) else {}
    return (CompletionItem(name, help=about.get(name)) for name in names if name.startswith(incomplete))


def _recipes(incomplete: str) -> Iterator[CompletionItem]:
    from ..config import about, shipped

    return _named(incomplete, {name: about(path) for name, path in shipped().items()})


def _models(incomplete: str) -> Iterator[CompletionItem]:
    from ..models import known

    return _named(incomplete, {model.name: model.description for model in known()})


def _paths(incomplete: str, *endings: str) -> Iterator[CompletionItem]:
    """Offer folders, and files with one of these endings."""
    head, _, tail = incomplete.rpartition("/")
    head = f"{head}/" if "/" in incomplete else ""
    try:
        entries = sorted(Path(head or ".").expanduser().iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(tail) and (tail or not entry.name.startswith(".")):
            if entry.is_dir():
                yield CompletionItem(f"{head}{entry.name}/")
            elif entry.name.endswith(endings):
                yield CompletionItem(f"{head}{entry.name}")
