"""The registry of learners: each is described once, by its family, for everything that is done with any model.

A family describes its learners in its module ``learners``: what certifies one, what writes it to a file, what turns it
into ONNX, what explains it, what people call it. `certify`, model files, ONNX, reports and the command line ask here
and know no family by name. A description is light: it names its functions as ``"module:function"``, and they are
imported when they are first needed. The functions themselves will do, too, for a learner from outside::

    register(Learner(MyClassifier, called="my classifier", certify=certify_mine))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from margrove.certificate import Certificate
    from margrove.explanation import Explanation
    from margrove.store.codec import Codec

T = TypeVar("T")
_FAMILIES = ("linear", "svm", "linear_svm", "tree", "boost", "multiclass", "transfer")
_TRANSFORMERS = ("select", "data")  # packages that describe no learner but what may stand before one


@dataclass(frozen=True)
class Offer:
    """One choice of ``--model`` on the command line."""

    name: str  # as typed; a classifier and a regressor of the same name are one choice for two tasks
    words: str  # what it does, for a reader who knows no mathematics
    place: int = 100  # the order of the choices
    task: Literal["classify", "regress"] = "classify"
    is_listed: bool = True  # it can be typed; if not, only ``--model auto`` tries it
    defaults: Mapping[str, Any] = field(default_factory=dict)  # where the command line departs from the class
    is_searched: bool = False  # ``train`` searches its C, and its gamma if it has one: the learner names its `search`
    takes_tables: bool = False  # it learns from categories and missing cells; the others get an encoder in front
    keeps_sparse: bool = False  # a sparse table is left as it is, not scaled
    base: type | str | None = None  # of an ensemble: the learner that it boosts
    boosted: Mapping[str, Any] = field(default_factory=dict)  # the parameters of that learner
    remark: str = ""  # what ``train`` says of the defaults: what was chosen, and why


@dataclass(frozen=True)
class Learner:
    """The description of one estimator. A field is the thing itself, or the ``"module:name"`` to import it from."""

    estimator: type | str
    called: str = ""  # what people call it, with its article: "a support vector machine"
    certify: Callable[..., Certificate] | str | None = None  # (model, X, y, sample_weight): recompute its certificate
    certify_chunks: Callable[..., Certificate] | str | None = None  # (model, chunks), with one chunk in memory
    needs_target: bool = True  # `certify` takes y
    explain: Callable[[Any], Explanation] | str | None = None  # (model), for `margrove show`, reports and plots
    has_unit_margin: bool = False  # its problem puts the margin at f = ±1
    file: Codec | str | None = None  # a `margrove.store.schema.Schema`, say; without one it cannot be saved
    onnx: Callable[..., Any] | str | None = None  # (model, columns): add operators to a graph, see `margrove.onnx`
    peers: tuple[str, ...] = ()  # classes of other libraries, ``"package:name"``, that are certified and called alike
    search: type | str | None = None  # its cross-validated search, such as `SVCCV`
    offer: Offer | None = None  # without one ``train`` and ``compare`` leave it out
    adopt: Callable[[type, Any], Any] | str | None = None  # (estimator, theirs): a fitted peer as one of ours

    @property
    def key(self) -> str:
        """The class as ``"module:name"``."""
        return self.estimator if isinstance(self.estimator, str) else key_of(self.estimator)

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.key.rpartition(":")[2]


def loaded(reference: T | str) -> T:
    """Return what a field of a description stands for, importing it if it is a ``"module:name"``."""
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    found: T = getattr(import_module(module), name)
    return found


def register(*learners: Learner) -> None:
    """Add descriptions. A class that is described already is described anew.

    Examples
    --------
    >>> from margrove import SVC
    >>> from margrove.learner import Learner, learner_of, register
    >>> class MyClassifier(SVC):
    ...     pass
    >>> learner_of(MyClassifier()).called
    'a support vector machine'
    >>> register(Learner(MyClassifier, called="my machine"))
    >>> learner_of(MyClassifier()).called
    'my machine'
    """
    for learner in learners:
        _registered[learner.key] = learner
        for peer in learner.peers:
            _registered[peer] = Learner(
                peer,
                learner.called,
                learner.certify,
                needs_target=learner.needs_target,
                has_unit_margin=learner.has_unit_margin,
            )


def learner_of(model: object) -> Learner | None:
    """Return the description of a model's class, or of the nearest that it inherits from; None if there is none."""
    for kind in type(model).__mro__:
        if kind.__module__.startswith("margrove."):
            _load(kind.__module__.split(".")[1])
        elif kind.__module__.startswith("sklearn."):
            _load(*_FAMILIES)  # one of them may have it as a peer
        found = _registered.get(key_of(kind))
        if found is not None:
            return found
    return None


def description_of(model: object) -> Learner | None:
    """Return the description of a model's very class, None if it has none: a subclass may do anything."""
    found = learner_of(model)
    return found if found is not None and type(model) is loaded(found.estimator) else None


def learners() -> Iterator[Learner]:
    """All learners: those of Margrove's families, one family after the other, and those registered from outside."""
    _load(*_FAMILIES)
    places = {family: place for place, family in enumerate(_FAMILIES)}
    yield from sorted(_registered.values(), key=lambda each: places.get(f"{each.key}..".split(".")[1], len(places)))


def learner_named(name: str) -> Learner | None:
    """Return the description of the class of that name, for a model file. Nothing is imported for it but Margrove's own
    descriptions. A class from outside does not take the place of one of Margrove's."""
    _load(*_FAMILIES, *_TRANSFORMERS)
    found = [learner for learner in _registered.values() if learner.name == name]
    return min(found, key=lambda learner: not learner.key.startswith("margrove."), default=None)


_registered: dict[str, Learner] = {}


def key_of(kind: type) -> str:
    """Return the class by its public package: scikit-learn's SVC is of ``sklearn.svm``, not of a private module."""
    return f"{kind.__module__.partition('._')[0]}:{kind.__qualname__}"


def _load(*packages: str) -> None:
    """Import the descriptions of these packages, which register themselves."""
    for package in packages:
        if package in _FAMILIES or package in _TRANSFORMERS:
            import_module(f"margrove.{package}.learners")
