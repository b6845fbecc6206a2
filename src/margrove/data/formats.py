"""The formats of numbers and dates: by the format of a column its cells are read and shown.

A `NumberFormat` says which signs stand for the decimal point and between thousands, and which unit or currency stands
beside the number. A `DateFormat` says in which order day, month and year are written. Both are plain values, kept in
models, so that new tables are read as the training table was. `inference` finds the format of a column.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal, NamedTuple, get_args

Order = Literal["ymd", "dmy", "mdy"]

_EPOCH = datetime(1970, 1, 1)  # in UTC, as all dates are
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, where Python's calendar ends
_TWO_DIGIT_YEARS = 50  # 00 to 49 are 2000 to 2049, 50 to 99 are 1950 to 1999

# Blanks, minus signs, apostrophes and figures that look like those of ASCII.
_PLAIN = str.maketrans("\xa0\u202f\u2009\u2007\u2212\u2013\u2012\u2019\u2018\u00b4`％￥", "    ---''''%¥")
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
        ("try", "₺"),
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
        ("inr",),
    )
    for spelling in words
}
_UNIT = re.compile(
    "%|‰|°|°c|°f|nm|µm|mm|cm|dm|m|km|in|inch|ft|yd|mi|miles|mm²|cm²|m²|m2|qm|km²|ha|ac|acres|sqft|sqm|cm³|m³|m3|ml|cl|dl|"
    "l|ltr|litre|liter|litres|liters|gal|oz|µg|mg|g|gr|kg|kgs|t|to|tonnes|tons|lb|lbs|st|ms|s|sec|sek|min|mins|h|hr|hrs|"
    "hours|std|d|days|tage|jours|weeks|months|years|yrs|v|mv|kv|ma|ah|mah|w|kw|mw|gw|wh|kwh|mwh|gwh|j|kj|mj|cal|kcal|pa|"
    "hpa|kpa|mpa|bar|mbar|psi|n|kn|hz|khz|mhz|ghz|db|dba|bit|kb|mb|gb|tb|kib|mib|gib|bps|kbps|mbps|km/h|kmh|mph|m/s|rpm|"
    "1/min|ppm|ppb|mg/l|µg/l|g/l|mmol/l|mg/dl|g/m²|kg/m²|€/m²|kg/m³|pts|pt|pcs|pc|stk|stück|units|px|dpi"
)
POINT_MONEY = ("$", "£", "¥", "₹")  # currencies of countries that write a decimal point
_SCALES = {"k": 1e3, "tsd": 1e3, "m": 1e6, "mio": 1e6, "mn": 1e6, "mrd": 1e9, "bn": 1e9}
_NUMBER = re.compile(
    r"(?P<about>[<>~≈≤≥]=?\s?|ca\.? )?(?P<open>\(\s?)?(?P<sign>[-+]\s?)?"
    r"(?P<before>[^\d\s.,'()<>~+-][^\d\s()<>~+,-]{0,4})?\s?(?P<inner>[-+]\s?)?"
    r"(?P<body>\d(?:[\d.,' ]*\d)?|[.,]\d+)(?P<power>[eE][-+]\d{1,3})?(?:[.,]-{1,2})?"
    r"\s?(?:(?P<scale>(?:k|K|M|Mio|Mn|Mrd|bn|Tsd)\b)\.?)?\s?(?P<after>[^\d\s.,'()<>~+-][^()<>~+]{0,11}?)??\s?"
    r"(?P<trail>-)?(?P<close>\s?\))?"
)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?(?:\s?([ap])\.?m\.?)?", re.IGNORECASE)

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january januar janvier enero gennaio januari janeiro stycznia styczen sty tammikuu",
            "february februar fevrier febrero febbraio februari fevereiro lutego luty lut helmikuu",
            "march mar marz marts mars marzo maart marco marca marzec maaliskuu mrz mrt",
            "april avril abril aprile kwietnia kwiecien kwi huhtikuu avr abr",
            "may mai mayo maggio mei maj maio maja toukokuu mag",
            "june juni juin junio giugno junho czerwca czerwiec cze kesakuu giu",
            "july juli juillet julio luglio julho lipca lipiec lip heinakuu lug",
            "august aout agosto augustus augusti sierpnia sierpien sie elokuu",
            "september septembre septiembre settembre setembro wrzesnia wrzesien wrz syyskuu sept set",
            "october oktober octobre octubre ottobre outubro pazdziernika pazdziernik paz lokakuu okt out ott",
            "november novembre noviembre novembro listopada listopad lis marraskuu",
            "december dezember decembre diciembre dicembre desember dezembro grudnia grudzien gru joulukuu des",
        ),
        start=1,
    )
    for name in names.split()
}
_ZONES = {"z": 0, "utc": 0, "gmt": 0, "wet": 0, "cet": 60, "mez": 60, "bst": 60, "cest": 120, "mesz": 120, "eet": 120}
_ZONES |= {"est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420}
_TIME = (
    r"(?:(?:[T,:]\s?|\s(?:at |um |à |a las |kl\.? )?)(?P<hour>\d{1,2})[:h.](?P<minute>\d{2})"
    r"(?::(?P<second>\d{2}(?:[.,]\d+)?))?(?:\s?Uhr)?(?:\s?(?P<half>[AaPp])\.?[Mm]\.?)?"
    r"(?:\s?(?P<zone>[A-Za-z]{1,4}|(?:GMT|UTC)?[-+](?:\d{2}:?\d{2}|\d{1,2})))?)?"
)
_WORD = r"(?P<word>[^\W\d_]{3,12})\.?"
_DATES = [
    re.compile(rf"(?:(?P<weekday>[^\W\d_]{{2,10}})\.?,?\s)?{pattern}{_TIME}")
    for pattern in (
        r"(?P<y>\d{4})(?P<sep>[-/.])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})",
        r"(?P<y>\d{4})年(?P<m>\d{1,2})月(?P<d>\d{1,2})日",
        r"(?P<a>\d{1,2})(?P<sep>[-/.])\s?(?P<b>\d{1,2})(?P=sep)\s?(?P<y>\d{4}|\d{2})",
        rf"(?P<d>\d{{1,2}})(?:\.|st|nd|rd|th|er)?[-/\s]?(?:de )?{_WORD}[-/\s,]\s?(?:de )?(?P<y>\d{{4}}|\d{{2}})",
        rf"{_WORD}[-\s](?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?[-\s](?P<y>\d{{4}})",
    )
] + [
    re.compile(pattern)
    for pattern in (
        r"(?P<y>\d{4})-(?P<m>\d{2})",
        r"(?P<m>\d{1,2})/(?P<y>\d{4})",
        rf"{_WORD}[-\s/](?:de )?(?P<y>\d{{4}})",
        rf"{_WORD}-(?P<y>\d{{2}})",
        r"(?P<y>(?:19|20)\d{2})(?P<m>\d{2})(?P<d>\d{2})(?:T(?P<hour>\d{2})(?P<minute>\d{2})(?P<second>\d{2})(?P<zone>Z)?)?",
    )
]


NO_VALUE = ("-", "--", "–", "—", "#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!")  # for missing numbers


class WrittenNumber(NamedTuple):
    """A cell that is written as a number, before it is known what its points and commas mean."""

    body: str  # digits, points, commas, blanks, apostrophes
    factor: float  # of sign, exponent, and "k" or "M"
    unit: str  # as written
    about: str  # "<" of "<5", "~" of "~10"


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


@dataclass(frozen=True)
class NumberFormat:
    """Numbers as they are written in a column: ``1.099,10 €`` has a decimal comma, points between thousands, a unit."""

    decimal: str = "."
    thousands: str = ""  # "" where thousands are not separated
    unit: str = ""  # as written: "€", "kg", "%"; "h" also where the cells are times of day

    def show(self, value: float) -> str:
        """Return a number with its unit, for people: ``1,234.5 €``."""
        digits = f"{value:,.10g}"
        if not self.unit:
            return digits
        return f"{digits}%" if self.unit == "%" else f"{digits} {self.unit}"

    @property
    def sample(self) -> str:
        """A cell of this format."""
        return f"1{self.thousands}234{self.decimal}5{self.unit and f' {self.unit}'}"

    def parse(self, text: str) -> float:
        """Return the number that a cell of this format spells, or NaN."""
        if self.unit == "h" and (hours := clock_hours(text)) is not None:
            return hours
        written = written_number(text)
        if written is None or (written.unit and unit_name(written.unit) != unit_name(self.unit)):
            return math.nan
        return self.value(written)

    def value(self, written: WrittenNumber) -> float:
        """Return the number under this format's decimal sign, or NaN where the cell does not follow it."""
        whole, sign, part = written.body.partition(self.decimal)
        thousands = self.thousands
        if not thousands and (sign or self.decimal == "," or unit_name(self.unit) in POINT_MONEY):
            thousands = "," if self.decimal == "." else "."  # it can separate nothing else, also if training saw none
        if (sign and not part.isdigit()) or not is_grouped(whole or "0", thousands):
            return math.nan
        number = float(f"{''.join(filter(str.isdigit, whole)) or 0}.{part or 0}") * written.factor
        return number if math.isfinite(number) else math.nan


@dataclass(frozen=True)
class DateFormat:
    """Dates, as days since 1970-01-01 in UTC."""

    order: Order = "ymd"
    has_time: bool = False

    def show(self, value: float) -> str:
        """Return a number of days as a date, with the time where the column has times: ``2024-03-04 13:05``. What is
        smaller than a day, or a second, is cut off."""
        if not _FIRST_DAY <= value <= _LAST_DAY:
            return f"{value:g} days"
        moment = _EPOCH + timedelta(days=value)
        if not self.has_time:
            return moment.date().isoformat()
        return moment.isoformat(" ", "seconds" if moment.second else "minutes")

    @property
    def sample(self) -> str:
        """A cell of this format."""
        return {"ymd": "2024-12-31", "dmy": "31/12/2024", "mdy": "12/31/2024"}[self.order]

    def parse(self, text: str) -> float:
        """Return the day that a cell of this format spells, or NaN."""
        written = written_date(text)
        return math.nan if written is None else self.value(written)

    def value(self, written: WrittenDate) -> float:
        """Return the day under this format's order, or NaN where there is no such day."""
        year, month, day = written.year, written.first, written.second
        # With points the day is first, also in a column whose other dates have slashes and the month first.
        if written.separator and (self.order == "dmy" or (self.order == "mdy" and written.separator == ".")):
            month, day = day, month
        elif written.separator and self.order == "ymd":
            if not written.is_short:  # 03/04/2024
                return math.nan
            year, month, day = written.first, written.second, written.year
        if written.is_short:
            year += 2000 if year < _TWO_DIGIT_YEARS else 1900
        try:
            days = date(year, month, day).toordinal() - _EPOCH.toordinal()
        except ValueError:
            return math.nan
        return days + ((written.hours or 0.0) - (written.zone or 0.0)) / 24


@dataclass(frozen=True)
class EmptyFormat:
    """A column without cells: nothing is known of how they are written."""

    def show(self, value: float) -> str:
        """Return the number."""
        return f"{value:g}"

    def parse(self, text: str) -> float:
        """Return NaN: training learned nothing from the column, so that its cells are of no account."""
        return math.nan


Format = NumberFormat | DateFormat | EmptyFormat


_KINDS: dict[str, type[Format]] = {"number": NumberFormat, "date": DateFormat, "empty": EmptyFormat}


def format_to_json(form: Format | None) -> dict[str, Any] | None:
    """Return a format as plain JSON, for a model file."""
    if form is None:
        return None
    return {"kind": next(kind for kind, known in _KINDS.items() if isinstance(form, known)), **asdict(form)}


def format_from_json(record: Any) -> Format | None:
    """Return the format that `format_to_json` wrote; raise `ValueError` if it wrote nothing of the kind."""
    if record is None:
        return None
    given = dict(record) if isinstance(record, dict) else {}
    kind = given.pop("kind", None)
    form: Any = _KINDS.get(kind) if isinstance(kind, str) else None
    usual = {} if form is None else asdict(form())
    if (
        form is None
        or not given.keys() <= usual.keys()
        or any(type(value) is not type(usual[name]) for name, value in given.items())
        or given.get("order", "ymd") not in get_args(Order)
        or given.get("decimal", ".") not in (".", ",")
        or given.get("thousands", "") not in ("", ".", ",", " ", "'")
        or given.get("decimal", ".") == given.get("thousands", "")
        or not given.get("unit", "").isprintable()
    ):
        raise ValueError(f"{record!r} is not the format of a column")
    found: Format = form(**given)
    return found


def plain_text(text: str) -> str:
    """Return a cell with blanks, minus signs and apostrophes of ASCII."""
    return text.translate(_PLAIN).strip()


def unit_name(unit: str) -> str:
    """Return the name by which a unit is compared: that of € and EUR is the same."""
    folded = unit.casefold()
    return _CURRENCIES.get(folded, folded.rstrip("."))


def is_known_unit(unit: str) -> bool:
    """Return whether this is a currency or a usual unit of measure."""
    folded = unit.casefold()
    return folded in _CURRENCIES or _UNIT.fullmatch(folded.rstrip(".")) is not None


def written_number(text: str) -> WrittenNumber | None:
    """Return a cell as a number, or None where it is something else."""
    match = _NUMBER.fullmatch(plain_text(text))
    if match is None:
        return None
    before, after = match["before"] or "", (match["after"] or "").strip()
    if before.casefold() not in _CURRENCIES and before:
        return None
    if (before and after) or bool(match["open"]) != bool(match["close"]):
        return None
    signs = [mark.strip() for mark in (match["sign"], match["inner"], match["trail"]) if mark]
    if len(signs) > 1:
        return None
    factor = -1.0 if "-" in signs or match["open"] else 1.0
    factor *= float(f"1{match['power']}") if match["power"] else _SCALES.get((match["scale"] or "").lower(), 1.0)
    return WrittenNumber(match["body"], factor, before or after, (match["about"] or "").strip())


def is_grouped(whole: str, separator: str) -> bool:
    """Return whether digits are separated as thousands are: 1,234,567, or 12,34,567 as in India."""
    if whole.isdigit():
        return True
    if " " in whole or "'" in whole:
        separator = " " if " " in whole else "'"
    groups = whole.split(separator) if separator else [whole]
    if not all(map(str.isdigit, groups)) or len(groups[-1]) != 3 or len(groups[0]) > 3:
        return False
    return all(len(group) == 3 for group in groups[1:]) or (
        separator == "," and len(groups[0]) <= 2 and all(len(group) == 2 for group in groups[1:-1])
    )


def clock_hours(text: str) -> float | None:
    """Return the hours of a time of day such as 13:45, or None."""
    match = _CLOCK.fullmatch(plain_text(text))
    if match is None or int(match[2]) > 59:
        return None
    hours = _hour(int(match[1]), match[4]) + int(match[2]) / 60 + float(match[3] or 0) / 3600
    return hours if hours <= 24 else None


def _hour(hour: int, half: str | None) -> int:
    return hour if not half else hour % 12 + (12 if half.lower() == "p" else 0)


def written_date(text: str) -> WrittenDate | None:
    """Return a cell as a date, or None where it is something else."""
    plain = plain_text(text)
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
    name = "".join(letter for letter in unicodedata.normalize("NFD", word.casefold()) if letter.isalpha())
    if name in _MONTHS:
        return _MONTHS[name]
    found = {number for full, number in _MONTHS.items() if full.startswith(name)}
    return found.pop() if len(found) == 1 else None
