"""Explanations as a picture, PNG or SVG: for each text its scores as bars beside the text on colours.

Everything is measured before it is placed, in points from the upper left corner, so that nothing overlaps.
matplotlib is imported when a picture is drawn.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capsroute.checks import above, one_of
from capsroute.explain.explanation import Explanation
from capsroute.explain.picture_layout import LONGEST, Ruler, atoms, matplotlib, place
from capsroute.explain.render import (
    NOTICEABLE,
    clean,
    full_colour,
    left_out_note,
    one_line,
    predicted_as,
    shown_labels,
    sum_sentence,
    unread_note,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, QUIET, LINE, TRACK = "#1b1f24", "#5a6470", "#c9d0d8", "#e6eaee"
FOR, AGAINST = "#1f6fb8", "#d66e0a"
WIDTH, MARGIN = 720.0, 24.0
SCORES, GAP = 210.0, 30.0
TEXT_LEFT = MARGIN + SCORES + GAP
TEXT_WIDTH = WIDTH - MARGIN - TEXT_LEFT
LEADING, ROW, NOTE = 21.0, 17.0, 13.0
MOST_BARS = 8
MOST_PIXELS = 65_000  # what matplotlib can draw on a side


def draw(explanations: Sequence[Explanation], *, label: str | None = None) -> "Figure":
    """A matplotlib figure of one or several explanations; `label`: the class to explain, None: the predicted one."""
    if not explanations:
        raise ValueError("there is nothing to draw: give at least one explanation.")
    figure_class: Any = matplotlib("figure").Figure
    names = [said.labels[said.index(label)] for said in explanations]
    ruler = Ruler("".join(clean(said.text[:LONGEST] + "".join(said.labels)) for said in explanations) + "… −±")
    # A rehearsal on a sheet without an end says how long the sheet must be.
    height = _compose(_Sheet(figure_class(), 1.0, ruler), explanations, names)
    figure = figure_class(figsize=(WIDTH / 72, height / 72), facecolor="white")
    _compose(_Sheet(figure, height, ruler), explanations, names)
    return figure


def write_image(
    explanations: Sequence[Explanation], path: str | Path, *, label: str | None = None, dpi: int = 150
) -> None:
    """Draw explanations into a .png or .svg file."""
    path = Path(path)
    one_of("kind of picture", path.suffix.lower(), (".png", ".svg"))
    above("dpi", dpi, 0)
    figure: Any = draw(explanations, label=label)
    pixels: float = figure.get_figheight() * dpi
    if path.suffix.lower() == ".png" and pixels > MOST_PIXELS:
        raise ValueError(
            f"{len(explanations)} explanations make a picture {pixels:.0f} pixels high, which is more than "
            f"{MOST_PIXELS}: draw fewer of them or write an HTML page."
        )
    # Neither the date nor random names: the same explanations give the same file.
    with import_module("matplotlib").rc_context({"svg.hashsalt": "capsroute"}):
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        figure.savefig(path, dpi=dpi, metadata=metadata)


class _Sheet:
    """A figure whose unit is a point and whose origin is the upper left corner."""

    def __init__(self, figure: Any, height: float, ruler: Ruler) -> None:
        self._rectangle: Any = matplotlib("patches").Rectangle
        self.axes: Any = figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, WIDTH), ylim=(height, 0))
        self.axes.axis("off")
        self.ruler = ruler

    def write(
        self, text: str, left: float, base: float, size: float, *, colour: str = INK, bold: bool = False
    ) -> None:
        # Dollar signs are dollars: nothing is read as a formula.
        self.axes.text(
            left,
            base,
            text,
            fontsize=size,
            color=colour,
            family=self.ruler.families,
            weight=self.ruler.weight(text, bold),
            va="baseline",
            parse_math=False,
        )

    def box(self, left: float, top: float, width: float, height: float, colour: str, *, alpha: float = 1.0) -> None:
        self.axes.add_patch(self._rectangle((left, top), width, height, facecolor=colour, alpha=alpha, linewidth=0))

    def line(self, left: float, right: float, y: float, colour: str, *, dashed: bool = False) -> None:
        self.axes.plot((left, right), (y, y), color=colour, linewidth=1.4, linestyle=(0, (2, 1.2)) if dashed else "-")


def _compose(sheet: _Sheet, explanations: Sequence[Explanation], names: list[str]) -> float:
    """Draw everything; returns where it ends."""
    top = MARGIN
    for number, (said, label) in enumerate(zip(explanations, names, strict=True)):
        if number:
            sheet.box(MARGIN, top, WIDTH - 2 * MARGIN, 0.8, LINE)
            top += 22
        top = _explanation(sheet, said, label, top) + 16
    return _key(sheet, top)


def _explanation(sheet: _Sheet, said: Explanation, label: str, top: float) -> float:
    base = top + 10
    title = sheet.ruler.fit(one_line(predicted_as(said)), 13, WIDTH - 2 * MARGIN - 200, bold=True)
    sheet.write(title, MARGIN, base, 13, bold=True)
    score = f"score {said.scores[said.index()]:.3f}, {said.routing} routing"
    sheet.write(score, MARGIN + sheet.ruler.width(title, 13, bold=True) + 10, base, 10, colour=QUIET)
    below = base + 14
    return max(_scores(sheet, said, label, below), _text(sheet, said, label, below))


def _scores(sheet: _Sheet, said: Explanation, label: str, top: float) -> float:
    """A row for each class: name, bar, number."""
    names = shown_labels(said, label)
    # The explained class keeps its bar, however low its score.
    others = [name for name in names if name != label][: MOST_BARS - 1]
    kept = [name for name in names if name == label or name in others]
    for row, name in enumerate(kept):
        base = top + row * ROW + 11
        score = said.scores[said.index(name)]
        sheet.write(sheet.ruler.fit(one_line(name), 10, 82, bold=name == label), MARGIN, base, 10, bold=name == label)
        sheet.box(MARGIN + 88, base - 7, 82, 7, TRACK)
        sheet.box(MARGIN + 88, base - 7, 82 * score, 7, FOR)
        sheet.write(f"{score:.3f}", MARGIN + 178, base, 10, bold=name == label)
    end = top + len(kept) * ROW
    note = left_out_note(said, len(kept))
    if note:
        sheet.write(note, MARGIN, end + 9, 8.5, colour=QUIET)
        end += NOTE
    return end


def _text(sheet: _Sheet, said: Explanation, label: str, top: float) -> float:
    """The text on colours, and how its parts make the score."""
    text, more = atoms(said, label, full_colour(said))
    placed = place(sheet.ruler, text, size=12, width=TEXT_WIDTH)
    for one in placed:
        base = top + one.line * LEADING + 12
        left = TEXT_LEFT + one.left
        strength = min(1.0, abs(one.atom.share))
        if strength >= NOTICEABLE:
            colour = FOR if one.atom.share > 0 else AGAINST
            sheet.box(left - 0.8, base - 11, one.width + 1.6, 15, colour, alpha=0.55 * strength)
            if strength >= 0.25:
                sheet.line(left, left + one.width, base + 4, colour, dashed=one.atom.share < 0)
        sheet.write(one.atom.text, left, base, 12)
    end = top + (placed[-1].line + 1) * LEADING if placed else top
    if not placed:
        sheet.write("(no text)", TEXT_LEFT, end + 12, 12, colour=QUIET)
        end += LEADING
    cut = f"… {more:,} more characters are not shown." if more else None
    because = f"{sheet.ruler.fit(one_line(label), 9, 120)}: {sum_sentence(said, label)}."
    for note in (cut, unread_note(said), because):
        for line in sheet.ruler.lines(note, 9, TEXT_WIDTH) if note else []:
            sheet.write(line, TEXT_LEFT, end + 10, 9, colour=QUIET)
            end += NOTE
    return end + 2


def _key(sheet: _Sheet, top: float) -> float:
    """What the colours mean."""
    left, base = MARGIN, top + 10
    for name, colour in (("speaks for", FOR), ("speaks against", AGAINST)):
        width = sheet.ruler.width(name, 9)
        sheet.box(left, base - 9, width + 6, 12.5, colour, alpha=0.4)
        sheet.line(left, left + width + 6, base + 3.5, colour, dashed=colour == AGAINST)
        sheet.write(name, left + 3, base, 9)
        left += width + 16
    sheet.write(
        "the class whose bar has its name in bold; full colour: the strongest word of the text for any class",
        left,
        base,
        9,
        colour=QUIET,
    )
    return base + MARGIN
