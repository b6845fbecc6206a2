"""The registry of learners: each is described once, by its family, for everything that is done with any model.

A family describes its learners in its module ``learners``: the functions that certify, save, export and explain a
model, and its name in plain language. `certify`, model files, ONNX, reports and the command line look a model up here
and contain no list of families. A description names its functions as ``"module:function"``, and they are imported when
they are first needed. A learner of another package may also pass the functions themselves::

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
_FAMILIES = ("linear", "svm", "linear_svm", "tree", "boost", "forest", "multiclass", "calibrate", "transfer")
_TRANSFORMERS = ("select", "data")  # packages that describe transformers, the earlier steps of a pipeline


@dataclass(frozen=True)
class Offer:
    """One choice of ``--model`` on the command line."""

    name: str  # as typed; a classifier and a regressor of the same name are one choice for two tasks
    words: str  # what it does, in plain language
    place: int = 100  # the order of the choices
    task: Literal["classify", "regress"] = "classify"
    is_listed: bool = True  # it can be typed; if not, only ``--model auto`` tries it
    defaults: Mapping[str, Any] = field(default_factory=dict)  # parameters whose default differs from the class's
    is_searched: bool = False  # ``train`` searches its C, and its gamma if it has one: the learner names its `search`
    takes_tables: bool = False  # it handles categories and missing cells; if not, an encoder is put before it
    keeps_sparse: bool = False  # a sparse table is left as it is, not scaled
    is_tuned: bool = (
        False  # its votes hardly follow the weights of classes: where these count alike, its threshold does
    )
    base: type | str | None = None  # of an ensemble: the learner that it boosts
    boosted: Mapping[str, Any] = field(default_factory=dict)  # the parameters of that learner
    remark: str = ""  # ``train`` prints it: which defaults were chosen, and why


@dataclass(frozen=True)
class Learner:
    """The description of one estimator. A field is the thing itself, or the ``"module:name"`` to import it from."""

    estimator: type | str
    called: str = ""  # its name in plain language, with an article: "a support vector machine"
    certify: Callable[..., Certificate] | str | None = None  # (model, X, y, sample_weight): recompute its certificate
    certify_chunks: Callable[..., Certificate] | str | None = None  # (model, chunks), with one chunk in memory
    needs_target: bool = True  # `certify` takes y
    explain: Callable[[Any], Explanation] | str | None = None  # (model), for `margrove show`, reports and plots
    has_unit_margin: bool = False  # its problem puts the margin at f = ±1
    file: Codec | str | None = None  # such as a `margrove.store.schema.Schema`; without one it cannot be saved
    predict: Callable[..., Any] | str | None = None  # (record and arrays of its file): a rule, see `margrove.predictor`
    onnx: Callable[..., Any] | str | None = None  # (model, columns): add operators to a graph, see `margrove.onnx`
    peers: tuple[str, ...] = ()  # classes of other libraries, ``"package:name"``, with the same certificate and name
    search: type | str | None = None  # its cross-validated search, such as `SVCCV`
    offer: Offer | None = None  # without one ``train`` and ``compare`` leave it out
    adopt: Callable[[type, Any], Any] | str | None = None  # (estimator, peer): convert a fitted peer
    to_peer: Callable[..., Any] | str | None = None  # (model, class of the first peer): the other direction

    @property
    def key(self) -> str:
        """The class as ``"module:name"``."""
        return self.estimator if isinstance(self.estimator, str) else key_of(self.estimator)

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.key.rpartition(":")[2]


def loaded(reference: T | str) -> T:
    """Return the value of a field of a description, importing it if it is a ``"module:name"``."""
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    found: T = getattr(import_module(module), name)
    return found


def register(*learners: Learner) -> None:
    """Add descriptions. A new description of a class replaces the old one.

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
    """Return the description of a model's class or of its nearest described base class; None if there is none."""
    for kind in type(model).__mro__:
        if kind.__module__.startswith("margrove."):
            _load(kind.__module__.split(".")[1])
        elif kind.__module__.startswith("sklearn."):
            _load(*_FAMILIES, *_TRANSFORMERS)  # one of them may describe it
        found = _registered.get(key_of(kind))
        if found is not None and (isinstance(found.estimator, str) or found.estimator is kind):
            return found  # another class may have the same name
    return None


def description_of(model: object) -> Learner | None:
    """Return the description of a model's own class, or None. That of a base class does not count: a subclass may
    override anything."""
    found = learner_of(model)
    return found if found is not None and type(model) is loaded(found.estimator) else None


def learners() -> Iterator[Learner]:
    """Yield all learners: Margrove's, one family after the other, then those that other packages registered."""
    _load(*_FAMILIES)
    places = {family: place for place, family in enumerate(_FAMILIES)}
    yield from sorted(_registered.values(), key=lambda each: places.get(f"{each.key}..".split(".")[1], len(places)))


def learner_named(name: str) -> Learner | None:
    """Return the description of the class of that name, for a model file. It imports only Margrove's own descriptions.
    If another package registered a class of the same name, Margrove's is returned."""
    _load(*_FAMILIES, *_TRANSFORMERS)
    found = [learner for learner in _registered.values() if learner.name == name]
    return min(found, key=lambda learner: not learner.key.startswith("margrove."), default=None)


_registered: dict[str, Learner] = {}


def key_of(kind: type) -> str:
    """Return ``"module:name"`` of a class, with its public module: ``sklearn.svm``, not ``sklearn.svm._classes``."""
    return f"{kind.__module__.partition('._')[0]}:{kind.__qualname__}"


def _load(*packages: str) -> None:
    """Import the descriptions of these packages, which register themselves."""
    for package in packages:
        if package in _FAMILIES or package in _TRANSFORMERS:
            import_module(f"margrove.{package}.learners")
