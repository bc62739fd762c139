"""Write tests/golden/model, once for a format: `python -m tests.golden.make_model`. It is never written again."""

import json

from capsroute.classifier import CapsuleClassifier
from tests.test_model import GOLDEN
from tests.toy import SMALL, toy


def main() -> None:
    """A tiny model and what it says of a few texts."""
    model = CapsuleClassifier(settings=SMALL, seed=1).fit(*toy(labels=("bad", "good", "odd")))
    model.save_pretrained(GOLDEN / "model")
    texts = [*toy(6, labels=("bad", "good", "odd"), seed=9)[0], "", "words it never saw"]
    told = {
        "texts": texts,
        "proba": model.predict_proba(texts).tolist(),
        "labels": [str(label) for label in model.predict(texts)],
    }
    (GOLDEN / "model_predictions.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
