// Formats figures. Times are in microseconds. The terminal writes the same digits: TimeText and
// TimeFigureText of src/dataset/summary.cc, and two decimals of a gain.
function digits(value, count) {
  const text = value.toPrecision(count);
  return text.includes('e') ? String(Math.round(value)) : text;
}

function timeText(us) {
  if (us < 0.9995) return (us * 1e3).toFixed(0) + ' ns';
  if (us < 999.5) return digits(us, 4) + ' µs';
  if (us < 999.5e3) return digits(us / 1e3, 4) + ' ms';
  return us < 999.5e6 ? digits(us / 1e6, 4) + ' s' : (us / 1e6).toFixed(0) + ' s';
}

function shortTime(us) {
  const short = (value) => String(Number(value.toPrecision(3)));
  if (us < 1) return short(us * 1e3) + ' ns';
  if (us < 1e3) return short(us) + ' µs';
  if (us < 1e6) return short(us / 1e3) + ' ms';
  return short(us / 1e6) + ' s';
}

function bytesText(bytes) {
  for (const [unit, size] of [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) {
    if (bytes >= size && bytes % size === 0) return bytes / size + ' ' + unit;
  }
  return bytes.toLocaleString('en') + ' B';
}

function aboutBytes(bytes) {
  for (const [unit, size] of [['T', 2 ** 40], ['G', 2 ** 30], ['M', 2 ** 20], ['K', 2 ** 10]]) {
    if (bytes >= size) return Number((bytes / size).toPrecision(3)) + unit;
  }
  return String(Math.round(bytes));
}

// Bus bandwidth in GB/s.
function bandwidth(group, bytes, us) {
  return (group.bus * bytes) / us / 1e3;
}
function rateText(value) {
  return (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toPrecision(3)) + ' GB/s';
}

function gainText(value) {
  return value.toFixed(2);
}
function timesText(value) {
  return gainText(value) + '×';
}
function percentText(value) {
  const percent = value * 100;
  return (Math.abs(percent) < 9.95 ? percent.toFixed(1) : percent.toFixed(0)) + ' %';
}
// An interval in the unit of the median before it.
function timeInterval(figure) {
  if (figure[0] < 2) return 'one sample';
  const unit = figure[1] < 0.9995 ? 1e3 : figure[1] < 999.5 ? 1 : figure[1] < 999.5e3 ? 1e-3 : 1e-6;
  return between(figure, (value) => (unit === 1e3 ? (value * unit).toFixed(0) : digits(value * unit, 4)));
}
// "[1.2, 1.3]", a 95 % interval; "(1.2 to 1.3)", the range of fewer than six samples.
function between(figure, text) {
  if (figure[0] < 2) return 'one sample';
  const few = figure[0] < 6;
  return (few ? '(' : '[') + text(figure[2]) + (few ? ' to ' : ', ') + text(figure[3]) + (few ? ')' : ']');
}
// A path's file name, if that distinguishes it from `others`.
function fileName(path, others) {
  const base = (text) => text.slice(text.lastIndexOf('/') + 1) || text;
  return (others || []).some((other) => other !== path && base(other) === base(path)) ? path : base(path);
}
function count(number, noun) {
  return number.toLocaleString('en') + ' ' + noun + (number === 1 ? '' : 's');
}
function durationText(seconds) {
  return seconds < 10 ? seconds.toFixed(1) + ' s' : seconds < 120 ? Math.round(seconds) + ' s' : Math.floor(seconds / 60) + ' min ' + Math.round(seconds % 60) + ' s';
}
function dateText(seconds) {
  return seconds > 0 ? new Date(seconds * 1e3).toISOString().slice(0, 16).replace('T', ' ') + ' UTC' : 'unknown';
}
function clipText(text, width) {
  const most = Math.floor(width / 7.8);
  return text.length > most ? text.slice(0, most - 1) + '…' : text;
}
