"""The page of ``margrove images``: one HTML file with everything in it, pictures too, and no link to anywhere.

Names of classes and files come from the disk of whoever made the folder: every one is escaped.
"""

from __future__ import annotations

import base64
import io
from collections import Counter
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.certificate import Certificate
from margrove.data import Table
from margrove.surface.display import estimate_text, percent
from margrove.surface.models import learner_of
from margrove.surface.validation import Estimate
from margrove.transfer.maps import used_maps
from margrove.transfer.pictures import FilePicture, PictureFolder

SHOWN = 12  # examples of each kind
NEIGHBOURS = 3  # support vectors beside each example
MOST_MAPS = 6  # of a tree
MOST_CLASSES = 20  # in the table of confusions
_THUMBNAIL = 96  # pixels


@dataclass(frozen=True)
class Example:
    """One picture: what it is, what it was taken for, and the support vectors nearest to it."""

    row: int
    true: str
    predicted: str
    neighbours: tuple[int, ...] = ()


@dataclass(frozen=True)
class ImagePage:
    """All that the page shows, before it is HTML."""

    title: str
    facts: tuple[tuple[str, str], ...]
    certificate: Certificate
    pictures: PictureFolder
    right: tuple[Example, ...]
    wrong: tuple[Example, ...]
    n_judged: int
    n_right: int
    confusions: list[tuple[str, str, int]]  # true, predicted, how often; the most frequent first
    counts: dict[tuple[str, str], int]
    rules: str = ""
    maps: bytes = field(default=b"", repr=False)  # a PNG

    def to_html(self) -> str:
        """The page."""
        parts = [
            _table([(escape(name), escape(value)) for name, value in self.facts]),
            f"<h2>Certificate</h2>{self.certificate._repr_html_()}",
            self._examples("Wrong", self.wrong, "None of the judged pictures is taken for something else."),
            self._examples("Right", self.right, "No picture was judged."),
            self._confusion(),
        ]
        if self.rules:
            parts.append(f"<h2>What the tree asks</h2><pre>{escape(self.rules)}</pre>")
        if self.maps:
            parts.append(
                "<h2>What its maps respond to</h2><p>For each map that the tree asks for, the pictures that fire it "
                f"most, with a veil of heat where they do.</p><img class='wide' alt='maps' src='{_png(self.maps)}'>"
            )
        body = "\n".join(parts)
        return (
            "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
            "<meta name='viewport' content='width=device-width, initial-scale=1'>"
            "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; img-src data:; "
            "style-src 'unsafe-inline'\">"
            f"<title>{escape(self.title)}</title><style>{_STYLE}</style></head>\n"
            f"<body><h1>{escape(self.title)}</h1>\n{body}\n</body></html>\n"
        )

    def _examples(self, title: str, examples: tuple[Example, ...], otherwise: str) -> str:
        if not examples:
            return f"<h2>{title}</h2><p>{otherwise}</p>"
        n = self.n_right if title == "Right" else self.n_judged - self.n_right
        of_all = f" <small>{len(examples)} of {n:,}</small>"
        beside = ""
        if any(example.neighbours for example in examples):
            beside = "<p>Beside each picture: the support vectors nearest to it, training pictures that decide.</p>"
        cards = "".join(self._card(example) for example in examples)
        return f"<h2>{title}{of_all}</h2>{beside}<div class='cards'>{cards}</div>"

    def _card(self, example: Example) -> str:
        words = escape(example.true)
        if example.true != example.predicted:
            words = f"{words}, taken for <b>{escape(example.predicted)}</b>"
        near = "".join(
            f"<figure class='near'>{self._picture(row)}<figcaption>{escape(str(self.pictures.labels[row]))}"
            "</figcaption></figure>"
            for row in example.neighbours
        )
        name = escape(str(self.pictures[example.row].relative_to(self.pictures.root)))
        picture = (
            f"<figure>{self._picture(example.row)}<figcaption>{words}<br><small>{name}</small></figcaption></figure>"
        )
        return f"<div class='card'>{picture}{near}</div>"

    def _picture(self, row: int) -> str:
        path = self.pictures[row]
        image = FilePicture(path).in_mode("RGB")
        image.thumbnail((_THUMBNAIL, _THUMBNAIL))
        content = io.BytesIO()
        image.save(content, "PNG")
        return f"<img alt='{escape(path.name, quote=True)}' src='{_png(content.getvalue())}'>"

    def _confusion(self) -> str:
        names = self.pictures.classes
        if not self.n_judged or len(names) > MOST_CLASSES:
            return ""
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        lines = []
        for true in names:
            cells = "".join(
                f"<td class='{'hit' if true == name else 'miss' if self.counts.get((true, name)) else ''}'>"
                f"{self.counts.get((true, name), 0) or ''}</td>"
                for name in names
            )
            lines.append(f"<tr><th>{escape(true)}</th>{cells}</tr>")
        return (
            "<h2>What is taken for what</h2><p>A row for each class, a column for each answer.</p>"
            f"<div class='scroll'><table class='counts'><tr><th></th>{head}</tr>{''.join(lines)}</table></div>"
        )


def page_of(
    model: Any,
    pictures: PictureFolder,
    codes: Any,
    rows: NDArray[np.intp],
    predicted: NDArray[Any],
    estimate: Estimate,
    certificate: Certificate,
    *,
    source: str,
) -> ImagePage:
    """The page of a fitted model, with examples among the pictures that were predicted unseen."""
    truth = pictures.labels[rows]
    is_right = truth == predicted
    counts = Counter(zip(truth.tolist(), predicted.tolist(), strict=True))
    confusions = sorted(((t, p, n) for (t, p), n in counts.items() if t != p), key=lambda each: -each[2])
    near = _nearest_support(model, codes)
    examples = [
        tuple(
            Example(int(rows[i]), str(truth[i]), str(predicted[i]), near(int(rows[i]))) for i in _spread(chosen, truth)
        )
        for chosen in (np.flatnonzero(is_right), np.flatnonzero(~is_right))
    ]
    first, learner = (model[0] if hasattr(model, "steps") else model), learner_of(model)
    facts = [
        ("pictures", f"{len(pictures):,} of {len(pictures.classes):,} classes"),
        ("network", f"{first.network_name_}, fingerprint {first.network_digest_}"),
        ("model", type(learner).__name__),
        ("accuracy on pictures it has not seen", estimate_text(estimate)),
        ("always the largest class", percent(estimate.baseline)),
    ]
    rules, maps = _of_tree(model, pictures) if hasattr(learner, "tree_") else ("", b"")
    return ImagePage(
        f"Pictures of {source}",
        tuple(facts),
        certificate,
        pictures,
        examples[0],
        examples[1],
        len(rows),
        int(is_right.sum()),
        confusions,
        dict(counts),
        rules,
        maps,
    )


def _spread(chosen: NDArray[np.intp], truth: NDArray[Any]) -> list[int]:
    """At most `SHOWN` of the chosen, of each class in turn."""
    queues = [[int(i) for i in chosen if truth[i] == label] for label in np.unique(truth[chosen])]
    found: list[int] = []
    while len(found) < SHOWN and any(queues):
        found += [queue.pop(0) for queue in queues if queue]
    return found[:SHOWN]


def _nearest_support(model: Any, codes: Any) -> Any:
    """Of a support vector machine: for a row, the nearest support vectors but itself, by the distance of codes."""
    support = getattr(learner_of(model), "support_", None)
    if support is None or codes is None or isinstance(codes, Table):
        return lambda row: ()

    def nearest(row: int) -> tuple[int, ...]:
        others = support[support != row]
        distance = np.square(codes[others] - codes[row]).sum(axis=1)
        return tuple(int(each) for each in others[np.argsort(distance, kind="stable")[:NEIGHBOURS]])

    return nearest


def _of_tree(model: Any, pictures: PictureFolder) -> tuple[str, bytes]:
    """The rules, and the picture of the maps that they ask for, where maps come out of the network."""
    features, tree = model[0], model[-1]
    which = used_maps(tree)[:MOST_MAPS]
    if not which or not features.has_maps:
        return str(tree.rules()), b""
    import matplotlib.pyplot as plt

    from margrove.plots.feature_maps import plot_feature_maps

    with plt.rc_context():
        plt.switch_backend("Agg")
        figure = plot_feature_maps(features, pictures, which, y=pictures.labels)[0, 0].figure
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=90, metadata={"Software": None})
        plt.close(figure)
    return str(tree.rules()), content.getvalue()


def _png(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def _table(rows: list[tuple[str, str]]) -> str:
    return "<table>" + "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows) + "</table>"


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.2rem; }
small { opacity: .7; font-weight: normal; }
table { border-collapse: collapse; }
th, td { padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: top; font-weight: normal; }
th { opacity: .75; }
.cards { display: flex; flex-wrap: wrap; gap: 1rem; }
.card { display: flex; gap: .4rem; align-items: flex-start; border: 1px solid #8884; border-radius: 8px;
  padding: .6rem; }
figure { margin: 0; width: 7rem; overflow-wrap: anywhere; font-size: .85rem; }
figure img { width: 6rem; height: 6rem; object-fit: contain; image-rendering: auto; border-radius: 4px; }
.near { width: 4rem; font-size: .7rem; opacity: .9; }
.near img { width: 3.2rem; height: 3.2rem; }
.counts td, .counts th { text-align: right; padding: .2rem .5rem; }
.hit { background: #0072B233; }
.miss { background: #E69F0033; }
.scroll { overflow-x: auto; }
.wide { max-width: 100%; height: auto; background: white; }
pre { overflow-x: auto; font-size: .85rem; }
"""
