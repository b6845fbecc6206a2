"""What the library advises in Python, said as options of the command line. A new cure is one more line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from warnings import WarningMessage

_PARAMETERS = "ccp_alpha|class_weight|criterion|decision_function_shape|engine|gamma|kernel|multiclass|prune|variant"
_IN_SHELL: tuple[tuple[str, str], ...] = (  # a pattern, and what stands in its place
    # Of the table.
    (r"\bheader=False", "--no-header"),
    (r"\bencoding='([^']*)'", r"--encoding \1"),
    (r"^(encoding|delimiter) is ", r"--\1 is "),
    (r"name the delimiter; to read it alone, say target=False", "name the delimiter: --delimiter"),
    (r"\btarget='\.\.\.'", "--target"),
    (r"\btarget='([^']*)'", r"--target \1"),
    (r"\btext='([^']*)'", r"--text '\1'"),
    (r"\bLeave it out of text(, or lower min_df)?", "Leave out its --text"),
    (r"\bLeave target out", "Leave --target out"),
    (r"\bdrop_unlabelled=True \(--drop-unlabelled\)", "--drop-unlabelled"),
    (r", or its rows a chunk at a time with read_chunks", ""),
    (r", or keep them: drop_constant=False, drop_identifiers=False", ""),
    (r", or say unseen='ignore' to read them as none of the known ones", ""),
    (r"\bPass a dense table \(X\.toarray\(\)\)", "Give a table of the format that it was trained on"),
    (
        r"because of '([^'…]+)'(.*) among its numbers\.$",
        r"because of '\1'\2 among its numbers; if such a word means a missing cell, say --missing '\1'.",
    ),
    (r"\bEstimate it with a regression,", "Estimate it with `margrove train --model tree` or linear,"),
    # Of pictures.
    (r"Give it: set_params\(network=…\), .*$", "Put its .onnx file beside the model, or into the folder you are in."),
    (r"\bGive that network: set_params\(network=…\)", "Put the right .onnx file beside the model"),
    (r"\bName (another layer|the layer whose answer is wanted): layer=…", r"Name \1: --layer"),
    (r"\bGive the size that it wants: size=…", "Give the size that it wants: --size"),
    (r"Give a file of weights \(weights='….pth'\), or say download=True", "Say --download"),
    (r"^(network|layer|size|device|cache) is ", r"--\1 is "),
    (r"\bdevice='(cpu|cuda|auto)'( or '(cpu|cuda|auto)')?", r"--device \1"),
    (r"\bor use early_stopping=False", "or use --param early_stopping=false"),
    # Of the learning.
    (r"^time_limit is ", "--time-limit is "),
    (r"\bNone is no limit", "leave it out for no limit"),
    (r"\braise time_limit\b", "raise --time-limit"),
    (r"\braise max_iter\b", "train with more: --param max_iter=…"),
    (r"\bTrain one of SVC, .* or write the model as ONNX, ", "Train one: --model svm, or export it with --to onnx, "),
    (r"\bPass K\.toarray\(\)", "A Gram matrix is for Python; choose another --param kernel=…"),
    (r"\bUse a finite C, or another kernel", "Use a finite --param C=…, or another --param kernel=…"),
    (r"\bmachine_decision gives the machines' values", "`margrove predict --scores` gives the machines' values"),
    (r"\bPut an encoder in front: make_pipeline\(.*\)", "Train the model with `margrove train`, which encodes tables"),
    (rf"\b({_PARAMETERS})='([^']*)'", r"--param \1=\2"),
    (r"\b(or|as does) None\b", r"\1 null"),  # a value of --param is JSON
    (r"\bNone (goes|is|means) ", r"null \1 "),
    (r"\bTrue or False\b", "true or false"),
)


def in_shell(advice: str) -> str:
    """The same advice for somebody who types commands.

    Examples
    --------
    >>> from margrove.app.screen.cures import in_shell
    >>> in_shell("Name its encoding, such as encoding='latin-1'.")
    'Name its encoding, such as --encoding latin-1.'
    """
    for pattern, words in _IN_SHELL:
        advice = re.sub(pattern, words, advice)
    return advice


def error_in_shell(error: Exception) -> str:
    """A failure in one line, its cure as options. Where the cure stands apart, the user's own words are left alone."""
    text = " ".join(str(error).splitlines())
    if "rows" in getattr(error, "evidence", {}):
        # Where hulls meet: rows of an array, from 0; those of a table are counted from 1.
        text = re.sub(r"(?<=·row )\d+", lambda number: str(int(number[0]) + 1), text)
    cure = getattr(error, "cure", None)
    return text.removesuffix(cure) + in_shell(cure) if cure else in_shell(text)


def warnings_in_shell(caught: Iterable[WarningMessage]) -> list[str]:
    """Each warning once, its advice as options."""
    return list(dict.fromkeys(in_shell(str(warning.message)) for warning in caught))
