# SPDX-License-Identifier: Apache-2.0
"""Uses a report that is open in Chromium as a reader does: points at rows, clicks them and their neighbours, searches,
filters, zooms and moves; with a finger where there is no mouse. What the page shows must be what its JSON says."""
import json
import time

BANDS = (lambda r: r == 1, lambda r: 2 <= r <= 5, lambda r: 6 <= r <= 10, lambda r: r > 10, lambda r: r < 1)


def soon(check):
    """What is checked may come a moment after the event that causes it: a click after a tap, on a busy machine."""
    end = time.monotonic() + 10
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def place(browser, script):
    """The middle of an element, scrolled into sight."""
    return json.loads(browser.value(
        "(() => { const e = %s; e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect();"
        " return JSON.stringify([b.left + b.width / 2, b.top + b.height / 2]); })()" % script))


def mouse(browser, kind, x, y, **more):
    browser.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)


def click(browser, script):
    x, y = place(browser, script)
    mouse(browser, "mouseMoved", x, y)
    mouse(browser, "mousePressed", x, y, button="left", clickCount=1)
    mouse(browser, "mouseReleased", x, y, button="left", clickCount=1)


def tap(browser, script):
    x, y = place(browser, script)
    browser.ask("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
    browser.ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])


def key(browser, name):
    for kind in ("keyDown", "keyUp"):
        browser.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                    windowsVirtualKeyCode={"Enter": 13, "Escape": 27}.get(name, 0), text="\r" if name == "Enter" else "")


def shown(browser):
    """The headline of the panel, and its lists of neighbours."""
    return json.loads(browser.value(
        "JSON.stringify([document.querySelector('.panel h3').lastChild.textContent,"
        " [...document.querySelectorAll('.panel .listed')].map(l => [...l.querySelectorAll('.chip')].map(c => c.dataset.key))])"))


def lonely(browser, report):
    """The number of a point that no other covers."""
    points = report["view"]["points"]

    def room(k):
        return min([(points[k]["at_x"] - o["at_x"]) ** 2 + (points[k]["at_y"] - o["at_y"]) ** 2
                    for n, o in enumerate(points) if n != k] or [0])
    return max(range(len(points)), key=room)


def visible(browser):
    return browser.value("[...document.querySelectorAll('svg.plane')].map(s => s.querySelectorAll('.point:not(.off)').length)[0]")


def pick(browser, name, value):
    browser.value(f"(() => {{ const s = document.getElementById('pick-{name}'); s.value = {json.dumps(str(value))};"
                  " s.dispatchEvent(new Event('change')); })()")


def choose(browser, report, press):
    """A point shows its card; a neighbour leads on; what belongs to it is joined to it."""
    k = lonely(browser, report)
    point = report["view"]["points"][k]
    cards = {side + str(card["number"]): card for side in "xy" for card in report["cards"][side]}
    card, far = cards[f"{point['side']}{point['number']}"], "y" if point["side"] == "x" else "x"
    press(browser, f"document.querySelectorAll('svg.plane')[0].querySelectorAll('.point')[{k}]")

    def opened(wanted):
        name, lists = shown(browser)
        assert name == str(wanted), f"a click on {wanted!r} shows {name!r}"
        return lists
    lists = soon(lambda: opened(card["name"]))
    assert lists[0] == [far + str(e[0]) for e in card["near"]], (lists, card["near"])
    assert lists[1] == [far + str(e[0]) for e in card["pairs"]], (lists, card["pairs"])
    there = {p["side"] + str(p["number"]) for p in report["view"]["points"]}
    joined = sum(far + str(e[0]) in there and not e[2] for e in card["near"])
    joined += sum(far + str(e[0]) in there for e in card["pairs"])
    drawn = browser.value("document.querySelector('svg.plane .overlay').querySelectorAll('line').length")
    assert drawn == joined, f"{drawn} lines to neighbours, not {joined}"
    press(browser, "document.querySelector('.panel .listed .chip')")
    soon(lambda: opened(cards[lists[0][0]]["name"]))
    return 2


def hover(browser, report):
    k = lonely(browser, report)
    x, y = place(browser, f"document.querySelectorAll('svg.plane')[0].querySelectorAll('.point')[{k}]")
    mouse(browser, "mouseMoved", x - 1, y)
    mouse(browser, "mouseMoved", x, y)
    point = report["view"]["points"][k]

    def tipped():
        tip = browser.value("document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').dataset.key")
        assert tip == point["side"] + str(point["number"]), tip
    soon(tipped)
    return 1


def find(browser, report):
    """An id typed, Enter: its card. What is not there is said."""
    card = report["cards"]["y"][-1]
    browser.value("document.getElementById('find').focus()")
    browser.ask("Input.insertText", text=f"y{card['number']}")
    count = browser.value("document.querySelectorAll('.found .chip').length")
    assert 1 <= count <= 8, count
    hits = browser.value("document.querySelectorAll('svg.plane')[0].querySelectorAll('.point.hit').length")
    word = f"y{card['number']}"
    rows = {(side, c["number"]): c for side in "xy" for c in report["cards"][side]}
    wanted = [p for p in report["view"]["points"] if word == p["side"] + str(p["number"]) or word in str(p["name"]).lower()
              or word in rows[p["side"], p["number"]].get("text", "").lower()]
    assert hits == len(wanted), f"{hits} points are marked as found, not {len(wanted)}"
    key(browser, "Enter")

    def opened():
        assert shown(browser)[0] == str(card["name"]), "the row that was searched for is not shown"
    soon(opened)
    key(browser, "Escape")
    browser.ask("Input.insertText", text="no such row \u2603")
    assert browser.value("document.querySelectorAll('.found .chip').length") == 0
    assert "no row" in browser.value("document.querySelector('.found').textContent")
    key(browser, "Escape")
    assert browser.value("document.querySelectorAll('.point.hit').length") == 0, "marks stay behind a search"
    return 4


def filters(browser, report):
    points, done = report["view"]["points"], 0
    for side in "xy":
        pick(browser, "side", side)
        assert visible(browser) == sum(p["side"] == side for p in points), side
        done += 1
    pick(browser, "side", "")
    for number, band in enumerate(BANDS):
        pick(browser, "band", number)
        assert visible(browser) == sum(band(p["rank"]) for p in points), number
        done += 1
    pick(browser, "band", "")
    if report["view"].get("labels"):
        pick(browser, "label", 1)
        wanted = sum(p["label"] == 1 for p in points)
        assert visible(browser) == wanted
        assert f"{wanted} of {len(points)}" in browser.value("document.querySelector('.shown').textContent")
        worst = max(p["rank"] for p in points if p["label"] == 1)
        browser.value("document.querySelector('.close') && document.querySelector('.close').click()")
        first = browser.value("document.querySelector('.panel .chip .badge').textContent")
        assert first == f"rank {worst}", f"the worst of a class has {first}, not {worst}"
        pick(browser, "colour", "rank")
        ranks = browser.value("document.querySelectorAll('svg.plane')[0].querySelectorAll('.point.r0').length")
        assert ranks == sum(p["rank"] == 1 for p in points), ranks
        pick(browser, "colour", "label")
        done += 2
    if browser.value("!document.querySelector('.plain').hidden"):
        click(browser, "document.querySelector('.plain')")

    def all_shown():
        assert visible(browser) == len(points), "Show all does not"
    soon(all_shown)
    return done + 1


def box(browser):
    return [float(v) for v in browser.value("document.querySelector('svg.plane').getAttribute('viewBox')").split()]


def changed(browser, before, check, words):
    """The frame of the picture once it is as it should be."""
    def look():
        now = box(browser)
        assert check(now), f"{words}: {before} has become {now}"
        return now
    return soon(look)


def zoom(browser, report):
    whole = box(browser)
    x, y = place(browser, "document.querySelector('svg.plane')")
    mouse(browser, "mouseWheel", x, y, deltaX=0, deltaY=0.5)
    assert box(browser) == whole, "the wheel zooms a picture that was not clicked"
    browser.value("document.querySelector('svg.plane').focus()")
    mouse(browser, "mouseWheel", x, y, deltaX=0, deltaY=-240)
    near = changed(browser, whole, lambda b: b[2] < whole[2] and b[3] < whole[3], "the wheel")
    mouse(browser, "mousePressed", x, y, button="left", clickCount=1)
    for step in range(1, 6):
        mouse(browser, "mouseMoved", x + 8 * step, y, button="left", buttons=1)
    mouse(browser, "mouseReleased", x + 40, y, button="left", clickCount=1)
    moved = changed(browser, near, lambda b: b[0] < near[0] and abs(b[2] - near[2]) < 1e-6, "a drag")
    click(browser, "document.querySelectorAll('.zoom button')[0]")
    changed(browser, moved, lambda b: b[2] < moved[2], "the button +")
    click(browser, "document.querySelectorAll('.zoom button')[2]")
    changed(browser, moved, lambda b: b == whole, "the button that shows all")
    return 4


def pinch(browser, report):
    """Two fingers that part bring the picture closer; one that drags it then moves it, and the page stays."""
    whole = box(browser)
    x, y = place(browser, "document.querySelector('svg.plane')")

    def touch(kind, *points):
        browser.ask("Input.dispatchTouchEvent", type=kind,
                    touchPoints=[{"x": a, "y": b, "id": k} for k, (a, b) in enumerate(points)])
    touch("touchStart", (x - 20, y))
    touch("touchStart", (x - 20, y), (x + 20, y))
    for step in range(1, 7):
        touch("touchMove", (x - 20 - 10 * step, y - 6 * step), (x + 20 + 10 * step, y + 6 * step))
    touch("touchEnd")
    near = changed(browser, whole, lambda b: b[2] < 0.6 * whole[2], "two fingers")
    scrolled = browser.value("scrollY")
    touch("touchStart", (x, y))
    for step in range(1, 7):
        touch("touchMove", (x + 4 * step, y + 10 * step))
    touch("touchEnd")
    changed(browser, near, lambda b: b[1] < near[1] and abs(b[2] - near[2]) < 1e-6, "a swipe")
    assert browser.value("scrollY") == scrolled, "the page moved with the picture"
    time.sleep(0.5)  # a tap right behind a swipe only ends the swipe
    tap(browser, "document.querySelectorAll('.zoom button')[2]")
    changed(browser, near, lambda b: b == whole, "the button that shows all")
    return 3


def tables(browser, report, press):
    """Ids in the tables lead to their cards, the worst class to its rows."""
    rows = browser.value("document.querySelectorAll('button.row').length")
    assert rows >= browser.value("document.querySelectorAll('.suspect').length") * 2, rows
    if report["suspects"]["rows"]:
        press(browser, "document.querySelector('.suspect button.row')")

        def opened():
            assert shown(browser)[0] == str(report["suspects"]["rows"][0]["x"]), shown(browser)[0]
        soon(opened)
    if len(report.get("by_class", {"rows": []})["rows"]) > 1:
        worst = report["by_class"]["rows"][0]
        press(browser, "document.querySelector('.look a[data-class]')")

        def alone():
            assert visible(browser) == sum(p["label"] == worst["label"] for p in report["view"]["points"])
        soon(alone)
        cramped = browser.value("[...document.querySelectorAll('.tools button')].filter(e => e.scrollHeight > e.clientHeight + 1).length")
        assert cramped == 0, "a button beside the filters is too small for its words"
        back_to_all(browser, report, worst["label"], press)
    return 3


def back_to_all(browser, report, label, press):
    """A table leads to a row that the filter hides: all rows are back, and the row is seen above its card."""
    points = {p["side"] + str(p["number"]): p for p in report["view"]["points"]}
    keys = [f"{side}{row[side + '_number']}" if side + "_number" in row else f"{side}{row[side]}"
            for row in report["suspects"]["rows"] for side in "xy"]
    hidden = [k for k, key in enumerate(keys) if key in points and points[key]["label"] != label]
    if not hidden:
        return
    press(browser, f"document.querySelectorAll('.suspect button.row')[{hidden[0]}]")

    def seen():
        assert visible(browser) == len(points), "a row that a table leads to is hidden by a filter"
        top, bottom, edge = json.loads(browser.value(
            "(() => { const a = document.querySelector('svg.plane .ring.self').getBoundingClientRect(),"
            " p = document.querySelector('.panel'), b = p.getBoundingClientRect();"
            " return JSON.stringify([a.top, a.bottom, getComputedStyle(p).position === 'fixed' ? b.top : innerHeight]); })()"))
        assert 0 <= top and bottom <= edge, f"the row lies at {top:.0f} to {bottom:.0f}, seen is 0 to {edge:.0f}"
    soon(seen)


def harmless(browser, report):
    """Nothing that came with the data has become an element."""
    inside = json.loads(browser.value(
        "JSON.stringify([document.scripts.length, document.querySelectorAll('iframe, object, embed, link, form').length,"
        " [...document.images].filter(i => !i.src.startsWith('data:image/')).length,"
        " [...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length,"
        " [...document.links].filter(a => !/^(#|\\.\\.?\\/)/.test(a.getAttribute('href'))).length])"))
    assert inside == [2, 0, 0, 0, 0], inside
    return 1


def explore(browser, report, fingers=False):
    """How many things were done."""
    if not report.get("cards"):
        return 0
    press = tap if fingers else click
    if fingers:
        browser.ask("Emulation.setTouchEmulationEnabled", enabled=True)
    done = choose(browser, report, press)
    done += pinch(browser, report) if fingers else hover(browser, report) + zoom(browser, report)
    done += find(browser, report) + filters(browser, report) + tables(browser, report, press)
    done += harmless(browser, report)
    if fingers:
        browser.ask("Emulation.setTouchEmulationEnabled", enabled=False)
    return done
