/* SPDX-License-Identifier: BSD-2-Clause */
#include "http.h"

#include <dlfcn.h>

/* Numbers of <curl/curl.h>, whose package is not needed for building. They are part of its ABI. */
enum {
	CURLOPT_WRITEDATA = 10001,
	CURLOPT_URL = 10002,
	CURLOPT_PROXY = 10004,
	CURLOPT_WRITEFUNCTION = 20011,
	CURLOPT_USERAGENT = 10018,
	CURLOPT_FOLLOWLOCATION = 52,
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

struct http {
	void *easy;
	setopt_fn *setopt;
	perform_fn *perform;
	getinfo_fn *getinfo;
	strerror_fn *text;
	cleanup_fn *cleanup;
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

static void set_options(const struct http *h, unsigned timeout_ms, struct page *p)
{
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
	char at[URL_SIZE];

	snprintf(at, sizeof(at), "%s", url);
	for (int i = 0; i <= REDIRECTIONS_MAX; i++) {
		const char *next = NULL;
		long status = 0;
		int code;

		strbuf_clear(out);
		set_options(h, timeout_ms, &p);
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
