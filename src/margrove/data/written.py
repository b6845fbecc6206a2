"""Numbers, dates and times of day as they are written in cells, before it is known what their signs mean.

``1,250`` is one number or another, and ``03/04/2024`` one date or another: a `WrittenNumber` and a `WrittenDate` hold
the parts of a cell, to which a format (see `formats`) gives a meaning.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from margrove.words import MONTHS, NO_ANSWER, UNKNOWN, bare

CACHED = 1 << 13  # cells whose parse is cached, since many occur more than once
# Blanks, minus signs, apostrophes and figures that look like those of ASCII; marks without width, as those of text that
# is written from the right, are left out.
FRACTIONS = "½¼¾"
_PLAIN = (
    str.maketrans(
        "\xa0\u202f\u2009\u2007\u2212\u2013\u2012\uff0d\u2019\u2018\u00b4`％￥٫٬μ",
        "    ----''''%¥.,µ",
        "\u200b\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069\ufeff\xad",
    )
    | {ord("℃"): "°C", ord("℉"): "°F"}
    | dict(zip(map(ord, FRACTIONS), (".5", ".25", ".75"), strict=True))
)
_CURRENCIES = {  # by their spellings in lower case; the first is the name by which they are compared
    spelling: words[0]
    for words in (
        ("€", "eur", "euro", "euros"),
        ("$", "usd", "us$", "dollar", "dollars"),
        ("£", "gbp"),
        ("¥", "jpy", "円", "yen"),
        ("₹", "rs.", "rs", "inr"),
        ("chf", "fr.", "sfr.", "sfr"),
        ("kr", "kr."),
        ("zł", "pln", "zl"),
        ("r$", "brl"),
        ("kč", "czk"),
        ("ft", "huf"),
        ("₽", "rub", "руб.", "руб"),
        ("元", "cny", "rmb"),
        ("sek",),
        ("nok",),
        ("dkk",),
        ("isk",),
        ("ron", "lei"),
        ("bgn", "лв"),
        ("try", "₺", "tl"),
        ("ils", "₪"),
        ("zar",),
        ("mxn",),
        ("ars",),
        ("cop",),
        ("clp",),
        ("aed",),
        ("sar",),
        ("krw", "₩"),
        ("hkd", "hk$"),
        ("sgd", "s$"),
        ("aud", "a$"),
        ("cad", "c$"),
        ("nzd", "nz$"),
        ("thb", "฿"),
        ("vnd", "₫"),
        ("uah", "₴"),
        ("twd",),
        ("rp", "rp.", "idr"),
        ("rm", "myr"),
        ("php", "₱"),
        ("kzt", "₸"),
        ("gel", "₾"),
        ("rsd", "din.", "дин."),
        ("s/", "pen"),
        ("inr",),
    )
    for spelling in words
}
_SPELLINGS_OF_UNITS = """
% ‰ ° °c °f nm µm=um mm cm dm m km in=inch ft yd mi=miles mm²=mm2 cm²=cm2 m²=m2=qm=sqm km²=km2 ha ac=acres sqft cm³=cm3
m³=m3 ml cl dl l=ltr=litre=liter=litres=liters gal oz pg ng µg=ug mg g=gr kg=kgs t=to=tonnes tons lb=lbs st ms s=sec=sek
min=mins h=hr=hrs=hours=std d=days=tage=jours weeks months years=yrs v mv kv ma ah mah w kw mw gw wh kwh mwh gwh j kj mj
cal kcal pa hpa kpa mpa bar mbar psi n kn hz khz mhz ghz db dba bit kb mb gb tb kib mib gib bps kbps mbps km/h=kmh mph
m/s rpm=1/min ppm ppb mg/l µg/l=ug/l g/l mmol mol µs=us ns cells g/m²=g/m2 kg/m²=kg/m2 €/m²=€/m2 kg/m³=kg/m3 pts=pt
pcs=pc stk=stück units px dpi cfu=kbe mpn ntu pfu hl dag dt q szt ks kom kpl шт pz uds ud unid und adet buc
人=名 個=个 件 台 枚 箱 社 回 点 戸 世帯 歳=岁=세 명 개 時間=小时 千円 万円
"""
_UNITS = {word: words.split("=")[0] for words in _SPELLINGS_OF_UNITS.split() for word in words.split("=")}
POINT_MONEY = ("$", "£", "¥", "₹")  # currencies of countries that write a decimal point
_SCALES = {
    word: factor
    for factor, words in (
        (1e3, "tsd thousand tausend tys тыс k"),
        (1e5, "lakhs lakh lac"),
        (1e6, "mio mn mln mill millions million millionen млн m"),
        (1e7, "crores crore"),
        (1e9, "mrd bn mld billions billion milliarden млрд b"),
    )
    for word in words.split()
}
_SCALED = "|".join(["[kKMB]", *(f"(?i:{word})" for word in _SCALES if len(word) > 1)])  # "m" is a metre
_NUMBER = re.compile(
    r"(?P<about>[<>~≈≤≥]=?\s?|(?:ca|c|circa)\.? )?(?P<open>\(\s?)?(?P<sign>[-+]\s?)?"
    r"(?P<before>[^\d\s.,'()<>~+-][^\d\s()<>~+,-]{0,4})?\s?(?P<inner>[-+(]\s?)?"
    r"(?P<body>\d(?:[\d.,' ]*\d)?|[.,]\d+)(?P<power>[eE][-+]\d{1,3})?(?:[.,]-{1,2})?"
    rf"\s?(?:(?P<scale>(?:{_SCALED})\b)\.?)?"
    r"\s?(?P<after>[^\d\s.,'()<>~+-][^()<>~+]{0,11}?)??\s?"
    r"(?P<trail>-)?(?P<close>\s?\))?(?P<mark>(?<=\d)[¹²³⁴-⁹]+|\s?[*†‡]+|\s?\[\w{1,2}\]|\s?\([^\W\d]\)|\+)?"
)
_BELOW_ZERO = re.compile(r"[▲△]\s?¥?\d[\d,.]*[円%]?")  # Japanese accounts
_CLOCK = re.compile(
    r"([-+])?(\d{1,2}|\d{3,4}(?=:\d\d:))(?:[:h](\d{2})(?::(\d{2}(?:[.,]\d+)?))?(?:\s?uhr)?|(?=\s?[ap]))(?:\s?([ap])\.?m\.?)?",
    re.IGNORECASE,
)


_ZONES = {"z": 0, "utc": 0, "gmt": 0, "wet": 0, "cet": 60, "mez": 60, "bst": 60, "cest": 120, "mesz": 120, "eet": 120}
_ZONES |= {"est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420}
_TIME = (
    r"(?:(?:[T,:]\s?|\s(?:at |um |à |a las |kl\.? )?)(?P<hour>\d{1,2})[:h.](?P<minute>\d{2})"
    r"(?::(?P<second>\d{2}(?:[.,]\d+)?))?(?:\s?Uhr)?(?:\s?(?P<half>[AaPp])\.?[Mm]\.?)?"
    r"(?:\s?(?P<zone>[A-Za-z]{1,4}|(?:GMT|UTC)?[-+](?:\d{2}:?\d{2}|\d{1,2}))(?:\s\([A-Z]{2,5}\))?)?)?"
)
_YEAR = r"(?P<y>\d{4}|\d{2})\.?(?:\s?[rгg]\.?)?"  # "r." and "г." abbreviate the year in Polish and Russian
_WORD = r"(?P<word>[^\W\d_]{3,12})\.?"
_DATES = [
    re.compile(rf"(?:(?P<weekday>[^\W\d_]{{2,10}})\.?,?\s)?{pattern}{_TIME}")
    for pattern in (
        r"(?P<y>\d{4})(?P<sep>[-/.:])\s?(?P<m>\d{1,2})(?P=sep)\s?(?P<d>\d{1,2})\.?",
        r"(?P<y>(?:19|20)\d\d) (?P<m>\d\d) (?P<d>\d\d)",
        r"(?P<y>\d{4})[年년]\s?(?P<m>\d{1,2})[月월](?:\s?(?P<d>\d{1,2})[日일])?",
        rf"(?P<y>\d{{4}})[-/.\s]\s?{_WORD}[-/.\s]\s?(?P<d>\d{{1,2}})\.?",
        rf"(?P<a>\d{{1,2}})(?P<sep>[-/.]|\s(?=\d\d\s(?:19|20)\d\d))\s?(?P<b>\d{{1,2}})(?P=sep)\s?{_YEAR}",
        rf"(?P<d>\d{{1,2}})(?:\.|st|nd|rd|th|er)?[-/\s]?(?:de )?{_WORD}[-/\s,]\s?(?:de )?{_YEAR}",
        rf"{_WORD}[-\s](?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?[-\s]{_YEAR}",
    )
] + [
    re.compile(pattern)
    for pattern in (
        rf"(?:(?P<weekday>[^\W\d_]{{2,10}})\s)?{_WORD}\s+(?P<d>\d{{1,2}})\s(?P<hour>\d{{2}}):(?P<minute>\d{{2}})"
        r":(?P<second>\d{2})(?:\s(?P<zone>[A-Z]{1,4}|[-+]\d{4}))?\s(?P<y>\d{4})",
        r"(?P<y>\d{4})-(?P<m>\d{2})",
        r"(?P<m>\d{1,2})/(?P<y>\d{4})",
        rf"{_WORD}[-\s/](?:de )?(?P<y>\d{{4}})",
        rf"{_WORD}[-\s/]'?(?P<y>\d{{2}})",
        r"(?P<y>(?:19|20)\d{2})(?P<m>\d{2})(?:(?P<d>\d{2})"
        r"(?:T?(?P<hour>\d{2})(?P<minute>\d{2})(?P<second>\d{2})?(?P<zone>Z)?)?)?",
    )
]


DASHES = ("-", "--", "---", "–", "—")
ERRORS = (
    "#DIV/0!",
    "#REF!",
    "#VALUE!",
    "#NAME?",
    "#NUM!",
    "#NULL!",
    r"\N",
)  # of spreadsheets; and of dumps of databases
# In statistics, and the first days of databases; "+" and "<" may be values.
_SIGNS = re.compile(r"[-–—－.:…·•*/?\s]+|\([^\W\d_]{1,2}\)|00(?:00)?([-/.])00\1(?:00){1,2}(?: 00:00(?::00)?)?")
_LONGEST = max(map(len, ERRORS))  # letters of one that is no value among words, too


class WrittenNumber(NamedTuple):
    """A cell that is written as a number, before it is known what its points and commas mean."""

    body: str  # digits, points, commas, blanks, apostrophes
    factor: float  # of sign, exponent, and "k" or "M"
    unit: str  # as written
    about: str  # "<" of "<5", "~" of "~10", or the mark of a footnote


class WrittenDate(NamedTuple):
    """A cell that is written as a date, before it is known whether the day or the month stands first."""

    year: int  # as written: 24 or 2024
    first: int  # the month, or, where ``separator`` is set, either
    second: int
    separator: str  # of dates such as 03/04/2024; "" where the order of the parts is plain
    hours: float | None  # of the day; None without a time
    zone: float | None  # hours ahead of UTC
    is_short: bool = False  # a year of two digits
    weekday: str = ""  # or any word before the date


def plain_text(text: str) -> str:
    """Return a cell with blanks, minus signs and apostrophes of ASCII."""
    return text.translate(_PLAIN).strip()


@lru_cache(CACHED)
def is_absent(text: str) -> bool:
    """Return whether a cell says that there is none, also among words: an error of a spreadsheet, or "k. A."."""
    if len(text) > _LONGEST:
        return False
    return text in ERRORS or text.casefold().replace(" ", "").strip("[]()<>") in NO_ANSWER


def is_no_value(text: str) -> bool:
    """Return whether a cell among numbers or dates says that there is none."""
    return is_absent(text) or _SIGNS.fullmatch(text) is not None or text.casefold() in UNKNOWN


def unit_name(unit: str) -> str:
    """Return the name by which a unit is compared: that of € and EUR is the same."""
    folded = unit.casefold()
    return _CURRENCIES.get(folded) or _UNITS.get(plain := _plain_unit(folded), plain)


def _plain_unit(unit: str) -> str:
    """Return a unit as `_UNITS` has it: ``°c`` for "Deg C"."""
    return re.sub(r"deg\s?(?=[cf]?$)", "°", unit.casefold().replace("μ", "µ").rstrip(".")).replace("^", "")


def is_money(unit: str) -> bool:
    """Return whether this is a currency."""
    return unit.casefold() in _CURRENCIES


def is_known_unit(unit: str) -> bool:
    """Return whether this is a currency or a usual unit of measure."""
    plain = _plain_unit(unit)
    parts = [re.sub(r"^\d+\s?", "", part) for part in re.split("[/·]", plain)]  # "l/100 km"
    if unit in ("S", "H"):  # "16S" is no time
        return False
    return is_money(unit) or all(part in _UNITS or part in _CURRENCIES for part in parts)


@lru_cache(CACHED)
def written_number(text: str) -> WrittenNumber | None:
    """Return a cell as a number, or None where it is something else."""
    plain = plain_text(text)
    if _BELOW_ZERO.fullmatch(plain):
        plain = f"-{plain[1:]}"
    match = _NUMBER.fullmatch(plain)
    if match is None:
        unit = plain.strip("- ")
        is_zero = plain != unit and is_money(unit)  # "$ -" stands for zero in accounts
        return WrittenNumber("0", 1.0, unit, "-") if is_zero else None
    before, after = match["before"] or "", (match["after"] or "").strip()
    scale = (match["scale"] or "").lower()
    if before and not is_money(before) and before != "%":
        return None
    if after == "m" and before:  # £1.2m
        scale, after = "mio", ""
    signs = "".join(match[place] or "" for place in ("open", "sign", "inner", "trail")).replace(" ", "")
    n_open = signs.count("(")
    if (before and after) or n_open != bool(match["close"]) or len(signs) - n_open > 1:
        return None
    if match["scale"] == "B" and not is_money(before or after):
        return None  # a letter of a code
    factor = -1.0 if "-" in signs or n_open else 1.0
    factor *= float(f"1{match['power']}") if match["power"] else _SCALES.get(scale, 1.0)
    return WrittenNumber(match["body"], factor, before or after, (match["about"] or match["mark"] or "").strip())


def clock_hours(text: str) -> float | None:
    """Return the hours of a time of day such as 13:45, or of a duration such as 38:20:15 or -0:30, or None."""
    match = _CLOCK.fullmatch(plain_text(text))
    if match is None or int(match[3] or 0) > 59:
        return None
    seconds = float((match[4] or "0").replace(",", "."))
    hours = _hour(int(match[2]), match[5]) + int(match[3] or 0) / 60 + seconds / 3600
    hours = -hours if match[1] == "-" else hours
    return hours if abs(hours) <= 24 or match[4] else None  # with seconds it may be long


def _hour(hour: int, half: str | None) -> int:
    return hour if not half else hour % 12 + (12 if half.lower() == "p" else 0)


@lru_cache(CACHED)
def written_date(text: str) -> WrittenDate | None:
    """Return a cell as a date, or None where it is something else."""
    plain = plain_text(text)
    if not re.search(r"\d", plain):
        return None
    match = next((found for pattern in _DATES if (found := pattern.fullmatch(plain))), None)
    if match is None:
        return None
    parts = match.groupdict()
    year = int(parts["y"])
    if parts.get("word"):
        month = _month(parts["word"])
        if month is None:
            return None
        first, second, separator = month, int(parts.get("d") or 1), ""
    elif "a" in parts:
        first, second, separator = int(parts["a"]), int(parts["b"]), parts["sep"]
    else:
        first, second, separator = int(parts["m"]), int(parts.get("d") or 1), ""
    if not first or not second or re.match(r"0\d{3}", parts["y"]):  # 0000-00-00, 01.01.0010
        return None
    hours = zone = None
    if parts.get("hour"):
        hours = _hour(int(parts["hour"]), parts.get("half")) + int(parts["minute"]) / 60
        hours += float((parts["second"] or "0").replace(",", ".")) / 3600
        name = (parts["zone"] or "").lower()
        if name[-1:].isdigit():
            name = name.removeprefix("gmt").removeprefix("utc")
            digits = name[1:].replace(":", "")
            digits = (digits.zfill(2) if len(digits) < 3 else digits).ljust(4, "0")
            zone = (int(digits[:2]) + int(digits[2:]) / 60) * (-1 if name[0] == "-" else 1)
        elif name:
            if name not in _ZONES:
                return None
            zone = _ZONES[name] / 60
        if hours > 24 or int(parts["minute"]) > 59:
            return None
    weekday = (parts.get("weekday") or "").casefold()
    return WrittenDate(year, first, second, separator, hours, zone, len(parts["y"]) == 2, weekday)


def _month(word: str) -> int | None:
    """Return the number of a month named in full or by its first three letters or more."""
    name = bare(word)
    if name in MONTHS:
        return MONTHS[name]
    found = {number for full, number in MONTHS.items() if full.startswith(name)}
    return found.pop() if len(found) == 1 else None
