# SPDX-License-Identifier: Apache-2.0
"""Is a report one whole HTML page with a mark for every number of its JSON?

page.py REPORT.html REPORT.json     exits with a sentence if not
page.py --wanted REPORT.json        prints how many marks of each class there must be, as JSON

With the standard library alone; tests/report/chromium.py counts the same marks in a browser."""
import html.parser
import json
import re
import sys
import xml.etree.ElementTree

VOID = {"meta", "br", "link", "img", "input", "hr"}
LARGEST = 3_000_000


def numbers(metadata, key):
    count = len(metadata.get(key, "").split())
    return count if count > 1 else 0


def wanted(report):
    """Marks by class."""
    model, view, weights = report["model"], report["view"], report["weights"]
    metadata = model["metadata"]
    held = "refine_score_log" if numbers(metadata, "refine_score_log") else "auto_refine_log"
    tried = [t for t in metadata.get("auto_tried", "").split("; ") if ":" in t]
    classes = len(report.get("zero_shot", {}).get("names", []))
    cells = len(weights["x"]) * len(weights["y"])
    return {
        "bar": 6,
        "whisker": 6 if "ci" in report["x_to_y"] else 0,
        "chance": 6,
        "rank-bar": sum(len(report["ranks"][d]) for d in ("x_to_y", "y_to_x")),
        "spectrum-point": min(len(model["spectrum"]), 600),
        "curve-point": sum(numbers(metadata, k) for k in ("loss_log", "score_log", "refine_loss_log", held)),
        "trial": min(len(tried), 14),
        "point": len(view["points"]),
        "pair-line": len(view["lines"]),
        "cell": 2 * cells,
        "pair": 2 * len(weights["pairs"]),
        "confusion-cell": classes * classes if classes <= 40 else 0,
        "hard": sum(len(report["hardest"][d]) for d in ("x_to_y", "y_to_x")),
        "hub": sum(len(report["balance"][d]["hubs"]) for d in ("x_to_y", "y_to_x")) if "balance" in report else 0,
        "before": 7 if report.get("balance", {}).get("how", "off") != "off" else 0,  # 6 bars and a key
        "suspect": len(report["suspects"]["rows"]),
    }


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.count, self.ids, self.links, self.titles, self.inside = [], {}, set(), [], 0, ""

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag == "script":  # the report itself, which no browser runs
            assert named == {"type": "application/json", "id": "report"}, f"<script {named}>"
        assert tag not in ("link", "img", "iframe", "object", "embed"), f"<{tag}> in the page"
        for name, value in attributes:
            assert not name.startswith("on"), f"{name} on <{tag}>"
            assert name not in ("src", "xlink:href"), f"{name} on <{tag}>"
        if "href" in named:
            assert named["href"].startswith("#"), named["href"]
            self.links.append(named["href"][1:])
        if tag == "svg" and "mark" not in named["class"]:
            assert named.get("role") == "img" and named.get("aria-label"), "a chart without a name"
        for word in (named.get("class") or "").split():
            self.count[word] = self.count.get(word, 0) + 1
        if "id" in named:
            assert named["id"] not in self.ids, named["id"]
            self.ids.add(named["id"])
        self.titles += tag == "title"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.inside += data

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes <{self.open[-1:]}>"
        self.open.pop()


def check(text, report):
    assert len(text.encode()) < LARGEST, f"{len(text)} characters"
    assert "http://" not in text and "https://" not in text and "url(" not in text
    assert "nan" not in re.sub(r"<title>.*?</title>|<t[dh].*?</t[dh]>|<script.*?</script>", "", text.lower().split("</style>")[1])
    page = Page()
    page.feed(text)
    page.close()
    assert not page.open, page.open
    assert json.loads(page.inside) == report, "the page holds another report"
    assert set(page.links) <= page.ids, f"links to nowhere: {set(page.links) - page.ids}"
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        xml.etree.ElementTree.fromstring(svg)
    for name, count in wanted(report).items():
        assert page.count.get(name, 0) == count, f"{page.count.get(name, 0)} of .{name}, not {count}"
    assert page.titles >= sum(page.count.get(c, 0) for c in ("bar", "point", "cell", "spectrum-point"))


if __name__ == "__main__":
    if sys.argv[1] == "--wanted":
        print(json.dumps(wanted(json.load(open(sys.argv[2])))))
    else:
        check(open(sys.argv[1], encoding="utf-8").read(), json.load(open(sys.argv[2])))
