"""The model card: README.md of a saved model, for the person who finds the folder."""

from typing import TYPE_CHECKING, Any

from capsroute._version import __version__
from capsroute.model import CapsuleNetwork
from capsroute.networks import network_name

if TYPE_CHECKING:
    from capsroute.store import StoredModel

SHOWN_LABELS = 30


def model_card(model: "StoredModel") -> str:
    """Markdown: what the model is, what it learned from, how good it is, how to use it, what to beware of."""
    facts = model.facts
    labels = model.labels.names
    several = model.thresholds is not None
    parts = [
        "---\nlibrary_name: capsroute\npipeline_tag: text-classification\ntags: [capsule-network]\n---",
        f"# {facts.get('title', 'A text classifier')}",
        f"{_kind(model)}. It gives a text {'any number of' if several else 'one of'} {len(labels)} labels.",
        "## Labels\n\n" + _labels(labels),
        "## Learned from\n\n" + _table(facts.get("data", {})),
        "## Measured\n\n" + (_table(facts.get("measures", {})) or "Nothing was measured."),
        "## Use\n\n```python\nfrom capsroute import CapsuleClassifier\n\n"
        'model = CapsuleClassifier.from_pretrained("this/folder")\n'
        'model.predict(["a text", "another text"])\n```\n\n'
        '```\ncapsroute predict this/folder texts.txt\ncapsroute explain this/folder "a text"\n```',
        "## Limits\n\n" + "\n".join(f"- {limit}" for limit in _limits(model)),
        "## Made with\n\n" + _table(_making(model)),
    ]
    return "\n\n".join(parts) + "\n"


def _kind(model: "StoredModel") -> str:
    if isinstance(model.network, CapsuleNetwork):
        return f"A capsule network with {model.network.config.routing} routing"
    return {"textcnn": "A convolutional network (TextCNN)", "ngrams": "A bag of n-grams"}[network_name(model.network)]


def _labels(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:SHOWN_LABELS])
    more = len(names) - SHOWN_LABELS
    return f"{shown} and {more} more (labels.json)" if more > 0 else shown


def _limits(model: "StoredModel") -> list[str]:
    limits = [
        "It knows the words it was trained on; a text of other words, or in another language, is a guess.",
        "Scores order the labels; they are not calibrated probabilities.",
    ]
    length = model.tokenizer.config.max_length
    if length is not None:
        limits.append(f"A text is read up to its first {length} tokens.")
    return limits


def _making(model: "StoredModel") -> dict[str, Any]:
    weights = sum(parameter.numel() for parameter in model.network.parameters())
    return {
        "capsroute": __version__,
        "parameters": f"{weights:,}",
        "seed": model.training.get("seed"),
        **model.facts.get("versions", {}),
    }


def _table(rows: dict[str, Any]) -> str:
    if not rows:
        return ""
    lines = [f"| {name} | {_number(value)} |" for name, value in rows.items() if value is not None]
    return "\n".join(["| | |", "|---|---|", *lines])


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
