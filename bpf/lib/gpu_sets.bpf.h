/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether an epoll set holds a watched device: the kernel's own tree of members says it
 * (fs/eventpoll.c), whoever made the set, and however its descriptor came here. What was found is
 * kept: until the target changes a set, and for a while, as others may change it, and members
 * vanish at their last close. Included by gpu_calls.bpf.h.
 */
#ifndef BPF_LIB_GPU_SETS_BPF_H
#define BPF_LIB_GPU_SETS_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rb_node___set {
	unsigned long __rb_parent_color;
	struct rb_node___set *rb_right, *rb_left;
};

struct rb_root___set {
	struct rb_node___set *rb_node;
};

struct rb_root_cached {
	struct rb_root___set rb_root;
};

struct eventpoll {
	struct rb_root_cached rbr;
	struct file___file *file;
};

struct epoll_filefd {
	struct file___file *file;
};

struct epitem {
	struct rb_node___set rbn;
	struct epoll_filefd ffd;
};

#pragma clang attribute pop

enum {
	SET_STEPS_AT_ONCE = 64,
	SET_STEPS = 128 * SET_STEPS_AT_ONCE, /* about three thousand members */
	SETS_WITHIN = 8,
	SET_KEPT_NS = 100000000, /* what was found is asked for again */
	SET_COST_MAX = 256, /* … and a walk that took long, after so many times its own time */
	RB_COLOR_MASK = 3,
};

enum gpu_set_has { SET_HAS_NONE, SET_HAS_DEVICE, SET_HAS_ONLY /* … and nothing else */ };

/* A set that was looked at. */
struct gpu_set {
	struct found_device device;
	__u32 has;      /* enum gpu_set_has */
	__u64 changes;  /* gpu_shared.set_changes then */
	__u64 until_ns; /* it is known */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64); /* struct eventpoll */
	__type(value, struct gpu_set);
} gpu_sets SEC(".maps");

/* A walk over the members of a set, and those of sets in it. */
struct set_walk {
	__u64 node, from; /* where it is, and the neighbour it came from; 0: a tree is done */
	__u64 operations; /* of a file that is a set */
	__u64 within[SETS_WITHIN];
	__u32 n_within, next; /* sets to be walked, and the first that has not been */
	struct found_device device;
	__u8 has_device, has_other, cut, pad[5];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GPU_SCRATCHES);
	__type(key, __u32);
	__type(value, struct set_walk);
} set_walks SEC(".maps");

static __always_inline void set_walk_into(struct set_walk *w, __u64 set)
{
	for (__u32 i = 0; i < SETS_WITHIN; i++) {
		if (i >= w->n_within) {
			w->within[i] = set;
			w->n_within = i + 1;
			return;
		}
		if (w->within[i] == set)
			return;
	}
	w->cut = 1;
}

/* A member of the set. */
static __always_inline void set_walk_visit(struct set_walk *w, struct rb_node___set *node)
{
	struct epitem *item = (void *)node - bpf_core_field_offset(struct epitem, rbn);
	struct file___file *file = BPF_CORE_READ(item, ffd.file);

	if (!file)
		return;
	if ((__u64)BPF_CORE_READ(file, f_op) == w->operations)
		set_walk_into(w, (__u64)BPF_CORE_READ(file, private_data));
	else if (find_device(file, &w->device))
		w->has_device = 1;
	else
		w->has_other = 1;
}

/* To the next neighbour of a node: down to the left, down to the right, up. Not 0: it is over.
 * Global: see file_walk_step. */
__noinline int set_walk_step(__u32 scratch)
{
	struct set_walk *w = bpf_map_lookup_elem(&set_walks, &scratch);
	struct rb_node___set *node, *parent, *left, *right, *from, *next;

	if (!w)
		return 1;
	if (!w->node) {
		struct eventpoll *set;
		__u32 i = w->next++;

		if (i >= w->n_within || i >= SETS_WITHIN)
			return 1;
		set = (void *)w->within[i];
		w->from = 0;
		w->node = (__u64)BPF_CORE_READ(set, rbr.rb_root.rb_node);
		return 0;
	}
	node = (void *)w->node;
	from = (void *)w->from;
	parent = (void *)(BPF_CORE_READ(node, __rb_parent_color) & ~(__u64)RB_COLOR_MASK);
	left = BPF_CORE_READ(node, rb_left);
	right = BPF_CORE_READ(node, rb_right);
	next = parent;
	if (from == parent) {
		set_walk_visit(w, node);
		next = left ? left : right ? right : parent;
	} else if (from == left && right) {
		next = right;
	}
	w->from = (__u64)node;
	w->node = (__u64)next;
	return w->has_device && w->has_other;
}

/* One loop within another: a single one would have more jumps than the verifier follows. */
__noinline int set_walk_steps(__u32 scratch)
{
	for (__u32 i = 0; i < SET_STEPS_AT_ONCE; i++)
		if (set_walk_step(scratch))
			return 1;
	return 0;
}

static __noinline int set_walk(struct file___file *file, __u64 key, __u32 scratch,
			       struct gpu_set *ret)
{
	struct set_walk *w = bpf_map_lookup_elem(&set_walks, &scratch);
	__u64 start_ns = bpf_ktime_get_ns(), now_ns, keep_ns;
	int over = 0;

	if (!w)
		return 0;
	ret->changes = gpu_shared.set_changes;
	w->operations = (__u64)BPF_CORE_READ(file, f_op);
	w->within[0] = key;
	w->n_within = 1;
	w->next = 0;
	w->node = w->from = 0;
	w->has_device = w->has_other = w->cut = 0;
	for (__u32 i = 0; i < SET_STEPS / SET_STEPS_AT_ONCE && !over; i++)
		over = set_walk_steps(scratch);
	if (!w->has_device && (w->cut || !over))
		gpu_count(GPU_SETS_CUT);
	ret->device = w->device;
	ret->has = !w->has_device                    ? SET_HAS_NONE
		   : w->has_other || w->cut || !over ? SET_HAS_DEVICE
						     : SET_HAS_ONLY;
	now_ns = bpf_ktime_get_ns();
	keep_ns = (now_ns - start_ns) * SET_COST_MAX;
	ret->until_ns = now_ns + (keep_ns > SET_KEPT_NS ? keep_ns : SET_KEPT_NS);
	return 0;
}

static __noinline enum gpu_set_has gpu_set_find(struct file___file *file, __u32 scratch,
						struct found_device *ret)
{
	__u64 key = (__u64)BPF_CORE_READ(file, private_data);
	struct gpu_set *known = bpf_map_lookup_elem(&gpu_sets, &key), set = {};

	if (BPF_CORE_READ((struct eventpoll *)key, file) != file)
		return SET_HAS_NONE; /* it is no set, and the call will fail */
	if (!known || known->changes != gpu_shared.set_changes ||
	    bpf_ktime_get_ns() > known->until_ns) {
		set_walk(file, key, scratch, &set);
		bpf_map_update_elem(&gpu_sets, &key, &set, BPF_ANY);
		known = &set;
	}
	*ret = known->device;
	return known->has;
}

/* The end of a call that makes or changes a set, or closes a member: the registers are those of its
 * entry still. */
static __noinline int gpu_set_changed(struct task_struct *task, __u8 kind, __s64 result)
{
	struct file___file *file, *member;
	struct found_device device = {};
	struct call_args args = {};
	__u64 key;

	if (kind == GPU_EPOLL_NEW) {
		file = result >= 0 ? file_of_fd(task, result) : NULL;
		key = file ? (__u64)BPF_CORE_READ(file, private_data) : 0;
		bpf_map_delete_elem(&gpu_sets, &key); /* of one that was there before */
		return 0;
	}
	if (result || call_args_read(task, &args))
		return 0;
	file = file_of_fd(task, args.v[0]);
	member = file_of_fd(task, args.v[2]);
	if (file && member &&
	    (BPF_CORE_READ(member, f_op) == BPF_CORE_READ(file, f_op) ||
	     find_device(member, &device)))
		__sync_fetch_and_add(&gpu_shared.set_changes, 1);
	return 0;
}

#endif
