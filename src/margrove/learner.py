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
    """One choice of ``--model`` on the command line.

    Parameters
    ----------
    name : str
        As typed after ``--model``. A classifier and a regressor of the same name are one choice for two tasks.
    words : str
        What it does, for a reader who knows no mathematics.
    place : int
        The order of the choices.
    task : {"classify", "regress"}
    is_listed : bool
        Whether it can be typed; if not, only ``--model auto`` tries it.
    defaults : mapping
        Parameters in which the command line departs from the class.
    is_searched : bool
        Whether ``train`` searches its C, and its gamma where it has one. The learner must name its `search`.
    takes_tables : bool
        Whether it learns from categories and missing cells as they are; the others get an encoder in front.
    keeps_sparse : bool
        Whether a sparse table is left as it is, not scaled.
    base : type or str, optional
        Of an ensemble: the learner that it boosts.
    boosted : mapping
        The parameters of that learner.
    remark : str
        What ``train`` says of the defaults: what was chosen, and why.
    """

    name: str
    words: str
    place: int = 100
    task: Literal["classify", "regress"] = "classify"
    is_listed: bool = True
    defaults: Mapping[str, Any] = field(default_factory=dict)
    is_searched: bool = False
    takes_tables: bool = False
    keeps_sparse: bool = False
    base: type | str | None = None
    boosted: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True)
class Learner:
    """The description of one estimator. A field is the thing itself, or the ``"module:name"`` to import it from.

    Parameters
    ----------
    estimator : type or str
    called : str
        What people call it, with its article: "a support vector machine".
    certify : function, optional
        ``certify(model, X, y, sample_weight)`` recomputes its `Certificate`.
    certify_chunks : function, optional
        ``certify_chunks(model, chunks)`` does the same with a chunk of rows in memory at a time.
    needs_target : bool
        Whether `certify` takes y.
    explain : function, optional
        ``explain(model)`` returns its `margrove.explanation.Explanation`, which `margrove show`, reports and plots ask.
    has_unit_margin : bool
        Whether its problem puts the margin at f = ±1.
    file : Codec, optional
        What writes it to a model file and reads it back: a `margrove.store.schema.Schema`, or anything else with the
        two methods of `margrove.store.codec.Codec`. Without one it cannot be saved.
    onnx : function, optional
        ``onnx(model, columns)`` adds its operators to an ONNX graph; see `margrove.onnx.model`.
    peers : tuple of str
        Classes of other libraries, ``"package:name"``, that are certified and called alike.
    search : type or str, optional
        Its cross-validated search, such as `SVCCV`.
    offer : Offer, optional
        How the command line offers it. Without one ``train`` and ``compare`` leave it out.
    adopt : function, optional
        ``adopt(estimator, theirs)`` returns a fitted model of a peer as one of ours; `from_sklearn` asks it.
    """

    estimator: type | str
    called: str = ""
    certify: Callable[..., Certificate] | str | None = None
    certify_chunks: Callable[..., Certificate] | str | None = None
    needs_target: bool = True
    explain: Callable[[Any], Explanation] | str | None = None
    has_unit_margin: bool = False
    file: Codec | str | None = None
    onnx: Callable[..., Any] | str | None = None
    peers: tuple[str, ...] = ()
    search: type | str | None = None
    offer: Offer | None = None
    adopt: Callable[[type, Any], Any] | str | None = None

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
    """Return the description of a model's class, or of the nearest class that it inherits from; None if there is
    none."""
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
