// The view in the link: a section, and what the reader has selected, behind the "#". A link that is
// copied opens the page in the same view.
const linked = new Map();
let linkedSection = '';
let written = '';

function readLink() {
  written = location.hash;
  for (const part of location.hash.slice(1).split('&')) {
    const at = part.indexOf('=');
    if (at < 0) {
      linkedSection = decodeLink(part);
    } else if (at > 0) {
      linked.set(decodeLink(part.slice(0, at)), decodeLink(part.slice(at + 1)));
    }
  }
}

function decodeLink(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

function writeLink() {
  const parts = [linkedSection, ...[...linked].map(([key, value]) => encodeURIComponent(key) + '=' + encodeURIComponent(value))].filter(Boolean);
  written = parts.length ? '#' + parts.join('&') : '';
  // Some viewers of files forbid it; the page works without.
  try {
    history.replaceState(null, '', written || location.pathname + location.search);
  } catch {
    written = location.hash;
  }
}

// What the link says of a selection, if that is one of `allowed` (without a list: anything).
function recalled(key, fallback, allowed) {
  const value = linked.get(key);
  return value === undefined || (allowed && !allowed.includes(value)) ? fallback : value;
}

// Keeps a selection in the link; one that is the default is not written.
function remember(key, value, fallback) {
  if (String(value) === String(fallback ?? '')) linked.delete(key);
  else linked.set(key, String(value));
  writeLink();
}

// Links to sections keep the rest of the view.
function sectionLink(id, title) {
  return el('a', { href: '#' + id, onclick: (event) => {
    event.preventDefault();
    linkedSection = id;
    writeLink();
    document.getElementById(id).scrollIntoView();
  } }, title);
}

// Call after everything is drawn.
function followLink() {
  const target = linkedSection && document.getElementById(linkedSection);
  if (target) target.scrollIntoView({ behavior: 'instant' });
  addEventListener('hashchange', () => {
    // A link that was pasted; links inside the page have no selection.
    if (location.hash !== written && location.hash.includes('=')) location.reload();
  });
}
