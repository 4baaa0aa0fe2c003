// Light and dark theme, and the colours of configurations. A family (algorithm and protocol) has a
// hue that is distinguishable from its neighbours with any colour vision; channels shade it.
const HUES = {
  light: ['#0072b2', '#d55e00', '#009e73', '#b8568c', '#c48600', '#3399d6', '#882255', '#6b7300', '#2f8f83', '#6a3d9a', '#9c4a1a', '#3b3bb3'],
  dark: ['#4da3e0', '#f0824a', '#2cc79a', '#e39cc4', '#f2b84b', '#8ccbf2', '#d46a9a', '#c9c94a', '#7ed3c4', '#b08ad9', '#d99a6c', '#9a9aff'],
};
const themeListeners = [];

function theme() {
  return document.documentElement.dataset.theme;
}

function onTheme(callback) {
  themeListeners.push(callback);
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  const button = document.getElementById('theme');
  button.textContent = name === 'dark' ? 'Light' : 'Dark';
  button.setAttribute('aria-label', 'Switch to ' + (name === 'dark' ? 'light' : 'dark') + ' colours');
  for (const callback of themeListeners) callback();
}

function startTheme() {
  const system = matchMedia('(prefers-color-scheme: dark)');
  let chosen = false;
  const kept = recalled('theme', '', ['light', 'dark']);
  chosen = kept !== '';
  setTheme(kept || (system.matches ? 'dark' : 'light'));
  system.addEventListener('change', () => chosen || setTheme(system.matches ? 'dark' : 'light'));
  document.getElementById('theme').addEventListener('click', () => {
    chosen = true;
    setTheme(theme() === 'dark' ? 'light' : 'dark');
    remember('theme', theme(), '');
  });
  // Print on white.
  let before = '';
  addEventListener('beforeprint', () => {
    before = theme();
    setTheme('light');
  });
  addEventListener('afterprint', () => before && setTheme(before));
}

function mix(colour, other, share) {
  const part = (text, at) => parseInt(text.slice(at, at + 2), 16);
  let mixed = '#';
  for (const at of [1, 3, 5]) {
    mixed += Math.round(part(colour, at) * (1 - share) + part(other, at) * share).toString(16).padStart(2, '0');
  }
  return mixed;
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function configColour(index) {
  const config = DATA.configs[index];
  if (index === 0) return css('--default');
  const hues = HUES[theme()];
  const round = Math.floor((config.family - 1) / hues.length);
  const hue = mix(hues[(config.family - 1) % hues.length], theme() === 'dark' ? '#ffffff' : '#000000', Math.min(round * 0.35, 0.7));
  // More channels are lighter in the dark theme and darker in the light one: away from the
  // background.
  const away = theme() === 'dark' ? ['#000000', '#ffffff'] : ['#ffffff', '#000000'];
  return mix(hue, away[config.shade > 0.5 ? 1 : 0], Math.abs(config.shade - 0.5) * (config.shade > 0.5 ? 1 : 0.6));
}

// Black or white, whichever is readable on a colour.
function inkOn(colour) {
  const linear = (at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5) > 0.179 ? '#000000' : '#ffffff';
}
