"""The part of the page that belongs to one class: the coloured text, the strongest words and the children."""

from html import escape

from capsroute.explain.explanation import Child, Explanation
from capsroute.explain.render import (
    MOST_UNREAD,
    NOTICEABLE,
    clean,
    full_colour,
    one_line,
    percent,
    piece_credit,
    pieces,
    signed,
    sum_sentence,
    unread,
    unread_note,
)

WORDS = 10
CHILDREN = 6
MOST_COUPLINGS = 6  # classes whose couplings have a column of their own


def panel(said: Explanation, label: str) -> str:
    """Everything about one class."""
    note = unread_note(said)
    children = _speaking(said, label)
    columns = [_words(said, label)] + ([_children(said, label, children)] if children else [])
    return (
        f'<section aria-label="{_text(f"Words for {label}")}">'
        f'<p class="text" dir="auto">{_coloured(said, label) or "(no text)"}</p>'
        f"{f'<p class=note>{_text(note)}</p>' if note else ''}{_key(said, label)}"
        f'<p>{_text(_sentence(said, label))}</p><div class="two">{"".join(columns)}</div></section>'
    )


def _sentence(said: Explanation, label: str) -> str:
    sentence = sum_sentence(said, label).replace("-", "−")
    return f"{sentence[0].upper()}{sentence[1:]}."


def _key(said: Explanation, label: str) -> str:
    """What the colours mean."""
    if not said.tokens:
        return ""
    return (
        f'<p class="key"><b class="up strong">for</b> <b class="down strong">against</b> '
        f"<bdi>{_text(label)}</bdi>; full colour: ±{full_colour(said):.3f}, the largest credit for any class</p>"
    )


def _coloured(said: Explanation, label: str) -> str:
    c = said.index(label)
    largest = full_colour(said)
    strongest = {word.token for word in said.top(label, WORDS) if word.credit}
    parts: list[str] = []
    for piece in pieces(said):
        text = _text(said.text[piece.start : piece.stop])
        if not piece.tokens:
            parts.append(text)
            continue
        credit = piece_credit(said, piece, c)
        share = min(1.0, abs(credit) / largest)
        strong = not strongest.isdisjoint(piece.tokens)
        kind = "w" if share < NOTICEABLE else "w up" if credit > 0 else "w down"
        # The strongest can be reached by keyboard and are read aloud with their number; the table has them too.
        reach = ' tabindex="0"' if strong else ""
        aloud = f'<span class="hidden"> ({_number(credit)}) </span>' if strong else ""
        parts.append(
            f'<span class="{kind}{" strong" if strong and share >= NOTICEABLE else ""}" style="--a:{share:.2f}" '
            f'data-n="{_number(credit)}"{reach}>{text}{aloud}</span>'
        )
    rest = unread(said)
    more = f" … ({len(rest) - MOST_UNREAD:,} more characters)" if len(rest) > MOST_UNREAD else ""
    if rest:
        parts.append(f'<span class="rest">{_text(rest[:MOST_UNREAD])}{more}</span>')
    return "".join(parts)


def _words(said: Explanation, label: str) -> str:
    """The strongest words, all others together, the bias, and their sum."""
    c = said.index(label)
    words = [word for word in said.top(label, WORDS) if word.credit]
    rows = [(one_line(word.text or said.tokens[word.token], 40), word.credit, "") for word in words]
    others = len(said.tokens) - len(words)
    if others:
        rows.append((f"{others:,} other words", sum(said.credit[c]) - sum(word.credit for word in words), "other"))
    rows.append(("bias", said.bias[c], "other"))
    longest = max(abs(credit) for _, credit, _ in rows) or 1.0
    body = "".join(
        f'<tr class="{kind}"><th scope="row"><bdi>{_text(name)}</bdi></th><td class="number">{_number(credit)}</td>'
        f'<td class="balance"><i class="{"for" if credit > 0 else "against"}" '
        f'style="width:{100 * abs(credit) / longest:.1f}%"></i></td></tr>'
        for name, credit, kind in rows
    )
    total = f'<tr class="sum"><th scope="row">together</th><td class="number">{said.total[c]:.3f}</td><td></td></tr>'
    return (
        f"<div><h3>Strongest words for or against <bdi>{_text(label)}</bdi></h3><table><thead><tr>"
        '<th scope="col">word</th><th scope="col" class="number">credit</th>'
        '<th scope="col"><span class="hidden">the same as a bar</span></th>'
        f"</tr></thead><tbody>{body}{total}</tbody></table></div>"
    )


def _speaking(said: Explanation, label: str) -> list[Child]:
    """The children with the most to say about a class."""
    c = said.index(label)
    loudest = sorted(said.children, key=lambda child: -abs(child.credit[c]))
    return [child for child in loudest if child.credit[c]][:CHILDREN]


def _children(said: Explanation, label: str, children: list[Child]) -> str:
    c = said.index(label)
    by_score = sorted(range(len(said.labels)), key=lambda other: -said.scores[other])
    coupled = by_score[:MOST_COUPLINGS] if c in by_score[:MOST_COUPLINGS] else [*by_score[: MOST_COUPLINGS - 1], c]
    if any(child.coupling is None for child in children):
        coupled = []
    several = len({child.column for child in said.children}) > 1
    head = "".join(
        f'<th scope="col" class="number" title="share that goes to {_text(said.labels[other])}">'
        f"→&nbsp;<bdi>{_text(one_line(said.labels[other], 12))}</bdi></th>"
        for other in coupled
    )
    rows = "".join(_child(said, child, c, coupled, several) for child in children)
    left = said.children_in_all - len(children)
    rest = f'<p class="note">{left:,} more said less. ' if left else '<p class="note">'
    region = _text(f"Children that said most about {label}")
    return (
        f"<div><h3>Children that said most about <bdi>{_text(label)}</bdi></h3>"
        f'<div class="wide" tabindex="0" role="region" aria-label="{region}">'
        '<table><thead><tr><th scope="col">child</th><th scope="col">mostly read</th>'
        f'<th scope="col" class="number">credit</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f"{rest}{_legend(several, bool(coupled))}</p></div>"
    )


def _legend(several: bool, coupled: bool) -> str:
    number = " and is listed as column/number" if several else ""
    arrow = " → is the share of it that routing sent to a class." if coupled else ""
    return f"A child is a capsule that reads the text{number}.{arrow}"


def _child(said: Explanation, child: Child, c: int, coupled: list[int], several: bool) -> str:
    name = f"{child.column}/{child.number}" if several else f"{child.number}"
    reads = " ".join(
        f'<span class="read"><bdi>{_text(_word(said, token))}</bdi> <small>{percent(share)}</small></span>'
        for token, share in child.reads[:4]
    )
    loudest = max(range(len(said.labels)), key=lambda other: child.credit[other])
    spoke = (
        ""
        if loudest == c
        else f'<br><span class="out">spoke most for <bdi>{_text(said.labels[loudest])}</bdi></span>'
    )
    shares = (
        ""
        if child.coupling is None
        else "".join(f'<td class="number">{percent(child.coupling[other])}</td>' for other in coupled)
    )
    return (
        f'<tr><th scope="row" class="number">{name}</th><td class="reads">{reads}{spoke}</td>'
        f'<td class="number">{_number(child.credit[c])}</td>{shares}</tr>'
    )


def _word(said: Explanation, token: int) -> str:
    start, stop = said.spans[token]
    return one_line(said.text[start:stop] or said.tokens[token], 24)


def _number(credit: float) -> str:
    """A number with a true minus, which screen readers read and which is as wide as the plus."""
    return signed(credit).replace("-", "−")


def _text(text: str) -> str:
    return escape(clean(text))
