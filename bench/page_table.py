"""Tables that scripts of bench write into documents, between two lines."""
import sys


def renew(page, begin, end, table, check, again):
    """Writes `table` between the lines `begin` and `end` of the document `page`.

    With `check` it is compared with the one that stands there, and a difference ends the script; `again` is the
    command that would write it."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    old, after = rest.split(end)
    if not check:
        page.write_text(f"{before}{begin}\n{table}\n{end}{after}", encoding="utf-8")
    elif table.strip() != old.strip():
        sys.exit(f"{page.parent.name}/{page.name} has another table; run {again}\n{table}")
