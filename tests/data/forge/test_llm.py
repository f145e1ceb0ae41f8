"""Generators and validators that a language model writes: used where they hold, and never needed."""

from __future__ import annotations

import json

import pytest
from chat_server import chat_server
from click.testing import CliRunner

from microcoder import load_problems
from microcoder.cli import cli
from microcoder.data.endpoint import EndpointError
from microcoder.data.forge.llm import Author, NotWritten
from microcoder.data.forge.run import ProgramRunner
from microcoder.files import write_problems
from microcoder.judge import Judge
from microcoder.schema import Problem, Test

WORDS = """Here it is:

```python
def generate(rng, size):
    return {made}

def valid(input):
    return {valid}
```
"""
TOKENS = 'f"{rng.choice([7, 8])}?{rng.randint(1, 9 + int(90 * size))}\\n"'
GOOD = WORDS.format(made=TOKENS, valid='input.count("?") == 1 and int(input.split("?")[1]) < 1000')
LAX = WORDS.format(made=TOKENS, valid="True")
STRICT = WORDS.format(made=TOKENS, valid='input.startswith("8")')


def strange(ident="strange"):
    """A problem with a layout that nothing is known of."""
    code = 'a, b = input().split("?")\nprint(int(a) * int(b))'
    return Problem(ident, statement="Multiply.", tests=[Test("7?1\n", "7\n")], solutions=[{"code": code}])


def forge(tmp_path, problems, *words):
    write_problems(tmp_path / "in.jsonl", problems)
    small = ["forge.candidates=48", "forge.mutants=8", "judge.workers=1", *words]
    command = ["forge", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out.jsonl", *small]
    return CliRunner().invoke(cli, command)


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCODER_CACHE", str(tmp_path / "cache"))
    with chat_server() as running:
        yield running


def settings(server):
    return ["forge.endpoint=true", f"endpoint.base_url={server.url}", "endpoint.model=m", 'endpoint.key_env=""']


def test_a_problem_without_a_space_is_bounded_by_the_model_and_asks_once(server, tmp_path):
    server.replies = [GOOD]
    done = forge(tmp_path, [strange()], *settings(server))
    assert done.exit_code == 0 and "the language model's generators: used 1" in done.output, done.output
    (found,) = load_problems(tmp_path / "out.jsonl")
    about = found.extra["forge"]
    assert about["bounded_by"] == "llm" and len(found.tests) > 5
    assert {test["by"] for test in about["tests"]} == {"llm"}
    assert all(test.input[1] == "?" for test in found.tests)
    (asked,) = server.asked
    assert "Multiply." in asked["messages"][0]["content"] and "7?1" in asked["messages"][0]["content"]
    assert forge(tmp_path, [strange()], *settings(server), "forge.tests=3").exit_code == 0
    assert len(server.asked) == 1 and len(load_problems(tmp_path / "out.jsonl")[0].tests) == 4  # from the disk


def test_an_endpoint_that_fails_or_writes_nonsense_loses_no_problem(server, tmp_path):
    server.replies = ["I cannot do that.", 400, LAX, STRICT, WORDS.format(made="1 / 0", valid="bool(input[3:])")]
    problems = [strange(f"p{n}") for n in range(5)]
    for n, problem in enumerate(problems):
        problem.statement += f" {n}"
    done = forge(tmp_path, problems, *settings(server), "judge.queue=1")
    assert done.exit_code == 0 and "no_space 5" in done.output, done.output
    said = sorted(one.extra["forge"]["detail"].rpartition(": ")[2] for one in load_problems(tmp_path / "out.jsonl"))
    assert said == [
        "it gives no answer",
        "its answer holds no generate and valid",
        "its validator refuses a test that the problem came with",
        "its validator refuses nothing",
        "none of its inputs can be used",
    ]
    missing = forge(tmp_path, [strange()], "forge.endpoint=true")
    assert missing.exit_code == 2 and "set endpoint.base_url" in missing.output


def test_inputs_of_a_model_keep_to_the_own_space_too_and_a_broken_endpoint_is_left_alone(server, tmp_path):
    code = "def largest(nums: list[int]) -> int:\n    {}\n"
    fields = {
        "kind": "function", "entry_point": "largest", "starter_code": code.format("pass"),
        "statement": "Return the largest.\n\nConstraints:\n\n1 <= nums.length <= 50\n0 <= nums[i] <= 99\n",
        "tests": [Test("[[7]]", "7")], "solutions": [{"code": code.format("return max(nums)")}],
    }  # fmt: skip
    server.replies = [WORDS.format(made="[[rng.choice([5, 777])] * rng.randint(1, 4)]", valid="True")]
    done = forge(tmp_path, [Problem("p", **fields)], *settings(server), "forge.tests=60")
    assert "generators: used 1" in done.output, done.output
    (found,) = load_problems(tmp_path / "out.jsonl")
    assert found.extra["forge"]["bounded_by"] == "constraints"
    assert "llm" in {test["by"] for test in found.extra["forge"]["tests"]}
    assert all(max(json.loads(test.input)[0]) <= 99 for test in found.tests)

    class Broken:
        asked = 0

        def ask(self, *_, **__):
            self.asked += 1
            raise EndpointError("cannot be reached")

    broken = Broken()
    author = Author(broken, 1000)
    said = []
    for _ in range(5):
        with pytest.raises(NotWritten) as why:
            author.ask(strange())
        said.append(str(why.value))
    assert broken.asked == 3 and said[2:4] == [
        "the endpoint fails",
        "the endpoint failed before, and is not asked again",
    ]


def test_the_model_s_code_runs_in_the_sandbox_only(tmp_path):
    class Writes:
        def ask(self, *_, **__):
            made = f"__import__('pathlib').Path({str(tmp_path / 'escaped')!r}).write_text('x') and '7?2\\n'"
            return WORDS.format(made=made, valid="len(input) > 3")

    with Judge(workers=1) as judge:
        runner = ProgramRunner(judge.sandbox)
        with pytest.raises(NotWritten, match="none of its inputs"):
            Author(Writes(), 1000).space(strange(), None, runner)
        runner.close()
    assert not (tmp_path / "escaped").exists()
