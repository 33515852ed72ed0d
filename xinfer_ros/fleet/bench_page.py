# SPDX-License-Identifier: Apache-2.0
"""The page of a benchmark: HTML in one file, without a script and without anything to load."""

from collections.abc import Sequence
from html import escape

from xinfer_ros.fleet.report_table import ReportTable

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d1d1d; background: #fff;
       max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
code { background: #f1f1ef; padding: 0.15rem 0.35rem; border-radius: 3px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.6rem; text-align: right; border-bottom: 1px solid #ddd; }
td { white-space: nowrap; }
th:first-child, td:first-child, .facts td { text-align: left; }
th { font-weight: 600; vertical-align: bottom; }
.wide { overflow-x: auto; }
.note, figcaption { color: #555; font-size: 0.88rem; }
figure { margin: 1.2rem 0; }
figure svg { max-width: 100%; height: auto; }
""".strip()


def page(
    *,
    title: str,
    command: str,
    facts: Sequence[tuple[str, str]],
    table: ReportTable,
    pictures: Sequence[tuple[str, str]],
) -> str:
    """
    Return the page.

    :param command: that measured it
    :param facts: of the machine, name and value
    :param pictures: SVG element and caption of each, ready for a page
    """
    shown = '\n'.join(
        f'<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>'
        for svg, caption in pictures
    )
    machine = '\n'.join(
        f'<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>' for name, value in facts
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>xinfer bench: {escape(title)}</title>
<style>
{_STYLE}
</style>
</head>
<body>
<h1>Fleet benchmark</h1>
<p>{escape(title)}</p>
<p><code>{escape(command)}</code></p>
<h2>Results</h2>
<div class="wide">{_table(table)}</div>
<p class="note">{escape(table.note)}</p>
<h2>Pictures</h2>
{shown}
<h2>Machine</h2>
<table class="facts">
{machine}
</table>
</body>
</html>
"""


def _table(table: ReportTable) -> str:
    head = ''.join(f'<th>{escape(name)}</th>' for name in table.columns)
    rows = '\n'.join(
        '<tr>' + ''.join(f'<td>{escape(cell)}</td>' for cell in row) + '</tr>'
        for row in table.rows
    )
    return f'<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>'
