"""``margrove show``: print what is in a model file, its training record included."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.text import Text

from margrove.app.estimate.classes import CLASSES, classes_by
from margrove.app.estimate.numbers import NUMBERS, numbers_by
from margrove.app.estimate.task import Deviation, Estimate, Task
from margrove.app.files import read_model
from margrove.app.history import History, RecordedEstimate
from margrove.app.images.models import network_of, takes_pictures
from margrove.app.models import columns_of, encoder_of, format_of, last_step_of, learned, plain_parameters, target_of
from margrove.app.screen.console import Screen, bare_grid
from margrove.app.screen.display import AS_SAVED, tell_certificate, tell_learned
from margrove.data.columns import some
from margrove.data.formats import Format
from margrove.errors import InputError, ParameterError
from margrove.explanation import explanation_of
from margrove.tree.rules import Style
from margrove.tree.words import MOST_LEVELS

SHOWN_COLUMNS = 20
_SHOWN_CLASSES = 12
_MOST_LINES = 20  # of the leaderboard
_LONG = ("rows", "truth", "predicted", "scores")  # lists of a record that is printed in short
_LONGEST = 300  # letters of a text that somebody else wrote
_LEAST_GAP = 1e-6  # that is printed: nobody needs to know a smaller one


def show(screen: Screen, path: str) -> None:
    """Print parameters, columns or network, classes, certificate and explanation of a saved model."""
    model = read_model(path)
    learner, explanation, has_pictures = last_step_of(model), explanation_of(model), takes_pictures(model)
    parameters = plain_parameters(learner)
    facts, lines = _picture_facts(model) if has_pictures else _table_facts(model, parameters)
    is_network = has_pictures and network_of(model) is learner  # of which there is no summary
    explained = None if is_network else learned(model)
    record = {
        "command": "show",
        "model": path,
        "class": type(learner).__name__,
        "parameters": parameters,
        **facts,
        "status": explanation.status,
        "engine": explanation.engine,
        "certificate": learner.certificate_.to_dict(),
        "certificate_is": AS_SAVED,
        "learned": explained and explained.to_dict(),
        **({} if has_pictures else {"record": in_short(history_of(model))}),
    }
    engine = "" if explanation.engine is None else f", engine {explanation.engine}"
    screen.essential(f"{path}: {record['class']}, {record['status']}{engine}", style="bold")
    for line in lines:
        screen.say(line, indent=2)
    if not has_pictures:
        tell_history(screen, history_of(model), format_of(model))
    if explained is not None:
        tell_learned(screen, explained, has_columns=not has_pictures)
    tell_certificate(screen, learner.certificate_, is_saved=True, data="FOLDER" if has_pictures else "TABLE")
    screen.document(record)


def _table_facts(model: Any, parameters: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return facts for the JSON document about a model of tables, and the lines that are printed."""
    learner, explanation = last_step_of(model), explanation_of(model)
    columns, target, solve = _columns(model), target_of(model), explanation.solve()
    kinds = [c["name"] if c["kind"] == "numeric" else f"{c['name']} ({c['kind']})" for c in columns]
    lines = [
        _purpose(learner, target),
        f"from {len(columns):,} columns: {some(kinds, SHOWN_COLUMNS)}",
        f"parameters: {_parameters_words(learner, parameters)}",
    ]
    if explanation.kernel is not None:
        lines.append(f"kernel: {explanation.kernel}")
    if solve is not None:
        gap, widths = solve["gap"], [width for width in solve["margins"] if width is not None]
        within = 100 * max(gap, _LEAST_GAP)
        lines.append(
            f"solved by {solve['solver']}: the objective is within {within:.2g} % of the optimum (duality gap)"
        )
        if len(widths) == 1:
            lines.append(f"width of the margin: {widths[0]:.4g} (2/‖w‖, in the units of the encoded columns)")
        elif widths:
            text = f"width of the {len(solve['margins'])} margins: {min(widths):.4g} … {max(widths):.4g}"
            lines.append(f"{text} (2/‖w‖, in the units of the encoded columns)")
    classes = learner.classes_.tolist() if explanation.task == "classes" else None
    gamma = getattr(learner, "gamma_", None)
    return {"gamma": gamma, "target": target, "classes": classes, "columns": columns, "solve": solve}, lines


def _picture_facts(model: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the same about a model of pictures and its network."""
    first, learner = network_of(model), last_step_of(model)
    name, digest, seen, classes = first.network_name_, first.network_digest_, first.preparation_, learner.classes_
    lines = [
        f"classifies pictures as {some([*map(str, classes.tolist())], _SHOWN_CLASSES)}",
        f"network: {name}, fingerprint {digest}",
        f"input: {seen.size} × {seen.size} pixels, {'grey' if seen.mode == 'L' else 'in colour'}",
    ]
    if learner is not first:
        lines.insert(2, f"features: {first.n_features_out_:,} numbers per picture ({first.layer_})")
    network = {"name": name, "fingerprint": digest}
    layer = getattr(first, "layer_", None)
    return {"network": network, "layer": layer, "size": seen.size, "classes": classes.tolist()}, lines


def show_rules(screen: Screen, path: str, style: Style, max_levels: int | None) -> None:
    """Print the rules of a saved tree, or of each tree that votes, and nothing else: nested, or (``"lines"``) one for
    each leaf. ``max_levels`` is the most levels that a list names (None: as many as people read; 0: all)."""
    most = MOST_LEVELS if max_levels is None else max_levels
    if most < 0:
        raise ParameterError(f"--max-levels is {most}; it must be at least 1, or 0 for all.")
    model = of_trees(read_model(path), path, "--rules")
    record: dict[str, Any] = {"command": "show", "model": path, "style": style}
    summary = learned(model)
    vote, forest = summary.vote, summary.forest
    if vote is None and forest is None:
        rules = model.rules(style=style, max_levels=most or None)
        _print_lines(screen, str(rules))
        screen.document({**record, "rules": rules.data()})
        return
    parts: list[dict[str, Any]] = []
    for place, tree in enumerate(model.estimators_):
        rules = tree.rules(style=style, max_levels=most or None)
        title, facts = f"tree {place + 1}", {"tree": place + 1}
        if vote is not None:
            voter = vote.voters[place]
            weight = f"vote {voter.vote:.4g}" if voter.alpha is None else f"α {voter.alpha:.4g}"
            title, facts = f"round {voter.round}, error {voter.error:.4g}, {weight}", asdict(voter)
        _print_lines(screen, f"{title}:")
        _print_lines(screen, str(rules), indent=4)
        parts.append({**facts, "rules": rules.data()})
    screen.document({**record, "trees" if vote is None else "rounds": parts})


def _print_lines(screen: Screen, text: str, indent: int = 0) -> None:
    for line in text.splitlines():
        screen.essential(Text(" " * indent + line))


def of_trees(model: Any, path: str, option: str) -> Any:
    """Return the tree of a file, or its trees that vote, trained on the table itself."""
    if not explanation_of(model).has_rules:
        problem = f"{option} is for decision trees, and this model is {explanation_of(model).called}"
        raise InputError(problem, file=path, cure="Train a tree: --model tree.")
    if encoder_of(model) is not None:
        problem = f"{option}: a TableEncoder precedes the tree, so its tests are of encoded columns"
        raise InputError(problem, file=path, cure="Train it on the table itself: --model tree.")
    return last_step_of(model)


def _parameters_words(learner: Any, parameters: dict[str, Any]) -> str:
    """Return all parameters; of a tree, which has thirty, and of trees that vote, those that were set."""
    shown = parameters
    if explanation_of(learner).has_rules:
        usual = plain_parameters(type(learner)())
        shown = {name: value for name, value in parameters.items() if value != usual[name]}
    # The boosted learner is a word of Python, not a text.
    texts = {name: f"{value:.6g}" if isinstance(value, float) else repr(value) for name, value in shown.items()}
    words = ", ".join(f"{name}={shown[name] if name == 'estimator' else text}" for name, text in texts.items())
    return words if len(shown) == len(parameters) else ", ".join(filter(None, [words, "the others at their defaults"]))


def _purpose(learner: Any, target: str | None) -> str:
    name = repr(target) if target else ""
    explanation = explanation_of(learner)
    if explanation.classes is not None:
        labels = some(explanation.classes, _SHOWN_CLASSES)
        return f"predicts {name}: {labels}" if name else f"predicts the classes {labels}"
    if explanation.task == "novelty":
        return "distinguishes rows like its training rows (1) from others (-1)"
    return f"predicts the number {name}" if name else "predicts a number"


def _columns(model: Any) -> list[dict[str, Any]]:
    """Return each column the model takes: its name and kind."""
    own = columns_of(model)
    if own is not None:
        return own
    width = int(model.n_features_in_)
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(width)])
    return [{"name": str(name), "kind": "numeric"} for name in names]


def history_of(model: Any) -> dict[str, Any] | None:
    """Return the training record of a model; None where it has none."""
    record = getattr(model, "training_record_", None)
    return record if isinstance(record, dict) else None


def in_short(record: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the record without its long lists: the rows that were tested, and the course of the fit."""
    if record is None:
        return None
    short, estimate = {name: part for name, part in record.items() if name != "course"}, record.get("estimate")
    kept = estimate.items() if isinstance(estimate, dict) else ()
    return short | {"estimate": {name: part for name, part in kept if name not in _LONG}}


def tell_history(screen: Screen, record: dict[str, Any] | None, form: Format | None) -> None:
    """Print how the model was chosen, and its estimate, as the record has them."""
    history = History(record)
    estimate = history.estimate
    scored = [line for line in history.leaderboard if line.score is not None][:_MOST_LINES]
    if scored:
        screen.heading("Learners tried, as saved after training")
        task = _task(estimate)
        grid = bare_grid("", "learner", task.measure, right=(task.measure,))
        for line in scored:
            value = task.number(line.score or 0.0)
            score = value if line.error is None else f"{value.removesuffix(' %')} ± {task.spread(line.error)}"
            grid.add_row("→" if line.is_chosen else "", Text(_line(line.title)), score)
        screen.say(grid, indent=2)
        if history.choice:
            screen.say(_line(history.choice), indent=2)
    if estimate is None:
        return
    screen.heading("Estimate on unseen rows, as saved after training")
    how = f" ({_line(estimate.method)})" if estimate.method else ""
    screen.say(f"{_estimate_words(estimate, form)}{how}", indent=2)


def expectation_words(record: dict[str, Any], form: Format | None) -> str:
    """Return a remark on predictions of the rows that a model learned from."""
    estimate = History(record).estimate
    if estimate is None:
        return "These are the training rows; expect a lower score on new rows."
    expected = f"{_estimate_words(estimate, form)} (on rows held out in training)"
    return f"These are the training rows; on new rows expect {expected}."


def _estimate_words(found: RecordedEstimate, form: Format | None) -> str:
    task, off, ends = _task(found), found.mean_absolute_error, (found.low, found.high)
    low, high = sorted(task.natural(end or 0.0) for end in ends)
    deviation = Deviation(found.value, off, form=form) if task.is_number and off is not None else None
    interval = None if None in ends else (low, high)
    words = task.words(Estimate(task, value=task.natural(found.value), interval=interval, deviation=deviation))
    return words if task is CLASSES else f"{task.prefix}{words}"


def _task(estimate: RecordedEstimate | None) -> Task:
    """Return the task of a record; the usual one of a metric that this version does not know."""
    if estimate is None:
        return CLASSES
    is_number = estimate.measure == NUMBERS.value_name
    try:
        return numbers_by(estimate.metric) if is_number else classes_by(estimate.metric)
    except ParameterError:
        return NUMBERS if is_number else CLASSES


def _line(text: str) -> str:
    """Return one line, without control characters."""
    return "".join(letter for letter in " ".join(text[:_LONGEST].split()) if letter.isprintable())
