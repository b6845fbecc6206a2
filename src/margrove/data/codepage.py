"""Guess the encoding of a text that is not UTF-8, by the letters that its bytes become.

A right guess makes words: letters of one language, capitals only where a word begins or among capitals, signs only
where such signs stand. A wrong one puts signs and capitals into the middle of words, or letters of several languages.
"""

from __future__ import annotations

import re

from margrove.data.source import bad_byte_at

WINDOW = 1 << 22  # bytes that are judged; `read_chunks` looks at as many

# The letters beyond ASCII of a language, with the encodings that its texts have, the likeliest first.
_WEST = ("cp1252", "iso8859-15", "mac-roman", "cp850", "cp437")
_EAST = ("cp1250", "iso8859-2", "cp852")
_LANGUAGES: dict[str, tuple[str, ...]] = {
    "äöüß": _WEST,  # German
    "éèêëàâçùûîïôœ": _WEST,  # French
    "áéíóúñü": _WEST,  # Spanish
    "ãáâàçéêíóõôú": _WEST,  # Portuguese
    "àèéìòù": _WEST,  # Italian
    "åäöéü": _WEST,  # Swedish, Finnish
    "æøåé": _WEST,  # Danish, Norwegian
    "áðéíóúýþæö": _WEST,  # Icelandic
    "éëïèöü": _WEST,  # Dutch
    "ąćęłńóśźż": _EAST,  # Polish
    "áčďéěíňóřšťúůýž": _EAST,  # Czech
    "áäčďéíĺľňóôŕšťúýž": _EAST,  # Slovak
    "áéíóöőúüű": _EAST,  # Hungarian
    "čćđšž": _EAST,  # Croatian, Slovene
    "ăâîşţ": _EAST,  # Romanian
    "çğıiöşüâ": ("cp1254", "cp857"),  # Turkish
    "ąčęėįšųūžāēģīķļņõäöü": ("cp1257",),  # Baltic
    "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋ": ("cp1253", "iso8859-7", "cp737"),  # Greek
    "абвгдежзийклмнопрстуфхцчшщъыьэюяё": ("cp1251", "koi8-r", "cp866"),  # Russian
}
# Characters that nearly every text of some length has, and how the bytes of others seldom read.
_IDEOGRAPHS = {
    "cp932": "のはをにがとでてしりるいンーストル日月数年金名店商品",
    "gb18030": "的一是在不了有和人这中大为上个国年月日数量名称金额价格类型单位号期客户产品编合计商店",
    "euc-kr": "이다의는에을가고지기사수량금액일자원번호명제품가격고객월년시도로",
}
_BESIDE_NUMBERS = "€£¥¢²³°µ§½¼¾‰±×\u00a0"
_BEFORE_WORDS = "–—“”„‘’‚«»‹›…•·¿¡№€£§\u00a0"
_AFTER_WORDS = _BEFORE_WORDS + "ºª©®™°"
_PLAUSIBLE = 0.6  # the least mean of `_score`, at most 1


def guess_encoding(data: bytes) -> str | None:
    """Return the likeliest encoding of bytes that are not UTF-8, as Python calls it; None if none is plausible."""
    start = 0 if bad_byte_at(data[:WINDOW]) is not None else bad_byte_at(data) or 0
    lines = data[start : start + WINDOW].split(b"\n")
    if start + WINDOW < len(data) and len(lines) > 1:
        lines.pop()  # perhaps cut in the middle of a character
    # Each line once, as some repeat thousands of times.
    sample = b"\n".join(list(dict.fromkeys(line for line in lines if not line.isascii()))[:2000])
    best, best_score = None, _PLAUSIBLE
    for encoding, usual in _IDEOGRAPHS.items():
        text = _decoded(sample, encoding)
        wide = [character for character in text if ord(character) > 0x2E7F]
        # Each has two bytes; what is only half of such a text has single bytes too.
        share = 2 * len(wide) / max(1, len(re.findall(rb"[\x80-\xff]", sample)))
        if share > 0.7 and sum(character in usual for character in wide) > 0.15 * len(wide):
            return encoding
    for letters, encodings in _LANGUAGES.items():
        for place, encoding in enumerate(encodings):
            score = _score(_decoded(sample, encoding), letters) - 0.01 * place
            if score > best_score:
                best, best_score = encoding, score
    return best


def _decoded(data: bytes, encoding: str) -> str:
    """Return the text, or nothing where the bytes are not of this encoding or become control characters."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return ""
    return "" if re.search("[\x80-\x9f]", text) else text


def _score(text: str, letters: str) -> float:
    """Return how plausible the characters beyond ASCII are, on average, in a language of these letters."""
    scores = []
    is_latin = letters[0] < "α"
    for found in re.finditer(r"[^\x00-\x7f]", text):
        place, character = found.start(), found[0]
        before, after = text[max(place - 1, 0) : place], text[place + 1 : place + 2]
        near = text[max(place - 2, 0) : place].strip()[-1:] + text[place + 1 : place + 3].strip()[:1]
        is_beside = any(map(str.isdigit, near))
        inside = before.isalpha() and after.isalpha()
        if text[max(place - 1, 0) : place + 1] == "Kč":
            scores.append(1.0)
        elif character == "µ":
            scores.append(-2.0 if before.isalpha() else 1.0)
        elif character.isalpha():
            is_odd = character.isupper() and before.islower()
            is_end = (
                not after.isalpha() and not text[max(place - 2, 0) : place - 1].isalpha()
            )  # "Wä", short for Währung
            is_odd |= character.islower() and before.isupper() and not after.islower() and not is_end
            is_odd |= not is_latin and any(each.isascii() and each.isalpha() for each in (before, after))
            is_odd |= not before.isalpha() and not after.isalpha() and is_beside
            scores.append(-2.0 if is_odd else 1.0 if character.lower()[0] in letters else -1.0)
        elif character in _BESIDE_NUMBERS and (is_beside or (character in "²³" and before.isalpha() and not inside)):
            scores.append(1.0)
        elif character in (_BEFORE_WORDS if after.isalpha() else _AFTER_WORDS) and (not inside or character in "’–"):
            scores.append(0.7)
        else:
            scores.append(0.5 if character in _BESIDE_NUMBERS and not inside else -2.0)
    return sum(scores) / len(scores) if scores else 0.0
