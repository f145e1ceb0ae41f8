"""Prompts for problems, used by training, evaluation and data.

Our own styles, for training and for any problem file, say what the judge will do with the answer: which function it
calls, or that it feeds standard input; which classes its tests bring along; and that the code is taken from a fenced
block. `code` asks for the program alone, `reason` for the approach in plain words before it.

The other styles are those that published scores of a suite were made with. Their sentences are quoted, since a score
depends on each word:

    livecodebench   its runner's prompt for chat models, system message included (MIT)
    humaneval       the instruction of simple-evals, by HumanEval's authors (MIT), before the function's header
    mbpp            the prompt of the paper Program Synthesis with Large Language Models, without its examples;
                    where tests use a class that the answer has to define (367: Node), the class follows the tests;
                    of MBPP+ the one assert that its prompt shows stands for the tests

`feedback` is the message between two tries.
"""

from __future__ import annotations

import ast
import re
import warnings

from .schema import Problem, Verdict, nearest

ANSWER = "Put the answer in one ```python block."
OURS = {  # style: the last sentences of its prompts
    "code": ANSWER,
    "reason": "First work out the approach step by step, in plain words and without code blocks. "
    "Then put the answer in one ```python block at the end.",
}
STYLES = (*OURS, "livecodebench", "humaneval", "mbpp")
SHOWN = ("nothing", "verdict", "error", "difference")  # what a model may see of a verdict
Message = dict[str, str]

_LCB_SYSTEM = (
    "You are an expert Python programmer. You will be given a question (problem specification) and will generate a "
    "correct Python program that matches the specification and passes all tests."
)
_LCB_STARTER = (
    "You will use the following starter code to write the solution to the problem and enclose your code within "
    "delimiters."
)
_LCB_STDIN = (
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly test on the sample "
    "inputs). Enclose your code within delimiters as follows. Ensure that when the python program runs, it reads the "
    "inputs, runs the algorithm and writes output to STDOUT."
)
_HUMANEVAL = (
    "Read the following function signature and docstring, and fully implement the function described. Your response "
    "should only contain the code for this function.\n"
)


def prompt(problem: Problem, style: str = "code") -> str:
    """Return the user's message for a problem, in one of our styles."""
    contract, code = _contract(problem)
    asked = f"{contract}\n```python\n{code}\n```\n{OURS[style]}" if code else f"{contract} {OURS[style]}"
    return "\n\n".join([problem.statement.strip(), *_given(problem), asked])


def says(problem: Problem) -> bool:
    """Whether a prompt of ours tells what is asked: by statement, starter code, or an assert that it shows."""
    named = problem.kind != "assert" or bool(problem.entry_point)
    return bool(problem.statement.strip() or problem.starter_code.strip()) or not named


def messages(problem: Problem, style: str = "code") -> list[Message]:
    """Return the chat messages for a problem, for the model's chat template."""
    if style == "livecodebench":
        return [_message("system", _LCB_SYSTEM), _message("user", _livecodebench(problem))]
    if style == "humaneval":
        return [_message("user", _HUMANEVAL + problem.starter_code)]
    if style == "mbpp":
        return [_message("user", _mbpp(problem))]
    if style not in OURS:
        raise ValueError(f"there is no style of prompts {style!r}; known are {', '.join(STYLES)}")
    return [_message("user", prompt(problem, style))]


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _livecodebench(problem: Problem) -> str:
    kind, code = (_LCB_STARTER, problem.starter_code) if problem.starter_code else (_LCB_STDIN, "# YOUR CODE HERE")
    return (
        f"### Question:\n{problem.statement}\n\n### Format: {kind}\n```python\n{code}\n```\n\n"
        "### Answer: (use the provided format with backticks)\n\n"
    )


def _mbpp(problem: Problem) -> str:
    task, tests = problem.statement, "\n".join(problem.asserts)
    if problem.kind == "function":  # of MBPP+, whose statement ends in an assert
        task, _, shown = task.partition("\nassert ")
        tests = f"assert {shown}"
    asked = (
        f"You are an expert Python programmer, and here is your task: {task} "
        f"Your code should pass these tests:\n\n{tests}"
    )
    used = _before_the_function(problem.starter_code)
    return f"{asked}\n\nThe tests use this, which your code should define too:\n\n{used}" if used else asked


def _before_the_function(starter: str) -> str:
    """The classes and imports of a starter code that ends in a function's header."""
    try:
        body = ast.parse(f"{starter} pass").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ""
    return "\n\n".join(ast.unparse(n) for n in body if isinstance(n, (ast.ClassDef, ast.Import, ast.ImportFrom)))


def _given(problem: Problem) -> list[str]:
    """Return the classes of the setup that the asserts construct and that neither statement nor starter code shows."""
    if problem.kind != "assert" or "class " not in problem.setup:
        return []
    try:
        with warnings.catch_warnings():  # of "\\d" in a string
            warnings.simplefilter("ignore")
            setup, tests = ast.parse(problem.setup), ast.parse("\n".join(problem.asserts))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    calls = (node.func for node in ast.walk(tests) if isinstance(node, ast.Call))
    made = {function.id for function in calls if isinstance(function, ast.Name)}
    text = f"{problem.statement}\n{problem.starter_code}"
    classes = [node for node in setup.body if isinstance(node, ast.ClassDef) and node.name in made]
    shown = [ast.unparse(node) for node in classes if not re.search(rf"\bclass {node.name}\b", text)]
    return ["The tests define and use:\n```python\n{}\n```".format("\n\n".join(shown))] if shown else []


def _contract(problem: Problem) -> tuple[str, str]:
    """Return (what the model has to write, the code to show with it or "")."""
    starter = problem.starter_code.strip()
    owner, _, name = problem.entry_point.rpartition(".")
    if problem.kind == "stdin":
        contract = "Write a Python program that reads standard input and prints to standard output."
    elif owner:
        contract = f"Write the Python class `{owner}` with the method `{name}`."
    elif name:
        contract = f"Write the Python function `{name}`."
    elif starter:
        contract = "Write Python code."
    else:  # asserts without a name for what they call: one of them has to be shown, or nobody could know it
        return "Write Python code that makes this hold:", problem.asserts[0].strip()
    return (f"{contract} Complete this:", starter) if starter else (contract, "")


_MEANING = {
    "wrong_answer": "gives a wrong answer",
    "time_limit": "takes too long",
    "memory_limit": "takes too much memory",
    "output_limit": "writes too much output",
    "runtime_error": "fails while it runs",
    "compile_error": "is not valid code",
    "no_code": "was not found: the answer has no complete fenced code block",
}


def check_shown(show: str) -> str:
    """Return `show`; raise ValueError if there is no such level."""
    if show not in SHOWN:
        raise ValueError(f"show is {show!r}{nearest(show, SHOWN) or '; it is one of ' + ', '.join(SHOWN)}")
    return show


def feedback(problem: Problem, verdict: Verdict, show: str = "verdict") -> str:
    """Return the message to a model whose program failed. What it may see of the verdict (`show`), from little to much:

    nothing      that the program is not right
    verdict      the kind of failure, such as wrong_answer or time_limit. (default)
    error        also what the program itself did wrong: its exception, its syntax error, the time it took. Never what
                 was expected. The exception may carry the test's input, where the program puts it there.
    difference   the judge's whole message: for a wrong answer what was expected, as far as the first difference. A
                 second try can print what the first was told, so give its reward less weight, or use other tests.
    """
    said = "is not right" if show == "nothing" else _MEANING.get(verdict.verdict, "is not right")
    # an assert is quoted in a message, and holds what is expected
    own = verdict.verdict not in ("wrong_answer", "internal_error") and problem.kind != "assert"
    own = own or verdict.verdict == "compile_error"
    if verdict.message and (show == "difference" or (show == "error" and own)):
        said += f" ({verdict.message})"
    return f"Your program {said}. Write the whole program again, corrected, in one fenced code block."
