"""Why a text got its label: the credit of every word, divided exactly, and ways to look at it.

attribution.py    how the class capsules of one text divide among its words and children
explanation.py    the same with the text, its labels and scores; JSON
render.py         what all pictures share: colours, numbers, sentences
terminal.py       coloured words and tables in a terminal, plain text elsewhere
page.py           one HTML page that needs no network and no script; page_panel.py and page.css belong to it
picture.py        PNG and SVG; picture_layout.py measures and breaks lines for it

>>> import torch
>>> from capsroute import CapsuleNetwork, NetworkConfig
>>> network = CapsuleNetwork(NetworkConfig(vocabulary=9, classes=2, word_dim=8, kinds=4, dim=8, children=6))
>>> why = explain(network, torch.tensor([[3, 1, 4]]), text="Rain, then sun", tokens=["rain", "then", "sun"],
...               spans=[(0, 4), (6, 10), (11, 14)], labels=["dull", "bright"])
>>> print(str(why).splitlines()[0].endswith("graph routing"), "<article" in html_page([why]))
True True
"""

from capsroute.explain.attribution import EXACT, ColumnCredit, Credit, attribute
from capsroute.explain.explanation import Child, Explanation, Word, explain
from capsroute.explain.page import html_page, write_html
from capsroute.explain.picture import draw, write_image
from capsroute.explain.terminal import as_text, print_explanations

__all__ = [
    "EXACT",
    "Child",
    "ColumnCredit",
    "Credit",
    "Explanation",
    "Word",
    "as_text",
    "attribute",
    "draw",
    "explain",
    "html_page",
    "print_explanations",
    "write_html",
    "write_image",
]
