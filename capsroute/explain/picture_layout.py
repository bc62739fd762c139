"""Measuring and breaking lines for the picture: how wide a word is, which font has its letters, where it goes.

matplotlib is imported when it is first asked for. Lengths are points (1/72 inch).
"""

from collections.abc import Container
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unicodedata import bidirectional, category

from capsroute.explain.explanation import Explanation
from capsroute.explain.render import clean, piece_credit, pieces

LONGEST = 900
FINE = 10  # fonts are measured this many times larger than drawn, so that widths are not rounded to pixels
REPLACEMENT = "\ufffd"


def matplotlib(part: str) -> Any:
    """A module of matplotlib, which not everybody has installed."""
    try:
        return import_module(f"matplotlib.{part}")
    except ImportError as error:
        raise ValueError("pictures need matplotlib: pip install capsroute[paper].") from error


@dataclass(frozen=True)
class Atom:
    """What is drawn in one colour: a word, or what stands between words without a space."""

    text: str
    share: float  # of the full colour; negative: against
    spaced: bool  # a space stands before it


@dataclass(frozen=True)
class Placed:
    """An atom in its place: the left end of its line and how wide it is."""

    atom: Atom
    line: int
    left: float
    width: float


class Ruler:
    """Widths of texts in the fonts of this computer that have their letters."""

    def __init__(self, text: str) -> None:
        self._renderer = matplotlib("backends.backend_agg").RendererAgg(1, 1, 72 * FINE)
        self._fonts = matplotlib("font_manager")
        self.families, self._missing, self._borrowed = _fonts_for(text, self._fonts)

    def drawable(self, text: str) -> str:
        """The text without letters that no font here has: signs that join are dropped, others replaced."""
        return "".join(_stand_in(letter) if letter in self._missing else letter for letter in text)

    def width(self, text: str, size: float, bold: bool = False) -> float:
        """Width of a drawable text."""
        font = self._fonts.FontProperties(family=self.families, size=size, weight=self.weight(text, bold))
        return self._renderer.get_text_width_height_descent(text, font, ismath=False)[0] / FINE

    def weight(self, text: str, bold: bool) -> str:
        """Bold if asked for and possible: fonts that help out have often no bold letters."""
        return "bold" if bold and self._borrowed.isdisjoint(text) else "normal"

    def fit(self, text: str, size: float, width: float, bold: bool = False) -> str:
        """The text, cut with an ellipsis where it is wider."""
        text = self.drawable(text)
        if self.width(text, size, bold) <= width:
            return text
        while text and self.width(f"{text}…", size, bold) > width:
            text = text[:-1]
        return f"{text}…"

    def lines(self, text: str, size: float, width: float) -> list[str]:
        """A sentence broken into lines."""
        lines = [""]
        for word in self.drawable(text).split(" "):
            longer = f"{lines[-1]} {word}".strip()
            if self.width(longer, size) > width and lines[-1]:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines


def atoms(explanation: Explanation, label: str, full: float) -> tuple[list[Atom], int]:
    """The text in atoms, and how many characters more it has."""
    c = explanation.index(label)
    found: list[Atom] = []
    spaced = False
    for piece in pieces(explanation):
        stop = min(piece.stop, LONGEST)
        share = piece_credit(explanation, piece, c) / full
        for word in _words_and_spaces(clean(explanation.text[piece.start : stop])):
            if not word.isspace():
                found.append(Atom(word, share, spaced))
            spaced = word.isspace()
    last = max((stop for _, stop in explanation.spans), default=0)
    tail = explanation.text[last:LONGEST] if last < LONGEST else ""
    if not any(letter.isalnum() for letter in tail):  # a full stop that is no token; unread text has its own note
        for word in _words_and_spaces(clean(tail)):
            if not word.isspace():
                found.append(Atom(word, 0.0, spaced))
            spaced = word.isspace()
    return found, max(0, last - LONGEST)


def _words_and_spaces(text: str) -> list[str]:
    parts: list[str] = []
    for letter in text:
        if parts and parts[-1].isspace() == letter.isspace():
            parts[-1] += letter
        else:
            parts.append(letter)
    return parts


def place(ruler: Ruler, text: list[Atom], *, size: float, width: float) -> list[Placed]:
    """Break atoms into lines, at spaces where possible, and set right-to-left texts from the right."""
    space = ruler.width("n n", size) - ruler.width("nn", size)
    placed: list[Placed] = []
    line, end = 0, 0.0
    for cluster in _clusters(ruler, text, size, width):
        widths = [ruler.width(atom.text, size) for atom in cluster]
        gap = space if cluster[0].spaced and end else 0.0
        if end and end + gap + sum(widths) > width:
            line, end, gap = line + 1, 0.0, 0.0
        end += gap
        for atom, wide in zip(cluster, widths, strict=True):
            placed.append(Placed(atom, line, end, wide))
            end += wide
    if _right_to_left(text):
        placed = [Placed(one.atom, one.line, width - one.left - one.width, one.width) for one in placed]
    return placed


def _clusters(ruler: Ruler, text: list[Atom], size: float, width: float) -> list[list[Atom]]:
    """Atoms that no space divides, as far as they fit into a line together."""
    clusters: list[list[Atom]] = []
    used = 0.0
    for atom in (part for one in text for part in _narrow(ruler, one, size, width)):
        wide = ruler.width(atom.text, size)
        if clusters and not atom.spaced and used + wide <= width:
            clusters[-1].append(atom)
            used += wide
        else:
            clusters.append([atom])
            used = wide
    return clusters


def _narrow(ruler: Ruler, atom: Atom, size: float, width: float) -> list[Atom]:
    """An atom, in parts if it is wider than a line."""
    text = ruler.drawable(atom.text)
    parts: list[Atom] = []
    while text:
        fits = len(text)
        while fits > 1 and (wide := ruler.width(text[:fits], size)) > width:
            fits = max(1, min(fits - 1, int(fits * width / wide)))
        parts.append(Atom(text[:fits], atom.share, atom.spaced and not parts))
        text = text[fits:]
    return parts


def _right_to_left(text: list[Atom]) -> bool:
    """Whether the first letter that has a direction is Hebrew, Arabic or the like."""
    directions = (bidirectional(letter) for atom in text for letter in atom.text)
    return next((kind for kind in directions if kind in ("L", "R", "AL")), "L") != "L"


def _fonts_for(text: str, fonts: Any) -> tuple[list[str], set[str], set[str]]:
    """Names of fonts that together have the letters of a text, the letters that none has, and those borrowed."""
    missing = {letter for letter in text if not letter.isspace()}
    families: list[str] = list(fonts.FontProperties().get_family())
    missing -= _letters(fonts.get_font(fonts.findfont(fonts.FontProperties())).get_charmap(), missing)
    borrowed: set[str] = set()
    for entry in sorted(fonts.fontManager.ttflist, key=lambda entry: entry.name) if missing else []:
        try:
            font = fonts.get_font(entry.fname)
        except (OSError, RuntimeError):  # a font that this FreeType cannot read
            continue
        # Fonts of small images, such as coloured emoji, cannot be drawn; a last resort has a box for every letter.
        has = (
            set[str]() if not font.scalable or "Last Resort" in entry.name else _letters(font.get_charmap(), missing)
        )
        if has:
            families.append(entry.name)
            missing -= has
            borrowed |= has
    return families, missing, borrowed


def _letters(charmap: Container[int], wanted: set[str]) -> set[str]:
    return {letter for letter in wanted if ord(letter) in charmap}


def _stand_in(letter: str) -> str:
    joins = category(letter) == "Cf" or 0xFE00 <= ord(letter) <= 0xFE0F
    return "" if joins else REPLACEMENT
