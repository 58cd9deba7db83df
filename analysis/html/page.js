// Makes the pictures of a page answer. A bar or a curve tells its values under the pointer; dragging
// across a picture zooms into that stretch, a double click shows all of it again. With the keyboard:
// + and - zoom, the arrows move, 0 shows all. Without this script the page says the same, but the
// browser is slow to show a bar's values, and nothing zooms.
'use strict';
(() => {
  const SVG = 'http://www.w3.org/2000/svg';
  const add = (parent, name, attributes) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return parent.appendChild(element);
  };

  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  document.body.append(tip);
  const hide = () => { tip.hidden = true; };
  const show = (event, text) => {
    tip.textContent = text;
    tip.hidden = false;
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 18 + tip.offsetHeight < innerHeight;
    tip.style.left = Math.max(4, left) + 'px';
    tip.style.top = (below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 10) + 'px';
  };

  // Round numbers, 1, 2 or 5 x 10^k apart, within [low, high].
  const ticksOf = (low, high, wanted) => {
    const raw = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(raw));
    const spacing = power * [1, 2, 5, 10].find((digit) => digit * power >= raw * (1 - 1e-9));
    const decimals = Math.max(0, -Math.floor(Math.log10(spacing) + 1e-9));
    const ticks = [];
    for (let i = Math.ceil(low / spacing - 1e-9); i * spacing <= high * (1 + 1e-9); ++i) {
      ticks.push([i * spacing, (i * spacing).toFixed(decimals)]);
    }
    return ticks;
  };

  // Reads the points of a line, which its path has in pixels: "M1 2L3 4", or "M1 2H3V4" in steps.
  const pointsOf = (line) => {
    const points = [];
    let x = 0;
    for (const [, letter, first, second] of line.getAttribute('d')
             .matchAll(/([MLHV])(-?[\d.]+)(?: (-?[\d.]+))?/g)) {
      if (letter === 'H') {
        x = +first;
      } else {
        const y = letter === 'V' ? +first : +second;
        if (letter !== 'V') x = +first;
        points.push([x, y]);
      }
    }
    return points;
  };

  class Picture {
    constructor(svg, plot) {
      this.svg = svg;
      this.plot = plot;
      [this.left, this.right, this.top, this.bottom, this.low, this.high, this.yLow, this.yHigh] =
          plot.dataset.frame.split(' ').map(Number);
      this.from = this.low;
      this.to = this.high;
      this.ticks = svg.querySelector('.ticks');
      this.tick = this.ticks.querySelector('path').cloneNode(true);
      this.word = this.ticks.querySelector('text').cloneNode(true);
      this.curves = [...plot.querySelectorAll('.line')].map((line) => ({
        name: line.parentNode.dataset.tip || line.parentNode.getAttribute('aria-label'),
        points: pointsOf(line),
        steps: line.getAttribute('d').includes('H'),
      }));
      // A window of its own cuts off what zooming moves out of the picture.
      const {width, height} = svg.viewBox.baseVal;
      this.window = add(svg, 'svg', {x: 0, y: 0, width, height, viewBox: `0 0 ${width} ${height}`});
      plot.before(this.window);
      this.window.append(plot);
      this.listen();
    }

    pixel(value) {
      return this.left + (value - this.from) / (this.to - this.from) * (this.right - this.left);
    }
    value(pixel) {
      return this.from + (pixel - this.left) / (this.right - this.left) * (this.to - this.from);
    }
    pointer(event) {
      const box = this.svg.getBoundingClientRect();
      const pixel = (event.clientX - box.left) / box.width * this.svg.viewBox.baseVal.width;
      return Math.min(this.right, Math.max(this.left, pixel));
    }

    zoom(from, to) {
      const least = (this.high - this.low) / 1e4;
      const width = Math.min(this.high - this.low, Math.max(least, to - from));
      this.from = Math.min(Math.max(this.low, from), this.high - width);
      this.to = this.from + width;
      this.draw();
    }

    draw() {
      const scale = (this.high - this.low) / (this.to - this.from);
      const start = this.left + (this.low - this.from) / (this.high - this.low) *
          (this.right - this.left) * scale;
      this.plot.setAttribute('transform',
                             `matrix(${scale} 0 0 1 ${start - this.left * scale} 0)`);
      this.plot.classList.toggle('zoomed', scale > 1);
      const cut = scale > 1 ? {x: this.left, width: this.right - this.left} :
                              {x: 0, width: this.svg.viewBox.baseVal.width};
      this.window.setAttribute('x', cut.x);
      this.window.setAttribute('width', cut.width);
      this.window.setAttribute('viewBox', `${cut.x} 0 ${cut.width} ${this.svg.viewBox.baseVal.height}`);
      for (const bar of this.plot.querySelectorAll('[data-label]')) this.name(bar, scale);
      // Words and dots keep their shape.
      for (const element of this.plot.querySelectorAll('text, .dot')) {
        const x = +(element.getAttribute('x') || element.getAttribute('d').match(/[\d.]+/)[0]);
        element.setAttribute('transform', `matrix(${1 / scale} 0 0 1 ${x * (1 - 1 / scale)} 0)`);
      }
      this.drawTicks();
    }

    // Writes on a bar that is wide enough now.
    name(bar, scale) {
      const [, x, y, width, height] =
          bar.querySelector('path').getAttribute('d').match(/M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)/);
      const fits = height >= 12 && width * scale >= 6.5 * bar.dataset.label.length + 2;
      const word = bar.querySelector('.added');
      if (!fits && word) word.remove();
      if (!fits || bar.querySelector('text')) return;
      add(bar.querySelector('path').parentNode, 'text', {
        class: 'in added', x: +x + width / 2, y: +y + height / 2 + 3.8, 'text-anchor': 'middle',
      }).textContent = bar.dataset.label;
    }

    drawTicks() {
      this.ticks.replaceChildren();
      const wanted = this.right - this.left >= 600 ? 10 : 6;
      for (const [value, text] of ticksOf(this.from, this.to, wanted)) {
        const x = this.pixel(value).toFixed(2);
        const tick = this.ticks.appendChild(this.tick.cloneNode(true));
        tick.setAttribute('d', tick.getAttribute('d').replace(/M[\d.]+ /g, `M${x} `));
        const word = this.ticks.appendChild(this.word.cloneNode(true));
        word.setAttribute('x', x);
        word.textContent = text;
      }
    }

    // Tells the values of all curves at a place.
    read(pixel) {
      const drawn = this.left + (this.value(pixel) - this.low) / (this.high - this.low) *
          (this.right - this.left);
      const log = this.plot.dataset.log === 'y';
      const [low, high] = log ? [Math.log10(this.yLow), Math.log10(this.yHigh)] : [this.yLow, this.yHigh];
      const here = `at ${+this.value(pixel).toPrecision(4)}`;
      const lines = this.curves.some(({steps}) => steps) ? [here] : [];
      for (const {name, points, steps} of this.curves) {
        const before = points.filter(([x]) => x <= drawn + 0.01);
        const nearest = steps ? before[before.length - 1] :
            points.reduce((a, b) => (a && Math.abs(a[0] - drawn) <= Math.abs(b[0] - drawn) ? a : b), null);
        if (!nearest) continue;
        const y = low + (this.bottom - nearest[1]) / (this.bottom - this.top) * (high - low);
        const x = this.low + (nearest[0] - this.left) / (this.right - this.left) * (this.high - this.low);
        lines.push(`${name}: ${+(log ? 10 ** y : y).toPrecision(4)}` +
                   (steps ? '' : ` at ${+x.toPrecision(4)}`));
      }
      return lines.join('\n');
    }

    hover(event) {
      const told = event.target.closest('[data-tip]');
      if (told && !told.querySelector('.line')) {
        show(event, told.dataset.tip);
      } else if (this.curves.length > 0) {
        show(event, this.read(this.pointer(event)));
      } else {
        hide();
      }
    }

    listen() {
      const {svg} = this;
      svg.setAttribute('tabindex', '0');
      let begun = null;
      let chosen = null;
      const drop = () => {
        if (chosen) chosen.remove();
        begun = chosen = null;
      };
      svg.addEventListener('pointerdown', (event) => {
        if (event.button !== 0) return;
        begun = this.pointer(event);
        chosen = add(svg, 'rect', {class: 'chosen', x: begun, y: this.top, width: 0,
                                   height: Math.max(0, this.bottom - this.top)});
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener('pointermove', (event) => {
        if (begun === null) {
          this.hover(event);
          return;
        }
        hide();
        const now = this.pointer(event);
        chosen.setAttribute('x', Math.min(begun, now));
        chosen.setAttribute('width', Math.abs(now - begun));
      });
      svg.addEventListener('pointerup', (event) => {
        if (begun === null) return;
        const ends = [this.value(begun), this.value(this.pointer(event))].sort((a, b) => a - b);
        const wide = Math.abs(this.pointer(event) - begun) > 5;
        drop();
        if (wide) this.zoom(...ends);
      });
      svg.addEventListener('pointercancel', drop);
      svg.addEventListener('pointerleave', hide);
      svg.addEventListener('dblclick', () => this.zoom(this.low, this.high));
      svg.addEventListener('keydown', (event) => {
        const width = this.to - this.from;
        const [from, to] = {
          '+': [this.from + width / 4, this.to - width / 4],
          '-': [this.from - width / 2, this.to + width / 2],
          'ArrowLeft': [this.from - width / 4, this.to - width / 4],
          'ArrowRight': [this.from + width / 4, this.to + width / 4],
          '0': [this.low, this.high],
        }[event.key] || [];
        if (from === undefined) return;
        event.preventDefault();
        this.zoom(from, to);
      });
    }
  }

  // The browser's own titles would stand beside the tip.
  for (const title of document.querySelectorAll('svg title')) {
    const told = title.parentNode;
    told.dataset.tip = title.textContent;
    told.setAttribute('aria-label', title.textContent);
    title.remove();
    // "0F3 on device0 (compute): ..." is the bar of one action, which has a name to be written on it.
    const action = title.textContent.match(/^(\S+) on .* \(\w+\): /);
    if (action && told.querySelectorAll('path').length === 1) told.dataset.label = action[1];
  }
  const pictures = [...document.querySelectorAll('.plot')].map((plot) => new Picture(plot.ownerSVGElement, plot));
  document.addEventListener('pointermove', (event) => {
    const told = event.target.closest('[data-tip]');
    if (told && !told.closest('.plot')) show(event, told.dataset.tip);
    else if (!event.target.closest('svg')) hide();
  });
  if (pictures.length > 0) {
    const hint = document.createElement('p');
    hint.className = 'remark hint';
    hint.textContent = 'Point at a bar or a curve for its values; drag across a picture to zoom in, ' +
        'double-click to see all of it again.';
    document.querySelector('figure').before(hint);
  }
})();
