"""Which problems a run trains on."""

from __future__ import annotations

import json

import pytest
from livecodebench_files import change, write_release

from microcoder import evaluate
from microcoder.config import DataConfig, load
from microcoder.evaluation.suite import EvaluationError
from microcoder.files import write_problems
from microcoder.models import NANO, ModelSource
from microcoder.models.weights import load_tokenizer
from microcoder.prompts import prompt
from microcoder.schema import Compare, Problem, Test
from microcoder.training.problems import ProblemsError, load_problems, overlap, with_prompts

SPLITS = ("train", "test")


@pytest.fixture
def file(tmp_path):
    """Four problems: two of known difficulty, one that no solution was run on, one line that is none."""
    tests = [Test("1\n", "1\n")]
    found = [Problem(f"p/{score}", statement="Echo.", tests=tests, difficulty_score=score) for score in (0.2, 0.8)]
    found.append(
        Problem("p/unverified", statement="Echo.", tests=tests, difficulty_score=0.8, tags=["unverified", "graphs"])
    )
    write_problems(tmp_path / "problems.jsonl", found)
    with open(tmp_path / "problems.jsonl", "a") as out:
        out.write("{}\n")
    return str(tmp_path / "problems.jsonl")


def ids(loaded):
    return [problem.id for problem in loaded.problems]


def test_problems_with_a_refused_tag_are_left_out_of_training_and_counted(file):
    loaded = load_problems(DataConfig(train=file, refuse=["unverified"]), "train")
    assert ids(loaded) == ["p/0.2", "p/0.8"]
    unreadable = 'unreadable, such as line 4: a problem needs an "id"; this has no field at all'
    assert loaded.dropped == {unreadable: 1, "tagged unverified": 1}
    tested = load_problems(DataConfig(test=file, refuse=["unverified"]), "test")
    assert ids(tested) == ["p/0.2", "p/0.8", "p/unverified"]


def test_difficulty_chooses_by_the_score(file):
    loaded = load_problems(DataConfig(train=file, difficulty=[0.5, 1]), "train")
    assert ids(loaded) == ["p/0.8", "p/unverified"] and loaded.dropped["outside data.difficulty"] == 1


def test_when_nothing_is_left_the_error_says_what_was_left_out(file):
    with pytest.raises(ProblemsError, match=r"2 outside data\.difficulty, 1 tagged graphs, 1 unreadable, such as"):
        load_problems(DataConfig(train=file, refuse=["graphs"], difficulty=[0.9, 1]), "train")


def test_problems_that_do_not_say_what_is_asked_are_left_out_and_counted(tmp_path):
    row = {"prompt": "Echo.", "tests": [{"input": "1", "output": "1"}]}  # the field should be `statement`
    path = tmp_path / "problems.jsonl"
    path.write_text(json.dumps({"id": "a", **row}))
    with pytest.raises(ProblemsError, match='1 without "statement" and "starter_code"'):
        load_problems(DataConfig(train=str(path)), "train")
    with pytest.raises(EvaluationError, match="1 of 1 problems, such as 'a', have neither"):
        evaluate("nano", str(path))
    path.write_text(json.dumps({"id": "b", **row, "kind": "assert", "tests": [], "asserts": ["assert f(1) == 1"]}))
    assert ids(load_problems(DataConfig(train=str(path)), "train")) == ["b"]  # the prompt shows the assert


def sorted_file(path, count=60):
    """Problems sorted by their source, as a file that was made of several sources is."""
    found = [
        Problem(f"p/{n}", statement="Echo.", tests=[Test(f"{n}\n", "1\n")], source=f"s{3 * n // count}")
        for n in range(count)
    ]
    write_problems(path, found)
    return str(path)


def test_of_a_file_with_more_problems_than_asked_for_a_sample_is_drawn_the_same_each_time(tmp_path):
    file = sorted_file(tmp_path / "sorted.jsonl")
    loaded = load_problems(DataConfig(train=file, train_size=20), "train")
    assert len(loaded.problems) == 20
    assert {problem.source for problem in loaded.problems} == {"s0", "s1", "s2"}
    assert ids(loaded) == ids(load_problems(DataConfig(train=file, train_size=20), "train"))
    assert set(ids(loaded)) < set(ids(load_problems(DataConfig(train=file, train_size=30), "train")))
    assert "40 not drawn: data.train_size=20 are drawn at random" in loaded.words()


def test_a_part_of_the_training_file_can_be_held_out(tmp_path):
    def parts(count, **settings):
        path = sorted_file(tmp_path / f"{count}.jsonl", count)
        data = DataConfig(train=path, test="held-out", test_size=10, **settings)
        return [load_problems(data, split) for split in ("train", "test")]

    train, test = parts(60)
    assert len(test.problems) == 10 and not set(ids(train)) & set(ids(test))
    assert len({*ids(train), *ids(test)}) == 60 and train.dropped == {"held out for the evaluations": 10}
    assert len({problem.source for problem in test.problems}) > 1
    assert len(set(ids(parts(66)[1])) & set(ids(test))) > 5  # a file that grows keeps most of them
    assert ids(parts(60, train_size=20)[1]) == ids(test) and len(parts(60, train_size=20)[0].problems) == 20


def test_what_is_not_trained_on_is_not_held_out_either(file):
    data = DataConfig(train=file, test="held-out", test_size=1, refuse=["unverified"])
    train, test = (load_problems(data, split) for split in ("train", "test"))
    assert sorted([*ids(train), *ids(test)]) == ["p/0.2", "p/0.8"]
    assert train.dropped["tagged unverified"] == 1 and not test.dropped


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, r"starter has a test part: data\.test=starter"),
        ({"train": "FILE"}, r"holds 3 problems, .* data\.test_size=3 leaves none .* lower data\.test_size"),
    ],
)
def test_what_cannot_be_held_out_is_refused(file, settings, words):
    settings = dict.fromkeys(settings, file)
    for split in ("train", "test"):
        with pytest.raises(ProblemsError, match=words):
            load_problems(DataConfig(test="held-out", test_size=3, **settings), split)


def test_a_tag_that_nothing_has_is_refused_with_the_nearest_one(file):
    with pytest.raises(ProblemsError, match=r"the tag 'unverifed'.*did you mean 'unverified'\?"):
        load_problems(DataConfig(train=file, refuse=["unverifed"]), "train")
    with pytest.raises(ProblemsError, match=r"'grphs'.*did you mean 'graphs'\?"):
        load_problems(DataConfig(train=file, refuse=["grphs"]), "train")
    with pytest.raises(ProblemsError, match="there are many_answers, unverified"):
        load_problems(DataConfig(refuse=["none of these"]), "train")


def test_problems_with_many_answers_and_no_checker_are_not_trained_on_unless_asked_for(tmp_path):
    tests, checker = [Test("1\n", "1\n")], "def check(input, output, expected): return True"
    found = [
        Problem("one", statement="Echo.", tests=tests),
        Problem("many", statement="Echo.", tests=tests, tags=["many_answers"]),
        Problem("checked", statement="Echo.", tests=tests, tags=["many_answers"], compare=Compare(checker=checker)),
    ]
    write_problems(tmp_path / "problems.jsonl", found)
    file = str(tmp_path / "problems.jsonl")
    loaded = load_problems(DataConfig(train=file), "train")
    assert (ids(loaded), loaded.dropped) == (["one", "checked"], {"tagged many_answers": 1})
    assert ids(load_problems(DataConfig(train=file, refuse=[]), "train")) == ["one", "many", "checked"]


def test_problems_that_are_trained_and_tested_on_are_warned_of(tmp_path):
    file = sorted_file(tmp_path / "sorted.jsonl", count=6)
    train, test = (load_problems(DataConfig(train=file, test=file, test_size=4), split).problems for split in SPLITS)
    assert overlap(train, test).startswith("warning: 4 of the 4 test problems are trained on too")
    assert overlap(train[:3], train[3:]) == ""


def test_prompts_have_the_style_and_the_chat_arguments_of_the_settings(file):
    tokenizer = load_tokenizer(ModelSource("nano", str(NANO)))
    tokenizer.chat_template = "{{ messages[0].content }}{{ mood }}"
    words = [f"data.train={file}", "data.refuse=[]", "model.chat.mood=calm"]
    for style in ("code", "reason"):
        config = load(None, [*words, f"data.style={style}"])
        loaded, prompts = with_prompts(load_problems(config.data, "train"), tokenizer, config)
        texts = [tokenizer.decode(ids) for ids in prompts]
        wanted = [tokenizer.decode(tokenizer(f"{prompt(one, style)}calm").input_ids) for one in loaded.problems]
        assert texts == wanted


def test_a_template_that_refuses_the_prompt_is_named(file):
    tokenizer = load_tokenizer(ModelSource("nano", str(NANO)))
    tokenizer.chat_template = "{{ raise_exception('no such role') }}"
    config = load(None, [f"data.train={file}", "data.refuse=[]"])
    with pytest.raises(ProblemsError, match="template refuses the prompt: no such role"):
        with_prompts(load_problems(config.data, "train"), tokenizer, config)


PLUS = {
    "task_id": "Mbpp/1", "prompt": '"""\nAdd one.\nassert f(1) == 2\n"""\n', "entry_point": "f",
    "canonical_solution": "\ndef f(x):\n  return x + 1\n", "base_input": [[1]], "plus_input": [[2], [3]], "atol": 0,
}  # fmt: skip


def test_a_suite_can_be_tested_on(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCODER_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "plus.jsonl"
    path.write_text("".join(json.dumps({**PLUS, "task_id": f"Mbpp/{n}"}) + "\n" for n in range(3, 8)))
    loaded = load_problems(DataConfig(test="mbppplus", test_data=str(path), test_size=3), "test")
    assert len(loaded.problems) == 3 and "2 not drawn" in loaded.words()
    assert [test.output for test in loaded.problems[0].tests] == ["2", "3", "4"]
    assert loaded.problems[0].time_limit_s == 10.0  # the suite's


def test_a_suites_large_tests_are_brought_along(tmp_path):
    release = write_release(tmp_path, problems=4)
    loaded = load_problems(DataConfig(test="livecodebench", test_data=str(release.folder)), "test")
    assert [len(problem.tests) for problem in loaded.problems] == [5, 5, 5, 5]
    change(release.paths[0], 2, private_test_cases="[]")
    loaded = load_problems(DataConfig(test="livecodebench", test_data=str(release.folder)), "test")
    assert loaded.words() == "4 problems, public tests only in 1 of 4 problems: not a LiveCodeBench score"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"test": "mbppplus"}, r"data\.test=mbppplus: .* with --data \(here --data is data\.test_data\)"),
        ({"test": "mbppplus", "test_data": "nowhere"}, r"--data nowhere: there is no file .* data\.test_data"),
        ({"test": "mbpplus"}, r"data\.test=mbpplus: there is no such file; did you mean 'mbppplus'"),
        ({"test": "heldout"}, r"data\.test=heldout: there is no such file; did you mean 'held-out'"),
        ({"test_data": "x.jsonl"}, r"data\.test_data is x\.jsonl, .* but data\.test is starter; .*humanevalplus"),
    ],
)
def test_a_suite_that_cannot_be_had_is_refused_with_what_to_set(settings, words):
    with pytest.raises(ProblemsError, match=words):
        load_problems(DataConfig(**settings), "test")


def test_a_suite_is_not_trained_on():
    with pytest.raises(ProblemsError, match=r"data\.train=humaneval: a suite is to be tested on"):
        load_problems(DataConfig(train="humaneval"), "train")


@pytest.fixture
def tried(tmp_path):
    """A file of problems and an evaluation of three of them, solved never, in one of two tries, and always."""
    names = ("never", "sometimes", "always", "new")
    found = [Problem(name, statement="Echo.", tests=[Test("", f"{name}\n")]) for name in names]
    write_problems(tmp_path / "problems.jsonl", found)
    write_problems(tmp_path / "some.jsonl", found[:3])
    right = {"never": 0, "sometimes": 1, "always": 2}
    with open(tmp_path / "written.jsonl", "w") as out:
        for name, count in right.items():
            for n in range(2):
                text = f"```python\nprint({name!r})\n```" if n < count else "none"
                out.write(json.dumps({"problem_id": name, "completion": text}) + "\n")
    suite, output = str(tmp_path / "some.jsonl"), tmp_path / "tried"
    evaluate(completions=tmp_path / "written.jsonl", suite=suite, output=output, judge={"workers": 1})
    return tmp_path


def test_the_models_own_tries_choose_problems_that_give_a_signal(tried):
    data = DataConfig(train=str(tried / "problems.jsonl"), tried=str(tried / "tried"))
    loaded = load_problems(data, "train")
    assert ids(loaded) == ["sometimes"]
    reasons = {"solved in less than 1% of the tries", "solved in more than 99% of the tries", "not in data.tried"}
    assert loaded.dropped == dict.fromkeys(reasons, 1)
    assert ids(load_problems(data.model_copy(update={"solved": [0.0, 0.9]}), "train")) == ["never", "sometimes"]


def test_what_is_held_out_is_not_chosen_by_tries(tried):
    data = DataConfig(train=str(tried / "problems.jsonl"), tried=str(tried / "tried"), test="held-out", test_size=2)
    data = data.model_copy(update={"solved": [0.0, 1.0]})
    train, test = (load_problems(data, split) for split in SPLITS)
    assert len(test.problems) == 2 and not set(ids(train)) & set(ids(test)) and not test.dropped


def test_tries_that_cannot_be_used_say_what_to_do(tried):
    data = DataConfig(train=str(tried / "problems.jsonl"), tried=str(tried / "tried"), solved=[0.6, 0.9])
    with pytest.raises(ProblemsError, match=r"leaves no problem .* data\.solved=\[0\.6, 0\.9\] may be too narrow"):
        load_problems(data, "train")
    with pytest.raises(ProblemsError, match=r"data\.tried: .* holds no evaluation"):
        load_problems(data.model_copy(update={"tried": str(tried)}), "train")
