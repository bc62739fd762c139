"""How explanations look: terminal and page; hostile, empty, long and right-to-left texts among them."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from rich.console import Console

from capsroute.explain import (
    Child,
    Explanation,
    as_text,
    html_page,
    print_explanations,
    write_html,
)
from capsroute.explain.render import MOST_CLASSES, clean, one_line, percent, pieces, signed, unread_note

WORDS = re.compile(r"\w+|[^\w\s]")


def explanation(text: str = "The tea is warm, the cup is not.", labels: int = 3, **changes: Any) -> Explanation:
    """An explanation of any text, with numbers that are easy to find again."""
    found = list(WORDS.finditer(text))
    names = tuple(["good", "bad", "plain", *(f"class{n}" for n in range(3, labels))][:labels])
    scores = tuple(0.8 / (c + 1) for c in range(labels))
    credit = tuple(tuple((0.5 - 0.1 * t) / (c + 1) for t in range(len(found))) for c in range(labels))
    bias = tuple(0.1 for _ in names)
    coupling = tuple(1 / labels for _ in names)
    reads = tuple((token, 0.25) for token in range(min(4, len(found))))
    children = tuple(
        Child(0, n, tuple((0.4 - 0.2 * n) / (c + 1) for c in range(labels)), coupling, reads) for n in range(5)
    )
    made = Explanation(
        text=text,
        tokens=tuple(match.group().lower() for match in found),
        spans=tuple(match.span() for match in found),
        labels=names,
        scores=scores,
        predicted=names[:1],
        routing="graph",
        quantity="length_before_squash",
        total=tuple(sum(row) + part for row, part in zip(credit, bias, strict=True)),
        credit=credit,
        bias=bias,
        children=children if found else (),
        children_in_all=9,
        relation=None,
    )
    return replace(made, **changes)


HOSTILE = "<script>alert('x')</script> \"quoted\" & <img src=x onerror=alert(1)> $5^2_3$ \x1b[31mred\x00"
TEXTS: MappingProxyType[str, str] = MappingProxyType(
    {
        "plain": "The tea is warm, the cup is not.",
        "empty": "",
        "spaces": "  \n ",
        "one": "tea",
        "hostile": HOSTILE,
        "emoji": "good 😀 tea 👩🏽‍🍳️ warm",
        "rtl": "התה חם, הכוס לא",
        "cjk": "茶很热但是杯子不热" * 12,
        "lines": "one line\n\nand another\tand a tab",
        "surrogate": "half \ud83d of a pair",
        "long": "warm tea " * 400,
        "wide": "t" * 2000,
    }
)


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, and the text of the coloured panels."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_pieces_are_the_text(text: str) -> None:
    why = explanation(text)
    last = max((stop for _, stop in why.spans), default=0)
    assert "".join(text[piece.start : piece.stop] for piece in pieces(why)) == text[:last]
    assert [token for piece in pieces(why) for token in piece.tokens] == list(range(len(why.tokens)))


def test_tokens_that_share_characters_are_one_piece() -> None:
    why = explanation("a 😀b", spans=((0, 1), (2, 3), (2, 3), (3, 4), (3, 4)), tokens=("a", "x", "y", "b", "b"))
    assert [(piece.start, piece.stop, piece.tokens) for piece in pieces(why)] == [
        (0, 1, (0,)),
        (1, 2, ()),
        (2, 3, (1, 2)),
        (3, 4, (3, 4)),
    ]


def test_numbers_and_names() -> None:
    assert [signed(x) for x in (0.25, -0.25, 0.0, 0.00004)] == ["+0.250", "-0.250", "+0.000", "+4e-05"]
    assert [percent(x) for x in (0.256, 0.001, 0.0)] == ["26 %", "< 1 %", "0 %"]
    assert clean("a\x1b[0m\x00\x7f\x9b\ud800\n") == "a␛[0m␀␡\ufffd\ufffd\n"
    assert one_line(" a\n b  c ", 4) == "a b…"


def test_text_that_was_not_read_is_noted() -> None:
    assert unread_note(explanation("warm tea .")) is None
    cut = replace(explanation("warm tea"), text="warm tea and cake")
    assert unread_note(cut) == "The network read 2 words; the last 9 characters were not read."
    for shown in (as_text(cut), html_page([cut])):
        assert "the last 9 characters were not read" in shown
        assert "and cake" in shown


# ---------------------------------------------------------------- terminal


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_plain_output_has_no_escape_codes(text: str) -> None:
    file = StringIO()
    print_explanations([explanation(text)], console=Console(file=file, width=80))
    shown = file.getvalue()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert max(map(len, shown.splitlines())) <= 90
    shown.encode("utf-8")
    assert str(explanation(text)).encode("utf-8")


def test_plain_output_says_it_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = str(explanation())
    assert "\x1b" not in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["The", "+0.500", "█" * 20] in lines
    assert ["not", "-0.300", "░" * 12] in lines
    assert "Why good: words" in shown
    assert "make 0.600, which squash turns into the score 0.800" in " ".join(shown.split())
    assert '"The" 25 %' in shown
    assert all(not line.endswith(" ") for line in shown.splitlines())


def test_another_class_and_unknown_classes() -> None:
    assert "Why bad: words" in as_text(explanation(), label="bad")
    with pytest.raises(ValueError, match="unknown label 'bat'; did you mean 'bad'"):
        as_text(explanation(), label="bat")


def test_a_terminal_gets_both_colours() -> None:
    file = StringIO()
    console = Console(file=file, force_terminal=True, color_system="truecolor", width=80)
    console.print(explanation())
    shown = file.getvalue()
    assert re.search(r"\x1b\[[0-9;]*48;2;31;111;184m.{0,9}The", shown), "for: blue"
    assert re.search(r"\x1b\[[0-9;]*3;[0-9;]*48;2;\d+;\d+;\d+mnot", shown), "against: italic on orange"


def test_a_terminal_without_unicode_gets_bars() -> None:
    file = StringIO()
    console = Console(file=file, width=80)
    with console.capture() as captured:
        console.print(explanation(), height=None)
    assert "█" in captured.get()
    ascii_only = Console(file=_Ascii(), width=80)
    ascii_only.print(explanation())
    assert "####" in ascii_only.file.getvalue()  # pyright: ignore
    assert ascii_only.file.getvalue().isascii()  # pyright: ignore


class _Ascii(StringIO):
    encoding = "ascii"  # pyright: ignore


# ---------------------------------------------------------------- page


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_page_is_whole_and_asks_for_nothing(text: str, tmp_path: Path) -> None:
    write_html([explanation(text), explanation(text)], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    seen = Page(page)
    tags = {tag for tag, _ in seen.elements}
    assert not tags & {"script", "img", "link", "iframe", "object", "embed"}
    for _, attributes in seen.elements:
        assert not any(name.startswith("on") or name == "src" for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"url\(|@import|https?:", page)
    assert "\x00" not in page
    assert "\x1b" not in page
    identifiers = [attributes["id"] for _, attributes in seen.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers)) >= 2
    assert "default-src 'none'" in page


def test_hostile_text_and_labels_stay_text() -> None:
    hostile = replace(
        explanation(HOSTILE), labels=("<b>bold</b>", '" onfocus="x', "c"), predicted=("<b>bold</b>",), routing="<i>"
    )
    page = html_page([hostile], title="<title>")
    Page(page)
    body = page[page.index("<body>") :]
    assert "<b>bold" not in body
    assert "<script" not in body
    assert "&lt;b&gt;bold&lt;/b&gt;" in body
    assert all("onfocus" not in attributes for _, attributes in Page(page).elements)


def test_a_page_can_be_used_without_a_mouse_or_eyes() -> None:
    why = explanation()
    page = html_page([why])
    seen = Page(page)
    radios = [attributes for attributes in seen.all("input") if attributes["type"] == "radio"]
    assert len(radios) == len(why.labels)
    assert len({attributes["name"] for attributes in radios}) == 1
    assert ["checked" in attributes for attributes in radios] == [True, False, False]
    assert len(seen.all("legend")) == len(seen.all("fieldset")) == 1
    assert len(seen.all("section")) == 3
    assert all(attributes["aria-label"] for attributes in seen.all("section"))
    assert all("scope" in attributes for attributes in seen.all("th"))
    assert seen.all("html")[0]["lang"] == "en"
    reached = [attributes for attributes in seen.all("span") if attributes.get("tabindex") == "0"]
    assert reached
    assert '<span class="hidden"> (+0.500) </span>' in page
    assert 'data-n="−0.300"' in page
    assert "prefers-color-scheme: dark" in page
    assert 'dir="auto"' in page


def test_a_page_can_begin_with_another_class() -> None:
    radios = Page(html_page([explanation()], label="plain")).all("input")
    assert ["checked" in attributes for attributes in radios] == [False, False, True]
    with pytest.raises(ValueError, match="unknown label 'x'"):
        html_page([explanation()], label="x")


def test_of_many_classes_the_highest_are_shown() -> None:
    why = explanation(labels=300, predicted=("class200",))
    page = html_page([why])
    assert len(Page(page).all("input")) == MOST_CLASSES
    assert f"{MOST_CLASSES} of 300 classes are shown" in page
    assert "class200" in page
    assert "12 of 300 classes" in as_text(why)
    assert len(Page(html_page([why], label="class250")).all("input")) == MOST_CLASSES


def test_numbers_on_the_page_add_up() -> None:
    why = explanation("warm tea " * 30)
    page = html_page([why])
    table = page[page.index("Strongest words") : page.index("together")]
    numbers = [float(x.replace("−", "-")) for x in re.findall(r'<td class="number">([+−][\d.]+)</td>', table)]
    assert len(numbers) == 12, "ten words, the others, the bias"
    assert sum(numbers) == pytest.approx(why.total[0], abs=0.01)


def test_a_notebook_shows_it() -> None:
    why = explanation()
    first, second = why._repr_html_(), why._repr_html_()
    Page(first)
    assert "<style>" in first
    names = [re.findall(r'name="([^"]+)"', shown)[0] for shown in (first, second)]
    assert names[0] != names[1], "the same explanation in two cells is switched apart"
    assert "<body" not in first
