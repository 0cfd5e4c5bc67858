/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Second part of a flame graph's script: the data in the document, what is shown of it (also kept
 * in the address), and numbers as text. Shares are always computed from the data's integers.
 */

const SVG = 'http://www.w3.org/2000/svg', HTML = 'http://www.w3.org/1999/xhtml';
const svg = document.currentScript ? document.currentScript.closest('svg') :
	document.querySelector('svg.flame');
const standalone = document.documentElement === svg;
const data = JSON.parse(svg.querySelector('script[type="application/json"]').textContent);
const texts = svg.querySelectorAll('script[type="text/plain"]');
const kindNames = {n: 'native', k: 'kernel', i: 'inlined', p: 'python', j: 'jit', s: 'synthetic',
	t: 'thread'};

function make(space, tag, attributes, text) {
	const e = document.createElementNS(space, tag);

	for (const name in attributes)
		e.setAttribute(name, attributes[name]);
	if (text !== undefined)
		e.textContent = text;
	return e;
}

/* --- state, and its copy in the address ------------------------------------------------------- */

const state = {event: 0, icicle: data.icicle, turned: false, zoom: 0, search: '', exact: false,
	regex: null, hits: [], hit: -1};
const trees = new Map();
let tree;

function plantEvent() {
	const key = state.event * 2 + state.turned;

	if (!trees.has(key)) {
		const straight = state.event * 2;

		if (!trees.has(straight))
			trees.set(straight, decode(texts[state.event].textContent,
				data.events[state.event]));
		if (state.turned)
			trees.set(key, turn(trees.get(straight)));
	}
	tree = trees.get(key);
}

function nameOf(i) {
	return i > 0 ? data.names[tree.name[i]] : 'all';
}

/* Same-named siblings (other module or kind) are told apart by @2, @3 …; a name's own @ is
 * percent-encoded. */
function step(i) {
	let nth = 1;

	for (let c = tree.parent[i] + 1; c < i; c = tree.end[c])
		nth += nameOf(c) === nameOf(i);
	return encodeURIComponent(nameOf(i)) + (nth > 1 ? '@' + nth : '');
}

function pathOf(i) {
	const steps = [];

	for (; i > 0; i = tree.parent[i])
		steps.push(step(i));
	return steps.reverse().join(';');
}

/* The node of a path, or the last one on the way that exists. */
function findPath(path) {
	let at = 0;

	for (const text of path ? path.split(';') : []) {
		const [encoded, nth] = text.split('@'), name = decodeURIComponent(encoded);
		let left = nth ? +nth : 1, c = at + 1;

		for (; c < tree.end[at]; c = tree.end[c])
			if (nameOf(c) === name && --left === 0)
				break;
		if (c >= tree.end[at])
			break;
		at = c;
	}
	return at;
}

function address() {
	const parts = [];

	if (state.event)
		parts.push('event=' + encodeURIComponent(data.events[state.event].name));
	if (state.icicle !== data.icicle)
		parts.push('icicle=' + +state.icicle);
	if (state.turned)
		parts.push('turned=1');
	if (state.zoom)
		parts.push('zoom=' + pathOf(state.zoom));
	if (state.search)
		parts.push('search=' + encodeURIComponent(state.search));
	if (state.exact)
		parts.push('case=1');
	return '#' + parts.join('&');
}

/* A new place makes an entry in the history, so that Back leads out of a zoom. */
function saveAddress(isPlace) {
	try {
		history[isPlace ? 'pushState' : 'replaceState'](null, '', address());
	} catch (e) { /* frames without an address of their own */
	}
}

function loadAddress() {
	const have = {};

	for (const part of location.hash.slice(1).split('&')) {
		const at = part.indexOf('=');

		if (at > 0)
			have[part.slice(0, at)] = part.slice(at + 1);
	}
	try {
		state.event = Math.max(0, data.events.findIndex(e =>
			e.name === decodeURIComponent(have.event || '')));
		state.search = decodeURIComponent(have.search || '');
		state.exact = have.case === '1';
		state.icicle = have.icicle ? have.icicle === '1' : data.icicle;
		state.turned = have.turned === '1';
		plantEvent();
		state.zoom = findPath(have.zoom);
	} catch (e) { /* a damaged link: what was understood of it */
		plantEvent();
	}
	compile();
}

/* --- numbers as text -------------------------------------------------------------------------- */

function percent(part, whole) {
	return (whole ? part / whole * 100 : 0).toFixed(2) + ' %';
}

function grouped(v) {
	return String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, ',');
}

function amount(v) {
	const info = data.events[state.event], weight = v * info.scale;
	const units = info.unit === 'ns' ? [[1e9, ' s'], [1e6, ' ms'], [1e3, ' µs'], [1, ' ns']] :
		[[1e12, ' T '], [1e9, ' G '], [1e6, ' M '], [1, ' ']];
	const [size, unit] = units.find(u => weight >= u[0]) || units[units.length - 1];
	const number = size === 1 ? grouped(weight) : (weight / size).toPrecision(3);

	return (size > 1 && weight / size >= 1000 ? grouped(weight / size) : number) + unit +
		(info.unit === 'ns' ? '' : info.unit);
}

function samples(n) {
	return grouped(n) + (n === 1 ? ' sample' : ' samples');
}

/* Where most samples of this function were taken, in the whole recording: "ptr/mod.rs:805". */
function lineOf(i) {
	const file = data.lines && i > 0 ? data.lines[2 * tree.name[i]] : 0;

	return file ? data.files[file] + ':' + data.lines[2 * tree.name[i] + 1] : '';
}

function describe(i) {
	const module = i > 0 ? data.modules[data.module[tree.name[i]]] : '';
	const kind = i > 0 ? kindNames[data.kinds[tree.name[i]]] : '';
	const all = tree.total[0], view = tree.total[state.zoom], bySamples = isCounted();
	let total = (bySamples ? '' : amount(tree.total[i]) + ', ') + samples(tree.count[i]) + ', ' +
		percent(tree.total[i], all);
	const self = (bySamples ? samples(tree.self[i]) : amount(tree.self[i])) + ', ' +
		percent(tree.self[i], all);

	if (state.zoom && tree.depth[i] >= tree.depth[state.zoom])
		total += ' of all, ' + percent(tree.total[i], view) + ' of view';
	return {name: nameOf(i), place: [module, kind, lineOf(i)].filter(Boolean).join(' · '),
		total: total, self: self};
}

/* Weights that are numbers of samples need not be said twice. */
function isCounted() {
	const info = data.events[state.event];

	return info.unit !== 'ns' && info.per_sample === 1;
}

/* --- search ----------------------------------------------------------------------------------- */

let isHit = new Uint8Array(data.names.length);

function compile() {
	state.regex = null;
	state.bad = false;
	state.hit = -1;
	isHit.fill(0);
	if (!state.search)
		return;
	try {
		state.regex = new RegExp(state.search, state.exact ? '' : 'i');
		data.names.forEach((name, i) => { isHit[i] = state.regex.test(name); });
	} catch (e) {
		state.bad = true;
	}
}

/* Hits without the ones below them, whose samples they have already. */
function outerHits(from, to) {
	const hits = [];

	for (let i = from; i < to;) {
		const found = i > 0 && isHit[tree.name[i]];

		if (found)
			hits.push(i);
		i = found ? tree.end[i] : i + 1;
	}
	return hits;
}

/* The samples in view whose stack has a hit: all of them when a hit leads to the view. */
function matched(zoom) {
	for (let i = zoom; i > 0; i = tree.parent[i])
		if (isHit[tree.name[i]])
			return tree.total[zoom];
	return outerHits(zoom + 1, tree.end[zoom]).reduce((sum, i) => sum + tree.total[i], 0);
}

function showMatch() {
	const of = state.zoom ? ' of view, ' + percent(matched(0), tree.total[0]) + ' of all' : '';
	const n = state.hits.length;

	ui.input.classList.toggle('bad', state.bad);
	ui.exact.setAttribute('aria-pressed', state.exact);
	ui.previous.disabled = ui.next.disabled = !n;
	ui.match.textContent = state.bad ? 'not a regular expression' : !state.regex ? '' :
		percent(matched(state.zoom), tree.total[state.zoom]) + of + ' · ' +
		(state.hit >= 0 ? grouped(state.hit + 1) + ' of ' : '') + grouped(n) +
		(n === 1 ? ' hit' : ' hits');
}

function goToHit(by) {
	const n = state.hits.length;

	if (!n)
		return;
	state.hit = state.hit < 0 ? (by > 0 ? 0 : n - 1) : (state.hit + by + n) % n;
	draw();
	setDetails(state.hits[state.hit]);
	if (standalone) {
		const at = y(tree.depth[state.hits[state.hit]]);

		if (at < scrollY + top() || at > scrollY + innerHeight - 2 * ROW)
			scrollTo(0, at - innerHeight / 2);
	}
}
