// The data, and the reader's selections. Figures are [samples, median, low, high].
const DATA = JSON.parse(document.getElementById('data').textContent);
const state = { group: 0, first: 0, listeners: [] };

function prepareData() {
  DATA.configs = DATA.configs.map((one) => ({ text: one[0], algorithm: one[1], protocol: one[2], channels: one[3],
    segment: one[4], environment: one[5], family: one[6], shade: 0.5, variant: 0 }));
  // Full paths of policies are shown on hover only.
  for (const config of DATA.configs) [config.full, config.text] = [config.text, config.text.replace(/=\/\S*\/(?=[^/\s])/g, '=')];
  // Shades of a family, by channels.
  const families = new Map();
  for (const config of DATA.configs) {
    const name = config.algorithm + '/' + config.protocol;
    families.set(name, [...(families.get(name) || []), config]);
  }
  for (const members of families.values()) {
    const order = members.sort((a, b) => a.channels - b.channels || a.segment - b.segment || (a.text < b.text ? -1 : 1));
    order.forEach((config, at) => {
      config.shade = order.length > 1 ? at / (order.length - 1) : 0.5;
      config.variant = at;
    });
  }
  for (const group of DATA.groups) {
    for (const size of group.sizes) {
      size.cells = size.cells.map((cell) => ({ config: cell[0], time: [cell[1], cell[2], cell[3] ?? cell[2], cell[4] ?? cell[2]], tie: cell[5] === 1, failures: cell[6] || 0 }));
    }
  }
}

const isCollective = (group) => group.kind === 'collective';
const collectiveGroups = () => DATA.groups.filter((group) => isCollective(group) && (group.sizes.length || group.verified.length));

function configName(index) {
  return DATA.configs[index].text;
}
function configNode(index) {
  const config = DATA.configs[index];
  return el('span', { class: 'config', title: config.full === config.text ? null : config.full }, swatch(configColour(index)), el('span', {}, configName(index)));
}

function placeText(place) {
  const text = [[place.library, place.version].filter(Boolean).join(' ') || 'library not known', place.gpu].filter(Boolean).join(', ');
  return place.simulated && !text.includes('simulated') ? text + ', simulated' : text;
}

// The group's name on the page: with its place only if there are several.
function shapeText(group) {
  return group.shape + (DATA.places.length > 1 ? ' · ' + placeText(DATA.places[group.place]) : '');
}
function groupText(group) {
  return group.label + (DATA.places.length > 1 ? ' · ' + placeText(DATA.places[group.place]) : '');
}

function choose(group) {
  state.group = DATA.groups.indexOf(group);
  remember('context', state.group, state.first);
  for (const listener of state.listeners) listener();
}

function control(label, node) {
  return el('label', { class: 'control' }, label, node);
}

function select(options, value, change) {
  const node = el('select', {}, options.map(([key, text, title]) => el('option', { value: key, title: title || null }, text)));
  node.value = String(value);
  node.addEventListener('change', () => change(node.value));
  return node;
}

// A row of buttons of which one is pressed.
function segments(label, options, value, change) {
  const buttons = options.map(([key, text]) => el('button', { type: 'button', 'data-value': key, 'aria-pressed': String(key === value), onclick: () => {
    buttons.forEach((button) => button.setAttribute('aria-pressed', String(button.dataset.value === key)));
    change(key);
  } }, text));
  return el('div', { class: 'control' }, label, el('div', { class: 'segments', role: 'group', 'aria-label': label }, buttons));
}

// The selected collective and shape, the same in every section that shows one context.
function contextControls(host) {
  const groups = collectiveGroups();
  if (groups.length < 2) return;
  const slot = el('div', { class: 'controls', 'data-role': 'context' });
  host.append(slot);
  const draw = () => {
    const now = DATA.groups[state.group];
    const collectives = [...new Set(groups.map((group) => group.collective))];
    const shapes = groups.filter((group) => group.collective === now.collective);
    slot.replaceChildren(
      control('Collective', select(collectives.map((name) => [name, name]), now.collective, (name) => {
        const same = groups.filter((group) => group.collective === name);
        choose(same.find((group) => group.shape === now.shape && group.place === now.place) || same[0]);
      })),
      control('Ranks and type', select(shapes.map((group) => [DATA.groups.indexOf(group), shapeText(group)]), state.group,
        (at) => choose(DATA.groups[Number(at)]))));
  };
  state.listeners.push(draw);
  draw();
}

function section(id, title, note) {
  const node = el('section', { id: id, 'aria-labelledby': id + '-title' }, el('h2', { id: id + '-title' }, title));
  if (note) node.append(el('p', { class: 'note' }, note));
  return node;
}

// Draws now, and again when the reader selects another context or theme.
function live(draw) {
  state.listeners.push(draw);
  onTheme(draw);
  draw();
}
