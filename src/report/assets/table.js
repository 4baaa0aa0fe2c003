// Tables that can be sorted by any column. A column is { title, value(row), text(row) or node(row), number, long }.
// A kind 'narrow' has intervals below their medians.
const FIRST_ROWS = 40;

function makeTable(host, columns, label, kind) {
  const state = { rows: [], column: -1, down: false, shown: FIRST_ROWS };
  const body = el('tbody');
  const more = el('button', { type: 'button', class: 'more', onclick: () => {
    state.shown += 500;
    draw();
  } });
  const heads = columns.map((column, at) => el('th', { class: column.number ? 'n' : '', scope: 'col' },
    column.title ? el('button', { type: 'button', onclick: () => sort(at) }, column.title) : el('span', { class: 'unseen' }, 'Remark')));
  const scroll = el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label },
    el('table', { class: 'data ' + (kind || '') }, el('thead', {}, el('tr', {}, heads)), body));
  const frame = el('div', { class: 'scroll-frame' }, scroll);
  host.append(frame, el('p', { class: 'scroll-hint note', 'aria-hidden': 'true' }, 'Scroll the table sideways for more →'), more);
  // A shadow at an edge with more content behind it.
  const look = () => {
    frame.classList.toggle('cut', scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft > 2);
    frame.classList.toggle('wide', scroll.scrollWidth - scroll.clientWidth > 2);
  };
  scroll.addEventListener('scroll', look, { passive: true });
  const watch = new ResizeObserver(() => requestAnimationFrame(look));
  watch.observe(scroll);
  watch.observe(body);

  function sort(at) {
    state.down = state.column === at ? !state.down : false;
    state.column = at;
    heads.forEach((head, i) => (i === at ? head.setAttribute('aria-sort', state.down ? 'descending' : 'ascending') : head.removeAttribute('aria-sort')));
    draw();
  }
  function sorted() {
    if (state.column < 0) return state.rows;
    const value = columns[state.column].value;
    const order = (a, b) => {
      const left = value(a);
      const right = value(b);
      if (left === right) return 0;
      if (left === null || left === undefined) return 1;
      if (right === null || right === undefined) return -1;
      return (left < right ? -1 : 1) * (state.down ? -1 : 1);
    };
    return [...state.rows].sort(order);
  }
  function draw() {
    const rows = sorted();
    body.replaceChildren(...rows.slice(0, state.shown).map((row) => el('tr', {}, columns.map((column) =>
      el('td', { class: column.number ? 'n' : column.long ? 'long' : column.wrap ? 'wrap' : 'w' }, column.node ? column.node(row) : column.text ? column.text(row) : column.value(row))))));
    more.hidden = rows.length <= state.shown;
    more.textContent = `Show more (${(rows.length - state.shown).toLocaleString('en')} left)`;
  }
  return {
    show(rows) {
      state.rows = rows;
      state.shown = FIRST_ROWS;
      draw();
    },
    draw: draw,
    sorted: sorted,
  };
}

// A figure: its median, followed by the interval.
function figureColumn(title, get, text) {
  const interval = text === timeText ? timeInterval : (figure) => between(figure, text);
  return { title: title, number: true, value: (row) => get(row) && get(row)[1],
    node: (row) => (get(row) ? el('span', {}, text(get(row)[1]), ' ', el('small', {}, interval(get(row)))) : '–') };
}

function csvCell(value) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  let text = String(value);
  // A spreadsheet would evaluate it as a formula.
  if (/^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

// `content`: a text or a blob.
function download(name, type, content) {
  const address = URL.createObjectURL(new Blob([content], { type: type }));
  const link = el('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
