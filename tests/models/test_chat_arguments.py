"""`model.chat`: arguments of a chat template, known before a prompt is made."""

from __future__ import annotations

import shutil

import pytest

from microcoder.models import NANO, ModelError, ModelSource
from microcoder.models.weights import chat_arguments, load_tokenizer
from microcoder.sampling import encode

THINKING = (
    "{%- macro shown(m) %}{{ m['content'] }}{% endmacro %}{% set last = namespace(n=0) %}"
    "{% for message in messages %}{% if loop.index > 99 %}{% break %}{% endif %}{{ shown(message) }}{% endfor %}"
    "{%- generation -%}{{ bos_token }}{% endgeneration %}{% if tools %}{{ raise_exception('none') }}{% endif %}"
    "{% if add_generation_prompt %}|"
    "{% if enable_thinking is defined and enable_thinking is false %}no thought|{% endif %}"
    "{{ effort | default('') }}{% endif %}"
)
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
def source(tmp_path):
    """nano's tokenizer with a template that takes two arguments."""
    folder = tmp_path / "thinker"
    shutil.copytree(NANO, folder)
    (folder / "chat_template.jinja").write_text(THINKING)
    return ModelSource("thinker", str(folder))


def test_what_a_template_leaves_to_its_caller_are_its_arguments():
    assert chat_arguments(THINKING) == ["effort", "enable_thinking"]
    assert chat_arguments("{{ messages[0].content }}{{ eos_token }}") == []
    set_inside = "{% if x %}{% set content = 1 %}{% endif %}{% if not x is defined %}{% set x = 2 %}{% endif %}"
    assert chat_arguments(set_inside + "{% set y = y | default(3) %}{{ content }}{{ y }}") == ["x", "y"]


def test_arguments_reach_the_template(source):
    tokenizer = load_tokenizer(source, {"enable_thinking": False, "effort": "high"})
    texts = [tokenizer.decode(encode(tokenizer, HELLO, chat)) for chat in (None, {}, {"enable_thinking": False})]
    assert texts[0] == texts[1] and "thought" not in texts[0] and texts[2].endswith("no thought|")


@pytest.mark.parametrize(
    ("chat", "said"),
    [
        ({"thinking": False}, "model.chat.thinking: .* thinker has no such argument; it has effort, enable_thinking"),
        ({"messages": "x"}, "model.chat.messages"),  # given already
        ({"enable_thinking": "False"}, 'is the text "False", which a template takes for true; write false'),
    ],
)
def test_arguments_that_would_do_nothing_are_refused(source, chat, said):
    with pytest.raises(ModelError, match=said):
        load_tokenizer(source, chat)


def test_a_template_without_arguments_and_no_template_at_all_say_so(tmp_path):
    with pytest.raises(ModelError, match=r"nano has no such argument; it has none, so leave model\.chat out"):
        load_tokenizer(ModelSource("nano", str(NANO)), {"enable_thinking": False})
    shutil.copytree(NANO, tmp_path / "base")
    (tmp_path / "base" / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match=r"gives enable_thinking, but base has no chat template; leave"):
        load_tokenizer(ModelSource("base", str(tmp_path / "base")), {"enable_thinking": False})


def test_a_template_that_is_none_is_named():
    with pytest.raises(ModelError, match="chat template cannot be read"):
        chat_arguments("{% if %}")
