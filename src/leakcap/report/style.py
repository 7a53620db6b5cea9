"""The style sheet of all pages. Every rule is scoped to `.leakcap`, so that a notebook around it stays as it is."""

from __future__ import annotations

__all__ = ["KEPT_STYLE", "STYLE"]

# Okabe and Ito's palette (told apart with every kind of colour vision), with darker or lighter twins for text.
_LIGHT = (
    "--paper:#fff;--card:#f5f7f9;--ink:#1f2933;--faint:#566270;--grid:#e4e8ec;--rule:#b9c1c9;--blue:#0072b2;"
    "--sky:#56b4e9;--orange:#d55e00;--orange-ink:#b04a00;--luck:#8793a0;--red:#b3261e;--red-ink:#b3261e;--warn:#ffe08a;--warn-ink:#3b2a00"
)
_DARK = (
    "--paper:#13181e;--card:#1c232b;--ink:#e8ecf0;--faint:#a5b0bc;--grid:#2b343e;--rule:#4a5663;--blue:#5cb5ea;"
    "--sky:#2e86bd;--orange:#f08a4b;--orange-ink:#ff9d63;--luck:#7c8896;--red:#c5362d;--red-ink:#ff8078;--warn:#f2c94c;--warn-ink:#2b1f00"
)

# Every printed sheet of the custodian's page says whose it is.
KEPT_STYLE = '@page{@top-center{content:"CUSTODIAN ONLY";color:#b3261e;font:700 10pt sans-serif}}\n'

STYLE = (
    ".leakcap{"
    + _LIGHT
    + "}\n@media screen and (prefers-color-scheme:dark){.leakcap{"
    + _DARK
    + "}}\n"
    + """
.leakcap{color-scheme:light dark;background:var(--paper);color:var(--ink);
 font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.leakcap *{box-sizing:border-box}
.leakcap.page{margin:0}
.leakcap main,.leakcap .band>div{max-width:1120px;margin:0 auto;padding:0 24px}
.leakcap h1{font-size:28px;line-height:1.2;margin:2px 0 6px;overflow-wrap:anywhere}
.leakcap h2{font-size:21px;line-height:1.25;margin:0 0 8px}
.leakcap h3{font-size:16px;line-height:1.3;margin:0}
.leakcap p{margin:0 0 10px}
.leakcap ul{margin:0;padding-left:20px}
.leakcap li{margin:3px 0;overflow-wrap:anywhere}
.leakcap a{color:var(--blue)}
.leakcap section{padding:26px 0 4px;margin-top:22px;border-top:1px solid var(--grid)}
.leakcap .kicker{color:var(--faint);font-size:14px;margin:0}
.leakcap .lead{font-size:18px;line-height:1.4;margin:0;max-width:62em}
.leakcap .small{color:var(--faint);font-size:14px}
.leakcap header{padding:20px 0 14px}
.leakcap .band{padding:12px 0;font-weight:600;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.leakcap .band.warn{background:var(--warn);color:var(--warn-ink)}
.leakcap .band.kept{background:var(--red);color:#fff}
.leakcap .band strong{font-size:19px;letter-spacing:.02em;margin-right:8px}

.leakcap .screen{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1.12fr);gap:14px}
.leakcap .card{background:var(--card);border-radius:10px;padding:13px 17px}
.leakcap .card h2{font-size:16px;margin:0 0 4px}
.leakcap .card p{margin:0 0 2px;font-size:15px;line-height:1.42}
.leakcap .told{display:grid;gap:14px;align-content:stretch}
.leakcap .wide{grid-column:1/-1}
.leakcap .wide ul{columns:2;column-gap:44px;font-size:15px;line-height:1.4}
.leakcap .wide li{break-inside:avoid;margin:0 0 5px}
.leakcap .compare{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:0 26px}
.leakcap .compare>p{grid-column:1/-1;margin-bottom:6px}
.leakcap .side h2{font-size:14px;letter-spacing:.09em;text-transform:uppercase;color:var(--faint);margin:0}
.leakcap .side .figure{font-size:clamp(26px,2.8vw,36px);line-height:1.15;font-weight:700;margin:0;white-space:nowrap}
.leakcap .side .figure small{font-size:16px;font-weight:600}
.leakcap .after .figure{color:var(--orange-ink)}
.leakcap .side .count{color:var(--faint);font-size:14px;margin:0 0 8px}
.leakcap .dots{display:block;width:100%;max-width:190px;height:auto}
.leakcap .luck{fill:var(--luck)}
.leakcap .gain{fill:var(--orange)}
.leakcap .miss{fill:none;stroke:var(--rule);stroke-width:.9}
.leakcap .compare .key{grid-column:1/-1;margin-top:8px}
.leakcap .key{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:2px 18px;font-size:14px}
.leakcap .key li{display:flex;align-items:center;gap:7px}
.leakcap .mark{flex:none;height:14px;width:auto}

.leakcap table{border-collapse:collapse;width:100%;margin:0 0 10px;font-size:15px;background:none;color:inherit}
.leakcap tbody tr,.leakcap tbody tr:nth-child(odd),.leakcap tbody tr:hover{background:none}
.leakcap th,.leakcap td{padding:6px 10px 6px 0;border:0;border-bottom:1px solid var(--grid);text-align:right;
 vertical-align:baseline;font-variant-numeric:tabular-nums;white-space:nowrap}
.leakcap th:last-child,.leakcap td:last-child{padding-right:0}
.leakcap th:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere}
.leakcap thead th{color:var(--faint);font-size:13.5px;font-weight:600;border-bottom-color:var(--rule);
 white-space:normal}
.leakcap tbody th{font-weight:400}
.leakcap td.strong{font-weight:700}
.leakcap .barred td{vertical-align:middle}
.leakcap .barred td:last-child,.leakcap .barred th:last-child{width:36%;padding-left:20px}
.leakcap .barred thead th:last-child{text-align:center}
.leakcap .bar{display:block;width:100%;height:18px;overflow:visible}
.leakcap .bar .zero{stroke:var(--faint);stroke-width:1}
.leakcap .bar .reach{stroke:var(--blue);stroke-width:4;stroke-linecap:round;opacity:.5}
.leakcap .bar circle{fill:var(--blue)}
.leakcap .narrow{width:auto;min-width:340px}
.leakcap .narrow td,.leakcap .narrow th+th{padding-left:44px}
.leakcap .caps{list-style:none;padding:0;margin:0 0 8px}
.leakcap .caps b{color:var(--blue)}
.leakcap .caps .broken b{color:var(--red-ink)}
.leakcap dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 22px;margin:0 0 10px;font-size:15px}
.leakcap dt{color:var(--faint)}
.leakcap dd{margin:0;overflow-wrap:anywhere}

.leakcap .pictures{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:26px 40px}
.leakcap figure{margin:0;break-inside:avoid}
.leakcap figure p{color:var(--faint);font-size:14px;margin:2px 0 8px}
.leakcap figure .kept{color:var(--red-ink);font-weight:700;font-size:12px;letter-spacing:.06em;margin:6px 0 0}
.leakcap .chart{display:block;width:100%;height:auto;overflow:visible}
.leakcap svg path{stroke-linejoin:round}
.leakcap .chart text{font-size:12.5px;fill:var(--ink)}
.leakcap .chart .tick{font-size:11.5px;fill:var(--faint)}
.leakcap .chart .axis{font-weight:600}
.leakcap .grid{stroke:var(--grid);stroke-width:1;fill:none}
.leakcap .rule{stroke:var(--rule);stroke-width:1;fill:none}
.leakcap .between{fill:var(--sky);opacity:.22}
.leakcap .bound{stroke:var(--blue);stroke-width:2.4;fill:none}
.leakcap .leader{stroke:var(--orange);stroke-width:1.2;fill:none}
.leakcap .before{stroke:var(--ink);stroke-width:1.3;stroke-dasharray:1.5 3.5;fill:none}
.leakcap .cap{stroke:var(--orange);stroke-width:2;fill:none}
.leakcap .bound-point{fill:var(--blue);stroke:var(--paper)}
.leakcap .person{fill:var(--orange);stroke:var(--paper)}
.leakcap .world{fill:var(--blue);opacity:.42}
.leakcap .worlds{fill:var(--blue);opacity:.55}
.leakcap .noise{fill:var(--orange);fill-opacity:.12;stroke:var(--orange);stroke-width:1.4}
.leakcap .pool{stroke:var(--ink);stroke-width:2.4;fill:none}
.leakcap .chart .person-note{fill:var(--orange-ink);font-weight:600}
.leakcap .chart .bound-note{fill:var(--blue);font-weight:600}
.leakcap footer{color:var(--faint);font-size:14px;border-top:1px solid var(--grid);margin-top:22px;padding:14px 0 34px;
 overflow-wrap:anywhere}

.leakcap.fragment{max-width:860px;padding:14px 18px;border:1px solid var(--rule);border-radius:10px;font-size:15px}
.leakcap.fragment .screen{grid-template-columns:minmax(0,1fr)}
.leakcap.fragment .band{margin:-14px -18px 12px;padding:8px 18px;border-radius:10px 10px 0 0}
.leakcap.fragment .band>div{padding:0}
.leakcap.fragment .dots{max-width:130px}
.leakcap.fragment h2{font-size:16px;margin-top:14px}
.leakcap.fragment header{padding:0 0 10px}
.leakcap.fragment header h2{font-size:22px;margin:0}
.leakcap.fragment .lead{font-size:16px}
.leakcap.fragment .card h2,.leakcap.fragment .side h2{margin-top:0}

@media screen and (max-width:1000px){
.leakcap .side .figure small{display:block}
}
@media screen and (max-width:760px){
.leakcap main,.leakcap .band>div{padding:0 16px}
.leakcap h1{font-size:23px}
.leakcap .lead{font-size:16.5px}
.leakcap .screen,.leakcap .pictures{grid-template-columns:minmax(0,1fr)}
.leakcap .wide ul{columns:1}
.leakcap .compare{gap:0 16px}
.leakcap .side .figure{font-size:27px}
.leakcap .side .figure small{font-size:14px}
.leakcap .narrow{min-width:0;width:100%}
.leakcap dl{grid-template-columns:1fr}
.leakcap dd{margin:0 0 6px}
.leakcap .answers thead{display:none}
.leakcap .answers tr{display:block;padding:8px 0;border-bottom:1px solid var(--grid)}
.leakcap .answers th,.leakcap .answers td{display:flex;justify-content:space-between;gap:14px;border:0;padding:1px 0}
.leakcap .answers tbody th{font-weight:600;display:block}
.leakcap .answers td::before{content:attr(data-head);color:var(--faint);white-space:normal;text-align:left}
.leakcap .barred td:last-child{display:block;width:100%;padding:4px 0 2px}
.leakcap .barred td:last-child::before{content:none}
}
@media print{
.leakcap.page{zoom:.8}
.leakcap .side .figure{font-size:27px}
.leakcap .band{padding:12px}
.leakcap main,.leakcap .band>div{max-width:none;padding:0}
.leakcap .card{border:1px solid var(--rule);background:none}
.leakcap .card,.leakcap .narrow,.leakcap figure,.leakcap tr,.leakcap li,.leakcap dl{break-inside:avoid}
.leakcap h2,.leakcap h3{break-after:avoid}
.leakcap section{break-inside:auto}
.leakcap svg{print-color-adjust:exact;-webkit-print-color-adjust:exact}
.leakcap a{color:inherit;text-decoration:none}
}
"""
)
