"""Explanations in a terminal: coloured words, scores, strongest words and children; plain text in a file or pipe."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from capsroute.explain.explanation import Child, Explanation
from capsroute.explain.render import (
    MOST_UNREAD,
    NOTICEABLE,
    clean,
    full_colour,
    left_out_note,
    one_line,
    percent,
    piece_credit,
    pieces,
    predicted_as,
    shown_labels,
    signed,
    sum_sentence,
    unread,
    unread_note,
)

# Backgrounds from pale to full, each with the ink that is read on it; they look alike on dark and on light terminals.
FOR = ("#111111 on #cfe3f7", "#111111 on #8fc1ee", "#ffffff on #1f6fb8")
AGAINST = ("#111111 on #fbe0c3", "#111111 on #f5b670", "#ffffff on #b35806")
FOR_BAR, AGAINST_BAR = "#3b8ad8", "#e08a2e"  # on a dark and on a light terminal
WORDS = 8
CHILDREN = 4
BAR = 20


@dataclass(frozen=True)
class TerminalView:
    """An explanation as rich prints it; `label`: the class to explain, None for the predicted one."""

    explanation: Explanation
    label: str | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        said = self.explanation
        label = said.labels[said.index(self.label)]
        # A terminal that knows ASCII only gets bars that it can draw.
        full, half = ("#", "-") if options.ascii_only else ("█", "░")
        yield _headline(said)
        yield Padding(_coloured(said, label), (0, 2))
        note = unread_note(said)
        if note:
            yield Padding(Text(note, style="dim italic"), (0, 2))
        yield Text()
        yield Padding(_scores(said, label, full), (0, 2))
        yield Text()
        yield Text.assemble(("Why ", "bold"), (clean(label), "bold"), f": {sum_sentence(said, label)}.")
        if said.tokens:
            yield Padding(_words(said, label, full, half), (0, 2))
        children = _speaking(said, label)
        if children:
            yield Padding(_children(said, label, children), (1, 2, 0, 2))
        yield Text()


def print_explanations(
    explanations: Iterable[Explanation], *, label: str | None = None, console: Console | None = None
) -> None:
    """Print explanations, by default to standard output: in colour on a terminal, plainly elsewhere."""
    console = console or Console()
    for explanation in explanations:
        console.print(TerminalView(explanation, label))


def as_text(explanation: Explanation, *, label: str | None = None, width: int = 100) -> str:
    """The explanation as plain text."""
    file = StringIO()
    plain = Console(file=file, width=width, color_system=None, force_terminal=False, force_interactive=False)
    plain.print(TerminalView(explanation, label))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()).rstrip() + "\n"


def _headline(said: Explanation) -> Text:
    score = said.scores[said.index()]
    return Text.assemble(
        (predicted_as(said), "bold"), f"  {score:.3f}", (f"   {said.routing} routing", "dim"), overflow="fold"
    )


def _coloured(said: Explanation, label: str) -> Text:
    """The text with its words on colours; underlined where they speak for the class, bold where they do so loudly."""
    line = Text(overflow="fold")
    largest = full_colour(said)
    c = said.index(label)
    for piece in pieces(said):
        line.append(clean(said.text[piece.start : piece.stop]), _style(piece_credit(said, piece, c) / largest))
    rest = unread(said)
    line.append(clean(rest[:MOST_UNREAD]), "dim")
    if len(rest) > MOST_UNREAD:
        line.append(" …", "dim")
    return line if line.plain.strip() else Text("(no text)", style="dim")


def _style(share: float) -> Style:
    strength = abs(share)
    if strength < NOTICEABLE:
        return Style()
    level = 0 if strength < 0.25 else 1 if strength < 0.6 else 2
    colours = Style.parse((FOR if share > 0 else AGAINST)[level])
    return colours + Style(underline=share > 0, italic=share < 0, bold=level == 2)


def _scores(said: Explanation, label: str, full: str) -> Table:
    table = Table.grid(padding=(0, 2))
    names = shown_labels(said, label)
    for name in names:
        score = said.scores[said.index(name)]
        style = "bold" if name == label else ""
        bar = full * round(BAR * score)
        table.add_row(
            Text(one_line(name, 30), style=style), Text(f"{score:.3f}", style=style), Text(bar, style=FOR_BAR)
        )
    note = left_out_note(said, len(names))
    if note:
        table.add_row(Text(note, style="dim"))
    return table


def _words(said: Explanation, label: str, full: str, half: str) -> Table:
    """The strongest words and, so that the numbers add up, all others together and the bias."""
    c = said.index(label)
    words = [word for word in said.top(label, WORDS) if word.credit]
    rows = [(one_line(word.text or said.tokens[word.token], 30), word.credit, "") for word in words]
    others = len(said.tokens) - len(words)
    if others:
        rows.append((f"({others:,} other words)", sum(said.credit[c]) - sum(word.credit for word in words), "dim"))
    rows.append(("(bias)", said.bias[c], "dim"))
    longest = max(abs(credit) for _, credit, _ in rows) or 1.0
    table = Table.grid(padding=(0, 2))
    for name, credit, style in rows:
        bar = (full if credit > 0 else half) * round(BAR * abs(credit) / longest)
        colour = FOR_BAR if credit > 0 else AGAINST_BAR
        table.add_row(Text(name, style=style), Text(signed(credit)), Text(bar, style=colour))
    return table


def _speaking(said: Explanation, label: str) -> list[Child]:
    """The children with the most to say about a class."""
    c = said.index(label)
    return sorted((child for child in said.children if child.credit[c]), key=lambda child: -abs(child.credit[c]))[
        :CHILDREN
    ]


def _children(said: Explanation, label: str, children: list[Child]) -> Table:
    c = said.index(label)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for heading in ("child", "credit", f"to {one_line(label, 16)}", "mostly read"):
        table.add_column(Text(heading), overflow="fold")
    for child in children:
        name = (
            f"{child.number}" if len({one.column for one in said.children}) == 1 else f"{child.column}/{child.number}"
        )
        read = ", ".join(f'"{_word(said, token)}" {percent(share)}' for token, share in child.reads[:3])
        share = "" if child.coupling is None else percent(child.coupling[c])
        table.add_row(Text(name), Text(signed(child.credit[c])), Text(share), Text(read))
    return table


def _word(said: Explanation, token: int) -> str:
    start, stop = said.spans[token]
    return one_line(said.text[start:stop] or said.tokens[token], 24)
