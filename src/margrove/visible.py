"""Make text from untrusted files safe to print."""

from __future__ import annotations

import re

# Control characters (C0, DEL, C1), line separators, marks that change the direction of text, and lone surrogates.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str, keep: str = "", *, is_json: bool = False) -> str:
    """Return the text with control characters replaced by escapes, except those in ``keep``. With ``is_json``, use
    JSON's escapes."""
    escaped = "\\u{:04x}".format if is_json else lambda code: chr(code).encode("unicode_escape").decode()
    return _CONTROLS.sub(lambda found: found[0] if found[0] in keep else escaped(ord(found[0])), text)
