"""Process, the text: what is broken or foreign to it is repaired, and what means something stays as it is."""

from __future__ import annotations

import html

import pytest

from microcoder.data.process import boilerplate, encoding, formulas, images, markup, unsuitable
from microcoder.data.process.samples import blocks, inline, prose
from microcoder.data.record import Dropped, Record
from microcoder.schema import Problem, Test


def after(step, statement, **fields):
    """The problem after one step, and whether the step said that it changed something."""
    record = Record(Problem("p", statement=statement, **fields))
    step(record)
    return record.problem, bool(record.problem.lineage)


def text(step, statement, **fields):
    problem, said = after(step, statement, **fields)
    assert said == (problem.statement != statement)
    return problem.statement


def kinds(statement):
    return [(part.kind, part.text.strip()) for part in blocks(statement) if part.text.strip()]


# samples

STDIN = """Add them.

Input

The first line contains n.

Output

Print the sum.

Examples

Input

3
1  2  3

Output

6

Note

In the first example the sum is 6.
"""


def test_samples_are_told_from_the_sections_that_describe_input_and_output():
    data = [part for kind, part in kinds(STDIN) if kind == "sample"]
    assert data == ["3\n1  2  3", "6"]
    assert "The first line contains n." in prose(STDIN)


@pytest.mark.parametrize("statement", [STDIN, "", "\n\n", "a\n```\nb\n```\nc", "$x$ `y` \\(z\\) $$w$$", "```\nopen"])
def test_the_parts_joined_are_the_text_again(statement):
    assert "".join(part.text for part in blocks(statement)) == statement
    assert "".join(part.text for part in inline(statement)) == statement


def test_samples_on_a_line_end_where_they_are_explained():
    found = kinds('Do.\n\nExample 1:\n\nInput: s = "a"\nOutput: 1\nExplanation: it is 1.\n\nExample 2:\nInput: s = ""')
    assert [part for kind, part in found if kind == "sample"] == ['Input: s = "a"\nOutput: 1', 'Input: s = ""']


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("Text\n```python\nx = 1\n```\nmore", "```python\nx = 1\n```"),
        ("Text\n~~~~\na\n~~~\n~~~~\nmore", "~~~~\na\n~~~\n~~~~"),
        ("def f(x):\n    '''Doc.'''\n\nIt returns x.", "def f(x):\n    '''Doc.'''"),
    ],
)
def test_code_is_found_in_fences_and_without_them(statement, code):
    assert ("code", code) in kinds(statement)


def test_a_sentence_after_the_data_ends_it_and_headings_of_other_languages_begin_it():
    statement = "求和。\n\n输入样例\n\n1 2\n\nIn this example the answer is three because of the sum."
    assert ("sample", "1 2") in kinds(statement)
    assert kinds(statement)[-1][0] == "prose"


def test_doctests_are_samples_up_to_a_blank_line():
    assert ("sample", ">>> f(1)\n2") in kinds("Adds one.\n>>> f(1)\n2\n\nNothing else.")


@pytest.mark.parametrize(
    ("line", "formulas"),
    [
        ("$n$ and $m$$^{*}$", ["$n$", "$m$", "$^{*}$"]),
        ("it costs $5 or $6 at most", []),
        ("\\(a\\) and \\[b\\] and $$c$$", ["\\(a\\)", "\\[b\\]", "$$c$$"]),
        ("`$HOME` is $x$", ["$x$"]),
        ("$$$a_i$$$ is", ["$$$a_i$$$"]),
    ],
)
def test_formulas_are_told_from_prices_and_code(line, formulas):
    assert [part.text for part in inline(line) if part.kind == "formula"] == formulas


# encoding


@pytest.mark.parametrize(
    ("original", "codec"),
    [
        ("1 ≤ n ≤ 10, “quoted” — résumé", "latin-1"),
        ("наибольшее число", "latin-1"),
        ("1 ≤ n ≤ 10 — résumé", "cp1252"),
        ("2 ⋅ 10^5 and a ≠ b", "cp1252"),
        ("1 ≤ n", "mac_roman"),
        ("1 ≤ n ≤ 10 — “résumé”", "mac_roman"),
    ],
)
def test_mojibake_is_undone(original, codec):
    assert text(encoding.repair, original.encode().decode(codec)) == original
    assert text(encoding.repair, original) == original


def test_line_ends_marks_and_control_characters_go_and_the_tests_keep_theirs():
    problem, _ = after(encoding.repair, "\ufeffa\r\nb\rc\x00\u200b", tests=[Test("1\r\n", "2\x00")])
    assert problem.statement == "a\nb\nc"
    assert problem.tests == [Test("1\r\n", "2\x00")]


@pytest.mark.parametrize("bad", ["1 \ufffd n \ufffd 5 and 2 \ufffd m \ufffd 9", "锟斤拷 a 锟斤拷 b 锟斤拷 c 锟斤拷"])
def test_text_with_lost_characters_is_dropped(bad):
    with pytest.raises(Dropped, match="broken_text: 4 characters are lost"):
        text(encoding.repair, bad)


# markup


@pytest.mark.parametrize(
    "plain",
    [
        "vector<int> a; if (a<b && c>d) swap",
        "Print <a> <b> in this order, <name> too, and <p>.",
        "add a closed pair of bold tag <b> and </b> around <b>it</b>",
        "the entity is &quot; and its character is a quotation mark, as &amp; is of &",
        "```\n<p>a</p> &lt;\n```",
        "`<br>` stands in code",
        "design a filter of <pre> and <suf>",
    ],
)
def test_what_is_no_html_is_left_alone(plain):
    assert text(markup.convert, plain) == plain


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>One.</p><p>Two <b>bold</b>.</p>", "One.\n\nTwo **bold**."),
        ("10<sup>5</sup>, a<sub>i</sub>, a<sub>i+1</sub>", "10^5, a_i, a_{i+1}"),
        ("<p><code>1 &lt;= n &lt;= 10<sup>5</sup></code></p>", "`1 <= n <= 10^5`"),
        ("<ul><li>a</li><li>b</li></ul>", "- a\n- b"),
        ("<p>x</p><pre>3<br>1  2\n\n  4</pre>", "x\n\n```\n3\n1  2\n\n  4\n```"),
        ("<pre><div>3 3</div><div>4</div></pre>", "```\n3 3\n4\n```"),
        ("<table><tr><th>a</th></tr><tr><td>1</td></tr></table>", "| a |\n| --- |\n| 1 |"),
        ("<var>A_i \\le 5</var> <br>", "$A_i \\le 5$"),
        ("a &le; b&nbsp;&lt; c", "a ≤ b\u00a0< c"),
        ("&lt;p&gt;twice &amp;lt; escaped&lt;/p&gt;", "<p>twice < escaped</p>"),  # HTML, for the next round
        ("text </p> and <span class='x'>more", "text\n\nand more"),
        ("<p>The &lt;div&gt; is shown, vector<int> too.</p>", "The `<div>` is shown, vector<int> too."),
        ("<p>a</p><script>if (a<b) x()</script><div class='navbar'>Home</div><!-- no -->", "a"),
        ("A paragraph,\n\nanother with<br>a break.", "A paragraph,\n\nanother with\na break."),
        ("<p>Only at the beginning.", "Only at the beginning."),
    ],
)
def test_html_becomes_markdown(source, expected):
    assert text(markup.convert, source) == expected


def test_samples_in_a_table_keep_their_lines():
    source = "<table><tr><th>Sample Input</th></tr><tr><td><pre>1\n2</pre></td></tr></table>"
    assert text(markup.convert, source) == "Sample Input\n\n```\n1\n2\n```"


def test_samples_lose_debris_unless_the_tests_have_such_data():
    source = "Do.<br>\n\nExample 1:\n\nInput: s = &quot;a&quot;<br>\nOutput: 1\n\nThat is all.<br>"
    assert 'Input: s = "a"\n' in text(markup.convert, source)
    assert "&quot;a&quot;<br>" in text(markup.convert, source, tests=[Test("<br>", "1")])


@pytest.mark.parametrize("source", ["<div>" * 20_000, "<b>" * 1_500 + "</b>", "<p>x" + "<ul><li>" * 900 + "</ul>"])
def test_markup_without_end_is_dropped(source):
    with pytest.raises(Dropped, match="broken_text"):
        text(markup.convert, source)


# latex and white space


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("$$$n$$$ is \\(1 \\le n\\)", "$n$ is $1 \\le n$"),
        ("$$$$$$x$$$$$$ and \\[ \\frac{a}{b} \\]", "$$x$$ and $$\\frac{a}{b}$$"),
        ("see wiki/Path_\\(graph_theory\\) and \\[1, 2\\]", "see wiki/Path_\\(graph_theory\\) and \\[1, 2\\]"),
        ("a \\textbf{bold}, \\emph{soft} \\texttt{x}", "a **bold**, *soft* `x`"),
        ("$\\texttt{?}$ and `\\textbf{a}`", "$\\texttt{?}$ and `\\textbf{a}`"),
        ("\\section*{Input}\n\\begin{itemize}\n\\item a\n\\end{itemize}", "## Input\n- a\n"),
        ("``quoted''", '"quoted"'),
        ("print ``YES'' or ``NO'', not ``x``", 'print "YES" or "NO", not ``x``'),
    ],
)
def test_latex_has_one_notation_and_no_commands_for_text(source, expected):
    assert text(formulas.normalise_latex, source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("\n\na\u00a0b  \n \n\n\nc\n\n", "a b\n\nc"),
        ("  * one    * two   * three ", "  * one\n  * two\n  * three"),
        ("1. one    2. two", "1. one\n2. two"),
        ("a  b\n\nthese are   words with a  gap between them", "a  b\n\nthese are words with a gap between them"),
        ("a:\n    x  =  1", "a:\n    x  =  1"),
        ("all\u3000of it\n\nExample\n\nInput\n\n1\u2009 2", "all of it\n\nExample\n\nInput\n\n1  2"),
        ("```\n1\u00a02\n```", "```\n1\u00a02\n```"),
        (STDIN, STDIN.strip()),
        ("```\n a  \n\n\n\nb\n```", "```\n a  \n\n\n\nb\n```"),
    ],
)
def test_white_space_is_normal_in_prose_and_hardly_touched_elsewhere(source, expected):
    assert text(encoding.normalise_space, source) == expected


def test_exponents_come_back_in_constraints_of_leetcode_only():
    source = "n is 105.\n\nConstraints:\n\n1 <= n <= 105\n-231 <= x <= 231 - 1\n1 <= k <= 100\ns.length == 104"
    restored = "n is 105.\n\nConstraints:\n\n1 <= n <= 10^5\n-2^31 <= x <= 2^31 - 1\n1 <= k <= 100\ns.length == 104"
    assert text(formulas.restore_exponents, source, platform="leetcode") == restored
    assert text(formulas.restore_exponents, source, platform="codeforces") == source
    written = source + "\n1 <= m <= 10^5"
    assert text(formulas.restore_exponents, written, platform="leetcode") == written


def test_exponents_of_limits_in_words_come_back_too():
    source = "Do.\n\nConstraints:\n\nThe number of nodes is in the range [1, 5 * 104].\nAt 104 it ends.\n1 <= n <= 105."
    restored = source.replace("* 104", "* 10^4").replace("105.", "10^5.")
    assert text(formulas.restore_exponents, source, platform="leetcode") == restored
    source = "Do.\n\nConstraints:\n\n1 <= k <= 1014\nThe sum of lengths is smaller than 105."
    assert text(formulas.restore_exponents, source, platform="leetcode") == source.replace("1014", "10^14").replace(
        "105", "10^5"
    )
    calls = "Do.\n\nConstraints:\n\nThe output is at most 5 * 1010."
    assert text(formulas.restore_exponents, calls, platform="leetcode") == calls.replace("1010", "10^10")
    sums = "Constraints:\n1 <= k <= 1014\nThe sum of words[i].length is smaller than or equal 105."
    restored = sums.replace("1014", "10^14").replace("105", "10^5")
    assert text(formulas.restore_exponents, sums, platform="leetcode") == restored


@pytest.mark.parametrize(
    ("source", "restored"),
    [
        ("Return it modulo 109 + 7.", "Return it modulo 10^9 + 7."),
        ("the answer mod 109+7", "the answer mod 10^9+7"),
        ("equal to 999999984 % (109 + 7).", "equal to 999999984 % (10^9 + 7)."),
        ("the remainder when divided by `109 + 7`", "the remainder when divided by `10^9 + 7`"),
        ("Let p = 109 + 7. Print it modulo 109 + 7.", "Let p = 10^9 + 7. Print it modulo 10^9 + 7."),
        ("The answer is 1018 modulo (109 + 7), which is 49.", "The answer is 10^18 modulo (10^9 + 7), which is 49."),
        ("outside the signed 32-bit range [-231, 231 - 1], 0", "outside the signed 32-bit range [-2^31, 2^31 - 1], 0"),
        ("0 <= f[i] < 231, so a 32-bit word is enough", "0 <= f[i] < 2^31, so a 32-bit word is enough"),
        ("a 64-bit number below 263 - 1", "a 64-bit number below 2^63 - 1"),
    ],
)
def test_the_modulus_and_the_size_of_machine_words_get_their_exponents_back(source, restored):
    problem, said = after(formulas.restore_exponents, source)
    assert (problem.statement, said) == (restored, True)
    assert text(formulas.restore_exponents, restored) == restored


@pytest.mark.parametrize(
    "source",
    [
        "The sum is 109 + 7 = 116.", "Take 109 + 7 modulo 13.", "There are 109 days, print them modulo 10.",
        "Print it modulo 109.", "Print it modulo 109 + 70.", "Print it modulo 1109 + 7.", "Print it modulo 10^9 + 7.",
        "It fits a 32-bit integer.\n115 + 116 = 231 is the sum.", "A 32-bit sum: 115 + 116 = 231, and 300-231 is less.",
        "Add.\n\n```\n5 % 109 + 7\n```",
    ],
)  # fmt: skip
def test_other_numbers_are_no_powers(source):
    assert text(formulas.restore_exponents, source) == source


# facts and noise


def test_limits_and_tags_go_into_empty_fields_only():
    source = "Add.\n\ntime limit per test\n2 seconds\nMemory Limit: 512000000 Bytes\n\nTags:\n['dp', 'math']\n"
    problem, _ = after(boilerplate.lift_facts, source)
    assert problem.statement.strip() == "Add."
    assert (problem.time_limit_s, problem.memory_mb, problem.tags) == (2.0, 488, ["dp", "math"])
    problem, _ = after(boilerplate.lift_facts, source, time_limit_s=1.0, memory_mb=64, tags=["x"])
    assert (problem.time_limit_s, problem.memory_mb, problem.tags) == (1.0, 64, ["x"])


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("Time Limit: {'seconds': 1, 'nanos': 500000000}", 1.5),
        ("**Time limit: 250 ms**", 0.25),
        ("**Time limit:** 2 s", 2.0),
        ("time limit per test: 3 seconds", 3.0),
        ("Time limit: it depends", None),
        ("The time limit: 2 seconds", None),
    ],
)
def test_only_a_line_that_is_a_limit_is_one(line, seconds):
    problem, said = after(boilerplate.lift_facts, f"Add.\n{line}")
    assert problem.time_limit_s == seconds
    assert said == (seconds is not None) == (line not in problem.statement)


@pytest.mark.parametrize("line", [
    "Time Limit: 2 sec / Memory Limit: 256 MB",
    "**Time limit:** 2 s | **Memory limit:** 256 MB",
])  # fmt: skip
def test_two_limits_may_share_a_line(line):
    problem, _ = after(boilerplate.lift_facts, f"{line}\n\nAdd.")
    assert (problem.statement.strip(), problem.time_limit_s, problem.memory_mb) == ("Add.", 2.0, 256)


def test_code_to_complete_becomes_the_starter_code_unless_there_is_another():
    source = "Add.\n\nPlease complete the following python code precisely:\n```python\ndef add(a):\n```"
    problem, _ = after(boilerplate.lift_facts, source)
    assert (problem.statement.strip(), problem.starter_code) == ("Add.", "def add(a):")
    assert after(boilerplate.lift_facts, source, starter_code="def add(a):\n")[0].statement.strip() == "Add."
    assert text(boilerplate.lift_facts, source, starter_code="def other():") == source


NOISE = [
    "Problem code: ABC", "Submit", "### Tutorial", "Author: J. Doe", "Home | Problems | Submit | Status",
    "[Home](/) | [Contests](/c) | [Submit](/s)", "Copyright © 2012 The Judge", "All submissions for this task.",
    "Codeforces Round #123 (Div. 2)", "Share on Facebook", "Acceptance Rate: 41.2%", "input: standard input",
    "Contests » Spring Cup » Problem B", "Educational Codeforces Round 9 (Div. 2)",
    "Score : 300 points", "Success rate: 12.5%", "View all submissions", "Terms of Use | Privacy Policy | Contact us",
    "Sign up for our weekly newsletter!", "This site uses cookies.", "Seen this question in a real interview before?",
]  # fmt: skip


@pytest.mark.parametrize("line", NOISE)
def test_a_line_of_boilerplate_goes(line):
    noisy = f"Add the numbers.\n{line}\nPrint the sum."
    assert text(boilerplate.remove_noise, noisy) == "Add the numbers.\nPrint the sum."


@pytest.mark.parametrize(
    "line",
    [
        "Submit the answer to the queen.", "The author: he wrote k books.", "Share the apples among n children.",
        "a | b | c", "x / y / z", "Input", "Problem: find the sum.", "Accepted are YES and NO.", "Like before, n > 0.",
        "Score: the sum of all points", "Join the two ends of the channel.", "We use n cookies", "Points: 3 4 5",
    ],
)  # fmt: skip
def test_a_sentence_that_only_begins_like_boilerplate_stays(line):
    source = f"Add the numbers.\n{line}\nPrint the sum."
    assert text(boilerplate.remove_noise, source) == source


def test_a_footer_below_a_sample_goes_and_a_sample_that_reads_like_one_stays():
    sample = "Add.\n\nExample\n\nInput\n\n1\n\nOutput\n\nsubmit"
    assert text(boilerplate.remove_noise, f"{sample}\n\nSubmit\nTutorial\nPrivacy Policy") == sample
    assert text(boilerplate.remove_noise, sample) == sample


# images and interaction

TASK = "You are given a tree with n vertices and you have to count the leaves that are red in it."


@pytest.mark.parametrize("image", ["![](a.png)", "<image>", '<img src="a.png">', "\\includegraphics[width=5cm]{a.png}"])
def test_an_illustration_is_removed_and_counted(image):
    record = Record(Problem("p", statement=f"{TASK}\n\n{image}\n\nPrint their number."))
    images.remove(record)
    assert record.problem.statement.split() == [*TASK.split(), "Print", "their", "number."]
    assert record.notes["images_removed"] == 1


@pytest.mark.parametrize(
    "statement",
    [
        f"{TASK}\nFind the value of <image> modulo 7.",
        f"{TASK} The labels of the vertices are shown in the figure below.\n\n![](a.png)",
        f"{TASK} The score is given by the formula:\n\n<image>\n\nPrint it.",
        "![](task.png)",
        "Solve it.\n\n<image>\n\n<image>",
        "<image>\n\nInput\n\nThe first line contains n and m, the second one n integers.\n\nOutput\n\nPrint it.",
    ],
)
def test_a_problem_that_needs_its_image_is_dropped(statement):
    with pytest.raises(Dropped, match="needs_image"):
        text(images.remove, statement)


@pytest.mark.parametrize(
    "statement",
    [
        f"{TASK}\n\nExample\n\nThe tree is shown in the figure: <image> and so on.",
        f"{TASK} An example of a tree is shown in the picture below.\n\n<image>",
        f"{TASK}\n\n<image> A tree with four leaves.",
        f"{TASK}\n\n<image>| <image>\n---|---\n\nPrint it.",
        f"{TASK} Can you figure out the image of the function?",
    ],
)
def test_an_image_of_an_example_is_not_needed(statement):
    assert "<image>" not in text(images.remove, statement)


def test_an_image_that_carries_its_formula_becomes_the_formula():
    assert text(images.remove, f"{TASK} Let ![x^2](f.png) be odd.") == f"{TASK} Let $x^2$ be odd."


@pytest.mark.parametrize(
    "sentence",
    [
        "This is an interactive problem.", "After a query do not forget to flush the output.", "\nInteraction\n",
        'To ask a query, print "? i j"; to answer, print "! x".', "You may ask the jury.", "Use fflush(stdout).",
        "The interactor is adaptive.",
    ],
)  # fmt: skip
def test_an_interactive_problem_is_dropped(sentence):
    with pytest.raises(Dropped, match="interactive"):
        text(unsuitable.refuse_interactive, f"{TASK}\n{sentence}\nPrint it.")
    with pytest.raises(Dropped, match="tagged"):
        text(unsuitable.refuse_interactive, TASK, tags=["interactive"])


@pytest.mark.parametrize(
    "sentence",
    [
        "This is not an interactive problem.", "A hand of five cards is a Flush.", "No need to flush the output.",
        'Queries are of the form "+ x", "- x" and "? x".', "The jury has n members.", "The particles interact.",
    ],
)  # fmt: skip
def test_a_problem_that_only_sounds_interactive_stays(sentence):
    assert text(unsuitable.refuse_interactive, f"{TASK} {sentence}") == f"{TASK} {sentence}"


@pytest.mark.parametrize("piece", ["<", "&amp;", "`", "$ ", "\\(", "```\n", "![", "\n", " ", "Input\n", "â€", "a   * "])
def test_long_hostile_texts_come_to_an_end(piece):
    statement = piece * (50_000 // len(piece))
    for step in (
        encoding.repair, markup.convert, boilerplate.lift_facts, boilerplate.remove_noise, formulas.normalise_latex,
        encoding.normalise_space,
    ):  # fmt: skip
        try:
            text(step, statement)
        except Dropped as loss:
            assert loss.reason == "broken_text"


def test_html_that_was_escaped_reads_as_before():
    assert markup.to_markdown(html.escape('if a < b && c > "d"')) == 'if a < b && c > "d"'
