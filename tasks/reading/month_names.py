"""Months as pages of other languages write them in dates: 12. März 2015, 17 марта 2015, 3 de mayo de 2014."""

from __future__ import annotations

_NAMES = (
    "januar januari janvier enero gennaio janeiro января stycznia ocak",
    "februar februari février fevrier febrero febbraio fevereiro февраля lutego şubat",
    "märz maart mars marzo março марта marca mart",
    "april avril abril aprile апреля kwietnia nisan",
    "mai mayo maggio maio mei мая maja mayıs",
    "juni juin junio giugno junho июня czerwca haziran",
    "juli juillet julio luglio julho июля lipca temmuz",
    "august août aout agosto augustus августа sierpnia ağustos",
    "september septembre septiembre settembre setembro сентября września eylül",
    "oktober octobre octubre ottobre outubro октября października ekim",
    "november novembre noviembre novembro ноября listopada kasım",
    "dezember december décembre decembre diciembre dicembre dezembro декабря grudnia aralık",
)
MONTH_OF = {name: month for month, names in enumerate(_NAMES, 1) for name in names.split()}
"""The number of a month by its name in lower case; English ones only where another language has them, too."""

NAMED_DAY = (
    rf"(?<!\d)(?P<d>\d{{1,2}})\.?\s(?:de\s)?(?P<m>{'|'.join(sorted(MONTH_OF, key=len, reverse=True))})\b"
)
"""A pattern of a day and a month's name; to be searched without regard to case."""
