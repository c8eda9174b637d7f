import json

from torch_diode.cli.console import output
from torch_diode.toolkit.progress import Progress


def test_a_table_is_aligned_and_shows_numbers_as_people_read_them(capsys):
    rows = [("a", 1234567, 2.5), ("long name", None, True)]
    output.print_table(("name", "count", "x"), rows, title="Title", right="lr")
    title, head, _, first, second = capsys.readouterr().out.splitlines()[:5]
    assert title.strip() == "Title"
    assert head.split() == ["name", "count", "x"]
    assert first.split() == ["a", "1,234,567", "2.50"]
    assert second.split() == ["long", "name", "-", "True"]
    assert first.index("1,234,567") + len("1,234,567") == second.index("-") + 1


def test_long_lines_and_markup_stay_as_they_are(capsys):
    text = "[bold]" + "x" * 500
    output.print_line(text)
    output.print_notes(["a remark"])
    assert capsys.readouterr().out.splitlines() == [text, "Note: a remark."]


def test_standard_output_has_nothing_but_the_json(capsys):
    output.note("a line")
    output.note_progress(Progress(message="a message"))
    output.note_progress(Progress(done=1, total=2))
    output.print_json({"µs": [1, 2.5]})
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"µs": [1, 2.5]}
    assert "µs" in printed.out
    assert printed.err.splitlines() == ["a line", "a message"]
