/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Third part of a flame graph's script: what is drawn. Drawn are only the frames that are
 * wide enough to be seen in the current zoom, in px of the window.
 */

const ROW = 17, MARGIN = 12, GAP = 14, HEAD = 62, TOOLS_ROW = 36, MATCH_ROW = 22;
const MIN_PX = 0.5;      /* narrower frames are not drawn one by one */
const BATCH_PX = 10;     /* narrower ones are drawn together, as one path a colour */
const NARROW_PX = 1000;  /* windows below that have the tools on a line of their own */


const frames = {group: svg.querySelector('.frames'), rows: 1, least: 1, width: 0, height: 0};
const foot = svg.querySelector('.foot'), head = svg.querySelector('.head');
const legend = svg.querySelector('.legend');
const staticFoot = legend.transform.baseVal.getItem(0).matrix.f;
const staticHeight = svg.viewBox.baseVal.height;
const hint = svg.querySelector('.hint');
const title = svg.querySelector('.title'), fullTitle = title.textContent;
const subtitle = svg.querySelector('.subtitle');

function top() {
	return HEAD + (frames.width < NARROW_PX ? TOOLS_ROW + (state.search ? MATCH_ROW : 0) : 0);
}

function y(depth) {
	return top() + ROW * (state.icicle ? depth : frames.rows - 1 - depth);
}

const measure = make(HTML, 'canvas').getContext('2d');
const widths = new Map();

function charWidth(c) {
	if (!widths.has(c))
		widths.set(c, measure.measureText(String.fromCodePoint(c)).width);
	return widths.get(c);
}

/* The text, or its start and "…", or '' when less than three characters fit into px. */
function fit(text, px) {
	const dots = charWidth(0x2026);
	let width = 0, cut = 0;

	for (let i = 0; i < text.length;) {
		const c = text.codePointAt(i);

		width += charWidth(c);
		if (width > px)
			return cut < 3 ? '' : text.slice(0, cut) + '…';
		i += c > 0xffff ? 2 : 1;
		if (width + dots <= px)
			cut = i;
	}
	return text;
}

/* What is wide enough in the current zoom: nodes, and runs of siblings that are not. */
function visible(scale) {
	const nodes = [], rests = [], z = state.zoom;

	for (let i = z; i < tree.end[z];) {
		const parent = tree.parent[i], first = i;
		let sum = 0;

		if (tree.total[i] * scale >= MIN_PX) {
			nodes.push(i++);
			continue;
		}
		for (; i < tree.end[parent] && tree.total[i] * scale < MIN_PX; i = tree.end[i])
			sum += tree.total[i];
		if (sum * scale >= MIN_PX)
			rests.push([first, sum]);
	}
	return {nodes: nodes, rests: rests};
}

function fillOf(i) {
	if (!i)
		return 'root';
	return data.kinds[tree.name[i]] + data.shades[tree.name[i]];
}

function Painter(scale) {
	const paths = new Map(), boxes = document.createDocumentFragment();
	const labels = document.createDocumentFragment(), origin = tree.start[state.zoom];

	this.xOf = i => MARGIN + (tree.start[i] - origin) * scale;
	this.block = (style, x, depth, w) => {
		const d = 'M' + x.toFixed(2) + ' ' + y(depth) + 'h' + w.toFixed(2) + 'v16h-' +
			w.toFixed(2) + 'z';

		if (!paths.has(style))
			paths.set(style, []);
		paths.get(style).push(d);
	};
	this.frame = (i, x, w, isAncestor) => {
		const hit = i > 0 && isHit[tree.name[i]], faded = isAncestor || (state.regex && !hit);
		const style = hit ? 'hit' : fillOf(i) + (faded ? ' faded' : '');
		const label = w > 24 ? fit(nameOf(i), w - 9) : '';

		if (w < BATCH_PX)
			this.block(style, x, tree.depth[i], w > 2 ? w - 0.5 : w);
		else
			boxes.append(make(SVG, 'rect', {x: x.toFixed(2), y: y(tree.depth[i]),
				width: (w - 0.5).toFixed(2), height: ROW - 1, rx: 2, class: style}));
		if (label)
			labels.append(make(SVG, 'text', {x: (Math.max(x, MARGIN) + 4).toFixed(2),
				y: y(tree.depth[i]) + 12,
				class: hit ? 'hit-text' : faded ? 'faded-text' : 'name'}, label));
	};
	this.finish = () => {
		const group = make(SVG, 'g', {class: 'frames'});

		for (const [style, parts] of paths)
			group.append(make(SVG, 'path', {class: style, d: parts.join('')}));
		group.append(boxes, labels);
		frames.group.replaceWith(group);
		frames.group = group;
	};
}

/* Hits too thin to be seen get a mark of two px, wherever they are. */
function markThinHits(painter, scale) {
	const seen = new Set();

	for (const i of state.hits) {
		const px = Math.round(painter.xOf(i)), key = px + ' ' + tree.depth[i];

		if (tree.total[i] * scale >= 2 || seen.has(key) || tree.depth[i] >= frames.rows)
			continue;
		seen.add(key);
		painter.block('mark', px - 1, tree.depth[i], 2);
	}
}

function chooseHit(painter, scale) {
	const i = state.hits[state.hit];

	if (i !== undefined)
		frames.group.append(make(SVG, 'rect', {class: 'chosen', rx: 3,
			x: painter.xOf(i) - 2, y: y(tree.depth[i]) - 2,
			width: Math.max(tree.total[i] * scale, 3) + 4, height: ROW + 3}));
}

function draw() {
	const z = state.zoom;
	let scale, shown, painter, deepest = tree.depth[z];

	frames.width = svg.getBoundingClientRect().width;
	if (!tree.total[z]) {
		place();
		return;
	}
	scale = (frames.width - 2 * MARGIN) / tree.total[z];
	shown = visible(scale);
	state.hits = state.regex ? outerHits(z + 1, tree.end[z]) : [];
	for (const i of shown.nodes)
		deepest = Math.max(deepest, tree.depth[i]);
	for (const [i] of shown.rests)
		deepest = Math.max(deepest, tree.depth[i]);
	if (!z)
		frames.least = deepest + 1; /* zooming in doesn't make the page shorter */
	frames.rows = Math.max(frames.least, deepest + 1);
	painter = new Painter(scale);
	for (let i = tree.parent[z]; i >= 0; i = tree.parent[i])
		painter.frame(i, MARGIN, frames.width - 2 * MARGIN, true);
	for (const i of shown.nodes)
		painter.frame(i, painter.xOf(i), tree.total[i] * scale, false);
	for (const [i, sum] of shown.rests)
		painter.block(state.regex ? 'rest faded' : 'rest', painter.xOf(i), tree.depth[i],
			sum * scale);
	markThinHits(painter, scale);
	painter.finish();
	chooseHit(painter, scale);
	showMatch();
	place();
}

/* Everything around the frames. */
function place() {
	const narrow = frames.width < NARROW_PX, footY = top() + ROW * frames.rows + GAP;
	const toolsWidth = narrow ? frames.width - 2 * MARGIN : frames.width - 400 - MARGIN;

	/* at least the window's height: the page around an SVG is always white */
	frames.height = Math.max(footY + staticHeight - staticFoot, standalone ? innerHeight : 0);
	svg.setAttribute('height', frames.height);
	foot.setAttribute('transform', 'translate(0 ' + (footY - staticFoot) + ')');
	head.firstElementChild.setAttribute('height', top() - 6);
	ui.box.setAttribute('x', narrow ? MARGIN : 400);
	ui.box.setAttribute('y', narrow ? 54 : 3);
	ui.box.setAttribute('width', Math.max(toolsWidth, 100));
	ui.box.setAttribute('class', narrow ? 'narrow' : '');
	ui.reset.disabled = !state.zoom;
	ui.copy.disabled = !state.zoom;
	title.textContent = fit(fullTitle, ((narrow ? frames.width : 400) - 2 * MARGIN) / 1.75);
	subtitle.textContent = data.events[state.event].subtitle;
	pinHead();
}

function pinHead() {
	if (standalone)
		head.setAttribute('transform', 'translate(0 ' + Math.max(scrollY, 0) + ')');
}
