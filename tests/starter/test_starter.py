"""The starter problems: right, reproducible, split by composition, and able to tell a slip from an answer."""

from __future__ import annotations

import builtins
import copy
import hashlib
import itertools
import json
import os
import random
import subprocess
import sys

import pytest

from microcoder import Judge, Problem, Solution
from microcoder.judge.extract import code_block
from microcoder.starter import (
    DEPTHS,
    Draft,
    OperationError,
    StarterError,
    answer,
    corpus,
    draw,
    habits,
    operations,
    problems,
    split_of,
)
from microcoder.starter.drafts import PARAMETERS, DraftStep, drafts, inputs, read
from microcoder.starter.generate import build

TYPES = {"int": int, "text": str, "numbers": list, "words": list}
OPERATIONS = [pytest.param(operation, id=name) for name, operation in operations().items()]


@pytest.fixture(scope="module")
def train() -> list[Problem]:
    return problems("train", 600)


@pytest.fixture(scope="module")
def held_out() -> list[Problem]:
    return problems("test", 300)


def digest() -> str:
    drawn = [p.to_dict() for p in [*problems("train", 40, seed=3), *problems("test", 20, seed=3)]]
    answers = [(p.to_dict(), text) for p, text in corpus(60, seed=3)]
    return hashlib.sha256(json.dumps([drawn, answers]).encode()).hexdigest()


def depth(problem: Problem) -> int:
    return len(problem.lineage)


# The table


@pytest.mark.parametrize("operation", OPERATIONS)
def test_code_and_slips_work_on_every_input_and_change_none_in_place(operation):
    for arguments in itertools.product(*(PARAMETERS[name] for name in operation.parameters)):
        for value in itertools.islice(inputs(operation.takes, random.Random(1)), 40):
            before = copy.copy(value)
            for function in operation.functions:
                result = function(value, *arguments)
                assert type(result) is TYPES[operation.gives]
                if operation.gives in ("numbers", "words"):
                    assert {type(item) for item in result} <= {int if operation.gives == "numbers" else str}
                assert value == before


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_slip_differs_from_the_code_and_from_every_other_slip(operation):
    assert 2 <= len(operation.codes) - 1 <= 3
    for first, second in itertools.combinations(operation.functions, 2):
        arguments = tuple(PARAMETERS[name][1] for name in operation.parameters)
        values = itertools.islice(inputs(operation.takes, random.Random(2)), 200)
        assert any(first(value, *arguments) != second(value, *arguments) for value in values)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_code_takes_a_built_in_name_for_a_variable(operation):
    for function in operation.functions:
        assert not {name for name in function.__code__.co_varnames if hasattr(builtins, name)}


def test_no_sentence_asks_for_two_operations():
    sentences = [(operation.takes, sentence) for operation in operations().values() for sentence in operation.says]
    assert len(set(sentences)) == len(sentences)


def test_most_operations_take_a_line_and_some_take_several():
    lines = [operation.codes[0].count("\n") + 1 for operation in operations().values()]
    assert 45 <= len(lines) <= 60
    assert 10 <= sum(n > 1 for n in lines) <= 15
    assert max(lines) <= 5


GOOD = {"type": "int -> int", "says": ["add {k}"], "code": "n = n + {k}", "slips": [["+", "-"]]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type": "int -> float"}, r"write \"A -> B\", each of int, text, numbers, words"),
        ({"says": ["add something"]}, "must name the parameters of the code"),
        ({"slips": [["n", "m"]]}, "'n' occurs 2 times in the code; quote more of it"),
        ({"code": "n = n + {z}", "says": ["add {z}"]}, "{z} is no parameter; choose one of k, m, i, c, p"),
        ({"extra": 1}, "must have type, says, code and slips"),
    ],
)
def test_a_table_that_is_no_operation_says_what_to_write(change, words):
    assert read("add", "arithmetic", GOOD).functions[1](5, 2) == 3
    with pytest.raises(OperationError, match=rf"arithmetic.toml: add.*{words}"):
        read("add", "arithmetic", {**GOOD, **change})


# Drawing


def test_the_same_seed_gives_the_same_problems_in_every_process():
    command = [sys.executable, "-c", "import test_starter; print(test_starter.digest())"]
    folder = os.path.dirname(__file__)
    path = os.pathsep.join([folder, os.path.dirname(folder)])
    runs = [
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": s, "PYTHONPATH": path}, capture_output=True, text=True
        )
        for s in ("1", "2")
    ]
    assert [run.stdout.strip() for run in runs] == [digest()] * 2, runs[0].stderr


def test_another_seed_gives_other_problems_and_a_larger_count_the_same_ones_first(train):
    assert problems("train", 50) == train[:50]
    others = problems("train", 50, seed=1)
    assert len({p.id for p in others} & {p.id for p in train[:50]}) < 10


def test_a_statement_has_the_same_tests_whatever_the_seed():
    first, second = ({p.id: p for p in problems("train", 100, seed, depths=[1])} for seed in (0, 1))
    common = first.keys() & second.keys()
    assert len(common) > 10
    assert all(first[ident] == second[ident] for ident in common)


def test_no_composition_is_in_both_splits_whatever_the_seed():
    lineages = {s: {tuple(p.lineage) for seed in (0, 1) for p in problems(s, 90, seed)} for s in ("train", "test")}
    assert not lineages["train"] & lineages["test"]
    for split, compositions in lineages.items():
        assert {split_of(composition) for composition in compositions} == {split}


def test_a_fifth_of_the_compositions_is_held_out_but_no_single_operation():
    rng = random.Random(0)
    longer = {draw(rng, n).composition for n in DEPTHS[1:] for _ in range(1000)}
    assert 0.18 < sum(split_of(composition) == "test" for composition in longer) / len(longer) < 0.22
    assert {split_of((name,)) for name in operations()} == {"train"}


def test_problems_are_different_and_the_depths_take_turns(train, held_out):
    for found in (train, held_out):
        assert len({p.id for p in found}) == len({p.solutions[0]["code"] for p in found}) == len(found)
    assert [depth(p) for p in train[:12]] == [*DEPTHS, *DEPTHS]
    assert [depth(p) for p in held_out[:10]] == [*DEPTHS[1:], *DEPTHS[1:]]
    assert [depth(p) for p in problems("train", 6, depths=[3, 2])] == [3, 2] * 3


def test_a_depth_that_has_no_more_problems_leaves_its_turns_to_the_others():
    found = problems("train", 600, depths=[1, 2])
    single = sum(depth(p) == 1 for p in found)
    assert 150 < single < 250
    assert {depth(p) for p in found[-50:]} == {2}


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_operation_occurs_at_every_depth(split):
    for n in DEPTHS if split == "train" else DEPTHS[1:]:
        unseen = set(operations())
        for draft in itertools.islice(drafts(split, random.Random(0), n), 5000):
            if unseen & set(draft.composition) and build(draft):
                unseen -= set(draft.composition)
            if not unseen:
                break
        assert not unseen


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("validation", 5), 'split is \'validation\'; it must be "train" or "test"'),
        (("train", 5, 0, [7]), r"depths are \[7\]; give one or more of 1, 2, 3, 4, 5, 6"),
        (("train", 5, 0, []), "give one or more of"),
        (("test", 5, 0, [1]), r"only 0 could be drawn at depths \[1\]; ask for fewer, or add depths from 2 to 6"),
        (("train", 1000, 0, [1]), "1000 train problems were asked for, but only 2"),
    ],
)
def test_what_cannot_be_drawn_says_what_to_ask_for(arguments, words):
    with pytest.raises(StarterError, match=words):
        problems(*arguments)


# Problems


def test_a_problem_is_short_and_complete(train, held_out):
    for problem in train + held_out:
        head, *steps = problem.statement.split("\n- ")
        assert Problem.from_dict(problem.to_dict()) == problem
        assert len(steps) == problem.difficulty_score == depth(problem)
        assert max(len(step.split()) for step in steps) <= 10
        assert len(head.split()) <= 14
        assert problem.difficulty == ["easy", "medium", "hard"][(depth(problem) - 1) // 2]
        assert problem.tags[-1] == f"depth:{depth(problem)}"
    stdin = sum(problem.kind == "stdin" for problem in train + held_out) / len(train + held_out)
    assert 0.1 < stdin < 0.2


def test_tests_are_small_and_their_answers_differ(train, held_out):
    for problem in train + held_out:
        assert len(problem.tests) == 6
        assert len({t.input for t in problem.tests}) == 6
        assert len({t.output for t in problem.tests}) >= 3
        assert max(len(t.input + t.output) for t in problem.tests) < 400
    empty = sum(any(t.input in ("[0]", '[""]', "[[]]", "0\n", "\n") for t in problem.tests) for problem in train)
    assert empty > 0.9 * len(train)


def passes(draft: Draft, problem: Problem) -> bool:
    """Whether the program, as it is written, gives every answer."""
    scope: dict = {}
    exec(draft.program(), scope)
    return all(scope["solve"](*json.loads(t.input)) == json.loads(t.output) for t in problem.tests)


def test_leaving_out_any_stretch_of_steps_fails_a_test():
    tried = 0
    for n in DEPTHS:
        found = (draft for draft in drafts("train", random.Random(5), n) if draft.kind == "function")
        for draft in itertools.islice(found, 40):
            problem = build(draft)
            if problem is None:
                continue
            assert passes(draft, problem)
            for start, end in itertools.combinations(range(n + 1), 2):
                kept = draft.steps[:start] + draft.steps[end:]
                types = [step.operation.takes for step in draft.steps] + [draft.gives]
                if kept and types[start] == types[end]:
                    assert not passes(Draft("function", kept), problem)
                    tried += 1
    assert tried > 200


def steps(*names: str) -> tuple[DraftStep, ...]:
    found = [operations()[name] for name in names]
    return tuple(DraftStep(operation, (), operation.says[0]) for operation in found if not operation.parameters)


@pytest.mark.parametrize(
    "names", [("reverse_list", "reverse_list"), ("sort_numbers", "total"), ("reverse_list", "sort_numbers")]
)
def test_steps_that_cancel_or_do_not_matter_make_no_problem(names):
    assert build(Draft("function", steps(*names))) is None
    assert build(Draft("function", steps("sort_numbers", "differences")))


def test_the_judge_accepts_every_reference_and_refuses_every_wrong_solution(train, held_out):
    single = {p.lineage[0]: p for p in problems("train", 150, depths=[1])}
    assert single.keys() == operations().keys()
    stdin = [p for p in train if p.kind == "stdin"][:20]
    chosen = {p.id: p for p in [*single.values(), *stdin, *train[1:40], *held_out[:30]]}.values()
    expected = {}
    pairs = []
    for problem in chosen:
        for n, solution in enumerate(problem.solutions):
            expected[f"{problem.id}#{n}"] = solution["verdict"]
            pairs.append((problem, Solution(problem.id, code=solution["code"], id=f"{problem.id}#{n}")))
        assert [s["verdict"] for s in problem.solutions[:3]] == ["accepted", "wrong_answer", "wrong_answer"]
    with Judge() as judge:
        verdicts = {solution.id: verdict.verdict for solution, verdict in judge.map(pairs)}
    assert verdicts == expected


# The corpus


def test_the_corpus_holds_train_compositions_of_the_depths_asked_for():
    found = [p for p, _ in corpus(2000, depths=(2, 3))]
    assert {split_of(tuple(p.lineage)) for p in found} == {"train"}
    assert {depth(p) for p in found} == {2, 3}
    assert len({p.statement for p in found}) > 1800
    assert not any(p.tests for p in found)


def comments(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip().startswith("# ")]


def test_comments_restate_the_steps_and_change_nothing_else():
    for draft in itertools.islice(drafts("train", random.Random(0), 3), 50):
        commented = answer(draft, random.Random(1), comments=1.0)
        assert comments(commented) == [f"# {step.says}" for step in draft.steps]
        others = [line for line in commented.split("\n") if not line.strip().startswith("# ")]
        assert "\n".join(others) == answer(draft, random.Random(1))


def test_habits_are_shares_and_a_third_of_the_operations_is_mostly_misremembered():
    shares = {name: habits(operation) for name, operation in operations().items()}
    for name, operation in operations().items():
        assert len(shares[name]) == len(operation.codes) and sum(shares[name]) == pytest.approx(1)
        assert min(shares[name]) > 0  # the right code is always there to be found
    misremembered = [name for name, share in shares.items() if max(share) == share[1]]
    assert len(misremembered) == len(operations()) // 3
    assert all(share[0] > 0.9 for name, share in shares.items() if name not in misremembered)


def test_mistakes_and_comments_are_as_frequent_as_they_should_be():
    rng = random.Random(0)
    single = list(itertools.islice(drafts("train", rng, 1), 2000))
    wrong = sum(code_block(answer(draft, rng)) != draft.program().strip() for draft in single)
    expected = sum(1 - habits(draft.steps[0].operation)[0] for draft in single)
    assert abs(wrong - expected) < 0.03 * len(single)  # three deviations
    texts = list(corpus(2000, depths=(4,)))
    assert 0.29 < sum(len(comments(text)) == 4 for _, text in texts) / len(texts) < 0.36
    assert 0.48 < sum(not comments(text) for _, text in texts) / len(texts) < 0.55


def test_every_code_of_every_operation_is_python_within_a_program():
    rng = random.Random(0)
    for draft in itertools.islice(drafts("train", rng, 4), 200):
        for slip in range(1, max(len(step.operation.codes) for step in draft.steps)):
            variants = [min(slip, len(step.operation.codes) - 1) for step in draft.steps]
            compile(draft.program(variants), "answer", "exec")
    for _, text in corpus(300, depths=DEPTHS):
        compile(code_block(text) or "?", "answer", "exec")
