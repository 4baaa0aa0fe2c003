// Pictures as files: SVG with its styles written into it, and PNG drawn on a canvas. Nothing is
// loaded for either: the page forbids it to itself.
const DRAWN = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linejoin', 'stroke-linecap', 'opacity', 'font-size', 'font-weight', 'font-style', 'text-anchor', 'visibility', 'paint-order'];
const FONT = 'sans-serif';

function fileStem(label) {
  return 'diapason-' + label.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60);
}

function svgText(picture) {
  const copy = picture.cloneNode(true);
  const from = [picture, ...picture.querySelectorAll('*')];
  const to = [copy, ...copy.querySelectorAll('*')];
  from.forEach((node, at) => {
    const style = getComputedStyle(node);
    for (const name of DRAWN) {
      const value = style.getPropertyValue(name);
      // Patterns are named in the attribute; the computed value has the address of the page.
      if (value && !value.includes('url(')) to[at].setAttribute(name, value);
    }
    for (const name of ['class', 'tabindex', 'role', 'aria-label']) to[at].removeAttribute(name);
  });
  copy.setAttribute('xmlns', SVG_SPACE);
  copy.setAttribute('font-family', FONT);
  copy.setAttribute('role', 'img');
  copy.setAttribute('aria-label', picture.getAttribute('aria-label') || '');
  const paper = shape('rect', { width: '100%', height: '100%', fill: css('--surface') });
  copy.insertBefore(paper, copy.firstChild);
  return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(copy) + '\n';
}

function pathOf(node) {
  const number = (name) => Number(node.getAttribute(name) || 0);
  const path = new Path2D();
  switch (node.tagName) {
    case 'line':
      path.moveTo(number('x1'), number('y1'));
      path.lineTo(number('x2'), number('y2'));
      break;
    case 'rect':
      path.roundRect(number('x'), number('y'), node.getBBox().width, node.getBBox().height, number('rx'));
      break;
    case 'circle':
      path.arc(number('cx'), number('cy'), number('r'), 0, 2 * Math.PI);
      break;
    case 'path':
      return new Path2D(node.getAttribute('d'));
    default:
      return null;
  }
  return path;
}

// A stand-in for a hatched fill.
function patternOf(pen) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const brush = tile.getContext('2d');
  brush.fillStyle = css('--soft');
  brush.fillRect(0, 0, 8, 8);
  brush.strokeStyle = css('--line');
  brush.lineWidth = 3;
  for (const shift of [-8, 0, 8]) {
    brush.beginPath();
    brush.moveTo(shift, 8);
    brush.lineTo(shift + 8, 0);
    brush.stroke();
  }
  return pen.createPattern(tile, 'repeat');
}

function drawNode(pen, node, opacity, scale) {
  const style = getComputedStyle(node);
  if (style.visibility === 'hidden' || ['defs', 'pattern', 'title'].includes(node.tagName)) return;
  const visible = opacity * Number(style.opacity);
  for (const child of node.children) drawNode(pen, child, visible, scale);
  if (['svg', 'g'].includes(node.tagName)) return;
  const matrix = node.getCTM();
  pen.setTransform(scale * matrix.a, scale * matrix.b, scale * matrix.c, scale * matrix.d, scale * matrix.e, scale * matrix.f);
  pen.globalAlpha = visible;
  pen.lineWidth = parseFloat(style.strokeWidth) || 1;
  pen.setLineDash(style.strokeDasharray === 'none' ? [] : style.strokeDasharray.split(/[ ,]+/).map(parseFloat));
  pen.lineJoin = style.strokeLinejoin;
  pen.lineCap = style.strokeLinecap;
  const fill = style.fill.startsWith('url') ? patternOf(pen) : style.fill;
  if (node.tagName === 'text') {
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    pen.textAlign = { start: 'left', middle: 'center', end: 'right' }[style.textAnchor];
    const place = [node.textContent, Number(node.getAttribute('x') || 0), Number(node.getAttribute('y') || 0)];
    if (style.stroke !== 'none') {
      pen.strokeStyle = style.stroke;
      pen.strokeText(...place);
    }
    pen.fillStyle = fill;
    pen.fillText(...place);
    return;
  }
  const path = pathOf(node);
  if (!path) return;
  if (style.fill !== 'none') {
    pen.globalAlpha = visible * Number(style.fillOpacity);
    pen.fillStyle = fill;
    pen.fill(path);
    pen.globalAlpha = visible;
  }
  if (style.stroke !== 'none') {
    pen.strokeStyle = style.stroke;
    pen.stroke(path);
  }
}

function pngOf(picture, done) {
  const scale = 2;
  const canvas = document.createElement('canvas');
  const [, , width, height] = picture.getAttribute('viewBox').split(' ').map(Number);
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext('2d');
  pen.fillStyle = css('--surface');
  pen.fillRect(0, 0, canvas.width, canvas.height);
  // getCTM counts what the window scales; the picture has the width that it was drawn for.
  drawNode(pen, picture, 1, scale);
  canvas.toBlob(done, 'image/png');
}

// Buttons that save the picture inside `box`.
function pictureTools(box, label) {
  const picture = () => box.querySelector('svg');
  const button = (name, save) => el('button', { type: 'button', class: 'tool', 'aria-label': `Save as ${name}: ${label}`, onclick: () => picture() && save(picture()) }, name);
  return el('div', { class: 'tools' },
    button('SVG', (one) => download(fileStem(label) + '.svg', 'image/svg+xml', svgText(one))),
    button('PNG', (one) => pngOf(one, (blob) => download(fileStem(label) + '.png', 'image/png', blob))));
}
