"""What the terminal, the page and the picture share: pieces of text, colours, numbers and sentences.

A word that speaks for a class is blue, one that speaks against it orange: two colours that all kinds of colour
blindness tell apart; underlines (solid, dashed) and signed numbers say the same without colour.
"""

from dataclasses import dataclass

from capsroute.explain.explanation import Explanation

MOST_CLASSES = 12
MOST_UNREAD = 600
NOTICEABLE = 0.05  # share of the largest credit under which a word is not marked


@dataclass(frozen=True)
class Piece:
    """A stretch of the text: one word (or several tokens that share characters), or what lies between words."""

    start: int
    stop: int
    tokens: tuple[int, ...]


def pieces(explanation: Explanation) -> list[Piece]:
    """The whole text in stretches, up to its last word; the rest is `unread`."""
    merged: list[tuple[int, int, tuple[int, ...]]] = []
    for token, (start, stop) in enumerate(explanation.spans):
        if merged and (start < merged[-1][1] or (start, stop) == merged[-1][:2]):
            first, last, tokens = merged.pop()
            merged.append((first, max(last, stop), (*tokens, token)))
        else:
            merged.append((start, stop, (token,)))
    found: list[Piece] = []
    end = 0
    for start, stop, tokens in merged:
        if end < start:
            found.append(Piece(end, start, ()))
        found.append(Piece(start, stop, tokens))
        end = stop
    return found


def unread(explanation: Explanation) -> str:
    """What follows the last word that the network read."""
    return explanation.text[max((stop for _, stop in explanation.spans), default=0) :]


def unread_note(explanation: Explanation) -> str | None:
    """A sentence where the text was cut; what follows the last word may also be a full stop."""
    rest = unread(explanation)
    if not any(character.isalnum() for character in rest):
        return None
    if not explanation.tokens:
        return "The network read none of this text."
    return f"The network read {len(explanation.tokens):,} words; the last {len(rest):,} characters were not read."


def piece_credit(explanation: Explanation, piece: Piece, c: int) -> float:
    """Credit of a stretch for class number c."""
    return sum(explanation.credit[c][token] for token in piece.tokens)


def full_colour(explanation: Explanation) -> float:
    """The credit that gets the full colour: the largest of any word for any class, so that classes compare."""
    largest = max((abs(part) for row in explanation.credit for part in row), default=0.0)
    return largest or 1.0


def shown_labels(explanation: Explanation, explained: str | None = None) -> list[str]:
    """The labels to show, by score: at most MOST_CLASSES, the explained and the predicted ones first among them."""
    score = dict(zip(explanation.labels, explanation.scores, strict=True))
    by_score = sorted(explanation.labels, key=lambda label: -score[label])
    first = [label for label in by_score if label == explained]
    said = [label for label in by_score if label in explanation.predicted]
    kept = set(list(dict.fromkeys(first + said + by_score))[:MOST_CLASSES])
    return [label for label in by_score if label in kept]


def left_out_note(explanation: Explanation, shown: int) -> str | None:
    """A sentence where not all classes are shown."""
    return None if shown == len(explanation.labels) else f"{shown} of {len(explanation.labels):,} classes are shown."


def predicted_as(explanation: Explanation) -> str:
    """The predicted labels in words."""
    return ", ".join(clean(label) for label in explanation.predicted) or "no label"


def sum_sentence(explanation: Explanation, label: str) -> str:
    """How the parts make the score."""
    if not explanation.tokens:
        return "without a word there is no capsule, and every score is 0"
    c = explanation.index(label)
    words = sum(explanation.credit[c])
    share = percent(bias_share(explanation, label))
    parts = f"words {signed(words)} and bias {signed(explanation.bias[c])} ({share} of all that spoke) make"
    if explanation.quantity == "score":
        return f"{parts} the score {explanation.scores[c]:.3f}"
    return f"{parts} {explanation.total[c]:.3f}, which squash turns into the score {explanation.scores[c]:.3f}"


def bias_share(explanation: Explanation, label: str) -> float:
    """Share of the bias in all that spoke, for or against, about a class."""
    c = explanation.index(label)
    whole = sum(abs(part) for part in explanation.credit[c]) + abs(explanation.bias[c])
    return abs(explanation.bias[c]) / whole if whole else 0.0


def signed(number: float) -> str:
    """A number with its sign and three decimals, or one digit where these would all be zero."""
    if number and abs(number) < 0.0005:
        return f"{number:+.0e}"
    return f"{number:+.3f}"


def percent(share: float) -> str:
    """A share in words."""
    return f"{100 * share:.0f} %" if share >= 0.005 or not share else "< 1 %"


def clean(text: str) -> str:
    """The text with its control characters made visible and halves of surrogate pairs replaced.

    An escape character would otherwise give orders to a terminal, and half a pair can be written nowhere.
    """
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    code = ord(character)
    if character in "\n\t" or 0x20 <= code < 0x7F:
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000 else character


def one_line(text: str, longest: int | None = None) -> str:
    """`clean` text on one line, cut with an ellipsis."""
    line = " ".join(clean(text).split())
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"
