"""Print certificates and what a model has learned."""

from __future__ import annotations

import math
import re

from rich.table import Table as Grid
from rich.text import Text

from margrove.app.screen.advice import in_shell
from margrove.app.screen.console import Screen, bare_grid
from margrove.certificate import Certificate, Claim
from margrove.explanation import HIGH, ForestSummary, MachineSummary, ModelSummary, TreeSummary, Vote, counted
from margrove.status import Status
from margrove.tree.words import amount_text
from margrove.visible import visible

MOST_MACHINES = 4  # numbers side by side that fit in 80 columns
SHOWN_COLUMNS = 8  # of those that a tree asks for
SHOWN_ROUNDS = 10  # of a vote: the first say most, and each later one less
MOST_LINES = 30  # lines that somebody still reads: 26 letters have 325 pairs
_LARGEST_COUNT = 1e9  # beyond, nobody reads all digits
_VS_REST = " vs rest"
SEARCHED = re.compile(r"([\d,]+) of ([\d,]+) (splits|leaves) searched(?: again)?")  # as the words of a claim begin
OF_TREES = re.compile(r"([\d,]+) of ([\d,]+) trees")  # in the words of a claim about a forest
_UNCHECKED = "not checked: "  # the same of a claim that was not checked at all
_MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


AS_SAVED = "as saved after training; `margrove certify MODEL FILE` recomputes it"


def tell_certificate(
    screen: Screen, certificate: Certificate, *, is_saved: bool = False, data: str | None = None, why_not: str = ""
) -> None:
    """Print the verdict of a certificate, and what to do where it does not hold; ``why_not`` it was checked. Print its
    claims, too, unless ``data`` names what the model was trained on ("TABLE"): then refer to `margrove certify`."""
    screen.say()
    if data is None:
        screen.say(f"Certificate of {certificate.learner}", style="bold")
        screen.say(certificate_grid(certificate))
    verb = "recomputes each" if is_saved or certificate.holds is None else "shows each"
    where = "" if data is None else f" (margrove certify MODEL {data} {verb})"
    style = {True: "bold green", False: "bold red", None: "bold"}[certificate.holds]
    screen.essential(Text.assemble((verdict_words(certificate, is_saved=is_saved, why_not=why_not), style), where))
    failed = [claim for claim in certificate.claims if claim.holds is False]
    failed = failed if len(certificate.claims) > 1 else []  # a single claim, of a wrong table, stands right above
    for claim in failed:
        screen.say(f"{claim.name}: {claim.words}" if claim.words else claim.name, indent=2)
    if certificate.status in set(Status) and certificate.status != Status.CONVERGED:
        advice = in_shell(Status(certificate.status).advice)
        screen.say(f"The solver stopped with status {certificate.status!r}: {advice}.", indent=2)
    if failed:
        screen.say("The model still predicts, but without this proof.", indent=2)


def number_text(value: float) -> str:
    """Return a count in full, a measure with three digits."""
    if abs(value) >= _LARGEST_COUNT:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value.is_integer() else amount_text(value)


def value_texts(claim: Claim, at_most: str = " ≤ ") -> list[str]:
    """Return the values of a claim, each with its limit where there is one."""
    texts = [number_text(value) for value in claim.values]
    if claim.limits is None:
        return texts
    limits = [f"{at_most}{number_text(limit)}" if math.isfinite(limit) else "" for limit in claim.limits]
    return [text + limit for text, limit in zip(texts, limits, strict=True)]


def certificate_grid(certificate: Certificate) -> Grid:
    """Return one line per claim, with a number for each machine where they fit, and its meaning below."""
    machines = certificate.machines
    is_joint = len(machines) > 1 and all(len(claim.values) <= 1 for claim in certificate.claims)  # one layer weighs all
    is_split = len(machines) <= MOST_MACHINES and not is_joint
    is_one_vs_rest = all(machine.endswith(_VS_REST) for machine in machines) and not is_joint
    grid = bare_grid("", "claim (each class against the rest)" if is_one_vs_rest else "claim")
    all_of_them = f"all {len(machines)} {'classes' if is_one_vs_rest or is_joint else 'machines'}"
    for machine in machines if is_split else (all_of_them,):
        grid.add_column(Text(visible(machine).removesuffix(_VS_REST).replace(" vs ", "\nvs ")), justify="right")
    for claim, (_, name, value, words) in zip(certificate.claims, certificate.rows(), strict=True):
        mark, style = _MARKS[claim.holds]
        values = [value]
        if is_split and len(claim.values) == len(machines):
            values = value_texts(claim, "\n≤ ")
        elif len(machines) == 1 < len(claim.values):  # of the parts of a machine: the splits of a tree
            values = [f"{number_text(min(claim.values))} … {number_text(max(claim.values))}"]
        elif is_split and len(claim.values) == 1:  # of all machines together
            name, values = f"{name}: {number_text(claim.values[0])}", []
        text = Text.assemble(name, *([("\n" + words, "dim")] if words else []))
        grid.add_row(Text(mark, style=style), text, *(Text(value) for value in values))
    return grid


def verdict_words(certificate: Certificate, *, is_saved: bool = False, why_not: str = "") -> str:
    """Return the verdict in one line, with what was checked in part; that of a file, which may claim anything, in the
    past."""
    holds, fails, when = "holds", "does NOT hold", f": the check {why_not}" if why_not else " yet"
    if is_saved:
        holds, fails, when = "held when it was saved", "did NOT hold when it was saved", " when it was saved"
    if certificate.holds is None:
        return f"Certificate not checked{when}; its numbers are the solver's own"
    checked = [claim.holds for claim in certificate.claims if claim.holds is not None]
    claims = f"{counted(len(checked), 'claim')} recomputed on {certificate.n_rows:,} rows"
    if not certificate.holds:
        n_failed = checked.count(False)
        return f"Certificate {fails}: {n_failed} of {claims} {'is' if n_failed == 1 else 'are'} not true"
    parts = parts_of(certificate)
    return f"Certificate {holds}{', checked in part' if parts else ''}: {'; '.join([claims, *parts])}"


def parts_of(certificate: Certificate) -> list[str]:
    """Return what was checked in part, or not at all: "10 of 400 splits searched again"."""
    claims = {claim.name: claim for claim in certificate.claims}
    trees, rounds = claims.get("trees searched again"), claims.get("rounds")
    found = {}
    if trees is not None and rounds is not None and () < trees.values < rounds.values:
        found["trees"] = f"{trees.values[0]:,.0f} of {rounds.values[0]:,.0f} trees searched again"
    for claim in certificate.claims:
        counts = SEARCHED.match(claim.words)
        if counts is not None and counts[1] != counts[2]:
            found[counts[3]] = counts[0]
        of_trees = OF_TREES.search(claim.words)
        if of_trees is not None and of_trees[1] != of_trees[2]:
            what = "recounted" if "recounted" in claim.words else "searched again"
            found[what] = f"{of_trees[0]} {what}"
        if claim.words.startswith(_UNCHECKED):
            found[claim.name] = f"{claim.name!r} not checked ({claim.words.removeprefix(_UNCHECKED)})"
    return list(found.values())


def tell_learned(screen: Screen, learned: ModelSummary, *, has_columns: bool = True) -> None:
    """Print what the model learned; ``has_columns``: from columns that mean something to people."""
    screen.heading("What the model learned")
    if learned.kind == "weights":
        _tell_machines(screen, learned)
        if any(machine.evidence for machine in learned.machines):
            text = f"In parentheses: the weight{learned.unit}, relative to the largest on its line. "
            screen.say(f"{text}Correlated columns share their weight or cancel out.", style="dim", indent=2)
    if learned.tree is not None:
        _tell_tree(screen, learned, learned.tree)
    if learned.kind == "machines":
        screen.say(f"{learned.size_words}, each a {learned.unit}, decide together:", indent=2)
        _tell_machines(screen, learned)
    if learned.vote is not None:
        _tell_vote(screen, learned, learned.vote)
    if learned.forest is not None:
        _tell_forest(screen, learned, learned.forest)
    if learned.support is not None:
        _tell_support(screen, learned, learned.support)
    elif learned.kind == "rows":
        of_all = f" of {learned.n_training_rows:,}" if learned.n_training_rows else ""
        screen.say(f"The model depends on {learned.size:,}{of_all} training rows; the others have weight 0:", indent=2)
    if learned.kind == "votes" or (learned.kind == "rows" and learned.support is None):
        _tell_machines(screen, learned)
    if learned.kind == "rows" and learned.support is not None and has_columns:
        text = "To see which columns matter, write a report (margrove report) or train a linear model (--model linear)."
        screen.say(text, style="dim", indent=2)


def _tell_machines(screen: Screen, learned: ModelSummary) -> None:
    line = _weights_line if learned.kind == "weights" else _other_line
    for machine in learned.machines[:MOST_LINES]:
        screen.say(line(machine), indent=2)
    if len(learned.machines) > MOST_LINES:
        screen.say(f"… and {len(learned.machines) - MOST_LINES:,} more; --json has them all", style="dim", indent=2)


def _tell_tree(screen: Screen, learned: ModelSummary, tree: TreeSummary) -> None:
    """Print the size of a tree, its tests as far as they fit, and the columns that they use."""
    pruned = f", pruned from {tree.n_leaves_grown:,}" if tree.n_leaves_grown > learned.size else ""
    screen.say(f"{learned.size_words}, depth {tree.depth:,}{pruned}:", indent=2)
    for line in tree.text.splitlines():
        screen.say(Text(line), indent=4)
    if not tree.is_whole:
        screen.say("All rules: margrove show --rules MODEL", style="dim", indent=2)
    if tree.importances:
        _tell_importances(screen, tree.importances, tree.purpose)


def _tell_importances(screen: Screen, importances: dict[str, float], purpose: str) -> None:
    strongest = list(importances.items())[:SHOWN_COLUMNS]
    more = len(importances) - len(strongest)
    words = ", ".join(f"{name} {percent(share)}" for name, share in strongest)
    rest = f" and {more:,} more" if more else ""
    screen.say(f"Contribution of each column to {purpose}: {words}{rest}", indent=2)


def _tell_vote(screen: Screen, learned: ModelSummary, vote: Vote) -> None:
    """Print the first rounds of a vote, and the columns that its trees use."""
    largest = max(voter.n_leaves for voter in vote.voters)
    size = "" if largest <= 2 else f", each of at most {largest:,} rules"  # stumps are shown whole
    given_up = vote.n_rounds_done - learned.size
    kept = (
        f"; {given_up:,} later rounds did not improve the score on rows held out and were removed" if given_up else ""
    )
    verb = "votes" if learned.size == 1 else "vote"
    screen.say(f"{learned.size_words} {verb}{size}{kept}:", indent=2)
    has_alpha = vote.voters[0].alpha is not None
    numbers = (*(["rules"] if size else []), *(("error", "α") if has_alpha else ("loss", "vote")))
    grid = bare_grid("round", "first test" if size else "test", *numbers, right=("round", *numbers))
    for voter in vote.voters[:SHOWN_ROUNDS]:
        weight = voter.vote if voter.alpha is None else voter.alpha
        sizes = [f"{voter.n_leaves:,}"] if size else []
        grid.add_row(f"{voter.round:,}", Text(voter.test), *sizes, f"{voter.error:.3g}", f"{weight:.3g}")
    if len(vote.voters) > SHOWN_ROUNDS:
        grid.add_row("…", f"and {len(vote.voters) - SHOWN_ROUNDS:,} more")
    screen.say(grid, indent=4)
    is_whole = not size and learned.size <= SHOWN_ROUNDS
    if not is_whole:
        screen.say("All rules: margrove show --rules MODEL", style="dim", indent=2)
    if vote.importances:
        _tell_importances(screen, vote.importances, vote.purpose)


def forest_words(learned: ModelSummary, forest: ForestSummary) -> tuple[str, str]:
    """Return the size of a forest, and its out-of-bag score (empty where it was not computed), in words."""
    leaves = "leaf" if round(forest.n_leaves) == 1 else "leaves"
    size = f"{learned.size_words}, on average with {forest.n_leaves:,.0f} {leaves} and depth {forest.depth:.0f}"
    if forest.out_of_bag is None:
        return size, ""
    value = percent(forest.out_of_bag) if forest.measure == "accuracy" else f"{forest.out_of_bag:.3f}"
    return size, f"Out-of-bag {forest.measure} {value}: each training row predicted by the trees that did not draw it"


def _tell_forest(screen: Screen, learned: ModelSummary, forest: ForestSummary) -> None:
    """Print the size of a forest, its out-of-bag score, and the columns that its trees use."""
    for line in filter(None, forest_words(learned, forest)):
        screen.say(line, indent=2)
    if forest.importances:
        _tell_importances(screen, forest.importances, forest.purpose)


def _tell_support(screen: Screen, learned: ModelSummary, support: dict[str, int]) -> None:
    """Print the support vectors of each class of a support vector classifier, and the bounds that follow."""
    rows = f"{sum(support.values()):,} of {learned.n_training_rows or 0:,}"
    alone = "" if learned.loo_bound is None else "; the other rows could be left out without changing the model"
    screen.say(f"{rows} training rows are support vectors{alone}:", indent=2)
    line = Text()
    for label, count in list(support.items())[:MOST_LINES]:
        line.append(", class " if line else "class ").append(visible(label), style="bold")
        line.append(f": {counted(count, 'row')}")
    screen.say(line.append(", …" if len(support) > MOST_LINES else ""), indent=4)
    if learned.loo_bound is None or learned.xi_alpha_bound is None:
        return
    bound, sharper = percent(learned.loo_bound), percent(learned.xi_alpha_bound)
    by_estimate = "" if bound == sharper else f" ({sharper} by the sharper ξα-estimate)"
    screen.say(f"The leave-one-out error is at most {bound}{by_estimate}.", indent=2)


def _weights_line(machine: MachineSummary) -> Text:
    rival = "" if machine.negative == "the rest" else f" rather than {machine.negative}"
    positive, against_it = machine.positive, "against it"
    if positive == HIGH:
        positive, rival, against_it = "The prediction is higher", " with", "lower with"
    line = Text.assemble((visible(positive), "bold"), visible(f"{rival}: "))
    if not machine.evidence:
        return line.append("no column matters")
    for_it, against = (
        ", ".join(
            f"{fact.description} ({abs(fact.weight):.2f})" for fact in machine.evidence if fact.is_against == side
        )
        for side in (False, True)
    )
    return line.append(visible(f"; {against_it}: ".join(part for part in (for_it or "nothing", against) if part)))


def _other_line(machine: MachineSummary) -> Text:
    if machine.positive == HIGH and machine.n_rows_positive is not None:
        return Text(f"{machine.n_rows_positive:,} of them raise the prediction, {machine.n_rows_negative:,} lower it")
    name = (visible(f"{machine.positive} vs {machine.negative}"), "bold")
    if machine.n_voters is not None:
        return Text.assemble(name, f": {machine.n_voters:,} weight vectors vote")
    if machine.n_rows_positive is None:
        return Text.assemble(name)
    return Text.assemble(name, f": {machine.n_rows_positive:,} rows for it, {machine.n_rows_negative:,} against it")
