"""Settings of `microcoder data run` by section; the descriptions are the only copy of the help text."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..config import JudgeConfig, Section

Unknown = Literal["keep", "drop"]
DATE = r"^(\d{4}(-\d{2}(-\d{2})?)?)?$"


class Source(Section):
    """A place that problems come from."""

    path: str = Field(description="A file, a folder, or a hub id.")
    read: str = Field(default="auto", description="The layout: mbpp, humaneval, apps, ..., generic; auto: detected.")
    name: str = Field(default="", description="The name of the source; empty: that of its layout.")
    ids: str = Field(
        default="",
        description='Only problems whose ids end in these numbers, such as "601-974"; of LeetCode: its question_id.',
    )
    mapping: dict[str, str] = Field(default={}, description="For generic: field of a problem = column of the source.")
    licence: str = Field(default="", description="The licence of all problems, if the source has none.")


class CollectConfig(Section):
    sources: list[Source] = Field(default=[], description="The places that problems come from.")
    limit: int = Field(default=0, ge=0, description="The most problems of each source, for a trial; 0: all.")


class ProcessConfig(Section):
    most_tests: int = Field(default=15, ge=1, description="The most tests of a problem that are kept: the longest.")
    test_kb: int = Field(default=64, ge=1, description="The largest test that is kept, in KB.")


class FilterConfig(Section):
    similarity: float = Field(default=0.8, gt=0, le=1, description="Problems at least this similar are duplicates.")
    evaluation: list[Source] = Field(default=[], description="Evaluation sets; overlapping problems are dropped.")
    overlap: float = Field(default=0.22, gt=0, le=1, description="The share of equal 16-grams that is an overlap.")
    after: str = Field(default="", pattern=DATE, description="Only problems of this date or later, such as 2023-01-01.")
    before: str = Field(default="", pattern=DATE, description="Only problems before this date.")
    unknown_date: Unknown = Field(default="keep", description="Keep or drop problems without a date.")
    licences: list[str] = Field(default=[], description="Only these licences; empty: any.")
    unknown_licence: Unknown = Field(default="keep", description="Keep or drop problems without a licence.")


class DifficultyConfig(Section):
    by: Literal["auto", "none", "predictor", "endpoint"] = Field(
        default="auto",
        description="What scores difficulty: the offline predictor, an LLM endpoint, or none; auto: the predictor, if "
        "there is one, or enough labels to train it.",
    )
    predictor: str = Field(default="", description="A predictor's file; empty: one is trained on the problems' labels.")
    calibrate: str = Field(default="", description="A model whose pass rates map scores to success; empty: none.")
    attempts: int = Field(default=4, ge=1, description="The number of attempts of that model at each problem.")
    attempt_tokens: int = Field(default=1024, ge=1, description="The most tokens of an attempt.")
    style: Literal["code", "reason"] = Field(
        default="code", description="The prompts of the attempts, as data.style of training."
    )
    chat: dict[str, bool | int | float | str] = Field(
        default={}, description="Arguments for that model's chat template, as model.chat of training."
    )
    calibrate_on: int = Field(default=200, ge=10, description="The number of problems that the model attempts.")
    floor: float = Field(default=0.0, ge=0, le=1, description="Drop problems easier than this score; 0: none.")
    target: dict[str, float] = Field(
        default={}, description="Target shares of easy, medium and hard, such as {easy = 0.2, hard = 0.5}."
    )
    size: int = Field(default=0, ge=0, description="The most problems that stay, drawn by a hash of the id; 0: all.")


class ForgeConfig(Section):
    enabled: bool = Field(default=False, description="Make weak tests stronger, between filter and verify.")
    tests: int = Field(default=30, ge=1, description="The most tests that are added to a problem.")
    adversaries: list[str] = Field(
        default=[],
        description="Files and folders of programs for the problems, many of them wrong: rollouts, solutions, samples.",
    )
    most_adversaries: int = Field(default=32, ge=0, description="The most of them that are tried on a problem.")
    mutants: int = Field(default=72, ge=0, description="Wrong variants of a reference that inputs are searched with.")
    candidates: int = Field(default=240, ge=1, description="Inputs that are tried for a problem.")
    seconds: float = Field(default=4.0, gt=0, description="CPU seconds of the search for a problem.")
    references: int = Field(default=4, ge=1, description="The most solutions that are asked for the expected outputs.")
    slowest_s: float = Field(default=1.0, gt=0, description="Inputs that take a reference longer are left out.")
    test_kb: int = Field(
        default=256, ge=1, description="The largest input in KB, and of all inputs at the limits together."
    )
    answer_kb: int = Field(default=32, ge=1, description="The longest expected output of a forged test, in KB.")
    large: int = Field(default=2, ge=0, description="Tests at the limits of the constraints, for time.")
    time_multiple: float = Field(
        default=10.0,
        ge=0,
        description="The time limit of a problem that names none, and of each test where that is less: so many times "
        "what the reference takes, at least 2 s and 0.5 s; 0: left alone.",
    )
    seed: int = Field(default=0, description="The seed of the inputs; another one makes others.")
    endpoint: bool = Field(
        default=False, description="Let the language model of [endpoint] write generators of inputs too. Never needed."
    )


class VerifyConfig(Section):
    mutants: int = Field(default=24, ge=0, description="Mutants (wrong variants of a reference) to try the tests on.")
    alive: float = Field(default=0.35, gt=0, le=1, description="Tests that accept more than this share are weak.")
    unverified: Unknown = Field(default="keep", description="Keep or drop problems without any solution.")


class EndpointConfig(Section):
    base_url: str = Field(default="", description="An OpenAI-compatible endpoint; empty: none is used.")
    model: str = Field(default="", description="The model's name there.")
    key_env: str = Field(default="OPENAI_API_KEY", description="The environment variable that holds its key.")


class OutputConfig(Section):
    folder: str = Field(default="out", description="The folder for everything that is written.")
    workers: int = Field(default=0, ge=0, description="Processes at a time; 0: one for each core.")


class Pipeline(Section):
    """All settings of a data file."""

    collect: CollectConfig = Field(default=CollectConfig(), description="Read problems from many places.")
    process: ProcessConfig = Field(default=ProcessConfig(), description="Clean them and settle their format.")
    filter: FilterConfig = Field(default=FilterConfig(), description="Drop what is bad, known, or not for training.")
    difficulty: DifficultyConfig = Field(default=DifficultyConfig(), description="Predict, calibrate, select.")
    forge: ForgeConfig = Field(
        default=ForgeConfig(), description="Make tests stronger: inputs that kill wrong programs."
    )
    verify: VerifyConfig = Field(default=VerifyConfig(), description="Run the references, and try the tests.")
    endpoint: EndpointConfig = Field(default=EndpointConfig(), description="A language model to ask.")
    judge: JudgeConfig = Field(default=JudgeConfig(), description="How programs are judged.")
    output: OutputConfig = Field(default=OutputConfig(), description="The output folder and the number of processes.")
