// SPDX-License-Identifier: Apache-2.0
// Makes the picture of a report one to explore. All it knows is the JSON inside the page, which C has checked
// (report_lookup.c). Ids, texts and labels come from strangers: they are only ever set as textContent.
'use strict';
(() => {
  const report = JSON.parse(document.getElementById('report').textContent);
  const home = document.getElementById('explorer');
  const view = report.view, cards = report.cards;
  if (!home || !view || !cards) return;

  const BANDS = ['rank 1', 'rank 2 to 5', 'rank 6 to 10', 'worse than 10', 'no match'];
  const band = rank => rank < 1 ? 4 : rank <= 1 ? 0 : rank <= 5 ? 1 : rank <= 10 ? 2 : 3;
  const IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*$/;
  const PATH = /^\.{1,2}\/[A-Za-z0-9\/._~+,=@%-]*$/;
  const balanced = report.balance && report.balance.how !== 'off';
  const other = side => side === 'x' ? 'y' : 'x';
  const base = path => String(path).split('/').pop();

  // ---- elements -----------------------------------------------------------------------------

  // Children that are no elements become text.
  function make(tag, attributes, ...children) {
    const drawn = tag === 'g' || tag === 'line' || tag === 'circle';
    const out = drawn ? document.createElementNS('http:' + '//www.w3.org/2000/svg', tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) out.setAttribute(name, value);
    for (const child of children) out.append(child instanceof Node ? child : String(child));
    return out;
  }

  // As in the tables: the middle of a long id is left out.
  function short(name) {
    const text = [...String(name)];
    return text.length <= 38 ? text.join('') : text.slice(0, 22).join('') + '…' + text.slice(-14).join('');
  }

  function press(label, action, attributes) {
    const out = make('button', {type: 'button', ...attributes}, label);
    out.addEventListener('click', action);
    return out;
  }

  // ---- rows -----------------------------------------------------------------------------------

  const rows = new Map();  // 'x17' → its card
  for (const side of ['x', 'y'])
    for (const card of cards[side]) rows.set(side + card.number, {...card, side, key: side + card.number});
  const labels = view.labels || [];
  const label = row => row.label >= 0 && row.label < labels.length ? labels[row.label] : null;

  function image(row, name) {
    if (!row.media || !IMAGE.test(row.media)) return null;
    return make('img', {class: name, alt: '', src: row.media});
  }

  function badge(rank) {
    return make('span', {class: 'badge r' + band(rank)}, rank < 1 ? 'no match' : 'rank ' + rank);
  }

  // A button that leads to a row.
  function chip(key, ...more) {
    const row = rows.get(key);
    const out = press('', () => select(key), {class: 'chip', 'data-key': key});
    if (!row) out.disabled = true;
    const picture = row && image(row, 'thumb');
    if (picture) out.append(picture);
    const words = make('span', {class: 'words'}, make('b', {}, key[0] + ' ' + short(row ? row.name : key.slice(1))));
    if (row && label(row) !== null) words.append(make('small', {}, ' class ' + short(label(row))));
    if (row && row.text) words.append(make('span', {class: 'said'}, row.text));
    out.append(words, ...more);
    return out;
  }

  // ---- planes ---------------------------------------------------------------------------------

  const planes = [];

  class Plane {
    constructor(svg, points) {
      this.svg = svg;
      this.box = svg.getAttribute('viewBox').split(' ').map(Number);
      this.now = [...this.box];
      this.points = [];
      this.at = new Map();
      const marks = svg.querySelectorAll('.point');
      points.forEach((point, k) => {
        const mark = marks[k], key = point.side + point.number, round = point.side === 'x';
        const start = round ? null : /^M(\S+) (\S+?)l/.exec(mark.getAttribute('d'));
        const x = round ? +mark.getAttribute('cx') : +start[1], y = round ? +mark.getAttribute('cy') : +start[2] + 4;
        const title = mark.querySelector('title');
        if (title) title.remove();
        const one = {mark, key, round, x, y, point, shown: true, usual: mark.getAttribute('class').split(' ').pop(),
                     band: band(point.rank)};
        this.points.push(one);
        this.at.set(key, one);
      });
      this.overlay = make('g', {class: 'overlay'});
      svg.append(this.overlay);
      svg.setAttribute('tabindex', '0');
      svg.setAttribute('role', 'application');
      svg.setAttribute('aria-label', svg.getAttribute('aria-label') +
        '. Arrows move, plus and minus zoom, 0 shows all; the search field finds a row by its id.');
      this.listen();
    }

    get scale() { return this.now[2] / this.box[2]; }

    draw() {
      this.svg.setAttribute('viewBox', this.now.map(v => v.toFixed(3)).join(' '));
      const k = Math.pow(this.scale, 0.9);
      if (k === this.drawn) return;
      this.drawn = k;
      for (const one of this.points) this.size(one, k);
      this.svg.style.setProperty('--k', k.toFixed(4));
      this.mark();
      this.svg.classList.toggle('near', this.scale < 0.99);
    }

    // Late ranks are larger where colour is the rank, so that colour is not all there is.
    size(one, k) {
      const grow = k * (byRank() ? [0.85, 1, 1.15, 1.35, 0.85][one.band] : 1), s = (4 * grow).toFixed(3);
      if (one.round) one.mark.setAttribute('r', (3.2 * grow).toFixed(3));
      else one.mark.setAttribute('d', `M${one.x} ${(one.y - 4 * grow).toFixed(3)}l${s} ${s}-${s} ${s}-${s}-${s}z`);
    }

    zoom(factor, x, y) {
      const wide = Math.min(this.box[2], Math.max(this.box[2] / 60, this.now[2] * factor)), f = wide / this.now[2];
      this.move(x - (x - this.now[0]) * f, y - (y - this.now[1]) * f, wide);
    }

    // The picture always fills its frame.
    move(x, y, wide) {
      const high = wide * this.box[3] / this.box[2];
      this.now = [Math.min(Math.max(x, 0), this.box[2] - wide), Math.min(Math.max(y, 0), this.box[3] - high), wide, high];
      this.draw();
    }

    middle() { return [this.now[0] + this.now[2] / 2, this.now[1] + this.now[3] / 2]; }
    reset() { this.move(0, 0, this.box[2]); }

    // From the screen to the picture.
    spot(event) {
      const frame = this.svg.getBoundingClientRect();
      return [this.now[0] + (event.clientX - frame.left) / frame.width * this.now[2],
              this.now[1] + (event.clientY - frame.top) / frame.height * this.now[3]];
    }

    nearest(event, pixels) {
      const [x, y] = this.spot(event), unit = this.now[2] / this.svg.getBoundingClientRect().width;
      let best = null, least = pixels * unit;
      for (const one of this.points) {
        const far = one.shown ? Math.hypot(one.x - x, one.y - y) : Infinity;
        if (far < least) { least = far; best = one; }
      }
      return best;
    }

    listen() {
      const svg = this.svg, held = new Map();
      let moved = 0;
      svg.addEventListener('pointerdown', event => { held.set(event.pointerId, event); moved = held.size > 1 ? 99 : 0; });
      svg.addEventListener('pointermove', event => {
        const before = held.get(event.pointerId);
        if (!before) return this.hover(event);
        const unit = this.now[2] / svg.getBoundingClientRect().width;
        moved += Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY);
        if (held.size === 2) this.pinch(held, event);
        else if (moved > 4) {
          if (!svg.hasPointerCapture(event.pointerId)) svg.setPointerCapture(event.pointerId);
          svg.classList.add('held');
          tip.hidden = true;
          this.move(this.now[0] - (event.clientX - before.clientX) * unit,
                    this.now[1] - (event.clientY - before.clientY) * unit, this.now[2]);
        }
        held.set(event.pointerId, event);
      });
      const end = event => {
        const was = held.delete(event.pointerId);
        svg.classList.remove('held');
        if (event.type !== 'pointerup' || !was || moved > 4) return;
        const one = this.nearest(event, event.pointerType === 'touch' ? 24 : 14);
        select(one ? one.key : null);
      };
      for (const name of ['pointerup', 'pointercancel']) svg.addEventListener(name, end);
      svg.addEventListener('pointerleave', () => { tip.hidden = true; });
      svg.addEventListener('wheel', event => {
        if (!event.ctrlKey && document.activeElement !== svg) return; // the page scrolls until the picture is clicked
        event.preventDefault();
        this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), ...this.spot(event));
      }, {passive: false});
      svg.addEventListener('touchmove', event => { if (event.touches.length > 1) event.preventDefault(); }, {passive: false});
      svg.addEventListener('dblclick', event => this.zoom(0.5, ...this.spot(event)));
      svg.addEventListener('keydown', event => {
        const step = this.now[2] / 8, [x, y, wide] = this.now;
        const act = {ArrowLeft: () => this.move(x - step, y, wide), ArrowRight: () => this.move(x + step, y, wide),
                     ArrowUp: () => this.move(x, y - step, wide), ArrowDown: () => this.move(x, y + step, wide),
                     '+': () => this.zoom(0.7, ...this.middle()), '=': () => this.zoom(0.7, ...this.middle()),
                     '-': () => this.zoom(1.4, ...this.middle()), '0': () => this.reset(),
                     Escape: () => select(null)}[event.key];
        if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        act();
      });
    }

    pinch(held, event) {
      const still = [...held.values()].find(e => e.pointerId !== event.pointerId), before = held.get(event.pointerId);
      const far = (a, b) => Math.max(10, Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY));
      const [ax, ay] = this.spot(still), [bx, by] = this.spot(event);
      this.zoom(far(still, before) / far(still, event), (ax + bx) / 2, (ay + by) / 2);
    }

    hover(event) {
      const one = event.pointerType === 'touch' ? null : this.nearest(event, 12);
      this.svg.classList.toggle('over', one !== null);
      tip.hidden = one === null;
      if (one === null) return;
      if (tip.dataset.key !== one.key) {
        const row = rows.get(one.key) || one.point, picture = image(row, 'thumb');
        tip.dataset.key = one.key;
        tip.replaceChildren(make('b', {}, one.key[0] + ' ' + short(row.name)), ' ', badge(one.point.rank));
        if (label(row) !== null) tip.append(make('small', {}, ' class ' + short(label(row))));
        if (row.text) tip.append(make('span', {class: 'said'}, row.text));
        if (picture) tip.append(picture);
      }
      const right = event.clientX > window.innerWidth / 2;
      tip.style.left = right ? '' : event.clientX + 14 + 'px';
      tip.style.right = right ? document.documentElement.clientWidth - event.clientX + 14 + 'px' : '';
      tip.style.top = event.clientY + 14 + 'px';
    }

    filter() {
      for (const one of this.points) {
        const row = rows.get(one.key) || one.point;
        one.shown = wanted(row, one.point);
        one.mark.classList.toggle('off', !one.shown);
        const colour = byRank() ? 'r' + one.band : one.usual;
        one.mark.classList.remove('r0', 'r1', 'r2', 'r3', 'r4', one.usual);
        one.mark.classList.add(colour);
        this.size(one, Math.pow(this.scale, 0.9));
      }
      this.svg.classList.toggle('filtered', this.points.some(one => !one.shown));
    }

    // Lines from the chosen row to its partners and to what it finds, and rings around all of them.
    mark() {
      this.overlay.replaceChildren();
      this.svg.classList.toggle('chosen', chosen !== null && this.at.has(chosen));
      for (const one of this.points) one.mark.classList.remove('lit');
      const from = this.at.get(chosen), row = rows.get(chosen);
      if (!from || !row) return;
      const k = Math.pow(this.scale, 0.9), far = other(row.side);
      const near = this.svg.dataset.of === 'beside' ? row.beside_near : row.near;
      const join = (key, name) => {
        const to = this.at.get(key);
        if (!to) return;
        to.mark.classList.add('lit');
        this.overlay.append(make('line', {class: name, x1: from.x, y1: from.y, x2: to.x, y2: to.y}),
                            make('circle', {class: 'ring ' + name, cx: to.x, cy: to.y, r: 7 * k}));
      };
      for (const [number, , match] of near || []) if (!match) join(far + number, 'to-wrong');
      for (const [number] of row.pairs || []) join(far + number, 'to-true');
      from.mark.classList.add('lit');
      this.overlay.append(make('circle', {class: 'ring self', cx: from.x, cy: from.y, r: 10 * k}));
    }

    // Brings a row into the middle if it is out of sight.
    show(key) {
      const one = this.at.get(key), [x, y, w, h] = this.now;
      if (one && (one.x < x || one.x > x + w || one.y < y || one.y > y + h)) this.move(one.x - w / 2, one.y - h / 2, w);
    }
  }

  // ---- what is shown --------------------------------------------------------------------------

  let chosen = null;
  const pick = {side: '', band: '', label: ''};
  const tip = make('div', {class: 'tip', hidden: '', role: 'tooltip'});
  const panel = make('aside', {class: 'panel', 'aria-live': 'polite', 'aria-label': 'The chosen row'});
  const count = make('output', {class: 'shown'});

  const selects = {};
  function choice(name, title, entries) {
    const out = make('select', {id: 'pick-' + name});
    for (const [value, text] of entries) out.append(make('option', {value}, text));
    out.addEventListener('change', () => { if (name in pick) pick[name] = out.value; refresh(); });
    selects[name] = out;
    return make('label', {class: 'field', for: 'pick-' + name}, make('span', {}, title), out);
  }
  const byRank = () => labels.length === 0 || (selects.colour && selects.colour.value === 'rank');

  function wanted(row, point) {
    return (pick.side === '' || point.side === pick.side) && (pick.band === '' || band(point.rank) === +pick.band) &&
           (pick.label === '' || row.label === +pick.label);
  }

  function refresh() {
    for (const plane of planes) plane.filter();
    if (chosen === null) hint();
    const all = planes[0].points, shown = all.filter(one => one.shown).length;
    count.textContent = shown === all.length ? `${all.length} rows` : `${shown} of ${all.length} rows`;
    clear.hidden = shown === all.length;
    legend();
  }

  function unfilter() {
    for (const name of Object.keys(pick)) { pick[name] = ''; if (selects[name]) selects[name].value = ''; }
    refresh();
  }
  const clear = press('Show all', unfilter, {class: 'plain', hidden: ''});

  // The legend and the words on ranks, where the page was made with those on labels.
  function legend() {
    for (const plane of planes) plane.svg.closest('figure').classList.toggle('by-rank', labels.length > 0 && byRank());
  }

  function fact(term, ...value) { return make('p', {class: 'fact'}, make('span', {}, term), ...value); }

  function listed(title, side, list, mark) {
    const out = make('div', {class: 'listed'}, make('h4', {}, title));
    for (const entry of list) {
      const score = make('span', {class: 'score'}, Number(entry[1]).toFixed(3));
      out.append(chip(side + entry[0], score, ...(mark ? [make('span', {class: entry[2] ? 'right' : 'wrong'}, entry[2] ? '✓ match' : '✗')] : [])));
    }
    if (list.length === 0) out.append(make('p', {class: 'note'}, 'none'));
    return out;
  }

  function describe(row) {
    const far = other(row.side), picture = image(row, 'picture'), score = balanced ? ', balanced score' : ', cosine';
    const head = make('div', {class: 'head'}, make('h3', {}, make('span', {class: 'which'}, `row ${row.number} of ${row.side}`), String(row.name)),
                      press('×', () => select(null), {class: 'close', 'aria-label': 'Close'}));
    panel.replaceChildren(head);
    if (picture) panel.append(picture);
    else if (row.media && PATH.test(row.media)) panel.append(make('p', {}, make('a', {href: row.media}, base(decodeURIComponent(row.media)))));
    if (row.text) panel.append(make('p', {class: 'text'}, row.text));
    panel.append(fact('first match', badge(row.rank)));
    if (label(row) !== null) panel.append(fact('class', label(row)));
    if (row.found !== undefined)
      panel.append(fact('among the first ten of', (row.found === 1 ? '1 query' : `${row.found} queries`) + (balanced ? ` (${row.plain} without balance)` : '')));
    if (row.near) panel.append(listed('Found first' + score, far, row.near, true));
    const more = row.partners > (row.pairs || []).length ? `, ${row.pairs.length} of ${row.partners}` : '';
    if (row.pairs) panel.append(listed('True partners' + more, far, row.pairs, false));
    if (report.beside && row.beside_rank !== undefined) {
      panel.append(fact('in ' + short(base(report.beside.file)), badge(row.beside_rank)));
      if (row.beside_near) panel.append(listed('Found first there', far, row.beside_near, true));
    }
    if (!row.near) panel.append(make('p', {class: 'note'}, 'This row appears only in the lists of other rows; the report keeps no more about it.'));
  }

  // Nothing is chosen: the rows that a filter leaves, the worst first, or what one can do.
  function hint() {
    const left = planes[0].points.filter(one => one.shown), most = 12;
    if (left.length < planes[0].points.length) {
      const list = left.sort((a, b) => b.point.rank - a.point.rank).slice(0, most);
      panel.replaceChildren(make('h3', {}, 'The worst of these rows'), make('p', {class: 'note'}, 'Those whose first match comes last.'),
                            ...list.map(one => chip(one.key, badge(one.point.rank))));
      return;
    }
    panel.replaceChildren(make('h3', {}, 'Pick a row'),
      make('p', {class: 'note'}, (matchMedia('(pointer: coarse)').matches
        ? 'Tap a point to see its id, its rank and its neighbours. Two fingers zoom; then one finger moves the picture.'
        : 'Click a point to see its id, its rank and its neighbours. Drag to move. To zoom, scroll after a click, or hold Ctrl and scroll, or double-click.') +
        ' Every id in the tables of this page leads here too.'),
      make('ul', {class: 'legend'},
        make('li', {}, make('span', {class: 'key line to-true'}), 'to its true partners'),
        make('li', {}, make('span', {class: 'key line to-wrong'}), 'to what it finds by mistake')));
  }

  // A row that a table leads to is seen among all others, and on a phone above its card.
  function select(key, lead) {
    chosen = key !== null && rows.has(key) ? key : null;
    if (lead && planes.some(plane => plane.at.has(chosen) && !plane.at.get(chosen).shown)) unfilter();
    if (chosen === null) hint();
    else describe(rows.get(chosen));
    panel.classList.toggle('full', chosen !== null);
    panel.scrollTop = 0;
    for (const plane of planes) { plane.show(chosen); plane.mark(); }
    if (!lead) return;
    const over = getComputedStyle(panel).position === 'fixed';
    (over ? planes[0].svg.closest('figure') : document.getElementById('space')).scrollIntoView();
  }

  // ---- search ---------------------------------------------------------------------------------

  const found = make('ul', {class: 'found', hidden: ''});
  const field = make('input', {type: 'search', id: 'find', placeholder: 'id or text', autocomplete: 'off', spellcheck: 'false'});

  function look() {
    const words = field.value.trim().toLowerCase(), exact = [], begins = [], inside = [];
    found.replaceChildren();
    for (const row of words ? rows.values() : []) {
      const name = String(row.name).toLowerCase();
      if (name === words || row.key === words) exact.push(row);
      else if (name.startsWith(words)) begins.push(row);
      else if (name.includes(words) || (row.text && row.text.toLowerCase().includes(words))) inside.push(row);
    }
    const all = [...exact, ...begins, ...inside], hits = new Set(all.map(row => row.key));
    for (const plane of planes)
      for (const one of plane.points) one.mark.classList.toggle('hit', hits.has(one.key));
    for (const row of all.slice(0, 8)) found.append(make('li', {}, chip(row.key, badge(row.rank))));
    if (words && all.length !== 0 && all.length > 8) found.append(make('li', {class: 'note'}, `and ${all.length - 8} more`));
    if (words && all.length === 0) found.append(make('li', {class: 'note'}, 'no row of this report has that in its id or text'));
    found.hidden = words === '';
  }
  field.addEventListener('input', look);
  field.addEventListener('focus', look);
  field.addEventListener('keydown', event => {
    const first = found.querySelector('.chip');
    if (event.key === 'Escape') { field.value = ''; look(); }
    if (event.key === 'ArrowDown' && first) { event.preventDefault(); first.focus(); }
    if (event.key === 'Enter' && first) { first.click(); found.hidden = true; }
  });
  found.addEventListener('click', () => { found.hidden = true; });
  document.addEventListener('pointerdown', event => { if (!event.target.closest('.search')) found.hidden = true; });

  // ---- put together -----------------------------------------------------------------------------

  const tools = make('div', {class: 'tools'},
    make('div', {class: 'search field'}, make('label', {for: 'find'}, 'search'), field, found),
    choice('side', 'side', [['', 'both'], ['x', 'x'], ['y', 'y']]),
    choice('band', 'rank', [['', 'any'], ...BANDS.map((name, k) => [k, name])]));
  if (labels.length > 0)
    tools.append(choice('label', 'class', [['', 'all'], ...labels.map((name, k) => [k, short(name)])]),
                 choice('colour', 'colour', [['label', 'class'], ['rank', 'rank']]));
  tools.append(make('div', {class: 'field end'}, count, clear));

  function buttons(plane) {
    return make('div', {class: 'zoom'},
      press('+', () => plane.zoom(0.6, ...plane.middle()), {'aria-label': 'Closer'}),
      press('−', () => plane.zoom(1 / 0.6, ...plane.middle()), {'aria-label': 'Farther'}),
      press('⤢', () => plane.reset(), {'aria-label': 'Show all'}));
  }

  for (const svg of document.querySelectorAll('svg.plane')) {
    const part = svg.dataset.of === 'beside' ? report.beside.view : view;
    const plane = new Plane(svg, part.points);
    planes.push(plane);
    svg.parentNode.append(buttons(plane));
    if (labels.length > 0) {
      const list = svg.closest('figure').querySelector('.legend');
      [...list.children].slice(2).forEach(item => item.classList.add('of-label'));
      BANDS.slice(0, 4).forEach((name, k) => list.append(make('li', {class: 'of-rank'}, make('span', {class: 'key r' + k}), name)));
    }
  }
  home.classList.add('live');
  home.before(tools);
  home.append(panel);
  document.body.append(tip);

  for (const span of document.querySelectorAll('.row[data-row]')) {
    const key = span.dataset.row, row = rows.get(key);
    if (!row) continue;
    const link = press('', () => select(key, true), {class: 'row', title: span.title});
    link.append(...span.childNodes);
    const picture = image(row, 'thumb');
    if (picture) link.prepend(picture);
    span.replaceWith(link);
  }
  for (const link of document.querySelectorAll('a[data-class]'))
    link.addEventListener('click', () => {
      select(null);
      pick.label = link.dataset.class;
      if (selects.label) selects.label.value = pick.label;
      if (selects.colour) selects.colour.value = 'rank';
      refresh();
    });
  document.addEventListener('keydown', event => { if (event.key === 'Escape' && event.target === document.body) select(null); });
  refresh();
})();
