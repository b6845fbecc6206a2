"""Words of many languages: names of months, marks of missing cells, names of totals and balances, and patterns for
names of columns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

_CACHED = 1 << 13  # names of columns, which are asked about more than once


def without_accents(text: str) -> str:
    """Return a text without accents."""
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))


def bare(word: str) -> str:
    """Return the letters of a word in lower case, without accents."""
    return "".join(letter for letter in unicodedata.normalize("NFD", word.casefold()) if letter.isalpha())


_MONTHS = """
january januar janvier enero gennaio januari janeiro stycznia styczen sty tammikuu ledna leden ianuarie ocak
    января январь ιανουαρίου gener jänner sijecanj sijecnja січня січень januarie jaanuar janvaris sausis
february februar fevrier febrero febbraio februari fevereiro lutego luty lut helmikuu února únor február
    februarie şubat февраля февраль φεβρουαρίου feber febrer veljaca veljace лютого лютий veebruar februaris
    vasaris
march mar marz marts mars marzo maart marco marca marzec maaliskuu mrz mrt března březen március martie mart
    марта март μαρτίου març ozujak ozujka березня березень maret märts kovas marec
april avril abril aprile kwietnia kwiecien kwi huhtikuu avr abr dubna duben április aprilie nisan апреля
    απριλίου travanj travnja квітня квітень aprill balandis
may mai mayo maggio mei maj maio maja toukokuu mag května květen május mayıs мая май μαΐου maig svibanj svibnja
    травня травень maijs geguze
june juni juin junio giugno junho czerwca czerwiec cze kesakuu giu června červen június iunie haziran июня июнь
    ιουνίου juny lipanj lipnja червня червень juuni junijs birzelis jun
july juli juillet julio luglio julho lipca lipiec lip heinakuu lug července červenec július iulie temmuz июля
    июль ιουλίου juliol srpanj srpnja липня липень juuli julijs liepa jul
august aout agosto augustus augusti sierpnia sierpien sie elokuu srpna srpen augusztus ağustos августа август
    αυγούστου agost kolovoz kolovoza серпня серпень agustus augusts rugpjutis avgust
september septembre septiembre settembre setembro wrzesnia wrzesien wrz syyskuu sept set září szeptember
    septembrie eylül сентября сентябрь σεπτεμβρίου setembre rujan rujna вересня вересень septembris rugsejis
october oktober octobre octubre ottobre outubro pazdziernika pazdziernik paz lokakuu okt out ott října říjen
    október octombrie ekim октября октябрь οκτωβρίου жовтня жовтень oktoober oktobris spalis
november novembre noviembre novembro listopada listopad lis marraskuu listopadu noiembrie kasım ноября ноябрь
    νοεμβρίου studeni studenoga листопада листопад novembris lapkritis
december dezember decembre diciembre dicembre desember dezembro grudnia grudzien gru joulukuu des prosince
    prosinec decembrie aralık ara декабря декабрь δεκεμβρίου desembre prosinac prosinca грудня грудень detsember
    decembris gruodis
"""
MONTHS = {
    bare(word): number
    for number, line in enumerate(re.split(r"\n(?! )", _MONTHS.strip()), start=1)
    for word in line.split()
}


def _listed(words: str) -> frozenset[str]:
    return frozenset(word.strip() for word in words.replace("\n", ",").split(",") if word.strip())


# Among words, too; without blanks.
NO_ANSWER = _listed("n.a., k.a., n.d., n.v.t., n.b., s.d., b.d., n/b, n/a, n/d, s/d, н/д")
# For a missing number or date; among words, these may be classes.
UNKNOWN = NO_ANSWER | _listed("""
nd, tbd, unknown, missing, not known, not available, not measured, not determined, not tested, no data, not applicable
unbekannt, keine angabe, nicht gemessen, nicht bestimmt, entfällt, ohne angabe, unbek.
inconnu, inconnue, nc, n.c., non disponible, non mesuré, sans objet, non renseigné
desconocido, sin dato, sin datos, no disponible, no aplica, no consta, s.i., desconhecido, não disponível, não informado
non disponibile, non rilevato, n.r., onbekend, niet bekend, brak, brak danych, b/d, nie dotyczy, saknas, uppgift saknas
ukendt, ikke oplyst, ukjent, ikke oppgitt, puuttuu, ei tietoa, neuvedeno, neznámé, není známo, nincs adat, ismeretlen
necunoscut, yok, bilinmiyor, belirtilmemiş, нет данных, неизвестно, немає даних, άγνωστο
不明, なし, 該当なし, 未定, 无, 未知, 없음
""")

MEANS = r"average|mean|mittelwert|durchschnitt|moyenne|media|promedio|média|średnia|gemiddelde|medel|průměr|átlag|平均"
SUM = (
    r"(?:(?:sub|grand|end|eind)?-?tota(?:l|ls|le|lt|al)|(?:zwischen|gesamt|end)?summe|(?:ins)?gesamt"
    r"|(?:gesamt|teil)?ergebnis|sum|summa|suma|soma|somme|razem|ogółem|celkem|spolu|(?:mind)?összesen|yhteensä|i alt"
    r"|toplam|ukupno|skupaj|kokku|kopā|iš viso|jumlah|tổng cộng|итого|всего|разом|всього|усього|общо|укупно|σύνολο"
    r"|合計|小計|総計|合计|总计|小计|합계|소계|총계|المجموع|الإجمالي|סך הכל|(?:zwischen)?übertrag|carried forward"
    rf"|brought forward|riporto|à reporter|a reporter|suma y sigue|suma anterior|{MEANS})"
)
BALANCE = (
    r"\b(?:(?:opening|closing|beginning|ending|starting|initial|final|previous) balance|balance (?:at|on|as of|"
    r"brought|carried)|(?:\w+ )?\w*saldo|(?:in|ut)gående balans|solde|kontostand|eb-wert|.+bestand"
    r"|bestand (?:am|zum|per|\d+)|.+vortrag|übertrag"
    r"|(?:report )?à nouveau|stav|(?:\w+ )?zůstatek|(?:\w+ )?egyenleg|sold (?:inițial|final)|devir"
    r"|devreden bakiye|остаток на|сальдо"
    r"|(?:входящий|исходящий) остаток|υπόλοιπο)\b|[前次]?[期月年]?繰越|期初余额|期末余额|上期结转|전월이월|이월"
)


def _said(pattern: str) -> Callable[[str], bool]:
    """Return a test of whether a column's name matches a pattern, without regard to case and accents."""
    found = re.compile(f"(?i){without_accents(pattern)}")

    @lru_cache(_CACHED)
    def is_said(name: str) -> bool:
        return found.search(without_accents(name)) is not None

    return is_said


says_date = _said(
    r"date|datum|dato|\bdata\b|fecha|\bday\b|\bdt\b|_dt\b|\bjour\b|\btag\b|日|päivä|ημερομηνία|termin|tarih|дата|날짜|일자"
    r"|tanggal|ngày|تاريخ|תאריך"
)
says_month = _said(r"date|datum|month|monat|mois|\bmes\b|mese|maand|miesiąc|period|月|yyyymm")
says_version = _said(r"(?<![^\W\d_])version|release|firmware|\b(?:chapter|section|kapitel)\b")
says_postcode = _said(
    r"(?<![^\W_])(?:plz|zip|post(?:al)?[ _]?code|postleitzahl|zip[ _]?code|pin[ _]?code|code[ _]postal|psč|"
    r"cod(?:igo|\.)?[ _]postal|codice postale|postnr|postnummer|postkod|postinumero|kod pocztowy|cod poștal|"
    r"poštová|poštna številka|poštanski broj|posta kodu|kode[ _]?pos|irsz|irányítószám|почтовый индекс|"
    r"поштовий індекс)(?![^\W_])"
    r"|^(?:cap|cep)$|郵便番号|邮编|邮政编码|우편번호"
)
PHONE_DIGITS = 6  # of a telephone number at least; smaller numbers may count calls
says_phone = _said(
    r"(?<![^\W_])(?:(?:tele)?phone|\w*telef\w*|telepon|tele?|mobile|handy|fax|puhelin|cellulare|celular|movil)"
    r"(?:[ _.-]?(?:no|nr|number|nummer|numero))?\W*(?:\(.*\))?$|телефон|τηλέφωνο|電話|电话|전화"
)
# A time of day. Under "Time" there may be that of a runner.
says_time = _said(r"(?:date|day)[\W_]?time|uhr|hour|heure|\bh?or[ae]|\bklo|start|end|begin|arriv|depart")
# How long something takes, in no unit.
says_length = _said(
    r"^(?!.*(?:\bh\b|hh|hour|stunde)).*(?:durat|dauer|run ?time|laufzeit|length|pace|durée|duración|duração|elapsed)"
)
