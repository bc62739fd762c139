"""Explanations as one HTML page that needs nothing else: no network, no script, light or dark as the reader has it.

The class whose words are coloured is chosen with radio buttons, so by keyboard too; CSS shows its panel. Numbers are
in tables, and read aloud behind the strongest words of the text.
"""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from uuid import uuid4

from capsroute.explain.explanation import Explanation
from capsroute.explain.page_panel import panel
from capsroute.explain.render import MOST_CLASSES, clean, left_out_note, one_line, predicted_as, shown_labels

# Which panel is seen follows which radio button is checked; a browser without :has (before 2023) shows all panels.
_SWITCH = "".join(
    f".capsroute:has(.scores label:nth-of-type({n}) input:checked) .panels>section:nth-of-type({n}){{display:block}}"
    for n in range(1, MOST_CLASSES + 1)
)
_FALLBACK = "@supports not selector(:has(a)){.capsroute .panels>section{display:block}}"
_PAGE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 2rem 1rem; background: #eceff3; }
@media (prefers-color-scheme: dark) { body { background: #0e1116; } }
body > * { max-width: 60rem; margin-inline: auto; }
body > .capsroute { margin-inline: auto; }
body > header, body > nav {
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: #1b1f24; }
body > header h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 0.5rem; overflow-wrap: anywhere; }
body > header p { margin: 0 0 1.25rem; max-width: 44rem; }
body > nav ol { padding-inline-start: 1.5rem; margin: 0 0 1.5rem; }
body > nav a { color: inherit; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { body > header, body > nav { color: #e6e9ed; } }
@media (max-width: 46rem) { body { padding: 1rem 0.5rem; } }
"""
# A page of hostile text may ask for nothing, even if a browser found markup in it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def html_page(
    explanations: Sequence[Explanation], *, label: str | None = None, title: str = "Why this label?"
) -> str:
    """One page for one or several explanations; `label`: the class shown first, None: the predicted one."""
    several = len(explanations) > 1
    articles = "".join(_article(said, label, number, f"e{number}") for number, said in enumerate(explanations, 1))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{_style()}{_PAGE}</style>\n</head>\n<body>\n"
        f"<header><h1>{_text(title)}</h1><p>{_INTRODUCTION}</p></header>\n"
        f"{_contents(explanations) if several else ''}<main>\n{articles}</main>\n</body>\n</html>\n"
    )


def write_html(
    explanations: Sequence[Explanation],
    path: str | Path,
    *,
    label: str | None = None,
    title: str = "Why this label?",
) -> None:
    """Write the page to a file."""
    Path(path).write_text(html_page(explanations, label=label, title=title), encoding="utf-8")


def html_fragment(explanation: Explanation) -> str:
    """One explanation for a notebook: an article with its own style."""
    # A cell shown twice must not share its radio buttons with its twin.
    return f"<style>{_style()}</style>{_article(explanation, None, None, f'e{uuid4().hex[:12]}')}"


_INTRODUCTION = (
    "Blue words with a solid line speak for the chosen class, orange ones with a dashed line against it. The numbers "
    "are the computation itself, not an estimate: the credits of all words and the bias add up to the length of the "
    "class capsule that the score is made from."
)


def _style() -> str:
    return files("capsroute.explain").joinpath("page.css").read_text(encoding="utf-8") + _SWITCH + _FALLBACK


def _contents(explanations: Sequence[Explanation]) -> str:
    entries = "".join(
        f'<li><a href="#e{number}">{_text(predicted_as(said))}: '
        f"<bdi>{_text(one_line(said.text, 70) or '(no text)')}</bdi></a></li>"
        for number, said in enumerate(explanations, 1)
    )
    return f'<nav aria-label="Explanations"><ol>{entries}</ol></nav>\n'


def _article(said: Explanation, label: str | None, number: int | None, name: str) -> str:
    first = said.labels[said.index(label)]
    labels = shown_labels(said, first)
    before = "" if number is None else f'<span class="hidden">Text {number}: </span>'
    note = left_out_note(said, len(labels))
    return (
        f'<article class="capsroute" id="{name}" aria-labelledby="{name}-title">'
        f'<h2 id="{name}-title">{before}<bdi>{_text(predicted_as(said))}</bdi>'
        f"<small>score {said.scores[said.index()]:.3f}, {_text(said.routing)} routing</small></h2>"
        f'<fieldset class="scores"><legend>Scores; colour the words for</legend>'
        f"{''.join(_choice(said, one, name, one == first) for one in labels)}</fieldset>"
        f"{f'<p class=note>{_text(note)}</p>' if note else ''}"
        f'<div class="panels">{"".join(panel(said, one) for one in labels)}</div></article>\n'
    )


def _choice(said: Explanation, label: str, name: str, chosen: bool) -> str:
    """A radio button, a label and a bar."""
    score = said.scores[said.index(label)]
    checked = " checked" if chosen else ""
    return (
        f'<label><input type="radio" name="{name}-class"{checked}>'
        f'<bdi class="name" title="{_text(label)}">{_text(label)}</bdi>'
        f'<span class="track"><i style="width:{100 * score:.1f}%"></i></span>'
        f'<span class="number">{score:.3f}</span></label>'
    )


def _text(text: str) -> str:
    return escape(clean(text))
