/* SPDX-License-Identifier: BSD-2-Clause */
/* Network devices and TCP. Sources: proc_net(5), Documentation/networking/snmp_counter.rst,
 * net/core/net-procfs.c (softnet_stat). */
#include "readings.h"

#include <sys/stat.h>

enum { DEVICES_MAX = 4096, TEXT_MAX = 8 << 20, SEGMENTS_JUDGED = 100 };

/* bytes packets errs drop fifo frame compressed multicast, then the same for what is sent. */
static bool parse_device(const char *line, struct net_device *ret)
{
	const char *colon = strrchr(line, ':');
	double v[16];

	*ret = (struct net_device){.speed_bytes = NAN};
	if (!colon || sscanf(line, " %63[^: \t]", ret->name) != 1)
		return false;
	for (unsigned i = 0; i < ARRAY_SIZE(v); i++) {
		v[i] = line_number(colon + 1, i);
		if (isnan(v[i]))
			return false;
	}
	ret->rx_bytes = v[0];
	ret->tx_bytes = v[8];
	ret->packets = v[1] + v[9];
	ret->errors = v[2] + v[10];
	ret->drops = v[3] + v[11];
	return true;
}

static void read_devices(const char *root, const char *who, bool own, struct net_reading *n)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char line[512];

	n->readable = root_read(root, &text, TEXT_MAX, "/proc/%s/net/dev", who);
	for (const char *at = strbuf_str(&text); next_line(&at, line, sizeof(line));) {
		struct net_device device;
		double mbits;

		if (n->devices.n >= DEVICES_MAX || !parse_device(line, &device) ||
		    str_eq(device.name, "lo") || device.packets <= 0)
			continue;
		/* /sys shows our own namespace's. Virtual devices say -1, or nothing. */
		mbits = own ? root_number(root, "/sys/class/net/%s/speed", device.name) : NAN;
		if (mbits > 0)
			device.speed_bytes = mbits * 1e6 / 8;
		if (array_push(&n->devices, device))
			return;
	}
}

/* Pairs of lines: "TcpExt: NAME NAME …" and "TcpExt: 1 2 …". */
static double column_of(const char *text, const char *group, const char *name)
{
	const char *names = strstr(text, group), *values, *at;
	size_t n = strlen(name);
	unsigned column = 0;

	values = names ? strchr(names, '\n') : NULL;
	if (!values++ || !str_starts(values, group))
		return NAN;
	for (at = names; *at != '\n'; column++) {
		at += strcspn(at, " \n");
		at += strspn(at, " ");
		if (strncmp(at, name, n) == 0 && strchr(" \n", at[n]) && at[n])
			return line_number(values, column + 1);
	}
	return NAN;
}

static void read_tcp(const char *root, const char *who, struct net_reading *n)
{
	static const struct {
		enum tcp_counter counter;
		const char *file, *group, *name;
	} columns[] = {
		{TCP_LISTEN_OVERFLOWS, "netstat", "TcpExt: ", "ListenOverflows"},
		{TCP_LISTEN_DROPS, "netstat", "TcpExt: ", "ListenDrops"},
		{TCP_BACKLOG_DROPS, "netstat", "TcpExt: ", "TCPBacklogDrop"},
		{TCP_RETRANSMITTED, "snmp", "Tcp: ", "RetransSegs"},
		{TCP_SENT, "snmp", "Tcp: ", "OutSegs"},
	};
	CLEANUP(strbuf_release) struct strbuf text = {0};

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (!i || !str_eq(columns[i].file, columns[i - 1].file))
			root_read(root, &text, TEXT_MAX, "/proc/%s/net/%s", who, columns[i].file);
		n->tcp[columns[i].counter] =
			column_of(strbuf_str(&text), columns[i].group, columns[i].name);
	}
}

/* One line for each CPU, hexadecimal. */
static void read_softnet(const char *root, struct net_reading *n)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char line[512];

	n->softnet_drops = n->softnet_squeezes = NAN;
	if (!root_read(root, &text, TEXT_MAX, "/proc/net/softnet_stat"))
		return;
	n->softnet_drops = n->softnet_squeezes = 0;
	for (const char *at = strbuf_str(&text); next_line(&at, line, sizeof(line));) {
		unsigned dropped, squeezed;

		if (sscanf(line, "%*x %x %x", &dropped, &squeezed) != 2)
			continue;
		n->softnet_drops += dropped;
		n->softnet_squeezes += squeezed;
	}
}

void net_read(const char *root, pid_t pid, struct net_reading *n)
{
	char who[16] = "self", path[PATH_SIZE];
	struct stat ours, theirs;
	bool own = true;

	if (pid) {
		snprintf(who, sizeof(who), "%d", (int)pid);
		snprintf(path, sizeof(path), "%s/proc/%s/ns/net", root, who);
		own = !stat("/proc/self/ns/net", &ours) && !stat(path, &theirs) &&
		      ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
		n->namespace = own ? 0 : stat(path, &theirs) ? 1 : theirs.st_ino;
	}
	read_devices(root, who, own, n);
	read_tcp(root, who, n);
	read_softnet(root, n);
}

void net_release(struct net_reading *n)
{
	array_release(&n->devices);
}

/* --- rows ------------------------------------------------------------------------------------- */

static const char other_network[] = "another network than before: the next report has it";

static const struct net_device *find_device(const struct net_reading *n, const char *name,
					    size_t hint)
{
	if (hint < n->devices.n && str_eq(n->devices.v[hint].name, name))
		return &n->devices.v[hint];
	for (size_t i = 0; i < n->devices.n; i++)
		if (str_eq(n->devices.v[i].name, name))
			return &n->devices.v[i];
	return NULL;
}

static void device_row(const struct interval *i, const char *scope, const struct net_device *now,
		       const struct net_device *before, struct use_report *r)
{
	struct use_row *row = row_add(r, scope, "network", now->name);
	double rx = rate_of(now->rx_bytes, before->rx_bytes, i->seconds);
	double tx = rate_of(now->tx_bytes, before->tx_bytes, i->seconds);
	struct use_value *v;

	row_put_or(r, row, "net_used_percent", percent_of(fmax(rx, tx), now->speed_bytes),
		   "its speed is not known: virtual, down, or in another network namespace");
	v = row_put(r, row, "net_bytes_per_second", rx + tx);
	if (v)
		v->text = report_text(r, "%.1f MB/s", (rx + tx) / 1e6);
	row_put(r, row, "net_drops_per_second", rate_of(now->drops, before->drops, i->seconds));
	row_put(r, row, "net_errors_per_second", rate_of(now->errors, before->errors, i->seconds));
}

static void tcp_row(const struct interval *i, const char *scope, struct use_report *r)
{
	static const struct {
		const char *key;
		enum tcp_counter counter;
	} rates[] = {{"listen_overflows_per_second", TCP_LISTEN_OVERFLOWS},
		     {"listen_drops_per_second", TCP_LISTEN_DROPS},
		     {"tcp_backlog_drops_per_second", TCP_BACKLOG_DROPS}};
	const double *now = i->now->net.tcp, *before = i->before->net.tcp;
	struct use_row *row = row_add(r, scope, "TCP", "");
	double sent = rate_of(now[TCP_SENT], before[TCP_SENT], 1);
	double again = rate_of(now[TCP_RETRANSMITTED], before[TCP_RETRANSMITTED], 1);
	struct use_value *v;

	for (size_t k = 0; k < ARRAY_SIZE(rates); k++)
		row_put_or(r, row, rates[k].key,
			   rate_of(now[rates[k].counter], before[rates[k].counter], i->seconds),
			   "not in /proc/net/netstat");
	v = row_put_or(r, row, "retransmitted_percent", sent > 0 ? percent_of(again, sent) : sent,
		       "not in /proc/net/snmp");
	if (v && sent < SEGMENTS_JUDGED)
		v->not_judged = report_text(r, "fewer than %d segments were sent", SEGMENTS_JUDGED);
}

void net_rows(const struct interval *i, struct use_report *r)
{
	const char *scope = i->config->n_pids ? "process" : "host";
	/* The first process of a cgroup may be another one now, with another network. */
	bool same = i->now->net.namespace == i->before->net.namespace;
	struct use_row *row;
	size_t rows = 0;

	for (size_t k = 0; same && k < i->now->net.devices.n; k++) {
		const struct net_device *now = &i->now->net.devices.v[k];
		const struct net_device *before = find_device(&i->before->net, now->name, k);

		if (!before)
			continue;
		device_row(i, scope, now, before, r);
		rows++;
	}
	if (!rows)
		row_lacks(r, row_add(r, scope, "network", ""), "net_bytes_per_second",
			  !same                  ? other_network
			  : i->now->net.readable ? "no device has been used"
						 : "no /proc/net/dev");
	row = row_add(r, "host", "packet queues", "");
	row_put_or(r, row, "softnet_drops_per_second",
		   rate_of(i->now->net.softnet_drops, i->before->net.softnet_drops, i->seconds),
		   "no /proc/net/softnet_stat");
	row_put_or(r, row, "softnet_squeezes_per_second",
		   rate_of(i->now->net.softnet_squeezes, i->before->net.softnet_squeezes,
			   i->seconds),
		   "no /proc/net/softnet_stat");
	if (same)
		tcp_row(i, scope, r);
	else
		row_lacks(r, row_add(r, scope, "TCP", ""), "listen_overflows_per_second",
			  other_network);
}
