/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * First part of a flame graph's script (the C side wraps the parts in one function): the merged
 * tree, as arrays by node in preorder. Its encoding is described in flame.h.
 */


/* From name, depth, and each node's own weight and samples to everything else. */
function grow(t) {
	const n = t.n, open = [], filled = new Float64Array(n);

	t.parent = new Int32Array(n);
	t.end = new Int32Array(n); /* the first node behind the subtree */
	t.start = new Float64Array(n);
	t.total = Float64Array.from(t.self);
	t.count = Float64Array.from(t.ownCount);
	for (let i = 0; i < n; i++) {
		t.parent[i] = i ? open[t.depth[i] - 1] : -1;
		open[t.depth[i]] = i;
		t.end[i] = i + 1;
	}
	for (let i = n - 1; i > 0; i--) {
		const p = t.parent[i];

		t.total[p] += t.total[i];
		t.count[p] += t.count[i];
		if (t.end[p] < t.end[i])
			t.end[p] = t.end[i];
	}
	for (let i = 1; i < n; i++) {
		const p = t.parent[i];

		t.start[i] = t.start[p] + filled[p];
		filled[p] += t.total[i];
	}
	return t;
}

function plant(n) {
	return {n: n, name: new Int32Array(n), depth: new Int32Array(n), self: new Float64Array(n),
		ownCount: new Float64Array(n)};
}

function decode(text, info) {
	const t = plant(info.nodes), perSample = info.per_sample / info.scale;
	let at = 0;

	function next() {
		let v = 0, scale = 1, c;

		do {
			c = text.charCodeAt(at++) - 63;
			v += (c & 31) * scale;
			scale *= 32;
		} while (c & 32);
		return v;
	}
	function own(i) {
		t.self[i] = next();
		t.ownCount[i] = perSample ? Math.round(t.self[i] / perSample) : next();
	}
	own(0);
	for (let i = 1; i < t.n; i++) {
		const head = next();

		t.name[i] = Math.floor(head / 4);
		t.depth[i] = t.depth[i - 1] + 1 - (head & 2 ? next() : 0);
		if (head & 1)
			own(i);
	}
	return grow(t);
}

/* The same samples merged from the other end of their stacks. */
function turn(t) {
	const name = [-1], parent = [-1], self = [t.self[0]], count = [t.ownCount[0]];
	let table = new Int32Array(1 << 16);

	function slot(p, s) {
		const mask = table.length - 1;
		let at = Math.imul(Math.imul(p, 0x9e3779b1) ^ s, 0x85ebca6b);

		for (at = (at ^ at >>> 15) & mask; table[at]; at = (at + 1) & mask)
			if (parent[table[at]] === p && name[table[at]] === s)
				break;
		return at;
	}
	function child(p, s) {
		const at = slot(p, s);

		if (table[at])
			return table[at];
		table[at] = name.push(s) - 1;
		parent.push(p);
		self.push(0);
		count.push(0);
		if (name.length * 2 > table.length) {
			table = new Int32Array(table.length * 2);
			for (let i = 1; i < name.length; i++)
				table[slot(parent[i], name[i])] = i;
		}
		return name.length - 1;
	}
	for (let i = 1; i < t.n; i++) {
		let at = 0;

		if (!t.self[i] && !t.ownCount[i])
			continue;
		for (let from = i; from > 0; from = t.parent[from])
			at = child(at, t.name[from]);
		self[at] += t.self[i];
		count[at] += t.ownCount[i];
	}
	return grow(inOrder(name, parent, self, count));
}

/* Nodes given in any order, parents first, to preorder with children by name. */
function inOrder(name, parent, self, count) {
	const n = name.length, t = plant(n), rank = nameRanks(), todo = [0];
	const first = new Int32Array(n), next = new Int32Array(n), depth = new Int32Array(n);
	const place = new Int32Array(rank.length + 1), sorted = new Int32Array(n);

	for (let i = 1; i < n; i++) {
		depth[i] = depth[parent[i]] + 1;
		place[rank[name[i]] + 1]++;
	}
	for (let r = 1; r < place.length; r++)
		place[r] += place[r - 1];
	for (let i = 1; i < n; i++)
		sorted[place[rank[name[i]]]++] = i;
	/* the last name first, each before its siblings */
	for (let k = n - 2; k >= 0; k--) {
		const i = sorted[k];

		next[i] = first[parent[i]];
		first[parent[i]] = i;
	}
	for (let at = 0; todo.length; at++) {
		const i = todo.pop();

		t.name[at] = name[i];
		t.depth[at] = depth[i];
		t.self[at] = self[i];
		t.ownCount[at] = count[i];
		if (next[i])
			todo.push(next[i]);
		if (first[i])
			todo.push(first[i]);
	}
	return t;
}

function nameRanks() {
	const order = data.names.map((_, i) => i), rank = new Int32Array(order.length);

	order.sort((a, b) => data.names[a] < data.names[b] ? -1 :
		data.names[a] > data.names[b] ? 1 : a - b);
	order.forEach((name, i) => { rank[name] = i; });
	return rank;
}
