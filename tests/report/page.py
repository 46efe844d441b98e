# SPDX-License-Identifier: Apache-2.0
"""Is a report one whole HTML page with a mark for every number of its JSON?

page.py REPORT.html REPORT.json     exits with a sentence if not
page.py --wanted REPORT.json        prints how many marks of each class there must be, as JSON

With the standard library alone; tests/report/chromium.py counts the same marks in a browser."""
import base64
import hashlib
import html.parser
import json
import re
import sys
import xml.etree.ElementTree

VOID = {"meta", "br", "link", "img", "input", "hr"}
LARGEST = 4_000_000  # without the images inside
LINK = re.compile(r"\.{1,2}/[A-Za-z0-9/._~+,=@%-]*")


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
    shows_classes = 0 < classes <= 40
    beside, by_class = report.get("beside"), report.get("by_class", {"rows": []})["rows"]
    views = [view] + ([beside["view"]] if beside else [])
    balanced = report.get("balance", {}).get("how", "off") != "off"
    return {
        "bar": 6,
        "whisker": 6 if "ci" in report["x_to_y"] else 0,
        "chance": 6,
        "rank-bar": sum(len(report["ranks"][d]) for d in ("x_to_y", "y_to_x")),
        "spectrum-point": min(len(model["spectrum"]), 600),
        "curve-point": sum(numbers(metadata, k) for k in ("loss_log", "score_log", "refine_loss_log", held)),
        "trial": min(len(tried), 14),
        "point": sum(len(v["points"]) for v in views),
        "pair-line": sum(len(v["lines"]) for v in views),
        "cell": 2 * cells,
        "pair": 2 * len(weights["pairs"]),
        "scale-step": 80 + (80 if shows_classes else 0),
        "confusion-cell": classes * classes if shows_classes else 0,
        "class-row": len(by_class),
        "look": sum(map(bool, (len(by_class) > 1, "balance" in report, report["suspects"]["rows"],
                               report["hardest"]["x_to_y"]))),
        "versus": 6 if beside else 0,
        "crossing-cell": 32 if beside else 0,
        "moved": sum(len(beside["differ"][d]["moved"]) for d in ("x_to_y", "y_to_x")) if beside else 0,
        "hard": sum(len(report["hardest"][d]) for d in ("x_to_y", "y_to_x")),
        "hub": sum(len(report["balance"][d]["hubs"]) for d in ("x_to_y", "y_to_x")) if "balance" in report else 0,
        "before": 7 if balanced else 0,  # 6 bars and a key
        "change-before": 8 if balanced else 0,
        "change-after": 8 if balanced else 0,
        "suspect": len(report["suspects"]["rows"]),
    }


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.count, self.ids, self.links, self.titles = [], {}, set(), [], 0
        self.scripts, self.policy = [], ""

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag == "script":
            self.scripts.append([named, ""])
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"]
        assert tag not in ("link", "img", "iframe", "object", "embed"), f"<{tag}> in the page"
        for name, value in attributes:
            assert not name.startswith("on"), f"{name} on <{tag}>"
            assert name not in ("src", "xlink:href"), f"{name} on <{tag}>"
        if "href" in named:
            assert named["href"].startswith("#"), named["href"]
            self.links.append(named["href"][1:])
        if tag == "svg" and named.get("aria-hidden") != "true":
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
            self.scripts[-1][1] += data

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes <{self.open[-1:]}>"
        self.open.pop()


def check_scripts(page, report):
    """The report, which no browser runs, and one script, the only one that the page's policy lets run."""
    assert len(page.scripts) == 2, f"{len(page.scripts)} scripts"
    (first, inside), (second, script) = page.scripts
    assert first == {"type": "application/json", "id": "report"} and second == {}, (first, second)
    assert json.loads(inside) == report, "the page holds another report"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert page.policy == ("default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
                           f"script-src 'sha256-{digest}'"), page.policy
    for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "fetch(", "import("):
        assert word not in script, f"the script has {word}"


def check_cards(report):
    """Everything that is named has a card, and cards name only what has one."""
    cards = report.get("cards")
    if not cards:
        return
    numbers = {side: [card["number"] for card in cards[side]] for side in "xy"}
    for side, other in ("xy", "yx"):
        assert len(set(numbers[side])) == len(numbers[side]), f"two cards of one row of {side}"
        for card in cards[side]:
            listed = card.get("near", []) + card.get("pairs", []) + card.get("beside_near", [])
            assert {entry[0] for entry in listed} <= set(numbers[other]), card
            scores = [entry[1] for entry in card.get("near", [])]
            assert scores == sorted(scores, reverse=True), card
            media = card.get("media", "./")
            assert media.startswith("data:image/") or LINK.fullmatch(media), media
    whole = {side: {c["number"]: c for c in cards[side]} for side in "xy"}
    for point in report["view"]["points"]:
        card = whole[point["side"]][point["number"]]
        assert "near" in card and card["rank"] == point["rank"] and card["name"] == point["name"], point
        if point["rank"] == 1:
            assert card["near"][0][2] == 1, card


def check(text, report):
    images = sum(map(len, re.findall(r"data:image/[a-z]*;base64,[A-Za-z0-9+/=]*", text)))
    assert images < 9_000_000 and len(text.encode()) - images < LARGEST, f"{len(text)} characters"
    assert "http://" not in text and "https://" not in text and "url(" not in text
    assert "nan" not in re.sub(r"<title>.*?</title>|<t[dh].*?</t[dh]>|<script.*?</script>", "", text.lower().split("</style>")[1])
    page = Page()
    page.feed(text)
    page.close()
    assert not page.open, page.open
    check_scripts(page, report)
    check_cards(report)
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
