"""Explanations as pictures: their size, that nothing overlaps or leaves the sheet, and what cannot be drawn."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from capsroute.explain import draw, write_image
from capsroute.explain.picture_layout import LONGEST, Atom, Ruler, place
from tests.test_explain_render import TEXTS, explanation


def size_of_png(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def test_a_picture_has_the_right_size(tmp_path: Path) -> None:
    write_image([explanation()], tmp_path / "one.png", dpi=100)
    write_image([explanation(), explanation(), explanation()], tmp_path / "three.png", dpi=50)
    width, one = size_of_png(tmp_path / "one.png")
    assert width == 1000
    narrow, three = size_of_png(tmp_path / "three.png")
    assert narrow == 500
    assert 1.0 < three / (one / 2) < 3.2


def test_an_svg_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        write_image([explanation()], tmp_path / name)
    one, two = ((tmp_path / name).read_bytes() for name in ("one.svg", "two.svg"))
    assert one == two
    assert b"<svg" in one


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_nothing_in_a_picture_overlaps(text: str) -> None:
    figure: Any = draw([explanation(text), explanation(text, labels=40)], label="bad")
    figure.set_dpi(150)
    renderer = FigureCanvasAgg(figure).get_renderer()
    box = figure.bbox
    boxes = [
        one.get_window_extent(renderer).extents.tolist() for one in figure.axes[0].texts if one.get_text().strip()
    ]
    for x0, y0, x1, y1 in boxes:
        assert box.x0 <= x0 <= x1 <= box.x1 + 1, "inside the sheet"
        assert box.y0 <= y0 <= y1 <= box.y1 + 1, "inside the sheet"
    overlaps = [(a, b) for n, a in enumerate(boxes) for b in boxes[:n] if _overlap(a, b) > 3]
    assert not overlaps


def _overlap(a: Sequence[float], b: Sequence[float]) -> float:
    """By how many pixels two boxes share room, in the direction in which they share less."""
    return min(min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1]))


def test_a_long_text_is_cut_visibly() -> None:
    figure: Any = draw([explanation("warm tea " * 400)])
    shown = [one.get_text() for one in figure.axes[0].texts]
    assert f"… {400 * 9 - 1 - LONGEST:,} more characters are not shown." in shown
    assert shown.count("tea") == LONGEST // 9


def test_right_to_left_words_begin_at_the_right() -> None:
    ruler = Ruler("abcאבג")
    for words, ascending in ((["abc", "bca"], True), (["אבג", "בגא"], False)):
        first, second = place(ruler, [Atom(word, 0.0, True) for word in words], size=12, width=300)
        assert (first.left < second.left) is ascending
        assert first.line == second.line == 0


def test_pictures_that_cannot_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"unknown kind of picture '.jpg'.*Choose from: .png, .svg"):
        write_image([explanation()], tmp_path / "x.jpg")
    with pytest.raises(ValueError, match="there is nothing to draw"):
        draw([])
    with pytest.raises(ValueError, match="dpi must be greater than 0"):
        write_image([explanation()], tmp_path / "x.png", dpi=0)
    with pytest.raises(ValueError, match=r"make a picture \d+ pixels high.*draw fewer"):
        write_image([explanation()], tmp_path / "x.png", dpi=100_000)
    for name in ("matplotlib.figure", "matplotlib.font_manager"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=r"pictures need matplotlib: pip install capsroute\[paper\]"):
        write_image([explanation()], tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


def test_matplotlib_is_imported_only_to_draw() -> None:
    code = "import sys, capsroute.explain; print(sorted(m for m in sys.modules if m.startswith('matplotlib')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", '"')) == []
