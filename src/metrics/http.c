/* SPDX-License-Identifier: BSD-2-Clause */
#include "http.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inspect/clock.h>
#include <sched.h>
#include <sys/socket.h>

/* Numbers of <curl/curl.h>, whose package is not needed for building. They are part of its ABI. */
enum {
	CURLOPT_WRITEDATA = 10001,
	CURLOPT_URL = 10002,
	CURLOPT_PROXY = 10004,
	CURLOPT_WRITEFUNCTION = 20011,
	CURLOPT_USERAGENT = 10018,
	CURLOPT_ACCEPT_ENCODING = 10102,
	CURLOPT_OPENSOCKETFUNCTION = 20163,
	CURLOPT_OPENSOCKETDATA = 10164,
	CURLOPT_FOLLOWLOCATION = 52,
	CURLOPT_FORBID_REUSE = 75,
	CURLOPT_NOSIGNAL = 99,
	CURLOPT_TIMEOUT_MS = 155,
	CURLOPT_CONNECTTIMEOUT_MS = 156,
	CURLOPT_PROTOCOLS = 181,
	CURLINFO_RESPONSE_CODE = 0x200002,
	CURLINFO_REDIRECT_URL = 0x10001f,
	CURLPROTO_HTTP_AND_HTTPS = 3,
	CURLE_OK = 0,
	CURLE_WRITE_ERROR = 23,
	CURLE_OPERATION_TIMEDOUT = 28,
	REDIRECTIONS_MAX = 3,
	URL_SIZE = 1024,
};

typedef void *init_fn(void);
typedef void cleanup_fn(void *easy);
typedef int setopt_fn(void *easy, int option, ...);
typedef int perform_fn(void *easy);
typedef int getinfo_fn(void *easy, int info, ...);
typedef const char *strerror_fn(int code);

/* struct curl_sockaddr, up to what follows. */
struct socket_kind {
	int family, type, protocol;
};

struct http {
	void *easy;
	setopt_fn *setopt;
	perform_fn *perform;
	getinfo_fn *getinfo;
	strerror_fn *text;
	cleanup_fn *cleanup;
	int net_fd; /* -1: our network */
};

struct page {
	struct strbuf *text;
	size_t max_bytes;
	bool too_big;
};

/* ISO C has no cast from an object's pointer to a function's. */
#define FUNCTION(type, library, name) (*(type **)&(void *){dlsym(library, name)})

static void *load(void)
{
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
	void *library = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !library; i++)
		library = dlopen(names[i], RTLD_NOW);
	return library;
}

struct http *http_open(const char **ret_reason)
{
	void *library = load();
	struct http *h = library ? calloc(1, sizeof(*h)) : NULL;
	init_fn *init;

	*ret_reason = "libcurl is not installed (apt-get install libcurl4)";
	if (!h)
		return NULL;
	init = FUNCTION(init_fn, library, "curl_easy_init");
	h->setopt = FUNCTION(setopt_fn, library, "curl_easy_setopt");
	h->perform = FUNCTION(perform_fn, library, "curl_easy_perform");
	h->getinfo = FUNCTION(getinfo_fn, library, "curl_easy_getinfo");
	h->text = FUNCTION(strerror_fn, library, "curl_easy_strerror");
	h->cleanup = FUNCTION(cleanup_fn, library, "curl_easy_cleanup");
	if (init && h->setopt && h->perform && h->getinfo && h->text && h->cleanup)
		h->easy = init();
	h->net_fd = -1;
	if (h->easy)
		return h;
	free(h);
	return NULL;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	h->cleanup(h->easy);
	/* The library stays: it is not made for being unloaded. */
	free(h);
}

void http_set_network(struct http *h, int net_fd)
{
	h->net_fd = net_fd;
}

/* A socket stays in the namespace that it was made in. -1 */
static int socket_in(int net_fd, const struct socket_kind *k)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd;

	if (own < 0 || setns(net_fd, CLONE_NEWNET)) {
		closep(&own);
		return -1;
	}
	fd = socket(k->family, k->type | SOCK_CLOEXEC, k->protocol);
	/* All that is read later would be of another network. */
	if (setns(own, CLONE_NEWNET))
		abort();
	closep(&own);
	return fd;
}

bool http_may_enter(int net_fd)
{
	int fd =
		net_fd < 0 ? -1 : socket_in(net_fd, &(struct socket_kind){AF_INET, SOCK_STREAM, 0});
	bool may = fd >= 0;

	closep(&fd);
	return may;
}

static int open_socket(void *ctx, int purpose UNUSED, const struct socket_kind *k)
{
	const struct http *h = ctx;

	return h->net_fd < 0 ? socket(k->family, k->type | SOCK_CLOEXEC, k->protocol)
			     : socket_in(h->net_fd, k);
}
static size_t take(char *data, size_t size, size_t n, void *ctx)
{
	struct page *p = ctx;

	size *= n;
	p->too_big = size > p->max_bytes - p->text->n;
	if (p->too_big)
		return 0;
	strbuf_add(p->text, data, size);
	return p->text->failed ? 0 : size;
}

/* "http://host:port" of both is the same. */
static bool is_same_server(const char *a, const char *b)
{
	const char *path = strstr(a, "://");
	size_t n;

	if (!path)
		return false;
	path += 3;
	n = (size_t)(path - a) + strcspn(path, "/?#");
	return strncmp(a, b, n) == 0 && strchr("/?#", b[n]);
}

static int failure(const struct http *h, int code, const struct page *p, char *why, size_t size)
{
	if (p->too_big) {
		snprintf(why, size, "the page is larger than %zu MiB", p->max_bytes >> 20);
		return -EFBIG;
	}
	snprintf(why, size, "%s", h->text(code));
	return code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EIO;
}

static void set_options(struct http *h, unsigned timeout_ms, struct page *p)
{
	h->setopt(h->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	h->setopt(h->easy, CURLOPT_OPENSOCKETDATA, h);
	/* One that is kept may be of another network. */
	h->setopt(h->easy, CURLOPT_FORBID_REUSE, 1L);
	/* To compress would cost the server; some do so all the same. */
	h->setopt(h->easy, CURLOPT_ACCEPT_ENCODING, "identity");
	h->setopt(h->easy, CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTP_AND_HTTPS);
	h->setopt(h->easy, CURLOPT_FOLLOWLOCATION, 0L);
	h->setopt(h->easy, CURLOPT_NOSIGNAL, 1L);
	h->setopt(h->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	h->setopt(h->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)timeout_ms);
	h->setopt(h->easy, CURLOPT_PROXY, "");
	h->setopt(h->easy, CURLOPT_USERAGENT, "inspect");
	h->setopt(h->easy, CURLOPT_WRITEFUNCTION, take);
	h->setopt(h->easy, CURLOPT_WRITEDATA, p);
}

int http_get(struct http *h, const char *url, unsigned timeout_ms, size_t max_bytes,
	     struct strbuf *out, char *why, size_t why_size)
{
	struct page p = {.text = out, .max_bytes = max_bytes};
	uint64_t end_ns = clock_now_ns() + timeout_ms * NSEC_PER_MSEC;
	char at[URL_SIZE];

	snprintf(at, sizeof(at), "%s", url);
	for (int i = 0; i <= REDIRECTIONS_MAX; i++) {
		uint64_t now_ns = clock_now_ns();
		const char *next = NULL;
		long status = 0;
		int code;

		strbuf_clear(out);
		/* 0 would be no limit. */
		set_options(h,
			    end_ns > now_ns ? (unsigned)((end_ns - now_ns) / NSEC_PER_MSEC) + 1 : 1,
			    &p);
		h->setopt(h->easy, CURLOPT_URL, at);
		code = h->perform(h->easy);
		if (code != CURLE_OK)
			return failure(h, code, &p, why, why_size);
		h->getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
		if (status == 200)
			return 0;
		h->getinfo(h->easy, CURLINFO_REDIRECT_URL, &next);
		snprintf(why, why_size, "HTTP status %ld", status);
		if (!next || status < 300 || status > 399)
			return -EPROTO;
		if (!is_same_server(at, next) || strlen(next) >= sizeof(at)) {
			snprintf(why, why_size, "it redirects to another server");
			return -EPROTO;
		}
		snprintf(at, sizeof(at), "%s", next);
	}
	snprintf(why, why_size, "it redirects again and again");
	return -EPROTO;
}
