import base64
import hashlib
import json
import re
from html.parser import HTMLParser

from torch_diode.report.page import inert_json, page

HOSTILE = {"name": "</script><!--<script>alert(1)</script>&amp;\u2028", "deep": ["<img src=x>"]}


class Parts(HTMLParser):
    """The texts of style and script elements, and every address and handler on the page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[tuple[dict[str, str | None], str]] = []
        self.addresses: list[str | None] = []
        self.handlers: list[str] = []
        self.policy = ""
        self.inside = False

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.addresses += [found[name] for name in ("src", "href", "action") if name in found]
        self.handlers += [name for name in found if name.startswith("on") or name == "style"]
        if tag in ("script", "style"):
            self.texts.append((found, ""))
            self.inside = True
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            found, text = self.texts[-1]
            self.texts[-1] = found, text + data


def parsed(text):
    parts = Parts()
    parts.feed(text)
    return parts


def test_no_sign_of_markup_is_left_in_the_data():
    text = inert_json(HOSTILE)
    assert not re.search(r"[<>&\u2028]", text)
    assert json.loads(text) == HOSTILE


def test_the_page_loads_nothing_and_carries_no_handler(page_file):
    parts = parsed(page_file.read_text(encoding="utf-8"))
    assert all(address.startswith("#") for address in parts.addresses)
    assert parts.handlers == []
    assert len(parts.texts) == 3


def test_its_policy_allows_its_own_style_and_script_alone(page_file):
    parts = parsed(page_file.read_text(encoding="utf-8"))
    hashes = re.findall(r"'sha256-([^']+)'", parts.policy)
    own = [text for found, text in parts.texts if found.get("type") != "application/json"]
    digests = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in own]
    assert sorted(hashes) == sorted(digests)
    assert "default-src 'none'" in parts.policy
    assert "unsafe" not in parts.policy


def test_the_script_writes_no_markup(page_file):
    script = parsed(page_file.read_text(encoding="utf-8")).texts[-1][1]
    assert len(script) > 10_000
    ways = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(")
    assert not [way for way in ways if way in script]


def test_data_that_look_like_a_place_in_the_page_stay_data(data):
    twisted = {**data, "about": {**data["about"], "dataset": "%%script%% %%data%%"}}
    text = page(twisted)
    found = next(t for f, t in parsed(text).texts if f.get("type") == "application/json")
    assert json.loads(found) == twisted


def test_the_same_data_make_the_same_page(data, page_file):
    assert page(data) == page_file.read_text(encoding="utf-8")
