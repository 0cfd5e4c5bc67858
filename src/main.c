/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <inspect/command.h>
#include <signal.h>

static bool is_one_of(const char *word, const char *a, const char *b)
{
	return str_eq(word, a) || str_eq(word, b);
}

/* `inspect help [NAME]`, `--help`, `--version [-v]`, or an unknown word. The exit code. */
static int run_builtin(int argc, char **argv, struct diag *d)
{
	const char *word = argv[1], *next = argc > 2 ? argv[2] : NULL;
	const struct command *named = next ? command_find(next) : NULL;

	if (is_one_of(word, "--version", "-V")) {
		help_version(next && is_one_of(next, "-v", "--verbose"), stdout);
	} else if (!is_one_of(word, "--help", "-h") && !str_eq(word, "help")) {
		help_unknown_command(word, d);
	} else if (named) {
		help_command(named, stdout);
	} else if (next && str_eq(word, "help")) {
		help_unknown_command(next, d);
	} else {
		help_overview(stdout);
	}
	return d->err ? EXIT_USAGE : 0;
}

static int run_command(const struct command *c, int argc, char **argv, struct diag *d, bool *json)
{
	int code = c->run(argc, argv, d, json);

	if (d->err == -ECANCELED) {
		diag_release(d);
		help_command(c, stdout);
		return 0;
	}
	/* A command's own code, such as that of CMD, stands. */
	if (d->err == -EINVAL && (code == 0 || code == EXIT_OWN_FAILURE))
		return EXIT_USAGE;
	return d->err && !code ? EXIT_OWN_FAILURE : code;
}

/*
 * What could not be written is a failure like any other, /dev/full and a full disk included. A
 * reader that has gone away is none to speak of: the signal would have ended us silently, and does
 * unless the parent had it ignored.
 */
static int finish_stdout(int code, struct diag *d)
{
	bool failed = ferror(stdout);

	errno = 0;
	if (fflush(stdout) == 0 && !failed)
		return code;
	if (errno == EPIPE || d->err == -EPIPE) {
		diag_release(d);
		return code && code != EXIT_OWN_FAILURE ? code : 128 + SIGPIPE;
	}
	diag_errno(d, errno ? -errno : -EIO, "cannot write to stdout");
	return code ? code : EXIT_OWN_FAILURE;
}

/* With one of these closed, the next file that is opened would get its number and be written to.
 * What is written to a closed stdout stays an error. */
static void fill_standard_fds(void)
{
	static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};

	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd)
			return;
}

int main(int argc, char **argv)
{
	CLEANUP(diag_release) struct diag d = {0};
	const struct command *c = argc > 1 ? command_find(argv[1]) : NULL;
	bool json = false;
	int code;

	fill_standard_fds();
	if (argc < 2) {
		help_overview(stderr);
		return EXIT_USAGE;
	}
	/* A limit on file sizes is then an error like a full disk, and is told. */
	signal(SIGXFSZ, SIG_IGN);
	code = c ? run_command(c, argc - 1, argv + 1, &d, &json) : run_builtin(argc, argv, &d);
	code = finish_stdout(code, &d);
	if (json)
		diag_print_json(&d, c ? c->name : NULL, stderr);
	else
		diag_print(&d, c ? c->name : NULL, stderr);
	return code;
}
