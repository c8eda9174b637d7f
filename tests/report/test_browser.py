"""The page in a real browser: it draws, sorts, looks up, fits a phone, and logs nothing."""

import json
import re

import pytest

from tests.report.browser import browser, open_page, wait_for
from torch_diode.report.build import report
from torch_diode.report.page import write_page

HOSTILE = "</script><script>window.broken=1</script><img src=x onerror=window.broken=1>"


@pytest.fixture(scope="module")
def driven(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def page(driven, page_file):
    open_page(driven, page_file)
    yield driven
    assert driven.get_log("browser") == []


def all_of(driven, css):
    return driven.find_elements("css selector", css)


def one(driven, css):
    return driven.find_element("css selector", css)


def choose(driven, field, value):
    one(driven, f"#map-tools [data-field={field}] option[value='{value}']").click()


def column(driven, table, number):
    script = "return [...document.querySelectorAll(arguments[0])].map((cell) => cell.innerText)"
    return driven.execute_script(script, f"{table} tbody tr > :nth-child({number})")


def type_problem(driven, text, *keys):
    from selenium.webdriver.common.keys import Keys

    box = one(driven, "#lookup-box")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(text)
    for key in keys:
        box.send_keys(getattr(Keys, key))


def test_every_part_is_drawn(page, data):
    headline = one(page, "h1").text
    regret = data["curves"]["model"][0]["geomean"]
    assert float(re.match(r"([\d.]+)%", headline)[1]) == pytest.approx(100 * (regret - 1), abs=0.1)
    assert len(all_of(page, "#regret-chart path.series")) == 3
    assert len(all_of(page, "#regret-chart path.band")) == 1
    assert len(all_of(page, "#times-chart rect.heat")) > 100
    assert len(all_of(page, "#worst-table tbody tr")) == len(data["worst"])
    assert len(all_of(page, "#slices-table tbody tr")) == len(data["slices"])
    assert len(all_of(page, "#map-chart rect.cell")) > 20
    assert data["about"]["scored_how"] in one(page, "#how").text


def test_a_head_sorts_its_column_and_sorts_it_back(page):
    head = one(page, "#slices-table thead th:nth-child(3)")
    head.find_element("css selector", "button").click()
    assert head.get_attribute("aria-sort") == "descending"
    falling = [float(text.rstrip("×")) for text in column(page, "#slices-table", 3)]
    assert falling == sorted(falling, reverse=True)
    assert len(set(falling)) > 3
    head.find_element("css selector", "button").send_keys(" ")
    assert head.get_attribute("aria-sort") == "ascending"
    assert [float(text.rstrip("×")) for text in column(page, "#slices-table", 3)] == falling[::-1]
    assert len(all_of(page, "#slices-table th[aria-sort]")) == 1


def test_the_slider_reads_the_curves(page, data):
    slider = one(page, "#regret-k")
    slider.send_keys("\ue014\ue014")  # right, twice
    found = one(page, "#regret-read").text
    at_3 = 100 * (data["curves"]["model"][2]["geomean"] - 1)
    assert found.startswith("k = 3: ")
    assert float(re.search(r"Model ([\d.]+)%", found)[1]) == pytest.approx(at_3, abs=0.06)


def test_a_typed_problem_shows_its_candidates_as_they_were_measured(page, predicted):
    number = max(range(len(predicted)), key=lambda p: len(predicted.measured[predicted.rows_of(p)]))
    rows = predicted.rows_of(number)
    type_problem(page, predicted.problems[number].key.replace(":", " "), "ENTER")
    assert one(page, "#lookup-found h3").text == predicted.problems[number].key.replace(":", " ")
    written = [
        text.replace("fastest", "").split("model's")[0].strip()
        for text in column(page, "#lookup-table", 1)
    ]
    times = zip(
        written, column(page, "#lookup-table", 2), column(page, "#lookup-table", 3), strict=True
    )
    found = {name: [float(t.replace(",", "")) for t in pair] for name, *pair in times}
    assert len(found) == rows.stop - rows.start
    for row in range(rows.start, rows.stop):
        expected = [predicted.measured[row], predicted.predicted[row]]
        assert found[str(predicted.candidates[row])] == pytest.approx(expected, rel=0.006)


def test_problems_are_suggested_and_chosen_by_keyboard(page, predicted):
    type_problem(page, "bf16")
    offered = [item.text for item in all_of(page, "#lookup-list [role=option]")]
    assert len(offered) == 8
    assert all("bfloat16" in text for text in offered)
    type_problem(page, "bf16", "ARROW_DOWN", "ARROW_DOWN", "ENTER")
    assert one(page, "#lookup-found h3").text == offered[1]
    assert one(page, "#lookup-box").get_attribute("aria-expanded") == "false"


def test_a_problem_that_is_not_there_is_answered_with_the_nearest(page):
    before = one(page, "#lookup-found h3").text
    type_problem(page, "mm 513x4097x4099 bfloat16", "ENTER")
    assert one(page, "#lookup-say").text == "Not among the problems; these are nearest."
    assert all_of(page, "#lookup-list [role=option]")
    assert one(page, "#lookup-found h3").text == before
    type_problem(page, "nonsense")
    assert one(page, "#lookup-say").text.startswith("No problem fits.")


def test_the_map_counts_what_is_chosen(page, predicted):
    batched = sum(problem.op == "bmm" for problem in predicted.problems)
    choose(page, "op", "bmm")
    assert f"Wins among {batched} problems" in one(page, "#map-table").text
    assert sum(int(text) for text in column(page, "#map-table", 2)) == batched
    choose(page, "colour", "tile")
    assert "×" in one(page, "#map-table").text
    choose(page, "x", "M")
    assert "Slice of K" in one(page, "#map-tools").text
    choose(page, "x", "K")
    assert one(page, "#map-chart .title").text == "K, from"


def test_cells_of_the_map_are_reached_by_keyboard(page):
    first = one(page, "#map-chart rect.cell[tabindex='0']")
    first.send_keys("\ue014")
    there = page.switch_to.active_element
    assert there.get_attribute("class").startswith("cell")
    assert there.get_attribute("aria-label") != first.get_attribute("aria-label")
    there.send_keys("\ue007")
    sizes = there.get_attribute("aria-label").split(":")[0]
    assert one(page, "#map-read h3").text == sizes


def test_dark_is_dark_and_light_is_light(driven, page_file):
    seen = {}
    for scheme in ("light", "dark"):
        open_page(driven, page_file, scheme=scheme)
        script = "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
        colours = [re.findall(r"\d+", text)[:3] for text in driven.execute_script(script)]
        seen[scheme] = [sum(map(int, colour)) for colour in colours]
        assert driven.get_log("browser") == []
    assert seen["light"][0] > 600 > 200 > seen["light"][1]
    assert seen["dark"][0] < 200 < 600 < seen["dark"][1]


@pytest.mark.parametrize("width", [375, 768])
def test_nothing_sticks_out_on_a_narrow_screen(driven, page_file, width):
    open_page(driven, page_file, width)
    assert driven.execute_script("return document.documentElement.scrollWidth") <= width
    script = """return [...document.querySelectorAll("main *")].filter((node) =>
      !node.closest(".scroll") && node.getBoundingClientRect().right > innerWidth + 1).length"""
    assert driven.execute_script(script) == 0
    type_problem(driven, "mm")
    assert one(driven, "#lookup-list").is_displayed()
    assert driven.execute_script("return document.documentElement.scrollWidth") <= width
    assert driven.get_log("browser") == []


def test_every_control_has_a_name(page):
    script = """
      const named = (node) => node.getAttribute("aria-label") || (node.labels && node.labels.length)
        || (node.tagName === "BUTTON" && node.textContent.trim());
      const controls = [...document.querySelectorAll("button, input, select, [role=region]")];
      return controls.filter((node) => !named(node)).length"""
    assert page.execute_script(script) == 0


def test_nothing_is_fetched(page):
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_hostile_texts_are_shown_and_not_run(driven, data, tmp_path):
    """Texts of a dataset are checked when it is read; those of a model and file names are not."""
    about = {"dataset": HOSTILE.replace("/", ""), "model": HOSTILE, "model_torch": [HOSTILE]}
    file = tmp_path / "report.html"
    write_page(file, {**data, "about": {**data["about"], **about}})
    open_page(driven, file)
    assert one(driven, "#lead").text.count(HOSTILE) == 2
    assert driven.execute_script("return [window.broken, document.images.length]") == [None, 0]
    assert driven.get_log("browser") == []


def test_even_a_script_that_got_in_would_not_run(driven, page_file, tmp_path):
    """The page's security policy, the second wall."""
    file = tmp_path / "report.html"
    text = page_file.read_text(encoding="utf-8")
    file.write_text(text.replace("</main>", HOSTILE + "</main>"), encoding="utf-8")
    open_page(driven, file)
    assert driven.execute_script("return window.broken") is None
    assert any("Content Security Policy" in entry["message"] for entry in driven.get_log("browser"))


def test_a_page_of_one_problem_is_a_page(driven, dataset, tmp_path):
    part = dataset.take(dataset.problems.ids == 0)
    file = report(part, tmp_path / "report.html", score="all", default_list=False).path
    open_page(driven, file)
    assert wait_for(driven, "return document.querySelectorAll('#lookup-table tbody tr').length > 1")
    assert driven.get_log("browser") == []
    assert json.loads(one(driven, "#data").get_attribute("textContent"))["about"]["problems"] == 1
