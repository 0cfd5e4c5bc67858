/* SPDX-License-Identifier: BSD-2-Clause */
/* Last part of a flame graph's script: the pointer, the keys and the tools. Names only ever become
 * text nodes. */

/* --- the pointer ------------------------------------------------------------------------------ */

/* The node at a place of the picture, drawn or not; -1: none. */
function nodeAt(px, py) {
	const row = Math.floor((py - top()) / ROW), z = state.zoom;
	const depth = state.icicle ? row : frames.rows - 1 - row;
	const width = frames.width - 2 * MARGIN, off = (px - MARGIN) / width;
	let at = z, weight = tree.start[z] + off * tree.total[z];

	if (row < 0 || row >= frames.rows || off < 0 || off >= 1 || !tree.total[z])
		return -1;
	while (tree.depth[at] > depth)
		at = tree.parent[at];
	while (tree.depth[at] < depth) {
		let c = at + 1;

		while (c < tree.end[at] && weight >= tree.start[c] + tree.total[c])
			c = tree.end[c];
		if (c >= tree.end[at])
			return -1;
		at = c;
	}
	return at;
}

function setDetails(i) {
	const about = i >= 0 ? describe(i) : null;

	hint.textContent = about ? fit(about.name + (about.place ? ' (' + about.place + ')' : ''),
		frames.width - 420) + '   ' + about.total + '; self ' + about.self :
		fit('Click a frame to zoom, Esc to go back · / to search, n and N for next and ' +
		'previous · c copies the name under the pointer', frames.width - 2 * MARGIN);
}

const pointer = {node: -1, over: null};

function leave() {
	pointer.node = -1;
	if (pointer.over)
		pointer.over.remove();
	pointer.over = null;
	ui.tipBox.setAttribute('visibility', 'hidden');
	setDetails(state.hit >= 0 ? state.hits[state.hit] : -1);
}

function outline(i) {
	const scale = (frames.width - 2 * MARGIN) / tree.total[state.zoom];
	const above = tree.depth[i] < tree.depth[state.zoom];
	const x = above ? MARGIN : MARGIN + (tree.start[i] - tree.start[state.zoom]) * scale;

	if (pointer.over)
		pointer.over.remove();
	pointer.over = make(SVG, 'rect', {class: 'over', rx: 2, x: x, y: y(tree.depth[i]),
		width: above ? frames.width - 2 * MARGIN : Math.max(tree.total[i] * scale, 1),
		height: ROW - 1});
	frames.group.append(pointer.over);
}

function showTip(i, px, py) {
	const about = describe(i), muted = {class: 'muted'};
	let box;

	ui.tip.replaceChildren(make(HTML, 'b', {}, about.name));
	for (const [label, text] of [['', about.place], ['', about.total], ['self ', about.self]]) {
		if (text)
			ui.tip.append(make(HTML, 'br', {}), make(HTML, 'span', muted, label),
				make(HTML, 'span', label || text === about.place ? muted : {}, text));
	}
	box = ui.tip.getBoundingClientRect();
	px = Math.max(4, Math.min(px + 14, frames.width - box.width - 8));
	if (py + 22 + box.height > (standalone ? scrollY + innerHeight : frames.height))
		py -= box.height + 12;
	else
		py += 22;
	ui.tipBox.setAttribute('x', px);
	ui.tipBox.setAttribute('y', py);
	ui.tipBox.setAttribute('visibility', 'visible');
}

function onMove(e) {
	const box = svg.getBoundingClientRect(), px = e.clientX - box.left, py = e.clientY - box.top;
	const i = head.contains(e.target) ? -1 : nodeAt(px, py);

	if (i < 0) {
		leave();
		return;
	}
	if (i !== pointer.node) {
		outline(i);
		setDetails(i);
		pointer.node = i;
	}
	showTip(i, px, py);
}

function onClick(e) {
	const box = svg.getBoundingClientRect();
	const i = head.contains(e.target) ? -1 : nodeAt(e.clientX - box.left, e.clientY - box.top);

	if (i >= 0)
		zoom(i);
}

/* --- actions ---------------------------------------------------------------------------------- */

function zoom(i) {
	if (i === state.zoom)
		return;
	state.zoom = i;
	state.hit = -1;
	leave();
	draw();
	saveAddress(true);
}

function search(text, exact) {
	state.search = text;
	state.exact = exact;
	compile();
	draw();
	saveAddress(false);
}

function copyName(i) {
	const name = nameOf(i);

	function say() {
		hint.textContent = 'Copied: ' + fit(name, frames.width - 100);
	}
	if (navigator.clipboard)
		navigator.clipboard.writeText(name).then(say, () => prompt('Name', name));
	else
		prompt('Name', name);
}

/* Another tree or another way up: the same place of it when it has one. */
function change(what) {
	const path = pathOf(state.zoom);

	Object.assign(state, what);
	plantEvent();
	state.zoom = findPath(path);
	state.hit = -1;
	leave();
	showButtons();
	draw();
	saveAddress(true);
	showRoot();
}

/* chromium --headless --screenshot takes the top of a page, and what is scrolled away is blank. */
const photographed = /Headless/.test(navigator.userAgent) && !navigator.webdriver;

/* A tall picture is shown from the root on. */
function showRoot() {
	if (standalone && !photographed)
		scrollTo(0, state.icicle ? 0 : document.documentElement.scrollHeight);
}

function onKey(e) {
	const typing = e.target === ui.input;

	if ((e.key === 'f' && (e.ctrlKey || e.metaKey)) || (e.key === '/' && !typing)) {
		ui.input.focus();
		ui.input.select();
	} else if (e.key === 'Escape') {
		if (state.search) {
			ui.input.value = '';
			search('', state.exact);
		} else {
			zoom(0);
		}
	} else if (typing && e.key === 'Enter') {
		goToHit(e.shiftKey ? -1 : 1);
	} else if (typing || e.ctrlKey || e.metaKey || e.altKey) {
		return;
	} else if (e.key === 'n' || e.key === 'N') {
		goToHit(e.key === 'n' ? 1 : -1);
	} else if (e.key === 'c' && (pointer.node >= 0 || state.zoom)) {
		copyName(pointer.node >= 0 ? pointer.node : state.zoom);
	} else {
		return;
	}
	e.preventDefault();
}

/* --- the tools -------------------------------------------------------------------------------- */

const ui = {};

function button(name, text, help, onclick) {
	ui[name] = make(HTML, 'button', {type: 'button', class: name, title: help}, text);
	ui[name].addEventListener('click', onclick);
	ui.tools.append(ui[name]);
}

function showButtons() {
	ui.icicle.setAttribute('aria-pressed', state.icicle);
	ui.turn.setAttribute('aria-pressed', state.turned);
	if (ui.events)
		ui.events.value = state.event;
}

function makeEventList() {
	ui.events = make(HTML, 'select', {class: 'events', title: 'Event'});
	data.events.forEach((e, i) => ui.events.append(make(HTML, 'option', {value: i}, e.name)));
	ui.events.addEventListener('change', () => change({event: +ui.events.value}));
	ui.tools.append(ui.events);
}

function makeTools() {
	ui.box = make(SVG, 'foreignObject', {height: 56});
	ui.tools = make(HTML, 'div', {class: 'tools'});
	ui.match = make(HTML, 'span', {class: 'match', role: 'status'});
	ui.input = make(HTML, 'input', {type: 'search', placeholder: 'Search (regex)',
		'aria-label': 'Search', spellcheck: 'false'});
	ui.input.addEventListener('input', () => search(ui.input.value, state.exact));
	ui.tools.append(ui.match, ui.input);
	button('exact', 'Aa', 'Match upper and lower case', () => search(state.search, !state.exact));
	button('previous', '‹', 'Previous hit (N, Shift+Enter)', () => goToHit(-1));
	button('next', '›', 'Next hit (n, Enter)', () => goToHit(1));
	if (data.events.length > 1)
		makeEventList();
	button('icicle', 'Icicle', 'The root above', () => change({icicle: !state.icicle}));
	button('turn', data.reverse ? 'Callees' : 'Callers', 'Merge the stacks from the other end',
		() => change({turned: !state.turned}));
	button('copy', 'Copy', 'Copy the name of the zoomed function (c)',
		() => copyName(state.zoom));
	button('reset', 'Reset zoom', 'Show everything (Esc)', () => zoom(0));
	ui.box.append(ui.tools);
	head.append(ui.box);
	ui.tipBox = make(SVG, 'foreignObject', {width: 560, height: 600, visibility: 'hidden',
		'pointer-events': 'none'});
	ui.tip = make(HTML, 'div', {class: 'tip'});
	ui.tipBox.append(ui.tip);
	svg.append(ui.tipBox);
}

function showAddress() {
	loadAddress();
	ui.input.value = state.search;
	showButtons();
	leave();
	draw();
}

measure.font = '12px ' + getComputedStyle(svg).fontFamily;
makeTools();
svg.removeAttribute('viewBox');
showAddress();
draw(); /* again: a scroll bar may have taken some of the width */
showRoot();
svg.addEventListener('mousemove', onMove);
svg.addEventListener('mouseleave', leave);
svg.addEventListener('click', onClick);
addEventListener('keydown', onKey);
addEventListener('resize', () => { leave(); draw(); });
addEventListener('scroll', pinHead);
addEventListener('popstate', showAddress);
