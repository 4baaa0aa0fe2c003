// The only place where elements are created. Text is only ever inserted as text: no data are parsed
// as markup.
const SVG_SPACE = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'colour') node.style.background = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat()) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function shape(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG_SPACE, tag), attributes, children);
}

function empty(node) {
  node.replaceChildren();
  return node;
}

// Calls back with the width of a node, now and whenever it changes.
function onWidth(node, callback) {
  let last = 0;
  const look = () => {
    const width = Math.round(node.clientWidth);
    if (width > 0 && width !== last) {
      last = width;
      callback(width);
    }
  };
  // Not inside the callback: drawing may change the width again.
  new ResizeObserver(() => requestAnimationFrame(look)).observe(node);
  look();
}

function tag(text, kind) {
  return el('span', { class: 'tag ' + (kind || '') }, text);
}
