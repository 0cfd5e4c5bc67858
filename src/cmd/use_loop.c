/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading, waiting, printing: once, again and again, or in place with keys. */
#include "output_file.h"
#include "print_result.h"
#include "use.h"

#include <inspect/clock.h>
#include <inspect/render.h>
#include <inspect/term.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>

#define TICK_NS (100 * NSEC_PER_MSEC)

struct screen {
	struct use_loop *l;
	struct use_report report; /* the last one */
	bool has_report;
	bool in_place; /* a terminal, with keys */
	bool paused, ended;
	enum use_sort sort;
	int signal_fd;
	struct termios before;
	struct diag *d;
};

/* --- the terminal ----------------------------------------------------------------------------- */

/* In place also what changes the terminal under us: its size, and being stopped and going on. */
static int open_signals(bool in_place)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	static const int changes[] = {SIGTSTP, SIGCONT, SIGWINCH};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		sigaddset(&set, ends[i]);
	for (size_t i = 0; in_place && i < ARRAY_SIZE(changes); i++)
		sigaddset(&set, changes[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Keys come at once and are not shown; an empty screen without a cursor, on which a line that is
 * too long ends at the edge. */
static void take_terminal(const struct screen *s)
{
	struct termios raw = s->before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[2J\033[?25l\033[?7l", stdout);
}

static void give_terminal_back(const struct screen *s)
{
	tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
	fputs("\033[?7h\033[?25h\n", stdout);
	fflush(stdout);
}

static void enter(struct screen *s)
{
	s->in_place = s->l->v->watch && !s->l->v->common.json && !s->l->v->common.csv &&
		      isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) &&
		      !tcgetattr(STDIN_FILENO, &s->before);
	s->signal_fd = open_signals(s->in_place);
	if (s->in_place)
		take_terminal(s);
}

static void leave(struct screen *s)
{
	closep(&s->signal_fd);
	if (s->has_report)
		use_report_release(&s->report);
	if (s->in_place)
		give_terminal_back(s);
}

/* --- output ----------------------------------------------------------------------------------- */

/* Over what is there, line by line, so that nothing flickers. A line is erased first: behind one
 * that ends in the last column that would take its last character. */
static int draw_in_place(const struct screen *s, const struct result *r)
{
	static const char *const sorts[USE_SORTS] = {"worst first", "utilisation", "name"};
	struct table_options o = {.width = term_width(STDOUT_FILENO),
				  .height = term_height(STDOUT_FILENO),
				  .color = term_use_color(s->l->v->common.color, STDOUT_FILENO),
				  .ascii = !term_is_utf8()};
	CLEANUP(freep) char *text = NULL;
	unsigned lines = 0;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	int err;

	if (!memory)
		return -ENOMEM;
	err = result_table(r, &o, memory);
	if (fclose(memory) || err)
		return err ? err : -ENOMEM;
	fputs("\033[H", stdout);
	for (const char *at = text; *at; lines++) {
		int n = (int)strcspn(at, "\n");

		/* What does not fit would scroll the first line away. */
		if (!o.height || lines + 1 < o.height)
			printf("\033[K%.*s\n", n, at);
		at += n + (at[n] == '\n');
	}
	printf("\033[J%s: q quit, p %s, s sort (%s)", s->paused ? "paused" : "keys",
	       s->paused ? "go on" : "pause", sorts[s->sort]);
	if (o.height && lines + 1 > o.height)
		printf("; %u lines more", lines + 1 - o.height);
	return fflush(stdout) ? -EIO : 0;
}

static int print_report(struct screen *s, const struct result *r)
{
	const struct use_values *v = s->l->v;

	if (s->in_place)
		return diag_errno(s->d, draw_in_place(s, r), "cannot write to the terminal");
	if (v->watch && v->common.json) {
		errno = 0;
		if (!result_json_line(r, stdout) && !fflush(stdout))
			return 0;
		return diag_errno(s->d, errno ? -errno : -EIO, "cannot write to stdout");
	}
	if (v->watch && !v->common.csv && s->l->worst != USE_NO_DATA)
		putchar('\n');
	return print_result(r, &v->common, v->all, s->d);
}

static int write_prometheus(const struct screen *s)
{
	struct output_file f;
	int err = output_file_open(&f, s->l->v->prometheus, s->d);

	if (err)
		return err;
	return output_file_close(&f, use_write_prometheus(&s->report, f.out), s->d);
}

/* A report as everything that was asked for. `again`: drawn in another order, not measured. */
static int show(struct screen *s, bool again)
{
	CLEANUP(result_release) struct result r;
	const struct use_values *v = s->l->v;
	unsigned width = v->common.json || v->common.csv ? 0 : term_width(STDOUT_FILENO);
	int err = 0;

	result_init(&r, "inspect.use/1");
	result_fact(&r, "time_ns", "", cell_u64(CELL_NS, clock_realtime_ns()));
	use_fill_result(&s->report, v, s->l->subject, width, s->sort, &r);
	err = print_report(s, &r);
	if (!err && s->l->log && !again) {
		struct use_values all = *v;
		struct result line;

		/* The same with all rows. */
		all.common.json = true;
		result_init(&line, "inspect.use/1");
		result_fact(&line, "time_ns", "", cell_u64(CELL_NS, clock_realtime_ns()));
		use_fill_result(&s->report, &all, s->l->subject, 0, s->sort, &line);
		errno = 0;
		err = result_json_line(&line, s->l->log);
		result_release(&line);
		/* The renderer only knows that something failed. */
		if (err || fflush(s->l->log))
			err = diag_errno(s->d, errno ? -errno : -EIO, "cannot write %s", v->log);
	}
	if (!err && v->prometheus && !again)
		err = write_prometheus(s);
	return err;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static int take_key(struct screen *s)
{
	char key;

	if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q') {
		s->ended = true;
		return 0;
	}
	if (key == 'p')
		s->paused = !s->paused;
	else if (key == 's')
		s->sort = (s->sort + 1) % USE_SORTS;
	else
		return 0;
	return s->has_report ? show(s, true) : 0;
}

/* ^Z: stopped, the terminal is as it was. When we go on, also after a SIGSTOP, it is ours again. */
static int take_signals(struct screen *s)
{
	struct signalfd_siginfo info;
	bool redraws = false;

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info))
		switch (info.ssi_signo) {
		case SIGTSTP:
			give_terminal_back(s);
			raise(SIGSTOP);
			break;
		case SIGCONT:
			take_terminal(s);
			redraws = true;
			break;
		case SIGWINCH:
			fputs("\033[2J", stdout);
			redraws = true;
			break;
		default:
			s->ended = true;
		}
	return redraws && !s->ended && s->has_report ? show(s, true) : 0;
}

static uint64_t until(uint64_t end_ns)
{
	uint64_t now_ns = clock_now_ns();

	return end_ns > now_ns ? end_ns - now_ns : 0;
}

/* Until the window is over, or a key or a signal ends it. While it is paused there is no end. */
static int wait_window(struct screen *s)
{
	uint64_t end_ns = clock_now_ns() + s->l->v->window_ns;

	while (!s->ended) {
		struct pollfd fds[] = {{.fd = s->signal_fd, .events = POLLIN},
				       {.fd = s->in_place ? STDIN_FILENO : -1, .events = POLLIN}};
		uint64_t left_ns, lead_ns;
		int err = 0;

		use_tick(s->l->session, s->paused ? UINT64_MAX : until(end_ns));
		left_ns = until(end_ns);
		lead_ns = use_lead_ns(s->l->session);
		if (!left_ns && !s->paused)
			return 0;
		left_ns = s->paused ? TICK_NS : left_ns > lead_ns ? left_ns - lead_ns : left_ns;
		/* Rounded up, or the last millisecond would be spent spinning. */
		if (poll(fds, ARRAY_SIZE(fds),
			 (int)((MIN(left_ns, TICK_NS) + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC)) < 0 &&
		    errno != EINTR)
			return -errno;
		if (fds[0].revents)
			err = take_signals(s);
		if (!err && fds[1].revents)
			err = take_key(s);
		if (err)
			return err;
	}
	return 0;
}

static int take_report(struct screen *s)
{
	struct use_report report;
	int err = use_read(s->l->session);

	if (!err)
		err = use_rows(s->l->session, &report);
	if (err)
		return diag_errno(s->d, err, "cannot read this machine");
	if (s->has_report)
		use_report_release(&s->report);
	s->report = report;
	s->has_report = true;
	err = show(s, false);
	s->l->worst = MAX(s->l->worst, use_worst(&s->report));
	return err;
}

int use_loop_run(struct use_loop *l, struct diag *d)
{
	struct screen s = {.l = l, .signal_fd = -1, .d = d};
	unsigned most = l->v->count ? l->v->count : l->v->watch ? UINT_MAX : 1;
	int err = use_read(l->session);

	if (err)
		return diag_errno(d, err, "cannot read this machine");
	enter(&s);
	for (unsigned n = 0; n < most && !s.ended && !err; n++) {
		err = wait_window(&s);
		/* Once ended, what was measured so far is still told; a watch has told it. */
		if (!err && (!s.ended || !n))
			err = take_report(&s);
	}
	leave(&s);
	return err;
}
